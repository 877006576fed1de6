"""Writes to a part of a cache: where the whole lies, and with all places checked before the first.

`cache[0, :, at] = x` is recorded in three steps: the slice `cache[0]`, a copy of it with x in its
places, and the cache with this copy in it. The pass `whole_puts` makes one `put` into the whole
cache of them, so that nothing but x is moved. A run that fails must leave its states as they were,
so it works on copies of those that are written before the last check of an index. The pass
`early_checks` checks indices before the first write if they are known by then.

A slice `cache[:n]` after such writes is a view: it lies where the cache begins.
"""

from __future__ import annotations

from math import prod

from ..engine.core.dispatch import current
from ..engine.core.dtype import int64
from ..engine.core.record import Record, Spec
from ..engine.ir.cut import has_effect
from ..engine.ir.edit import count_uses, with_inputs, with_records
from ..engine.ir.program import INPUT, Program, open_sizes
from ..engine.ops.creation import arange, full
from ..engine.ops.gather import put, take
from ..engine.ops.marks import after
from ..engine.ops.movement import forwards, reshape, slice_, slice_assign
from ..engine.passes.lifetimes import roots, value_of_view
from ..engine.passes.registry import program_pass
from ..engine.passes.rewriting import made_by, rewritten
from ..ops.index_arrays import flat_index
from .concat_of_slices import places_of
from .transpose_rules import of_all_axes

# ---- a part of the whole -----------------------------------------------------------------------


@program_pass("whole_puts", looks_for=[slice_assign])
def whole_puts(program: Program) -> Program:
    """The program with a put into an array instead of one into a slice that is put back.

    >>> from minipaddle.ir.parser import parse
    >>> program = parse('''program p(x: float32[2, 3, 8], at: int64[], y: float32[3]) {
    ...   v1 = slice(x, index=(1,)) : float32[3, 8]
    ...   v2 = put(v1, at, y, axis=1) : float32[3, 8]
    ...   v3 = slice_assign(x, v2, index=(1,)) : float32[2, 3, 8]
    ...   return v3
    ... }''')
    >>> from minipaddle.passes.cache_writes import whole_puts
    >>> print(*(record.op.name for record in whole_puts(program).records[2:]))
    arange reshape flat_index reshape put reshape
    """
    if open_sizes(program):  # positions are numbers
        return program
    used = count_uses(program)

    def rule(record, x, part):
        inner, whole = record.inputs[1], record.inputs[0]
        if inner.op is not put or used[inner] > 1:
            return None
        source, at, _ = inner.inputs
        keys = of_all_axes(record.attrs["index"], len(record.shape))
        if source.op is not slice_ or source.inputs[0] is not whole or None in keys:
            return None
        if of_all_axes(source.attrs["index"], len(record.shape)) != keys:
            return None
        spans = [find_places(k, n) for k, n in zip(keys, record.shape, strict=True)]
        kept = [d for d, k in enumerate(keys) if type(k) is tuple]
        axis = kept[inner.attrs["axis"]]
        if None in spans or any(len(spans[d]) != record.shape[d] for d in range(axis, len(keys))):
            return None
        if any(span.step < 0 for span in spans[axis:]) or at.spec.size > record.shape[axis]:
            return None
        _, at, value = map(current.top.builder.tensor, made_by(part).inputs)
        places = places_before(spans[:axis], [d for d in kept if d < axis], record.shape)
        places = reshape(places, shape=(*places.spec.shape, *[1] * at.spec.ndim))
        rows = prod(record.shape[:axis]), record.shape[axis]
        index = flat_index(places, at, shape=rows)
        flat = reshape(x, shape=(prod(rows), *record.shape[axis + 1 :]))
        return reshape(put(flat, index, value, axis=0), shape=record.shape)

    return rewritten(program, {slice_assign: rule})


def find_places(k, n) -> range | None:
    """The places among n that an entry of an index takes; None if a size is open."""
    if isinstance(k, int) and isinstance(n, int):
        return range(k % n, k % n + 1)
    bounds = places_of(k, n)
    return None if bounds is None else range(*bounds)


def places_before(spans: list[range], kept: list[int], shape: tuple):
    """The positions that `spans`, one for each of the first axes of a shape, name in an array of
    these axes. The axes `kept` are those of the result.
    """
    steps = [prod(shape[d + 1 : len(spans)]) for d in range(len(spans))]
    start = sum(span.start * step for span, step in zip(spans, steps))
    if not kept:
        return full(shape=(), value=start, dtype=int64.numpy)
    positions = None
    for d in kept:
        step, sizes = spans[d].step * steps[d], [1] * len(kept)
        sizes[kept.index(d)] = len(spans[d])
        first = start if positions is None else 0
        term = arange(size=len(spans[d]), dtype=int64.numpy, start=first, step=step)
        term = term if len(kept) == 1 else reshape(term, shape=tuple(sizes))
        positions = term if positions is None else positions + term
    return positions


