"""The gradient of a value that was sliced becomes a concatenation, instead of a sum.

Each slice sends back its cotangent among zeros (`unslice`), and the gradient is the sum of these.
Where the slices lie side by side along one axis, nothing has to be added: their cotangents are
concatenated, with zeros where no slice was. (What would have been -0 + 0 stays -0.)
"""

from __future__ import annotations

from itertools import pairwise

from ..engine.core.dim import Dim
from ..engine.core.dispatch import current
from ..engine.core.record import Record
from ..engine.ir.edit import count_uses
from ..engine.ir.program import Program, everywhere
from ..engine.ops.creation import full
from ..engine.ops.elementwise import add
from ..engine.ops.movement import concat, replace_axis, reshape, unslice
from ..engine.ops.slices import find_places
from ..engine.passes.registry import program_pass
from ..engine.passes.rewriting import rewritten
from .transpose_rules import of_all_axes


def places_of(k, n) -> tuple[int, int, int] | None:
    """(start, stop, step) of a slice of n places; None where they are not known."""
    if type(k) is not tuple or not isinstance(n, int) or any(isinstance(v, Dim) for v in k):
        return None
    return find_places(k, n)


@program_pass("concat_of_slices", looks_for=[unslice])
def concat_of_slices(program: Program) -> Program:
    """The program with a `concat` for each sum of slices among zeros."""
    inner = inner_additions(program)

    def join(record, *inputs):
        slices = None if record in inner else side_by_side(leaves(record, inner))
        return None if slices is None else concat(*slices_and_zeros(*slices), axis=slices[0])

    return rewritten(program, {add: join})


def inner_additions(program: Program) -> set[Record]:
    """The additions whose result is used by one other addition alone."""
    used = count_uses(program)
    additions = [r for r in everywhere(program) if r.op is add]
    return {
        r for whole in additions for r in whole.inputs
        if r.op is add and used[r] == 1 and r.spec == whole.spec
    }  # fmt: skip


def leaves(record: Record, inner: set) -> list[Record]:
    """The terms of a tree of additions."""
    terms, todo = [], [*reversed(record.inputs)]
    while todo:  # a sum over the steps of a loop is as deep as it is long
        r = todo.pop()
        if r in inner:
            todo += reversed(r.inputs)
        else:
            terms.append(r)
    return terms


def tensor(record: Record):
    """The value of a record in the program that is being built, as a tensor."""
    return current.top.builder.tensor(current.top.builder.now.get(record, record))


def side_by_side(parts: list[Record]) -> tuple[int, list] | None:
    """(axis, [(start, stop, part)]) for slices of one axis that do not overlap, in order."""
    if any(r.op is not unslice or None in r.attrs["index"] for r in parts):
        return None
    shape = parts[0].shape
    indices = [of_all_axes(r.attrs["index"], len(shape)) for r in parts]
    cut = {
        d for index in indices for d, k in enumerate(index) if extent(k, shape[d]) != (0, shape[d])
    }
    spans = [extent(index[d], shape[d]) for index in indices for d in cut]
    if len(cut) != 1 or None in spans or any(r.spec != parts[0].spec for r in parts):
        return None
    ordered = sorted(zip(spans, parts), key=lambda each: each[0])
    if any(a[0][1] > b[0][0] for a, b in pairwise(ordered)):
        return None
    return cut.pop(), [(*span, part) for span, part in ordered]


def extent(k, n) -> tuple[int, int] | None:
    """The first of n elements that an index takes, and the one after the last; None if it has a
    step, or if that is not known.
    """
    if isinstance(k, int) and isinstance(n, int):
        return k % n, k % n + 1
    start, stop, step = places_of(k, n) or (0, 0, 0)
    return (start, stop) if step == 1 and start < stop else None


def slices_and_zeros(axis: int, parts: list) -> list:
    """The slices as tensors, with zeros in between."""
    shape, dtype, end, out = parts[0][2].shape, parts[0][2].dtype, 0, []

    def zeros(n: int):
        if n:
            out.append(full(shape=replace_axis(shape, axis, n), value=0, dtype=dtype))

    for start, stop, part in parts:
        zeros(start - end)
        out.append(reshape(tensor(part.inputs[0]), shape=replace_axis(shape, axis, stop - start)))
        end = stop
    zeros(shape[axis] - end)
    return out
