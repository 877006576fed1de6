"""Eager mode with tensors in pieces: one operator at a time, by the same rules as a program.

The first array in pieces of a thread puts `ShardedEager` in charge there. Tape, hooks and backward
are those of eager mode: what is saved, and every gradient, is an array in pieces.
"""

from __future__ import annotations

from types import NoneType
from zlib import crc32

from ..engine.core.dispatch import current
from ..engine.core.errors import value_error
from ..engine.core.op import NOTHING
from ..engine.core.rank import Cause
from ..engine.core.record import Record, Spec
from ..engine.eager.device import NUMPY
from ..engine.eager.execution import SCALARS, Eager, as_operand, save
from ..engine.eager.tape import get_leaf
from ..engine.eager.tensor import Tensor, wrap
from ..engine.passes.decompose import RULES, by_body
from ..engine.sharding.array import ShardedArray, whole_array, wrap_piece
from ..engine.sharding.letters import rule_of
from ..engine.sharding.pieces import MeshView, apply_to_pieces
from ..engine.sharding.placements import Placement, ProcessMesh, combine_terms


def take_charge() -> None:
    """Let this thread's eager interpreter take arrays in pieces."""
    if type(current.top) is Eager:
        current.top.__class__ = ShardedEager


class ShardedEager(Eager):
    """Computes on shards if an input is sharded; then the others are replicated."""

    def apply(self, op, inputs, attrs):
        for x in inputs:
            if type(getattr(x, "array", None)) is ShardedArray:
                break
        else:  # the hot path of plain code, which takes no longer than before
            return Eager.apply(self, op, inputs, attrs)
        arrays = [x.array for x in inputs if isinstance(x, Tensor)]
        views = {a.view.mesh: a.view for a in arrays if type(a) is ShardedArray}
        if len(views) > 1:
            meshes = " and ".join(map(str, views))
            raise value_error(f"{op.name} of tensors on different meshes: {meshes}")
        (view,) = views.values()
        inputs = [
            x if isinstance(x, (Tensor, *SCALARS)) else wrap(as_operand(op, x)) for x in inputs
        ]
        args = [whole_array(x.array, view) if isinstance(x, Tensor) else x for x in inputs]
        specs = [Spec(a.shape, a.dtype) if type(a) is ShardedArray else a for a in args]
        before, self.recording = self.recording, False
        cause = cause_of(op, inputs, args, specs, attrs)
        try:
            with cause:
                outputs = compute(op, args, attrs, specs, op.result_spec(specs, attrs), view)
        except Exception as error:
            raise op.explain(error, inputs, attrs) from error
        finally:
            self.recording = before
        for array in outputs if type(outputs) is tuple else (outputs,):
            array.cause = cause
        return self.put_on_tape(op, inputs, args, attrs, outputs)

    def put_on_tape(self, op, inputs, args, attrs, found):
        """Tensors around the results, with a record if a gradient is wanted."""
        edges, mask = [], 0
        for k, x in enumerate(inputs):
            flows = self.recording and isinstance(x, Tensor) and not x.stop_gradient
            edges.append((x.record or get_leaf(x)) if flows else None)
            mask |= flows << k
        to_save = op.saves[mask] if mask else None
        if type(found) is tuple:
            return self.wrap_results(op, edges, args, attrs, to_save, found)
        out = wrap(found)
        if to_save:
            saved = None if to_save is NOTHING else save(to_save, args, found, self.pack)
            out.record = Record(op, edges, attrs, found.shape, found.dtype, saved, self.scope)
            out.stop_gradient = False
        return out


def cause_of(op, inputs, args, specs, attrs) -> Cause:
    """The cause of what an operator makes, and of the moves for it."""
    told, shown = [], []
    for x, a, spec in zip(inputs, args, specs):
        if type(a) is not ShardedArray:
            told.append(text_number(a))
            shown.append(a)
        else:
            told.append(a.cause.number)
            was_whole = x.array is not a
            shown.append(a.cause if was_whole else x.name if x.is_parameter else spec)
    if attrs and not op.effect:
        told.append(text_number(constant([*attrs.values()])))
    return Cause(hash((text_number(op.name), *told)), format_call, op.name, shown)


def text_number(value) -> int:
    """A hash of a value, by its text: the same in all processes."""
    return crc32(repr(value).encode())


def constant(value):
    """A value that has the same text in all ranks; of others their kind."""
    if isinstance(value, CONSTANTS):
        return value
    return [*map(constant, value)] if isinstance(value, tuple | list) else type(value).__name__


CONSTANTS = (bool, int, float, complex, str, NoneType, NUMPY.dtype, Placement, ProcessMesh)


def format_call(name: str, given: list) -> str:
    """An operator with its inputs and attributes, as text."""
    return f"{name}({', '.join(map(str, given))})"


def compute(op, args, attrs, specs, results, view: MeshView):
    """The arrays that an operator gives. One without a rule is computed by its body, if that is
    written in operators; else every rank computes all of it.
    """
    single = isinstance(results, Spec)
    if (op.composite or op in RULES) and rule_of(op, specs, attrs, [results]) is None:
        shape, dtype = results if single else (results, None)
        tensors = [wrap(a) if type(a) is ShardedArray else a for a in args]
        ys = RULES.get(op, by_body)(Record(op, (), attrs, shape, dtype), *tensors)
        if ys is not None:
            return ys.array if single else tuple(y.array for y in ys)
    pieces = [a.piece() if type(a) is ShardedArray else a for a in args]
    out = apply_to_pieces(op, pieces, attrs, results, view)
    for a, piece in zip(args, pieces):
        if type(a) is ShardedArray and a.placements != piece.placements == combine_terms(
            a.placements
        ):
            a.local, a.placements = piece.local.array, piece.placements  # once, for all to come
    return wrap_piece(out, view) if single else tuple(wrap_piece(each, view) for each in out)
