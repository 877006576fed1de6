"""Cross-entropy and its derivative written with elementwise operators and reductions.

Their bodies read and write at indices that an array holds, which no symbolic array allows; so
`decompose` takes these rules instead of the bodies. Fused, a loss is one pass over each row.
"""

from __future__ import annotations

from ..engine.core.dtype import HALVES, float32
from ..engine.core.slots import slot
from ..engine.ops import creation, nn, reduction
from ..engine.ops.elementwise import exp, log, where
from ..engine.ops.movement import reshape
from ..engine.passes.decompose import RULES, Array, Operators
from ..engine.passes.registry import LOOKS_FOR
from ..ops import labels


def sum_all(x):
    """The sum of all elements."""
    return reduction.sum(x, axis=tuple(range(x.spec.ndim)), keepdim=False)


def as_column(x):
    """A vector with one value for each row, as a column beside the rows."""
    return reshape(x, shape=(*x.spec.shape, 1))


def shares(label, ignore_index: int, dtype, mean: str | None):
    """The weight of each label in the loss."""
    return nn.label_weights(Operators(), Array(label), ignore_index, dtype, mean).tensor


def in_float32(rule):
    """The rule, applied to scores of half precision as float32; its result is rounded once."""

    def apply(record, x, label):
        if record.dtype not in HALVES:
            return rule(record, x, label)
        return rule(record, x.astype(float32.numpy), label).astype(record.dtype)

    return apply


@in_float32
@slot("losses.cross_entropy")
def cross_entropy(record, x, label):
    """log Σ eᶻ - z[label] with z = x - max x; `pick` raises for a label that is no class."""
    ignore, mean = record.attrs["ignore_index"], record.attrs["mean"]
    last = (x.spec.ndim - 1,)
    top = reduction.max(x, axis=last, keepdim=True)
    total = reduction.sum(exp(x - top), axis=last, keepdim=False)
    at_label = labels.pick(x, label, ignore_index=ignore) - reshape(top, shape=label.spec.shape)
    loss = where(label != ignore, log(total) - at_label, 0.0)
    if mean is None:
        return loss
    if mean == "all":
        return sum_all(loss) / max(label.spec.size, 1)
    return sum_all(loss * shares(label, ignore, x.spec.dtype, mean))


@in_float32
@slot("losses.softmax_minus_label")
def softmax_minus_label(record, x, label):
    """(softmax(x) - [class = label]) · share, in one pass over each row."""
    ignore, mean = record.attrs["ignore_index"], record.attrs["mean"]
    last = x.spec.ndim - 1
    e = exp(x - reduction.max(x, axis=(last,), keepdim=True))
    p = e / reduction.sum(e, axis=(last,), keepdim=True)
    classes = creation.arange(size=x.spec.shape[last], dtype=label.spec.dtype)
    hit = (classes == as_column(label)).astype(x.spec.dtype)
    slope = (p - hit) * as_column(shares(label, ignore, x.spec.dtype, mean))
    return where(as_column(label != ignore), slope, 0.0)


def share(record, label):
    """The weight of each label."""
    return shares(label, **record.attrs)


def mean_of_valid(record, loss, label):
    """The mean of the losses whose label counts."""
    return sum_all(loss * shares(label, record.attrs["ignore_index"], record.dtype, "valid"))


RULES.update(
    {
        nn.cross_entropy: cross_entropy,
        nn.softmax_minus_label: softmax_minus_label,
        nn.share: share,
        labels.mean_of_valid: mean_of_valid,
    }
)
LOOKS_FOR["decompose"] += RULES
