"""`cond` and `while_loop` for code that is traced, and their derivatives.

The derivative of a branch is a branch: it computes the outputs again, now with a tape, and walks
back. The derivative of a loop is a loop over the saved iterations, the last one first.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.dim import create_unknown
from ..core.dispatch import OUT, current, describe, note_refusal
from ..core.dtype import FLOATS, bool_
from ..core.errors import line_of, not_supported, teach, value_error
from ..core.grad import fill_zeros
from ..core.record import Record, Spec, mark_written
from ..core.slots import slot
from ..core.spec import promote, scalar_dtype
from ..ir import control
from ..ir.builder import Builder, SymbolicArray
from ..ir.flow import leading
from ..ir.program import INPUT
from ..ops import creation, movement
from ..ops.gather import take
from .aliases import note_choice_aliases, note_loop_aliases
from .replay import derivative, zeros_like
from .tape import forget_past, take_past
from .tensor import Tensor, get_edge, same_value, wrap

NUMBERS = (bool, int, float)
BOOL = Spec((), bool_.numpy)


class BranchError(ValueError):
    """Two branches of a `cond` do not give the same: result number `k`, and what each gave."""

    def __init__(self, message: str, k: int, left, right):
        super().__init__(message)
        self.k, self.left, self.right = k, left, right


class CarriedError(BranchError):
    """Value `k` carried through a loop is not of one kind before a round and after it."""


def is_static(x) -> bool:
    """Whether x is a tensor whose value is known only when the program runs.

    In a trace that is any tensor: one of the outside may hold another value in a run.
    """
    if isinstance(x, Tensor) and type(x.array) is not SymbolicArray and current.top.tracing:
        current.top.lift(x)
    return isinstance(x, Tensor) and type(x.array) is SymbolicArray


def as_bool(pred: Tensor) -> Tensor:
    """A condition as a 0-D boolean."""
    if pred.spec.size != 1:
        raise value_error(
            f"the truth value of {pred.spec} is ambiguous: {pred.spec.size} elements",
            hint="use x.all(), x.any(), or paddle.where",
        )
    pred = pred.detach()
    pred = pred if pred.spec.dtype.kind == "b" else pred.astype("bool")
    return movement.reshape(pred, shape=()) if pred.spec.shape else pred


# ---- cond ----------------------------------------------------------------------------------------


def cond(pred: Tensor, true_fn, false_fn) -> list:
    """The result of `true_fn()` if `pred` (one element) holds, else the result of `false_fn()`.

    Both return a list of the same length, of tensors, numbers and other values. A number that
    differs becomes a tensor, a size that differs one that only a run knows. Only the branch that
    runs writes in place.
    """
    if not is_static(pred):
        return list(true_fn() if bool(pred) else false_fn())
    tracer, pred = current.top, as_bool(pred)
    branches = [trace_region(tracer, f, n) for f, n in ((true_fn, "true"), (false_fn, "false"))]
    specs = common_specs(*(b.results for b in branches))
    written = merge(b.builder.find_written() for b in branches)
    tapes = {**branches[1].tapes, **branches[0].tapes}
    outputs = [b.outputs(tracer, specs, written, tapes) for b in branches]
    captured = merge(b.builder.captured for b in branches)
    for b, records in zip(branches, outputs, strict=True):
        b.close([b.input_of(p) for p in captured], records)
    attrs = {name: b.builder.program for name, b in zip(("true", "false"), branches, strict=True)}
    edges = [None, *get_edges(tracer, [(p, tapes.get(p)) for p in captured])]
    outs = iter(emit_with_regions(tracer, control.cond, [pred.array, *captured], edges, attrs))
    plain = [r.value for r in branches[0].results]
    results = [x if s is None else next(outs) for x, s in zip(plain, specs, strict=True)]
    note_choice_aliases(tracer, branches, results)
    apply_writes(tracer, written, list(outs), set().union(*(b.moved for b in branches)))
    return results


class RegionResult(NamedTuple):
    """A result of a region: its value, its spec if it is a tensor, and its user's line."""

    value: object
    spec: Spec | None
    where: str

    def __str__(self) -> str:
        return f"{self.spec}{self.where}" if self.spec else describe(self.value)


def result(x) -> RegionResult:
    if not isinstance(x, Tensor):
        return RegionResult(x, None, "")
    tracer, array = current.top, current.top.builder.check_valid(current.top.lift(x))
    if not x.stop_gradient:  # even if the region returns it unused
        tracer.tapes.setdefault(array, x)
    where = tracer.builder.value(array).where
    now = wrap(array)  # at the end of the region its writes are undone
    now.record, now.stop_gradient = x.record, x.stop_gradient
    return RegionResult(now, x.spec, f", made at {line_of(where)}" if where else "")


