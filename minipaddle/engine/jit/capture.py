"""A function becomes programs: one for its results, one for its derivative.

A function that does its own backward (a training step) is one program. If the results want a
gradient, the trace goes on with the walk back from them and is cut in two: the forward program,
which also returns what the backward needs, and the backward program, which the eager tape calls.
"""

from __future__ import annotations

from itertools import chain, count
from typing import NamedTuple

from ..core.dispatch import Recording, current
from ..core.errors import runtime_error
from ..core.grad import fill_zeros, history, pull_back
from ..core.record import FREED, Record, last_write
from ..core.slots import slot
from ..eager.side_effects import constant_arrays
from ..eager.storage import Gradient, Received, TensorStorage, Written
from ..eager.tape import attach, forget_past, leaf_write_error
from ..eager.tensor import Tensor, get_edge, wrap
from ..eager.tracer import create_input, trace
from ..executors.executable_cache import ExecutableCache
from ..ir.cut import cut
from ..ir.program import ITEM, Program


class WalkBack(NamedTuple):
    """The derivative of a traced function: its `program` takes the residuals, then cotangents of
    the results `of`; it gives the gradients of the inputs `inputs` and the outer tensors `outer`.
    """

    of: list[int]
    inputs: list[int]
    outer: list[TensorStorage]


numbers = count()


