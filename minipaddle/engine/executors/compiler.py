"""The C compiler: finding it, calling it, and a cache of compiled libraries.

The cache is a folder of the user. The name of a library is made of the C file, flags and processor.
Several processes may write at the same time, because a file is moved to its place when it is
complete. Each file ends with its SHA-256. A damaged library would crash the process, so the sum is
compared before loading, and a damaged file is compiled again.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import platform
import signal
import subprocess
import sys
import tempfile
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ..core.errors import teach

FLAGS = (
    "-march=native", "-mprefer-vector-width=512", "-fno-math-errno", "-fno-trapping-math",
    "-fwrapv", "-fvisibility=hidden", "-fPIC", "-Werror=implicit-function-declaration",
)  # fmt: skip
"""Integers wrap around, as in NumPy. There is no -ffast-math: NaN and Inf keep their meaning, and
so do denormal numbers in the rest of the process."""

EFFORT = ("-O3",)
GCC_EFFORT = (
    "-O2", "-ftree-vectorize", "-fvect-cost-model=dynamic", "-fsplit-loops", "-funswitch-loops",
    "-fno-tree-slp-vectorize", "-fno-schedule-insns2", "-fno-thread-jumps",
    "--param=max-completely-peel-times=8",
)  # fmt: skip
"""The parts of GCC's -O3 that make loops faster. The other parts take over a fifth of GCC's time,
and brought no measurable gain."""

LIBRARIES = ("-lm",)
GCC_LIBRARIES = ("-nostdlib", "-Wl,--gc-sections,--as-needed", "-lgomp", "-lmvec", "-lgcc")
"""The libraries to link on glibc. The process already contains the standard libraries of C. Looking
up their names again would take two thirds of the linker's time, 10 ms for each program."""
LIBM = "libm.so.6"

THREADS, VECTORS = "-fopenmp", "-fopenmp-simd"
INSTALL = "gcc or clang (apt install gcc), or zig's: pip install 'minipaddle[zig]'"
"""How to install a compiler."""
CACHE_LIMIT = 512 * 2**20
"""Bytes of the cache. Beyond it, the least recently used libraries are deleted."""
TIMEOUT = 600.0
"""Seconds that a compiler may take for a file. It has a tenth of it to print its version."""
DIGEST = hashlib.sha256().digest_size


class Unusable(RuntimeError):
    """Why no program can be compiled here, and what may help."""

    def __init__(self, fact: str, **help: str):
        super().__init__(teach(fact, **help))


class Compiler(NamedTuple):
    """A C compiler: the first words of its command, and its version."""

    command: tuple[str, ...]
    version: str
    libraries: tuple[str, ...]
    openmp: str  # the flag of OpenMP: with threads, or only vector loops
    effort: tuple[str, ...] = EFFORT

    @property
    def flags(self) -> tuple[str, ...]:
        """All flags of a compilation."""
        return *self.effort, *FLAGS, self.openmp

    def __str__(self) -> str:
        """The version, and a note if its programs use one thread."""
        threads = "" if self.openmp == THREADS else ", one thread (it brings no OpenMP)"
        return f"{self.version}{threads}"


@cache
def compiler() -> Compiler | None:
    """The C compiler of this machine: `MINIPADDLE_CC`, gcc, clang, or zig from its wheel."""
    chosen = os.environ.get("MINIPADDLE_CC")
    if chosen == "none":
        return None
    zig = (sys.executable, "-m", "ziglang", "cc")
    for command in [tuple(chosen.split())] if chosen else [("gcc",), ("clang",), zig]:
        answer = answer_of([*command, "--version"])
        if answer is None:
            continue
        version = next(iter(answer.splitlines()), command[0])
        if "gcc" in version.lower():
            return Compiler(command, version, gcc_libraries(), THREADS, GCC_EFFORT)
        openmp = THREADS if has_openmp(command) else VECTORS
        return Compiler(command, version, LIBRARIES, openmp)
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


