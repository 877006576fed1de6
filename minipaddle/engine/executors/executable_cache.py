"""Which executor runs a program: a compiled one where it can, otherwise the interpreter.

Compiled means C where tensors are made on the CPU, and CUDA where they are made on a GPU. Without a
C compiler the interpreter runs what the passes leave, large groups in blocks.
"""

from __future__ import annotations

import os
from functools import cache

from ..core.errors import value_error
from ..core.rank import Cause, hash_64
from ..eager.device import current_place
from ..eager.tracer import alone
from ..ir.interpreter import Run
from ..ir.program import Program, open_sizes
from ..passes.manager import optimized, run_pass, survey, switches_of
from ..passes.partition import partition
from ..passes.specialise import sizes_of
from ..sharding.array import ShardedArray, cause_of_whole, sharded
from .compiler import Unusable, compiler, give_up, unusable
from .native import CannotCompile, Executable

BUILDERS: dict[str, object] = {}
"""Further executors, each `build(program, strategy, sizes)`, by the kind of place they compute on
("gpu"); "no compiler" stands in for the native one where there is no C compiler."""


def backend_named(name: str | None, strategy=None) -> str:
    """A backend by its name. For None the strategy's `build_cinn_pass` decides, then
       `MINIPADDLE_BACKEND`; otherwise it is "auto" (the engine alone has no such backend, and
       interprets).

    "native" is what compiles for the place, "cuda" insists on a GPU. Paddle's name for its
    compiler, CINN, means the native one too.
    """
    compiled = switches_of(strategy).get("build_cinn_pass")
    if name is None and compiled is not None:
        name = "native" if compiled else "interpreter"
    default = "auto" if "auto" in BACKENDS else "interpreter"
    name = name or os.environ.get("MINIPADDLE_BACKEND") or default
    name = "native" if name == "CINN" else name
    if name not in BACKENDS:
        raise value_error(f"backend={name!r}", expected=f"one of {', '.join(BACKENDS)}")
    return name


