"""A program as one native function: passes, groups, a memory plan, C, and the call."""

from __future__ import annotations

import ctypes
import hashlib
import os
import threading
from copy import copy
from functools import cache, cached_property, partial

import numpy as np

from ..codegen.kernel import group_emitter
from ..codegen.step import Kernels, Source, source_of
from ..core.record import Record, owner
from ..eager.device import NUMPY
from ..ir.control import fused
from ..ir.interpreter import fail
from ..ir.program import NUMBER, Program
from ..passes.lifetimes import looked_into, specs_of
from ..passes.manager import chosen_by, optimized
from ..passes.nest import Nest, NotOneNest
from ..passes.specialise import open_sizes, specialise
from .arrays import address, as_c, view
from .compiler import load
from .preparation import Early, Preparation

ALIGNMENT = 64

PART = 20_000
"""Letters of C that are worth a compiler of their own, on a processor that is free."""


TUNED: list = []
"""Each gives, for a number of threads, what was chosen for kernels, by their signature."""

CHECKED: list = []
"""Each yields, of records whose kernels check indices, those whose indices were checked before."""


class CannotCompile(Exception):
    """Why a program stays on the interpreter."""


def closed(program: Program, sizes) -> Program:
    """The program for the given sizes; raises CannotCompile if others stay open."""
    program = specialise(program, sizes=sizes or None)
    if unknown := open_sizes(program):
        raise CannotCompile(f"sizes that only its values say: {', '.join(sorted(unknown))}")
    return program


def in_place(record: Record) -> list[tuple[int, int]]:
    """(result, input) where a kernel may write the result over the input."""
    if record.op is fused:
        region = record.attrs["region"]
        records, outputs, given = region.records, region.outputs, region.inputs
    elif record.op.kind == "elementwise":
        records, outputs, given = [record], [record], record.inputs
    else:
        return []
    try:
        group = group_emitter(record)
        found = group.in_place(record) if group else Nest(records, outputs).in_place()
    except NotOneNest:
        return []
    return [(k, j) for k, x in found for j, y in enumerate(given) if y is x]


