"""A program as one native function: passes, groups, a memory plan, C, and the call."""

from __future__ import annotations

import ctypes
import os
import threading
from functools import cache, partial
from time import perf_counter
from weakref import WeakSet

import numpy as np

from ..codegen.kernel import IN_PLACE, Kernel, group_emitter
from ..codegen.step import KernelTable, is_alias, refusal, source_of
from ..codegen.translation_unit import function_pointers
from ..core.record import Record
from ..core.slots import slot
from ..eager.device import NUMPY
from ..ir.control import fused
from ..ir.interpreter import fail
from ..ir.program import NUMBER, Program, open_sizes
from ..passes.buffer_assignment import MemoryPlan
from ..passes.lifetimes import specs_of
from ..passes.manager import optimized, switches_of
from ..passes.nest import Nest, NotOneNest
from ..passes.specialise import specialise
from .arrays import address, array_at, as_c
from .compiler import cache_folder, load, load_copy

ALIGNMENT = 64


TUNED: dict[str, object] = {}
"""Name of a file in the cache folder -> function: number of threads -> choices of schedules, by the
signature of kernels. Where there is no such file, the function is not called."""

LIVE: WeakSet = WeakSet()
"""The executables whose library is loaded."""

SPLIT: list = []
"""A function of a `Source` and a compiler that compiles the file in parts, and gives the paths of
objects; none for a file that is better compiled as a whole."""

CHECKED: list = []
"""Functions that filter records with checked indices: those that an earlier record checked."""


OPEN: list = [dict]
"""The last one says how C knows the open sizes of a program: as numbers. `minipaddle.codegen` has
one for which they are arguments, so that the C files for several lengths are the same."""


class Constants:
    """The states that passes added: values known before the run."""

    sources = ()  # storages of weights that may change between runs
    kernels = KernelTable

    def __init__(self, states):
        self.arrays = self.inputs = [state.storage.read() for state in states]

    def connect(self, executable: Executable) -> None:
        """Called when the library is loaded."""


WEIGHTS: list[type[Constants]] = [Constants]
"""The last one holds what passes added. `minipaddle.executors` adds one whose values are computed
again when a weight has changed (`current`), and whose kernels may want them in another form."""


class CannotCompile(Exception):
    """Why a program stays on the interpreter."""


def fix_sizes(program: Program, sizes) -> Program:
    """The program for the given sizes; raises CannotCompile if others stay open."""
    program = specialise(program, sizes=sizes) if sizes else program
    if unknown := open_sizes(program):
        raise CannotCompile(f"sizes that depend on values: {', '.join(sorted(unknown))}")
    return program


def find_in_place(record: Record, kernel: Kernel | None = None) -> list[tuple[int, int]]:
    """Pairs (result, input): the kernel may write the result over the input."""
    if record.op is fused:
        region = record.attrs["region"]
        records, outputs, inputs = region.records, region.outputs, region.inputs
    elif record.op.kind == "elementwise":
        records, outputs, inputs = [record], [record], record.inputs
    else:
        return IN_PLACE.get(record.op.name, [])
    try:
        group = group_emitter(record)
        pairs = group.in_place(record) if group else kernel and kernel.in_place
        pairs = Nest(records, outputs).in_place() if pairs is None else pairs
    except NotOneNest:
        return []
    return [(k, j) for k, x in pairs for j, y in enumerate(inputs) if y is x]


