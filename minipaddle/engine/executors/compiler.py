"""The C compiler: finding it, calling it, and a cache of compiled libraries.

The cache is a folder of the user. The name of a library is made of the C file, flags and processor.
Several processes may write at the same time, because a file is moved to its place when it is
complete. Each file ends with its SHA-256. A damaged library would crash the process, so the sum is
compared before loading, and a damaged file is compiled again, like one without our functions.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ..core.errors import teach

FLAGS = (
    "-mprefer-vector-width=512", "-fno-math-errno", "-fno-trapping-math", "-fwrapv",
    "-fvisibility=hidden", "-fPIC", "-Werror=implicit-function-declaration",
)  # fmt: skip
"""Integers wrap around, as in NumPy. There is no -ffast-math: NaN and Inf keep their meaning, and
so do denormal numbers in the rest of the process."""

EFFORT = ("-O3",)
LIBRARIES = ("-lm",)
THREADS, VECTORS = "-fopenmp", "-fopenmp-simd"
INSTALL = "gcc or clang (apt install gcc), or zig's: pip install 'minipaddle[zig]'"
"""How to install a compiler."""
TIMEOUT = 600.0
"""Seconds that a compiler may take for a file. It has a tenth of it to print its version."""
EXPORTED = re.compile(r'visibility\("default"\)\)\)\s[\w\s*]*?(\w+)\(')
"""The functions of a C file that its library must have."""
DIGEST = hashlib.sha256().digest_size


class Unusable(RuntimeError):
    """Why no program can be compiled here, and a remedy."""

    def __init__(self, fact: str, **help: str):
        super().__init__(teach(fact, **help))


class Compiler(NamedTuple):
    """A C compiler: the first words of its command, and its version."""

    command: tuple[str, ...]
    version: str
    libraries: tuple[str, ...]
    openmp: str  # the flag of OpenMP: with threads, or only vector loops
    effort: tuple[str, ...] = EFFORT
    processor: str = "native"  # the name, as in -march, of what programs are compiled for

    @property
    def flags(self) -> tuple[str, ...]:
        """All flags of a compilation."""
        return *self.effort, f"-march={self.processor}", *FLAGS, self.openmp

    def __str__(self) -> str:
        """The version, and a note if its programs use one thread."""
        threads = "" if self.openmp == THREADS else ", one thread (it brings no OpenMP)"
        return f"{self.version}{threads}"


def describe(command: tuple[str, ...], version: str) -> Compiler:
    """A compiler that answers with this version."""
    return Compiler(command, version, LIBRARIES, THREADS if "gcc" in version.lower() else VECTORS)


COMMANDS = [("gcc",), ("clang",)]
"""The commands to try unless `MINIPADDLE_CC` names another; `minipaddle.executors` adds zig's."""

DESCRIBED: list[Callable] = [describe]
"""The last one describes what answers. `minipaddle.executors` has one that knows GCC better."""


@cache
def compiler() -> Compiler | None:
    """The C compiler of this machine: `MINIPADDLE_CC`, or the first of `COMMANDS` that answers."""
    chosen = os.environ.get("MINIPADDLE_CC")
    if chosen == "none":
        return None
    for command in [tuple(chosen.split())] if chosen else COMMANDS:
        answer = answer_of([*command, "--version"])
        if answer is not None:
            return DESCRIBED[-1](command, next(iter(answer.splitlines()), command[0]))
    if chosen:
        warn(Unusable(f"MINIPADDLE_CC is {chosen!r}, which is no C compiler that answers"))
    return None


def give_up(why: Unusable) -> None:
    """Compile no more programs in this process, and say so."""
    unusable.append(why)
    warn(why)


def warn(why: Unusable) -> None:
    warnings.warn(f"{why}\n  programs run on the interpreter, slower", stacklevel=2)


unusable: list[Unusable] = []
"""Why this process stopped compiling programs; empty while it compiles."""


def run(command: list[str], seconds: float) -> tuple[int, str, str]:
    """(exit status, output, errors) of a command; TimeoutExpired after `seconds`."""
    how = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "errors": "replace"}
    done = subprocess.run(command, timeout=seconds, **how)
    return done.returncode, done.stdout, done.stderr


RUNNERS: list[Callable] = [run]
"""The last one runs commands. `minipaddle.executors` has one that leaves no processes behind."""

BUILT: list[Callable[[Path], None]] = []
"""Functions that are called with the path of a library when it was added to the cache."""


MADE: list[Callable] = [lambda folder: folder.mkdir(parents=True, exist_ok=True) or folder]
READ: list[Callable[[Path], bytes]] = [Path.read_bytes]
"""The last ones make the cache folder and read a file in it. `minipaddle.executors` has some that
trust nobody else's."""


