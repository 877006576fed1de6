"""What neural networks use most, each as one operator: affine maps, softmax, cross-entropy.

They could be composed of smaller operators; as one they cost one dispatch and fewer passes.
"""

from __future__ import annotations

import math

from ..core.op import opaque
from ..core.record import Spec
from .elementwise import exp, where
from .indexing import scatter_sum
from .linalg import matmul, matrix_transpose
from .movement import reshape
from .reduction import sum

# ---- affine maps -----------------------------------------------------------------------------


def rows(x):
    """x as a matrix: all axes but the last are one."""
    spec = x.spec
    if spec.ndim == 2:
        return x
    return reshape(x, shape=(math.prod(spec.shape[:-1]), spec.shape[-1]))


def project(m, x, weight):
    """x @ weight over the last axis of x, as one matrix product however many axes x has."""
    if x.ndim == 2:
        return m.matmul(x, weight)
    flat = m.matmul(m.reshape(x, (-1, x.shape[-1])), weight)
    return m.reshape(flat, (*x.shape[:-1], weight.shape[1]))


def projected_spec(x, weight):
    if weight.ndim != 2 or not x.ndim or x.shape[-1] != weight.shape[0]:
        raise ValueError(
            f"the last dimension of x {list(x.shape)} must equal the first of the weight "
            f"{list(weight.shape)}, which is [in_features, out_features]"
        )
    return Spec((*x.shape[:-1], weight.shape[1]), x.dtype)


def for_x(g, weight):
    """How the result's gradient returns to x: through the weight, transposed."""
    return linear(g, matrix_transpose(weight))


def for_weight(g, x):
    """Every row of x meets the gradient of its result."""
    return matmul(matrix_transpose(rows(x)), rows(g))


@opaque(promote=True)
def linear(m, x, weight):
    """x @ weight, for x of shape [..., in] and a weight of shape [in, out]."""
    return project(m, x, weight)


linear.shape(projected_spec)
linear.vjp(x=for_x, weight=for_weight)


@opaque(promote=True)
def affine(m, x, weight, bias):
    """x @ weight + bias, for x of shape [..., in], a weight of [in, out] and a bias of [out]."""
    y = project(m, x, weight)
    y += bias
    return y


@affine.shape
def _(x, weight, bias):
    spec = projected_spec(x, weight)
    if bias.shape not in (weight.shape[1:], (1,)):
        raise ValueError(f"the bias {list(bias.shape)} must be [{weight.shape[1]}], one per output")
    return spec


affine.vjp(x=for_x, weight=for_weight, bias=lambda g, bias_spec: g.sum_to(bias_spec.shape))

# ---- softmax ---------------------------------------------------------------------------------


def same_spec(x, **attrs):
    return x


@opaque
def softmax(m, x, *, axis=-1):
    """e^x / Σ e^x along `axis`: positive numbers that sum to 1."""
    e = m.exp(x - m.max(x, axis=axis, keepdims=True))
    e /= m.sum(e, axis=axis, keepdims=True)
    return e


@softmax.vjp
def _(g, out, axis):
    weighed = g * out
    return weighed - out * sum(weighed, axis=(axis,), keepdim=True)


@opaque
def log_softmax(m, x, *, axis=-1):
    """x - log Σ e^x along `axis`: the logarithm of softmax, without its overflow."""
    z = x - m.max(x, axis=axis, keepdims=True)
    z -= m.log(m.sum(m.exp(z), axis=axis, keepdims=True))
    return z


log_softmax.vjp(lambda g, out, axis: g - exp(out) * sum(g, axis=(axis,), keepdim=True))

softmax.shape(same_spec)
log_softmax.shape(same_spec)

# ---- cross-entropy with class numbers as labels ----------------------------------------------


def places(m, label, classes: int, ignore_index=None):
    """(row numbers, class numbers) of labels, in a row; 0 stands for the ignored ones.

    Raises IndexError for a number that is no class. On a GPU that is not looked for: it would have
    to wait for the values.
    """
    flat = label.reshape(-1)
    if ignore_index is not None:
        flat = m.where(flat == ignore_index, 0, flat)
    if m.name == "numpy" and flat.size:
        low, high = flat.min(), flat.max()
        if low < 0 or high >= classes:
            raise IndexError(f"{low if low < 0 else high} is no number from 0 to {classes - 1}")
    return m.arange(flat.shape[0]), flat


@opaque
def cross_entropy(m, x, label, *, ignore_index):
    """-log softmax(x)[label] along the last axis; 0 where the label is `ignore_index`."""
    z = x - m.max(x, axis=-1, keepdims=True)
    at_label = z.reshape(-1, x.shape[-1])[places(m, label, x.shape[-1], ignore_index)]
    loss = m.log(m.sum(m.exp(z), axis=-1)) - at_label.reshape(label.shape)
    return m.where(label == ignore_index, 0, loss)


