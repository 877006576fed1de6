"""Two programs compared: what of the first is not there any more, what of the second is new."""

from __future__ import annotations

from collections import defaultdict

from ..engine.core.record import Record
from ..engine.ir.control import fused
from ..engine.ir.program import ITEM, NUMBER, Program, everywhere
from .program import ProgramDrawing, names_in, program_of
from .records import spec_text
from .spread import Flow, Spread
from .style import GREY, count


def difference(before, after, *, title: str = ""):
    """A program after a pass, compared with what it was before.

    What is not there any more is dashed, what is new is green, what stayed is grey and, where it is
    far from any change, left out. A record stayed if one of the same operator, attributes, spec and
    line is found; so what has other inputs, or stands in a group now, stayed. Takes what
    `viz.program` takes.

    >>> from minipaddle import viz
    >>> from minipaddle.ir.parser import parse
    >>> twice = parse("program p(x: float32[2]) { v1 = add(x, x) : float32[2] return v1 }")
    >>> square = parse("program p(x: float32[2]) { v1 = multiply(x, x) : float32[2] return v1 }")
    >>> print(viz.difference(twice, square).text)
    1 record gone, 1 new
    - v1 = add(x, x) : float32[2]
    + v1 = multiply(x, x) : float32[2]
    """
    return Difference(program_of(before), program_of(after), title).draw(title)


def signature(record: Record) -> tuple:
    """What a record and its copy with other inputs have in common."""
    numbers = tuple(repr(x.attrs["value"]) for x in record.inputs if x.op is NUMBER)
    attrs = tuple((k, repr(v)) for k, v in record.attrs.items() if not isinstance(v, Program))
    return record.op, attrs, spec_text(record), numbers, record.where


def computing(program: Program) -> list[Record]:
    """All records, those of regions too; groups themselves compute nothing."""
    grouped = (r for r in everywhere(program) if r.op is not fused)
    return [r for r in grouped if r.op is not ITEM or r.inputs[0].op is not fused]


def matched(before: Program, after: Program) -> dict[Record, Record]:
    """The records of `before` that stayed, and each one's counterpart in `after`."""
    left: dict[tuple, list[Record]] = defaultdict(list)
    old, new = computing(before), computing(after)
    found = {r: r for r in set(old) & set(new)}
    found |= dict(zip(before.given, after.given))
    for r in new:
        if r not in found:
            left[signature(r)].append(r)
    for r in old:
        same = left.get(signature(r)) if r not in found else None
        if same:
            found[r] = same.pop(0)
    return found


KINDS = ("elementwise", "movement", "reduction", "opaque", "merge", "output")
"""The roles of what is computed."""


class Difference(ProgramDrawing):
    """The second program, with what is gone of the first one among it."""

    def __init__(self, before: Program, after: Program, title: str):
        self.before, self.title = before, title
        self.stayed = matched(before, after)
        kept = set(self.stayed.values())
        self.gone = [r for r in computing(before) if r not in self.stayed]
        self.new = [r for r in computing(after) if r not in kept]
        super().__init__(after, None, set(after.outputs), set())
        self.said = names_in(before) | self.said

    def spread_out(self, groups: bool) -> Spread:
        found, old = Spread(self.program), Spread(self.before)
        places = {path[:k]: path[:k] for path in found.paths.values() for k in range(len(path) + 1)}
        for r in self.gone:  # where it would stand: in the frames that are there
            path = old.paths[r]
            found.put(
                r, next(places[path[:k]] for k in range(len(path), -1, -1) if path[:k] in places), r
            )
        gone = set(self.gone)
        for flow in old.flows:
            ends = [self.now(r, old, gone) for r in (flow.source, flow.to)]
            if None not in ends and not gone.isdisjoint(ends):
                found.flows.append(Flow(*ends, flow.tip, {"style": "dashed"}))
        if count_of_groups(self.before) == count_of_groups(self.program):
            self.leave_out_what_is_far(found)
        return found

    def now(self, record: Record, old: Spread, gone: set) -> Record | None:
        """What stands for a record of the first program."""
        state = old.states.get(record)
        return record if record in gone else self.stayed.get(state.record if state else record)

    def leave_out_what_is_far(self, spread: Spread) -> None:
        """Only changes and their neighbours stay."""
        changed = {*self.gone, *self.new}
        pairs = [(f.source, f.to) for f in spread.flows]
        near = changed | {x for pair in pairs if not changed.isdisjoint(pair) for x in pair}
        self.far = len(spread.records) - len(near)
        spread.records = [r for r in spread.records if r in near]
        spread.flows = [f for f in spread.flows if f.source in near and f.to in near]

    # ---- what the picture says ---------------------------------------------------------------

    def role(self, record) -> str:
        if record in self.gone:
            return "removed"
        found = super().role(record)
        return found if found not in KINDS else "new" if record in self.new else "kept"

    def look(self, record) -> tuple[str, str, str, dict]:
        role, label, tip, attrs = super().look(record)
        return role, label, tip, attrs | (DASHED if role == "removed" else {})

    def summary(self) -> str:
        groups = [count_of_groups(p) for p in (self.before, self.program)]
        text = f"{count(len(self.gone), 'record')} gone, {len(self.new)} new"
        return text if groups[0] == groups[1] else f"{text}, {count(groups[1], 'group')}"

    def caption(self) -> str:
        return self.summary() + (f"; {self.far} far from that are as they were" if self.far else "")

    def text(self) -> str:
        head = f"{self.title}: {self.summary()}" if self.title else self.summary()
        gone = [f"- {self.line(r)}" for r in self.gone]
        return "\n".join([head, *gone, *(f"+ {self.line(r)}" for r in self.new)])

    def line(self, record) -> str:
        return self.tip(record).splitlines()[0]

    far = 0


DASHED = {"style": "dashed", "fontcolor": GREY}


def count_of_groups(program: Program) -> int:
    return sum(r.op is fused for r in program.records)
