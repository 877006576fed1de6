"""A `while_loop` while it is rewritten: further carried values and constants, another body."""

from __future__ import annotations

from ..engine.core.record import Record, Spec
from ..engine.ir.control import while_loop
from ..engine.ir.cut import needed
from ..engine.ir.edit import count_uses
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
    are the constants of the loop, and `inner` they in its body; `records` is the body, and
    `written` the values that it stacks beside the carried ones.
    """

    def __init__(self, loop: Record):
        self.loop, self.n, self.body = loop, loop.attrs["carried"], loop.attrs["body"]
        n, inputs = self.n, self.body.inputs
        self.first, self.outer = [*loop.inputs[:n]], [*loop.inputs[n:]]
        self.now, self.inner = [*inputs[:n]], [*inputs[n:]]
        self.next, self.written = [*self.body.outputs[:n]], [*self.body.outputs[n:]]
        self.records = [*self.body.records]

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

    def rename(self, new: dict) -> None:
        """Let an iteration give these values in the place of others."""
        self.next, self.written = ([new.get(r, r) for r in x] for x in (self.next, self.written))

    def close(self) -> Record:
        """The loop, without the constants that it does not read."""
        old, n, m = self.loop, self.n, len(self.first)
        test, name, count = old.attrs["test"], self.body.name, len(old.inputs)
        outputs = [*self.next, *self.written]
        body = Program(name, [], [], self.records, outputs, self.body.guards)
        records, unread = needed(body), [region_input(x.spec) for x in self.outer[count - n :]]
        tested = [*test.inputs[n:], *unread]
        body = Program(name, [], [], records, outputs, self.body.guards)
        used = count_uses(body) + count_uses(test)
        constants = zip(self.outer, self.inner, tested, range(n, n + len(tested)), strict=True)
        rest = [each for each in constants if used[each[1]] or used[each[2]]]
        outer, body.inputs = [x for x, *_ in rest], [*self.now, *(x for _, x, *_ in rest)]
        inputs = [*test.inputs[:n], *(region_input(x.spec) for x in self.first[n:])]
        inputs += [x for *_, x, _ in rest]
        attrs = old.attrs | {
            "carried": m,
            "body": body,
            "test": Program(test.name, inputs, [], test.records, test.outputs, test.guards),
        }
        specs = [*old.shape[:n], *(x.spec for x in self.first[n:])]
        if attrs["keep"]:
            (length, *_), stacks = old.shape[n + 1].shape, old.shape[n + 1 : 2 * n + 1]
            more = [Spec((length, *x.spec.shape), x.dtype) for x in self.first[n:]]
            specs += [old.shape[n], *stacks, *more]
        if self.written:
            attrs["writes"] = (False,) * len(self.written)
            specs += [Spec((attrs["trip_count"], *x.shape), x.dtype) for x in self.written]
        loop = old.copy([*self.first, *outer], attrs, tuple(specs))
        saved = [old.saved >> k & 1 for k in range(n)] + [0] * (m - n)
        saved += [old.saved >> k & 1 for *_, k in rest]
        loop.saved = sum(bit << k for k, bit in enumerate(saved))
        return loop


def move_item(item: Record, loop: Record) -> Record:
    """The same result of a loop that carries more than before."""
    k, old = item.attrs["k"], item.inputs[0]
    if k >= (first := first_written(old)):
        return item_of(loop, k - first + first_written(loop), item.saved)
    n = old.attrs["carried"]
    return item_of(loop, k if k < n else k + loop.attrs["carried"] - n, item.saved)


def first_written(loop: Record) -> int:
    """The number of the first result of a loop that its iterations write by slices."""
    return len(loop.shape) - len(loop.attrs.get("writes", ()))