class ExecutableCache:
    """The executables of the programs of one captured function: builds them, and runs programs.

    `compiled` are the executables by program, place and sizes, `pending` what is being compiled
    meanwhile; `reasons` say for programs that stay on the interpreter, why; `interpreted` are
    programs as the interpreter runs them, with averages where gradients are marked.
    """

    def __init__(self, backend: str | None = None, strategy=None):
        self.backend, self.strategy = backend_named(backend, strategy), strategy
        self.compiled: dict[tuple, object] = {}
        self.pending: dict[tuple, object] = {}
        self.reasons: dict[tuple, str] = {}
        self.interpreted: dict[Program, Program] = {}
        self.parts: dict[tuple, tuple] = {}  # programs of this rank, by placements of arrays
        self.open_sizes, self.number_of = cache(open_sizes), cache(number_of)
        self.frozen = False  # whether states without an update stay the same for many runs

    def __str__(self) -> str:
        """Which executors serve now."""
        kinds = {getattr(each, "kind", "compiled"): None for each in self.compiled.values()}
        kinds |= dict.fromkeys(self.reasons.values())
        kinds |= {str(build): None for build in self.pending.values()}
        return "; ".join(kinds) or "interpreter"

    def run(self, program: Program, arrays, sizes=None, terms=()) -> tuple[list, dict]:
        """The results of a program (outputs, then updates), and the sizes that were open. On
        arrays in pieces the outputs numbered `terms` may stay terms.
        """
        if ShardedArray.used and any(type(a) is ShardedArray for a in arrays):
            return self.run_on_pieces(program, arrays, terms), {}
        executable = self.executable(program, arrays)
        if executable is not None:
            return executable(program, arrays), executable.sizes
        if program not in self.interpreted:
            chosen = switches_of(self.strategy)
            self.interpreted[program] = run_pass(
                "async_collectives", program, chosen, survey(program, {})
            )
        run = Run(current_place().module, sizes)
        return run(self.interpreted[program], arrays), run.sizes

    def run_on_pieces(self, program: Program, arrays, terms=()) -> list:
        """The results for arrays, some of them in pieces, as `partition` says."""
        view = next(a.view for a in arrays if type(a) is ShardedArray)
        placements = [getattr(a, "placements", view.replicated) for a in arrays]
        key = program, view, *placements
        if first := key not in self.parts:
            self.parts[key] = self.part_of(program, placements, view, terms)
        part, outputs = self.parts[key]
        with cause_of_run(program, arrays, self.number_of(program), first) as cause:
            pieces, _ = self.run(part, [getattr(a, "local", a) for a in arrays])
        own = arrays[len(program.inputs) :]
        updated = [a for a, state in zip(own, program.states) if state.update is not None]
        results = [
            ShardedArray(y, r.shape, p, view, cause)
            for y, r, p in zip(pieces, program.outputs, outputs)
        ]
        for a, y in zip(updated, pieces[len(outputs) :], strict=True):
            whole = type(a) is not ShardedArray
            results.append(y if whole else a if y is a.local else a.like(y))
            if not whole:
                results[-1].cause = cause
        return results

    def part_of(self, program: Program, placements: list, view, terms=()) -> tuple:
        """The program of this rank, and the placements of its outputs."""
        chosen = switches_of(self.strategy)
        lowered = optimized(program, chosen, until="decompose").program
        lowered = run_pass("cse", lowered, chosen, survey(lowered, {}))  # each value is moved once
        return partition(lowered, placements, view, terms)

    def executable(self, program: Program, arrays) -> object | None:
        """The executable of a program for arrays like these; None if it is interpreted."""
        place = current_place().name
        executable = self.compiled.get((program, place, None))
        if executable is not None:
            return executable
        if self.backend == "interpreter" or (program, place) in self.reasons:
            return None
        shapes = tuple(a.shape for a in arrays) if self.open_sizes(program) else None
        key = program, place, shapes
        if key not in self.compiled:
            try:
                executable = BACKENDS[self.backend](self, key)
                if executable is not None:
                    self.compiled[key] = executable
            except CannotCompile as why:
                self.reasons[program, place] = str(why)
        return self.compiled.get(key)

    def build(self, key: tuple) -> object:
        """A new executable; if the compiler proves unusable, the one that needs none."""
        try:
            return self.compile(key)
        except Unusable as why:
            give_up(why)
            return self.compile(key)

    def compile(self, key: tuple) -> object:
        """A new executable; raises CannotCompile, or Unusable if the compiler does not work."""
        program, _, shapes = key
        args = program, self.strategy, sizes_of(program, shapes) if shapes else {}
        build = BUILDERS.get(current_place().kind)
        if build is None and self.backend == "cuda":
            raise CannotCompile('the place is the CPU: paddle.set_device("gpu") first')
        if build is None and (compiler() is None or unusable):
            build = BUILDERS.get("no compiler")
            if build is None:
                raise CannotCompile("there is no C compiler")
        with alone():
            built = build(*args) if build else Executable(*args, frozen=self.frozen, load=False)
        if build is None:
            built.load()  # another thread may trace while the compiler runs
        return built


def number_of(program: Program) -> int:
    """A hash of the operators of a program."""
    return hash_64(*map(repr, program.records))


def cause_of_run(program: Program, arrays, number: int, first: bool) -> Cause:
    """The cause of the results of a program on pieces: each rank counts the other arrays as whole,
    so they must be the same in all of them.
    """
    wholes = [None if sharded(a) else cause_of_whole(a, wait=first) for a in arrays]
    numbers = [(cause or a.cause).number for cause, a in zip(wholes, arrays)]
    return Cause(hash((number, *numbers)), format_run, program, wholes)


def format_run(program: Program, wholes: list) -> str:
    """A run of a program with its replicated inputs, as text."""
    names = [r.attrs.get("name") or f"argument {k}" for k, r in enumerate(program.inputs)]
    names += [state.name or "an outer tensor" for state in program.states]
    shown = [f"{name}={cause}" for name, cause in zip(names, wholes, strict=True) if cause]
    return f"{program.name}({', '.join(shown)})"


BACKENDS = {"native": ExecutableCache.build, "cuda": ExecutableCache.build, "interpreter": None}
"""For each backend a function that returns the executable for a key, or None for now."""
