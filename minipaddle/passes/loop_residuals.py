"""The derivative of a loop does in an iteration only what has to be done there.

It computes each iteration anew, from the values that were carried into it, and adds up the
gradients of weights, one product for each iteration. After this pass

- the loop stacks the expensive values of its body that the loop back needs (products, exp, tanh),
  and the loop back reads them;
- the loop back puts the operands of a weight's gradient into an array, and one large product after
  the loop replaces the small ones: Σₜ xₜᵀ gₜ = [x₁; x₂; …]ᵀ [g₁; g₂; …].
"""

from __future__ import annotations

from typing import NamedTuple

from ..engine.codegen.writer import FEW, cost_of
from ..engine.core.record import Record
from ..engine.ir.control import while_loop
from ..engine.ir.edit import count_uses, substitute, users_of, with_records
from ..engine.ir.program import NUMBER, Program, item_of, open_sizes
from ..engine.ops.creation import full
from ..engine.ops.elementwise import add, subtract
from ..engine.ops.gather import put, take
from ..engine.ops.movement import reshape
from ..engine.passes.registry import program_pass
from ..ops.products import product
from .batch_weight_gradients import profitable
from .loop_edit import LoopEdit, first_written, is_item, move_item


class LoopPair(NamedTuple):
    """A loop and its derivative. `kept` are pairs: a value of an iteration, and the same one in the
    derivative, whose `index` is the number of the iteration.
    """

    forward: Record
    backward: Record
    kept: list[tuple[Record, Record]]
    index: Record


@program_pass("loop_residuals", looks_for=[while_loop])
def loop_residuals(program: Program) -> Program:
    """The program whose loops keep the products that their derivatives need."""
    loops = [r for r in program.records if r.op is while_loop]
    if open_sizes(program):
        return program
    read = [(a, b) for b in loops for a in {x.inputs[0]: None for x in b.inputs if is_item(x)}]
    pairs = [pair for a, b in read if (pair := match(a, b)) is not None]
    members = {loop for pair in pairs for loop in pair[:2]}
    if not pairs or len(members) < 2 * len(pairs):
        return program  # nothing to do; or a derivative of a derivative
    return LoopRewriter(program, pairs).run()


# ---- the same records in both loops --------------------------------------------------------------


def match(forward: Record, backward: Record) -> LoopPair | None:
    """A loop and another one that computes its iterations again; None if it does not."""
    keeps = forward.attrs["keep"] and not backward.attrs["keep"]
    if not keeps or "trip_count" not in forward.attrs or "writes" in forward.attrs:
        return None
    n, m = forward.attrs["carried"], backward.attrs["carried"]
    body, other = forward.attrs["body"], backward.attrs["body"]
    outer = dict(zip(other.inputs[m:], backward.inputs[m:], strict=True))
    takes: dict[int, Record] = {}
    for record in other.records:
        stack = outer.get(record.inputs[0]) if record.op is take else None
        ours = stack is not None and is_item(stack) and stack.inputs[0] is forward
        if ours and record.attrs["axis"] == 0 and stack.attrs["k"] > n:
            takes[stack.attrs["k"] - n - 1] = record
    indices = {record.inputs[1] for record in takes.values()}
    if len(indices) != 1 or not counts_down(forward, backward, *indices):
        return None
    inner = {value: x for x, value in outer.items()}
    constants = zip(body.inputs[n:], forward.inputs[n:], strict=True)
    same = {x: inner[value] for x, value in constants if value in inner}
    same |= {body.inputs[k]: record for k, record in takes.items()}
    known = {key(r, r.inputs): r for r in other.records}
    for record in body.records:
        if record.op.kind == "control":
            continue  # its key does not say what is in its regions
        twin = known.get(key(record, [same.get(x, x) for x in record.inputs]))
        if twin is not None:
            same[record] = twin
    kept = [(r, same[r]) for r in find_kept(body, other, same)]
    useful = kept or any(r.op is product for r in other.records)
    return LoopPair(forward, backward, kept, *indices) if useful else None


