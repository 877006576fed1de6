"""Forms of whole numbers of few bits: QuantizeLinear and DequantizeLinear."""

from math import prod

import numpy

from ...engine.core import dtype as dt
from ...engine.core.slots import slot
from ..formulas import elementwise
from ..graph import NoForm, OnnxGraph, OnnxValue
from ..table import FORMS, form

FLOAT, INT8 = dt.float32.numpy, dt.int8.numpy


@slot("onnx.step_of")
def step_of(g: OnnxGraph, scale, high: int, x: OnnxValue) -> tuple[object, int | None]:
    """(the scale of one step as ONNX takes it, the axis along which it varies)."""
    known = g.fold(scale)
    if known is None:
        raise NoForm("its scale is computed from the input")
    step = (known / high).astype(FLOAT)
    axes = [d for d, n in enumerate(step.shape) if n != 1]
    if len(axes) > 1:
        raise NoForm("it has scales of groups")
    if not axes:
        return g.constant(step.reshape(())), None
    return g.constant(step.reshape(-1)), axes[0] + len(x.shape) - step.ndim


def zero_of(g: OnnxGraph, zero, step: OnnxValue, dtype) -> OnnxValue:
    known = g.fold(zero)
    if known is None:
        raise NoForm("its zero is computed from the input")
    zeros = numpy.broadcast_to(known.reshape(-1), prod(step.shape))
    return g.constant(zeros.astype(dtype).reshape(step.shape))


@slot("onnx.write_quantize")
def write_quantize(g: OnnxGraph, x, scale, zero, low, high) -> tuple:
    """(whole numbers, step, zero, axis): QuantizeLinear."""
    if low < -128 or high > 127:
        raise NoForm("its whole numbers have more than 8 bits")
    dtype = INT8
    step, axis = step_of(g, scale, high, x)
    point = zero_of(g, zero, step, dtype)
    q = g("QuantizeLinear", x, step, point, axis=axis, dtype=dtype)
    ends = numpy.iinfo(dtype)
    if (low, high) != (ends.min, ends.max):
        q = g("Clip", q, numpy.array(low, dtype), numpy.array(high, dtype))
    return q, step, point, axis


def or_formula(rule):
    """The rule; the operator's formula where the rule has no form for its scales."""

    def apply(g, *inputs, **attrs):
        try:
            return rule(g, *inputs, **attrs)
        except NoForm:
            return elementwise(g, g.record, inputs)

    return apply


@form("quantize")
@or_formula
def _(g, x, scale, zero, *, low, high):
    folded = g.fold(g.record)
    if folded is not None:  # a weight: the file holds the whole numbers
        return g.constant(folded)
    return write_quantize(g, x, scale, zero, low, high)[0]


@form("dequantize")
@or_formula
def _(g, q, scale, zero, *, high):
    if q.dtype not in (INT8, numpy.int32):
        raise NoForm(f"whole numbers of {q.dtype}")
    step, axis = step_of(g, scale, high, q)
    return g("DequantizeLinear", q, step, zero_of(g, zero, step, q.dtype), axis=axis, dtype=FLOAT)


@form("fake_quantize")
@or_formula
def _(g, x, scale, zero, *, low, high):
    q, step, point, axis = write_quantize(g, x, scale, zero, low, high)
    return g("DequantizeLinear", q, step, point, axis=axis, dtype=FLOAT)


def exact(name: str, terms):
    """A product of whole numbers as that of floats, which hold its sums exactly if there are few:
    runtimes have no convolution of int8.
    """

    def rule(g, x, y, **attrs):
        if terms(y, **attrs) > 1024:
            raise NoForm("float32 does not hold its sums; export the layer, not its compiled form")
        x, y = (OnnxValue(g, v.astype(FLOAT).name, FLOAT, v.shape) for v in (x, y))
        return FORMS[name](g, x, y, **attrs).astype(numpy.int32)

    return rule


@form("wide_product")
def _(g, x, y, **perms):
    if x.dtype in dt.HALVES:
        x, y = (OnnxValue(g, v.astype(FLOAT).name, FLOAT, v.shape) for v in (x, y))
    return FORMS["product"](g, x, y, **perms)


FORMS["matmul_integer"] = lambda g, x, y: g("MatMulInteger", x, y, dtype=numpy.dtype("int32"))
FORMS["product_integer"] = exact("product", lambda w, y_perm, **_: w.shape[y_perm[-2]])
FORMS["conv_integer"] = exact("conv", lambda w, **_: prod(w.shape[1:]))
FORMS["conv_last_integer"] = exact("conv_last", lambda w, **_: prod(w.shape[:-1]))
