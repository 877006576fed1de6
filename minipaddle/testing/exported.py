"""An exported C library, compiled and called from Python."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np

from ..engine.executors.compiler import compiler

FLAGS = ("-std=gnu11", "-fno-math-errno", "-fno-trapping-math", "-fwrapv", "-fopenmp-simd")
"""Those of the library's Makefile."""


class ExportedLibrary:
    """The library in a folder that `jit.save(..., format="c")` wrote, compiled with these flags.

    `arena` is a first instance; `instance()` makes another. Raises CalledProcessError with the
    compiler's message if the text is no C, RuntimeError if there is no compiler.
    """

    def __init__(self, folder: str | Path, *flags: str, name: str = "model"):
        self.folder, self.name = Path(folder), name
        if compiler() is None:
            raise RuntimeError("there is no C compiler to build the library with")
        self.compile("-c", f"{name}.c", "-o", f"{name}.o", *FLAGS, "-fPIC", *flags)
        self.compile("-shared", f"{name}.o", "-o", f"{name}.so")
        self.library = ctypes.CDLL(str(self.folder.absolute() / f"{name}.so"))
        self.held: list = []  # the weights of all instances
        self.arena = self.instance()

    def compile(self, *words: str) -> None:
        """Run the compiler in the folder."""
        command = [*compiler().command, *words]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        if done.returncode:
            error = subprocess.CalledProcessError(done.returncode, command)
            error.add_note(done.stderr[:2000])
            raise error

    def function(self, name: str, result=ctypes.c_int):
        """A function of the library, by its name without the library's."""
        function = getattr(self.library, f"{self.name}_{name}")
        function.restype = result
        return function

    def check(self, code: int) -> None:
        """Raise ValueError with what an error code means."""
        if code:
            raise ValueError(self.function("error", ctypes.c_char_p)(code).decode())

    def instance(self, weights: bytes | None = None, short: int = 0) -> np.ndarray:
        """The arena of a new instance, for the file of weights or these bytes. `short`:
        the number of bytes that it lacks.
        """
        data = (self.folder / f"{self.name}.bin").read_bytes() if weights is None else weights
        arena = allocate_aligned(self.function("arena_size", ctypes.c_size_t)())
        held = allocate_aligned(len(data))
        held[:] = np.frombuffer(data, "uint8")
        self.held.append(held)
        sizes = [ctypes.c_size_t(n) for n in (arena.size - short, len(data))]
        self.check(self.function("init")(address(arena), sizes[0], address(held), sizes[1]))
        return arena

    def array(self, name: str, like: np.ndarray, arena: np.ndarray | None = None) -> np.ndarray:
        """An input or output in the arena, as an array like another one."""
        place = self.function(name, ctypes.c_void_p)
        at = place(address(self.arena if arena is None else arena))
        raw = (ctypes.c_char * like.nbytes).from_address(at)
        return np.frombuffer(raw, like.dtype).reshape(like.shape)

    def run(self, inputs: dict, outputs: list, arena: np.ndarray | None = None) -> list:
        """The outputs, which are like those given, for inputs by name."""
        arena = self.arena if arena is None else arena
        for name, x in inputs.items():
            self.array(f"input_{name}", x, arena)[...] = x
        self.check(self.function("run")(address(arena)))
        return [self.array(f"output_{k}", y, arena).copy() for k, y in enumerate(outputs)]


def allocate_aligned(size: int) -> np.ndarray:
    """Memory at a multiple of 64 bytes."""
    room = np.zeros(size + 64, "uint8")
    start = -room.ctypes.data % 64
    return room[start : start + size]


def address(array: np.ndarray) -> ctypes.c_void_p:
    """The address of an array."""
    return ctypes.c_void_p(array.ctypes.data)
