"""Which axes of a program are one axis: a channel leaves all their weights at once.

A channel is a label. It starts at the rows of one axis of a value and spreads to all values until
nothing changes: along the letters of operators' sharding rules (`engine/sharding/letters.py`), and
through movements (reshape, concat, slices, …) element by element. Rows with one label go together.
So residual sums, norms, flattened maps, depthwise convolutions and joined maps need no code here.

Where the remaining rows would have other values without a channel there is a refusal: a mean over
channels, a softmax over them, an output of the network.
"""

from __future__ import annotations

from functools import cache
from math import prod

import numpy as np

from ..engine.core.errors import line_of, teach
from ..engine.core.record import Record, Spec
from ..engine.core.slots import slot
from ..engine.ir.program import ITEM, NUMBER, Program
from ..engine.ops.conv import conv
from ..engine.ops.creation import full
from ..engine.ops.movement import broadcast_to
from ..engine.passes.decompose import decompose
from ..engine.passes.lifetimes import specs_of
from ..engine.sharding.letters import Axis, LetterRule, rule_of

Value = tuple[Record, int]
"""A record, and the number of its result."""


class CannotFollow(NotImplementedError):
    """Channels that cannot be removed. `instead` are values and axes to start from instead."""

    instead: tuple = ()


def refuse(record: Record, why: str, instead=()) -> CannotFollow:
    """The error for channels that cannot pass a record."""
    layer = type(record.scope[1]).__name__ if record.scope else "the network"
    line = f" ({line_of(record.where)})" if record.where else ""
    error = CannotFollow(
        teach(f"channels meet {record.op.name} in {layer}{line}: {why}", hint="leave them whole")
    )
    error.instead = tuple(instead)
    return error


def value_of(record: Record) -> Value:
    """The value that a record represents."""
    return (record.inputs[0], record.attrs["k"]) if record.op is ITEM else (record, 0)


def spec_of(value: Value) -> Spec:
    return specs_of(value[0])[value[1]]


def inputs_of(record: Record) -> list:
    """The specs of a record's inputs, numbers as they are."""
    return [r.attrs["value"] if r.op is NUMBER else spec_of(value_of(r)) for r in record.inputs]


