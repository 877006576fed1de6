"""A program: records in an order in which every value is defined before its uses.

A region (a branch of a `cond`, the body of a `while_loop`) is a program without states: all it uses
comes in by its inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..core.dim import UNSEEN, Dim
from ..core.op import Op
from ..core.record import Record


def input_(m):
    """A value that is given to the program."""


def number(m, *, value):
    """A Python number: beside a tensor it takes the tensor's dtype."""
    return value


def item(m, x, *, k):
    """Result number `k` of an operator that has several."""
    return x[k]


INPUT, NUMBER, ITEM = Op(input_), Op(number), Op(item)


def item_of(whole: Record, k: int, saved=1) -> Record:
    """Result `k` of a record of several results."""
    return whole.derive(ITEM, [whole], {"k": k}, whole.shape[k], saved)


@dataclass(eq=False)
class State:
    """What outlives a run: the value found before it, and the one left behind (None: unchanged).

    `cell` says where it is kept: it has `read()` and `write(array)`.
    """

    name: str
    record: Record
    update: Record | None = None
    cell: object = None


@dataclass(eq=False, repr=False)
class Program:
    """`records` compute `outputs` and the states' updates from `inputs` and states.

    `guards` are what it takes for granted of its unknown sizes: (left, sign, right, answer).
    """

    name: str = "program"
    inputs: list[Record] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    outputs: list[Record] = field(default_factory=list)
    guards: list[tuple] = field(default_factory=list)

    def __str__(self) -> str:
        from .printer import text

        return text(self)

    def __repr__(self) -> str:
        return f"<program {self.name} of {len(self.records)} records>"

    @property
    def results(self) -> list[Record]:
        """What must be computed: outputs, then updates."""
        return [*self.outputs, *(s.update for s in self.states if s.update is not None)]

    @property
    def given(self) -> list[Record]:
        """What is there before the first record."""
        return [*self.inputs, *(s.record for s in self.states)]


def regions(record: Record) -> dict[str, Program]:
    """The regions of a record, by the name of the attribute."""
    return {k: v for k, v in record.attrs.items() if isinstance(v, Program)}


def everywhere(program: Program) -> Iterator[Record]:
    """Every record of a program and of its regions, a region's before its owner."""
    for record in program.records:
        for region in regions(record).values():
            yield from everywhere(region)
        yield record


def binders(program: Program) -> set[Record]:
    """The records whose results are the first to show a size that their values decide."""
    found, known = set(), set()
    for record in program.records:
        shape = record.shape if record.dtype is not None else ()
        names = {n.text for n in shape if isinstance(n, Dim) and UNSEEN.match(n.text)} - known
        if names:
            known |= names
            found.add(record)
    return found
