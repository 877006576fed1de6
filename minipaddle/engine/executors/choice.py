"""Which executor runs a program: a compiled one where it can, otherwise the interpreter.

Compiled means C where tensors are made on the CPU, and CUDA where they are made on a GPU. Without a
C compiler the interpreter runs what the passes leave, large groups in blocks.
"""

from __future__ import annotations

import os

from ..core.errors import value_error
from ..eager.device import current_place
from ..ir.interpreter import Run
from ..ir.program import Program
from ..passes.data_parallel import data_parallel
from ..passes.manager import arguments, chosen_by
from ..passes.specialise import open_sizes, sizes_of
from .compiler import Unusable, compiler, give_up, unusable
from .native import CannotCompile, Executable

BACKENDS = ("native", "cuda", "interpreter")
BUILDERS: dict[str, object] = {}
"""Further executors, each `build(program, strategy, sizes)`, by the kind of place they compute on
("gpu"); "no compiler" stands in for the native one where there is no C compiler."""


def backend_named(name: str | None, strategy=None) -> str:
    """A backend by its name; None is what the strategy's `build_cinn_pass` or, if it is silent,
    `MINIPADDLE_BACKEND` says, or the interpreter.

    "native" is what compiles for the place, "cuda" insists on a GPU. Paddle's name for its
    compiler, CINN, means the native one too.
    """
    compiled = chosen_by(strategy).get("build_cinn_pass")
    if name is None and compiled is not None:
        name = "native" if compiled else "interpreter"
    name = name or os.environ.get("MINIPADDLE_BACKEND") or "interpreter"
    name = "native" if name == "CINN" else name
    if name not in BACKENDS:
        raise value_error(f"backend={name!r}", expected=f"one of {', '.join(BACKENDS)}")
    return name


class Choice:
    """Runs the programs of one captured function.

    `made` are the executables so far by program, place and sizes; `reasons` say for programs that
    stay on the interpreter, why.
    """

    def __init__(self, backend: str | None = None, strategy=None):
        self.backend, self.strategy = backend_named(backend, strategy), strategy
        self.made: dict[tuple, object] = {}
        self.reasons: dict[tuple, str] = {}
        self.closed: dict[Program, bool] = {}  # are all sizes of a program numbers?
        self.interpreted: dict[Program, Program] = {}
        self.frozen = False  # do states that are not updated stay what they are for many runs?

    def run(self, program: Program, arrays, sizes: dict | None = None) -> tuple[list, dict]:
        """The results of a program (outputs, then updates), and the sizes that were open."""
        executable = self.executable(program, arrays)
        if executable is not None:
            return executable(program, arrays), executable.sizes
        run = Run(current_place().module, sizes)
        return run(self.averaging(program), arrays), run.sizes

    def averaging(self, program: Program) -> Program:
        """The program as the interpreter runs it: where gradients are marked, with averages."""
        if program not in self.interpreted:
            chosen = chosen_by(self.strategy)
            self.interpreted[program] = data_parallel(
                program, **arguments("passes.data_parallel", chosen)
            )
        return self.interpreted[program]

    def executable(self, program: Program, arrays) -> object | None:
        """The executable of a program for arrays like these; None if it is interpreted."""
        place = current_place().name
        found = self.made.get((program, place, None))
        if found is not None:
            return found
        if self.backend == "interpreter" or (program, place) in self.reasons:
            return None
        if program not in self.closed:
            self.closed[program] = not open_sizes(program)
        shapes = None if self.closed[program] else tuple(a.shape for a in arrays)
        key = program, place, shapes
        if key not in self.made:
            try:
                self.made[key] = self.compiled(program, shapes)
            except CannotCompile as why:
                self.reasons[program, place] = str(why)
                return None
        return self.made[key]

    def compiled(self, program: Program, shapes) -> object:
        sizes = sizes_of(program, shapes) if shapes else {}
        if (build := BUILDERS.get(current_place().kind)) is not None:
            return build(program, self.strategy, sizes)
        if self.backend == "cuda":
            raise CannotCompile('the place is the CPU: paddle.set_device("gpu") first')
        if compiler() is not None and not unusable:
            try:
                return Executable(program, self.strategy, sizes, frozen=self.frozen)
            except Unusable as why:
                give_up(why)
        if "no compiler" not in BUILDERS:
            raise CannotCompile("there is no C compiler")
        return BUILDERS["no compiler"](program, self.strategy, sizes)
