"""Forms of reductions and norms."""

from math import prod

import numpy

from ...engine.core.slots import slot
from ...engine.ir.program import ITEM, NUMBER
from ...ops.norm import moments
from ..formulas import MODULE, scalar
from ..graph import INT64, OnnxGraph, OnnxValue
from ..rows import WRITTEN
from ..table import FORMS, form
from .movement import same, vector_in


def reduce(g: OnnxGraph, kind: str, x: OnnxValue, axis, keepdim) -> OnnxValue:
    """A reduction; runtimes have none of short whole numbers or booleans."""
    wide = x if x.dtype.kind == "f" or x.dtype.itemsize >= 4 else x.astype(numpy.int32)
    return g(kind, wide, tuple(axis), keepdims=int(keepdim)) if axis else same(g, wide)


@form("sum", "max", "min", "prod", "mean", "logsumexp")
def _(g, x, *, axis, keepdim):
    kind, dtype = WRITTEN[g.record.op.name].kind, g.record.dtype
    x = x.astype(dtype) if kind == "ReduceSum" else x
    if kind == "ReduceMean" and x.dtype.kind != "f":
        x = x.astype(numpy.float64)
    return reduce(g, kind, x, axis, keepdim).astype(dtype)


for _name, _kind in {"all": "ReduceMin", "any": "ReduceMax"}.items():

    @form(_name)
    def _(g, x, *, axis, keepdim, kind=_kind):
        truth = x.astype(bool).astype(numpy.int32)
        return reduce(g, kind, truth, axis, keepdim).astype(bool)


@slot("onnx.place_of")
def place_of(g: OnnxGraph, kind: str, x: OnnxValue, axis: int | None, keepdim: bool) -> OnnxValue:
    """The place of the extreme along an axis; of None the place in the flat array."""
    if axis is not None:
        return g(kind, x, axis=axis, keepdims=int(keepdim), dtype=INT64)
    at = g(kind, g("Reshape", x, (-1,)), axis=0, keepdims=0, dtype=INT64)
    return g("Reshape", at, (1,) * len(x.shape)) if keepdim else at


FORMS["argmax"] = lambda g, x, axis, keepdim: place_of(g, "ArgMax", x, axis, keepdim)
FORMS["argmin"] = lambda g, x, axis, keepdim: place_of(g, "ArgMin", x, axis, keepdim)


@form("moments")
def _(g, x, *, axes, centered):
    mean = g("ReduceMean", x, tuple(axes), keepdims=1)
    if not centered:
        square = g("ReduceMean", g("Mul", x, x), tuple(axes), keepdims=1)
        return g("Mul", mean, 0), square
    apart = g("Sub", x, mean)
    return mean, g("ReduceMean", g("Mul", apart, apart), tuple(axes), keepdims=1)


def channel_vector(g: OnnxGraph, value, like: OnnxValue) -> OnnxValue:
    """Numbers of the channels, [1, C, 1, 1], as a vector."""
    channels = like.shape[1]
    if not isinstance(value, OnnxValue) or prod(value.shape) == 1:
        return g("Expand", g("Reshape", g.value(value, like.dtype), (1,)), (channels,))
    return vector_in(g, value) or g("Reshape", value, (-1,))


@form("standardize")
def _(g, x, scale, shift, mean, var, *, axes, epsilon, centered):
    """BatchNormalization where the moments are those of channels; LayerNormalization where they are
    of the last axes of x itself; else the formula.
    """
    n = len(x.shape)
    if layer_norm_fits(g.record):
        shape = x.shape[axes[0] :]
        scale, shift = (g("Expand", g.value(v, x.dtype), shape) if not isinstance(v, OnnxValue)
                        or v.shape != shape else v for v in (scale, shift))  # fmt: skip
        return g("LayerNormalization", x, scale, shift, axis=axes[0], epsilon=epsilon)
    one_each = [(1, x.shape[1], *(1,) * (n - 2)) if n > 1 else None, (), (1,) * n]
    values = (scale, shift, mean, var)
    if n > 2 and centered and all(getattr(v, "shape", ()) in one_each for v in values):
        vectors = [channel_vector(g, v, x) for v in values]
        return g("BatchNormalization", x, *vectors, epsilon=epsilon)
    x, mean, var = map(scalar, (x, mean, var))
    rate = 1 / MODULE.sqrt(var + float(epsilon))
    scale, shift = (scalar(v) if isinstance(v, OnnxValue) else v for v in (scale, shift))
    return (x - mean) * (rate * scale) + shift


def layer_norm_fits(record) -> bool:
    """Whether `standardize` is a LayerNormalization: its moments are those of x over its last axes,
    and scale and shift have these axes at most.
    """
    x, scale, shift, mean, var = record.inputs
    axes, n = record.attrs["axes"], x.spec.ndim
    if tuple(axes) != tuple(range(n - len(axes), n)) or not record.attrs["centered"]:
        return False
    wholes = [r.inputs[0] if r.op is ITEM else None for r in (mean, var)]
    origin = wholes[0]
    if origin is None or origin is not wholes[1] or origin.op is not moments:
        return False
    own = origin.inputs[0] is x and origin.attrs["axes"] == axes and origin.attrs["centered"]
    small = all(r.op is NUMBER or len(r.shape) <= len(axes) for r in (scale, shift))
    return own and small
