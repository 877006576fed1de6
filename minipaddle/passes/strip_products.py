"""Strips: the matrix between several products is computed a few rows at a time, and never stored.

    p = softmax(q kᵀ);  dp = do vᵀ;  ds = p (dp - Σ p dp);  dq = ds k;  dk = dsᵀ q;  dv = pᵀ do

The backward of attention reads two products with large results (scores and dp), computes rows of
them in one loop nest, and multiplies these rows by three other matrices. All of it becomes one
group: for each strip of rows the products before the nest, the nest, and the products after it. A
product after it either gives rows of its result (dq), or sums over all rows: then each strip adds
its part (dk, dv).

The scores of the forward are computed again in the backward: its readers get copies of the records
from the product on, so that no large matrix lives from one to the other.
Sources: Dao and others, "FlashAttention", 2022, section 3.1 (recomputation); Dao,
"FlashAttention-2", 2023 (which cuts the columns, too, and adds up parts of dq).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from ..engine.core import dtype as dt
from ..engine.core.record import Record
from ..engine.core.slots import slot
from ..engine.ir.control import fused
from ..engine.ir.cut import RECOMPUTED, depending, has_effect
from ..engine.ir.edit import in_branches, outline, substitute, with_inputs, with_records
from ..engine.ir.program import NUMBER, Program, item_of
from ..engine.ops.linalg import matmul
from ..engine.ops.nn import softmax
from ..engine.passes.cse import cse
from ..engine.passes.dead_code import dead_code
from ..engine.passes.fusion_groups import Fusion, Group
from ..engine.passes.nest import Nest, fusable
from ..engine.passes.registry import program_pass
from ..engine.passes.sink_into_consumer import sink_into_consumer
from ..ops.products import product
from .epilogue import begins_with_product, reads_rows, source_of
from .short_sums import with_short_sums

LARGER = 4
"""How many times as large as both operands a result is, at least: a hidden layer's is smaller."""

FROM = 1 << 20
"""Fewest bytes of a large result: less stays in the cache anyway."""


@slot("strip_products.profitable")
def profitable(scores: Record) -> bool:
    """Whether the result of a product is so large that it is computed in strips, and computed again
    in the backward.
    """
    if scores.op not in (product, matmul):
        return False
    operands = sum(x.spec.size for x in scores.inputs)
    return scores.spec.size >= LARGER * operands and scores.spec.nbytes >= FROM


def is_larger(scores: Record) -> bool:
    """Whether a product of batches has a larger result than each operand."""
    batched = scores.op in (product, matmul) and scores.spec.ndim > 2
    return batched and scores.spec.size > max(x.spec.size for x in scores.inputs)


@program_pass("strip_products", looks_for=[product], fused_attention=(True,), strip_kernel=(None,))
def strip_products(program: Program, *, fused_attention: bool, strip_kernel) -> Program:
    """The program in which large matrices between products are computed in strips: those for which
    it pays on a CPU, or those of groups for which there is a `strip_kernel` (region -> bool).
    """
    target = StripTarget(profitable)
    if fused_attention and strip_kernel:
        program, target = with_short_sums(program), StripTarget(is_larger, strip_kernel, dt.FLOATS)
    return in_strips(program, target) if fused_attention else program


class StripTarget(NamedTuple):
    """Which products have large results, which groups a kernel computes, and of which dtypes."""

    is_large: Callable[[Record], bool]
    fits: Callable[[Program], bool] = bool
    dtypes: tuple = (dt.float32.numpy, dt.float64.numpy)


def in_strips(program: Program, target: StripTarget) -> Program:
    """The program, its branches and loops too, with groups for large matrices."""
    program = in_branches(program, partial(in_strips, target=target))
    large = [r for r in program.records if target.is_large(r)]
    while large:
        changed, own = with_own_counters(program, large)
        copies = {}
        for scores in reversed(large):  # a copy changes later records alone
            changed, copy, new = with_copies(changed, own.get(scores, scores))
            copies = {r: new.get(x, x) for r, x in copies.items()} | {scores: copy}
        changed = with_strips(changed, target)
        outside = {*changed.records}
        if outside.isdisjoint(copies.values()):
            return changed
        large = [r for r in large if copies[r] not in outside]
    return program


