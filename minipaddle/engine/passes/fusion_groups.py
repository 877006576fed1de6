"""Groups of records that one loop nest computes, and how they grow.

Two groups are joined where one makes what the other uses, or both read the same large value, if
the records of both are one `Nest` (which refuses to compute anything twice) and no third group
must run between them. The groups are kept in a topological order, so that question is a search
among the groups between the two.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from graphlib import TopologicalSorter
from heapq import heappop, heappush
from math import prod

from ..core.record import Record
from ..core.slots import slot
from ..ir.control import fused
from ..ir.cut import has_effect
from ..ir.edit import outline, substitute, users_of, with_records
from ..ir.program import ITEM, Program
from ..ops.movement import reshape
from .nest import Nest, NotOneNest, fusable

MOST = 160
"""The most records of a group: the body of a longer loop does not fit into registers anyway."""


def skip_reshapes(x: Record) -> Record:
    """The value that `x` is a reshape of; `x` itself otherwise."""
    while x.op is reshape:
        x = x.inputs[0]
    return x


class Group:
    """Records that one loop nest computes; `position` is its place in the topological order."""

    __slots__ = ("first", "open", "position", "records", "rows", "size")

    def __init__(self, records, first: int, open: bool):
        self.records, self.first, self.open = records, first, open
        self.position = first
        reductions = [r for r in records if r.op.kind == "reduction"]
        whole = [r.inputs[0] if r.op.kind == "reduction" else r for r in records] if open else []
        self.size = max([prod(r.shape) for r in whole], default=0)  # elements of its loops
        self.rows = {prod(r.shape) for r in reductions}

    def matches(self, other: Group) -> bool:
        """Whether the sizes of both allow that they are one nest."""
        small, large = sorted((self, other), key=lambda g: g.size)
        return small.size == large.size or small.size in large.rows


def is_nest(records, outputs) -> bool:
    """Whether records are one loop nest, whose `outputs` others need."""
    try:
        return bool(Nest(records, outputs))
    except NotOneNest:
        return False


RECOGNIZERS: list[Callable] = [lambda: is_nest]
"""The last one makes, for a program, what says whether records are one nest. `minipaddle.passes`
adds one that asks once for layers that look alike."""


class Fusion:
    """The groups of a program."""

    def __init__(self, program: Program, apart=()):
        self.program, self.apart = program, apart
        self.order = {r: k for k, r in enumerate(program.records)}
        self.users = users_of(program)
        self.needed = set(program.results)
        early = lambda r: r.attrs.get("early") or ()
        effects = itertools.pairwise(sorted(filter(has_effect, program.records), key=early))
        self.sources = {r: r.inputs for r in program.records}  # what runs before; effects in order
        self.sources |= {b: [*b.inputs, a] for a, b in effects if bool(early(a)) is bool(early(b))}
        self.of = {r: Group([r], k, fusable(r)) for r, k in self.order.items()}
        self.topological: list[Group | None] = [*self.sorted()]  # each after those it uses
        self.computes = RECOGNIZERS[-1]()

    # ---- joining -----------------------------------------------------------------------------

    def join_all(self) -> None:
        for record in self.program.records:
            for x in sorted(dict.fromkeys(record.inputs), key=lambda r: -self.order.get(r, -1)):
                if x in self.of:
                    self.join(self.of[x], self.of[record])
        for x in [*self.program.given, *self.program.records]:
            users = self.users.get(x, ())
            for a, b in itertools.pairwise(users):
                self.join(self.of[a], self.of[b])

    def join(self, a: Group, b: Group) -> None:
        """Make one group of two if one nest may compute both, and nothing must run between them."""
        if a is b or not (a.open and b.open) or len(a.records) + len(b.records) > MOST:
            return
        a, b = (a, b) if a.first < b.first else (b, a)
        records = sorted([*a.records, *b.records], key=self.order.get)
        apart = not a.matches(b) or self.must_stay_apart(a, b) or not profitable(self, records)
        if apart or self.has_path_through(a, b):
            return
        group = Group(records, a.first, True)
        self.place_joined(group, *sorted((a, b), key=lambda g: g.position))
        for r in records:
            self.of[r] = group

    def move(self, moved: set[Record], here: Group, there: Group) -> None:
        """Move records to the group that alone uses them, if both groups stay one nest each."""
        less = [r for r in here.records if r not in moved]
        more = sorted([*moved, *there.records], key=self.order.get)
        if not less or len(more) > MOST or self.must_stay_apart(there, here):
            return
        if profitable(self, less) and profitable(self, more):
            for old, records in ((here, less), (there, more)):
                new = Group(records, old.first, True)
                new.position = old.position
                self.topological[old.position] = new
                self.of.update(dict.fromkeys(records, new))

    def place_joined(self, group: Group, a: Group, b: Group) -> None:
        """Put the group that a and b became after all that b uses, before all that uses a."""
        start, used = a.position, self.paths(a, b) - {b}
        before = sorted(used, key=lambda g: g.position)
        stop = [a, *before][-1].position + 1  # what comes later stays
        rest = [g for g in self.topological[start + 1 : stop] if g and g not in used]
        self.topological[b.position] = None
        now = [*before, group, *rest]
        self.topological[start:stop] = now + [None] * (stop - start - len(now))
        for k, g in enumerate(now, start):
            g.position = k

    def must_stay_apart(self, a: Group, b: Group) -> bool:
        """Whether a switch keeps a value of one group apart from its user in the other."""
        for user, maker in ((a, b), (b, a)) if self.apart else ():
            for r in user.records:
                values = [x for x in map(skip_reshapes, r.inputs) if self.of.get(x) is maker]
                if any(rule(x, r) for rule in self.apart for x in values):
                    return True
        return False

    @slot("fusion.has_path_through")
    def has_path_through(self, a: Group, b: Group) -> bool:
        """Whether a third group must run between the two: one leads to the other through it."""
        return self.paths(*sorted((a, b), key=lambda g: g.position)) is None

    def paths(self, a: Group, b: Group) -> set[Group] | None:
        """b and the groups after a in the order that lead to b; None if a leads to one of these."""
        todo, groups = [b], {b}
        while todo:
            group = todo.pop()
            for r in group.records:
                for x in self.sources[r]:
                    before = self.of.get(x)
                    if before is None or before.position < a.position or before in groups:
                        continue
                    if before is not a:
                        groups.add(before)
                        todo.append(before)
                    elif group is not b:
                        return None
        return groups

    @slot("fusion.outputs")
    def outputs(self, records) -> list[Record]:
        """The records of a group that others need."""
        inside = set(records)
        return [
            r for r in records if r in self.needed or not inside.issuperset(self.users.get(r, ()))
        ]

    def is_loop(self, records) -> bool:
        """Whether one nest can compute these records."""
        return self.computes(records, self.outputs(records))

    # ---- the program -------------------------------------------------------------------------

    def program_of_groups(self) -> Program:
        old, new = self.program, {}
        records: list[Record] = []
        for group in self.sorted():
            if group.open and not self.outputs(group.records):
                continue
            if len(group.records) == 1:
                records.append(substitute(group.records[0], new))
            else:
                records += self.fuse_group(group, new)
        return with_records(old, records, new)

    def sorted(self) -> list[Group]:
        """The groups, each after those it uses; otherwise in the order of the program."""
        uses = {
            g: {self.of[x] for r in g.records for x in self.sources[r] if x in self.of} - {g}
            for g in self.of.values()
        }
        waiting, ready, ordered = TopologicalSorter(uses), [], []
        waiting.prepare()
        while waiting.is_active():
            for g in waiting.get_ready():
                heappush(ready, (g.first, g))
            _, g = heappop(ready)
            waiting.done(g)
            g.position = len(ordered)
            ordered.append(g)
        return ordered

    def fuse_group(self, group: Group, new: dict) -> list[Record]:
        """The `fused` record of a group, and its results; views of these stay outside."""
        outputs, views = self.without_views(group)
        if not outputs:
            return [substitute(v, new) for v in views]
        inside = [r for r in group.records if r not in views]
        if len(inside) == 1:  # a record has a kernel of its own
            return [substitute(r, new) for r in (*inside, *views)]
        outside, region = outline(inside, outputs)
        inputs, specs = [new.get(x, x) for x in outside], tuple(r.spec for r in outputs)
        whole = group.records[-1].derive(fused, inputs, {"region": region}, specs, 0)
        for k, r in enumerate(outputs):
            new[r] = r.derive(ITEM, [whole], {"k": k}, r.spec, 1)
        return [whole, *map(new.get, outputs), *(substitute(v, new) for v in views)]

    def without_views(self, group: Group) -> tuple[list, list]:
        """The results of a group, and the reshapes at its end, which are views of them."""
        inside, views = set(group.records), []
        outputs = self.outputs(group.records)
        for r in reversed(group.records):
            used = any(u in inside and u not in views for u in self.users.get(r, ()))
            if r.op is reshape and r in outputs and not used:
                views.append(r)
                outputs.remove(r)
                if r.inputs[0] in inside and r.inputs[0] not in outputs:
                    outputs.append(r.inputs[0])
        return sorted(outputs, key=self.order.get), views[::-1]


@slot("fusion.profitable")
def profitable(fusion: Fusion, records: list[Record]) -> bool:
    """Whether these records may be one group: one nest computes them, and nothing twice."""
    return fusion.is_loop(records)