# ---- checks before writes ----------------------------------------------------------------------


@program_pass("early_checks", looks_for=[put])
def early_checks(program: Program) -> Program:
    """The program with the indices of later puts and takes checked before the first write to a
    state, where they are known by then.

    >>> from minipaddle.ir.parser import parse
    >>> program = parse('''program p(a: int64[], b: int64[]) {
    ...   state s0: float32[8]
    ...   v1 = put(s0, a, 1.0, axis=0) : float32[8]
    ...   v2 = put(v1, b, 2.0, axis=0) : float32[8]
    ...   update s0 = v2
    ...   return
    ... }''')
    >>> from minipaddle.passes.cache_writes import early_checks
    >>> print(*(record.op.name for record in early_checks(program).records))
    flat_index put put
    """
    first, records = first_write(program), program.records
    if first is None or open_sizes(program) or any(map(has_effect, records)):
        return program
    number = {r: t for t, r in enumerate(records)}
    known, moved, checks = set(), set(), {}
    for t, record in enumerate(records):
        asked = {pair for pair in find_checks(record) if pair not in known}
        known |= asked
        if t <= first or not asked:
            continue
        target = record if record.op is flat_index else record.inputs[1]
        needed = records_needed_since(first, target, number)
        if records[first] in needed:
            continue
        moved |= needed
        if target is not record:
            spec, ((_, size),) = Spec(target.shape, int64.numpy), asked
            check = record.derive(flat_index, [target], {"shape": (size,)}, spec, record.saved)
            checks[record] = check
    if not moved and not checks:
        return program
    order = [*records[:first], *(r for r in records if r in moved), *checks.values()]
    order += [r for r in records[first:] if r not in moved]
    return with_indices(program, order, checks)


def find_checks(record: Record) -> list[tuple[Record, int]]:
    """The indices that a put, a take or a `flat_index` checks, each with the size of its axis.
    Reshaped ones are the same; positions that `flat_index` gave need no check.
    """
    if record.op is flat_index:
        return [(origin(x), n) for x, n in zip(record.inputs, record.attrs["shape"])]
    if record.op not in (put, take):
        return []
    index, size = origin(record.inputs[1]), record.inputs[0].shape[record.attrs["axis"]]
    sure = index.op is flat_index and prod(index.attrs["shape"]) == size
    return [] if sure else [(index, size)]


def origin(index: Record) -> Record:
    """The index before it was reshaped."""
    while index.op in (after, reshape):
        index = index.inputs[0]
    return index


def records_needed_since(first: int, record: Record, number: dict[Record, int]) -> set[Record]:
    """The records from number `first` on that a record is computed from, and itself."""
    todo, needed = [record], set()
    while todo:
        r = todo.pop()
        if number.get(r, -1) >= first and r not in needed:
            needed.add(r)
            todo += r.inputs
    return needed


def with_indices(program: Program, order: list[Record], checks: dict[Record, Record]) -> Program:
    """The program in this order; the indices of some records are those that were checked."""
    new, records = {}, []
    for record in order:
        inputs = [new.get(x, x) for x in record.inputs]
        if record in checks:
            inputs[1] = checks[record]
        records.append(with_inputs(record, inputs))
        if records[-1] is not record:
            new[record] = records[-1]
    return with_records(program, records, new)


def first_write(program: Program) -> int | None:
    """When the first of the slices and puts runs that lead to the update of a state."""
    root = roots(program)
    states, first = {(s.record, 0) for s in program.states if s.update is not None}, None
    for t, record in enumerate(program.records):
        if record.op in (put, slice_assign) and root[record.inputs[0]] in states:
            states.add((record, 0))
            first = t if first is None else first
    return first


# ---- reads of the beginning --------------------------------------------------------------------


def is_beginning(record: Record) -> bool:
    """Whether a slice takes the first rows of an input or a state to which the program has written
    before. (Of another value the rest would be kept as long as the slice.)
    """
    x, keys = record.inputs[0], record.attrs["index"]
    if not keys or type(keys[0]) is not tuple or x.shape[1:] != record.shape[1:]:
        return False
    span = find_places(keys[0], x.shape[0])
    if span is None or (span.start, span.step) != (0, 1):
        return False
    if any(type(k) is tuple and (k[2] or 1) < 0 for k in keys):
        return False
    written = False
    while x.op is put or (below := value_of_view(x)) is not None:
        written = written or x.op is put
        x = x.inputs[0] if x.op is put else below[0]
    return written and x.op is INPUT


slice_.alias = lambda record: forwards(record) or is_beginning(record)
