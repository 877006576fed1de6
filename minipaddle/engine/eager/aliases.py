"""Aliases by choice: a condition or a loop chooses which tensor a value is. So an in-place change
of a tensor that may have another name is noticed (see `Builder.write`).
"""

from __future__ import annotations

from ..core.dispatch import note_refusal
from ..ir.builder import alias_error


def note_choice_aliases(tracer, branches, results) -> None:
    """Note that a result of a branch may be an outer tensor."""
    for b in branches:
        tracer.builder.invalid |= b.builder.invalid
        for out, r in zip(results, b.results, strict=True):
            if r.spec:
                out.array.may_alias(*outer(b, r))


def note_loop_aliases(tracer, body, carried, outs, last) -> None:
    """Note that a result of a loop may be its initial value, or the result of an iteration."""
    builder, inner = tracer.builder, body.builder
    builder.invalid |= inner.invalid
    for p in inner.invalid.keys() & inner.captured.keys():  # the next iteration uses it again
        raise note_refusal(inner.invalid[p])
    possible_memory = [r.value.array.possible_memory() if r.spec else [] for r in body.results]
    outer_memory = [outer(body, r) for r in body.results]
    sources = [{tracer.lift(x), *memory} for x, memory in zip(carried, outer_memory, strict=True)]
    for _ in sources:  # a value may have been carried in another one's place
        for k, memory in enumerate(possible_memory):
            sources[k].update(*(sources[j] for j, p in enumerate(body.given) if p in memory))
    written = {k: inner.values[own] for k, own in enumerate(body.given)}
    written = {k: r for k, r in written.items() if r is not inner.program.inputs[k]}
    for k, record in written.items():
        if not sources[k].isdisjoint(inner.captured):
            raise note_refusal(alias_error(record.where))
        for p in sources[k]:
            builder.invalidate([p, *p.aliases()], record.where)
    for k, (x, memory) in enumerate(zip(outs, sources, strict=True)):
        x.array.may_alias(*memory)
        if k not in last and not outer_memory[k].isdisjoint(inner.find_written()):
            builder.invalid[x.array] = alias_error(builder.value(x.array).where)


def outer(region, r) -> set:
    """The symbolic arrays of the outside that a result of a region may be."""
    own, used = region.builder.values, region.builder.captured
    memory = r.value.array.possible_memory() if r.spec else []
    return {p for p in memory if p in used or p not in own}
