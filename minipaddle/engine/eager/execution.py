"""The eager interpreter: it computes at once, and saves values for derivatives on the tape."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from numpy import generic, ndarray

from ..core.dim import Dim
from ..core.dispatch import OUT, Interpreter, current
from ..core.dtype import float32, float64
from ..core.errors import caller, runtime_error, type_error, value_error
from ..core.op import EVERYTHING, NOTHING
from ..core.record import Record, Spec, last_write, tick
from ..core.spec import scalar_dtype
from ..ir.program import item_of
from .convert import as_array, own_array
from .device import NUMPY, QUIET, current_place, module_of
from .tape import attach, get_leaf
from .tensor import Tensor, new, wrap


class Packed(NamedTuple):
    """A saved array as a hook packed it, and the hook that unpacks it into a tensor."""

    held: object
    unpack: Callable


class Eager(Interpreter):
    """Computes with the module of the arrays; writes a record if an input wants a gradient."""

    def __init__(self):
        self.recording = True
        self.quietly = QUIET.copy().run  # a context can be entered by one thread at a time

    def apply(self, op, inputs, attrs):
        # The hot path: one loop, no calls that a small operator would feel.
        arrays, edges, a, dtype, mask, bit, recording = [], [], None, None, 0, 1, self.recording
        for x in inputs:
            if type(x) is Tensor or isinstance(x, Tensor):
                a = x.array
                own = a.dtype
                if own is not dtype:
                    dtype = own if dtype is None else MIXED
                arrays.append(a)
                if x.stop_gradient or not recording:
                    edges.append(None)
                else:
                    edges.append(x.record or get_leaf(x))
                    mask |= bit
            else:
                if type(x) not in SCALARS:
                    x, dtype = as_operand(op, x), MIXED
                arrays.append(x)
                edges.append(None)
            bit += bit
        m = NUMPY if type(a) is ndarray else common_module(op, arrays)
        try:
            large = op.large and (type(first := arrays[0]) is not ndarray or first.size >= op.least)
            if large and (y := op.large(arrays, attrs)) is not None:
                pass
            elif op.direct and (dtype is FLOAT32 or dtype is FLOAT64):
                if attrs or bit > 4:
                    y = self.quietly(op.body, m, *arrays, **attrs)
                elif bit == 4:  # two inputs: a list in a call costs a twentieth of it all
                    y = self.quietly(op.body, m, arrays[0], arrays[1])
                else:
                    y = self.quietly(op.body, m, arrays[0])
            else:
                y = self.quietly(op.evaluate, m, arrays, attrs)
        except Exception as error:
            if not is_nested(error):
                raise op.explain(error, inputs, attrs) from error
            y = op.evaluate(m, arrays, attrs)
        to_save = op.saves[mask] if mask else None
        if type(y) is not ndarray:
            if type(y) is tuple:
                return self.wrap_results(op, edges, arrays, attrs, to_save, y)
            y = m.asarray(y)
        out = new(Tensor)
        out.array = y
        if to_save:
            saved = None if to_save is NOTHING else save(to_save, arrays, y, self.pack)
            out.stop_gradient = False
            out.record = record = new(Record)  # by hand: calling the class costs twice as much
            record.op, record.inputs, record.attrs, record.saved = op, edges, attrs, saved
            record.shape, record.dtype, record.scope = y.shape, y.dtype, self.scope
            record.time, record.hooks, record.source = tick(), None, None
            record.where = caller() if self.lines else None
        return out

    def wrap_results(self, op, edges, arrays, attrs, to_save, y):
        """Tensors for several results: one record for all, and one `item` of it for each."""
        outs = tuple(map(wrap, y))
        if to_save:
            specs, saved = tuple(out.spec for out in outs), save(to_save, arrays, y, self.pack)
            record = Record(op, edges, attrs, specs, None, saved, self.scope)
            if self.lines:
                record.where = caller()
            attach(record, outs)
        return outs

    def read(self, record, k):
        value = record.saved[k]
        kind = type(value)
        if kind is Packed:
            value = value.unpack(value.held).array
        elif kind in NUMBERS:
            return value
        elif kind is tuple:
            return tuple(
                [self.revive(record, k, a, item_of(record, i, None)) for i, a in enumerate(value)]
            )
        return self.revive(record, k, value, record if k == OUT else record.inputs[k])

    def revive(self, record, k, array, edge):
        """A saved array as a tensor again; it has its past if derivatives are recorded."""
        if last_write(array) > record.time:
            raise overwritten_error(record, k)
        out = new(Tensor)
        out.array = array
        if self.recording and edge is not None:
            out.record, out.stop_gradient = edge, False
        return out

    def full(self, spec, value, like):
        return wrap(module_of(like.array).full(spec.shape, value, dtype=spec.dtype))

    def fetch_array(self, x):
        """The array that a tensor has outside of a trace."""
        return x.array

    def waiting(self, x):
        """`.grad` of a cleared tensor: zeros."""
        return self.full(x._grad.spec, 0, x)

    def constant(self, data, dtype=None, place=None):
        return wrap(self.quietly(own_array, data, dtype, place))


SCALARS = (float, int, bool)
NUMBERS = (*SCALARS, Dim)
MIXED = object()
FLOAT32, FLOAT64 = float32.numpy, float64.numpy


def as_operand(op, x):
    """An operand that is no tensor: a NumPy scalar becomes Python's, anything else an array."""
    if isinstance(x, generic):
        return x.item()
    if isinstance(x, list | tuple) and any(isinstance(each, Tensor) for each in x):
        raise type_error(
            f"{op.name} of a tensor and a {type(x).__name__} of tensors",
            expected="tensors and numbers",
            hint="paddle.stack(items), paddle.concat(items)",
        )
    try:
        return as_array(x)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{op.name}: {error}") from None


def is_nested(error: Exception) -> bool:
    """Whether an operator was applied in the body of another: NumPy is quiet there already."""
    return type(error) is RuntimeError and "cannot enter context" in str(error)


def save(to_save, arrays, y, pack) -> dict:
    """The values that derivative rules ask for; `to_save` is an entry of `Op.saves`."""
    if to_save is EVERYTHING:
        return {**dict(enumerate(arrays)), OUT: y}
    values, keep_out, specs = to_save
    saved = {OUT: y} if keep_out else {}
    for k in values:
        saved[k] = arrays[k]
    for k in specs:
        a = arrays[k]
        scalar = type(a) in NUMBERS
        saved["spec", k] = Spec((), scalar_dtype(a)) if scalar else Spec(a.shape, a.dtype)
    return saved if pack is None else pack(saved)


def common_module(op, arrays):
    """The one array module all arrays belong to."""
    modules = {module_of(a) for a in arrays if type(a) not in SCALARS}
    if not modules:
        return current_place().module
    if len(modules) > 1:
        places = ", ".join(sorted(m.name for m in modules))
        raise value_error(
            f"{op.name} was given tensors of different devices ({places})",
            hint='move one with x.to("gpu") or x.cpu()',
        )
    return modules.pop()


def overwritten_error(record, k) -> Exception:
    names = record.op.inputs
    which = "its result" if k == OUT else f"its input {names[min(k, len(names) - 1)]!r}"
    return runtime_error(
        f"backward through {record.op.name}: {which} was overwritten in place afterwards",
        hint="use the out-of-place form (y = x + 1 instead of x.add_(1)), or clone() first",
        where=record.where,
    )


current.install(Eager)
