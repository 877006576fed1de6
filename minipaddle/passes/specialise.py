"""Open sizes become numbers: a program is compiled for the sizes it is called with."""

from __future__ import annotations

from ..core.dim import Dim, symbols
from ..core.slots import slot
from ..eager.replay import with_sizes
from ..ir.interpreter import bound
from ..ir.program import Program, everywhere


@slot("passes.specialise")
def specialise(program: Program, *, sizes: dict[str, int] | None = None) -> Program:
    """The program for the given sizes: numbers by the names of its open sizes."""
    return with_sizes(program, sizes) if sizes else program


def sizes_of(program: Program, shapes) -> dict[str, int]:
    """The open sizes that a program has for inputs (and states) of these shapes, by name."""
    known: set[str] = set()
    return {
        name: shape[axis]
        for record, shape in zip(program.given, shapes)
        for axis, name in bound(record.spec, known)
    }


def open_sizes(program: Program) -> set[str]:
    """The sizes of a program that are no numbers; those that it finds out itself are u0, u1, ….

    A program that has any can not be compiled, only interpreted.
    """
    found: set[str] = set()
    for record in [*program.given, *everywhere(program)]:
        specs = [record.spec] if record.dtype is not None else record.shape
        for n in [n for spec in specs for n in spec.shape if isinstance(n, Dim)]:
            found |= symbols(n)
    return found
