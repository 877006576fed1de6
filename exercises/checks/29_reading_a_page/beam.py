"""Checks of 29_reading_a_page/beam."""

from collections import Counter
from itertools import groupby, pairwise
from math import comb, log

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.vision import ocr

exercise = Exercise(
    title="A beam: the likeliest letters, not the likeliest path",
    level="hard",
    minutes=45,
    before=("29_reading_a_page/collapse",),
    slots={"ocr.decode_beams": "decode_beams"},
    hints=(
        "A path that ends with the letter 1 goes on with 1. If the one before was a blank, how "
        "many letters are there now? And if it was the letter 1?",
        "Let a dict have a pair for each tuple of letters. Make a new dict for each column, and a "
        "small function that adds two logs to the pair of some letters, which begins at (-inf, "
        "-inf).",
        "beams = {(): (0, -inf)}\n"
        "for each column: for each beginning: for each label, with the log p:\n"
        "    blank: add both + p at the blank\n"
        "    the last letter: add at_letter + p to the same; at_blank + p to one letter more\n"
        "    another: add both + p to one letter more\n"
        "    sort by the sum of both, keep width",
    ),
    wrong={
        "a letter again is one more": "_add(grown, letters, -np.inf, at_letter + p) → "
        "_add(grown, (*letters, label), -np.inf, at_letter + p)",
        "no letter comes twice": "_add(grown, (*letters, label), -np.inf, at_blank + p) → pass",
        "a blank is a letter": "label == blank → False",
        "the blank is always 0": "label == blank → label == 0",
        "the likeliest path alone": (
            "beams[letters] = np.logaddexp(before[0], at_blank), np.logaddexp(before[1], at_letter)"
            " → beams[letters] = max(before[0], at_blank), max(before[1], at_letter)"
        ),
        "paths overwrite each other": (
            "beams[letters] = np.logaddexp(before[0], at_blank), np.logaddexp(before[1], at_letter)"
            " → beams[letters] = at_blank, at_letter"
        ),
        "only paths that end with a letter count": "-np.logaddexp(*grown[letters]) → "
        "-grown[letters][1]",
        "the least likely are kept": "-np.logaddexp(*grown[letters]) → "
        "np.logaddexp(*grown[letters])",
        "all are kept": "likely[:width] → likely",
        "always eight": "likely[:width] → likely[:8]",
        "one is kept": "likely[:width] → likely[:1]",
        "what has no probability": "score > -np.inf → True",
        "tuples": "list(letters) → letters",
    },
    unkillable={
        "both = np.logaddexp(at_blank, at_letter) → both = np.logaddexp(at_letter, at_blank)": (
            "in another order the sum is the same"
        ),
        "beams[letters] = (np.logaddexp(before[0], at_blank), np.logaddexp(before[1], at_letter)) "
        "→ beams[letters] = (np.logaddexp(at_blank, before[0]), np.logaddexp(before[1], "
        "at_letter))": "in another order the sum is the same",
        "beams[letters] = (np.logaddexp(before[0], at_blank), np.logaddexp(before[1], at_letter)) "
        "→ beams[letters] = (np.logaddexp(before[0], at_blank), np.logaddexp(at_letter, "
        "before[1]))": "in another order the sum is the same",
        "decode_beams: right only for finite numbers": "probabilities are finite",
    },
)


@exercise.mistake("products that become 0")
def decode_beams(probabilities, width=8, blank=0):
    beams = {(): (1.0, 0.0)}
    for column in np.asarray(probabilities, "float64"):
        grown = {}
        for letters, (at_blank, at_letter) in beams.items():
            for label, p in enumerate(column):
                more = (*letters, label)
                ways = [(more, 0, (at_blank + at_letter) * p)]
                if label == blank:
                    ways = [(letters, (at_blank + at_letter) * p, 0)]
                elif letters and label == letters[-1]:
                    ways = [(letters, 0, at_letter * p), (more, 0, at_blank * p)]
                for key, a, b in ways:
                    before = grown.get(key, (0, 0))
                    grown[key] = before[0] + a, before[1] + b
        beams = dict(sorted(grown.items(), key=lambda item: -sum(item[1]))[:width])
    return [(list(k), float(np.log(sum(v)))) for k, v in beams.items() if sum(v) > 0]


def spell(path, blank):
    return tuple(label for label, _ in groupby(path) if label != blank)


def beams_by_paths(p, width, blank):
    """(letters, probability), best first, by a list of all paths: after each column those whose
    letters are not among the likeliest are struck out. The second value says whether two were so
    close that rounding decides.
    """
    paths, close = {(): 1.0}, False
    for column in p:
        paths = {(*path, k): q * column[k] for path, q in paths.items() for k in range(len(column))}
        sums = Counter()
        for path, q in paths.items():
            sums[spell(path, blank)] += q
        ranked = sums.most_common()
        gaps = [a - b < 1e-9 * a for (_, a), (_, b) in pairwise(ranked) if a]
        close |= any(gaps[: width + 1])
        likely = {letters for letters, _ in ranked[:width]}
        paths = {path: q for path, q in paths.items() if spell(path, blank) in likely and q}
    sums = Counter()
    for path, q in paths.items():
        sums[spell(path, blank)] += q
    return [(list(letters), q) for letters, q in sums.most_common()], close


