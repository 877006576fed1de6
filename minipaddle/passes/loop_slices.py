"""A loop reads and writes slices of arrays where they lie.

An iteration that takes slice t of an array, or the t-th from the end, is given that slice (`reads`
of `while_loop`), and what it puts into an array of which it reads nothing is written there
(`writes`): in C both are pointers, which move by a slice in each iteration. An array that each
iteration fills is not carried, and needs no zeros before the loop. After this pass

- `take(x, i)` of a constant x is an input of the body;
- `put(y, i, v)` and `scatter_add(y, i, v)` of a carried y, which nothing else reads, are an output
  v; what y was before is added after the loop, unless it was zero;
- the outputs of a sequence, which are the history of a carried value without its first element and
  with its last one, are an output, too.
"""

from __future__ import annotations

from ..engine.core.record import Record, Spec
from ..engine.ir.control import while_loop
from ..engine.ir.cut import needed
from ..engine.ir.edit import count_uses, substitute, users_of, with_records
from ..engine.ir.program import NUMBER, Program, item_of, open_sizes
from ..engine.ops.creation import full
from ..engine.ops.elementwise import add, subtract
from ..engine.ops.gather import put, take
from ..engine.ops.marks import after
from ..engine.ops.movement import concat, reshape, slice_
from ..engine.passes.registry import program_pass
from ..ops.scatter import scatter_add
from .loop_edit import first_written, is_item, region_input

Line = tuple[int, int]
"""A whole number that changes evenly: its value in the first iteration, and what is added to it."""

HISTORY = ((1, None, None),)
"""The index of all iterations but the first."""


@program_pass("loop_slices", looks_for=[while_loop])
def loop_slices(program: Program) -> Program:
    """The program whose loops are given slices, and give slices."""
    loops = [r for r in program.records if r.op is while_loop and counts(r)]
    if not loops or open_sizes(program):
        return program
    return SliceRewriter(program).run()


def counts(loop: Record) -> bool:
    """Whether the number of iterations is a number above 0."""
    trips = loop.attrs.get("trip_count")
    return type(trips) is int and trips > 0 and "reads" not in loop.attrs


# ---- the place that an iteration asks for --------------------------------------------------------


def origin(x: Record) -> Record:
    """The record of a value that may be read only after another one."""
    while x.op is after:
        x = x.inputs[0]
    return x


def find_line(x: Record, loop: Record | None = None, depth: int = 9) -> Line | None:
    """The values of a whole number in the iterations of a loop, or at the top of a program."""
    x = origin(x)
    if depth == 0:
        return None
    if x.op is NUMBER or (x.op is full and not x.shape):
        value = x.attrs["value"]
        return (value, 0) if type(value) is int else None
    if x.op in (add, subtract):
        a, b = (find_line(y, loop, depth - 1) for y in x.inputs)
        sign = 1 if x.op is add else -1
        return a and b and (a[0] + sign * b[0], a[1] + sign * b[1])
    if is_item(x):
        other, k = x.inputs[0], x.attrs["k"]
        rounds = counts(other) and other.attrs["keep"] and k == other.attrs["carried"]
        return (other.attrs["trip_count"], 0) if rounds else None
    if loop is None:
        return None
    body, n = loop.attrs["body"], loop.attrs["carried"]
    if x in body.inputs[n:]:
        return find_line(loop.inputs[body.inputs.index(x)], None, depth - 1)
    if x in body.inputs:
        c = body.inputs.index(x)
        return follow_carried(x, body.outputs[c], find_line(loop.inputs[c], None, depth - 1))
    if x.op is take and x.inputs[0] in body.inputs[n:]:
        stack = loop.inputs[body.inputs.index(x.inputs[0])]
        at, line = find_line(x.inputs[1], loop, depth - 1), find_stacked(stack, depth - 1)
        return at and line and (line[0] + line[1] * at[0], line[1] * at[1])
    return None


def follow_carried(x: Record, last: Record, first: Line | None) -> Line | None:
    """The values of a carried number, which is `last` after an iteration."""
    if first is None or last.op not in (add, subtract) or last.inputs[0] is not x:
        return None
    step = find_line(last.inputs[1], None, 1)
    return step and (first[0], step[0] if last.op is add else -step[0])


def find_stacked(stack: Record, depth: int) -> Line | None:
    """The values of a number that another loop has carried and stacked."""
    stack = origin(stack)
    if not is_item(stack) or not counts(other := stack.inputs[0]):
        return None
    c = stack.attrs["k"] - other.attrs["carried"] - 1
    return find_line(other.attrs["body"].inputs[c], other, depth) if c >= 0 else None


# ---- a loop anew ---------------------------------------------------------------------------------