def answer_of(command: list[str]) -> str | None:
    """The output of a short command; None if it fails, or if there is no such command."""
    try:
        status, output, _ = RUNNERS[-1](command, TIMEOUT / 10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return output if status == 0 else None


def cache_folder() -> Path:
    """The cache folder; raises Unusable if it cannot be used."""
    own = os.environ.get("MINIPADDLE_CACHE")
    try:
        base = Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
        folder = MADE[-1](base / "minipaddle" / "native")
        os.scandir(folder).close()
    except (OSError, RuntimeError) as error:  # RuntimeError: the user has no home folder
        raise cache_error(error) from error
    return folder


def cache_error(error: Exception) -> Unusable:
    place = os.environ.get("MINIPADDLE_CACHE", "the default one")
    hint = f"name another folder in the environment variable MINIPADDLE_CACHE ({place} now)"
    return Unusable(f"the cache of compiled programs cannot be used: {error}", hint=hint)


@cache
def processor() -> str:
    """A description of the processor, on which `-march=native` depends."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line for line in lines if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def library_path(text: str, cc: Compiler) -> Path:
    """The path in the cache of the library of a C file."""
    key = "\0".join([text, cc.version, *cc.flags, processor()])
    return cache_folder() / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.so"


def load(text: str, parts=None) -> ctypes.CDLL:
    """The compiled library of a C file. `parts(cc)` compiles it in parts: paths of objects."""
    cc = compiler()
    if cc is None:
        hint = "without one, programs run on the interpreter: backend='interpreter'"
        raise RuntimeError(teach("there is no C compiler", expected=INSTALL, hint=hint))
    path = library_path(text, cc)
    with suppress(OSError):  # this machine cannot load it
        data = READ[-1](path) if sum_of(path) else b""
        if data and all(name.encode() in data for name in EXPORTED.findall(text)):
            return ctypes.CDLL(str(path))
    try:
        build(cc, text, path, parts(cc) if parts else [], *cc.libraries)
        for tidy in BUILT:
            tidy(path)
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise cache_error(error) from error


def load_copy(library: ctypes.CDLL) -> ctypes.CDLL:
    """A loaded library once more, with variables of its own."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        return ctypes.CDLL(shutil.copy(library._name, folder))


def sum_of(path: Path) -> bytes | None:
    """The SHA-256 of a file in the cache; None if the file is missing or damaged."""
    with suppress(OSError):
        data = READ[-1](path)
        if hashlib.sha256(data[:-DIGEST]).digest() == data[-DIGEST:]:
            with suppress(OSError):  # a read-only folder
                os.utime(path)
            return data[-DIGEST:]
    return None


def build(cc: Compiler, text: str, path: Path, objects=(), *words: str) -> None:
    """Compile a C file, or link objects; move the complete result with its sum to `path`."""
    if "omp parallel" not in text:
        cc = cc._replace(openmp=VECTORS)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix="build-") as work:
        source, library = Path(work) / "step.c", Path(work) / path.name
        source.write_text(text, encoding="utf-8")
        flag = "-shared" if path.suffix == ".so" else "-c"
        run_compiler(cc, [*map(str, objects or [source]), flag, "-o", str(library), *words])
        if not library.exists():
            raise compiler_error(cc, "says nothing and makes nothing")
        data = library.read_bytes()
        library.write_bytes(data + hashlib.sha256(data).digest())
        library.chmod(0o644)  # whatever the umask
        library.replace(path)


def run_compiler(cc: Compiler, words: list[str]) -> None:
    """Run the compiler. Raises RuntimeError with the compiler's message if it fails, Unusable if
    there is no message or it takes too long, and OSError if the disk is full.
    """
    try:
        status, _, errors = RUNNERS[-1]([*cc.command, *cc.flags, *words], TIMEOUT)
    except subprocess.TimeoutExpired:
        raise compiler_error(cc, f"takes more than {TIMEOUT:g} s") from None
    except OSError as error:
        raise compiler_error(cc, f"does not run: {error}") from error
    if status and os.strerror(errno.ENOSPC) in errors:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if status and not errors.strip():
        raise compiler_error(cc, f"fails without a word (status {status})")
    if status:
        raise RuntimeError(f"{' '.join(cc.command)} failed:\n{errors[:2000]}")


def compiler_error(cc: Compiler, why: str) -> Unusable:
    hint = "name another in the environment variable MINIPADDLE_CC, or none"
    return Unusable(f"the C compiler {' '.join(cc.command)} {why}", hint=hint)