def find_kept(body: Program, other: Program, same: dict[Record, Record]) -> dict[Record, None]:
    """The values of an iteration that its derivative should read, of those that it computes again
    for others: the expensive ones, and in the place of these a smaller one that cheap operators
    compute from them.
    """
    used, users = count_uses(body), users_of(body)
    own = {same[r]: r for r in body.records if r in same}
    late = [x for r in other.records if r not in own for x in r.inputs]
    needed = dict.fromkeys(own[x] for x in [*late, *other.outputs] if x in own)
    kept: dict[Record, None] = {}

    def sources(record: Record) -> dict[Record, None]:
        """The expensive values that a value is computed from."""
        if record not in same or same[record] not in own or record in kept:
            return {}
        if record.op is product:
            return {following(record, used, users, same): None}
        if expensive(record):
            return {record: None}
        return {r: None for x in record.inputs for r in sources(x)}

    for record in needed:
        origins = sources(record)
        smaller = record.spec.nbytes < sum(r.spec.nbytes for r in origins)
        kept |= {record: None} if smaller else origins
    return kept


def expensive(record: Record) -> bool:
    """Whether a value needs a mathematical function, a division or many operations."""
    if record.op.kind != "elementwise":
        return record.op.kind != "movement"
    numbers = tuple(x.attrs["value"] if x.op is NUMBER else None for x in record.inputs)
    return cost_of(record.op, numbers, tuple(record.attrs.items())) > FEW


def following(record: Record, used, users, same) -> Record:
    """The sum that alone reads a product, of the same size, in both loops: what is added need not
    be read again then. Else the product itself.
    """
    while used[record] == 1 and record in users:
        (after,) = users[record]
        if after.op is not add or after.spec != record.spec or after not in same:
            break
        record = after
    return record


def counts_down(forward: Record, backward: Record, index: Record) -> bool:
    """Whether a value of the loop back is the number of the last iteration in its first one, and
    one less in each that follows: it begins with the count of the loop.
    """
    body = backward.attrs["body"]
    if index not in body.outputs[: backward.attrs["carried"]] or index.op is not subtract:
        return False
    c, (before, one) = body.outputs.index(index), index.inputs
    first = backward.inputs[c]
    count = is_item(first) and first.inputs[0] is forward
    steps = before is body.inputs[c] and one.op is NUMBER and one.attrs["value"] == 1
    return count and first.attrs["k"] == forward.attrs["carried"] and steps


def key(record: Record, inputs) -> tuple:
    """The operator of a record, its attributes and its inputs, numbers by value."""
    values = [(x.attrs["value"], x.dtype) if x.op is NUMBER else x for x in inputs]
    return record.op, repr(sorted(record.attrs.items())), *values


# ---- both loops anew -----------------------------------------------------------------------------