class LoopSlices:
    """The slices of a loop. `reads` maps (array outside, turned) to an input of the body, `new`
    maps records of the body to their replacements, `writes` are pairs (value, turned), and
    `ends` says which of these replaces a result of the loop.
    """

    def __init__(self, loop: Record):
        self.loop, self.body, self.test = loop, loop.attrs["body"], loop.attrs["test"]
        self.n, self.trips = loop.attrs["carried"], loop.attrs["trip_count"]
        self.reads: dict[tuple[Record, bool], Record] = {}
        self.new: dict[Record, Record] = {}
        writes = loop.attrs.get("writes", ())
        self.writes = [*zip(self.body.outputs[self.n :], writes, strict=True)]
        self.ends: dict[int, int] = {}
        self.numbers: list[Record] = []
        self.read_slices()
        if not loop.attrs["keep"]:
            self.write_slices()

    def is_turned(self, index: Record) -> bool | None:
        """Whether iteration t asks for the t-th slice from the end; None if for none of both."""
        return {(0, 1): False, (self.trips - 1, -1): True}.get(find_line(index, self.loop))

    def slice_spec(self, x: Record) -> Spec | None:
        """The spec of a slice of an array that has one for each iteration."""
        fits = len(x.shape) > 1 and type(x.shape[0]) is int and x.shape[0] == self.trips
        return Spec(x.shape[1:], x.dtype) if fits else None

    def read_slices(self) -> None:
        """Let what the body takes of constants be inputs of it; or numbers, if all are the same."""
        constants = dict(zip(self.body.inputs[self.n :], self.loop.inputs[self.n :], strict=True))
        for record in self.body.records:
            if record.op is not take or record.inputs[0] not in constants:
                continue
            x = constants[record.inputs[0]]
            spec, turned = self.slice_spec(x), self.is_turned(record.inputs[1])
            if record.attrs["axis"] != 0 or spec is None or turned is None:
                continue
            if origin(x).op is full:
                attrs = origin(x).attrs | {"shape": spec.shape}
                self.new[record] = record.derive(full, [], attrs, spec)
                self.numbers.append(self.new[record])
            else:
                self.new[record] = self.reads.setdefault((x, turned), region_input(spec))

    def write_slices(self) -> None:
        """An array into which each iteration puts a slice is an output."""
        used = count_uses(self.body) + count_uses(self.test)
        for c, (now, last) in enumerate(zip(self.body.inputs[: self.n], self.body.outputs)):
            if last.op not in (put, scatter_add) or last.inputs[0] is not now:
                continue
            _, index, value = last.inputs
            spec, turned = self.slice_spec(now), self.is_turned(index)
            alone = used[now] == used[last] == 1 and not used[self.test.inputs[c]]
            if alone and last.attrs["axis"] == 0 and turned is not None and value.spec == spec:
                self.ends[c] = self.write(value, turned)

    def write(self, value: Record, turned: bool = False) -> int:
        """The number of an output of slices."""
        if (value, turned) not in self.writes:
            self.writes.append((value, turned))
        return self.writes.index((value, turned))

    def adds(self, c: int) -> bool:
        """Whether the slices of a result are added to values that are not all zero."""
        first = origin(self.loop.inputs[c])
        zero = first.op is full and first.attrs["value"] == 0
        return self.body.outputs[c].op is scatter_add and not zero

    def close(self, outside: dict, keep: bool) -> Record:
        """The loop; `outside` maps records of the program to their replacements."""
        loop, n, new = self.loop, self.n, self.new
        carried = [c for c in range(n) if c not in self.ends]
        records = [substitute(r, new) for r in self.body.records if r not in new]
        outputs = [*(self.body.outputs[c] for c in carried), *(x for x, _ in self.writes)]
        outputs = [new.get(r, r) for r in outputs]
        old = self.body
        body = Program(old.name, [], [], [*self.numbers, *records], outputs, old.guards)
        body = Program(old.name, [], [], needed(body), outputs, old.guards)
        used = count_uses(body) + count_uses(self.test)
        kept = [k for k in range(n, len(loop.inputs))
                if used[old.inputs[k]] or used[self.test.inputs[k]]]  # fmt: skip
        kept = [*carried, *kept]
        body.inputs = [*(old.inputs[k] for k in kept), *self.reads.values()]
        tested = [
            *(self.test.inputs[k] for k in kept),
            *(region_input(x.spec) for x, _ in self.reads),
        ]
        test = Program(self.test.name, tested, [], self.test.records, self.test.outputs, old.guards)
        attrs = loop.attrs | {"carried": len(carried), "keep": keep, "body": body, "test": test}
        attrs["reads"] = tuple(turned for _, turned in self.reads)
        attrs["writes"] = tuple(turned for _, turned in self.writes)
        inputs = [*(loop.inputs[k] for k in kept), *(x for x, _ in self.reads)]
        first = first_written(loop)
        specs = [*(loop.shape[c] for c in carried), *(loop.shape[n:first] if keep else ())]
        self.first = len(specs)
        self.places = {c: k for k, c in enumerate(carried)}
        if keep:
            self.places |= {k: k for k in range(n, first)}
        self.places |= {k: k - first + self.first for k in range(first, len(loop.shape))}
        specs += [Spec((self.trips, *x.shape), x.dtype) for x, _ in self.writes]
        return loop.copy([outside.get(x, x) for x in inputs], attrs, tuple(specs))