class Captured:
    """A function traced for inputs of certain specs; calling it runs the program.

    `function` takes a tensor for each spec and returns a list; `stops` are their `stop_gradient`.
    """

    def __init__(self, function, specs, stops, names=(), name="program", executables=None):
        self.executables = executables or ExecutableCache("interpreter")
        self.stops, self.walk, self.number = stops, None, next(numbers)
        traced = trace(lambda *xs: self.joint(function, xs), specs, name=name, names=names)
        self.program, self.after, self.conditions = traced.program, traced.after, traced.conditions
        self.places, self.outer = traced.places, traced.outer
        self.guards: list = []  # its assumptions about Python's objects
        self.left: list = []  # values that a run leaves in Python's objects
        self.given: list = []  # the containers of the arguments, if it leaves or returns any
        self.stub_sizes = self.last_sizes = None  # those of the newest stub, and of the last call
        self.hits = [0, 0]  # hits in the cache, and the time of the last one
        self.backward: Program | None = None
        if self.walk is not None:
            self.split(len(specs))
        self.states = [s.storage for s in self.program.states]
        self.updates = [s.storage for s in self.program.states if s.update is not None]
        self.executables.frozen = not (self.walk or self.updates or self.after)
        written = [self.program.inputs[a.k] for a in self.after if type(a) is Written]
        left = (each.outputs for each in self.after if type(each) in (Gradient, Received))
        self.terms = {*chain.from_iterable(left)}  # gradients: on a mesh they may stay terms
        self.copied = overwritten(self.program, [*written, *traced.constants])
        self.writes = any(type(each) is Written for each in self.after)
        of = self.walk.of if self.walk is not None else ()
        self.rewrites = self.writes or not self.same.keys().isdisjoint(of)
        self.computed = [k for j, (which, k) in self.same.items()
                         if which is INPUT and j in of and not stops[k]]  # fmt: skip

    # ---- tracing -----------------------------------------------------------------------------

    def joint(self, function, inputs) -> list:
        """The results of the function, then the cotangents of its inputs and outer tensors."""
        for x, stop in zip(inputs, self.stops, strict=True):
            x.stop_gradient = stop
        starts = [get_edge(x) for x in inputs]
        results = list(function(*inputs))
        edges = enumerate(starts)
        self.hooks = [(k, hook) for k, edge in edges if edge for hook in edge.hooks or ()]
        for y in results:  # an outer tensor may be a result and used nowhere
            if isinstance(y, Tensor):
                current.top.lift(y)
        outside = [(b.tensor, b.record) for b in current.top.lifted.values()]
        pairs = (*zip(inputs, starts, strict=True), *outside)
        changed = {id(x): x for x, start in pairs if not x.is_leaf and x.record is not start}
        results += [x for x in changed.values() if id(x) not in map(id, results)]
        self.same = identical(current.top, inputs, results)
        old = {k for k, (which, _) in self.same.items()
               if which is RESULT or id(results[k]) not in changed}  # fmt: skip
        tensors = [(k, y) for k, y in enumerate(results) if isinstance(y, Tensor) and k not in old]
        of = [k for k, y in tensors if not (y.stop_gradient or was_walked(y))]
        new = (k for k, y in tensors if id(y) in current.top.lifted and k not in self.same)
        self.fresh = {current.top.storage(results[k]): k for k in new}  # leaves made here
        self.wanting = [k for k in of if k not in self.same]  # results that want a gradient
        of = [k for k in of if k not in self.fresh.values()]
        if of and current.top.recording:
            results += self.walk_back(current.top, inputs, starts, results, of)
        return results

    def walk_back(self, tracer, inputs, starts, results, of) -> list[Tensor]:
        cotangents = [create_input(tracer, results[k].spec, f"g{k}") for k in of]
        ends = dict(zip(starts, inputs, strict=True))
        for b in tracer.lifted.values():
            ends[None if b.stop_gradient else b.record or get_edge(b.tensor)] = b.tensor
        ends.pop(None, None)
        seeds = [(get_edge(results[k]), g) for k, g in zip(of, cotangents, strict=True)]
        with Recording(False), as_leaves(ends):
            gradients = pull_back(seeds, set(ends))
        place = {id(x): k for k, x in enumerate(inputs)}
        pairs = [(ends[r], g) for r, g in gradients.items()]
        by_input = {place[id(x)]: g for x, g in pairs if id(x) in place}
        by_outer = {tracer.storage(x): g for x, g in pairs if id(x) not in place}
        self.walk = WalkBack(of, [*by_input], [*by_outer])
        return [*by_input.values(), *by_outer.values()]

    def split(self, count: int) -> None:
        """Cut the program in two: the backward is all that depends on the cotangents."""
        gradients = len(self.walk.inputs) + len(self.walk.outer)
        own, late = self.places[: -gradients or None], self.places[len(self.places) - gradients :]
        cotangents = self.program.inputs[count:]
        stay = sorted({*range(len(self.program.outputs))} - {*late})
        place = {k: new for new, k in enumerate(stay)}
        self.program, self.backward = cut(self.program, cotangents, late)
        self.places = [None if k is None else place[k] for k in own]
        self.after = [a._replace(outputs=tuple(place[k] for k in a.outputs)) for a in self.after]
        self.residuals = len(place)  # where they begin among the outputs
        if not gradients:  # nothing that wants a gradient leads to the results
            self.backward = None

    # ---- running -----------------------------------------------------------------------------

    def fits(self) -> bool:
        """Whether the program is valid now: Python's objects, waiting gradients.

        The guards also put the tensors that are bound now into the storage of the states.
        """
        return all(guard.holds(self) for guard in self.guards) and not self.violation()

    def violation(self) -> tuple | None:
        """The first (outer tensor, condition) that does not hold; None if all do."""
        broken = ((s.tensor, name) for s, name in self.conditions if not holds[name](s.tensor))
        return next(broken, None)

    def __call__(self, inputs: list[Tensor]) -> tuple[list, dict]:
        """The results of the function for these inputs, None where it gave no tensor, and the
        sizes that were open.
        """
        for k in self.computed:
            if inputs[k].is_leaf:
                raise leaf_write_error()
        for k, hook in self.hooks:  # the gradient of an argument is known outside
            inputs[k].register_hook(hook)
        arrays = [*(x.array for x in inputs), *(cell.read() for cell in self.states)]
        before = self.before(arrays) if self.rewrites and current.top.recording else None
        run, arguments = self.executables.run, (self.program, arrays, None, self.terms)
        outputs, sizes = current.top.quietly(run, *arguments)  # this thread's context
        self.write_back(inputs, outputs)
        results = self.wrap_results(inputs, outputs)
        if self.backward is not None and current.top.recording:
            residuals = outputs[self.residuals : len(self.program.outputs)]
            self.put_on_tape(inputs, results, residuals, sizes, before)
        elif self.walk is not None and current.top.recording:
            for k in self.same.keys() & self.walk.of:  # no gradient flows from its new values
                results[k].record = forget_past(results[k])
        return results, sizes

    def deliver(self, results: list, sizes: dict, own: dict, left: list):
        """Leave the side effects, with the tensors `left`, and build the function's result.
        `own` are containers of this call by the id of the traced ones.
        """
        for each in self.left:
            each.leave(left, own)
        results = [own.get(id(x), y) for x, y in zip(self.leaves, results)] if own else results
        return self.restore(results, sizes)

    def wrap_results(self, inputs, outputs) -> list:
        """The results of the function as tensors, None where it gave none."""
        results = [None if k is None else wrap(outputs[k]) for k in self.places]
        for k in self.wanting:
            results[k].stop_gradient = False
        for j, (which, k) in self.same.items():
            results[j] = k.tensor if which is OUTER else (inputs if which is INPUT else results)[k]
        return results

    @slot("jit.write_back")
    def write_back(self, inputs, outputs: list) -> None:
        """Write the program's updates of states, and of gradients.

        `outputs` are the program's outputs, then the states' updates; those that may look into
        memory which is written here become copies.
        """
        for k in self.copied:
            outputs[k] = outputs[k].copy()
        updates = outputs[len(self.program.outputs) :]
        for storage, array in zip(self.updates, updates, strict=True):
            storage.write(array)
        for each in self.after:
            each.leave(inputs, *(outputs[k] for k in each.outputs))

    def before(self, arrays) -> list:
        """Inputs and states, copied where the run will write to them."""
        program, written = self.program, {a.k for a in self.after if type(a) is Written}
        moving = [k in written for k in range(len(program.inputs))]
        moving += [state.update is not None for state in program.states]
        return [a.copy() if moves else a for a, moves in zip(arrays, moving, strict=True)]

    def put_on_tape(self, inputs, results, residuals, sizes, before=None) -> None:
        """One record for all results; its operator is this function."""
        fresh = {storage: results[k] for storage, k in self.fresh.items()}
        outer = (fresh.get(s, s.tensor) for s in self.walk.outer)
        ends = [*(inputs[k] for k in self.walk.inputs), *outer]
        outputs = [results[k] for k in self.walk.of]
        specs = tuple(y.spec for y in outputs)
        record = Record(CapturedOp(self), [*map(get_edge, ends)], {}, specs, None)
        own = [x.array for x in inputs] if before is None else before
        record.saved = residuals, dict(sizes), own
        attach(record, outputs)


