"""Which executor runs a program: the native one where it can, otherwise the interpreter."""

from __future__ import annotations

import os

from ..core.errors import teach
from ..eager.device import current_place
from ..ir.interpreter import Run
from ..ir.program import Program
from ..passes.specialise import open_sizes, sizes_of
from .compiler import compiler
from .native import CannotCompile, Executable

BACKENDS = ("native", "interpreter")


def backend_named(name: str | None) -> str:
    """A backend by its name; None is what `MINIPADDLE_BACKEND` says, or the interpreter.

    Paddle's name for its compiler, CINN, means the native one too.
    """
    name = name or os.environ.get("MINIPADDLE_BACKEND") or "interpreter"
    name = "native" if name == "CINN" else name
    if name not in BACKENDS:
        raise ValueError(teach(f"backend={name!r}", expected=f"one of {', '.join(BACKENDS)}"))
    return name


class Choice:
    """Runs the programs of one captured function.

    `made` are the executables so far by program and sizes; `reasons` say for programs that stay on
    the interpreter, why.
    """

    def __init__(self, backend: str | None = None, strategy=None):
        self.backend, self.strategy = backend_named(backend), strategy
        self.made: dict[tuple, Executable] = {}
        self.reasons: dict[Program, str] = {}
        self.closed: dict[Program, bool] = {}  # are all sizes of a program numbers?

    def run(self, program: Program, arrays, sizes: dict | None = None) -> tuple[list, dict]:
        """The results of a program (outputs, then updates), and the sizes that were open."""
        executable = self.executable(program, arrays)
        if executable is not None:
            return executable(program, arrays), executable.sizes
        run = Run(current_place().module, sizes)
        return run(program, arrays), run.sizes

    def executable(self, program: Program, arrays) -> Executable | None:
        """The executable of a program for arrays like these; None if it is interpreted."""
        found = self.made.get((program, None))
        if found is not None:
            return found
        if program in self.reasons or self.backend == "interpreter":
            return None
        if current_place().module.name != "numpy":
            return None
        if program not in self.closed:
            self.closed[program] = not open_sizes(program)
        key = None if self.closed[program] else tuple(a.shape for a in arrays)
        if (program, key) not in self.made:
            try:
                self.made[program, key] = self.compiled(program, key)
            except CannotCompile as why:
                self.reasons[program] = str(why)
                return None
        return self.made[program, key]

    def compiled(self, program: Program, shapes) -> Executable:
        if compiler() is None:
            raise CannotCompile("there is no C compiler: see minipaddle.utils.run_check()")
        sizes = sizes_of(program, shapes) if shapes else {}
        return Executable(program, self.strategy, sizes)
