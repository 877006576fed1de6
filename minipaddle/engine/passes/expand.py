"""Operators taken apart: the body of softmax runs on promises, and leaves exp, sum, divide.

An operator is written once, by its body over the array module `m`. Here `m` is a module whose
functions are operators, and arrays are tensors that know NumPy's methods. So what is left can be
fused: a softmax is one pass over each row. A body that asks for values stays one operator.
"""

from __future__ import annotations

from math import prod

from ..core.dtype import FLOATS, HALVES, float32
from ..core.op import OPS
from ..core.spec import normalize_axes, promote
from ..eager.tensor import Tensor
from ..ir.program import NUMBER, Program
from ..ops import creation, linalg, movement, nn, reduction
from ..ops.elementwise import where
from .lifetimes import specs_of
from .registry import program_pass
from .rewriting import rewritten


class CannotExpand(Exception):
    """A body asked for what a promise cannot give."""


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
        return given(movement.transpose(self.tensor, perm=tuple(range(self.ndim))[::-1]))

    def reshape(self, *shape):
        shape = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
        known = prod(n for n in shape if n != -1)
        sizes = tuple(self.size // known if n == -1 else n for n in shape)
        return self if sizes == self.shape else given(movement.reshape(self.tensor, shape=sizes))

    def astype(self, dtype, copy=True):
        return given(self.tensor.astype(dtype))

    def sum(self, axis=None, keepdims=False):
        return self.folded(reduction.sum, axis, keepdims)

    def max(self, axis=None, keepdims=False):
        return self.folded(reduction.max, axis, keepdims)

    def folded(self, op, axis, keepdims):
        if axis == ():  # NumPy: over no axis at all
            return self
        axes = normalize_axes(axis, self.ndim)
        return given(op(self.tensor, axis=axes, keepdim=bool(keepdims)))

    def __getattr__(self, name: str):
        raise CannotExpand(name)


def operator(name: str, swapped: bool = False):
    def call(self, other):
        pair = (taken(other), self.tensor) if swapped else (self.tensor, taken(other))
        return given(OPS[name](*pair))

    return call


SIGNS = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "pow"}
for sign, name in SIGNS.items():
    setattr(Array, f"__{sign}__", operator(name))
    setattr(Array, f"__r{sign}__", operator(name, swapped=True))
Array.__neg__ = lambda self: given(OPS["neg"](self.tensor))


def given(x):
    return Array(x) if isinstance(x, Tensor) else x


def taken(x):
    return x.tensor if isinstance(x, Array) else x


class Operators:
    """The array module whose functions are operators."""

    name = "operators"

    def __getattr__(self, name: str):
        if name not in OPS:
            raise CannotExpand(name)
        return lambda *args: given(OPS[name](*map(taken, args)))

    def matmul(self, x, y):
        return given(linalg.matmul(taken(x), taken(y)))

    def reshape(self, x, shape):
        return x.reshape(shape)

    def sum(self, x, axis=None, keepdims=False):
        return x.sum(axis, keepdims)

    def max(self, x, axis=None, keepdims=False):
        return x.max(axis, keepdims)

    def multiply(self, x, y, dtype=None, out=None):
        return self.computed("multiply", x, y, dtype)

    def add(self, x, y, dtype=None, out=None):
        return self.computed("add", x, y, dtype)

    @staticmethod
    def computed(name: str, x, y, dtype):
        z = OPS[name](taken(x), taken(y))
        return given(z if dtype is None or z.spec.dtype == dtype else z.astype(dtype))

    def expand_dims(self, x, axes):
        shape = list(x.shape)
        for axis in sorted(axes):
            shape.insert(axis, 1)
        return x.reshape(shape)

    def einsum(self, rule, x, y):
        """Σ x·y: the only sums of products in bodies are over equal letters."""
        letters, kept = rule.split("->")
        left, right = letters.split(",")
        if left != right:
            raise CannotExpand(rule)
        axes = tuple(d for d, c in enumerate(left) if c not in kept)
        return (x * y).sum(axes) if axes else x * y


