"""Many programs compiled as one C file: starting a compiler takes longer than a small program."""

from __future__ import annotations

import ctypes
import math
import re
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from minipaddle.engine.codegen.translation_unit import SHARED, prologue, setters
from minipaddle.engine.executors.compiler import compiler
from minipaddle.engine.executors.native import ALIGNMENT, CallContext, Executable

QUICK = ("-O0",)
"""Flags with the least effort that finds our mistakes; they take a third of the usual time."""
GUARD = 4096
POISON = 0xFF
"""What memory holds before a run: NaN as floats, -1 as whole numbers."""
BEHIND = 0xA5
"""What a guard holds: no value that computing with POISON gives."""
OWN = re.compile(r"^static (?:void|int) (\w+)\(", re.MULTILINE)


class Guarded(CallContext):
    """Memory that holds nothing sensible before a run; it and each result end in a guard."""

    def __init__(self, executable: Executable):
        super().__init__(executable)
        self.room = np.zeros(executable.plan.size + ALIGNMENT + GUARD, "uint8")
        self.table[0] = -(-self.room.ctypes.data // ALIGNMENT) * ALIGNMENT
        self.behind: list[np.ndarray] = []

    def poison(self) -> None:
        """Fill the memory before a run."""
        self.room[...] = POISON
        self.behind = [self.room[-self.room.ctypes.data % ALIGNMENT + self.executable.plan.size :]]
        self.behind[0][...] = BEHIND

    def results(self) -> list:
        return [self.guard(k) for k in range(len(self.executable.outputs))]

    def guard(self, k: int) -> np.ndarray:
        """The memory of a result, with a guard behind it."""
        shape, dtype = self.executable.outputs[k]
        size = math.prod(shape) * dtype.itemsize
        memory = np.full(size + GUARD, POISON, "uint8")
        self.table[1 + len(self.held) + k] = memory.ctypes.data
        memory[size:] = BEHIND
        self.behind.append(memory[size:])
        return memory[:size].view(dtype).reshape(shape)

    def check(self) -> None:
        """Check the guards after a run."""
        for k, guard in enumerate(self.behind):
            where = f"result {k - 1}" if k else "the arena"
            assert (guard == BEHIND).all(), f"something was written behind {where}"


class Unbuilt(Executable):
    """An executable whose C is compiled later, by `build`."""

    refused = ""
    """What the compiler said if it did not compile."""

    def load(self) -> None:
        """Load nothing yet."""

    def __call__(self, program, arrays) -> list:
        if self.refused:
            raise RuntimeError(self.refused)
        if not self.contexts:
            self.contexts.append(Guarded(self))
        memory = self.contexts[-1]
        memory.poison()
        results = super().__call__(program, arrays)
        memory.check()
        return results


def text_of(executables: list[Unbuilt]) -> str:
    """One C file for all: what is static in each gets its prefix."""
    helpers = dict.fromkeys(text for e in executables for text in e.kernels.helpers)
    parts = {}
    for e in executables:
        prefix, own = e.source.prefix, e.source.own
        names = "|".join(OWN.findall(own))
        if names:
            own = re.sub(rf"\b({names})\b", rf"{prefix}_\1", own)
        parts[prefix] = setters(prefix, e.kernels.helpers) + own
    return "\n".join([prologue(), SHARED, *helpers, *parts.values()])


def build(executables: list[Unbuilt], effort=QUICK, *, always_parallel: bool = False) -> None:
    """Compile them all, with the `effort` of users' programs if it is None; `always_parallel`:
    threads share loops however small they are. An executable that does not compile says so when it
    is called.
    """
    text, cc = text_of(executables), compiler()
    flags = (cc if effort is None else cc._replace(effort=effort)).flags
    if always_parallel:
        text = text.replace("> 30000", ">= 0")
    with tempfile.TemporaryDirectory(prefix="batch") as folder:
        source, library = Path(folder) / "all.c", Path(folder) / "all.so"
        source.write_text(text)
        command = [*cc.command, *flags, "-shared", str(source), "-o", str(library), *cc.libraries]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode and len(executables) == 1:
            executables[0].refused = done.stderr[:3000]
            return
        if done.returncode:
            for half in (executables[::2], executables[1::2]):
                build(half, effort, always_parallel=always_parallel)
            return
        loaded = ctypes.CDLL(str(library))
    for e in executables:
        e.library = loaded
        e.connect()
