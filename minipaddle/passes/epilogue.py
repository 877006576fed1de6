"""Epilogues: operators on the rows of a matrix product or a convolution join its group.

The kernel of a product passes on finished rows while they are still in cache: a bias, an
activation, a residual sum, a softmax or a norm along the row need no further pass over memory. The
group must read the product's rows whole and in order, each element at the index of its result, and
nothing else may use them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from weakref import WeakKeyDictionary

from ..engine.core.op import OPS
from ..engine.core.record import Record
from ..engine.ir.control import fused
from ..engine.ir.edit import count_uses, in_branches, outline, substitute, with_records
from ..engine.ir.program import ITEM, Program
from ..engine.ops.movement import ravel, reshape
from ..engine.passes.fusion_groups import skip_reshapes
from ..engine.passes.nest import Nest, NotOneNest
from ..engine.passes.registry import program_pass
from ..ops.channels_last import conv_last, conv_last_integer


def begins_with_product(record: Record) -> bool:
    """Whether a record is a group that begins with a product."""
    return record.op is fused and record.attrs["region"].records[0].op.by_rows


def last_product(region: Program) -> tuple[Record, list[Record]]:
    """The last product of a group, and the records after it."""
    at = max(k for k, r in enumerate(region.records) if r.op.by_rows)
    return region.records[at], region.records[at + 1 :]


class Room(NamedTuple):
    """Where a group with an epilogue writes: its last product where result `product` lies, or into
    memory of its own if that is None (such a result has the product's dtype and cannot lie over an
    input); each of the other results over an input, where `pairs` (result, input) allow it.
    """

    product: int | None
    pairs: list[tuple[int, Record]]
    row_by_row: bool = True  # whether the epilogue reads the product's rows whole and in order


ROOMS: WeakKeyDictionary[Program, Room] = WeakKeyDictionary()


def room_of(region: Program) -> Room:
    """The room of a group with an epilogue, computed once for a region."""
    if region not in ROOMS:
        first, rest = last_product(region)
        ROOMS[region] = find_room(first, rest, region.outputs, first.shape[-1])
    return ROOMS[region]


def find_room(first: Record, rest: list, outputs: list, length: int) -> Room:
    """The room of a product of rows of this `length` and the records after it."""
    if not rest:  # the product is the result
        return Room(0, [])
    nest = Nest(rest, outputs)
    pairs = nest.in_place()
    elsewhere = {k for k, x in pairs if x is not first}
    same = {k for k, r in enumerate(outputs) if r.dtype == first.dtype}
    k = next((k for k, x in pairs if x is first and k in same - elsewhere), None)
    others = [(j, x) for j, x in pairs if x is not first]
    return Room(k, others, reads_rows(nest, first, length))


def in_place(record: Record) -> list[tuple[int, Record]]:
    """(result, input) pairs of a group where the result may be written over the input."""
    return room_of(record.attrs["region"]).pairs


class Region:
    """A group, or a single record, as a region; `pairs` are its inputs and those of the region."""

    def __init__(self, record: Record):
        self.record = record
        if record.op is fused:
            inputs, self.program = record.inputs, record.attrs["region"]
        else:
            inputs, self.program = outline([record], [record])
        self.pairs = list(zip(inputs, self.program.inputs, strict=True))
        self.given = dict(self.pairs)


def source_of(x: Record) -> Record | None:
    """The product that a value is, reshapes aside."""
    x = skip_reshapes(x)
    return x if x.op.by_rows else None


def reads_rows(nest: Nest, x: Record, length: int) -> bool:
    """Whether a nest, which is merged, reads x in rows of `length` elements."""
    flat = ravel(nest.axes, nest.shape)
    own = [n.index for *_, n in nest.reading() if nest.loaded_input(n) is x]
    in_order = all(i == flat for i in own)
    return in_order and nest.size == x.spec.size and fits(nest.merged(), length)


def fits(nest: Nest, length: int) -> bool:
    """Whether the innermost loop is a row, or the only loop goes over whole rows."""
    loops = nest.loops
    if not loops:
        return False
    if nest.reduces:
        return nest.reduction_loops == loops[-1:] and loops[-1].extent == length
    return len(loops) == 1 or loops[-1].extent == length


def build_group(region: Region, x: Record, source: Record) -> Record:
    """The group that begins with the product, or the whole group, that computes x."""
    before, old, taken = Region(source), region.program, region.given[x]
    (result,) = before.program.outputs
    new, records = {taken: result}, [*before.program.records]
    if x.shape != result.shape:
        seen = Record(reshape, [result], {"shape": x.shape}, *x.spec)
        new[taken] = seen
        records.append(seen)
    records += [substitute(r, new) for r in old.records]
    pairs = [*before.pairs, *(pair for pair in region.pairs if pair[0] is not x)]
    outer, inner = [a for a, _ in pairs], [b for _, b in pairs]
    program = Program("group", inner, [], records, [new.get(r, r) for r in old.outputs])
    specs = tuple(r.spec for r in old.outputs)
    return region.record.derive(fused, outer, {"region": program}, specs, 0)


@program_pass(
    "epilogue",
    looks_for=[op for op in OPS.values() if op.by_rows],
    fuse_gemm_epilogue=(True, "what is done to the rows of a matrix product is done in its kernel"),
    fuse_resunit=(True, "what is done to the pixels of a convolution is done in its kernel"),
)
def epilogue(program: Program, *, fuse_gemm_epilogue: bool, fuse_resunit: bool) -> Program:
    """The program in which products and convolutions join the groups that use their rows."""

    def join(record, alone):
        if record.op is not fused and record.op.kind != "elementwise":
            return None
        for x in dict.fromkeys(record.inputs):
            source = source_of(x)
            if source is None or source not in (x, *x.inputs[:1]) or not alone({x, source}):
                continue
            of_pixels = source.op in (conv_last, conv_last_integer)
            if not (fuse_resunit if of_pixels else fuse_gemm_epilogue):
                continue
            region = Region(record)
            rest, outputs = region.program.records, region.program.outputs
            try:
                room = find_room(region.given[x], rest, outputs, source.shape[-1])
            except NotOneNest:
                continue
            if room.row_by_row:
                group = build_group(region, x, source)
                ROOMS[group.attrs["region"]] = room
                return group, {x, source}
        return None

    return join_groups(program, join)


def join_groups(program: Program, join: Callable) -> Program:
    """The program, and its branches and loops, with larger groups. `join(record, alone)` returns a
    group that computes a record, and the records that are in it from now on, or None; these must be
    used `alone` there.
    """
    program = in_branches(program, lambda region: join_groups(region, join))
    count, here = count_uses(program), set(program.records)
    gone: set[Record] = set()
    instead: dict[Record, Record] = {}

    def alone(records) -> bool:
        return here.issuperset(records) and all(count[r] == 1 and r not in instead for r in records)

    for record in program.records:
        joined = join(record, alone)
        if joined is not None:
            instead[record], inside = joined
            gone |= inside
    return replace_records(program, instead, gone) if instead else program


def replace_records(program: Program, instead: dict, gone: set) -> Program:
    """The program with the records of `instead`, and without those that are `gone`."""
    new: dict[Record, Record] = {}
    records: list[Record] = []
    for r in program.records:
        if r in gone:
            continue
        own = instead.get(r, r)
        now = substitute(own, new)
        records.append(now)
        if own is not r and r.op is not fused:  # a group has a tuple of results
            now = r.derive(ITEM, [now], {"k": 0}, r.spec, 1)
            records.append(now)
        if now is not r:
            new[r] = now
    return with_records(program, records, new)
