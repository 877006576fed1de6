"""Which memory a tensor is that a condition or a loop chose: so that an in-place change of one of
two names of a tensor is noticed (see `Builder.write`).
"""

from __future__ import annotations

from ..core.dispatch import current, note_refusal
from ..ir.builder import chosen
from .tensor import Tensor


def one_of(x: Tensor, *items) -> Tensor:
    """x, which is one of `items` (tensors or not); which one, only the program decides."""
    x.array.may_be(*(current.top.borrow(item) for item in items if isinstance(item, Tensor)))
    return x


def related_by_choice(tracer, branches, results) -> None:
    """What a branch gives may be what it was given."""
    for b in branches:
        tracer.builder.stale |= b.builder.stale
        for out, r in zip(results, b.results, strict=True):
            if r.spec:
                out.array.may_be(*outer(b, r))


def related_by_loop(tracer, body, carried, outs, last) -> None:
    """Note which memory the values are that a loop gives: what came in, or what a round gave."""
    builder, inner = tracer.builder, body.builder
    builder.stale |= inner.stale
    for p in inner.stale.keys() & inner.captured.keys():  # the next round uses it again
        raise note_refusal(inner.stale[p])
    origins = [r.value.array.origins() if r.spec else [] for r in body.results]
    given = [outer(body, r) for r in body.results]
    sources = [{tracer.borrow(x), *found} for x, found in zip(carried, given, strict=True)]
    for _ in sources:  # what went round may have come from another one's place
        for k, found in enumerate(origins):
            sources[k].update(*(sources[j] for j, p in enumerate(body.given) if p in found))
    written = {k: inner.values[own] for k, own in enumerate(body.given)}
    written = {k: r for k, r in written.items() if r is not inner.program.inputs[k]}
    for k, record in written.items():
        if not sources[k].isdisjoint(inner.captured):
            raise note_refusal(chosen(record.where))
        for p in sources[k]:
            builder.spoil([p, *p.relatives()], record.where)
    for k, (x, found) in enumerate(zip(outs, sources, strict=True)):
        x.array.may_be(*found)
        if k not in last and not given[k].isdisjoint(inner.changed()):
            builder.stale[x.array] = chosen(builder.value(x.array).where)


def outer(region, r) -> set:
    """The promises of the outside that a result of a region may be."""
    own, used = region.builder.values, region.builder.captured
    found = r.value.array.origins() if r.spec else []
    return {p for p in found if p in used or p not in own}
