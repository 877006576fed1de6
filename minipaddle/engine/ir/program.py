"""A program: records in an order in which every value is defined before its uses.

A region (a branch of a `cond`, the body of a `while_loop`) is a program without states: all it uses
comes in by its inputs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import attrgetter

from ..core.dim import UNSEEN, Dim, symbols
from ..core.op import Op
from ..core.record import Record, Spec


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
    """A value that outlives a run: `record` before the run, `update` after it (None: unchanged).

    `storage` says where it is kept: it has `read()` and `write(array)`.
    """

    name: str
    record: Record
    update: Record | None = None
    storage: object = None


OP, RECORD, UPDATE = map(attrgetter, ("op", "record", "update"))
SPEC = attrgetter("shape", "dtype")


@dataclass(eq=False, repr=False)
class Program:
    """`records` compute `outputs` and the states' updates from `inputs` and states.

    `guards` are what it assumes of its unknown sizes: (left, sign, right, answer). `gradient_of`
    has, for records that a backward computed, the record that it passed.
    """

    name: str = "program"
    inputs: list[Record] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    outputs: list[Record] = field(default_factory=list)
    guards: list[tuple] = field(default_factory=list)
    gradient_of: dict[Record, Record] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<program {self.name} of {len(self.records)} records>"

    @property
    def results(self) -> list[Record]:
        """The values to compute: outputs, then updates."""
        return [*self.outputs, *filter(None, map(UPDATE, self.states))]

    @property
    def given(self) -> list[Record]:
        """The values that exist before the first record: inputs and states."""
        return [*self.inputs, *map(RECORD, self.states)]


def regions(record: Record) -> dict[str, Program]:
    """The regions of a record, by the name of the attribute."""
    attrs = record.attrs
    has_regions = attrs and Program in map(type, attrs.values())
    return {k: v for k, v in attrs.items() if type(v) is Program} if has_regions else {}


def everywhere(program: Program) -> list[Record]:
    """Every record of a program and of its regions, a region's before its owner."""
    records = []
    for record in program.records:
        for region in regions(record).values() if record.op.kind == "control" else ():
            records += everywhere(region)
        records.append(record)
    return records


def open_sizes(program: Program) -> set[str]:
    """The sizes of a program that are no numbers. (u0, u1, … become known while it runs.)

    A program with open sizes cannot be compiled, only interpreted.
    """
    sizes: set[str] = set()
    for record in [*program.given, *everywhere(program)]:
        for spec in [record] if record.dtype is not None else record.shape:
            if Dim in map(type, spec.shape):
                sizes = sizes.union(*[symbols(n) for n in spec.shape if type(n) is Dim])
    return sizes


def new_sizes(spec: Spec, known: set[str]) -> tuple:
    """The axes whose size is a symbol that was not known before, as (axis, symbol)."""
    sizes = []
    for axis, n in enumerate(spec.shape):
        if isinstance(n, Dim) and n.text not in known and n.text in n.atoms:
            known.add(n.text)
            sizes.append((axis, n.text))
    return tuple(sizes)


def binders(program: Program) -> set[Record]:
    """The records whose results are the first to show a size that their values decide."""
    known: set[str] = set()
    plain = [record for record in program.records if record.dtype is not None]
    sized = [record for record in plain if Dim in map(type, record.shape)]
    sizes = {record: new_sizes(record.spec, known) for record in sized}
    return {record for record, new in sizes.items() if any(UNSEEN.match(n) for _, n in new)}