@cross_entropy.shape
def _(x, label, *, ignore_index):
    if label.shape != x.shape[:-1]:
        raise ValueError(
            f"labels {label} must have one class number for each row of {x}: "
            f"shape {list(x.shape[:-1])}"
        )
    if label.dtype.kind not in "iu":
        raise TypeError(f"labels are class numbers, whole numbers, not {label}")
    return Spec(label.shape, x.dtype)


@cross_entropy.vjp("x")
def _(g, x, label, ignore_index):
    slope = softmax_minus_label(x, label, ignore_index=ignore_index)
    return reshape(g, shape=(*g.spec.shape, 1)) * slope


@opaque
def softmax_minus_label(m, x, label, *, ignore_index):
    """The derivative of `cross_entropy`: softmax(x), less 1 at the label; 0 in ignored rows."""
    p = softmax.body(m, x.reshape(-1, x.shape[-1]), axis=-1)
    p[places(m, label, x.shape[-1], ignore_index)] -= 1
    p[label.reshape(-1) == ignore_index] = 0
    return p.reshape(x.shape)


softmax_minus_label.shape(lambda x, label, ignore_index: x)


@softmax_minus_label.vjp("x")
def _(g, x, label, ignore_index):
    valid = reshape(label != ignore_index, shape=(*label.spec.shape, 1)).astype(x.spec.dtype)
    weighed = g * valid * softmax(x, axis=-1)
    return weighed - softmax(x, axis=-1) * sum(weighed, axis=(x.spec.ndim - 1,), keepdim=True)


def shares(m, label, ignore_index, dtype):
    """1 / (number of labels that count) where the label counts, 0 where it is ignored."""
    counts = (label != ignore_index).astype(dtype)
    return counts / m.maximum(m.sum(counts), 1)


@opaque
def share(m, label, *, ignore_index, dtype):
    """The weight of each label in a mean over those that are not `ignore_index`."""
    return shares(m, label, ignore_index, dtype)


share.shape(lambda label, ignore_index, dtype: Spec(label.shape, dtype))


@opaque
def mean_of_valid(m, loss, label, *, ignore_index):
    """The mean of the losses whose label is not `ignore_index`; 0 if there is none."""
    return m.sum(loss * shares(m, label, ignore_index, loss.dtype))


mean_of_valid.shape(lambda loss, label, ignore_index: Spec((), loss.dtype))


@mean_of_valid.vjp("loss")
def _(g, loss_spec, label, ignore_index):
    return g * share(label, ignore_index=ignore_index, dtype=loss_spec.dtype)


# ---- one number out of each row ---------------------------------------------------------------


@opaque
def pick(m, x, label, *, ignore_index):
    """The element of each row of x (its last axis) at the row's label; 0 for an ignored label."""
    at = places(m, label, x.shape[-1], ignore_index)
    y = x.reshape(-1, x.shape[-1])[at].reshape(label.shape)
    return m.where(label == ignore_index, 0, y)


pick.shape(cross_entropy.infer)
pick.vjp(
    x=lambda g, x_spec, label, ignore_index: place(
        g, label, classes=x_spec.shape[-1], ignore_index=ignore_index
    )
)


@opaque
def place(m, x, label, *, classes, ignore_index):
    """Rows of zeros with x at the row's label: the adjoint of `pick`."""
    y = m.zeros((x.size, classes), dtype=x.dtype)
    y[places(m, label, classes, ignore_index)] = m.where(label == ignore_index, 0, x).reshape(-1)
    return y.reshape(*x.shape, classes)


place.shape(lambda x, label, classes, ignore_index: Spec((*x.shape, classes), x.dtype))
place.vjp(x=lambda g, label, ignore_index: pick(g, label, ignore_index=ignore_index))

# ---- numbers to vectors ----------------------------------------------------------------------


@opaque
def embedding(m, x, weight, *, padding_idx):
    """The rows of `weight` with the numbers in x; zeros where that is `padding_idx`."""
    y = weight[places(m, x, weight.shape[0])[1]].reshape(*x.shape, weight.shape[1])
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


@opaque
def one_hot(m, x, *, classes, dtype):
    """1 at the number in x along a new last axis, 0 elsewhere."""
    y = m.zeros((x.size, classes), dtype=dtype)
    y[places(m, x, classes)] = 1
    return y.reshape(*x.shape, classes)


one_hot.shape(lambda x, classes, dtype: Spec((*x.shape, classes), dtype))
