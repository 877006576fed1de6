"""Scores as parts of a program that is written by hand."""

from ..core.prelude import creation, indexing, movement, refuse_unsupported, require_one_of
from ..tensor.creation import zeros
from ..tensor.joining import concat
from .mode import outside, writing

__all__ = ["auc"]


def auc(
    input, label, curve="ROC", num_thresholds=2**12 - 1, topk=1, slide_steps=1, ins_tag_weight=None
):  # fmt: skip
    """The area under the ROC curve: (of all runs, of the last ones, [states]).

    `input` [N, 2] holds probabilities, of which the second counts, `label` [N, 1] is 0 or 1. Each
    is taken to one of `num_thresholds` + 1 steps. The second area is that of the last `slide_steps`
    runs (0: of all). The states are the counts by step of the positive and the negative, of the
    last runs and of all. Source: `paddle.metric.Auc` does it in eager mode.
    """
    require_one_of("static.auc", ("ROC",), curve=curve)
    refuse_unsupported("static.auc", ins_tag_weight=ins_tag_weight)
    writing("static.auc")
    bins = num_thresholds + 1
    at = (input[:, 1] * num_thresholds).astype("int64")
    positive = (movement.reshape(label, shape=(-1,)) != 0).astype("int64")
    ones = creation.full(shape=positive.spec.shape, value=1, dtype=positive.spec.dtype)
    full, recent = [], []
    for hits in (positive, ones - positive):
        batch = indexing.scatter_sum(hits, at, shape=(bins,), axis=0)
        with outside():
            total, window = zeros([bins], "int64"), zeros([max(slide_steps, 1), bins], "int64")
        sums, rows = total + batch, concat([window[1:], batch.unsqueeze(0)])
        total.set_value(sums)
        window.set_value(rows)
        full.append(sums)
        recent.append(rows.sum(0) if slide_steps else sums)
    return area(*full), area(*recent), [*recent, *full]


def area(positive, negative):
    """The area under the curve of true against false positives, a trapezoid for each step."""
    true, false = (x.flip(0).astype("float64") for x in (positive, negative))
    height = true.cumsum() - true / 2
    possible = true.sum() * false.sum()
    return (height * false).sum() / (possible + (possible == 0).astype("float64"))
