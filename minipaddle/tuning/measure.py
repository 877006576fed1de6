"""Compile kernels and measure them, in turn, on the values they get in their program."""

import ctypes
import hashlib
import time
from pathlib import Path
from string import Template

import numpy as np

from ..engine.codegen.kernel import C_TYPES, Kernel
from ..engine.codegen.nest_kernel import inputs_of
from ..engine.codegen.translation_unit import SHARED, function_pointers, prologue, setters
from ..engine.core.record import Record
from ..engine.eager.device import NUMPY
from ..engine.executors.arrays import address, as_c
from ..engine.executors.compiler import load
from ..engine.executors.native import ALIGNMENT, threads
from ..engine.ir.interpreter import Run
from ..engine.ir.program import NUMBER, Program
from ..engine.passes.lifetimes import specs_of
from ..executors.native.folded_weights import empty_aligned

ROUNDS = 7
"""Times that each kernel is measured, in turn with the others."""

SAMPLE = 1e-3
"""About how many seconds one measurement takes: it calls fast kernels many times."""

ALLOWED = {2: 3e-2, 4: 1e-4, 8: 1e-10}
"""The largest difference allowed, relative to the largest result, by the bytes of an element."""

RUN, AHEAD = (
    Template(Path(__file__).with_name(name).read_text("utf-8")) for name in ("run.c", "ahead.c")
)
"""C that calls a kernel repeatedly, and C that prepares an input once before."""


def inputs_in_run(program: Program, arrays, wanted: set[Record]) -> dict[Record, list]:
    """The inputs of some records when the interpreter runs the program on these arrays."""
    inputs = {record: [r for r in record.inputs if r.op is not NUMBER] for record in wanted}
    results = list(dict.fromkeys(r for edges in inputs.values() for r in edges))
    whole = Program(program.name, program.given, [], program.records, results, program.guards)
    values = dict(zip(results, Run(NUMPY)(whole, arrays), strict=True))
    return {
        record: [as_c(values[r], r.shape, r.dtype) for r in edges]
        for record, edges in inputs.items()
    }


def translation_unit(record: Record, kernels: list[Kernel]) -> tuple[str, str]:
    """A C file with kernels of one record and their callers, and the prefix of its names.

    The kernels have different names.
    """
    helpers = dict.fromkeys(text for kernel in kernels for text in kernel.helpers)
    calls = [caller_of(record, kernel, n) for n, kernel in enumerate(kernels)]
    texts = [SHARED, *helpers, setters("PREFIX", helpers), *(k.source for k in kernels), *calls]
    text = "\n".join([prologue(), *texts])
    prefix = "tuning_" + hashlib.sha256(text.encode()).hexdigest()[:12]
    return text.replace("PREFIX", prefix), prefix


def caller_of(record: Record, kernel: Kernel, number: int) -> str:
    """The function that calls a kernel repeatedly, after one that prepares an input ahead."""
    inputs = inputs_of(record)
    pointers_in = [f"(const {C_TYPES[x.dtype]} *)in[{j}]" for j, x in enumerate(inputs)]
    outputs = [f"({C_TYPES[s.dtype]} *)out[{j}]" for j, s in enumerate(specs_of(record))]
    before = ""
    if kernel.prepack is not None:
        edge, elements, call = kernel.prepack
        j, words = inputs.index(edge), {"T": C_TYPES[edge.dtype], "k": number, "call": call}
        before = AHEAD.substitute(words, elements=elements, given=pointers_in[j])
        pointers_in[j] = f"ahead_{number}"
    return before + RUN.substitute(k=number, call=kernel.call(pointers_in, outputs))


def pointers(arrays):
    return (ctypes.c_void_p * max(len(arrays), 1))(*map(address, arrays))


def clock() -> float:
    """Seconds: of this thread where only one computes, else of the wall clock."""
    return time.thread_time() if threads() == 1 else time.perf_counter()


class Bench:
    """One record and the values it met: runs kernels that compute it."""

    def __init__(self, record: Record, inputs: list):
        self.record, self.inputs = record, []
        for x in inputs:
            self.inputs.append(empty_aligned(x))
            self.inputs[-1][...] = x
        self.outputs = [empty_aligned(spec) for spec in specs_of(record)]
        self.into, self.out = pointers(self.inputs), pointers(self.outputs)
        self.expected: list | None = None  # the results of the first kernel

    def compile(self, kernels: list[Kernel]) -> list:
        """For each kernel a function that calls it a given number of times."""
        text, prefix = translation_unit(self.record, kernels)
        library = load(text)
        getattr(library, f"{prefix}_threads")(threads())
        for name, find in function_pointers(
            {x for kernel in kernels for x in kernel.helpers}
        ).items():
            getattr(library, f"{prefix}_{name}")(ctypes.c_void_p(find()))
        size = max(kernel.workspace for kernel in kernels)
        room = np.zeros(size + ALIGNMENT, "uint8")
        work = address(room) + -address(room) % ALIGNMENT
        calls = []
        for k, kernel in enumerate(kernels):
            if kernel.prepack is not None:
                getattr(library, f"{prefix}_ahead_{k}")(self.into)
            run = getattr(library, f"{prefix}_run_{k}")
            run.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_long]
            calls.append(lambda times, run=run, room=room: run(self.into, self.out, work, times))
        return calls

    def measure(self, kernels: list[Kernel]) -> list[float | None]:
        """The seconds of one call of each: the minimum of several measurements, taken in turn
        (other work only makes a kernel slower). The first kernel is the reference: None stands for
        one with other results.
        """
        runs = self.compile(kernels)
        right = [self.agrees(run) for run in runs]
        start = clock()
        runs[0](1)
        times = max(1, round(SAMPLE / max(clock() - start, 1e-7)))
        best = [float("inf")] * len(runs)
        for _ in range(ROUNDS):
            for k, run in enumerate(runs):
                if right[k]:
                    start = clock()
                    run(times)
                    best[k] = min(best[k], (clock() - start) / times)
        return [t if good else None for t, good in zip(best, right, strict=True)]

    def agrees(self, run) -> bool:
        """Whether a kernel computes the results of the first one."""
        for array in self.outputs:
            array.reshape(-1).view("uint8").fill(0xFF)
        run(1)
        if self.expected is None:
            self.expected = [array.copy() for array in self.outputs]
        return all(map(same, self.outputs, self.expected))


def same(got, expected) -> bool:
    """Whether two results are equal but for the order of sums."""
    if got.dtype.kind in "biu":
        return bool((got == expected).all())
    allowed = ALLOWED[got.dtype.itemsize]
    got, expected = got.astype("float64"), expected.astype("float64")
    finite = np.isfinite(expected)
    if not np.array_equal(got[~finite], expected[~finite], equal_nan=True):
        return False
    scale = np.abs(expected[finite]).max(initial=0.0)
    return bool((np.abs(got[finite] - expected[finite]) <= allowed * scale + 1e-30).all())
