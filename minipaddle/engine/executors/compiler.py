"""The C compiler: which one there is, how it is called, and what it made before.

Compiled objects are kept in the user's cache folder by content, flags and processor. Two processes
may fill it at once: a file appears whole or not at all. It ends with its SHA-256, which is compared
before it is loaded, for a damaged library would end the process; one that is damaged is made again.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import importlib.util
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from ..core.errors import teach

FLAGS = (
    "-march=native", "-mprefer-vector-width=512", "-fno-math-errno", "-fno-trapping-math",
    "-fwrapv", "-fvisibility=hidden", "-fPIC", "-Werror=implicit-function-declaration",
)  # fmt: skip
"""Whole numbers wrap round, as in NumPy. No -ffast-math: NaN and Inf are kept, and denormal numbers
in the rest of the process."""

EFFORT = ("-O3",)
GCC_EFFORT = (
    "-O2", "-ftree-vectorize", "-fvect-cost-model=dynamic", "-fsplit-loops", "-funswitch-loops",
    "-fno-tree-slp-vectorize", "-fno-schedule-insns2", "-fno-thread-jumps",
    "--param=max-completely-peel-times=8",
)  # fmt: skip
"""Of GCC's -O3 what makes loops faster; the rest is over a fifth of its time, for nothing that
could be measured."""

LIBRARIES = ("-lm",)
GCC_LIBRARIES = ("-nostdlib", "-Wl,--as-needed", "-lgomp", "-lmvec", "-lgcc")
"""Linked with glibc. The process has C's own libraries already: to look their names up here as well
would take two thirds of the linker's time, 10 ms of each program."""
LIBM = "libm.so.6"

THREADS, VECTORS = "-fopenmp", "-fopenmp-simd"
INSTALL = "gcc or clang (apt install gcc), or zig's: pip install 'minipaddle[zig]'"
"""What to do where there is no compiler."""
LIMIT = 512 * 2**20
"""Bytes of the cache; the objects that were not used for longest go first."""
PATIENCE = 600.0
"""Seconds a compiler may take for a file; it says its version in a tenth."""
SUM = hashlib.sha256().digest_size


class Unusable(RuntimeError):
    """No program can be compiled here: why, and which environment variable says otherwise."""


class Compiler(NamedTuple):
    """A C compiler: the words that start its command, and what it says of itself."""

    command: tuple[str, ...]
    version: str
    libraries: tuple[str, ...]
    openmp: str  # the flag: of all of OpenMP, or of its vector loops alone, without threads
    effort: tuple[str, ...] = EFFORT

    @property
    def flags(self) -> tuple[str, ...]:
        """What it is told, besides the files."""
        return *self.effort, *FLAGS, self.openmp

    def __str__(self) -> str:
        """For people: what it is, and how many threads its programs have."""
        threads = "" if self.openmp == THREADS else ", one thread (it brings no OpenMP)"
        return f"{self.version}{threads}"


@cache
def compiler() -> Compiler | None:
    """The C compiler of this machine: `MINIPADDLE_CC`, gcc, clang, or zig from its wheel."""
    chosen = os.environ.get("MINIPADDLE_CC")
    if chosen == "none":
        return None
    candidates = [tuple(chosen.split())] if chosen else [("gcc",), ("clang",)]
    if not chosen and importlib.util.find_spec("ziglang") is not None:
        candidates.append((sys.executable, "-m", "ziglang", "cc"))
    for command in candidates:
        if shutil.which(command[0]) is None:
            continue
        try:
            status, said, _ = output_of([*command, "--version"], PATIENCE / 10)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if status == 0:
            version = next(iter(said.splitlines()), command[0])
            if "gcc" in version.lower():
                return Compiler(command, version, gcc_libraries(), THREADS, GCC_EFFORT)
            openmp = THREADS if links(command) else VECTORS
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
"""Why this process compiles no more programs; empty as long as it does."""


def output_of(command: list[str], seconds: float = PATIENCE) -> tuple[int, str, str]:
    """(exit status, output, errors) of a command; TimeoutExpired after so many seconds. Whatever
    ends the wait ends the processes that it started, too.
    """
    own = {"start_new_session": True} if hasattr(os, "killpg") else {}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, errors="replace", **pipes, **own) as process:
        try:
            said, errors = process.communicate(timeout=seconds)
        except BaseException:
            if own:
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            raise
    return process.returncode, said, errors


def gcc_libraries() -> tuple[str, ...]:
    """What GCC links a program with."""
    if platform.libc_ver()[0] != "glibc" or platform.machine() != "x86_64":
        return LIBRARIES
    ctypes.CDLL(LIBM, ctypes.RTLD_GLOBAL)  # for all that is loaded later
    return GCC_LIBRARIES