INPUT, OUTER, RESULT = "input", "outer", "result"


def identical(tracer, inputs, results) -> dict[int, tuple]:
    """The results that are another tensor as well: a result's number -> (INPUT, number), (OUTER,
    its storage) or (RESULT, number).
    """
    constants = constant_arrays(tracer)
    where = {k: (OUTER, tracer.storage(b.tensor)) for k, b in tracer.lifted.items()
             if b.tensor.array not in constants}  # fmt: skip
    where |= {id(x): (INPUT, k) for k, x in enumerate(inputs)}
    twins = {}
    for j, y in enumerate(results):
        if isinstance(y, Tensor):
            if id(y) in where:
                twins[j] = where[id(y)]
            where.setdefault(id(y), (RESULT, j))
    return twins


TAPED: list = []
"""Functions that give what `CapturedOp.pull` does where the derivative will be differentiated."""


class CapturedOp:
    """A captured function as the operator of a tape's record."""

    kind, inputs, variadic, attrs = "opaque", ["tensors"], True, {}

    def __init__(self, captured: Captured):
        self.captured, self.name = captured, captured.program.name
        self.doc = "A program that to_static made."

    def pull(self, record, g, useful):
        """Pairs (input record, cotangent): the backward program's results."""
        if current.top.recording:
            yield from TAPED[-1](self.captured, record, g, useful)
            return
        residuals, sizes, _ = record.saved
        for array in residuals:
            if last_write(array) > record.time:
                raise runtime_error(
                    f"backward through {self.name}: a tensor it needs was overwritten in place",
                    hint="call backward before the optimizer's step, or clone() first",
                )
        arrays = [*residuals, *(x.array for x in fill_zeros(record, g))]
        run, program = self.captured.executables.run, self.captured.backward
        terms = range(len(program.outputs))
        gradients, _ = current.top.quietly(run, program, arrays, dict(sizes), terms)
        for edge, array in zip(record.inputs, gradients, strict=True):
            if edge is not None and edge in useful:
                yield edge, wrap(array)


class as_leaves:
    """A block where these records have no past and no hooks: the tape of each run has them."""

    def __init__(self, records):
        self.past = {record: (record.inputs, record.hooks) for record in records}

    def __enter__(self):
        for record in self.past:
            record.inputs, record.hooks = (), None

    def __exit__(self, *exc):
        for record, (inputs, hooks) in self.past.items():
            record.inputs, record.hooks = inputs, hooks


@slot("jit.overwritten")
def overwritten(program: Program, inputs) -> list[int]:
    """The results that may be views of memory that is written after a run: the memory of a state
    with an update, or of the given `inputs`.
    """
    exposed = {*inputs, *(s.record for s in program.states if s.update is not None)}
    for record in program.records if exposed else ():
        sources = record.inputs[:1] if record.op.view else record.inputs
        hands_on = record.op.view or record.op.kind == "control" or record.op is ITEM
        if hands_on and not exposed.isdisjoint(sources):
            exposed.add(record)
    return [k for k, record in enumerate(program.results) if record in exposed]


def was_walked(y: Tensor) -> bool:
    """Whether the function itself called backward on y, as a training step does."""
    return y.record is not None and any(r.saved is FREED for r in history([y.record]))


HOLDS = {
    "some": "{grad} is not None and not {stale}",
    "none": "{grad} is None",
    "zeros": "{stale} and {grad} is not None",
    "waiting": "{grad} is None or {stale}",
    "flows": "not {stop}",
    "stops": "{stop}",
}
"""Conditions of a program on a tensor: on the gradient that waits in `.grad`, and on
`stop_gradient`. `holds` has them as functions."""

NAMES = {"grad": "x._grad", "stale": "x._stale", "stop": "x.stop_gradient"}
holds = {name: eval(f"lambda x: {text.format(**NAMES)}") for name, text in HOLDS.items()}
