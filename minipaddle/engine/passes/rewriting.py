"""Writing something else in the place of some records of a program.

The replacement is ordinary code over tensors: it runs on symbolic arrays, as a trace does. What it
writes has the line and the layer of what it replaces. Records that nothing changes for are not
copied: the new program shares them with the old one, so to compare two programs is to compare
records. (A record of a program is never changed.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from ..core.dispatch import Recording
from ..core.op import Op
from ..core.record import Record
from ..eager.device import current_place
from ..eager.tensor import Tensor, wrap
from ..eager.tracer import Tracer, tracing
from ..ir.builder import Builder
from ..ir.edit import count_uses, map_regions, with_inputs, with_results
from ..ir.program import ITEM, NUMBER, SPEC, Program

Rules = dict[Op, Callable]
"""For an operator what to write instead: `rule(record, *inputs)` returns a tensor, a tuple of them
for an operator of several results, or None to let it stand. Inputs are tensors and numbers, or
records if the rule has `on_records`."""


class ProgramRewriter(Builder):
    """Writes a program anew; its records come from the record that is being replaced."""

    def __init__(self, program: Program, rules: Rules):
        super().__init__(program.name, place=current_place())
        self.old, self.rules = program, rules
        self.ops = {*rules, *[r.op for r in program.records if r.op.kind == "control"]}
        self.now: dict[Record, object] = {}  # what stands for an old record, if not itself
        self.stands_for: dict[Record, list[Record]] = {}  # the other way round
        self.counts: Counter | None = None
        self.source: Record | None = None

    def emit(self, op, inputs, attrs, scope=None, flow=0):
        source, before = self.source, len(self.program.records)
        flow = (1 << len(inputs)) - 1 if source.saved else 0
        y = super().emit(op, inputs, attrs, source.scope, flow)
        for record in self.program.records[before:]:
            record.where, record.source = source.where, source
        return y

    def run(self) -> Program:
        """The new program; the old one itself if nothing is to be written instead."""
        if self.ops.isdisjoint([r.op for r in self.old.records]):
            return self.old
        self.program.inputs, self.program.guards = self.old.inputs, list(self.old.guards)
        with tracing(Tracer(builder=self)), Recording(False):
            for record in self.old.records:
                changes = record.op in self.ops or not self.now.keys().isdisjoint(record.inputs)
                (self.write if changes else self.program.records.append)(record)
        return with_results(self.old, self.program, self.now)

    def write(self, record: Record) -> None:
        """The replacement of a record, or the record itself."""
        inputs = [*map(self.now.get, record.inputs, record.inputs)]
        if record.op is ITEM and isinstance(inputs[0], tuple):
            self.put(record, inputs[0][record.attrs["k"]])
            return
        rule = self.rules.get(record.op)
        if rule is not None:
            self.source = record
            on_records = getattr(rule, "on_records", False)
            instead = rule(record, *(inputs if on_records else map(self.tensor, inputs)))
            if instead is not None:
                self.put(record, self.check_results(record, instead))
                return
        inside = map_regions(record, lambda region: rewritten(region, self.rules))
        new = with_inputs(record, inputs, inside)
        self.program.records.append(new)
        if new is not record:
            self.put(record, new)

    def put(self, old: Record, new) -> None:
        """From now on `new` stands for an old record."""
        self.now[old] = new
        if isinstance(new, Record):
            self.stands_for.setdefault(new, []).append(old)

    def uses(self, record: Record) -> int:
        """How often a value of the new program is used, at most."""
        self.counts = count_uses(self.old) if self.counts is None else self.counts
        return sum(self.counts[r] for r in {record, *self.stands_for.get(record, ())})

    def tensor(self, record: Record):
        """A value of the new program as code has it: a tensor, or a Python number."""
        if record.op is NUMBER:
            return record.attrs["value"]
        return wrap(self.symbolic(record, self.place))

    def check_results(self, record: Record, instead):
        """The records of what a rule gave; ValueError if it is not what it stands for."""
        several = isinstance(instead, tuple)
        results = [self.value(x.array) for x in (instead if several else (instead,))]
        wanted = record.shape if several else (record.spec,)
        if [*map(SPEC, results)] != [*wanted]:
            specs = ", ".join(str(r.spec) for r in results)
            raise ValueError(f"{specs} cannot stand for {record}")
        return tuple(results) if several else results[0]


def rewritten(program: Program, rules: Rules) -> Program:
    """The program, its regions too, with what the rules say instead of their operators."""
    return ProgramRewriter(program, rules).run()


def made_by(x) -> Record | None:
    """The record a tensor comes from, in the program that is being written; None for a number."""
    return x.array.record if isinstance(x, Tensor) else None