class Executable:
    """A program of numbers for sizes, compiled. Calling it is like running it: see `Run`.

    What the program updates is changed in place, where it was given. `tuned` are choices for
    kernels by their signature: those that `paddle.tune` found on this machine, unless the strategy
    says {"tuned": False}. `frozen`: the states it does not update are weights that change seldom.
    """

    def __init__(
        self, program, strategy=None, sizes=None, *, timed=False, tuned=None, frozen=False
    ):
        program = closed(program, sizes)
        self.moving = partial(Executable, program, strategy, sizes, tuned=tuned)
        done = self.optimized = optimized(program, {"frozen": frozen} | {**chosen_by(strategy)})
        self.sizes = sizes or {}
        self.snapshots, self.program = done.snapshots, done.program
        added = [s.cell for s in done.program.states[len(program.states) :]]
        self.constants, self.prepared = [cell.read() for cell in added], Preparation(added)
        if tuned is None:
            found = [] if done.chosen.get("tuned") is False else TUNED
            tuned = {name: choices for each in found for name, choices in each(threads()).items()}
        kept = [s.record for s in done.program.states[len(program.states) :]]
        self.kernels = Kernels(self.program, tuned.get, kept)
        self.plan = done.planned(self.kernels.workspace, cache(in_place))
        self.timed = timed
        self.source = self.written()
        self.load()

    def load(self) -> None:
        """Compile the C file, and get its functions."""
        self.library = library_of(self.source)
        self.prepare()

    def written(self) -> Source:
        """The C file; its functions are named after what it holds."""
        text = source_of(self.kernels, self.plan, "PREFIX", timed=self.timed).text
        prefix = "paddle_" + hashlib.sha256(text.encode()).hexdigest()[:12]
        return source_of(self.kernels, self.plan, prefix, timed=self.timed)

    def report(self) -> str:
        """What the passes did, how many groups there are, what the host computes, the memory."""
        records = self.program.records
        groups = [r for r in records if r.op is fused]
        inside = sum(len(r.attrs["region"].records) for r in groups)
        host = sorted({r.op.name for r in self.source.hosted if self.kernels.of[r] is None})
        lines = [
            self.optimized.report(self.plan),
            f"{len(groups)} groups of {inside} records; {len(self.kernels.texts)} kernels in "
            f"{len(self.source.own.splitlines())} lines of C",
            f"by the host: {', '.join(host) or 'nothing'}",
            f"tuned kernels: {', '.join(self.tuned_kernels()) or 'none'}",
            str(self.plan),
        ]
        return "\n".join(lines)

    def tuned_kernels(self) -> list[str]:
        """The names of the kernels that are not written as the rules say."""
        of = self.kernels.signatures.items()
        tuned = [self.kernels.of[r].name for r, name in of if name in self.kernels.choices]
        return [*dict.fromkeys(tuned)]

    def retimed(self) -> Executable:
        """The same program, which takes the time of each kernel: see `times`."""
        twin = copy(self)
        twin.timed = True
        twin.source = twin.written()
        twin.library = library_of(twin.source)
        twin.prepare()
        return twin

    def times(self) -> list[tuple[float, Record]]:
        """The seconds that each record's kernel took so far, where the program is `timed`."""
        count = len(self.source.timed)
        ticks = (ctypes.c_double * count).in_dll(self.library, f"{self.source.prefix}_seconds")
        return list(zip(ticks, self.source.timed, strict=True))

    def prepare(self) -> None:
        prefix = self.source.prefix
        self.run = getattr(self.library, f"{prefix}_run")  # of a table: see `Context`
        self.set_threads = getattr(self.library, f"{prefix}_threads")
        host = getattr(self.library, f"{prefix}_host")
        host.argtypes = [ctypes.c_void_p]
        host(ctypes.cast(HOST, ctypes.c_void_p))
        if self.source.uses_blas and (sgemm := blas()):
            setter = getattr(self.library, f"{prefix}_blas")
            setter.argtypes = [ctypes.c_void_p]
            setter(sgemm)
        self.inputs = len(self.program.inputs)
        self.outputs = [(r.shape, r.dtype) for r in self.program.outputs]
        self.updated = [k for k, s in enumerate(self.program.states) if s.update is not None]
        self.given = [(r.shape, r.dtype) for r in self.program.given]
        self.early = Early(self)
        self.contexts: list[Context] = []
        self.last: Context | None = None  # what was called last holds the inputs of that call
        self.threads = 0
        self.risked = self.at_risk()

    def at_risk(self) -> list[int]:
        """The states that are updated before the last record that may fail: a run works on copies
        of these. An index that was found good once does not fail again.
        """
        hosted, of = self.source.hosted, self.kernels.of
        safe = {record for each in CHECKED for record in each(hosted)}
        failing = [record for record in hosted if of[record] is None or record not in safe]
        return updated_before(self.program, failing)

    @cached_property
    def unfrozen(self) -> Executable:
        """The program for states that change with every run."""
        return self.moving()

    @property
    def quick(self) -> bool:
        """Does nothing but C happen in a run? One that fails has changed nothing then."""
        return not self.risked and all(self.kernels.of[r] is not None for r in self.source.hosted)

    def context(self) -> Context:
        """Memory for one call at a time."""
        if self.threads != threads():
            self.threads = threads()
            self.set_threads(self.threads)
        self.last = self.contexts.pop() if self.contexts else Context(self)
        return self.last

    def __call__(self, program: Program, arrays) -> list:
        """The outputs, then the updated states, for inputs and states."""
        if self.prepared.sources and self.prepared.stale():
            if self.prepared.restless:
                return self.unfrozen(program, arrays)
            self.prepared.renew()
            self.early.renew()
        context = self.context()
        try:
            return context.run(arrays)
        finally:
            self.contexts.append(context)


def updated_before(program: Program, failing) -> list[int]:
    """The states that are updated before the last of these records."""
    when = {r: t for t, r in enumerate(program.records)}
    last = max((when.get(r, len(when)) for r in failing), default=-1)  # in a branch: anywhere
    made = {k: maker(s.update) for k, s in enumerate(program.states) if s.update}
    return [k for k, r in made.items() if when.get(r, -1) <= last]


def maker(record: Record) -> Record:
    """The record whose kernel makes a value: views and items are of another."""
    while (seen := looked_into(record) if record.dtype is not None else None) is not None:
        record = seen[0]
    return record


