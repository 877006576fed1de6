"""Tensors that hold sizes, in a trace: `paddle.shape(x)[0] // 2` in a reshape.

A value computed from sizes is derived from them again: also in float32 and float64, as long as it
stays whole (`paddle.shape(x)[0] * 8.0`). Any other number of a whole dtype becomes a new size by
`extent`, an operator whose result has that size: so it gets its value when the program runs.
"""

from __future__ import annotations

from functools import partial

import numpy

from ..core.axes import drop_fraction
from ..engine.core import dim as dims
from ..engine.core.dispatch import Recording, current, note_refusal
from ..engine.core.dtype import float32, float64
from ..engine.core.errors import teach, type_error
from ..engine.core.polynomial import Polynomial
from ..engine.core.record import Record
from ..engine.core.spec import scalar_dtype
from ..engine.eager.tensor import Tensor
from ..engine.eager.tracer import Tracer
from ..engine.ir.builder import Builder, SymbolicArray, no_value_error
from ..engine.ir.interpreter import holds_size
from ..engine.ir.program import ITEM, NUMBER
from ..engine.ops import creation, elementwise, movement
from ..engine.ops.gather import extent
from ..tensor.growing_lists import Rest, RestOfNumbers, has_grown, kind_of_rest, stack_items
from ..tensor.methods import own_members
from .numbers import Number, as_float, plain

for op in (
    movement.reshape, movement.slice_, movement.broadcast_to, movement.concat, movement.unstack,
    movement.split, elementwise.add, elementwise.subtract, elementwise.multiply,
    elementwise.floor_divide, elementwise.remainder, elementwise.neg,
):  # fmt: skip
    op.on_sizes = partial(op.body, numpy)
creation.assign.on_sizes = lambda x: x
movement.stack.on_sizes = lambda *xs, axis: numpy.stack(xs, axis)
elementwise.cast.on_sizes = lambda x, *, dtype: x
elementwise.maximum.on_sizes = numpy.frompyfunc(dims.larger, 2, 1)
elementwise.minimum.on_sizes = numpy.frompyfunc(dims.smaller, 2, 1)


def sizes_in(builder: Builder, record: Record):
    """The sizes that a tensor of whole numbers holds, as an array of ints and Dims."""
    derived = derive_sizes(builder, record)
    if derived is not None:
        return numpy.asarray(derived, object)
    if record.dtype.kind == "f":
        raise no_value_error("its value")
    if record.dtype.kind not in "iu" or record.spec.ndim > 1:
        raise type_error(f"sizes in {record.spec}", expected="whole numbers, 0-D or 1-D")
    if not all(isinstance(n, int) for n in record.shape):
        message = teach(
            f"a shape in {record.spec}: how many axes it has is known when the program runs",
            hint="give InputSpec a number there",
        )
        raise note_refusal(TypeError(message))
    numbers = builder.symbolic(record, builder.place)
    flat = [numbers] if not record.shape else builder.emit(movement.unstack, [numbers], {"axis": 0})
    sizes = [builder.emit(extent, [x], {}).shape[0] for x in flat]
    derived = numpy.array(sizes, object).reshape(record.shape)
    builder.sizes[record] = derived
    return derived


def derive_sizes(builder: Builder, record: Record):
    """The sizes in a value that was computed from sizes; None if it was not."""
    if record in builder.sizes:
        return builder.sizes[record]
    outer = [p for p, r in builder.captured.items() if r is record]
    if outer:
        return sizes_in(builder.parent, builder.parent.value(outer[0]))
    if record.op is NUMBER:
        return whole_or_none(record.attrs["value"])
    if record.dtype is None or not (record.dtype.kind in "iu" or record.dtype in FLOATS):
        return None
    if record.op is ITEM:
        maker = record.inputs[0]
        values = [derive_sizes(builder, r) for r in maker.inputs]
        if maker.op.on_sizes is None or any(x is None for x in values):
            return None
        return maker.op.on_sizes(*values, **maker.attrs)[record.attrs["k"]]
    if record.op.on_sizes is None:
        return None
    values = [leaf(builder, r) for r in record.inputs]
    if any(x is None for x in values) or holds_size(record.shape):
        return None
    return record.op.on_sizes(*values, **record.attrs)