# ---- large values computed again ----------------------------------------------------------------


def counters_of(program: Program) -> set[Record]:
    """The values that are computed from counters alone, such as a causal mask."""
    counters: set[Record] = set()
    for r in program.records:
        if is_cheap(r) and all(x.op is NUMBER or x in counters for x in r.inputs):
            counters.add(r)
    return counters


def with_own_counters(program: Program, large: list[Record]) -> tuple[Program, dict]:
    """The program in which each reader of a large value that is computed from counters has a copy
    of its own, which costs nothing in a loop nest; and what stands for records that changed.
    """
    counters, records = counters_of(program), []

    def copy(x: Record) -> Record:
        if x not in counters:
            return x
        records.append(x.copy([*map(copy, x.inputs)]))
        return records[-1]

    new: dict[Record, Record] = {}
    for r in program.records:
        reads = r not in counters and any(is_large(x, s) for x in r.inputs for s in large)
        inputs = [copy(x) if x in counters and reads else new.get(x, x) for x in r.inputs]
        records.append(with_inputs(r, inputs))
        if records[-1] is not r:
            new[r] = records[-1]
    return dead_code(with_records(program, records, new)), new


def with_copies(program: Program, scores: Record) -> tuple[Program, Record, dict]:
    """The program with copies of `scores` and of the large values computed from them, for all
    readers that depend on the first product of these values; the copy, or `scores` if there are no
    such readers; and what stands for records that changed.
    """
    rows = {scores, *depending(program, [scores])}
    reading = (r for r in program.records if r.op is product and not rows.isdisjoint(r.inputs))
    first = next(reading, None)
    late = {*depending(program, [first])} if first is not None else set()
    again = to_copy(program, scores, rows - late - {first})
    readers = [r for r in program.records if r in late and not again.isdisjoint(r.inputs)]
    again = find_needed(again, readers)
    if scores not in again or not all(map(is_cheap, again - {scores})):
        return program, scores, {}
    copies: dict[Record, Record] = {}
    new: dict[Record, Record] = {}
    records: list[Record] = []
    for r in program.records:
        if r is readers[0]:
            for x in program.records:
                if x in again:
                    copies[x] = x.copy([copies.get(y) or new.get(y, y) for y in x.inputs])
            records += copies.values()
        known = {**new, **copies} if r in late else new
        now = with_inputs(r, [known.get(x, x) for x in r.inputs])
        records.append(now)
        if now is not r:
            new[r] = now
    return dead_code(with_records(program, records, new)), copies[scores], new


def find_needed(records: set[Record], readers: list[Record]) -> set[Record]:
    """Those of the records that readers need."""
    needed, todo = set(), [*readers]
    while todo:
        more = records.intersection(todo.pop().inputs) - needed
        needed |= more
        todo += more
    return needed


def to_copy(program: Program, scores: Record, early: set[Record]) -> set[Record]:
    """The records that depend on the scores alone, with the large values that these read."""
    counters, known = counters_of(program), {*program.records}
    copied, todo = set(early), [x for r in early - {scores} for x in r.inputs]
    while todo:
        x = todo.pop()
        wanted = x in counters or (is_large(x, scores) and is_cheap(x))
        if wanted and x in known and x not in copied:
            copied.add(x)
            todo += x.inputs
    return copied


def is_large(record: Record, scores: Record) -> bool:
    """Whether a value has as many elements as a matrix of scores."""
    return is_tensor(record) and record.spec.size >= scores.shape[-1] * scores.shape[-2]


def is_tensor(record: Record) -> bool:
    """Whether a record is one array."""
    return record.op is not NUMBER and record.dtype is not None


