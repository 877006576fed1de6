"""Fusion: records that one loop nest can compute become one group, a `fused` record with a region.

Memory traffic is the bill: a value that stays inside a group is never stored. Two groups are joined
where one makes what the other uses, or both read the same large value, if the records of both are
one `Nest` (which refuses to compute anything twice) and no third group must run between them.
"""

from __future__ import annotations

import itertools
from heapq import heapify, heappop, heappush

from ..core.op import Op
from ..core.record import Record
from ..core.slots import slot
from ..ir.control import fused
from ..ir.cut import has_effect
from ..ir.edit import in_branches, substitute, with_records
from ..ir.program import INPUT, ITEM, NUMBER, Program
from ..ops import activation
from ..ops.elementwise import add, multiply
from ..ops.movement import WHOLE, reshape, slice_, split, unstack
from ..ops.special import sigmoid, tanh
from .late import put_off
from .nest import Nest, NotOneNest, fusable
from .registry import program_pass
from .specialise import open_sizes

MOST = 160
"""Records of a group at most: a loop body that long has spilt its registers long since."""


ACTIVATIONS = {sigmoid, tanh} | {
    op for op in vars(activation).values()
    if isinstance(op, Op) and op.body.__module__ == activation.__name__
}  # fmt: skip


def seen(x: Record) -> Record:
    """What a value is, reshapes set aside."""
    while x.op is reshape:
        x = x.inputs[0]
    return x


def of_channels(x: Record) -> bool:
    """Is it one value for each channel, the same along all other axes?"""
    return x.dtype is not None and sum(n != 1 for n in x.shape) <= 1


def normalized(x: Record) -> bool:
    """Is it x·f + t with a factor and a term for each channel, as batch norm ends?"""
    return x.op is add and any(
        seen(y).op is multiply and of_channels(t) and any(map(of_channels, seen(y).inputs))
        for y, t in (x.inputs, x.inputs[::-1])
    )


APART = {
    "fuse_elewise_add_act_ops": lambda x, user: (
        user.op in ACTIVATIONS and x.op is add and not normalized(x)
    ),
    "fuse_bn_act_ops": lambda x, user: user.op in ACTIVATIONS and normalized(x),
    "fuse_bn_add_act_ops": lambda x, user: user.op is add and normalized(x),
}
"""What each toggle of the pass, if it is off, keeps out of one group: a value and who uses it."""


class Forms:
    """What records look like, their names set aside: equal forms make equal nests."""

    def __init__(self):
        self.numbers: dict[tuple, int] = {}
        self.kinds: dict[Record, int] = {}

    def number(self, *key) -> int:
        """The same number below 0 for the same key."""
        return self.numbers.setdefault(key, -len(self.numbers) - 1)

    def of(self, records, outputs) -> tuple:
        """Each record and where its inputs come from, then what is needed outside."""
        form, places, kinds = [], {}, self.kinds
        for r in records:
            for x in r.inputs:
                if x not in places:  # from outside
                    places[x] = len(places)
                    form.append(self.number(x.op is NUMBER, x.dtype, x.shape))
                form.append(places[x])
            places[r] = len(places)
            if r not in kinds:
                kinds[r] = self.number(r.op, r.dtype, r.shape, *r.attrs.items())
            form.append(kinds[r])
        return *form, *map(places.get, outputs)


class Group:
    """Records that are computed together."""

    __slots__ = ("at", "first", "open", "records", "rows", "size")

    def __init__(self, records, first: int, open: bool):
        self.records, self.first, self.open = records, first, open
        self.at = first  # its place in the line
        folds = [r for r in records if r.op.kind == "reduction"]
        whole = [r.inputs[0] if r.op.kind == "reduction" else r for r in records] if open else []
        self.size = max((r.spec.size for r in whole), default=0)  # elements of its loops
        self.rows = {r.spec.size for r in folds}  # and of its rows

    def matches(self, other: Group) -> bool:
        """May both be one nest, as far as their sizes say?"""
        small, large = sorted((self, other), key=lambda g: g.size)
        return small.size == large.size or small.size in large.rows


