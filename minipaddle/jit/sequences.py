"""`range`, `enumerate`, `zip` and `reversed` of sequences whose length only the program knows."""

import builtins
from functools import reduce

from ..eager.numbers import Number, as_tensor, is_number, kind_of, number
from ..engine.core.dim import Dim, larger, smaller
from ..engine.core.dispatch import current
from ..engine.core.errors import type_error
from ..engine.eager.control_flow import is_static
from ..engine.eager.tensor import Tensor
from ..engine.jit import aliasing
from ..engine.jit.effects import check_held
from ..engine.jit.leaves import scalar
from ..engine.jit.refusal import refusal
from ..engine.ops import elementwise, gather, movement, subscripts
from ..engine.ops.subscripts import setitem
from ..tensor.arranging import tile
from ..tensor.array import array_read, array_write
from ..tensor.growing_lists import NUMBERS, Rest, RestOfNumbers, has_grown, stack_items
from ..tensor.sequences import LazySequence, sequence


def one_of(x: Tensor, *items) -> Tensor:
    """x itself; notes that the program chooses it from `items` (tensors or not)."""
    x.array.may_alias(*(current.top.lift(item) for item in items if isinstance(item, Tensor)))
    return x


def whole(x):
    """x, which counts; raises TypeError if it is no whole number."""
    if x.spec.dtype.kind not in "iub":
        raise type_error(f"range() of {x.spec}", expected="whole numbers", hint="int(x)")
    return x


def least(a, b):
    return elementwise.minimum(a, b) if is_static(a) or is_static(b) else smaller(a, b)


def range_(*limits):
    """`range(start, stop, step)`; any of these may be a tensor."""
    if not any(is_static(x) or isinstance(x, Dim) for x in limits):
        return builtins.range(*limits)
    limits = [scalar(whole(x)).detach() if is_static(x) else x for x in limits]
    start, stop, step = (0, limits[0], 1) if len(limits) == 1 else (*limits, 1)[:3]
    if type(step) is int and step == 1:
        return LazySequence(stop - start, lambda k: step_from(start, k), "range() of a tensor")
    sign = elementwise.sign(step) if type(step) is not int else 1 if step > 0 else -1
    length = (stop - start + step - sign) // step
    return LazySequence(length, lambda k: step_from(start, k, step), "range() of a tensor")


def step_from(start, k, step=1):
    """`start + k * step`, a number of Python; it lies between others, so that it has 64 bits."""
    numbers = start, k, step
    if not any(map(is_static, numbers)):
        return start + k * step
    start, k, step = (as_tensor(x, int) if is_static(x) else x for x in numbers)
    return number(start + (k if type(step) is int and step == 1 else k * step))


def enumerate_(items, start=0):
    """`enumerate`."""
    known, start = sequence(items), whole(start) if is_static(start) else start
    if known is not None:
        return LazySequence(known.length, lambda k: (step_from(start, k), known.at(k)))
    if is_static(start):
        return ((step_from(start, k), item) for k, item in builtins.enumerate(items))
    return builtins.enumerate(items, start)


def zip_(*items, strict=False):
    """`zip`; it is as long as the shortest sequence."""
    known = [sequence(each) for each in items]
    if all(each is None for each in known):
        return builtins.zip(*items, strict=strict)
    known = [as_list(each) if s is None else s for s, each in builtins.zip(known, items)]
    length = reduce(least, [each.length for each in known])
    return LazySequence(length, lambda k: tuple([each.at(k) for each in known]))


def as_list(items) -> LazySequence:
    """Items of Python beside a sequence of the program."""
    known = isinstance(items, list | tuple)
    items = list(items if known else aliasing.rule.items(iter(items)))
    return LazySequence(len(items), lambda k: pick(items, k))


def reverse_items(items):
    """`reversed`."""
    known = sequence(items)
    if known is not None:
        return LazySequence(known.length, lambda k: known.at(known.length - 1 - k))
    return reversed(list(items)) if is_static(items) else builtins.reversed(items)


def pick(items, k):
    """`items[k]` of a Python list whose items are alike, where `k` is a tensor."""
    known, k = sequence(items), scalar(k) if is_static(k) else k
    if known is not None:
        return known.at(k)
    check_alike(items, "indexed by a tensor")
    item = gather.take(movement.stack(*map(as_item, items), axis=0), k, axis=0)
    return number(item) if all(map(is_number, items)) else one_of(item, *items)


def check_alike(items, use: str) -> None:
    """Refuse items that are not all of one kind, and therefore no rows of one tensor."""
    specs = {kind_of(x) if is_number(x) else x.spec if is_static(x) else None for x in items}
    if len(specs) != 1 or None in specs:
        raise refusal(
            f"a list of {len(items)} items that are not all alike, {use}",
            expected="tensors of one shape and dtype, or numbers",
        )


def repeat_items(items: list, n) -> list:
    """`items * n`, where only a run knows n."""
    check_alike(items, "times a number that only a run knows")
    rows = movement.stack(*map(as_item, items), axis=0)
    rest = RestOfNumbers if is_number(items[0]) else Rest
    return [rest(tile(rows, [larger(subscripts.whole(n), 0), *[1] * (rows.spec.ndim - 1)]))]


def write_item(items: list, k, value) -> None:
    """`items[k] = value` of a Python list whose items are alike, where `k` is a tensor."""
    grown = has_grown(items)
    numbers = all(is_number(x) or type(x) is RestOfNumbers for x in [*items, value])
    value, parts = as_item(value), [x if isinstance(x, Rest) else as_item(x) for x in items]
    specs = [x.stack.spec if isinstance(x, Rest) else x.spec for x in parts]
    specs = [
        s._replace(shape=s.shape[1:]) if isinstance(x, Rest) else s for x, s in zip(parts, specs)
    ]
    if {*specs} != {value.spec}:
        raise refusal(
            f"a list of {len(items)} items, written where a tensor says: they and the new item are "
            "not all alike",
            expected="tensors of one shape and dtype, or numbers",
        )
    stacked = setitem(stack_items(parts), scalar(k) if is_static(k) else k, value)
    written = [one_of(stacked[j], x, value) for j, x in enumerate([] if grown else parts)]
    written = [*map(number, written)] if numbers else written
    items[:] = written or [RestOfNumbers(stacked) if numbers else Rest(stacked)]


def read_array(array: list, i):
    """`paddle.tensor.array_read`."""
    return pick(array, i) if is_static(i) else array_read(array, i)


def write_array(x, i, array: list | None = None) -> list:
    """`paddle.tensor.array_write`; a place that only a run knows is 0 in an empty list."""
    if is_static(i) and not array:
        held = scalar(i) == 0
        check_held(held, "array_write behind the end of an empty list", ValueError)
        i = 0
    return array_write(x, i, array)


def as_item(x):
    """An item of a list as a tensor."""
    if is_number(x):
        return as_tensor(x, kind_of(x))
    return x if hasattr(x, "spec") else current.top.constant(x)


NUMBERS[Number] = number