def is_cheap(record: Record) -> bool:
    """Whether a record can be copied into a loop nest."""
    return fusable(record) and not has_effect(record)


def recompute_from_small(record: Record, have: set) -> list[Record] | None:
    """The records that compute a large value from what there is and from small values: `cut` does
    not keep it for the backward.
    """
    if record.dtype is None or record.spec.nbytes < FROM:
        return None
    records, todo = {record: None}, [record]
    while todo:
        x = todo.pop()
        if not (profitable(x) or x.op is softmax or is_cheap(x)):
            return None
        large = [y for y in x.inputs if is_tensor(y) and LARGER * y.spec.size > record.spec.size]
        for y in large if not profitable(x) else ():
            if y not in have and y not in records:
                records[y] = None
                todo.append(y)
    return sorted(records, key=lambda r: r.time)


RECOMPUTED.append(recompute_from_small)


# ---- groups -------------------------------------------------------------------------------------


class ProductStrips(NamedTuple):
    """A group, the products whose results it has, the records that it replaces, and the number of
    the last record that it needs.
    """

    group: Record
    results: list[Record]
    gone: set[Record]
    at: int


def with_strips(program: Program, target: StripTarget) -> Program:
    """The program in which nests between products, and these products, are groups."""
    fusion = Fusion(program)
    fusion.join_all()
    sink_into_consumer(fusion)
    gone, new = set(), {}
    groups: dict[int, list[ProductStrips]] = {}
    for group in dict.fromkeys(fusion.of.values()):
        strips = strips_of(group, fusion, target)
        if strips is not None and gone.isdisjoint(strips.gone):
            gone |= strips.gone
            groups.setdefault(strips.at, []).append(strips)
    records: list[Record] = []
    for k, r in enumerate([None, *program.records], -1):
        if r is not None and r not in gone:
            records.append(substitute(r, new))
        for strips in groups.get(k, ()):
            whole = substitute(strips.group, new)
            new.update({r: item_of(whole, j) for j, r in enumerate(strips.results)})
            records += [whole, *map(new.get, strips.results)]
    return with_records(program, records, new)


def strips_of(group: Group, fusion: Fusion, target: StripTarget) -> ProductStrips | None:
    """The group around a nest; None if its rows are needed elsewhere."""
    sources = sources_of(group.records, fusion).values() if group.open else ()
    if not any(map(target.is_large, sources)):
        return None
    records = with_own_inputs(group, fusion)
    inside, outputs = {*records}, fusion.outputs(records)
    pairs = [(r, x) for x in outputs for r in fusion.users.get(x, ()) if r not in inside]
    readers = [r for r, _ in pairs]
    if not readers:
        return None
    rows = outputs[0].spec
    if (
        not fusion.needed.isdisjoint(outputs)
        or len({*readers}) < len(readers)
        or rows.dtype not in target.dtypes
        or any(x.spec != rows for x in outputs)
        or not all(can_follow(*pair) for pair in pairs)
        or (len(readers) == 1 and sums_rows(*pairs[0]))
    ):
        return None
    leads = {x: first for x, first in sources_of(records, fusion).items()
             if first.spec == rows and is_plain(first)
             and reads_rows(Nest(records, outputs), x, rows.shape[-1])}  # fmt: skip
    if not any(map(target.is_large, leads.values())):
        return None
    gone = {*leads, *leads.values(), *records, *readers}
    ordered = in_order(gone - {*readers}, fusion)
    ordered.sort(key=lambda r: r not in leads.values())
    inputs, region = outline([*ordered, *readers], readers)
    at = max(fusion.order.get(x, -1) for x in inputs)
    outside = (u for r in readers for u in fusion.users.get(r, ()))
    region = cse(region)
    if any(fusion.order[u] <= at for u in outside) or not target.fits(region):
        return None
    specs = tuple(r.spec for r in readers)
    whole = records[-1].derive(fused, inputs, {"region": region}, specs, 0)
    return ProductStrips(whole, readers, gone, at)


