"""Composite operators become small ones: softmax becomes max, subtract, exp, sum, divide.

An operator is written once, by its body over the array module `m`. Here `m` is a module whose
functions are operators, and arrays are tensors that have NumPy's methods. The small operators can
be fused: a softmax is then one pass over each row. An operator whose body asks for values stays.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from ..core.dtype import FLOATS, HALVES, float32
from ..core.op import OPS
from ..core.spec import normalize_axes, promote
from ..eager.tensor import Tensor
from ..ir.program import NUMBER, Program
from ..ops import movement, reduction
from .lifetimes import specs_of
from .registry import program_pass
from .rewriting import Rules, rewritten


class CannotDecompose(Exception):
    """A body asked for what a symbolic array cannot give."""


class Array:
    """A tensor as a body sees it: NumPy's methods, each an operator."""

    __array_ufunc__ = None

    def __init__(self, tensor: Tensor):
        self.tensor = tensor

    shape = property(lambda self: self.tensor.spec.shape)
    dtype = property(lambda self: self.tensor.spec.dtype)
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: prod(self.shape))

    @property
    def T(self):
        return as_array(movement.transpose(self.tensor, perm=tuple(range(self.ndim))[::-1]))

    def reshape(self, *shape):
        shape = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
        known = prod(n for n in shape if n != -1)
        sizes = tuple(self.size // known if n == -1 else n for n in shape)
        return self if sizes == self.shape else as_array(movement.reshape(self.tensor, shape=sizes))

    def astype(self, dtype, copy=True):
        return as_array(self.tensor.astype(dtype))

    def sum(self, axis=None, keepdims=False):
        return self.reduce(reduction.sum, axis, keepdims)

    def max(self, axis=None, keepdims=False):
        return self.reduce(reduction.max, axis, keepdims)

    def reduce(self, op, axis, keepdims):
        if axis == ():  # NumPy reduces over no axis then
            return self
        axes = normalize_axes(axis, self.ndim)
        return as_array(op(self.tensor, axis=axes, keepdim=bool(keepdims)))

    def __getattr__(self, name: str):
        raise CannotDecompose(name)


def operator(name: str, swapped: bool = False):
    def call(self, other):
        pair = (as_tensor(other), self.tensor) if swapped else (self.tensor, as_tensor(other))
        return as_array(OPS[name](*pair))

    return call


SIGNS = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "pow",
         "ne": "not_equal"}  # fmt: skip
for sign, name in SIGNS.items():
    setattr(Array, f"__{sign}__", operator(name))
    setattr(Array, f"__r{sign}__", operator(name, swapped=True))
Array.__neg__ = lambda self: as_array(OPS["neg"](self.tensor))


def as_array(x):
    return Array(x) if isinstance(x, Tensor) else x


def as_tensor(x):
    return x.tensor if isinstance(x, Array) else x


FUNCTIONS: dict[str, Callable] = {}
"""Further functions that bodies call, on arrays; `minipaddle.passes` adds some."""


class Operators:
    """The array module whose functions are operators."""

    name = "operators"

    def __getattr__(self, name: str):
        if name in FUNCTIONS:
            return FUNCTIONS[name]
        if name not in OPS:
            raise CannotDecompose(name)
        return lambda *args: as_array(OPS[name](*map(as_tensor, args)))

    sum, max, reshape = map(staticmethod, (Array.sum, Array.max, Array.reshape))


def by_body(record, *inputs):
    """The record's result, computed by its operator's body as `Op.evaluate` calls it."""
    op, dtypes = record.op, {x.spec.dtype for x in inputs if isinstance(x, Tensor)}
    if not (dtypes <= FLOATS or (op.integral and all(d.kind in "iu" for d in dtypes))):
        return None  # for whole numbers NumPy has rules of its own
    wide = promote(op.name, [getattr(x, "spec", x) for x in inputs]) if op.promoted else None
    wide = float32.numpy if (wide or min(dtypes, key=str)) in HALVES else wide
    try:
        arrays = [as_array(x if wide is None else as_dtype(x, wide)) for x in inputs]
        results = op.body(Operators(), *arrays, **record.attrs)
    except CannotDecompose:
        return None
    if isinstance(results, tuple):
        return tuple(as_dtype(y.tensor, s.dtype) for y, s in zip(results, record.shape))
    return as_dtype(results.tensor, record.dtype)


def as_dtype(x, dtype):
    """x in a dtype; a Python number as it is."""
    return x.astype(dtype) if isinstance(x, Tensor) and x.spec.dtype != dtype else x


RULES: Rules = {}
"""Rules for operators whose body asks for values; `minipaddle.passes` adds some."""


@program_pass(
    "decompose", looks_for=["composites"], decompose_from=(0, "operators of fewer bytes stay whole")
)
def decompose(program: Program, *, decompose_from: int) -> Program:
    """The program with composite operators, and those of `RULES`, as small operators."""

    def large_enough(record, *inputs):
        specs = [s for r in (record, *record.inputs) if r.op is not NUMBER for s in specs_of(r)]
        if any(isinstance(n, int) and n == 0 for s in specs for n in s.shape):
            return None  # an empty array has no maximum
        if decompose_from and max(s.nbytes for s in specs) < decompose_from:
            return None
        return RULES.get(record.op, by_body)(record, *inputs)

    composite = [op for op in OPS.values() if op.composite]
    return rewritten(program, dict.fromkeys([*composite, *RULES], large_enough))