def by_body(record, *inputs):
    """What the body of the record's operator does, as `Op.evaluate` would call it."""
    floats = {x.spec.dtype for x in inputs if isinstance(x, Tensor)}
    if not floats <= FLOATS:
        return None  # whole numbers: NumPy has rules of its own for them
    op = record.op
    wide = promote(op.name, [getattr(x, "spec", x) for x in inputs]) if op.promoted else None
    wide = float32.numpy if (wide or min(floats, key=str)) in HALVES else wide
    try:
        arrays = [given(x if wide is None else as_dtype(x, wide)) for x in inputs]
        found = op.body(Operators(), *arrays, **record.attrs)
    except CannotExpand:
        return None
    if isinstance(found, tuple):
        return tuple(as_dtype(y.tensor, s.dtype) for y, s in zip(found, record.shape))
    return as_dtype(found.tensor, record.dtype)


def as_dtype(x, dtype):
    """x in a dtype; a Python number as it is."""
    return x.astype(dtype) if isinstance(x, Tensor) and x.spec.dtype != dtype else x


# ---- cross-entropy: its body reads and writes at places, which no promise has ------------------


def column(x):
    """A vector of values for rows, beside the rows."""
    return movement.reshape(x, shape=(*x.spec.shape, 1))


def shares(label, ignore_index: int, dtype, mean: str | None):
    """The weight of each label in the loss; see `ops.nn.shares`."""
    valid = (label != ignore_index).astype(dtype)
    if mean is None:
        return valid
    count = float(label.spec.size)
    if mean == "valid":
        every = tuple(range(label.spec.ndim))
        count = OPS["maximum"](reduction.sum(valid, axis=every, keepdim=False), 1)
    return valid / count


def cross_entropy(record, x, label):
    """log Σ eᶻ - z[label] with z = x - max x. Which label is no class, `pick` finds out."""
    ignore, mean = record.attrs["ignore_index"], record.attrs["mean"]
    if record.dtype in HALVES:
        return None
    last = (x.spec.ndim - 1,)
    top = reduction.max(x, axis=last, keepdim=True)
    total = reduction.sum(OPS["exp"](x - top), axis=last, keepdim=False)
    at_label = nn.pick(x, label, ignore_index=ignore) - movement.reshape(
        top, shape=label.spec.shape
    )
    loss = where(label != ignore, OPS["log"](total) - at_label, 0.0)
    if mean is None:
        return loss
    every = tuple(range(label.spec.ndim))
    if mean == "all":
        return reduction.sum(loss, axis=every, keepdim=False) / float(max(label.spec.size, 1))
    return reduction.sum(
        loss * shares(label, ignore, x.spec.dtype, mean), axis=every, keepdim=False
    )


def softmax_minus_label(record, x, label):
    """(softmax(x) - [class = label]) · share, in one pass over each row."""
    ignore, mean = record.attrs["ignore_index"], record.attrs["mean"]
    if record.dtype in HALVES:
        return None
    last = x.spec.ndim - 1
    e = OPS["exp"](x - reduction.max(x, axis=(last,), keepdim=True))
    p = e / reduction.sum(e, axis=(last,), keepdim=True)
    classes = creation.arange(size=x.spec.shape[last], dtype=label.spec.dtype)
    hit = (classes == column(label)).astype(x.spec.dtype)
    slope = (p - hit) * column(shares(label, ignore, x.spec.dtype, mean))
    return where(column(label != ignore), slope, 0.0)


def share(record, label):
    return shares(label, **record.attrs)


def mean_of_valid(record, loss, label):
    weight = shares(label, record.attrs["ignore_index"], record.dtype, "valid")
    every = tuple(range(label.spec.ndim))
    return reduction.sum(loss * weight, axis=every, keepdim=False)


RULES = {
    nn.cross_entropy: cross_entropy,
    nn.softmax_minus_label: softmax_minus_label,
    nn.share: share,
    nn.mean_of_valid: mean_of_valid,
}


@program_pass(
    "expand",
    expand_from=(0, "operators of less than so many bytes stay whole"),
)
def expand(program: Program, *, expand_from: int) -> Program:
    """The program with composite operators, and those of `RULES`, taken apart, unless they compute
    nothing, which has no maximum.
    """

    def checked(rule):
        return lambda record, *inputs: rule(record, *inputs) if worth(record) else None

    def worth(record):
        specs = [s for r in (record, *record.inputs) if r.op is not NUMBER for s in specs_of(r)]
        if any(type(n) is int and n == 0 for s in specs for n in s.shape):
            return False
        return not expand_from or max(s.nbytes for s in specs) >= expand_from

    bodies = {op: by_body for op in OPS.values() if op.composite}
    return rewritten(program, {op: checked(rule) for op, rule in (bodies | RULES).items()})