class Fusion:
    """The groups of a program."""

    def __init__(self, program: Program, apart=()):
        self.program, self.apart = program, apart
        self.order = {r: k for k, r in enumerate(program.records)}
        self.users: dict[Record, list[Record]] = {}
        for record in program.records:
            for x in dict.fromkeys(record.inputs):
                self.users.setdefault(x, []).append(record)
        self.needed = set(program.results)
        effects = [r for r in program.records if has_effect(r)]
        self.before = {b: a for a, b in itertools.pairwise(effects)}  # effects keep their order
        self.of = {r: Group([r], k, fusable(r)) for r, k in self.order.items()}
        self.line: list[Group | None] = [*self.of.values()]  # each after those it uses
        self.forms, self.loops = Forms(), {}

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
        """Make one group of two, if that is right."""
        if a is b or not (a.open and b.open) or len(a.records) + len(b.records) > MOST:
            return
        if not a.matches(b):
            return
        a, b = (a, b) if a.first < b.first else (b, a)
        records = sorted([*a.records, *b.records], key=self.order.get)
        if self.kept_apart(a, b) or not pays(self, records) or self.between(a, b):
            return
        group = Group(records, a.first, True)
        self.line_up(group, *sorted((a, b), key=lambda g: g.at))
        for r in records:
            self.of[r] = group

    def move(self, moved: set[Record], here: Group, there: Group) -> None:
        """Let a later group compute what it alone uses, if that is right."""
        less = [r for r in here.records if r not in moved]
        more = sorted([*moved, *there.records], key=self.order.get)
        if not less or len(more) > MOST or self.kept_apart(there, here):
            return
        if pays(self, less) and pays(self, more):
            for old, records in ((here, less), (there, more)):
                new = Group(records, old.first, True)
                new.at = old.at
                self.line[old.at] = new
                self.of.update(dict.fromkeys(records, new))

    def line_up(self, group: Group, a: Group, b: Group) -> None:
        """Put what a and b became into the line between what b uses and what uses a."""
        start, stop = a.at, b.at + 1
        used = self.ways(a, b)
        rest = [g for g in self.line[start:stop] if g and g not in used and g is not a]
        ahead = sorted(used - {b}, key=lambda g: g.at)
        now = [*ahead, group, *rest]
        self.line[start:stop] = now + [None] * (stop - start - len(now))
        for k, g in enumerate(now, start):
            g.at = k

    def kept_apart(self, a: Group, b: Group) -> bool:
        """Shall a value of one not be in a group with who uses it in the other?"""
        for user, made in ((a, b), (b, a)) if self.apart else ():
            for r in user.records:
                values = [x for x in map(seen, r.inputs) if self.of.get(x) is made]
                if any(rule(x, r) for rule in self.apart for x in values):
                    return True
        return False

    @slot("fusion.between")
    def between(self, a: Group, b: Group) -> bool:
        """Does a third group use one of the two and make something for the other?"""
        return self.ways(*sorted((a, b), key=lambda g: g.at)) is None

    def ways(self, a: Group, b: Group) -> set[Group] | None:
        """b and the groups after a in the line that lead to b; None if a leads to one of these."""
        todo, found = [b], {b}
        while todo:
            group = todo.pop()
            for r in group.records:
                for x in self.sources(r):
                    before = self.of.get(x)
                    if before is None or before.at < a.at or before in found:
                        continue
                    if before is not a:
                        found.add(before)
                        todo.append(before)
                    elif group is not b:
                        return None
        return found

    def sources(self, record: Record) -> list[Record]:
        """What must be there before a record: its inputs, and before an effect the one before."""
        return [*record.inputs, self.before[record]] if record in self.before else record.inputs

    @slot("fusion.outputs")
    def outputs(self, records) -> list[Record]:
        """What a group makes for others."""
        inside = set(records)
        return [
            r
            for r in records
            if r in self.needed or any(u not in inside for u in self.users.get(r, ()))
        ]

    def is_loop(self, records) -> bool:
        """Can one nest compute these records? (The next layer's, or round's, look like them.)"""
        outputs = self.outputs(records)
        form = self.forms.of(records, outputs)
        if form not in self.loops:
            try:
                Nest(records, outputs)
                self.loops[form] = True
            except NotOneNest:
                self.loops[form] = False
        return self.loops[form]

    # ---- the program -------------------------------------------------------------------------

    def program_of_groups(self) -> Program:
        old, new = self.program, {}
        records: list[Record] = []
        for group in self.sorted():
            if group.open and not self.outputs(group.records):
                continue  # nobody needs it
            if len(group.records) == 1:
                records.append(substitute(group.records[0], new))
            else:
                records += self.written(group, new)
        return with_records(old, records, new)

    def sorted(self) -> list[Group]:
        """The groups, each after those it uses; otherwise in the order of the program."""
        groups = dict.fromkeys(self.of.values())
        waiting, followers = {}, {g: set() for g in groups}
        for g in groups:
            sources = {x for r in g.records for x in self.sources(r)}
            before = {self.of[x] for x in sources if x in self.of} - {g}
            waiting[g] = len(before)
            for p in before:
                followers[p].add(g)
        ready = [(g.first, k, g) for k, g in enumerate(groups) if not waiting[g]]
        heapify(ready)
        found, count = [], len(ready)
        while ready:
            _, _, g = heappop(ready)
            found.append(g)
            for f in followers[g]:
                waiting[f] -= 1
                if not waiting[f]:
                    count += 1
                    heappush(ready, (f.first, len(groups) + count, f))
        return found

    def written(self, group: Group, new: dict) -> list[Record]:
        """The `fused` record of a group, and its results; views of them stay outside."""
        outputs, views = self.without_views(group)
        if not outputs:
            return [substitute(v, new) for v in views]
        inside = set(group.records) - set(views)
        if len(inside) == 1:  # it has a kernel of its own
            return [substitute(r, new) for r in (*inside, *views)]
        outer = dict.fromkeys(
            x
            for r in group.records
            if r in inside
            for x in r.inputs
            if x not in inside and x.op is not NUMBER
        )
        given = {x: Record(INPUT, (), {"name": name_of(x)}, *x.spec) for x in outer}
        local = dict(given)
        kept = [substitute(r, local) for r in group.records if r in inside]
        region = Program("group", [*given.values()], [], kept, [local.get(r, r) for r in outputs])
        specs = tuple(r.spec for r in outputs)
        inputs = [new.get(x, x) for x in outer]
        whole = group.records[-1].derive(fused, inputs, {"region": region}, specs, 0)
        for k, r in enumerate(outputs):
            new[r] = r.derive(ITEM, [whole], {"k": k}, r.spec, 1)
        return [whole, *map(new.get, outputs), *(substitute(v, new) for v in views)]

    def without_views(self, group: Group) -> tuple[list, list]:
        """The results of a group, and the reshapes at its end that are only looks at them."""
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


