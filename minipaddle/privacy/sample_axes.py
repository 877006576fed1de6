"""Where the samples of a batch lie in the values of a captured step, by the letters of sharding.

Sharding rules name the axes of every operator by letters. From the values whose axis 0 is known to
count samples `SampleAxes` follows that letter through the records to the gradients of the weights.
There an operator sums over it, as in "bi,bo->io". What happens after this sum must be linear.

Refused by name, at the user's line: operators without a rule, and all that mixes samples: a sum
over them that samples meet again (batch normalisation), a maximum over them, a product of samples
with samples, branches and loops on them.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.prelude import Record, current, not_supported, note_refusal, wrap
from ..engine.ir.program import ITEM, NUMBER
from ..engine.passes.decompose import RULES, by_body
from ..engine.sharding.letters import LetterRule, rule_of


class SampleAxis(NamedTuple):
    """The axis along which a value holds the samples, each in `rows` neighbouring rows."""

    dim: int
    rows: int = 1


class SampleSum(NamedTuple):
    """For an operator that sums over samples: for each input the axis of the samples, or None."""

    rule: LetterRule
    axes: list[SampleAxis | None]


class SampleAxes:
    """Where the samples lie in each value on the way to the gradients, and who sums over them.

    axes: for a record its `SampleAxis`, of several results a list of them
    sums: the records that sum over samples; `late` are they and all that follows
    now: small operators in the place of those without a rule, which are made of them
    """

    def __init__(self, gradients: list[Record], marks: dict[Record, SampleAxis], size: int):
        self.axes, self.size = dict(marks), size
        self.sums: dict[Record, SampleSum] = {}
        self.late: set[Record] = set()
        self.now: dict[Record, Record] = {}
        for record in trace_back(gradients, marks):
            if record not in marks and record.inputs:
                self.visit(record)

    def visit(self, record: Record) -> None:
        """Find the samples in the results of a record, whose inputs were visited."""
        inputs = self.inputs(record)
        if record.op is ITEM and type(inputs[0]) is tuple:
            self.now[record] = inputs[0][record.attrs["k"]]
            return
        if record.op is ITEM:
            axes = self.axes.get(inputs[0])
            if axes is not None and axes[record.attrs["k"]] is not None:
                self.axes[record] = axes[record.attrs["k"]]
            return
        have = {k: self.axes[x] for k, x in enumerate(inputs) if x in self.axes}
        late = {k for k, x in enumerate(inputs) if x in self.late}
        if not have and not late:
            return
        if record.op.letters is None and record.op.kind == "opaque" and self.expand(record):
            return
        if have and late:
            raise refuse(record, "a sum over samples meets samples again")
        several = record.dtype is None
        results = [*record.shape] if several else [record.spec]
        specs = [x.attrs["value"] if x.op is NUMBER else x.spec for x in record.inputs]
        rule = rule_of(record.op, specs, record.attrs, results)
        if late:
            if several or rule is None or not any(late <= each for each in rule.linear):
                raise refuse(record, "it is not linear, and follows a sum over samples")
            self.late.add(record)
            return
        if rule is None:
            raise refuse(record, "it has no sharding rule that says what it does to samples")
        self.axes |= self.follow(record, rule, have, specs, results)

    def inputs(self, record: Record) -> list:
        """The inputs of a record, by their small operators if they became some."""
        return [self.now.get(x, x) for x in record.inputs]

    def expand(self, record: Record) -> bool:
        """Write a composite operator as small ones and visit these; False if it is none."""
        records = current.top.builder.program.records
        before = len(records)
        results = RULES.get(record.op, by_body)(record, *map(read, self.inputs(record)))
        if results is None:
            return False
        for new in records[before:]:
            new.where, new.scope = record.where, record.scope
            self.visit(new)
        several = type(results) is tuple
        results = tuple(y.array.record for y in (results if several else (results,)))
        self.now[record] = results if several else results[0]
        return True

    def follow(self, record, rule: LetterRule, have: dict, specs, results) -> dict:
        """The axes of the results by the letters of the rule; notes a sum over samples."""
        own = {k: rule.inputs[k][axis.dim] for k, axis in have.items()}
        blocks = {(a and a.letter, have[k].rows / a.unit if a else 0) for k, a in own.items()}
        ((letter, count), *others) = blocks
        if others or letter is None or count != int(count):
            raise refuse(record, "it combines samples with samples")

        def find(axes) -> SampleAxis | None:
            places = [d for d, a in enumerate(axes) if a is not None and a.letter == letter]
            return SampleAxis(places[0], int(count) * axes[places[0]].unit) if places else None

        places = [find(axes) for axes in rule.results]
        if all(places):
            return {record: places[0] if record.dtype is not None else places}
        if any(places) or record.dtype is None or rule.terms.get(letter) != "sum":
            raise refuse(record, "it combines samples, and not by a sum")
        self.sums[record] = SampleSum(rule, [find(axes) for axes in rule.inputs])
        self.late.add(record)
        return {}


def trace_back(roots: list[Record], ends) -> list[Record]:
    """The records that lead to the roots, oldest first, up to those in `ends`."""
    seen, waiting = set(roots), [*roots]
    while waiting:
        record = waiting.pop()
        for x in () if record in ends else record.inputs:
            if x not in seen:
                seen.add(x)
                waiting.append(x)
    return sorted(seen, key=Record.time.__get__)


def read(record: Record):
    """The value of a record, as code has it."""
    if record.op is NUMBER:
        return record.attrs["value"]
    builder = current.top.builder
    return wrap(builder.symbolic(record, builder.place))


def refuse(record: Record, reason: str) -> Exception:
    """The error for an operator that mixes samples."""
    layer = f"{type(record.scope[1]).__name__}: " if record.scope else ""
    return note_refusal(
        not_supported(
            f"{layer}{record.op.name} mixes the samples of a batch: {reason}",
            expected="layers in which each sample's result depends on that sample alone",
            hint="GroupNorm, LayerNorm or InstanceNorm for BatchNorm, or eval() on that layer",
            where=record.where,
        )
    )
