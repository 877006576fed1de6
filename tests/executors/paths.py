"""Run a program on every execution path, and compare each with the interpreter.

The paths are the interpreter after each pass alone, after each prefix of the list of passes, the
memory plan executed in an arena, C under several strategies, schedules and thresholds, with frozen
weights, and CUDA on the emulated GPU. See README.md.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from random import Random
from typing import NamedTuple
from unittest import mock

import numpy as np

from minipaddle.engine.eager.device import NUMPY
from minipaddle.engine.executors import native
from minipaddle.engine.executors.executable_cache import ExecutableCache
from minipaddle.engine.ir.interpreter import Run
from minipaddle.engine.ir.program import Program, everywhere, open_sizes
from minipaddle.engine.passes.dead_code import dead_code
from minipaddle.engine.passes.manager import PASSES, Optimized, optimized
from minipaddle.engine.passes.memory import plan
from minipaddle.engine.passes.specialise import sizes_of, specialise
from minipaddle.executors.gpu.cuda import CudaExecutable as CudaExecutable
from minipaddle.executors.interpreted import cache_blocking
from minipaddle.executors.interpreted.arena_interpreter import ArenaRun
from minipaddle.executors.interpreted.executable import Interpreted
from minipaddle.passes import frozen_states
from tests.codegen.cuda_on_cpu import Cpu, can_emulate_gpu
from tests.executors.batch import QUICK, Unbuilt, build
from tests.executors.comparing import difference_of, outcome
from tests.executors.opened import compile_opened
from tests.executors.schedules import Drawn, low_thresholds

FORCED = {"budget": 0.0, "price": 1e9, "least": 0}
"""Options with which all that can be recomputed is."""


class Case(NamedTuple):
    """A program whose sizes are numbers, and arrays for its inputs and states, several times."""

    name: str
    program: Program
    calls: list[list]


def closed(name: str, program: Program, calls) -> Case | None:
    """The case of a program for arrays of these shapes; None if only values say its sizes."""
    shapes = tuple(np.shape(a) for a in calls[0])
    if open_sizes(program):
        program = specialise(program, sizes=sizes_of(program, shapes))
    return None if open_sizes(program) else Case(name, program, calls)


@contextlib.contextmanager
def collect_programs(name: str, cases: list[Case]) -> Iterator[None]:
    """Add every program that runs in the block, with its inputs, to the cases."""
    by_shape: dict[tuple, list] = {}
    run = ExecutableCache.run

    def watched(self, program, arrays, *more):
        copies = [np.array(a) for a in arrays]
        by_shape.setdefault((program, *(a.shape for a in copies)), []).append(copies)
        return run(self, program, arrays, *more)

    with mock.patch.object(ExecutableCache, "run", watched):
        yield
    closings = (closed(f"{name}, {key[0].name}", key[0], calls) for key, calls in by_shape.items())
    cases += [case for case in closings if case is not None]


# ---- running ---------------------------------------------------------------------------------


def added(program: Program, original: Program) -> list:
    """The constants that passes have added to the states."""
    return [s.storage.read() for s in program.states[len(original.states) :]]


def interpreted(after: Program, original: Program, make=lambda: Run(NUMPY)) -> Callable:
    """A function that runs a program that passes made of the original."""
    return lambda _, arrays: make()(after, [*arrays, *added(after, original)])


class ExecutionPath(NamedTuple):
    """One path: `make(program)` returns what runs it, or None if that is the plain interpreter."""

    name: str
    make: Callable


def alone(name: str) -> ExecutionPath:
    """The interpreter after one pass."""
    others = [p for p in PASSES if p not in ("specialise", name)]
    options = dict.fromkeys(others, False) | FORCED

    def make(program):
        after = optimized(program, options).program
        return None if after is program else interpreted(after, program)

    return ExecutionPath(f"after {name} alone", make)


@lru_cache(1)
def in_a_row(program: Program) -> Optimized:
    """All passes."""
    return optimized(program, FORCED)


def after_passes(k: int) -> ExecutionPath:
    """The interpreter after pass number k and all before it."""

    def make(program):
        snapshot = in_a_row(program).snapshots[k]
        return interpreted(snapshot.after, program) if snapshot.changed else None

    return ExecutionPath(f"after {k} passes and {PASSES[k]}", make)


def arena(program: Program) -> Callable:
    """After all passes in the memory that is planned; what is read is what was written."""
    planner = partial(plan, inplace=native.find_in_place)
    after = in_a_row(program).program
    return interpreted(after, program, lambda: ArenaRun(NUMPY, check=True, planner=planner))


SMALL = {"LEAST": 1, "BLOCK": 64, "STRETCH": 1, "OPERATIONS": 0}


def in_blocks(program: Program) -> Callable:
    """What runs where there is no compiler, with blocks of a few elements."""
    executable = Interpreted(program, {"fusion": True, "decompose_from": 0})

    def run(program, arrays):
        with mock.patch.multiple(cache_blocking, **SMALL):
            return executable(program, arrays)

    return run


INTERPRETED = [
    *map(alone, dict.fromkeys(PASSES)),
    *map(after_passes, range(len(PASSES))),
    ExecutionPath("in blocks", in_blocks),
    ExecutionPath("in an arena", arena),
]


def compiled(name: str, strategy: dict) -> ExecutionPath:
    """C, not built yet."""

    def make(program):
        places = (lambda *_: []) if "place" in name else native.find_in_place
        with mock.patch.object(native, "find_in_place", places):
            return Unbuilt(program, strategy)

    return ExecutionPath(name, make)


def scheduled(seed: float) -> ExecutionPath:
    """C as large programs get it, or another schedule gives it."""

    def make(program):
        with low_thresholds(Random(seed)):
            return Unbuilt(program, tuned=Drawn(seed))

    return ExecutionPath("native, other schedules", make)


class Frozen(Unbuilt):
    """Values of weights alone are computed before the run; the weights must stay the same."""

    def __call__(self, program, arrays) -> list:
        states = zip(program.states, arrays[len(program.inputs) :], strict=True)
        cells = [
            (s.storage, array) for s, array in states if s.update is None and s.storage is not None
        ]
        if any(np.asarray(cell.read()).tobytes() != array.tobytes() for cell, array in cells):
            return Run(NUMPY)(program, arrays)
        return super().__call__(program, arrays)


def frozen(program: Program) -> Frozen:
    """C with frozen weights, of which small ones are packed, too."""
    with mock.patch.object(frozen_states, "LARGE", 0):
        return Frozen(program, frozen=True)


FROZEN = ExecutionPath("native, frozen", frozen)


def strategies(random: Random, count: int) -> list[ExecutionPath]:
    """Native paths: the default, other schedules, and `count` (at most 6) sampled strategies."""
    off = {p: False for p in PASSES[1:] if random.random() < 0.3}
    others = [
        compiled("native, no fusion", {"fusion": False}),
        compiled("native, computed again", FORCED),
        compiled("native, no epilogues", {"fuse_gemm_epilogue": False}),
        compiled("native, in no place", {}),
        compiled(f"native without {', '.join(off)}", off | FORCED),
        FROZEN,
    ]
    return [compiled("native", {}), scheduled(random.random()), *random.sample(others, count)]


OPEN = ExecutionPath("native, open sizes", compile_opened)
CUDA = ExecutionPath("cuda", lambda program: CudaExecutable(program, device=Cpu()))


class Difference(NamedTuple):
    """What a path does that the interpreter does not."""

    case: Case
    call: int
    path: ExecutionPath
    kind: str
    message: str


# ---- differing -------------------------------------------------------------------------------


class Tally:
    """What was run so far."""

    def __init__(self):
        self.programs = self.records = 0
        self.paths: Counter = Counter()


def differences(
    cases: list[Case], seed: int = 0, *, passes: float = 1.0, cuda: float = 0.0,
    opened: float = 0.0, natives: int = 2, effort=QUICK, parallel=False, tally=None,
) -> Iterator[Difference]:  # fmt: skip
    """Every path of every case that gives something other than the interpreter.

    `passes` is the share of cases that are interpreted after each pass, `cuda` that of the cases
    which the emulated GPU runs, `opened` that of those whose sizes are open in C, `natives` how
    many strategies beside the default C is made with.
    """
    random, runs, unbuilt = Random(seed), [], []
    for case in cases:
        built: list[tuple[ExecutionPath, Callable]] = []
        chosen = INTERPRETED if random.random() < passes else INTERPRETED[-2:]
        gpu = [CUDA] if random.random() < cuda and can_emulate_gpu() else []
        open_too = [OPEN] if opened and random.random() < opened else []
        for path in [*chosen, *strategies(random, natives), *gpu, *open_too]:
            try:
                run = path.make(case.program)
            except Exception as error:
                yield Difference(case, 0, path, "makes", f"{error!r:.500}")
                continue
            if run is not None:
                built.append((path, run))
        runs.append(built)
        unbuilt += [run for _, run in built if isinstance(run, Unbuilt)]
    if unbuilt:
        build(unbuilt, effort, always_parallel=parallel)
    for case, built in zip(cases, runs, strict=True):
        yield from compared(case, built, tally)


def compared(case: Case, runs: list, tally: Tally | None = None) -> Iterator[Difference]:
    """The first call in which each path differs."""
    reported = set()
    for k, arrays in enumerate(case.calls):
        wanted = {case.program: outcome(Run(NUMPY), case.program, arrays)}
        if wanted[case.program].error is not None:  # what nobody needs may go, and its error too
            needed = dead_code(case.program)
            wanted[needed] = outcome(Run(NUMPY), needed, arrays)
        for path, run in runs:
            if path in reported:
                continue
            times = 3 if path is CUDA and not k else 1  # what a graph captures
            for _ in range(times):
                actual = outcome(run, case.program, arrays)
                wrong = [difference_of(each, actual, p, arrays) for p, each in wanted.items()]
                if None not in wrong:
                    reported.add(path)
                    yield Difference(case, k, path, *wrong[-1])
                    break
            if tally is not None:
                tally.paths[path.name.partition(" without")[0]] += times
    if tally is not None:
        tally.programs += 1
        tally.records += sum(1 for _ in everywhere(case.program))


def differs(case: Case, path: ExecutionPath) -> str | None:
    """The kind of difference (a word) that a path shows on a case; None if there is none."""
    try:
        run = path.make(case.program)
    except Exception:
        return "makes"
    if isinstance(run, Unbuilt):
        build([run])
    return next((d.kind for d in compared(case, [(path, run)] if run else [])), None)
