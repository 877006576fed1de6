"""Softmax and cross-entropy, each as one operator.

They could be composed of smaller operators; as one they cost one dispatch and fewer passes.
"""

from __future__ import annotations

from math import prod

from ..core.op import opaque
from ..core.record import Spec
from .elementwise import where
from .movement import reshape
from .reduction import sum


def rows(m, x):
    """x as a matrix: all axes but the last are one."""
    return x if x.ndim == 2 else m.reshape(x, (prod(x.shape[:-1]), x.shape[-1]))


# ---- softmax ---------------------------------------------------------------------------------


def same_spec(x, **attrs):
    return x


@opaque
def softmax(m, x, *, axis=-1):
    """e^x / Σ e^x along `axis`: positive numbers that sum to 1."""
    e = m.exp(x - (x.max(axis=axis, keepdims=True) if x.size else 0))
    e /= e.sum(axis=axis, keepdims=True)
    return e


@softmax.vjp
def _(g, out, axis):
    weighed = g * out
    return weighed - out * sum(weighed, axis=(axis,), keepdim=True)


softmax.shape(same_spec)
softmax.composite = True

# ---- cross-entropy with class numbers as labels ----------------------------------------------


def label_positions(m, label, classes: int, ignore_index=None):
    """((row numbers, class numbers) of the labels, mask of the ignored ones or None).

    Raises IndexError for a number that is no class; on a GPU see `gather.wrap_negative`.
    """
    flat, ignored = label.reshape(-1), None
    host = m.name == "numpy" and flat.size > 0
    unsigned = f"u{flat.itemsize}"  # negative numbers are large ones
    top = flat.view(unsigned).max() if host else classes
    if ignore_index is not None and (top >= classes or ignore_index >= 0):
        ignored = flat == ignore_index
        flat = m.where(ignored, 0, flat)
        top = flat.view(unsigned).max() if host else 0
    if host and top >= classes:
        raise IndexError(f"{top.astype(flat.dtype)} is no number from 0 to {classes - 1}")
    return (m.arange(flat.shape[0]), flat), ignored


def label_weights(m, label, ignore_index: int, dtype, mean: str | None):
    """The weight of each label in the loss: 0 for ignored ones, else 1 (in a mean, its share).

    `mean` is None, or names the labels that count: "valid" or "all".
    """
    valid = (label != ignore_index).astype(dtype)
    if mean is None:
        return valid
    return valid / (m.maximum(m.sum(valid), 1) if mean == "valid" else valid.size)


@opaque
def share(m, label, *, ignore_index, dtype, mean):
    """The weight of each label in the loss; see `label_weights`."""
    return label_weights(m, label, ignore_index, dtype, mean)


share.shape(lambda label, ignore_index, dtype, mean: Spec(label.shape, dtype))


@opaque
def cross_entropy(m, x, label, *, ignore_index, mean=None):
    """-log softmax(x)[label] along the last axis, 0 where the label is `ignore_index`.

    One loss for each row, or with `mean` ("valid" or "all") their mean.
    """
    at, ignored = label_positions(m, label, x.shape[-1], ignore_index)
    z = rows(m, x)
    z = z - z.max(axis=1, keepdims=True)
    loss = m.log(m.exp(z).sum(axis=1)) - z[at]
    if ignored is not None:
        loss[ignored] = 0
    if mean is None:
        return loss.reshape(label.shape)
    if ignored is None or mean == "all":
        return loss.sum() / loss.size
    return (loss * label_weights(m, label.reshape(-1), ignore_index, loss.dtype, mean)).sum()


@cross_entropy.shape
def _(x, label, *, ignore_index, mean=None):
    if label.shape != x.shape[:-1]:
        raise ValueError(
            f"labels {label} must have one class number for each row of {x}: "
            f"shape {list(x.shape[:-1])}"
        )
    if label.dtype.kind not in "iu":
        raise TypeError(f"labels are class numbers, whole numbers, not {label}")
    return Spec(() if mean else label.shape, x.dtype)


@cross_entropy.vjp("x")
def _(g, x, label, ignore_index, mean):
    slope = softmax_minus_label(x, label, ignore_index=ignore_index, mean=mean)
    return (g if mean else reshape(g, shape=(*g.spec.shape, 1))) * slope


@opaque
def softmax_minus_label(m, x, label, *, ignore_index, mean):
    """The derivative of `cross_entropy`: softmax(x), less 1 at the label; 0 in ignored rows."""
    at, ignored = label_positions(m, label, x.shape[-1], ignore_index)
    p = softmax.body(m, rows(m, x), axis=-1)
    p[at] -= 1
    if ignored is not None:
        p *= label_weights(m, label.reshape(-1, 1), ignore_index, p.dtype, mean)
        p[ignored] = 0  # also where scores are infinite
    elif mean:
        p /= p.shape[0]
    return p.reshape(x.shape)


softmax_minus_label.shape(lambda x, label, ignore_index, mean: x)


@softmax_minus_label.vjp("x")
def _(g, x, label, ignore_index, mean):
    weight = share(label, ignore_index=ignore_index, dtype=x.spec.dtype, mean=mean)
    counts = reshape(label != ignore_index, shape=(*label.spec.shape, 1))
    p = where(counts, softmax(x, axis=-1), 0.0)
    weighed = g * reshape(weight, shape=(*weight.spec.shape, 1)) * p
    return weighed - p * sum(weighed, axis=(x.spec.ndim - 1,), keepdim=True)