class Executable:
    """A compiled program with fixed sizes. A call runs it like the interpreter's `Run`.

    The program updates states in place, in the arrays of the call. `tuned` are choices for kernels
    by their signature. The default is what `paddle.tune` found on this machine, unless the strategy
    has {"tuned": False}. `frozen`: states without updates are weights that seldom change. With
    load=False the C file is only written, and `load()` compiles it later.
    """

    source_of = staticmethod(source_of)

    def __init__(
        self, program, strategy=None, sizes=None, *, tuned=None, frozen=False, load=True
    ):  # fmt: skip
        program = fix_sizes(program, sizes and OPEN[-1](sizes))
        self.sizes, self.seconds = sizes or {}, {}
        changing = {**switches_of(strategy), "frozen": False}
        self.again = partial(Executable, program, changing, sizes, tuned=tuned)
        self.run_passes(program, {"frozen": frozen} | {**switches_of(strategy)})
        self.write_c(tuned)
        if load:
            self.load()

    def run_passes(self, program: Program, switches: dict) -> None:
        """Rewrite the program. Constants and folded weights become further states of it."""
        self.optimized = self.clock("passes", optimized, program, switches)
        self.snapshots, self.program = self.optimized.snapshots, self.optimized.program
        states = self.program.states
        self.weights = WEIGHTS[-1](states[len(program.states) :])
        self.inputs = len(self.program.inputs)
        self.given = [(r.shape, r.dtype) for r in self.program.given]
        self.outputs = [(r.shape, r.dtype) for r in self.program.outputs]
        self.updated = [k for k, s in enumerate(states) if s.update is not None]

    def write_c(self, tuned: dict | None) -> None:
        """Write a kernel for each record, plan the memory, and write the C file."""
        if tuned is None:
            wanted = TUNED if self.optimized.chosen.get("tuned") is not False else {}
            there = [read for file, read in wanted.items() if (cache_folder() / file).exists()]
            tuned = {name: choices for read in there for name, choices in read(threads()).items()}
        self.kernels = kernels = self.clock("kernels", self.weights.kernels, self.program, tuned)
        in_place = cache(lambda record: find_in_place(record, kernels.of.get(record)))
        self.plan = self.clock("plan", self.optimized.planned, kernels.workspace, in_place)
        self.source = self.clock("C file", self.source_of, self.kernels, self.plan)

    def load(self) -> None:
        """Compile the C file."""
        parts = partial(SPLIT[0], self.source) if SPLIT else None
        self.library = self.clock("compilation", load, self.source.text, parts)
        if arguments := self.source.arguments:
            self.library = load_copy(self.library)
            self.function("arguments")((ctypes.c_int64 * len(arguments))(*arguments))
        self.clock("load", self.connect)

    def connect(self) -> None:
        """Connect the functions of the library with Python."""
        self.run, self.set_threads = self.first_run, self.function("threads")
        self.function("host")(ctypes.cast(HOST, ctypes.c_void_p))
        for name, find in function_pointers(self.source.helpers).items():
            self.function(name)(ctypes.c_void_p(find()))
        self.weights.connect(self)
        self.contexts: list[CallContext] = []  # that no call uses at the moment
        self.last: CallContext | None = None  # holds the inputs of the last call
        self.threads = 0
        LIVE.add(self)
        self.states_at_risk = self.find_states_at_risk()

    def function(self, name: str):
        """A function of the C file."""
        return getattr(self.library, f"{self.source.prefix}_{name}")

    def clock(self, stage: str, function, *args, **options):
        """Call a function, and keep its seconds as a stage of the first run."""
        began = perf_counter()
        result = function(*args, **options)
        self.seconds[stage] = perf_counter() - began
        return result

    def first_run(self, table) -> int:
        """Run the C function; later runs do so without the clock."""
        self.run = self.function("run")
        return self.clock("first run", self.run, table)

    def report(self) -> str:
        """The work of the passes, the groups and kernels, the records of the host, the memory."""
        records = self.program.records
        groups = [r for r in records if r.op is fused]
        inside = sum(len(r.attrs["region"].records) for r in groups)
        without = [r for r in self.source.hosted if self.kernels.of[r] is None]
        host = sorted({f"{r.op.name} ({refusal(r)})" for r in without})
        lines = [
            self.optimized.report(self.plan),
            f"{len(groups)} groups of {inside} records; {len(self.kernels.texts)} kernels in "
            f"{len(self.source.own.splitlines())} lines of C",
            f"by the host: {', '.join(host) or 'nothing'}",
            f"tuned kernels: {', '.join(self.find_tuned_kernels()) or 'none'}",
            str(self.plan),
        ]
        return "\n".join(lines)

    def find_tuned_kernels(self) -> list[str]:
        """The names of the kernels that follow a tuned schedule."""
        return [*dict.fromkeys(self.kernels.of[r].name for r in self.kernels.tuned_records)]

    def find_states_at_risk(self) -> list[int]:
        """The states that are updated before the last record that may fail. A run works on copies
        of these. An index that an earlier record has checked cannot fail.
        """
        hosted, of = self.source.hosted, self.kernels.of
        safe = {record for each in CHECKED if self.updated for record in each(hosted, self.program)}
        failing = [record for record in hosted if of[record] is None or record not in safe]
        return find_early_writes(self.plan, failing)

    def context(self) -> CallContext:
        """Memory for one call at a time."""
        if self.threads != threads():
            self.threads = threads()
            self.set_threads(self.threads)
        self.last = self.contexts.pop() if self.contexts else CallContext(self)
        return self.last

    def __call__(self, program: Program, arrays) -> list:
        """The outputs, then the updated states, for inputs and states."""
        if self.weights.sources and (other := self.weights.current(self)) is not self:
            return other(program, arrays)
        context = self.context()
        try:
            return context.run(arrays)
        finally:
            self.contexts.append(context)