def links(command: tuple[str, ...]) -> bool:
    """Does a compiler bring OpenMP's library? zig does not, clang where libomp is installed."""
    with tempfile.TemporaryDirectory() as work:
        source, made = Path(work) / "parallel.c", Path(work) / "parallel.so"
        source.write_text("void f(void)\n{\n#pragma omp parallel\n;\n}\n")
        call = [*command, THREADS, "-shared", "-fPIC", str(source), "-o", str(made)]
        try:
            status, _, _ = output_of(call, PATIENCE / 10)
            return status == 0 and ctypes.CDLL(str(made)) is not None
        except (OSError, subprocess.TimeoutExpired):
            return False


def folder() -> Path:
    """Where compiled objects are kept; Unusable if there can be none."""
    own = os.environ.get("MINIPADDLE_CACHE")
    try:
        base = Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
        found = base / "minipaddle" / "native"
        found.mkdir(parents=True, exist_ok=True)
        os.listdir(found)
    except (OSError, RuntimeError) as error:  # RuntimeError: the user has no home
        raise no_cache(error) from error
    return found


def no_cache(error: Exception) -> Unusable:
    place = os.environ.get("MINIPADDLE_CACHE", "the default one")
    return Unusable(
        teach(
            f"the cache of compiled programs can not be used: {error}",
            hint=f"name another folder in the environment variable MINIPADDLE_CACHE ({place} now)",
        )
    )


@cache
def processor() -> str:
    """What `-march=native` depends on."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line for line in lines if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def path_of(text: str, cc: Compiler) -> Path:
    """Where the library of a C file is kept."""
    key = "\0".join([text, cc.version, *cc.flags, processor()])
    return folder() / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.so"


def load(text: str, parts=None) -> ctypes.CDLL:
    """The compiled library of a C file; `parts()`, if given, are files that make the same one."""
    cc = compiler()
    if cc is None:
        raise RuntimeError(
            teach(
                "there is no C compiler",
                expected=INSTALL,
                hint="without one, programs run on the interpreter: backend='interpreter'",
            )
        )
    path = path_of(text, cc)
    with suppress(OSError):  # there is none, or none that this machine loads
        data = path.read_bytes()
        if hashlib.sha256(data[:-SUM]).digest() == data[-SUM:]:
            with suppress(OSError):  # a folder that may only be read
                os.utime(path)
            return ctypes.CDLL(str(path))
    try:
        build(cc, parts() if parts else [text], path)
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise no_cache(error) from error


def build(cc: Compiler, texts: list[str], path: Path) -> None:
    """Compile files, all at once; the library appears at `path` when it is whole, with its sum."""
    if not any("omp parallel" in text for text in texts):
        cc = cc._replace(openmp=VECTORS)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix="build-") as work:
        made = Path(work) / "step.so"
        given = [Path(work) / f"step{k or ''}.c" for k in range(len(texts))]
        for source, text in zip(given, texts, strict=True):
            source.write_text(text, encoding="utf-8")
        if len(given) > 1:
            with ThreadPoolExecutor(len(given)) as pool:
                given = list(pool.map(partial(object_of, cc), given))
        called(cc, [*map(str, given), "-shared", "-o", str(made), *cc.libraries])
        if not made.exists():
            raise no_compiler(cc, "says nothing and makes nothing")
        data = made.read_bytes()
        whole = Path(work) / "whole"
        whole.write_bytes(data + hashlib.sha256(data).digest())
        whole.replace(path)
    tidy(path.parent)


def object_of(cc: Compiler, source: Path) -> Path:
    """Compile one of several files, which are linked later."""
    made = source.with_suffix(".o")
    called(cc, [str(source), "-c", "-o", str(made)])
    return made


def called(cc: Compiler, words: list[str]) -> None:
    """Run the compiler. RuntimeError with what it says if it fails; Unusable if it does not say why
    or takes too long, OSError if there is no room for what it makes.
    """
    try:
        status, _, said = output_of([*cc.command, *cc.flags, *words], PATIENCE)
    except subprocess.TimeoutExpired:
        raise no_compiler(cc, f"takes more than {PATIENCE:g} s") from None
    except OSError as error:
        raise no_compiler(cc, f"does not run: {error}") from error
    if status and os.strerror(errno.ENOSPC) in said:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if status and not said.strip():
        raise no_compiler(cc, f"fails without a word (status {status})")
    if status:
        raise RuntimeError(f"{' '.join(cc.command)} failed:\n{said[:2000]}")


def no_compiler(cc: Compiler, why: str) -> Unusable:
    return Unusable(
        teach(
            f"the C compiler {' '.join(cc.command)} {why}",
            hint="name another in the environment variable MINIPADDLE_CC, or none",
        )
    )


def tidy(where: Path) -> None:
    """Take away the objects that were not used for longest, down to the limit."""
    found = []
    for p in where.glob("*.so"):
        with suppress(FileNotFoundError):  # another process tidies too
            found.append((p.stat().st_mtime, p.stat().st_size, p))
    size = 0
    for _, own, p in sorted(found, reverse=True):
        size += own
        if size > LIMIT:
            p.unlink(missing_ok=True)
