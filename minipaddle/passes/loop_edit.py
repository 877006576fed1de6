"""A `while_loop` while it is rewritten: further carried values and constants, another body."""

from __future__ import annotations

from ..engine.core.record import Record, Spec
from ..engine.ir.control import while_loop
from ..engine.ir.program import INPUT, ITEM, Program, item_of


def is_item(record: Record) -> bool:
    """Whether a record is a result of a loop."""
    return record.op is ITEM and record.inputs[0].op is while_loop


def region_input(spec: Spec) -> Record:
    """An input of a region."""
    return Record(INPUT, (), {"name": ""}, *spec)


class LoopEdit:
    """A loop as lists that can be extended.

    `first` are the values that enter, `now` they in an iteration, `next` those after it; `outer`
    are the constants of the loop, and `inner` they in its body; `records` is the body.
    """

    def __init__(self, loop: Record):
        self.loop, self.n, self.body = loop, loop.attrs["carried"], loop.attrs["body"]
        n, inputs = self.n, self.body.inputs
        self.first, self.outer = [*loop.inputs[:n]], [*loop.inputs[n:]]
        self.now, self.inner = [*inputs[:n]], [*inputs[n:]]
        self.next, self.records = [*self.body.outputs], [*self.body.records]

    def carry(self, first: Record, after: Record | None = None) -> Record:
        """A further carried value in an iteration; `after` is the value after it."""
        self.first.append(first)
        self.now.append(region_input(first.spec))
        self.next.append(after)
        return self.now[-1]

    def constant(self, outer: Record) -> Record:
        """A value of outside in an iteration."""
        if outer not in self.outer[: len(self.inner)]:
            self.outer.append(outer)
            self.inner.append(region_input(outer.spec))
        return self.inner[self.outer.index(outer)]

    def close(self) -> Record:
        """The loop."""
        old, n, m = self.loop, self.n, len(self.first)
        test, name = old.attrs["test"], self.body.name
        more = [region_input(x.spec) for x in self.first[n:]]
        rest = [region_input(x.spec) for x in self.outer[len(test.inputs) - n :]]
        given = [*test.inputs[:n], *more, *test.inputs[n:], *rest]
        inputs = [*self.now, *self.inner]
        attrs = old.attrs | {
            "carried": m,
            "body": Program(name, inputs, [], self.records, self.next, self.body.guards),
            "test": Program(test.name, given, [], test.records, test.outputs, test.guards),
        }
        specs = [*old.shape[:n], *(x.spec for x in self.first[n:])]
        if attrs["keep"]:
            (length, *_), stacks = old.shape[n + 1].shape, old.shape[n + 1 :]
            more = [Spec((length, *x.spec.shape), x.dtype) for x in self.first[n:]]
            specs += [old.shape[n], *stacks, *more]
        loop = old.copy([*self.first, *self.outer], attrs, tuple(specs))
        low = (1 << n) - 1
        loop.saved = old.saved and (old.saved & low) | (old.saved & ~low) << (m - n)
        return loop


def move_item(item: Record, loop: Record) -> Record:
    """The same result of a loop that carries more than before."""
    k, n = item.attrs["k"], item.inputs[0].attrs["carried"]
    return item_of(loop, k if k < n else k + loop.attrs["carried"] - n, item.saved)