@slot("native.find_early_writes")
def find_early_writes(plan: MemoryPlan, failing) -> list[int]:
    """The states that are written before the last of these records, or by it, unless it checks its
    indices first.
    """
    when = {r: t for t, r in enumerate(plan.program.records)}
    last = max((when.get(r, len(when)) for r in failing), default=-1)  # in a branch: at any time
    early = [r for r, t in when.items() if t <= last - (r.op.name in IN_PLACE) and not is_alias(r)]
    places = [plan.location(r, k) for r in early for k in range(len(specs_of(r)))]
    return sorted({place.k for place in places if place.kind == "state"})


class CallContext:
    """The memory of one call at a time: an arena, and a table of pointers to all arrays."""

    def __init__(self, executable: Executable):
        self.executable, weights = executable, executable.weights.inputs
        self.room = room = np.empty(executable.plan.size + ALIGNMENT, "uint8")
        count = len(executable.given)
        self.table = (ctypes.c_void_p * (1 + count + len(executable.outputs)))()
        self.all = ctypes.byref(self.table)
        self.table[0] = -(-room.ctypes.data // ALIGNMENT) * ALIGNMENT
        self.held: list = [None] * count  # the arrays of the last call
        self.used: list = [None] * count  # the same arrays, or contiguous copies, which C reads
        self.error: Exception | None = None
        for k, array in enumerate(weights, count - len(weights)):
            self.hold(k, array)

    def hold(self, k: int, array) -> None:
        """Set input or state `k` to this array, or to a contiguous copy."""
        self.held[k], self.used[k] = array, as_c(array, *self.executable.given[k])
        self.table[1 + k] = address(self.used[k])

    def results(self) -> list:
        """New memory for the outputs."""
        arrays, table = [], self.table
        for k, (shape, dtype) in enumerate(self.executable.outputs, 1 + len(self.held)):
            arrays.append(array := np.empty(shape, dtype))
            table[k] = address(array)
        return arrays

    def run(self, arrays) -> list:
        executable, held, used = self.executable, self.held, self.used
        for k, array in enumerate(arrays):
            if array is not held[k]:
                self.hold(k, array)
            elif used[k] is not array:
                used[k][...] = array
        if executable.states_at_risk:
            self.keep_states()
        outputs = self.results()
        before, running.context = running.context, self
        try:
            failed = executable.run(self.all)
        finally:
            running.context = before
        if failed:
            error, self.error = self.error, None
            raise error
        updated = executable.updated and [used[executable.inputs + k] for k in executable.updated]
        return outputs + updated

    def keep_states(self) -> None:
        """Replace states at risk by copies: a run that fails leaves the originals unchanged."""
        for k in self.executable.states_at_risk:
            k += self.executable.inputs
            self.used[k] = self.used[k].copy()
            self.table[1 + k] = address(self.used[k])
            self.held[k] = None

    def host(self, k: int, given, made) -> int:
        """Compute record `k` of the host's records. Returns 1 after an error."""
        record = self.executable.source.hosted[k]
        try:
            left, inputs = iter(range(len(record.inputs))), []
            for x in record.inputs:
                value = x.attrs["value"] if x.op is NUMBER else array_at(given[next(left)], x.spec)
                inputs.append(value)
            try:
                results = record.op.evaluate(NUMPY, inputs, record.attrs)
            except Exception as error:
                fail(record, error)
            for j, value in enumerate(results if record.dtype is None else [results]):
                np.copyto(array_at(made[j], specs_of(record)[j]), value, casting="unsafe")
        except BaseException as error:
            self.error = error
            return 1
        return 0


class RunningCall(threading.local):
    """The call that runs on this thread."""

    context: CallContext | None = None


running = RunningCall()

HOST = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_void_p)
)(lambda k, given, made: running.context.host(k, given, made) if running.context else 1)
"""The function that C calls for a host record. In a call stub, which has no context, it fails."""


@cache
def threads() -> int:
    """The number of threads: `MINIPADDLE_THREADS`, else `OMP_NUM_THREADS`, else all cores."""
    for name in ("MINIPADDLE_THREADS", "OMP_NUM_THREADS"):
        if (count := os.environ.get(name, "")).isdigit():
            return int(count)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
