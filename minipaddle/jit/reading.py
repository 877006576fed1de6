"""`x.numpy()` while a program is traced: a tensor that computes what NumPy's array would.

What flows on into operators, conditions, indexes and functions of tensors needs no value before the
program runs. What does is refused: a Python number, a function of NumPy, a method that means
something else for an array, an array that the function returns or leaves outside. `numpy.zeros` and
its like of sizes that only a run knows give such tensors, too.
"""

import numpy

from ..eager.numbers import Number
from ..engine.core.dim import Dim
from ..engine.core.dispatch import note_refusal
from ..engine.core.errors import type_error
from ..engine.eager.control_flow import is_static
from ..engine.eager.tensor import Tensor
from ..engine.ops.creation import assign
from ..engine.ops.var import Var
from ..tensor import creation


class ReadArray(Tensor):
    """A copy of a tensor's values, with NumPy's operators and dtypes."""

    def __getitem__(self, key):
        return read(Tensor.__getitem__(self, key))

    def __iter__(self):
        return map(read, Tensor.__iter__(self))

    def astype(self, dtype):
        """The values in another data type; `float` is NumPy's, of 64 bits."""
        return read(Var.astype(self, numpy.dtype(dtype) if dtype in (bool, int, float) else dtype))


def read(x: Tensor) -> ReadArray:
    x.__class__ = ReadArray
    return x


def copy_values(x: Tensor) -> Tensor:
    """The values of a tensor now, without its past: later writes do not change them."""
    return assign(x.detach())


def array(x: Tensor) -> Tensor:
    """A tensor in place of an array; of whole numbers and booleans it is an ordinary one."""
    return x if x.spec.dtype.kind in "biu" else read(x)


def creating(create):
    """`numpy.zeros` or one like it; a tensor where a size is known only when the program runs."""

    def make(*args, **kwargs):
        sizes, *args = args if args else (kwargs.pop("shape"),)
        each = sizes if isinstance(sizes, list | tuple) else (sizes,)
        if not any(is_static(x) or isinstance(x, Dim) for x in each):
            return create(sizes, *args, **kwargs)
        one = create(1, *args, **kwargs)  # has the value and the dtype
        vector = is_static(sizes) and sizes.ndim
        return array(creation.full(sizes if vector else list(each), one.item(), one.dtype))

    return make


def ranging(*args, **kwargs):
    """`numpy.arange`; a tensor where a whole bound is known only when the program runs."""
    ints = [isinstance(x, int | Dim) or (is_static(x) and x.spec.dtype.kind in "iu") for x in args]
    if all(ints) and any(is_static(x) or isinstance(x, Dim) for x in args):
        return array(creation.arange(*args, dtype=numpy.arange(1, **kwargs).dtype))
    return numpy.arange(*args, **kwargs)


CREATED = {numpy.empty: creating(numpy.zeros), numpy.arange: ranging}
CREATED |= {create: creating(create) for create in (numpy.zeros, numpy.ones, numpy.full)}


def wrap_unary(name: str):
    return lambda self: read(getattr(Var, name)(self))


def agreeing(name: str):
    """A method that means the same for a tensor and for NumPy's array."""
    method = getattr(Tensor, name)
    return lambda self, *args, **kwargs: read(method(self, *args, **kwargs))


def wrap_binary(name: str):
    """An operator: on an array and a number or an array as NumPy's, on a tensor a tensor's."""
    function = getattr(Var, name)

    def compute(self, other):
        array = isinstance(other, ReadArray)
        if isinstance(other, Number):
            wide = numpy.result_type(self.spec.dtype, other.kind())
            return read(function(Var.astype(self, wide), other))
        if not array and not isinstance(other, bool | int | float | numpy.ndarray | numpy.generic):
            return function(self, other)
        wide = numpy.result_type(self.spec.dtype, other.spec.dtype if array else other)
        if array or isinstance(other, numpy.ndarray | numpy.generic):
            other = other.astype(wide)
        return read(function(Var.astype(self, wide), other))

    return compute


def no_array_error(what: str, hint: str) -> Exception:
    message = f"{what}: while a program is traced there is no array yet, only a tensor"
    return note_refusal(type_error(message, hint=hint))


def differing(name: str):
    """A method that means one thing for a tensor and another for NumPy's array."""

    def refuse(self, *args, **kwargs):
        raise no_array_error(f"numpy().{name}()", f"use x.{name}(), which is Paddle's")

    return refuse


ONE = "neg abs invert"
TWO = """
    add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow matmul rmatmul
    and rand or ror xor rxor lt le gt ge eq ne"""
AGREEING = "all any argmax argmin cumsum flatten max mean min prod reshape round squeeze sum"
DIFFERENT = """
    argsort dot fill nonzero put repeat searchsorted sort std take transpose var view"""

MEMBERS = {f"__{name}__": wrap_unary for name in ONE.split()}
MEMBERS |= {f"__{name}__": wrap_binary for name in TWO.split()}
MEMBERS |= dict.fromkeys(AGREEING.split(), agreeing)
MEMBERS |= dict.fromkeys(DIFFERENT.split(), differing)
for name, create in MEMBERS.items():
    setattr(ReadArray, name, create(name))