@slot("slim.letters_of")
def letters_of(record: Record) -> LetterRule | None:
    """The rule of a record. A convolution in groups has letters too: a block of its input channels
    belongs to a block of its filters.
    """
    if record.op is conv and (groups := record.attrs["groups"]) > 1:
        x, w = inputs_of(record)
        rest = (None,) * (x.ndim - 2)
        g, o = Axis("g", x.shape[1] // groups), Axis("g", w.shape[0] // groups)
        return LetterRule([(Axis("b"), g, *rest), (o, None, *rest)], [(Axis("b"), o, *rest)])
    if record.op is full:
        return LetterRule([], [tuple(map(Axis, "abcdefgh"[: record.spec.ndim]))])
    return rule_of(record.op, inputs_of(record), record.attrs, list(specs_of(record)))


class Axes:
    """A program in small operators, with what all searches for channels ask of it."""

    def __init__(self, program: Program):
        self.program = program = decompose(program, decompose_from=0)
        self.given = {(r, 0) for r in program.given}
        self.ends = {value_of(r) for r in program.outputs} | {(r, 0) for r in program.inputs}
        self.states = {(s.record, 0): s for s in program.states}
        self.users: dict[Record, list[Record]] = {}
        for record in program.records:
            for r in record.inputs:
                self.users.setdefault(value_of(r)[0], []).append(record)
        self.rules = cache(letters_of)
        self.sources = cache(lambda r: sources(r.op, inputs_of(r), r.attrs))

    def follow(self, value: Value, axis: int) -> Channels:
        """The channels that begin at an axis. Where a reshape splits it (heads · size), the first
        of the parts that can be followed. Raises CannotFollow.
        """
        try:
            return Channels(self, value, axis)
        except CannotFollow as error:
            for other, d in error.instead:
                try:
                    channels = Channels(self, other, d)
                except CannotFollow:
                    continue
                if channels.of(value, axis) is not None:
                    return channels
            raise


class Channels:
    """The labels that one axis spreads to: for each value and axis an array, 0 where there is none.

    Raises CannotFollow.
    """

    def __init__(self, axes: Axes, value: Value, axis: int):
        self.axes, self.labels = axes, {}
        n = spec_of(value).shape[axis]
        self.parent = np.arange(n + 1)
        self.waiting: dict[Record, None] = {}
        self.set(value, axis, np.arange(1, n + 1))
        while self.waiting:
            record = next(iter(self.waiting))
            del self.waiting[record]
            self.spread(record)
        for value, _ in self.labels:
            if value in axes.ends:
                raise refuse(value[0], "they are an input or an output of the network")

    # ---- labels ------------------------------------------------------------------------------

    def of(self, value: Value, axis: int):
        """The labels along an axis, or None."""
        labels = self.labels.get((value, axis))
        return None if labels is None else self.root(labels)

    def root(self, labels):
        """Labels that were joined to one are one."""
        while (self.parent[labels] != labels).any():
            labels = self.parent[labels]
        return labels

    def join(self, a, b):
        """Labels where either array has any; where both have, they are the same from now on."""
        a, b = self.root(a), self.root(b)
        both = (a != b) & (a != 0) & (b != 0)
        for x, y in {*zip(a[both].tolist(), b[both].tolist())}:
            x, y = sorted(int(self.root(np.array(k))) for k in (x, y))
            self.parent[y] = x
        return self.root(np.where(a == 0, b, a))

    def set(self, value: Value, axis: int, labels) -> None:
        """Add labels to an axis; if that changes it, all records of the value are looked at."""
        old = self.labels.get((value, axis))
        new = self.root(labels) if old is None else self.join(old, labels)
        if new.any() and (old is None or (new != old).any()):
            self.labels[value, axis] = new
            if value not in self.axes.given:
                self.waiting[value[0]] = None
            self.waiting.update(dict.fromkeys(self.axes.users.get(value[0], ())))

    def along(self, value: Value) -> list:
        """The (axis, labels) of a value that has any."""
        pairs = [(d, self.of(value, d)) for d in range(spec_of(value).ndim)]
        return [(d, labels) for d, labels in pairs if labels is not None]

    # ---- one record --------------------------------------------------------------------------

    def spread(self, record: Record) -> None:
        """Bring the labels of a record's inputs and results into agreement."""
        if record.op in (ITEM, NUMBER):
            self.waiting.update(dict.fromkeys(self.axes.users.get(record, ())))
            return
        inputs = [None if r.op is NUMBER else value_of(r) for r in record.inputs]
        results = [(record, k) for k in range(len(specs_of(record)))]
        if not any(self.along(v) for v in (*inputs, *results) if v):
            return
        if record.op.kind == "movement" and record.op is not broadcast_to:
            ElementSources(self, record, inputs, results).spread()
        else:
            self.spread_letters(record, inputs, results)

    @slot("slim.spread_letters")
    def spread_letters(self, record: Record, inputs: list, results: list) -> None:
        """Bring the labels of a record into agreement, letter by letter: rows of axes with one
        letter have one label, or in blocks, where an axis has several rows for each of another.
        """
        rule = self.axes.rules(record)
        if rule is None:
            raise refuse(record, "it has no sharding rule, which says which axes are one")
        held: dict[str, list] = {}
        for v, axes in zip((*inputs, *results), (*rule.inputs, *rule.results), strict=True):
            for d, axis in enumerate(axes if v else ()):
                if axis is not None:
                    held.setdefault(axis.letter, []).append((v, d, axis.unit))
                elif self.of(v, d) is not None:
                    raise refuse(record, f"it needs axis {d} of {spec_of(v)} whole")
        for letter, places in held.items():
            known = [(v, d, unit, labels) for v, d, unit in places
                     if (labels := self.of(v, d)) is not None]  # fmt: skip
            if not known:
                continue
            if letter in rule.terms and not is_product(record, rule, letter):
                raise refuse(record, "it combines them to one value, which would change")
            blocks = None
            for _, _, unit, labels in known:
                for column in labels.reshape(-1, unit).T:
                    blocks = column if blocks is None else self.join(blocks, column)
            for v, d, unit in places:
                self.set(v, d, self.root(blocks).repeat(unit))


def is_product(record: Record, rule: LetterRule, letter: str) -> bool:
    """Whether an operator sums products over a letter: without a channel one term is missing."""
    has = [any(a and a.letter == letter for a in axes) for axes in rule.inputs]
    return sum(has) > 1 and bool(record.op.linear)


class ElementSources:
    """A movement, element by element: the source of each element of the results."""

    def __init__(self, channels: Channels, record: Record, inputs: list, results: list):
        self.channels, self.record, self.inputs, self.results = channels, record, inputs, results
        self.sources = channels.axes.sources(record)

    def spread(self) -> None:
        """Forward, then backward."""
        for (which, place), result in zip(self.sources, self.results):
            for k, v in enumerate(self.inputs):
                for d, labels in self.channels.along(v) if v else ():
                    at = np.unravel_index(np.where(which == k, place, 0), spec_of(v).shape)
                    self.set_elements(result, np.where(which == k, labels[at[d]], 0))
        for k, v in enumerate(self.inputs):
            joined = np.zeros(spec_of(v).size if v else 0, dtype=int)
            for (which, place), result in zip(self.sources, self.results):
                for d, labels in self.channels.along(result):
                    shape = [-1 if e == d else 1 for e in range(which.ndim)]
                    wanted = np.broadcast_to(labels.reshape(shape), which.shape)[which == k]
                    order = place[which == k]
                    for part in repeats(order):
                        joined[order[part]] = self.channels.join(joined[order[part]], wanted[part])
            if v:
                self.set_elements(v, self.channels.root(joined).reshape(spec_of(v).shape))

    def set_elements(self, value: Value, labels) -> None:
        """Labels of elements as labels of one axis. Elements without a label may follow others."""
        if not labels.any():
            return
        fits = [lines_along(labels, d) for d in range(labels.ndim)]
        axes = [d for d, lines in enumerate(fits) if (lines == lines[:, :1]).all()]
        if not axes:
            largest = [lines.max(1, keepdims=True) for lines in fits]
            axes = [
                d for d, lines in enumerate(fits) if ((lines == largest[d]) | (lines == 0)).all()
            ]
        if len(axes) == 1:
            self.channels.set(value, axes[0], fits[axes[0]].max(1))
            return
        instead = [(value, d) for d, n in enumerate(labels.shape) if n > 1]
        raise refuse(self.record, f"they are no rows of {spec_of(value)}", instead)


def lines_along(x, axis: int):
    """An array as a matrix, whose rows run along an axis."""
    return np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1)