class LoopRewriter:
    """Writes a program with other loops: `new` maps old records to their replacements."""

    def __init__(self, program: Program, pairs: list[LoopPair]):
        self.program, self.new, self.records = program, {}, []
        self.forward = {pair.forward: pair for pair in pairs}
        self.backward = {pair.backward: pair for pair in pairs}
        self.kept: dict[Record, list[Record]] = {}
        self.sums: dict[tuple[Record, int], Record] = {}  # (loop, result): what is added to it

    def run(self) -> Program:
        """The program."""
        for record in self.program.records:
            if record in self.forward:
                self.keep_values(record, self.forward[record])
            elif record in self.backward:
                self.read_values(record, self.backward[record])
            elif is_item(record) and record.inputs[0] in self.new:
                self.move(record)
            else:
                self.records.append(substitute(record, self.new))
        return with_records(self.program, self.records, self.new)

    def add(self, record: Record) -> Record:
        """Add a record."""
        self.records.append(record)
        return record

    def move(self, item: Record) -> None:
        """The same result of the new loop, and the sum of its products if that is missing there."""
        moved = self.add(move_item(item, self.new[item.inputs[0]]))
        total = self.sums.get((item.inputs[0], item.attrs["k"]))
        if total is not None:
            moved = self.add(item.derive(add, [moved, total], {}, item.spec))
        self.new[item] = moved

    def edit(self, loop: Record) -> LoopEdit:
        """A loop with the inputs that it has in the new program."""
        return LoopEdit(loop.copy([*map(self.new.get, loop.inputs, loop.inputs)]))

    def zeros(self, loop: Record, shape, dtype) -> Record:
        """An array of zeros at the line of a loop."""
        attrs = {"shape": shape, "value": 0.0, "dtype": dtype}
        return self.add(loop.derive(full, [], attrs, (shape, dtype)))

    def keep_values(self, loop: Record, pair: LoopPair) -> None:
        """The loop, which stacks some values of each iteration."""
        edit = self.edit(loop)
        edit.written += [record for record, _ in pair.kept]
        new = self.new[loop] = self.add(edit.close())
        places = range(first_written(new), len(new.shape))
        self.kept[loop] = [self.add(item_of(new, k, 0)) for k in places]

    def read_values(self, loop: Record, pair: LoopPair) -> None:
        """The loop back, which reads these values, and puts the operands of sums of products into
        arrays.
        """
        edit, new, body, index = self.edit(loop), {}, loop.attrs["body"], pair.index
        for (_, twin), stack in zip(pair.kept, self.kept[pair.forward], strict=True):
            inputs = [edit.constant(stack), index]
            new[twin] = twin.derive(take, inputs, {"axis": 0}, twin.spec)
        edit.records = []
        for record in body.records:
            edit.records += [substitute(record, new)] if record not in new else []
            edit.records += new.values() if record is index else ()
        edit.rename(new)
        parts = {c: part for c in range(edit.n) if (part := term(edit, c)) is not None}
        trips = pair.forward.attrs["trip_count"]
        stacks = {c: [self.stack(edit, x, index, trips) for x in part.inputs]
                  for c, part in parts.items()}  # fmt: skip
        for c in parts:
            edit.next[c] = edit.now[c]
        self.new[loop] = self.add(edit.close())
        for c, part in parts.items():
            operands = [self.joined(loop, x, y) for x, y in zip(part.inputs, stacks[c])]
            total = part.derive(product, operands, part.attrs, part.spec)
            self.sums[loop, c] = self.add(total)

    def stack(self, edit: LoopEdit, x: Record, index: Record, trips: int) -> Record | int:
        """The values of x in all iterations: an array, or the number of the carried value."""
        taken = x.op is take and x.inputs[1] is index and x.attrs["axis"] == 0
        if taken and x.inputs[0] in edit.inner:
            return edit.outer[edit.inner.index(x.inputs[0])]
        now = edit.carry(self.zeros(edit.loop, (trips, *x.shape), x.dtype))
        edit.records.append(x.derive(put, [now, index, x], {"axis": 0}, now.spec))
        edit.next[-1] = edit.records[-1]
        return len(edit.now) - 1

    def joined(self, loop: Record, x: Record, stack: Record | int) -> Record:
        """A stack of matrices as one matrix."""
        whole = self.add(item_of(self.new[loop], stack, 0)) if isinstance(stack, int) else stack
        shape = (whole.shape[0] * x.shape[0], *x.shape[1:])
        return self.add(x.derive(reshape, [whole], {"shape": shape}, (shape, x.dtype)))


def term(edit: LoopEdit, c: int) -> Record | None:
    """The product that each iteration adds to carried value c, which nothing else reads."""
    total, now = edit.next[c], edit.now[c]
    if total.op is not add or now not in total.inputs:
        return None
    part = total.inputs[total.inputs[0] is now]
    if part.op is not product or not profitable(part):
        return None
    read = [x for r in edit.records for x in r.inputs] + edit.next
    alone = read.count(now) == read.count(part) == read.count(total) == 1
    rows = part.attrs["x_perm"][1] == part.attrs["y_perm"][0] == 0  # both are summed over these
    return part if alone and rows else None
