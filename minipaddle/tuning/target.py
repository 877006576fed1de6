"""What is tuned: a native program, the arrays it runs on, and how long its kernels take there."""

from __future__ import annotations

from typing import NamedTuple

from ..core.errors import teach
from ..core.record import Record
from ..executors.choice import Choice
from ..executors.native import Executable
from ..ir.program import Program
from ..jit import to_static
from ..jit.to_static import StaticFunction
from .measure import clock, values_met


class Target(NamedTuple):
    """A program of a function with arrays for it."""

    function: StaticFunction
    choice: Choice
    program: Program
    arrays: list

    def compiled(self, choices: dict, *, timed: bool = False) -> Executable:
        """The program with these choices for its kernels, by signature, and no others."""
        sizes = self.choice.executable(self.program, self.arrays).sizes
        return Executable(self.program, self.choice.strategy, sizes, timed=timed, tuned=choices)

    def values(self, executable: Executable, wanted: set[Record]) -> dict[Record, list]:
        """The inputs that records meet in the program."""
        return values_met(executable.program, [*self.arrays, *executable.constants], wanted)

    def renew(self) -> None:
        """Compile what the function has again, with what was chosen meanwhile."""
        for (program, place, shapes), old in self.choice.made.items():
            if isinstance(old, Executable):
                self.choice.made[program, place, shapes] = self.choice.compiled(program, shapes)


def target_of(function, inputs) -> Target:
    """The program that a function runs for these inputs; see `tune` for what may be given."""
    function = getattr(function, "forward", function)
    if not isinstance(function, StaticFunction):
        function = to_static(function, backend="native")
    called = [e.captured for found in function.cache.entries.values() for e in found]
    if inputs or not called:
        captured, tensors = function.prepared(inputs, {})
        arrays = [x.array for x in tensors]
    else:
        captured = function.concrete_program
        arrays = last_inputs(captured)
    arrays = [a.copy() for a in (*arrays, *(cell.read() for cell in captured.states))]
    choice, program = captured.choice, captured.program
    if not isinstance(choice.executable(program, arrays), Executable):
        why = [*choice.reasons.values()] or [f"its backend is {choice.backend!r}"]
        raise ValueError(
            teach(
                f"{function.__name__} has no native program to tune: {why[0]}",
                hint='to_static(…, backend="native"), on the CPU',
            )
        )
    return Target(function, choice, program, arrays)


def last_inputs(captured) -> list:
    """The arrays that a program was called on last."""
    count = len(captured.program.inputs)
    for made in captured.choice.made.values():
        for context in getattr(made, "contexts", ()):
            found = getattr(context, "held", [])[:count]
            if len(found) == count and all(x is not None for x in found):
                return found
    raise ValueError(
        teach("the program takes inputs", hint="give examples of them: paddle.tune(f, x, y)")
    )


def kernel_seconds(target: Target, executables, rounds: int) -> list[list[dict[str, float]]]:
    """For each executable and each of its runs, in turn with the others: the seconds that each
    kernel took, by signature. They are `timed`.
    """
    own = [[a.copy() for a in target.arrays] for _ in executables]
    found: list[list] = [[] for _ in executables]
    for j in in_turn(len(executables), rounds):
        made, before = executables[j], executables[j].times()
        made(target.program, own[j])
        spent: dict[str, float] = {}
        for (new, record), (old, _) in zip(made.times(), before, strict=True):
            name = made.kernels.signatures[record]
            spent[name] = spent.get(name, 0.0) + new - old
        found[j].append(spent)
    return [runs[1:] for runs in found]


def step_seconds(target: Target, executables, rounds: int) -> list[list[float]]:
    """For each executable the seconds of its runs, in turn with the others'."""
    own = [[a.copy() for a in target.arrays] for _ in executables]
    found: list[list] = [[] for _ in executables]
    for j in in_turn(len(executables), rounds):
        start = clock()
        executables[j](target.program, own[j])
        found[j].append(clock() - start)
    return [runs[1:] for runs in found]


def in_turn(count: int, rounds: int):
    """0 … count - 1, then backwards, …: so many rounds, and one before them to warm up."""
    for k in range(rounds + 1):
        yield from range(count) if k % 2 else reversed(range(count))