def repeats(places) -> list:
    """The positions of places, as lists where each place is once."""
    order = places.argsort(kind="stable")
    first = np.searchsorted(places[order], places[order])
    times = np.arange(len(places)) - first
    return [order[times == t] for t in range(times.max() + 1)] if len(places) else []


def sources(op, specs: list, attrs: dict) -> list:
    """For each result of a movement two arrays: from which input an element comes (-1: none), and
    from which place in it.
    """
    sizes = [spec.size if isinstance(spec, Spec) else 0 for spec in specs]
    starts = np.cumsum([0, *sizes])

    def move(offset: int) -> list:
        arrays = [
            (np.arange(a, a + n) + offset).reshape(spec.shape) if n else spec
            for a, n, spec in zip(starts, sizes, specs)
        ]
        y = op.body(np, *arrays, **attrs)
        return list(y) if isinstance(y, tuple) else [y]

    far = int(starts[-1]) + 1
    places = []
    for a, b in zip(move(0), move(far), strict=True):
        which = np.where(b - a == far, np.searchsorted(starts, a, side="right") - 1, -1)
        places.append((which, np.where(which >= 0, a - starts[which], 0)))
    return places


# ---- programs --------------------------------------------------------------------------------


def work_of(program: Program) -> int:
    """Multiplications and additions of the program's products, a pair counted as one."""
    total = 0
    for record in program.records:
        if record.op is conv:
            total += record.spec.size * prod(inputs_of(record)[1].shape[1:])
        elif record.op.linear and record.op.kind in ("opaque", "contraction"):
            rule = letters_of(record)
            if rule and all(isinstance(s, Spec) for s in inputs_of(record)):
                sizes = {a.letter: n for axes, s in zip(rule.inputs, inputs_of(record))
                         for a, n in zip(axes, s.shape) if a}  # fmt: skip
                total += record.spec.size * prod(sizes[letter] for letter in rule.terms)
    return total
