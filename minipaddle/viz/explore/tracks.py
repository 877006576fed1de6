"""Tracks: a record through all passes.

A record that a pass has made knows its source. It is the same track as the source while operator,
attributes and spec are the same; else it is a new track, which came from that of the source.
"""

from ...engine.core.errors import line_number
from ...engine.core.record import Record
from ...engine.ir.control import fused, while_loop
from ...engine.ir.program import ITEM, NUMBER, Program, regions
from ...engine.ops.marks import after
from ...nn.layer.tree import layer_name, layers_of
from ..phases import gradients_in, phases_of
from ..records import (
    is_same,
    name_record,
    numbers_of,
    records_in,
    short,
    sources_of,
    spec_text,
)
from .sources import Sources

COMPUTES = ("elementwise", "reduction", "contraction", "opaque")
"""Kinds of operators that compute; the others move values."""

LONGEST = 80
"""Characters of attributes that are shown."""


class Row:
    """A record in a program, with the values that it reads and the boxes around it inside of
    control flow; `group` is the number of the fused group that it is in, or -1.
    """

    __slots__ = ("boxes", "group", "inputs", "record")

    def __init__(self, record: Record, inputs: list[Record], group: int, boxes: tuple):
        self.record, self.inputs, self.group, self.boxes = record, inputs, group, boxes


def rows_of(program: Program) -> list[Row]:
    """All that computes in a program, regions flattened: groups, their items, numbers do not."""
    rows, outer, groups = [], {}, []

    def origin(x: Record) -> Record:
        while True:
            if x in outer:
                x = outer[x]
            elif x.op is ITEM and x.inputs[0].op is fused:
                x = x.inputs[0].attrs["region"].outputs[x.attrs["k"]]
            else:
                return x

    def add_rows(records, group: int, boxes: tuple) -> None:
        for r in records:
            if r.op is fused:
                region = r.attrs["region"]
                outer.update(zip(region.inputs, r.inputs))
                groups.append(r)
                add_rows(region.records, len(groups) - 1, boxes)
                continue
            if r.op is ITEM and r.inputs[0].op is fused:
                continue
            inside = []
            for name, region in regions(r).items() if r.op.kind == "control" else ():
                carried = r.attrs["carried"] if r.op is while_loop else 0
                values = r.inputs if r.op is while_loop else r.inputs[1:]
                pairs = zip(region.inputs, values[: len(region.inputs)])
                outer.update(pairs)
                line = f" of line {line_number(r.where)}" if isinstance(r.where, tuple) else ""
                add_rows(region.records, group, (*boxes, f"{r.op.name}{line}", name))
                inside += region.outputs[: carried or None]
            inputs = [
                origin(x) if x.op is ITEM or x in outer else x
                for x in (*r.inputs, *inside)
                if x.op is not NUMBER
            ]
            rows.append(Row(r, inputs, group, boxes))

    add_rows(program.records, -1, ())
    return rows