class TracedRegion:
    """A traced region: its inputs, its results, and the outer tensors it wrote or used."""

    def __init__(self, builder: Builder, given: list, results: list, written: list, tapes: dict):
        self.builder, self.given, self.results, self.tapes = builder, given, results, tapes
        outer = [x for x, _, stop in written if stop and x.array in builder.captured]
        self.grown = {x for x in outer if not x.stop_gradient}  # the region gave these a past
        self.moved = {x for x, past, stop in written if (past, stop) != (x.record, x.stop_gradient)}

    def outputs(self, tracer, specs, written, tapes) -> list[Record]:
        """The records of the results that have a spec, and of the arrays `written` in a branch."""
        past, pairs = {*tapes, *self.given}, zip(self.results, specs, strict=True)
        with tracer.inside(self.builder):
            copies = [copy_if_shared(tracer, as_tensor(r.value, s), past) for r, s in pairs if s]
            return [self.builder.value(p) for p in [*map(tracer.lift, copies), *written]]

    def input_of(self, array: SymbolicArray) -> Record:
        """The input for an outer symbolic array; a new one if it is not captured."""
        captured = self.builder.captured.get(array)
        return captured or self.builder.input(self.builder.parent.value(array).spec)

    def close(self, inputs: list[Record], outputs: list[Record]) -> None:
        self.builder.program.inputs, self.builder.program.outputs = inputs, outputs


def copy_if_shared(tracer, x: Tensor, past: set) -> Tensor:
    """x, or a copy if x has no gradient but shares its record with a tensor that has one."""
    if not x.stop_gradient or x.spec.dtype not in FLOATS:
        return x
    array = tracer.lift(x)
    record = tracer.builder.value(array)
    shared = array in past if record.op is INPUT else record.saved
    return creation.assign(x) if shared else x


def trace_region(tracer, function, name, given=(), specs=(), flows=True) -> TracedRegion:
    """Trace `function` in a new region; `given` are the first values of its arguments, of the
    `specs` that they have in all iterations. To these a gradient may flow back in a later
    iteration if it `flows` at all.
    """
    arrays = [tracer.builder.check_valid(tracer.lift(x)) for x in given]
    first = [*zip(arrays, specs, strict=True)]
    with tracer.region(name) as builder:
        inputs = [wrap(builder.symbolic(builder.input(s), builder.place)) for _, s in first]
        for x, (array, spec) in zip(inputs, first, strict=True):
            x.stop_gradient = spec.dtype not in FLOATS or not flows
            x.array.may_alias(array)
        own, results = [x.array for x in inputs], [result(x) for x in function(*inputs)]
        return TracedRegion(builder, own, results, tracer.written, tracer.tapes)


def merge(groups) -> list:
    """The members of all groups, each once, in order."""
    return list(dict.fromkeys(x for group in groups for x in group))


def common_specs(left: list, right: list) -> list[Spec | None]:
    """For each result the spec it has in both branches; None for one that is no tensor."""
    if len(left) != len(right):
        message = f"one branch gives {len(left)} results, the other {len(right)}"
        raise BranchError(teach(message), -1, left, right)
    return [common_spec(k, a, b) for k, (a, b) in enumerate(zip(left, right, strict=True))]


def common_spec(k: int, a: RegionResult, b: RegionResult) -> Spec | None:
    """The spec of a result in both branches; None for a Python value that is the same in both."""
    if a.spec and a.spec == b.spec:
        return a.spec
    if not a.spec and not b.spec and same_value(a.value, b.value):
        return None
    operands = [r.spec or r.value for r in (a, b)]
    sizes = {r.spec.shape for r in (a, b) if r.spec}
    if a.spec and b.spec and a.spec.dtype == b.spec.dtype and len({*map(len, sizes)}) == 1:
        return Spec(control.merge_shapes(a.spec.shape, b.spec.shape), a.spec.dtype)
    fits = all(r.spec or type(r.value) in NUMBERS for r in (a, b)) and len(sizes) < 2
    if not fits or (a.spec and b.spec) or any(Spec(s, BOOL.dtype).size != 1 for s in sizes):
        what = f"the branches give different kinds of result number {k}:\n  {a}\n  {b}"
        raise BranchError(teach(what, expected="the same shape and dtype from both"), k, a, b)
    return Spec(*sizes or [()], promote("cond", operands))


def as_tensor(x, spec: Spec) -> Tensor:
    """A tensor of `spec` from one of another dtype, or from a number."""
    if not isinstance(x, Tensor):
        return creation.full(shape=spec.shape, value=x, dtype=spec.dtype)
    return x if x.spec.dtype == spec.dtype else x.astype(spec.dtype)


# ---- while ---------------------------------------------------------------------------------------


