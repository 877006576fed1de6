"""Letters of columns of probabilities, against the enumeration of all paths, and `ctc_loss`."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle.vision import ocr


def spell(path, blank):
    """The labels of a path, by Python's groupby."""
    return tuple(label for label, _ in itertools.groupby(path) if label != blank)


def every_path(probabilities, blank):
    """{labels: their probability}, and the likeliest path."""
    columns = probabilities.shape[1]
    sums, best = Counter(), ((), -1.0)
    for path in itertools.product(range(columns), repeat=len(probabilities)):
        p = math.prod(probabilities[t, k] for t, k in enumerate(path))
        sums[spell(path, blank)] += p
        best = max(best, (path, p), key=lambda each: each[1])
    return {labels: p for labels, p in sums.items() if p > 0}, best


def draw(seed, length, classes):
    return np.random.default_rng(seed).dirichlet(np.ones(classes), length)


CASES = [(0, 5, 3, 0), (1, 4, 4, 2), (2, 6, 2, 1), (3, 1, 5, 0), (4, 7, 2, 0)]


@pytest.mark.parametrize(("seed", "length", "classes", "blank"), CASES)
def test_wide_beams_sum_all_paths(seed, length, classes, blank):
    p = draw(seed, length, classes)
    p[p < 0.08] = 0.0  # some letters cannot be
    sums, (path, _) = every_path(p, blank)
    beams = ocr.decode_beams(p, width=10_000, blank=blank)
    assert {tuple(labels) for labels, _ in beams} == sums.keys()
    for labels, score in beams:
        assert math.exp(score) == pytest.approx(sums[tuple(labels)], rel=1e-12)
    scores = [score for _, score in beams]
    assert scores == sorted(scores, reverse=True)
    labels, score = ocr.decode_greedily(p, blank)
    assert tuple(labels) == spell(path, blank)


@pytest.mark.parametrize(("seed", "length", "classes", "blank"), CASES)
def test_narrow_beams_are_likely_and_below_the_sum(seed, length, classes, blank):
    p = draw(seed, length, classes)
    sums, _ = every_path(p, blank)
    for width in (1, 2, 3):
        beams = ocr.decode_beams(p, width, blank)
        assert len(beams) == min(width, len(sums))
        for labels, score in beams:
            assert math.exp(score) <= sums[tuple(labels)] * (1 + 1e-12)


def search_with_tables(probabilities, width, blank):
    """The same search, a beginning and a letter at a time."""
    beams = {(): (1.0, 0.0)}
    for column in probabilities:
        longer = Counter(), Counter()
        for labels, (ends_blank, ends_letter) in beams.items():
            for k, p in enumerate(column):
                if k == blank:
                    longer[0][labels] += (ends_blank + ends_letter) * p
                elif labels and labels[-1] == k:
                    longer[1][labels] += ends_letter * p
                    longer[1][(*labels, k)] += ends_blank * p
                else:
                    longer[1][(*labels, k)] += (ends_blank + ends_letter) * p
        sums = {
            labels: (longer[0][labels], longer[1][labels]) for labels in {*longer[0], *longer[1]}
        }
        best = sorted((x for x in sums if sum(sums[x])), key=lambda x: -sum(sums[x]))[:width]
        beams = {labels: sums[labels] for labels in best}
    return {labels: sum(each) for labels, each in beams.items()}


@pytest.mark.parametrize(
    ("seed", "length", "classes", "blank"), [*CASES, (5, 9, 6, 0), (6, 12, 4, 3)]
)
@pytest.mark.parametrize("width", [1, 2, 5])
def test_beams_are_those_of_a_search_with_tables(seed, length, classes, blank, width):
    p = draw(seed, length, classes)
    expected = search_with_tables(p, width, blank)
    found = ocr.decode_beams(p, width, blank)
    assert [tuple(labels) for labels, _ in found] == [*expected]
    np.testing.assert_allclose([math.exp(score) for _, score in found], [*expected.values()])


def test_the_sum_is_what_ctc_loss_learns():
    p = draw(7, 6, 4)
    logits = paddle.to_tensor(np.log(p)[:, None])
    for labels, score in ocr.decode_beams(p, width=5000)[:9]:
        label, sizes = paddle.to_tensor([labels or [0]]), paddle.to_tensor([len(labels)])
        loss = F.ctc_loss(logits, label, paddle.to_tensor([6]), sizes, reduction="sum")
        assert loss.item() == pytest.approx(-score, rel=1e-10)


def test_the_likeliest_path_is_not_the_likeliest_text():
    p = np.array([[0.6, 0.4], [0.6, 0.4]])
    assert ocr.decode_greedily(p) == ([], 0.0)
    assert ocr.decode_beams(p)[0][0] == [1]


def test_a_double_letter_needs_a_blank_between():
    certain = np.eye(3)
    assert ocr.decode_greedily(certain[[1, 1, 2]])[0] == [1, 2]
    assert ocr.decode_beams(certain[[1, 1]]) == [([1], 0.0)]
    assert ocr.decode_beams(certain[[1, 0, 1]]) == [([1, 1], 0.0)]
    columns = np.full((2, 3), 1 / 3)  # two columns hold no 1, 1 and no three letters
    texts = [labels for labels, _ in ocr.decode_beams(columns, width=99)]
    assert sorted(texts) == [[], [1], [1, 2], [2], [2, 1]]


def test_ties_keep_the_order_of_classes():
    assert ocr.decode_greedily(np.full((3, 4), 0.25)) == ([], 0.0)
    beams = ocr.decode_beams(np.full((1, 4), 0.25), width=4)
    assert [labels for labels, _ in beams] == [[], [1], [2], [3]]


def test_the_score_is_the_mean_where_letters_begin():
    p = np.array([[0.1, 0.9], [0.2, 0.8], [1.0, 0.0], [0.4, 0.6]])
    assert ocr.decode_greedily(p) == ([1, 1], pytest.approx(0.75))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_any_precision_reads_the_same(dtype):
    p = draw(11, 12, 9)
    for read in (ocr.decode_greedily, lambda p: ocr.decode_beams(p, 4)[0]):
        assert read(p.astype(dtype))[0] == read(p)[0]


def test_no_columns_and_impossible_ones():
    empty = np.zeros((0, 3))
    assert ocr.decode_greedily(empty) == ([], 0.0)
    assert ocr.decode_beams(empty) == [([], 0.0)]
    assert ocr.decode_beams(np.zeros((2, 3))) == []
    assert ocr.collapse([]) == []


@pytest.mark.parametrize("wrong", [[[math.nan, 1.0]], [[-0.1, 1.1]], [[math.inf, 0.0]]])
@pytest.mark.parametrize("function", [ocr.decode_greedily, ocr.decode_beams])
def test_numbers_that_are_no_probabilities_are_refused(function, wrong):
    with pytest.raises(ValueError, match="below 0, nan or inf"):
        function(wrong)
    with pytest.raises(ValueError, match=r"shape \[2\]"):
        function([0.5, 0.5])


def test_a_beam_has_a_width():
    with pytest.raises(ValueError, match="width=0"):
        ocr.decode_beams([[1.0]], width=0)


@pytest.mark.parametrize("blank", [0, 2])
def test_paths_collapse(blank):
    for path in itertools.product(range(3), repeat=5):
        assert tuple(ocr.collapse(path, blank)) == spell(path, blank)
