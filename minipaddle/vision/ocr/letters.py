"""From a column of probabilities for each place of a line to its letters.

Source: Graves et al., "Connectionist temporal classification" (2006).
"""

from ...core.prelude import NUMPY as np
from ...core.prelude import slot, value_error

__all__ = ["collapse", "decode_beams", "decode_greedily"]


@slot("ocr.collapse")
def collapse(path, blank=0) -> list[int]:
    """The labels that a path [T] spells: of equal neighbours one, then no blanks.

    >>> paddle.vision.ocr.collapse([0, 3, 3, 0, 3, 5, 0])
    [3, 3, 5]
    """
    path = np.asarray(path, int)
    return path[mark_letters(path, blank)].tolist()


@slot("ocr.mark_letters")
def mark_letters(path, blank: int):
    """Which places of a path [T] begin a letter."""
    begins = path != blank
    begins[1:] &= path[1:] != path[:-1]
    return begins


def decode_greedily(probabilities, blank=0) -> tuple[list[int], float]:
    """(labels, score) of the likeliest path through probabilities [T, classes].

    The score is the mean of the probabilities where letters begin, 0 without letters. The labels
    need not be the likeliest: see `decode_beams`. Source: Graves et al. 2006, section 3.2;
    PaddleOCR, `CTCLabelDecode`.

    >>> paddle.vision.ocr.decode_greedily([[0.25, 0.75], [0.5, 0.25], [0.0, 1.0]])
    ([1, 1], 0.875)
    """
    probabilities = check_probabilities("decode_greedily", probabilities)
    path = probabilities.argmax(1)
    begins = mark_letters(path, blank)
    scores = probabilities[begins, path[begins]]
    return path[begins].tolist(), float(scores.mean(dtype="float64")) if scores.size else 0.0


def check_probabilities(name: str, probabilities):
    """The array [T, classes], which holds no negative number, no nan and no infinity."""
    probabilities = np.asarray(probabilities)
    if probabilities.ndim != 2 or not probabilities.shape[1]:
        shape = list(probabilities.shape)
        raise value_error(f"{name} of an array of shape {shape}", "probabilities [T, classes]")
    if not (probabilities.min(initial=0) >= 0 and probabilities.max(initial=0) < np.inf):
        raise value_error(
            f"{name} of numbers below 0, nan or inf", "probabilities, as softmax gives them"
        )
    return probabilities


@slot("ocr.decode_beams")
def decode_beams(probabilities, width=8, blank=0) -> list[tuple[list[int], float]]:
    """The `width` likeliest label sequences in probabilities [T, classes], best first, each with
    the logarithm of its probability, summed over its paths.

    After each column the `width` likeliest beginnings go on. The sum misses paths through
    beginnings that did not; with a width that keeps all it is exact. Source: Graves and Jaitly,
    "Towards end-to-end speech recognition with recurrent neural networks" (2014), algorithm 1.

    >>> import math
    >>> best, *_ = paddle.vision.ocr.decode_beams([[0.6, 0.4], [0.6, 0.4]])
    >>> best[0], round(math.exp(best[1]), 4)  # 1-, -1 and 11; the likeliest path is --
    ([1], 0.64)
    """
    probabilities = check_probabilities("decode_beams", probabilities)
    if width < 1:
        raise value_error(f"decode_beams(width={width})", "1 or more")
    with np.errstate(divide="ignore"):
        columns = np.log(probabilities.astype("float64"))
    beginnings = [()]
    at_blank, at_letter = np.zeros(1), np.full(1, -np.inf)  # log of the paths that end so
    for column in columns:
        last = np.array([labels[-1] if labels else blank for labels in beginnings], int)
        total, each = np.logaddexp(at_blank, at_letter), np.arange(len(beginnings))
        longer = total[:, None] + column
        longer[each, last] = at_blank + column[last]  # a letter again needs a blank between
        longer[:, blank] = -np.inf
        again = np.where(last == blank, -np.inf, at_letter + column[last])
        for k, labels in enumerate(beginnings):  # one that grows into another one is that one
            if labels and labels[:-1] in beginnings:
                parent = beginnings.index(labels[:-1])
                again[k] = np.logaddexp(again[k], longer[parent, last[k]])
                longer[parent, last[k]] = -np.inf
        waits = total + column[blank]
        scores = np.concatenate([np.logaddexp(waits, again), longer.ravel()])
        chosen = take_best(scores, width)
        stays, grows = chosen[chosen < len(each)], chosen[chosen >= len(each)] - len(each)
        parents, letters = np.divmod(grows, len(column))
        beginnings = [beginnings[k] for k in stays] + [
            (*beginnings[p], c) for p, c in zip(parents.tolist(), letters.tolist(), strict=True)
        ]
        at_blank = np.concatenate([waits[stays], np.full(len(grows), -np.inf)])
        at_letter = np.concatenate([again[stays], longer[parents, letters]])
    total = np.logaddexp(at_blank, at_letter)
    return [(list(beginnings[k]), float(total[k])) for k in take_best(total, width)]


def take_best(scores, most: int):
    """The places of the `most` largest of scores [n], largest first, without those of -inf."""
    places = np.flatnonzero(scores > -np.inf)
    if len(places) > most:
        places = places[np.argpartition(-scores[places], most - 1)[:most]]
    return places[np.argsort(-scores[places], kind="stable")]