def while_loop(test_fn, body_fn, carried: list, *, stacked=False, last=(), trip_count=None) -> list:
    """The carried values after the loop `while test_fn(*carried): carried = body_fn(*carried)`.

    With `stacked`, in a trace, also the values before each iteration, stacked. No iteration follows
    one that gives a value of `last` (numbers of carried values). `trip_count`: how many iterations
    there are, if that is known. Numbers become tensors. A value that changes its dtype is promoted
    before the loop. A size that changes is known to a run alone; another number of axes raises
    CarriedError. Tensors that the body writes in place are carried too.
    """
    if not any(map(is_static, carried)) and not current.top.tracing:
        while bool(test_fn(*carried)):
            carried = list(body_fn(*carried))
        return list(carried)
    tracer = current.top
    carried = [x if isinstance(x, Tensor) else as_tensor(x, scalar_spec(x)) for x in carried]
    carried, specs, body = trace_body(tracer, body_fn, carried)
    test = trace_region(tracer, lambda *xs: [as_bool(static(test_fn(*xs)))], "test", carried, specs)
    if test.builder.find_written():
        raise note_refusal(NotImplementedError(teach("a loop's condition writes to a tensor")))
    written = body.builder.find_written()
    tapes = {**test.tapes, **body.tapes}
    outputs = body.outputs(tracer, specs, written, tapes)
    tests = test.outputs(tracer, [BOOL], [], tapes)
    captured = [p for p in merge(r.builder.captured for r in (body, test)) if p not in written]
    for region, records in ((body, outputs), (test, tests)):
        own = region.builder.program.inputs[: len(carried)]
        region.close([*own, *map(region.input_of, [*written, *captured])], records)
    entering = [*map(tracer.lift, carried), *written, *captured]
    tensors = [*carried, *(tapes.get(p) for p in entering[len(carried) :])]
    edges = get_edges(tracer, zip(entering, tensors, strict=True))
    n, program = len(carried) + len(written), body.builder.program
    keep = stacked or (any(edges) and not control.changes_sizes(program))
    attrs = {"test": test.builder.program, "body": program, "carried": n, "keep": keep}
    attrs |= {"trip_count": trip_count} if trip_count is not None else {}
    outs = emit_with_regions(tracer, control.while_loop, entering, edges, attrs)
    apply_writes(tracer, written, outs[len(carried) : n], body.moved)
    now = outs[: len(carried)]
    note_loop_aliases(tracer, body, carried, now, last)
    return (now, outs[n + 1 : n + 1 + len(carried)]) if stacked else now


def scalar_spec(x) -> Spec:
    return Spec((), scalar_dtype(x))


def static(x) -> Tensor:
    """The outcome of a test as a tensor, also if it is a Python value."""
    return x if isinstance(x, Tensor) else as_tensor(bool(x), BOOL)


def trace_body(tracer, body_fn, carried: list) -> tuple[list, list[Spec], TracedRegion]:
    """The carried values promoted to the dtypes that the body gives them, their specs in all
    iterations, and the body.
    """
    flows, specs = True, [x.spec for x in carried]
    own: set[str] = set()  # the sizes that change
    while True:
        region = trace_region(tracer, body_fn, "body", carried, specs, flows)
        if tracer.recording and region.grown:  # from the second iteration on they have one
            used = [x for p, x in region.tapes.items() if p in region.builder.captured]
            flows = not (flows and all(x.stop_gradient for x in (*carried, *used)))
            for x in region.grown if flows else ():
                tracer.written.append((x, x.record, x.stop_gradient))
                x.record = forget_past(x)
                x.stop_gradient = False
            continue
        if len(region.results) != len(carried):
            raise ValueError(f"a loop carries {len(carried)} values, its body gives another number")
        results = [r.spec or scalar_spec(r.value) for r in region.results]
        pairs = enumerate(zip(specs, results))
        wider = [tracer.builder.named(join_specs(k, a, b, own)) for k, (a, b) in pairs]
        if wider == specs:
            return carried, specs, region
        own |= {str(n) for a, b in zip(specs, wider) for n in {*b.shape} - {*a.shape}}
        specs = wider
        carried = [as_tensor(x, s) for x, s in zip(carried, specs, strict=True)]


def join_specs(k: int, before: Spec, after: Spec, own: set) -> Spec:
    """The spec of a carried value in all iterations; `own` are the sizes that the loop made."""
    if len(before.shape) != len(after.shape):
        what = f"value number {k} carried through a loop has another number of axes after a round"
        raise CarriedError(teach(f"{what}: {before}, then {after}"), k, before, after)
    pairs = zip(before.shape, after.shape)
    shape = tuple(a if a == b or str(a) in own else create_unknown() for a, b in pairs)
    if before.dtype == after.dtype:
        return Spec(shape, before.dtype)
    return Spec(shape, promote("a loop", [Spec((), before.dtype), Spec((), after.dtype)]))


