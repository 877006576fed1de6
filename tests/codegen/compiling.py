"""Compiles kernels for tests: one shared object for a list, called on arrays between guards."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from minipaddle.codegen.machine import facts_here
from minipaddle.codegen.products.blas import BLAS
from minipaddle.codegen.products.prepacking import constant_inputs
from minipaddle.engine.codegen.kernel import C_TYPES, EMITTERS, Kernel, is_number, results
from minipaddle.engine.codegen.translation_unit import prologue
from minipaddle.engine.core.op import OPS
from minipaddle.engine.core.record import Record
from minipaddle.engine.executors.compiler import compiler
from minipaddle.executors.native.compilers import GCC_EFFORT
from tests.processors import processors

HERE = os.environ.get("MINIPADDLE_PROCESSOR", "native")
"""The processor that kernels are compiled for, as in -march, where a test names no other."""
FLAGS = (*GCC_EFFORT, f"-march={HERE}", "-fno-math-errno", "-fno-trapping-math", "-fopenmp")
STRICT = ("-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-Wno-unused-parameter",
          "-Wno-type-limits", "-Wno-tautological-compare", "-Wno-aggressive-loop-optimizations",
          "-Wno-unused-variable", "-Wno-unused-but-set-variable", "-Wno-psabi")  # fmt: skip
"""(psabi: static functions may return vectors that the processor does not have.)"""
GUARD = 256
"""Bytes before and after every buffer that must stay as they are."""

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
on_each_processor = pytest.mark.parametrize("processor", processors())
"""Tests of values: for each level that this machine has, and for itself."""


def flags_for(processor: str) -> tuple[str, ...]:
    """The flags for a processor, as compilers call it."""
    return tuple(f"-march={processor}" if "-march" in flag else flag for flag in FLAGS)


@contextmanager
def programs_for(processor: str):
    """Within the block programs are written and compiled for a processor, which this one can run,
    as if the environment variable had named it from the beginning.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINIPADDLE_PROCESSOR", processor)
        forget_the_processor()
        yield
    forget_the_processor()


def forget_the_processor():
    compiler.cache_clear()
    facts_here.cache_clear()


class Call(NamedTuple):
    """A kernel, its record, and the arrays to call it on."""

    kernel: Kernel
    record: Record
    inputs: list
    initial: list | None = None  # what stands in the results before
    extra: tuple = ()  # further buffers, that an epilogue uses; they are written to


def record_of(name: str, inputs, **attrs) -> Record:
    """The record of an operator on arrays (or Python numbers)."""
    op = OPS[name]
    leaves = [
        Record(OPS["input"], (), {}, a.shape, a.dtype)
        if isinstance(a, np.ndarray)
        else Record(OPS["number"], (), {"value": a}, (), np.dtype(type(a)))
        for a in inputs
    ]
    specs = [r.spec if isinstance(a, np.ndarray) else a for r, a in zip(leaves, inputs)]
    spec = op.result_spec(specs, attrs)
    several = not hasattr(spec, "dtype")
    shape, dtype = (tuple(spec), None) if several else (spec.shape, spec.dtype)
    return Record(op, tuple(leaves), attrs, shape, dtype)


count = iter(range(1, 1 << 30))


def call(name: str, inputs, attrs, initial=None, extra=(), constant=(), **options) -> Call:
    """An operator's kernel on arrays; `constant` are those that may be packed before the run."""
    record = record_of(name, inputs, **attrs)
    with constant_inputs(record.inputs[k] for k in constant):
        kernel = EMITTERS[name](record, f"kernel_{next(count)}_{name}", **options)
    return Call(kernel, record, list(inputs), initial, tuple(extra))


def file_of(kernels) -> str:
    """A C file of kernels, each with a function that calls it from outside."""
    helpers = dict.fromkeys(text for kernel in kernels for text in kernel.helpers)
    calls = []
    for k in kernels:
        signature = k.source[len("static ") : k.source.index(")") + 1]
        parameters = signature[signature.index("(") + 1 : -1].split(", ")
        names = ", ".join(p.split("restrict")[-1].split("*")[-1].strip() for p in parameters)
        outer = signature.replace(k.name, f"run_{k.name}").replace("restrict ", "")
        calls.append(f"{outer} {{ {k.name}({names}); }}\n")
        if k.prepack is not None:
            kind = C_TYPES[k.prepack.edge.dtype]
            head = f"void pack_{k.name}(const {kind} *given, {kind} *made)"
            calls.append(f"{head} {{ {k.prepack.call} }}\n")
    setters = "void set_threads(int n) { threads = n; }\n"
    if BLAS in helpers:
        setters += "void set_blas(void *p) { blas_sgemm = p; }\n"
    head = f"{prologue()}\nstatic int threads = 1;\n"
    return "\n".join([head, *helpers, *(k.source for k in kernels), *calls, setters])


