"""Whether records are one loop nest, asked once for layers that look alike."""

from __future__ import annotations

from ..engine.ir.program import NUMBER
from ..engine.ops.movement import slice_
from ..engine.passes.fusion_groups import RECOGNIZERS, is_nest


class Forms:
    """What records look like without their names: groups of equal form make equal nests."""

    def __init__(self):
        self.numbers: dict[tuple, int] = {}
        self.kinds: dict[tuple, int] = {}

    def number(self, *key) -> int:
        """A negative number, the same for equal keys."""
        return self.numbers.setdefault(key, -len(self.numbers) - 1)

    def of(self, records, outputs) -> tuple:
        """Each record with the origin of its inputs, then the outputs of the group. A slice of what
        lies outside is a load: where it begins makes no difference.
        """
        form, seen, kinds, inside = [], {}, self.kinds, set(records)
        for r in records:
            for x in r.inputs:
                if x not in seen:  # from outside
                    seen[x] = len(seen)
                    form.append(self.number(x.op is NUMBER, x.dtype, x.shape))
                form.append(seen[x])
            seen[r] = len(seen)
            kind = r, r.op is slice_ and r.inputs[0] not in inside
            if kind not in kinds:
                steps = [k[2] if type(k) is tuple else type(k) for k in r.attrs.get("index", ())]
                attrs = steps if kind[1] else r.attrs.items()
                kinds[kind] = self.number(r.op, r.dtype, r.shape, *attrs)
            form.append(kinds[kind])
        return *form, *map(seen.get, outputs)


class Recognizer:
    """Says whether records are one nest, and remembers it by their form."""

    def __init__(self):
        self.forms, self.found = Forms(), {}

    def __call__(self, records, outputs) -> bool:
        form = self.forms.of(records, outputs)
        if form not in self.found:
            self.found[form] = is_nest(records, outputs)
        return self.found[form]


RECOGNIZERS.append(Recognizer)
