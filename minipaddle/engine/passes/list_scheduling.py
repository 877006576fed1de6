"""List scheduling: an order of a program's records with a low peak of live memory.

Of the records whose inputs are known, the one that frees most memory comes next. A record is judged
together with the records that wait for it alone, up to the point at which least memory is live.
Runs that free memory come first, the one with the lowest peak before the others; then runs that
cost memory, first the one that rises highest above its end (Liu 1987: this order is optimal for
trees). The program keeps its order unless the new one has a lower peak.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush

from ..core.record import Record
from ..core.slots import slot
from ..ir.cut import has_effect
from ..ir.program import Program, open_sizes
from .lifetimes import GIVEN, align, roots, specs_of, values_of
from .memory import elementwise_inplace, live, no_workspace
from .registry import program_pass

AHEAD = 6
"""The number of records that are judged together."""


class ScheduleInput:
    """A program as numbers: the values that each record reads and makes, and its predecessors."""

    def __init__(self, program: Program, workspace, inplace):
        self.program, self.records = program, program.records
        self.number = {r: k for k, r in enumerate(self.records)}
        self.root = root = roots(program)
        elsewhere = {root[r] for r in program.results}  # most are made in their buffers
        self.sizes: list[int] = []
        self.makes: list[list[int]] = []
        self.reads: list[list[int]] = []
        self.takes: list[list[tuple[int, int]]] = []  # (value made, value it may overwrite)
        numbers: dict = {}
        for record in self.records:
            values = values_of(record, root)
            results = [*range(len(self.sizes), len(self.sizes) + len(values))]
            numbers.update(zip(values, results))
            for value, spec in zip(values, specs_of(record)):
                self.sizes.append(0 if value in elsewhere else align(spec.nbytes))
            read = [numbers.get(root.get(r)) for r in record.inputs if values]
            pairs = [(results[k], read[j]) for k, j in (inplace(record) if values else ())]
            pairs = [pair for pair in pairs if pair[1] is not None]
            self.makes.append(results)
            self.reads.append(list({v for v in read if v is not None}))
            self.takes.append(pairs)
        self.extra = [workspace(r) for r in self.records]
        self.readers = invert_lists(self.reads, len(self.sizes))
        self.before = self.dependencies(root)
        self.after = invert_lists(self.before, len(self.records))

    def dependencies(self, root) -> list[set[int]]:
        """For each record the numbers of those that must be before it.

        Effects keep their order. Records that read a state's old value stay before the record
        that makes the new one, so that the update can be written into the state.
        """
        number = self.number
        before = [{number[r] for r in record.inputs if r in number} for record in self.records]
        effects = [k for k, r in enumerate(self.records) if has_effect(r)]
        for a, b in itertools.pairwise(effects):
            before[b].add(a)
        makers = {}
        for state in self.program.states:
            source = None if state.update is None else root[state.update][0]
            if source in number:
                makers[state.record] = number[source]
        for k, record in enumerate(self.records):
            for r in record.inputs:
                maker = makers.get(root[r][0] if r.dtype is not None else r, GIVEN)
                if k < maker:
                    before[maker].add(k)
        return before

    def count_overwritten(self, k: int, dying: Sequence[int]) -> int:
        """The bytes of results that are written over inputs read for the last time."""
        pairs, sizes = self.takes[k], self.sizes
        if not pairs or not dying:
            return 0
        written, total = set(), 0
        free = set(dying)
        for new, old in pairs:
            if new not in written and old in free and sizes[new] in (0, sizes[old]):
                written.add(new)
                free.discard(old)
                total += sizes[new]
        return total


def invert_lists(lists: Sequence, count: int) -> list[list[int]]:
    """For each of `count` numbers the places of the lists that hold it."""
    places: list[list[int]] = [[] for _ in range(count)]
    for k, numbers in enumerate(lists):
        for n in numbers:
            places[n].append(k)
    return places


@slot("schedule.order")
def order(work: ScheduleInput) -> list[int]:
    """The numbers of all records, each after its predecessors."""
    unread = [len(readers) for readers in work.readers]  # how many records still read each value
    waits = [len(before) for before in work.before]  # for how many records each one still waits
    ready = [(priority(work, k, unread, waits), k) for k, n in enumerate(waits) if not n]
    heapify(ready)
    done: dict[int, None] = {}
    while ready:
        _, k = heappop(ready)
        if k in done:
            continue
        done[k] = None
        affected = {*work.after[k]}
        for v in work.reads[k]:
            unread[v] -= 1
            if unread[v] == 1:  # its last reader frees it
                affected.update(work.readers[v])
        for j in work.after[k]:
            waits[j] -= 1
        for j in affected:
            if not waits[j] and j not in done:
                heappush(ready, (priority(work, j, unread, waits), j))
    return [*done]


def priority(work: ScheduleInput, k: int, unread: list[int], waits: list[int]) -> tuple:
    """The key of a record that is ready: the one with the smallest key comes next."""
    now = hill = valley = top = 0
    read: dict[int, int] = {}
    met: dict[int, int] = {}
    for _ in range(AHEAD):
        dying, following = [], []
        for v in work.reads[k]:
            read[v] = n = read.get(v, 0) + 1
            if n == unread[v]:
                dying.append(v)
        size = sum([work.sizes[v] for v in work.makes[k]])
        top = max(top, now + size - work.count_overwritten(k, dying) + work.extra[k])
        now += size - sum([work.sizes[v] for v in dying])
        if not hill or now < valley:
            hill, valley = top or 1, now
        for j in work.after[k]:
            met[j] = n = met.get(j, 0) + 1
            if n == waits[j]:
                following.append(j)
        if len(following) != 1:
            break
        (k,) = following
    return (0, hill) if valley <= 0 else (1, valley - hill)


@program_pass(
    "schedule",
    looks_for=["linked records"],
    sequential_run=(False, "records stay in the order of the program"),
)
def schedule(
    program: Program,
    workspace: Callable[[Record], int] = no_workspace,
    inplace: Callable[[Record], list[tuple[int, int]]] = elementwise_inplace,
    *,
    sequential_run: bool,
) -> Program:
    """The program in an order with a lower peak of live bytes, if one is found.

    Programs with open sizes stay as they are, and so do regions.

    >>> from minipaddle.ir.parser import parse
    >>> from minipaddle.engine.passes.list_scheduling import schedule
    >>> program = parse('''program p(x: float32[64]) {
    ...   v1 = tanh(x) : float32[64]
    ...   v2 = exp(x) : float32[64]
    ...   v3 = sum(v1, axis=(0,), keepdim=False) : float32[]
    ...   v4 = sum(v2, axis=(0,), keepdim=False) : float32[]
    ...   v5 = add(v3, v4) : float32[]
    ...   return v5
    ... }''')
    >>> print(*(record.op.name for record in schedule(program).records))
    tanh sum exp sum add
    """
    if sequential_run or len(program.records) < 3 or open_sizes(program):
        return program  # nothing lies between two records
    work = ScheduleInput(program, workspace, inplace)
    other = replace(program, records=[program.records[k] for k in order(work)])
    if other.records == program.records:
        return program
    how = workspace, inplace, work.root
    return other if live(other, *how) < live(program, *how) else program