def name_of(record: Record) -> str:
    return record.attrs.get("name", "") if record.op is INPUT else ""


@slot("fusion.pays")
def pays(fusion: Fusion, records: list[Record]) -> bool:
    """Shall these records be one group? If one nest can compute them without doing work twice."""
    return fusion.is_loop(records)


def sliced(program: Program) -> Program:
    """The program with a slice for each piece of a `split` or an `unstack`."""
    new: dict[Record, Record] = {}
    records = []
    for r in program.records:
        if r.op is ITEM and r.inputs[0].op in (split, unstack):
            whole, axis, k = r.inputs[0], r.inputs[0].attrs["axis"], r.attrs["k"]
            start = sum(whole.attrs["sizes"][:k]) if whole.op is split else 0
            piece = (start, start + r.shape[axis], 1) if whole.op is split else k
            index = (*WHOLE[:axis], piece)
            x = new.get(whole.inputs[0], whole.inputs[0])
            new[r] = r.derive(slice_, [x], {"index": index}, r.spec, r.saved)
            records.append(new[r])
        elif r.op not in (split, unstack):
            records.append(substitute(r, new))
    return with_records(program, records, new)


def grouped(program: Program, apart=()) -> Program:
    """The program, its branches and loops too, with groups, but those of `apart` that no group may
    hold together.
    """
    program = in_branches(program, lambda region: grouped(region, apart))
    fusion = Fusion(sliced(program), apart)
    fusion.join_all()
    put_off(fusion)
    return fusion.program_of_groups()


@program_pass(
    "fusion",
    enable_auto_fusion=(True, "off, each record is a loop of its own"),
    fuse_elewise_add_act_ops=(True, "an activation is in one group with the addition before it"),
    fuse_bn_act_ops=(
        True,
        "an activation is in one group with the scale and shift of a batch norm",
    ),
    fuse_bn_add_act_ops=(
        True,
        "an addition is in one group with the scale and shift of a batch norm",
    ),
)
def fuse(
    program: Program,
    *,
    enable_auto_fusion: bool,
    fuse_elewise_add_act_ops: bool,
    fuse_bn_act_ops: bool,
    fuse_bn_add_act_ops: bool,
) -> Program:
    """The program with groups in the place of what one loop nest can compute."""
    if not enable_auto_fusion or open_sizes(program):  # loops are of numbers
        return program
    on = fuse_elewise_add_act_ops, fuse_bn_act_ops, fuse_bn_add_act_ops
    return grouped(program, [rule for rule, use in zip(APART.values(), on) if not use])
