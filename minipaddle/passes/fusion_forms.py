"""Whether records are one loop nest, asked once for groups that look alike."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import lru_cache

from ..engine.core import slots
from ..engine.core.polynomial import Polynomial
from ..engine.ir.program import NUMBER
from ..engine.ops.movement import slice_
from ..engine.passes.fusion_groups import RECOGNIZERS, is_nest


class Forms:
    """The form of records, without their names: groups of equal form make equal nests.

    `numbers` and the count outlive a program; what has sizes that only a run knows is its own.
    """

    def __init__(self, numbers: dict[tuple, int] | None = None, count=None):
        self.numbers = {} if numbers is None else numbers
        self.count = count or itertools.count(-1, -1)
        self.own: dict[tuple, int] = {}
        self.kinds: dict[tuple, int] = {}

    def number(self, *key) -> int:
        """A negative number, the same for equal keys."""
        numbers = self.own if is_open(key) else self.numbers
        number = numbers.get(key)
        return numbers.setdefault(key, next(self.count)) if number is None else number

    def of(self, records, outputs) -> tuple:
        """Each record with the origin of its inputs, then the outputs of the group. A slice of what
        lies outside is a load: where it begins makes no difference.
        """
        form, seen, kinds, inside = [], {}, self.kinds, set(records)
        for r in records:
            for x in r.inputs:
                if x not in seen:  # from outside
                    seen[x] = len(seen)
                    if x not in kinds:
                        kinds[x] = self.number(x.op is NUMBER, x.dtype, x.shape)
                    form.append(kinds[x])
                form.append(seen[x])
            seen[r] = len(seen)
            kind = r, r.op is slice_ and r.inputs[0] not in inside
            if kind not in kinds:
                steps = [k[2] if type(k) is tuple else type(k) for k in r.attrs.get("index", ())]
                attrs = steps if kind[1] else r.attrs.items()
                kinds[kind] = self.number(r.op, r.dtype, r.shape, *attrs)
            form.append(kinds[kind])
        return *form, *map(seen.get, outputs)


def is_open(key) -> bool:
    """Whether a key has a size in it that only a run knows."""
    parts = [*key]
    for part in parts:
        if type(part) is tuple:
            parts += part
        elif isinstance(part, Polynomial):
            return True
    return False


MOST = 1 << 14
"""Answers that are remembered."""


@lru_cache(1)
def answers_since(epoch: int) -> tuple[dict, Iterator[int], dict]:
    """The numbers of keys and the answers by form, of all programs since a slot has changed.
    Ranks are threads: each program keeps the tables that it began with.
    """
    return {}, itertools.count(-1, -1), {}


class Recognizer:
    """Says whether records are one nest, and remembers it by their form: the second program of a
    model, its next layer and its next pass ask little that is new.
    """

    def __init__(self):
        if len(answers_since(slots.epoch)[2]) > MOST:
            answers_since.cache_clear()
        *numbers, self.found = answers_since(slots.epoch)
        self.forms = Forms(*numbers)

    def __call__(self, records, outputs) -> bool:
        form = self.forms.of(records, outputs)
        if form not in self.found:
            self.found[form] = is_nest(records, outputs)
        return self.found[form]


RECOGNIZERS.append(Recognizer)
