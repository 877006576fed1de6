"""The target of a search: a native program, its arrays, and the seconds of its kernels."""

from typing import NamedTuple

import numpy as np

from ..engine.core.errors import value_error
from ..engine.core.record import Record
from ..engine.executors.executable_cache import ExecutableCache
from ..engine.executors.native import Executable
from ..engine.ir.program import Program
from ..engine.jit.capture import Captured
from ..engine.jit.to_static import StaticFunction
from ..executors.native.timing import TimedExecutable
from ..jit.decorator import to_static
from .measure import clock, inputs_in_run

SEATS = 5
"""How often arrays get new memory while executables are compared."""


class TuningTarget(NamedTuple):
    """A program of a function with arrays for it."""

    function: StaticFunction
    captured: Captured
    program: Program
    arrays: list

    @property
    def executables(self) -> ExecutableCache:
        return self.captured.executables

    def compile(self, choices: dict, *, timed: bool = False) -> Executable:
        """The program as its strategy compiles it, with these choices for its kernels (by
        signature) and no others.
        """
        executables = self.executables
        sizes = ready(executables, self.program, self.arrays).sizes
        strategy, frozen = executables.strategy, executables.frozen
        kind = TimedExecutable if timed else Executable
        return kind(self.program, strategy, sizes, tuned=choices, frozen=frozen)

    def values(self, executable: Executable, wanted: set[Record]) -> dict[Record, list]:
        """The inputs that records get when the program runs."""
        return inputs_in_run(executable.program, [*self.arrays, *executable.weights.arrays], wanted)

    def renew(self) -> None:
        """Compile the program again, with the new choices."""
        for (program, place, shapes), old in self.executables.compiled.items():
            if program is self.program and isinstance(old, Executable):
                key = program, place, shapes
                self.executables.compiled[key] = self.executables.compile(key)
        self.function.stubs.clear()  # they hold what was compiled before
        self.captured.stub_sizes = None


def targets_of(function, inputs) -> list[TuningTarget]:
    """The programs that a function runs for these inputs: one, or a forward and the backward that
    the tape calls. See `tune` for what may be given.
    """
    function = getattr(function, "forward", function)
    if not isinstance(function, StaticFunction):
        function = to_static(function, backend="native")
    if inputs or not len(function.cache):
        captured, tensors = function.capture_for(inputs, {})
        arrays = [x.array for x in tensors]
    else:
        captured = function.concrete_program
        arrays = last_inputs(captured)
    arrays = [a.copy() for a in (*arrays, *(cell.read() for cell in captured.states))]
    executables = captured.executables
    executable = ready(executables, captured.program, arrays)
    if not isinstance(executable, Executable):
        why = [*executables.reasons.values()] or [f"its backend is {executables.backend!r}"]
        what = f"{function.__name__} has no native program to tune: {why[0]}"
        raise value_error(what, hint='to_static(…, backend="native"), on the CPU')
    forward = TuningTarget(function, captured, captured.program, arrays)
    if captured.backward is None:
        return [forward]
    outputs = executable(captured.program, [a.copy() for a in arrays])
    residuals = outputs[captured.residuals : len(captured.program.outputs)]
    cotangents = [np.ones_like(outputs[captured.places[k]]) for k in captured.walk.of]
    backward = TuningTarget(function, captured, captured.backward, [*residuals, *cotangents])
    served = isinstance(ready(executables, captured.backward, backward.arrays), Executable)
    return [forward, backward] if served else [forward]


def ready(executables: ExecutableCache, program: Program, arrays) -> object | None:
    """The executable of a program, after waiting for the compiler."""
    if executables.executable(program, arrays) is None:
        for build in [*executables.pending.values()]:
            build.wait()
    return executables.executable(program, arrays)


def last_inputs(captured) -> list:
    """The arrays that a program was called on last."""
    count = len(captured.program.inputs)
    for (program, *_), executable in captured.executables.compiled.items():
        last = getattr(executable, "last", None)
        if program is captured.program and last is not None:
            return last.held[:count]
    hint = "give examples of them: paddle.tune(f, x, y)"
    raise value_error("the program takes inputs", hint=hint)


def kernel_seconds(target: TuningTarget, executables, rounds: int) -> list[list[dict[str, float]]]:
    """For each executable and each of its runs, in turn with the others: the seconds that each
    kernel took, by signature. They are `timed`.
    """

    def run(made, arrays) -> dict[str, float]:
        before = made.times()
        made(target.program, arrays)
        spent: dict[str, float] = {}
        for (new, record), (old, _) in zip(made.times(), before, strict=True):
            name = made.kernels.signatures[record]
            spent[name] = spent.get(name, 0.0) + new - old
        return spent

    return alternate(target, executables, rounds, run)


def step_seconds(target: TuningTarget, executables, rounds: int) -> list[list[float]]:
    """For each executable the seconds of its runs, in turn with the others'."""

    def run(made, arrays) -> float:
        start = clock()
        made(target.program, arrays)
        return clock() - start

    return alternate(target, executables, rounds, run)


def alternate(target: TuningTarget, executables, rounds: int, run) -> list[list]:
    """The values of `run(executable, arrays)`, about `rounds` for each executable, in turn.

    Each has its own memory, which is replaced SEATS times: the address of arrays makes a difference
    that is not the kernel's. The first run in new memory does not count.
    """
    values: list[list] = [[] for _ in executables]
    for _ in range(SEATS):
        own = [[a.copy() for a in target.arrays] for _ in executables]
        for executable in executables:
            executable.contexts.clear()
        for k in range(-(-rounds // SEATS) + 1):
            for j in range(len(executables))[:: 1 if k % 2 else -1]:
                value = run(executables[j], own[j])
                values[j] += [value] if k else []
    return values