# ---- a program anew ------------------------------------------------------------------------------


class SliceRewriter:
    """Writes a program whose loops are given slices, and give slices."""

    def __init__(self, program: Program):
        self.program, self.users = program, users_of(program)
        self.new: dict[Record, Record] = {}
        self.records: list[Record] = []
        self.slices: dict[Record, LoopSlices] = {}
        self.joins: dict[Record, tuple[Record, int]] = {}
        for record in program.records:
            if (pair := find_sequence(record)) is not None:
                self.joins[record] = pair

    def run(self) -> Program:
        """The program."""
        for record in self.program.records:
            if record.op is while_loop and counts(record):
                self.renew(record)
            elif is_item(record) and record.inputs[0] in self.slices:
                self.move(record)
            elif record in self.joins and self.joins[record][0] in self.slices:
                loop, k = self.joins[record]
                slices = self.slices[loop]
                place = slices.first + slices.write(slices.body.outputs[k])
                self.new[record] = self.add(item_of(self.new[loop], place, record.saved))
            else:
                self.records.append(substitute(record, self.new))
        if not self.slices:
            return self.program
        program = with_records(self.program, self.records, self.new)
        return with_records(program, needed(program), {})

    def add(self, record: Record) -> Record:
        """Add a record."""
        self.records.append(record)
        return record

    def renew(self, loop: Record) -> None:
        """The loop, with slices if it has some."""
        slices = LoopSlices(loop)
        for other, k in self.joins.values():
            if other is loop:
                slices.write(slices.body.outputs[k])
        if not slices.new and not slices.writes:
            self.records.append(substitute(loop, self.new))
            return
        self.slices[loop] = slices
        keep = loop.attrs["keep"] and self.reads_stacks(loop)
        self.new[loop] = self.add(slices.close(self.new, keep))

    def reads_stacks(self, loop: Record) -> bool:
        """Whether something but the sequences of outputs reads the count or the stacks."""
        places = range(loop.attrs["carried"], first_written(loop))
        stacks = {r for r in self.users[loop] if r.attrs["k"] in places}
        read = {u for r in stacks for u in self.users.get(r, ())}
        others = {u for r in read for u in self.users.get(r, ()) if u not in self.joins}
        late = {record.inputs[0] for record in self.joins}
        results = {*self.program.results}
        return bool(others) or not read <= late or not results.isdisjoint(stacks | read)

    def move(self, item: Record) -> None:
        """The same result of the new loop."""
        slices, k = self.slices[item.inputs[0]], item.attrs["k"]
        loop = self.new[item.inputs[0]]
        if k in slices.ends:
            moved = self.add(item_of(loop, slices.first + slices.ends[k], item.saved))
            if slices.adds(k):
                first = slices.loop.inputs[k]
                first = self.new.get(first, first)
                moved = self.add(item.derive(add, [first, moved], {}, item.spec))
            self.new[item] = moved
        elif k in slices.places:  # else a stack that only a sequence was made of
            self.new[item] = self.add(item_of(loop, slices.places[k], item.saved))


def find_sequence(record: Record) -> tuple[Record, int] | None:
    """The loop and the number of a carried value, of whose values after each iteration a record
    makes an array: all before an iteration but the first, and the last.
    """
    if record.op is not concat or record.attrs["axis"] != 0 or len(record.inputs) != 2:
        return None
    late, last = record.inputs
    if late.op is not slice_ or late.attrs["index"] != HISTORY or last.op is not reshape:
        return None
    stack, last = late.inputs[0], last.inputs[0]
    if not is_item(stack) or not is_item(last) or stack.inputs[0] is not last.inputs[0]:
        return None
    loop, k = last.inputs[0], last.attrs["k"]
    same = counts(loop) and stack.attrs["k"] == loop.attrs["carried"] + 1 + k
    return (loop, k) if same and record.spec == stack.spec and loop.attrs["keep"] else None