def compare(got, expected, given, rtol=1e-9):
    """The pairs, the kinds of what is in them, and the logs."""
    expect_that(isinstance(got, list), "this is no list", given=given, got=got)
    for pair in got:
        fine = len(pair) == 2 and isinstance(pair[0], list)
        fine = fine and all(isinstance(c, int | np.integer) for c in pair[0])
        expect_that(fine, "not a list of ints and a log", given=given, got=pair)
        expect_that(isinstance(pair[1], float), "the log is no float", given=given, got=pair)
    letters = [list(map(int, pair[0])) for pair in got]
    expect(str(letters), str([row for row, _ in expected]), given=given, why="the letters")
    logs = [float(pair[1]) for pair in got]
    right = [log(q) for _, q in expected]
    expect(logs, right, given=given, rtol=rtol, atol=1e-12, why="the logs of the probabilities")


@exercise.example
def in_the_task(yours):
    """Two columns; one that is certain of a letter, twice, and with a blank between."""
    given = [[0.6, 0.4], [0.6, 0.4]]
    compare(yours.decode_beams(given), [([1], 0.64), ([], 0.36)], given)
    certain = np.eye(3)
    compare(yours.decode_beams(certain[[1, 1]]), [([1], 1.0)], "1, 1")
    compare(yours.decode_beams(certain[[1, 0, 1]]), [([1, 1], 1.0)], "1, blank, 1")


@exercise.property(
    examples=60,
    length=st.integers(0, 5),
    classes=st.integers(1, 4),
    width=st.sampled_from([1, 2, 3, 5, 8, 1000]),
    seed=st.integers(0, 999),
    none=st.sampled_from([0.0, 0.3]),
    data=st.data(),
)
def as_all_paths_say(yours, length, classes, width, seed, none, data):
    """Against a list of all paths: narrow beams and wide ones, any blank, labels that cannot be."""
    blank = data.draw(st.integers(0, classes - 1))
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(classes), length)
    p[rng.random(p.shape) < none] = 0.0
    before = p.copy()
    expected, close = beams_by_paths(p, width, blank)
    assume(not close)
    given = {"probabilities": before, "width": width, "blank": blank}
    compare(yours.decode_beams(p, width, blank), expected, given)
    expect(p, before, given=given, why="what is given stays as it is")


@exercise.example
def nothing_and_one(yours):
    """No columns, columns without any probability, one label, ties, and eight beams by default."""
    compare(yours.decode_beams(np.zeros((0, 3))), [([], 1.0)], "no columns")
    compare(yours.decode_beams(np.zeros((2, 3))), [], "zeros")
    compare(yours.decode_beams([[0.5, 0.5], [0.0, 0.0]]), [], "zeros in the second column")
    compare(yours.decode_beams([[1.0], [1.0]]), [([], 1.0)], "a blank and nothing else")
    compare(yours.decode_beams([[0.0, 0.5]]), [([1], 0.5)], "they need not add up to 1")
    p = np.arange(1.0, 13.0)[None] / 78
    wanted = [([k] if k else [], (k + 1) / 78) for k in range(11, 3, -1)]
    compare(yours.decode_beams(p), wanted, "eight of twelve labels")
    got = yours.decode_beams(np.full((1, 4), 0.25), 2)
    expect_that(len(got) == 2, "two of four equal ones", got=got)
    expect([pair[1] for pair in got], [log(0.25)] * 2, given="four equal ones, width 2")


@exercise.example
def other_arrays(yours):
    """float32, backwards, every other column."""
    p = np.random.default_rng(5).dirichlet(np.ones(3), 8).astype("float32")
    for q in (p[:4], p[3::-1], p[::2], p[:4, ::-1]):
        given = {"probabilities": q.copy()}
        compare(yours.decode_beams(q, 50), beams_by_paths(q.astype("float64"), 50, 0)[0], given)


@exercise.example
def long_lines(yours):
    """Sixty columns, each a blank or the letter 1: C(61, 2k) paths spell k letters. And six
    hundred, whose only path is far less likely than the smallest float.
    """
    half = np.full((60, 2), 0.5)
    counted = sorted(((comb(61, 2 * k), k) for k in range(31)), reverse=True)
    counted = [([1] * k, count / 2**60) for count, k in counted]
    for p in (half, half.tolist()):
        compare(yours.decode_beams(p, 50), counted, "60 columns [0.5, 0.5], width 50")
    p = np.zeros((600, 4))
    p[np.arange(600), np.arange(600) // 6 % 4] = 0.24  # blank, 1, 2, 3, blank, …
    (best, score), *more = yours.decode_beams(p, 3)
    expect(list(best), [k % 4 for k in range(100) if k % 4], given="600 columns", why="the letters")
    expect(score, 600 * log(0.24), given="600 columns", rtol=1e-11, why="the log")
    expect_that(not more, "there is only one path", got=more)


@exercise.example
def in_the_engine(yours):
    """The line "1 1 2", which the likeliest path misses: the engine's beam is yours, and its log
    that of `ctc_loss`.
    """
    import minipaddle as paddle
    import minipaddle.nn.functional as F

    p = np.array([[0.2, 0.7, 0.1], [0.3, 0.6, 0.1], [0.45, 0.5, 0.05], [0.3, 0.6, 0.1],
                  [0.2, 0.2, 0.6]])  # fmt: skip
    with exercise.plugged(yours):
        beams = ocr.decode_beams(p, width=1000)
    greedy, _ = ocr.decode_greedily(p)
    expect(greedy, [1, 2], given={"probabilities": p}, why="the letters of the likeliest path")
    for letters, score in beams[:5]:
        label, size = paddle.to_tensor([letters or [0]]), paddle.to_tensor([len(letters)])
        logits, columns = paddle.to_tensor(np.log(p)[:, None]), paddle.to_tensor([5])
        loss = F.ctc_loss(logits, label, columns, size, reduction="sum")
        expect(score, -loss.item(), given={"letters": letters}, why="minus ctc_loss")
