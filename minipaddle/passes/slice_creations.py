"""Values that depend on their place alone are created where they are needed.

    slice(f(arange(n), …))   →   f(arange(of the slice), …)

A rank that trains on some rows of a batch needs these rows of a dropout mask. The numbers of a mask
depend on the generator and their place, so a rank draws its own rows and no others.
"""

from __future__ import annotations

from ..engine.core.dispatch import current
from ..engine.core.record import Record
from ..engine.ir.program import NUMBER, Program
from ..engine.ops.creation import arange, full
from ..engine.ops.movement import broadcast_to, reshape, slice_
from ..engine.ops.slices import find_places
from ..engine.passes.registry import program_pass
from ..engine.passes.rewriting import made_by, rewritten

Bounds = list[tuple[int, int]]
"""For each axis the first row, and the one after the last."""


def bounds_of(shape: tuple, index: tuple) -> Bounds | None:
    """The rows that a slice keeps of each axis; None if they are no range."""
    bounds = [(0, n) for n in shape]
    for d, k in enumerate(index):
        if type(k) is not tuple or k[2] not in (None, 1) or not isinstance(shape[d], int):
            return None
        bounds[d] = find_places(k, shape[d])[:2]
    return bounds if all(isinstance(n, int) and a < b for n, (a, b) in zip(shape, bounds)) else None


def bounds_of_input(record: Record, x: Record, bounds: Bounds) -> Bounds | None:
    """The rows of an input that a record with these bounds takes; None if they are no range."""
    if x.op is NUMBER:
        return []
    if record.op is reshape:
        (rows, (a, b)), *others = zip(record.shape, bounds)
        if len(x.shape) != 1 or any(each != (0, n) for n, each in others):
            return None
        width = x.spec.size // rows
        return [(a * width, b * width)]
    own = bounds[len(bounds) - len(x.shape) :]
    return [(0, 1) if n == 1 else each for n, each in zip(x.shape, own)]


def depends_on_place(record: Record, bounds: Bounds | None) -> bool:
    """Whether elements are computed from their place and from single numbers, and for the slice
    alone.
    """
    if bounds is None or record.op is NUMBER or record.spec.size == 1:
        return bounds is not None
    if current.top.builder.uses(record) > 1:
        return False
    if record.op is arange:
        return all(isinstance(record.attrs[key], int) for key in ("start", "step"))
    through = record.op.kind == "elementwise" or record.op in (reshape, broadcast_to)
    return record.op is full or (
        through
        and all(depends_on_place(x, bounds_of_input(record, x, bounds)) for x in record.inputs)
    )


def create(record: Record, bounds: Bounds):
    """The elements of a record within the bounds."""
    shape = tuple(b - a for a, b in bounds)
    if record.op is NUMBER or record.spec.size == 1:
        return current.top.builder.tensor(record)
    attrs = dict(record.attrs)
    if record.op is arange:
        attrs |= {"size": shape[0], "start": attrs["start"] + bounds[0][0] * attrs["step"]}
    elif "shape" in attrs:
        attrs["shape"] = shape
    inputs = [create(x, bounds_of_input(record, x, bounds)) for x in record.inputs]
    return record.op(*inputs, **attrs)


def of_slice(record: Record, x):
    """The creation of the slice alone."""
    source, bounds = made_by(x), bounds_of(x.spec.shape, record.attrs["index"])
    if source is None or not depends_on_place(source, bounds):
        return None
    return create(source, bounds)


@program_pass("slice_creations", looks_for=[slice_])
def slice_creations(program: Program) -> Program:
    """The program in which slices of created values are created in their size."""
    return rewritten(program, {slice_: of_slice})
