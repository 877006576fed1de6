"""The eager interpreter: compute now, and note on the tape what a derivative will need."""

from __future__ import annotations

from numpy import generic, ndarray

from ..core.dim import Dim
from ..core.dispatch import OUT, Interpreter, current
from ..core.dtype import FLOATS, float32, float64
from ..core.errors import teach, type_error, user_frame, value_error
from ..core.op import NOTHING
from ..core.record import Record, Spec, tick, written_at
from ..core.spec import scalar_dtype
from ..ir.control import EVERYTHING
from ..ir.program import item_of
from .convert import as_array, own_array
from .device import NUMPY, QUIET, current_place, module_of
from .packing import PACKING, Packed, packed
from .tape import leaf_of
from .tensor import Tensor, new, wrap


class Eager(Interpreter):
    """Computes with the module the arrays belong to; records when an input wants a gradient."""

    lines = False  # note the user's line in every record? It costs a tenth of a small operator

    def __init__(self):
        self.recording = True
        self.quietly = QUIET.copy().run  # a context can be entered by one thread at a time

    def apply(self, op, inputs, attrs):
        # The hot path: one loop, no calls that a small operator would feel.
        arrays, edges, a, dtype, mask, bit = [], [], None, None, 0, 1
        for x in inputs:
            if type(x) is Tensor or isinstance(x, Tensor):
                a = x.array
                own = a.dtype
                if own is not dtype:
                    dtype = own if dtype is None else MIXED
                arrays.append(a)
                if x.stop_gradient:
                    edges.append(None)
                else:
                    edges.append(x.record or leaf_of(x))
                    mask |= bit
            else:
                if type(x) not in SCALARS:
                    x, dtype = operand(op, x), MIXED
                arrays.append(x)
                edges.append(None)
            bit += bit
        m = NUMPY if type(a) is ndarray else common_module(op, arrays)
        try:
            if op.direct and (dtype is FLOAT32 or dtype is FLOAT64):
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
        kept = op.kept[mask] if mask and self.recording else None
        if type(y) is not ndarray:
            if type(y) is tuple:
                return self.several(op, edges, arrays, attrs, kept, y)
            y = m.asarray(y)
        out = new(Tensor)
        out.array = y
        if kept:
            saved = None if kept is NOTHING else keep(kept, arrays, y)
            out.stop_gradient = False
            out.record = record = new(Record)  # by hand: calling the class costs twice as much
            record.op, record.inputs, record.attrs, record.saved = op, edges, attrs, saved
            record.shape, record.dtype, record.scope = y.shape, y.dtype, self.scope
            record.time, record.hooks = tick(), None
            record.where = caller() if self.lines else None
        return out

    def several(self, op, edges, arrays, attrs, kept, y):
        """A tuple of tensors: one record for the tuple, and one `item` for each that is taken."""
        outs = tuple(map(wrap, y))
        if kept:
            specs, saved = tuple(out.spec for out in outs), keep(kept, arrays, y)
            whole = Record(op, edges, attrs, specs, None, saved, self.scope)
            if self.lines:
                whole.where = caller()
            for k, out in enumerate(outs):
                if specs[k].dtype in FLOATS:
                    out.record, out.stop_gradient = item_of(whole, k, None), False
        return outs

    def read(self, record, k):
        value = record.saved[k]
        kind = type(value)
        if kind in NUMBERS:
            return value
        if kind is Packed:
            value = value.unpack(value.held).array
        if kind is tuple:
            return tuple(
                [self.revive(record, k, a, item_of(record, i, None)) for i, a in enumerate(value)]
            )
        return self.revive(record, k, value, record if k == OUT else record.inputs[k])

    def revive(self, record, k, array, edge):
        """A kept array as a tensor again, with its past if a tape is kept."""
        if written_at(array) > record.time:
            raise overwritten(record, k)
        out = wrap(array)
        if edge is not None and self.recording:
            out.record, out.stop_gradient = edge, False
        return out

    def full(self, spec, value, like):
        return wrap(module_of(like.array).full(spec.shape, value, dtype=spec.dtype))

    def waiting(self, x):
        """What `.grad` of a cleared tensor is."""
        return self.full(x._grad.spec, 0, x)

    def constant(self, data, dtype=None, place=None):
        return wrap(self.quietly(own_array, data, dtype, place))


SCALARS = (float, int, bool)
NUMBERS = (*SCALARS, Dim)
MIXED = object()
FLOAT32, FLOAT64 = float32.numpy, float64.numpy


def operand(op, x):
    """What is no tensor, beside one: NumPy's scalars count as Python's, the rest are arrays."""
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
    """Was an operator applied inside another's body? Then NumPy is quiet already."""
    return type(error) is RuntimeError and "cannot enter context" in str(error)


def keep(kept, arrays, y) -> dict:
    """What the derivative rules will ask for; `kept` is what `Op.kept` says of them."""
    if kept is EVERYTHING:
        return {**dict(enumerate(arrays)), OUT: y}
    values, keep_out, specs = kept
    saved = {OUT: y} if keep_out else {}
    for k in values:
        saved[k] = arrays[k]
    for k in specs:
        a = arrays[k]
        scalar = type(a) in NUMBERS
        saved["spec", k] = Spec((), scalar_dtype(a)) if scalar else Spec(a.shape, a.dtype)
    return packed(saved) if PACKING else saved


def caller() -> tuple:
    """The user's line that called an operator, as a record keeps it."""
    frame = user_frame(4)
    return frame.f_code, frame.f_lasti


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


def overwritten(record, k) -> Exception:
    which = (
        "its result"
        if k == OUT
        else f"its input {record.op.inputs[min(k, len(record.op.inputs) - 1)]!r}"
    )
    return RuntimeError(
        teach(
            f"backward through {record.op.name}: {which} was overwritten in place afterwards",
            hint="use the out-of-place form (y = x + 1 instead of x.add_(1)), or clone() first",
            where=record.where,
        )
    )


current.install(Eager)
