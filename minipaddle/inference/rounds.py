"""A bound for loops: no input of a stranger's may keep a model running for ever.

A run counts the iterations of its loops in one value, which goes through all loops and branches.
Each loop goes on while its own test says so and the bound is not passed. The count is one output
more. If it is above the bound, the others mean nothing.
"""

from dataclasses import replace

from ..core.prelude import Dim, Record, Spec, creation, elementwise, int64
from ..engine.core.dim import create_unknown
from ..engine.core.dtype import bool_
from ..engine.ir.control import cond, while_loop
from ..engine.ir.edit import with_inputs
from ..engine.ir.program import INPUT, ITEM, NUMBER, Program, item_of, regions
from ..engine.ops.logic import less_equal, less_than
from ..ops.truth import logical_and

COUNT, TRUTH = Spec((), int64.numpy), Spec((), bool_.numpy)


def limit_iterations(program: Program, most: int) -> Program:
    """The program, whose loops together end after `most` + 1 iterations at the latest; how many
    they made is its last output. If that is more than `most`, states keep their values. Without
    loops, or with such alone that count to a number, the program itself.

    >>> from minipaddle.inference.rounds import limit_iterations
    >>> from minipaddle.ir.parser import parse
    >>> program = parse('''program p(x: float32[]) {
    ...   v1 = less_than(x, 9.0) : bool[]
    ...   v2 = while_loop(v1, x, test=(a0: bool[], a1: float32[]) { return a0 },
    ...     body=(a0: bool[], a1: float32[]) {
    ...       v1 = add(a1, 1.0) : float32[]  v2 = less_than(v1, 9.0) : bool[]  return v2, v1
    ...     }, carried=2, keep=False) : (bool[], float32[])
    ...   v3 = item(v2, k=1) : float32[]  return v3 }''')
    >>> [str(r.spec) for r in limit_iterations(program, 100).outputs]
    ['float32[]', 'int64[]']
    """
    if not any(map(may_go_on, program.records)):
        return program
    attrs = {"shape": (), "value": 0, "dtype": int64.numpy}
    start = Record(creation.full, (), attrs, *COUNT, 0)
    limited, new, rounds = count_rounds(program, start, most)
    limited.records.insert(0, start)
    limited.outputs.append(rounds)
    ended = apply(less_equal, TRUTH, rounds, number(most))
    limited.records.append(ended)
    for state in program.states:
        update = state.update and new.get(state.update, state.update)
        if update is not None:
            update = apply(elementwise.where, state.record.spec, ended, update, state.record)
            limited.records.append(update)
        limited.states.append(replace(state, update=update))
    return limited


def may_go_on(record: Record) -> bool:
    """Whether a record has a loop whose iterations no number bounds."""
    if record.op not in (cond, while_loop):
        return False
    inside = any(may_go_on(r) for region in regions(record).values() for r in region.records)
    return inside or (record.op is while_loop and not counts_up(record))


def counts_up(loop: Record) -> bool:
    """Whether a loop counts an int64 that it carries up, from one number to another, or to a size:
    `while k < 9: …; k = k + 1`; or has a known number of iterations.
    """
    if "trip_count" in loop.attrs:
        return True
    test, body = loop.attrs["test"], loop.attrs["body"]
    (go,) = test.outputs
    k = test.inputs.index(go.inputs[0]) if go.op is less_than and go.inputs[0].op is INPUT else None
    if k is None or k >= loop.attrs["carried"] or test.inputs[k].spec != COUNT:
        return False
    step = body.outputs[k]
    counts = step.op is elementwise.add and step.inputs[0] is body.inputs[k]
    numbers = go.inputs[1], step.inputs[1] if counts else go
    return loop.inputs[k].op in (creation.full, NUMBER) and all(map(is_whole, numbers))


def is_whole(record: Record) -> bool:
    """Whether a record is a number above 0 that is no float, or a size."""
    value = record.attrs.get("value") if record.op is NUMBER else None
    return isinstance(value, Dim) or (type(value) is int and value > 0)


def count_rounds(program: Program, rounds: Record, most: int) -> tuple[Program, dict, Record]:
    """A program, or a region, that goes on to count the iterations: without states; what stands for
    its old records; and the count at its end.
    """
    new, records = {}, []
    for record in program.records:
        inputs = [new.get(x, x) for x in record.inputs]
        if may_go_on(record):
            changed, position = add_count(record, inputs, rounds, most)
            rounds = item_of(changed, position, 0)
            records += [changed, rounds]
        elif record.op is ITEM and inputs[0] is not record.inputs[0]:
            changed = item_of(inputs[0], place_of(record, inputs[0]), record.saved)
            records.append(changed)
        else:
            changed = with_inputs(record, inputs)
            records.append(changed)
        if changed is not record:
            new[record] = changed
    outputs = [new.get(x, x) for x in program.outputs]
    counting = Program(program.name, [*program.inputs], [], records, outputs, program.guards)
    return counting, new, rounds


def add_count(record: Record, inputs: list, rounds: Record, most: int) -> tuple[Record, int]:
    """A loop or a condition that takes the count, and gives it back; and its place among the
    results. A loop carries it as the last of the carried values.
    """
    loop = record.op is while_loop
    position = record.attrs["carried"] if loop else len(record.shape)
    at = position if loop else len(inputs)
    attrs = dict(record.attrs)
    if loop:
        attrs |= {"carried": position + 1, "test": limit_test(attrs["test"], at, most)}
        attrs |= {"body": region_with_count(attrs["body"], at, most, 1)}
    else:
        attrs |= {k: region_with_count(attrs[k], at - 1, most, 0) for k in ("true", "false")}
    stacks = ()
    if loop and attrs["keep"]:
        length = record.shape[-1].shape[0] if position else create_unknown()
        stacks = (Spec((length,), COUNT.dtype),)
    shape = (*record.shape[:position], COUNT, *record.shape[position:], *stacks)
    counted = record.copy([*inputs[:at], rounds, *inputs[at:]], attrs, shape)
    low = (1 << at) - 1
    counted.saved = (record.saved & low) | (record.saved & ~low) << 1 if record.saved else 0
    return counted, position


def place_of(item: Record, whole: Record) -> int:
    """Where a result of a loop or a condition is, now that the count is another one."""
    k = item.attrs["k"]
    before = item.inputs[0].attrs.get("carried", k + 1)
    return k if k < before else k + 1


def limit_test(test: Program, at: int, most: int) -> Program:
    """The test of a loop, which also asks whether the bound is passed."""
    rounds, (go,) = Record(INPUT, (), {"name": ""}, *COUNT, 0), test.outputs
    may = apply(less_equal, TRUTH, rounds, number(most))
    both = apply(logical_and, go.spec, go, may)
    inputs = [*test.inputs[:at], rounds, *test.inputs[at:]]
    return Program(test.name, inputs, [], [*test.records, may, both], [both], test.guards)


def region_with_count(region: Program, at: int, most: int, more: int) -> Program:
    """A body or a branch, which takes the count as input number `at`, and gives it back as its last
    output, with that many more iterations.
    """
    count = Record(INPUT, (), {"name": ""}, *COUNT, 0)
    begin = [apply(elementwise.add, COUNT, count, number(more))] if more else []
    counted, _, rounds = count_rounds(region, [count, *begin][-1], most)
    counted.inputs.insert(at, count)
    counted.records[:0] = begin
    counted.outputs.append(rounds)
    return counted


def apply(op, spec: Spec, *inputs: Record) -> Record:
    return Record(op, inputs, {}, *spec, 0)


def number(value: int) -> Record:
    return Record(NUMBER, (), {"value": value}, *COUNT)
