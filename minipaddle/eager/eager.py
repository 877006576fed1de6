"""The eager interpreter: compute now, and note on the tape what a derivative will need."""

from __future__ import annotations

import sys

from numpy import ndarray

from ..core.dtype import float32, float64
from ..core.errors import teach
from ..core.interpreter import OUT, Interpreter, current
from ..core.record import Record, Spec, written_at
from .device import NUMPY, QUIET, current_place, module_of
from .tape import ITEM, leaf_of
from .tensor import Tensor, as_array, new, wrap


class Eager(Interpreter):
    """Computes with the module the arrays belong to; records when an input wants a gradient."""

    def __init__(self):
        self.recording = True
        self.quietly = QUIET.copy().run  # a context can be entered by one thread at a time

    def apply(self, op, inputs, attrs):
        arrays, dtype, mask, bit = [], None, 0, 1
        for x in inputs:
            if isinstance(x, Tensor):
                a = x.array
                if a.dtype is not dtype:
                    dtype = a.dtype if dtype is None else MIXED
                if not x.stop_gradient:
                    mask |= bit
                arrays.append(a)
            else:
                arrays.append(x if type(x) in SCALARS else as_array(x))
            bit += bit
        m = NUMPY if dtype and type(a) is ndarray else common_module(op, arrays)
        try:
            if op.direct and (dtype is FLOAT32 or dtype is FLOAT64):
                y = self.quietly(op.body, m, *arrays, **attrs)
            else:
                y = self.quietly(op.evaluate, m, arrays, attrs)
        except Exception as error:
            raise op.explain(error, inputs, attrs) from error
        if mask and self.recording:
            return self.record(op, inputs, arrays, attrs, mask, y)
        return wrap(y) if type(y) is not tuple else tuple(map(wrap, y))

    def record(self, op, inputs, arrays, attrs, mask, y):
        """Put the result on the tape: edges to where the inputs came from, and what was kept."""
        live, values, keep_out, specs = op.keeps(mask)
        if not live:
            return wrap(y) if type(y) is not tuple else tuple(map(wrap, y))
        edges = [None] * len(inputs)
        for k in live:
            edges[k] = inputs[k].record or leaf_of(inputs[k])
        saved = {}
        for k in values:
            saved[k] = arrays[k]
        for k in specs:
            saved["spec", k] = Spec(arrays[k].shape, arrays[k].dtype)
        if type(y) is tuple:
            return record_tuple(op, edges, attrs, saved, y, keep_out, self.scope)
        if type(y) is not ndarray:
            y = module_of(y).asarray(y)
        if keep_out:
            saved[OUT] = y
        out = new(Tensor)
        out.array = y
        out.stop_gradient = False
        out.record = Record(op, edges, attrs, y.shape, y.dtype, saved, self.scope)
        return out

    def read(self, record, k):
        value = record.saved[k]
        if type(value) in SCALARS:
            return value
        if written_at(value) > record.time:
            raise overwritten(record, k)
        out = wrap(value)
        edge = record if k == OUT else record.inputs[k]
        if edge is not None and self.recording:
            out.record, out.stop_gradient = edge, False
        return out

    def full(self, spec, value):
        m = current_place().module
        return wrap(m.full(spec.shape, value, dtype=spec.dtype))


SCALARS = (float, int, bool)
MIXED = object()
FLOAT32, FLOAT64 = float32.numpy, float64.numpy
getframe = sys._getframe


def record_tuple(op, edges, attrs, saved, y, keep_out, scope, where):
    """Several results: one record for the tuple, and one `item` record for each that is taken."""
    specs = tuple(Spec(a.shape, a.dtype) for a in y)
    if keep_out:
        saved[OUT] = y
    whole = Record(op, edges, attrs, specs, None, saved, scope, where)
    outs = []
    for k, a in enumerate(y):
        out = wrap(a)
        if a.dtype.kind not in "biu":
            out.stop_gradient = False
            out.record = Record(ITEM, [whole], {"k": k}, a.shape, a.dtype, {}, scope, where)
        outs.append(out)
    return tuple(outs)


def common_module(op, arrays):
    """The one array module all arrays belong to."""
    modules = {module_of(a) for a in arrays if type(a) not in SCALARS}
    if not modules:
        return current_place().module
    if len(modules) > 1:
        places = ", ".join(sorted(m.name for m in modules))
        raise ValueError(
            teach(
                f"{op.name} was given tensors of different devices ({places})",
                hint='move one with x.to("gpu") or x.cpu()',
            )
        )
    return modules.pop()


def overwritten(record, k) -> Exception:
    which = "its result" if k == OUT else f"its input {record.op.inputs[k]!r}"
    return RuntimeError(
        teach(
            f"backward through {record.op.name}: {which} was overwritten in place afterwards",
            hint="use the out-of-place form (y = x + 1 instead of x.add_(1)), or clone() first",
            where=record.where,
        )
    )


current.install(Eager)