def with_own_inputs(group: Group, fusion: Fusion) -> list[Record]:
    """The records of a group, and those that it alone uses and that its loops can compute: with all
    that these are computed from, as a mask from counters, or without.
    """
    records = {*group.records}

    def own(todo: list[Record]) -> set[Record]:
        owned: set[Record] = set()
        while todo:
            x = todo.pop()
            used = x in fusion.of and {*fusion.users[x]} <= records | owned and is_cheap(x)
            if used and x not in records | owned:
                owned.add(x)
                todo += x.inputs
        return owned

    for x in dict.fromkeys(x for r in group.records for x in r.inputs):
        for more in (own([x]), own([x]) & {x}):
            if more and fusion.is_loop(in_order(records | more, fusion)):
                records |= more
                break
    return in_order(records, fusion)


def in_order(records, fusion: Fusion) -> list[Record]:
    """Records in the order of the program."""
    return sorted(records, key=fusion.order.get)


def sources_of(records, fusion: Fusion) -> dict[Record, Record]:
    """The values that records read of a product which nothing else needs, and that product."""
    sources, inside = {}, {*records}
    for x in dict.fromkeys(x for r in records for x in r.inputs):
        first = source_of(x) if x not in inside else None
        if first in fusion.of and first.op is product and first in (x, *x.inputs):
            users = {u for y in (x, first) for u in fusion.users[y]} - {x}
            if users <= inside and fusion.needed.isdisjoint((x, first)):
                sources[x] = first
    return sources


def is_plain(first: Record) -> bool:
    """Whether a product writes its rows in order, and one matrix of each operand makes one."""
    lead = range(first.spec.ndim - 2)
    attrs, (x, y) = first.attrs, first.inputs
    same = all(x.shape[attrs["x_perm"][d]] == y.shape[attrs["y_perm"][d]] for d in lead)
    return same and attrs["out_perm"] == tuple(range(first.spec.ndim))


def can_follow(record: Record, x: Record) -> bool:
    """Whether a product can be computed from strips of x: x is read once, matrix by matrix in
    order, and the columns of the other operand and of the result are neighbours.
    """
    if record.op is not product or [*record.inputs].count(x) != 1 or record.dtype != x.dtype:
        return False
    attrs, left = record.attrs, record.inputs[0] is x
    other = record.inputs[1 if left else 0]
    own, its = (attrs[k] for k in (("x_perm", "y_perm") if left else ("y_perm", "x_perm")))
    free = -1 if left else -2  # the axis of the other operand that is not summed
    ndim = x.spec.ndim
    return (
        own[:-2] == tuple(range(ndim - 2))
        and x.shape[:-2] == tuple(other.shape[d] for d in its[:-2])
        and its[free] == ndim - 1
        and attrs["out_perm"][-1] == ndim + free
        and other.shape[-1] > 1
        and min(x.shape[-2:]) > 1
    )


def sums_rows(record: Record, x: Record) -> bool:
    """Whether a product sums over the rows of x."""
    attrs, rows = record.attrs, x.spec.ndim - 2
    return (attrs["x_perm"][-1] if record.inputs[0] is x else attrs["y_perm"][-2]) == rows


# ---- the parts of a group -----------------------------------------------------------------------


def is_strips(record: Record) -> bool:
    """Whether a record is a group with products before and after its nest, more than one of each
    or of either: the others are chains (`back_to_back_gemm`).
    """
    if not begins_with_product(record):
        return False
    before, _, after = parts(record.attrs["region"])
    return len(before) + len(after) > 2 and all(r.op is product for r in after)


def parts(region: Program) -> tuple[list[Record], list[Record], list[Record]]:
    """The products before the nest, the records of the nest, and the products after it."""
    after = [*region.outputs]
    before = [r for r in region.records if r.op is product and r not in after]
    nest = [r for r in region.records if r.op is not product]
    return before, nest, after