class Tracks:
    """The tracks of a program through its passes; `rows` is what a page has of each."""

    def __init__(self, sources: Sources):
        self.sources = sources
        self.paths: dict[tuple, int] = {}
        self.number: dict[Record, int] = {}
        self.rows: list[list] = []
        self.layers: dict[int, tuple[str, ...]] = {}  # by id of the scope
        self.names: dict[Record, str] = {}  # of inputs and states
        self.phases: dict[Record, tuple] = {}
        self.calls: dict[int, dict[int, None]] = {}
        self.last: list = []  # the rows of the stage before

    def start(self, program: Program) -> None:
        """Number the records of the first program."""
        self.phases = phases_of(program)
        gradient_of = gradients_in(program)
        for row in rows_of(program):
            self.add(row, ())
        for record, forward in gradient_of.items():
            if record in self.number and forward in self.number:
                self.rows[self.number[record]][6] = self.number[forward]
        self.note_calls()

    def note_calls(self) -> None:
        """Note for each line that calls a layer what was computed in the call."""
        for record, track in self.number.items():
            for scope in layers_of(record.scope):
                if scope[2] is not None and self.rows[track][6] < 0:
                    span = self.sources.number_span(scope[2])
                    self.calls.setdefault(span, {})[track] = None

    def start_tape(self, records: list[Record]) -> None:
        """Number the records of a tape; its leaves are names."""
        applied = [r for r in records if r.inputs]
        rows = [Row(r, [x for x in r.inputs if x is not None], -1, ()) for r in applied]
        for row in rows:
            self.add(row, ())
        self.names |= {r: name_record(r) for r in records if not r.inputs}
        self.note_calls()
        self.last = self.list_rows(None, rows)

    def add(self, row: Row, came: tuple[int, ...]) -> int:
        """A new track."""
        record, number = row.record, len(self.rows)
        span = self.sources.number_span(record.where)
        path = self.path_of(row, came)
        self.number[record] = number
        gradient = self.rows[came[0]][6] if came else -1
        attrs = text_of_attributes(record)
        spec = spec_text(record)
        self.rows.append([record.op.name, spec, span, path, attrs, [*came], gradient])
        return number

    def path_of(self, row: Row, came) -> int:
        """The number of the boxes around a record: phase, layers, control flow."""
        if came and row.record not in self.phases:
            return self.rows[came[0]][3]
        phase = self.phases.get(row.record, ())
        layers = () if phase[:1] == ("update",) else self.layers_around(row.record.scope)
        return self.paths.setdefault((*phase, *layers, *row.boxes), len(self.paths))

    def layers_around(self, scope) -> tuple[str, ...]:
        """The names of the layers of a scope, outermost first."""
        if scope is None:
            return ()
        if id(scope) not in self.layers:
            self.layers[id(scope)] = *self.layers_around(scope[0]), layer_name(scope)
        return self.layers[id(scope)]

    def follow(self, program: Program) -> tuple[list, list[int], list[int]]:
        """A later program: its rows, the tracks that are gone, and those that are new."""
        rows, before = rows_of(program), self.last
        there = {self.number[row.record] for row in rows if row.record in self.number}
        new = []
        for row in rows:
            if row.record in self.number:
                continue
            source = self.find_source(row.record)
            track = self.number.get(source)
            if track is not None and track not in there and is_same(row.record, source):
                self.number[row.record] = track
                there.add(track)
            else:
                came = () if track is None else (track,)
                new.append(self.add(row, came))
                there.add(new[-1])
        self.last = self.list_rows(program, rows)
        gone = sorted({each[0] for each in before} - there)
        return self.last, gone, new

    def list_rows(self, program: Program | None, rows: list[Row]) -> list[tuple]:
        """(track, tracks read, names of inputs and states read, group) of each record."""
        if program is not None:
            self.names |= {s.record: s.name or "state" for s in program.states}
            self.names |= {r: r.attrs.get("name") or "input" for r in program.inputs}
        listed = []
        for row in rows:
            read = dict.fromkeys(row.inputs)
            tracks = (*[self.number[x] for x in read if x in self.number],)
            names = (*[self.names[x] for x in read if x in self.names],)
            listed.append((self.number[row.record], tracks, names, row.group))
        return listed

    def find_twins(self, program: Program) -> dict[int, str]:
        """The tracks of a program that compute what another one computes too, as a copy for the
        backward pass does; for each the tracks of all of them, `4.17`.
        """
        first, same = {}, {}
        for row in rows_of(program):
            r = row.record
            values = [first.get(x, x) for x in row.inputs]
            alike = same.setdefault((r.op, *values), []) if values else []
            equal = (x for x in alike if is_same(x, r))
            first[r] = values[0] if r.op is after else next(equal, r)
            alike.append(r)
        groups: dict[Record, list[int]] = {}
        for r, one in first.items():
            if r.op.kind in COMPUTES and r.op is not after:
                groups.setdefault(one, []).append(self.number[r])
        return {t: ".".join(map(str, ts)) for ts in groups.values() if len(ts) > 1 for t in ts}

    def rows_of_rank(self, rows: list[tuple], first: Program) -> list[list]:
        """[track, placements, collective, bytes] of each record of a rank. The programs of ranks
        are alike: a record stands for that of the first rank in the same place.
        """
        listed = []
        for (record, *facts), twin in zip(rows, first.records):
            if twin.op is record.op and twin in self.number:
                listed.append([self.number[twin], *facts])
        return listed

    def find(self, record: Record | None) -> int:
        """The track of a record, or of the nearest that it was made from; -1 if there is none."""
        return self.number.get(self.find_source(record), -1)

    def find_source(self, record: Record | None) -> Record | None:
        """The nearest record that has a track among those that a record was made from."""
        return next((r for r in sources_of(record) if r in self.number), None)

    def inside(self, record: Record) -> list[int]:
        """The tracks of a record, or of those in a group."""
        return [self.number[r] for r in records_in(record) if r in self.number]


def text_of_attributes(record: Record) -> str:
    attrs = (record.attrs or {}).items()
    words = [f"{k}={short(v)}" for k, v in attrs if not isinstance(v, Program)]
    text = ", ".join([*map(short, numbers_of(record)), *words])
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