@cache
def compiled(text: str, flags=FLAGS):
    """The shared object of a C text."""
    key = hashlib.sha256(repr((text, flags)).encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"minipaddle-kernels-{key}"
    if not (folder / "k.so").exists():
        folder.mkdir(exist_ok=True)
        (folder / "k.c").write_text(text)
        command = ["gcc", *flags, *STRICT, "-shared", "-fPIC", "k.c", "-o", "part.so", "-lm"]
        subprocess.run(command, cwd=folder, check=True)
        (folder / "part.so").rename(folder / "k.so")
    return ctypes.CDLL(str(folder / "k.so"))


class Guarded:
    """An array in memory of 64-byte alignment, with bytes around it that nobody may touch."""

    def __init__(self, array):
        self.bytes = np.full(array.nbytes + 2 * GUARD + 64, 0xA5, np.uint8)
        self.start = GUARD + -(self.bytes.ctypes.data + GUARD) % 64
        self.end = self.start + array.nbytes
        self.inside = self.bytes[self.start : self.end].view(array.dtype).reshape(array.shape)
        self.inside[...] = array

    @property
    def pointer(self):
        return ctypes.c_void_p(self.bytes.ctypes.data + self.start)

    def intact(self) -> bool:
        around = self.bytes[: self.start], self.bytes[self.end :]
        return all((part == 0xA5).all() for part in around)


def run_all(calls, threads=1, blas=None, flags=FLAGS) -> list[list]:
    """The results of each call; what is not written shows as NaN (or the bytes 0xFF)."""
    library = compiled(file_of([c.kernel for c in calls]), flags)
    library.set_threads(threads)
    if hasattr(library, "set_blas"):
        library.set_blas(blas)
    return [run_one(library, c) for c in calls]


def run_one(library, call: Call) -> list:
    kernel, record, inputs, initial, extra = call
    guarded_inputs = [Guarded(a) for a, e in zip(inputs, record.inputs) if not is_number(e)]
    if kernel.prepack is not None:
        given = guarded_inputs[record.inputs.index(kernel.prepack.edge)]
        made = Guarded(np.zeros(kernel.prepack.elements, given.inside.dtype))
        getattr(library, f"pack_{kernel.name}")(given.pointer, made.pointer)
        assert made.intact(), "packing wrote outside its buffer"
        packed = {given: made}
        guarded_inputs = [packed.get(each, each) for each in guarded_inputs]
    outs = [Guarded(np.full(s.shape, 0, s.dtype)) for s in results(record)]
    for k, out in enumerate(outs):
        out.bytes[out.start : out.end] = 0xFF
        if initial is not None:
            out.inside[...] = initial[k]
    more = [Guarded(a) for a in extra]
    work = Guarded(np.full(max(kernel.workspace, 1), 0xFF, np.uint8))
    buffers = [*guarded_inputs, *outs, *more, *([work] if kernel.workspace else [])]
    getattr(library, f"run_{kernel.name}")(*(b.pointer for b in buffers))
    assert all(b.intact() for b in buffers), f"wrote outside its buffers:\n{kernel.source}"
    arrays = [a for a in inputs if isinstance(a, np.ndarray)]
    for guarded, before in zip(guarded_inputs, arrays):
        if guarded.inside.shape != before.shape:  # it was packed
            continue
        np.testing.assert_array_equal(guarded.inside, before, "a kernel wrote to its input")
    for array, guarded in zip(extra, more):
        array[...] = guarded.inside
    return [out.inside.copy() for out in outs]


def run(name: str, inputs, attrs, threads=1, **options) -> list:
    """The results of one operator's kernel."""
    return run_all([call(name, inputs, attrs, **options)], threads)[0]
