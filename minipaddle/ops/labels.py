"""Whole numbers as labels: rows of a table, the element of a row, the mean over valid labels."""

from functools import partial

from ..engine.core.op import elementwise, names, opaque
from ..engine.core.record import Spec
from ..engine.ops.elementwise import log, maximum, where
from ..engine.ops.gather import scatter_sum
from ..engine.ops.movement import reshape
from ..engine.ops.nn import cross_entropy, label_positions, label_weights, rows, share
from .arithmetic import clip


@elementwise(result="float")
def bernoulli_nll(m, x, y):
    """-(y log x + (1 - y) log(1 - x)), logarithms cut off at -100."""
    return -(y * m.maximum(m.log(x), -100) + (1 - y) * m.maximum(m.log(1 - x), -100))


bernoulli_nll.vjp(
    x=lambda g, x, y: g * ((x - y) / maximum(x * (1 - x), 1e-12)),
    y=lambda g, x: g * (maximum(log(1 - x), -100.0) - maximum(log(x), -100.0)),
)


@elementwise(result="float")
def huber(m, x, y, *, delta):
    """½ (x - y)² where |x - y| < delta, delta (|x - y| - ½ delta) beyond."""
    far = m.abs(x - y)
    near = m.minimum(far, delta)
    return near * (far - 0.5 * near)


huber.vjp(
    x=lambda g, x, y, delta: g * clip(x - y, min=-delta, max=delta),
    y=lambda g, x, y, delta: g * clip(y - x, min=-delta, max=delta),
)


@opaque
def mean_of_valid(m, loss, label, *, ignore_index):
    """The mean of the losses whose label is not `ignore_index`; 0 if there is none."""
    return m.sum(loss * label_weights(m, label, ignore_index, loss.dtype, "valid"))


mean_of_valid.shape(lambda loss, label, ignore_index: Spec((), loss.dtype))


@mean_of_valid.vjp("loss")
def _(g, loss_spec, label, ignore_index):
    return g * share(label, ignore_index=ignore_index, dtype=loss_spec.dtype, mean="valid")


@opaque
def pick(m, x, label, *, ignore_index):
    """The element of each row of x (its last axis) at the row's label; 0 for an ignored label."""
    at, ignored = label_positions(m, label, x.shape[-1], ignore_index)
    y = rows(m, x)[at]
    if ignored is not None:
        y[ignored] = 0
    return y.reshape(label.shape)


pick.shape(lambda x, label, ignore_index: cross_entropy.infer(x, label, ignore_index=ignore_index))
pick.vjp(
    x=lambda g, x_spec, label, ignore_index: place(
        g, label, classes=x_spec.shape[-1], ignore_index=ignore_index
    )
)


pick.shards(
    lambda x, label, ignore_index: (
        f"{names(label.ndim)}v,{names(label.ndim)}->{names(label.ndim)}",
        ("v", 1),
    ),
    linear="x",
)


@opaque
def place(m, x, label, *, classes, ignore_index):
    """Rows of zeros with x at the row's label: the adjoint of `pick`."""
    at, ignored = label_positions(m, label, classes, ignore_index)
    y = m.zeros((x.size, classes), dtype=x.dtype)
    y[at] = x.reshape(-1)
    if ignored is not None:
        y[ignored] = 0
    return y.reshape(*x.shape, classes)


place.shape(lambda x, label, classes, ignore_index: Spec((*x.shape, classes), x.dtype))
place.vjp(x=lambda g, label, ignore_index: pick(g, label, ignore_index=ignore_index))


# ---- numbers to vectors ----------------------------------------------------------------------


@opaque
def embedding(m, x, weight, *, padding_idx):
    """The rows of `weight` with the numbers in x; zeros where that is `padding_idx`."""
    y = weight[label_positions(m, x, weight.shape[0])[0][1]].reshape(*x.shape, weight.shape[1])
    if padding_idx is not None:
        y[x == padding_idx] = 0
    return y


@embedding.shape
def _(x, weight, *, padding_idx):
    if x.dtype.kind not in "iu":
        raise TypeError(f"row numbers are whole numbers, not {x}")
    if weight.ndim != 2:
        raise ValueError(f"the table {weight} must have two dimensions, [rows, size]")
    return Spec((*x.shape, weight.shape[1]), weight.dtype)


@embedding.vjp("weight")
def _(g, x, weight_spec, padding_idx):
    if padding_idx is not None:
        g = where(reshape(x != padding_idx, shape=(*x.spec.shape, 1)), g, 0.0)
    return scatter_sum(g, x, shape=weight_spec.shape, axis=0)


@partial(embedding.shards, linear="weight")
def shard_embedding(x, weight, *, padding_idx):
    at = names(x.ndim)
    if padding_idx is not None:
        return f"{at},.n->{at}n"
    return f"{at},vn->{at}n", ("v", 0)


@opaque
def sparse_embedding(m, x, weight, *, padding_idx):
    """`embedding`, whose gradient is given by rows: see `ops/row_gradient.py`."""
    return embedding.body(m, x, weight, padding_idx=padding_idx)


sparse_embedding.shape(embedding.infer)
sparse_embedding.shards(shard_embedding, linear="weight")


@opaque
def one_hot(m, x, *, classes, dtype):
    """1 at the number in x along a new last axis, 0 elsewhere."""
    y = m.zeros((x.size, classes), dtype=dtype)
    y[label_positions(m, x, classes)[0]] = 1
    return y.reshape(*x.shape, classes)


one_hot.shards(lambda x, classes, dtype: f"{names(x.ndim)}->{names(x.ndim)}.")
one_hot.shape(lambda x, classes, dtype: Spec((*x.shape, classes), dtype))
