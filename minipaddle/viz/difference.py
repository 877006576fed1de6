"""Two programs compared: the records of the first that are gone, and those that are new."""

from collections import defaultdict
from collections.abc import Iterator

from ..engine.core.record import Record
from ..engine.ir.control import fused
from ..engine.ir.program import ITEM, Program, everywhere
from .flat_program import FlatProgram
from .parts import Edge, Legend, Node
from .program import ProgramView, draw_program, names_in, program_of
from .records import is_same, sources_of
from .style import GREY, count


def difference(before, after, *, title: str = ""):
    """A program after a pass, compared with the program before it.

    What is not there any more is dashed, what is new is green, what stayed is grey and, where it is
    far from any change, left out. A record stayed if it is in the second program too, or another
    that was made from it and differs in its inputs alone; or if it stands in a group now. Takes
    what `viz.program` takes.

    >>> from minipaddle import viz
    >>> from minipaddle.ir.parser import parse
    >>> twice = parse("program p(x: float32[2]) { v1 = add(x, x) : float32[2] return v1 }")
    >>> square = parse("program p(x: float32[2]) { v1 = multiply(x, x) : float32[2] return v1 }")
    >>> print(viz.difference(twice, square).text)
    1 record gone, 1 new
    - v1 = add(x, x) : float32[2]
    + v1 = multiply(x, x) : float32[2]
    """
    change = Difference(program_of(before), program_of(after))
    return draw_program(change.parts(title), title, None, change.after)


def find_computing(program: Program) -> list[Record]:
    """All records, those of regions too; groups themselves compute nothing."""
    grouped = (r for r in everywhere(program) if r.op is not fused)
    return [r for r in grouped if r.op is not ITEM or r.inputs[0].op is not fused]


def match(before: Program, after: Program) -> dict[Record, Record]:
    """The records of `before` that stayed, and each one's counterpart in `after`: itself, or with
    other inputs a record that comes from it, or from a record that both come from.
    """
    old, new = find_computing(before), find_computing(after)
    stayed = {r: r for r in set(old) & set(new)}
    stayed |= dict(zip(before.given, after.given))
    kin: dict[Record, list[Record]] = defaultdict(list)
    for r in old:
        for source in sources_of(r) if r not in stayed else ():
            kin[source].append(r)
    for r in (r for r in new if r not in stayed):
        near = (x for source in sources_of(r) for x in kin.get(source, ()))
        same = next((x for x in near if x not in stayed and is_same(r, x)), None)
        if same is not None:
            stayed[same] = r
    return stayed


KINDS = ("elementwise", "movement", "reduction", "opaque", "merge", "output")
"""The roles of computed records."""


class Difference:
    """The second program, and in it the records of the first one that are gone."""

    far = 0
    """How many records are left out, since nothing changed near them."""

    def __init__(self, before: Program, after: Program):
        self.before, self.after = before, after
        self.stayed = match(before, after)
        kept = set(self.stayed.values())
        self.gone = [r for r in find_computing(before) if r not in self.stayed]
        self.new = [r for r in find_computing(after) if r not in kept]
        names = names_in(before) | names_in(after)
        self.view = ProgramView(after, self.flatten(), after.outputs, names=names)

    def flatten(self) -> FlatProgram:
        """The second program; removed records are in the frames that are still there."""
        regrouped = count_groups(self.before) != count_groups(self.after)
        flat, old = FlatProgram(self.after, groups=regrouped), FlatProgram(self.before)
        paths = (path[:k] for path in flat.paths.values() for k in range(len(path) + 1))
        places = {tuple(map(str, path)): path for path in paths}
        for r in (r for r in self.gone if r in old.paths):  # not in a picture: an item unread
            words = tuple(map(str, old.paths[r]))
            ways = (words[:k] for k in range(len(words), -1, -1))
            flat.put(r, next((places[way] for way in ways if way in places), ()), r)
        gone = set(self.gone)
        for flow in old.flows:
            ends = [self.find_now(r, old, gone) for r in (flow.source, flow.target)]
            if None not in ends and not gone.isdisjoint(ends):
                flat.flows.append(Edge(*ends, flow.tip, {"style": "dashed"}))
        if not regrouped:
            self.leave_out_what_is_far(flat)
        return flat

    def find_now(self, record: Record, old: FlatProgram, gone: set) -> Record | None:
        """The record that represents a record of the first program, or None."""
        state = old.states.get(record)
        return record if record in gone else self.stayed.get(state.record if state else record)

    def leave_out_what_is_far(self, flat: FlatProgram) -> None:
        """Only changes and their neighbours stay."""
        changed = {*self.gone, *self.new}
        pairs = [(f.source, f.target) for f in flat.flows]
        near = changed | {x for pair in pairs if not changed.isdisjoint(pair) for x in pair}
        self.far = sum(r not in near for r in flat.records)
        flat.records = [r for r in flat.records if r in near]
        flat.flows = [f for f in flat.flows if f.source in near and f.target in near]

    # ---- the picture's text ------------------------------------------------------------------

    def parts(self, title: str) -> Iterator:
        gone, new = set(self.gone), set(self.new)
        for part in self.view.parts():
            if isinstance(part, Node) and part.key in gone:
                yield part._replace(role="removed", attrs=part.attrs | DASHED)
            elif isinstance(part, Node) and part.role in KINDS:
                yield part._replace(role="new" if part.key in new else "kept")
            elif not isinstance(part, Legend):
                yield part
        far = f"; {self.far} far from that are as they were" if self.far else ""
        yield Legend(self.summary() + far, tuple(self.view.cells()), self.text(title))

    def summary(self) -> str:
        groups = [count_groups(p) for p in (self.before, self.after)]
        text = f"{count(len(self.gone), 'record')} gone, {len(self.new)} new"
        return text if groups[0] == groups[1] else f"{text}, {count(groups[1], 'group')}"

    def text(self, title: str) -> str:
        lines = [f"{title}: {self.summary()}" if title else self.summary()]
        for sign, records in (("-", self.gone), ("+", self.new)):
            lines += [f"{sign} {self.view.tip(r).splitlines()[0]}" for r in records]
        return "\n".join(lines)


DASHED = {"style": "dashed", "fontcolor": GREY}


def count_groups(program: Program) -> int:
    return sum(r.op is fused for r in program.records)