# ---- what both need -----------------------------------------------------------------------------


def get_edges(tracer, pairs) -> list[Record | None]:
    """The records of the values that a region uses; `pairs` are (array, its tensor or None).

    The region around uses these too. Under `no_grad` a value that passes through keeps its tape.
    """
    edges = []
    for array, x in pairs:
        edge = get_edge(x) if tracer.differentiable else None
        if edge is not None:
            tracer.tapes.setdefault(array, x)
        edges.append(edge)
    return edges


def emit_with_regions(tracer, op, arrays, edges, attrs) -> list[Tensor]:
    """Emit an operator with regions; its results are on the tape if an input is."""
    mask = sum(1 << k for k, e in enumerate(edges) if e is not None)
    builder = tracer.builder  # new arrays: a region may write to those it was given
    arrays = [builder.symbolic(builder.value(p), p.place) for p in arrays]
    y = builder.emit(op, arrays, attrs, tracer.scope, mask)
    to_save = op.saves[mask] if mask else None
    return list(tracer.wrap_results(op, edges, arrays, attrs, to_save, y))


def apply_writes(tracer, written, values, moved) -> None:
    """Write the new values outside the region; tensors in `moved` get their new past."""
    for array, value in zip(written, values, strict=True):
        tracer.builder.write(array, value.array)
        mark_written(array)
        for x in (x for x in moved if x.array is array):
            tracer.written.append((x, x.record, x.stop_gradient))
            take_past(x, value)


# ---- derivatives --------------------------------------------------------------------------------


def pull_cond(record: Record, g, useful):
    """The derivative of `cond`: a `cond` of the branches' derivatives."""
    wanted = [k for k in leading(record, set(g)) if record.inputs[k] in useful]
    pred, *operands = [current.top.read(record, k) for k in range(len(record.inputs))]
    ends = [g.get(k) for k in range(len(record.shape))]

    def back(region):
        return lambda: derivative(region, operands, ends, [k - 1 for k in wanted])

    grads = cond(pred, back(record.attrs["true"]), back(record.attrs["false"])) if wanted else []
    return zip([record.inputs[k] for k in wanted], grads, strict=True)


def pull_loop(record: Record, g, useful):
    """The derivative of `while_loop`: a loop over the saved iterations, the last one first."""
    if not record.attrs["keep"]:
        what = "the gradient of a loop on a tensor in which a size changes from round to round"
        where = next((r.where for r in record.attrs["body"].records if r.where), None)
        raise note_refusal(not_supported(what, hint="call it under paddle.no_grad()", where=where))
    n, led = record.attrs["carried"], leading(record, set(g))
    inputs = [current.top.read(record, k) for k in range(len(record.inputs))]
    rounds, *stacks = current.top.read(record, OUT)[n:]
    floats, g = [k for k in led if k < n and inputs[k].spec.dtype in FLOATS], fill_zeros(record, g)
    ends, kept_ends = ([x[k] if k in floats else None for k in range(n)] for x in (g, g[n + 1 :]))
    shared = [k for k in led if k >= n and record.inputs[k] in useful]
    gradients = reverse_iterations(
        record.attrs["body"], rounds, stacks, inputs[n:], ends, kept_ends, [k - n for k in shared]
    )
    pairs = [(record.inputs[k], gx) for k, gx in zip([*floats, *shared], gradients, strict=True)]
    return [(edge, gx) for edge, gx in pairs if edge in useful]


@slot("control.reverse_iterations")
def reverse_iterations(body, rounds, stacks, constants, ends, kept_ends, shared) -> list[Tensor]:
    """The cotangents of the values that a loop carries, and of its `shared` constants.

    The loop ran `rounds` iterations. `stacks` hold each carried value before every iteration.
    `ends` are the cotangents of the carried values after it, or None; `kept_ends` of the stacks.
    """
    floats = [k for k, g in enumerate(ends) if g is not None]
    wanted = [*floats, *(len(stacks) + k for k in shared)]

    def back(i, *arrived):
        i = i - 1
        before = [take(stack, i, axis=0) for stack in stacks]
        after = list(ends)
        for k, g in zip(floats, arrived, strict=False):
            after[k] = g
        gradients = derivative(body, [*before, *constants], after, wanted)
        more = [*(take(kept_ends[k], i, axis=0) for k in floats), *arrived[len(floats) :]]
        return [i, *(a + b for a, b in zip(gradients, more, strict=True))]

    start = [rounds, *(ends[k] for k in floats), *(zeros_like(constants[k]) for k in shared)]
    n = control.trip_count_of(stacks[0].spec)
    return while_loop(lambda i, *_: i > 0, back, start, trip_count=n)[1:]


control.cond.pull, control.while_loop.pull = pull_cond, pull_loop