def run_command(command: list[str], seconds: float = TIMEOUT) -> tuple[int, str, str]:
    """(exit status, output, errors) of a command; TimeoutExpired after `seconds`. An exception
    during the wait also ends the processes that the command started.
    """
    own = {"start_new_session": True} if hasattr(os, "killpg") else {}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, errors="replace", **pipes, **own) as process:
        children.add(process)
        try:
            output, errors = process.communicate(timeout=seconds)
        except BaseException:
            kill(process)
            raise
        finally:
            children.discard(process)
    return process.returncode, output, errors


def answer_of(command: list[str]) -> str | None:
    """The output of a short command; None if it fails, or if there is no such command."""
    try:
        status, output, _ = run_command(command, TIMEOUT / 10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return output if status == 0 else None


children: set[subprocess.Popen] = set()
"""The compilers that run now."""


def kill(process: subprocess.Popen) -> None:
    """End a process that `run_command` started, and those that it started."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def gcc_libraries() -> tuple[str, ...]:
    """The libraries that GCC links to a program."""
    if platform.libc_ver()[0] != "glibc" or platform.machine() != "x86_64":
        return LIBRARIES
    ctypes.CDLL(LIBM, ctypes.RTLD_GLOBAL)  # libraries that are loaded later find its functions
    return GCC_LIBRARIES


def has_openmp(command: tuple[str, ...]) -> bool:
    """Whether a compiler has OpenMP's library. zig has not; clang has if libomp is installed."""
    with tempfile.TemporaryDirectory() as work:
        source, library = Path(work) / "parallel.c", Path(work) / "parallel.so"
        source.write_text("void f(void)\n{\n#pragma omp parallel\n;\n}\n")
        call = [*command, THREADS, "-shared", "-fPIC", str(source), "-o", str(library)]
        with suppress(OSError):  # it cannot be loaded
            return answer_of(call) is not None and ctypes.CDLL(str(library)) is not None
        return False


def cache_folder() -> Path:
    """The cache folder; raises Unusable if it cannot be used."""
    own = os.environ.get("MINIPADDLE_CACHE")
    try:
        base = Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
        folder = base / "minipaddle" / "native"
        folder.mkdir(parents=True, exist_ok=True)
        os.listdir(folder)
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
        if sum_of(path):
            return ctypes.CDLL(str(path))
    try:
        build(cc, text, path, parts(cc) if parts else [], *cc.libraries)
        evict(path.parent)
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise cache_error(error) from error


def sum_of(path: Path) -> bytes | None:
    """The SHA-256 of a file in the cache; None if the file is missing or damaged."""
    with suppress(OSError):
        data = path.read_bytes()
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
        source, made = Path(work) / "step.c", Path(work) / path.name
        source.write_text(text, encoding="utf-8")
        kind = "-shared" if path.suffix == ".so" else "-c"
        run_compiler(cc, [*map(str, objects or [source]), kind, "-o", str(made), *words])
        if not made.exists():
            raise compiler_error(cc, "says nothing and makes nothing")
        data = made.read_bytes()
        made.write_bytes(data + hashlib.sha256(data).digest())
        made.replace(path)


def run_compiler(cc: Compiler, words: list[str]) -> None:
    """Run the compiler. Raises RuntimeError with the compiler's message if it fails, Unusable if
    there is no message or it takes too long, and OSError if the disk is full.
    """
    try:
        status, _, errors = run_command([*cc.command, *cc.flags, *words], TIMEOUT)
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


def evict(where: Path) -> None:
    """Delete the least recently used libraries beyond the limit."""
    files = []
    for p in where.glob("*.*o"):  # libraries and objects
        with suppress(FileNotFoundError):  # another process deleted it
            files.append((p.stat().st_mtime, p.stat().st_size, p))
    size = 0
    for _, own, p in sorted(files, reverse=True):
        size += own
        if size > CACHE_LIMIT:
            p.unlink(missing_ok=True)