FLOATS = float32.numpy, float64.numpy
"""Dtypes that hold every size: a product of sizes with a whole number is exact in them."""


def whole_or_none(value):
    """A number, if it is whole."""
    value = drop_fraction(value)
    return None if isinstance(value, float) else value


def full_of_sizes(*, shape, value, dtype):
    """The value of `full`, if it is a whole number."""
    value = whole_or_none(value)
    return None if value is None else numpy.full(shape, value, object)


creation.full.on_sizes = full_of_sizes


def leaf(builder: Builder, record: Record):
    """The value of an operand in arithmetic on sizes: a single unknown number is a new size."""
    derived = derive_sizes(builder, record)
    if derived is None and record.dtype is not None and not record.shape:
        return sizes_in(builder, record) if record.dtype.kind in "iu" else None
    return derived


def sizes_of(tracer, x):
    """Sizes as nested lists: numbers where they are known now, else sizes of the program."""
    if type(x.array) is not SymbolicArray:
        return x.tolist()
    return sizes_in(tracer.builder, tracer.builder.value(x.array)).tolist()


def has_symbolic(data) -> bool:
    """Whether data is, or contains, a tensor or a size that only the program knows."""
    if isinstance(data, list | tuple):
        return any(map(has_symbolic, data))
    return isinstance(data, dims.Dim | Tensor | Rest)


def stack_symbolic(data, beside: bool = False) -> Tensor:
    """Nested lists that contain tensors of the program or sizes, as one tensor.

    As in eager mode numbers `beside` tensors are not rounded to the default dtype.
    """
    if isinstance(data, Tensor):
        wide = beside and isinstance(data, Number)
        return creation.assign(plain(data) if wide else data)
    if has_grown(data):
        array = stack_items(data)
        narrow = kind_of_rest(data) is RestOfNumbers and not beside
        return array.astype(scalar_dtype(0.0)) if narrow and array.spec.dtype.kind == "f" else array
    if isinstance(data, list | tuple):
        beside = beside or any(isinstance(x, Tensor) and not isinstance(x, Number) for x in data)
        return movement.stack(*(stack_symbolic(x, beside) for x in data), axis=0)
    wide = beside and type(data) is float
    dtype = float64.numpy if wide else scalar_dtype(data)
    return creation.full(shape=(), value=data, dtype=dtype)


def constant(tracer, data, dtype=None, place=None) -> Tensor:
    """A tensor with a copy of `data`, which may hold tensors and sizes of the program."""
    if not has_symbolic(data):
        return constant_of_numbers(tracer, data, dtype, place)
    with Recording(False):
        out = stack_symbolic(data, beside=dtype is not None)
        return out.astype(dtype) if dtype is not None else out


def short_constant(tracer, array):
    """A few whole numbers, and their symbolic array, with which sizes may be computed."""
    with tracer.inside(tracer.root), Recording(False):
        return array, stack_symbolic(array.tolist()).astype(array.dtype).array


constant_of_numbers = Tracer.constant
Tracer.sizes, Tracer.constant, Tracer.short_constant = sizes_of, constant, short_constant


class Arithmetic:
    """Computations with a size besides sums, products and quotients of whole numbers."""

    def __truediv__(self, other):
        return self.as_float() / other

    def __rtruediv__(self, other):
        return other / self.as_float()

    def __pow__(self, n):
        if not isinstance(n, int) or n < 0:
            return self.as_float() ** n
        out = 1
        for _ in range(n):
            out = self * out
        return out

    def __pos__(self):
        return self

    def __abs__(self):
        return dims.larger(self, -self)

    def as_float(self):
        """This size as a float that only a run knows."""
        if not current.top.tracing:
            raise self.no_number_error()
        return as_float(current.top.constant(self))


for _name, _member in own_members(Arithmetic).items():
    setattr(Polynomial, _name, _member)
