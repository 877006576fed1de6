"""Compiles kernels for tests: one shared object a text, called on NumPy arrays between guards."""

from __future__ import annotations

import ctypes
import hashlib
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from minipaddle.codegen.c_helpers import prologue
from minipaddle.codegen.emitters import EMITTERS
from minipaddle.codegen.kernel import BLAS, is_number, results
from minipaddle.core.op import OPS
from minipaddle.core.record import Record

FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-fopenmp")
STRICT = (
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wno-type-limits",
    "-Wno-unused-variable",
    "-Wno-unused-function",
    "-Wno-unused-parameter",
)
GUARD = 256
"""Bytes before and behind every buffer that must stay as they are."""


def record_of(name: str, inputs, **attrs) -> Record:
    """The record of an operator on arrays."""
    op = OPS[name]
    leaves = [Record(OPS["input"], (), {}, a.shape, a.dtype) for a in inputs]
    spec = op.result_spec([r.spec for r in leaves], attrs)
    several = isinstance(spec, list | tuple) and not hasattr(spec, "dtype")
    shape, dtype = (tuple(spec), None) if several else (spec.shape, spec.dtype)
    return Record(op, tuple(leaves), attrs, shape, dtype)


def file_of(*kernels) -> str:
    """A C file of kernels, each with a function that calls it from outside."""
    helpers = dict.fromkeys(text for kernel in kernels for text in kernel.helpers)
    calls = []
    for k in kernels:
        signature = k.source[len("static ") : k.source.index(")") + 1]
        names = [
            part.split()[-1].split("restrict")[-1]
            for part in signature.split("(")[1][:-1].split(",")
        ]
        outer = signature.replace(k.name, f"run_{k.name}").replace("restrict ", "")
        calls.append(f"{outer} {{ {k.name}({', '.join(n.strip('*') for n in names)}); }}\n")
    setters = "void set_threads(int n) { threads = n; }\n"
    if BLAS in helpers:
        setters += "void set_blas(void *p) { blas_sgemm = p; }\n"
    head = f"{prologue()}\nstatic int threads = 1;\n"
    return "\n".join([head, *helpers, *(k.source for k in kernels), *calls, setters])


@cache
def compiled(text: str, flags=FLAGS):
    """The shared object of a C text."""
    folder = (
        Path(tempfile.gettempdir())
        / f"minipaddle-kernels-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    )
    folder.mkdir(exist_ok=True)
    (folder / "k.c").write_text(text)
    command = ["gcc", *flags, *STRICT, "-shared", "-fPIC", "k.c", "-o", "k.so", "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "k.so"))


class Guarded:
    """An array in memory of 64-byte alignment, with bytes around it that nobody may touch."""

    def __init__(self, array):
        self.bytes = np.full(array.nbytes + 2 * GUARD + 64, 0xA5, np.uint8)
        self.start = GUARD + -(self.bytes.ctypes.data + GUARD) % 64
        end = self.start + array.nbytes
        self.inside = self.bytes[self.start : end].view(array.dtype).reshape(array.shape)
        self.inside[...] = array
        self.end = end

    @property
    def pointer(self):
        return ctypes.c_void_p(self.bytes.ctypes.data + self.start)

    def intact(self) -> bool:
        return bool(
            (self.bytes[: self.start] == 0xA5).all() and (self.bytes[self.end :] == 0xA5).all()
        )


def ran(kernel, record, inputs, threads=1, extra=(), initial=None, blas=None) -> list:
    """The results of a kernel on arrays. What is not written shows as 0xA5 bytes."""
    library = compiled(file_of(kernel))
    library.set_threads(threads)
    if blas is not None and hasattr(library, "set_blas"):
        library.set_blas(blas)
    given = [Guarded(a) for a, e in zip(inputs, record.inputs) if not is_number(e)]
    outs = [Guarded(np.empty(s.shape, s.dtype)) for s in results(record)]
    for k, out in enumerate(outs):
        if initial is not None:
            out.inside[...] = initial[k]
        else:
            out.bytes[...] = 0xA5
    more = [Guarded(a) for a in extra]
    work = Guarded(np.zeros(max(kernel.workspace, 1), np.uint8))
    work.inside[...] = 0xFF  # NaN: what is read must have been written
    buffers = [*given, *outs, *more, *([work] if kernel.workspace else [])]
    getattr(library, f"run_{kernel.name}")(*(b.pointer for b in buffers))
    assert all(b.intact() for b in buffers), "a kernel wrote outside its buffers"
    for array, before in zip(given, inputs):
        np.testing.assert_array_equal(array.inside, before, "a kernel wrote to its input")
    for array, out in zip(extra, more):
        array[...] = out.inside
    return [out.inside.copy() for out in outs]


def emitted(name: str, inputs, attrs, **options):
    """(record, kernel) of an operator on arrays."""
    record = record_of(name, inputs, **attrs)
    return record, EMITTERS[name](record, f"{name}_1", **options)