class Context:
    """The memory of one call at a time: an arena, and one table of pointers to it and all else."""

    def __init__(self, executable: Executable):
        self.executable, made = executable, executable
        self.room = room = np.zeros(made.plan.size + ALIGNMENT, "uint8")
        count = len(made.given)
        self.table = (ctypes.c_void_p * (1 + count + len(made.outputs)))()
        self.all = ctypes.byref(self.table)
        self.arena = -(-room.ctypes.data // ALIGNMENT) * ALIGNMENT
        self.held: list = [None] * count  # what the pointers point to
        self.used: list = [None] * count  # itself, or a copy as C needs it
        self.error: Exception | None = None
        for k, array in enumerate(made.early.constants, count - len(made.constants)):
            self.hold(k, array)

    @property
    def arena(self) -> int:
        """Where the arena begins."""
        return self.table[0]

    @arena.setter
    def arena(self, place: int) -> None:
        self.table[0] = place

    def hold(self, k: int, array) -> None:
        """Let input or state `k` be this array, or a copy as C needs it."""
        self.held[k], self.used[k] = array, as_c(array, *self.executable.given[k])
        self.table[1 + k] = address(self.used[k])

    def bind(self, k: int, array) -> bool:
        """The same for an array that C can use as it is, whose memory no state shares; False if it
        is none.
        """
        shape, dtype = self.executable.given[k]
        if type(array) is not np.ndarray or array.shape != shape or array.dtype != dtype:
            return False
        if not (array.flags.c_contiguous and array.flags.aligned) or self.shared(k, array):
            return False
        self.hold(k, array)
        return True

    def shared(self, k: int, array) -> bool:
        """Would a state that is updated share its memory with another array?"""
        made, root = self.executable, owner(array)
        updated = {made.inputs + j for j in made.updated}
        others = range(len(self.used)) if k in updated else updated
        return any(owner(self.used[j]) is root for j in others if j != k)

    def result(self, k: int):
        """New memory for output `k`."""
        array = np.empty(*self.executable.outputs[k])
        self.table[1 + len(self.held) + k] = address(array)
        return array

    def run(self, arrays) -> list:
        made, held, used = self.executable, self.held, self.used
        for k, array in enumerate(arrays):
            if array is not held[k]:
                self.hold(k, array)
            elif used[k] is not array:
                used[k][...] = array
        if made.risked:
            self.keep_states()
        outputs = [self.result(k) for k in range(len(made.outputs))]
        before, running.context = running.context, self
        try:
            failed = made.run(self.all)
        finally:
            running.context = before
        if failed:
            error, self.error = self.error, None
            raise error
        return outputs + [used[made.inputs + k] for k in made.updated]

    def keep_states(self) -> None:
        """A run that may fail on the way works on copies of what it updates."""
        for k in self.executable.risked:
            k += self.executable.inputs
            self.used[k] = self.used[k].copy()
            self.table[1 + k] = address(self.used[k])
            self.held[k] = None

    def host(self, k: int, given, made) -> int:
        """Compute record `k` of those without a kernel."""
        record = self.executable.source.hosted[k]
        try:
            memory, inputs = iter(range(len(record.inputs))), []
            for x in record.inputs:
                is_number = x.op is NUMBER
                value = x.attrs["value"] if is_number else view(given[next(memory)], x.spec)
                inputs.append(value)
            try:
                found = record.op.evaluate(NUMPY, inputs, record.attrs)
            except Exception as error:
                fail(record, error)
            several = record.dtype is None
            for j, value in enumerate(found if several else [found]):
                np.copyto(view(made[j], specs_of(record)[j]), value, casting="unsafe")
        except BaseException as error:
            self.error = error
            return 1
        return 0


class Running(threading.local):
    """The call that runs on this thread."""

    context: Context | None = None


running = Running()

HOST = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_int,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_void_p),
)(lambda k, given, made: running.context.host(k, given, made) if running.context else 1)
"""What C asks to compute; of a bound call, which knows no context, nothing: it fails."""


@cache
def blas() -> int | None:
    """The address of OpenBLAS's `cblas_sgemm` with 64-bit sizes, which NumPy brings."""
    try:
        library = ctypes.CDLL(np._core._multiarray_umath.__file__)
        return ctypes.cast(library.scipy_cblas_sgemm64_, ctypes.c_void_p).value
    except (OSError, AttributeError):
        return None


def library_of(source: Source) -> ctypes.CDLL:
    """The compiled library of a program, which as many compilers make as programs have threads."""
    text = source.text
    count = min(threads(), 1 + len(text) // PART)
    return load(text, partial(source.parts, count) if count > 1 else None)


@cache
def threads() -> int:
    """How many a program may use: `MINIPADDLE_THREADS`, else `OMP_NUM_THREADS`, else all."""
    for name in ("MINIPADDLE_THREADS", "OMP_NUM_THREADS"):
        if (said := os.environ.get(name, "")).isdigit():
            return int(said)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
