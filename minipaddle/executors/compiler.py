"""The C compiler: which one there is, how it is called, and what it made before.

Compiled objects are kept in the user's cache folder by content, flags and processor. Two processes
may fill it at once: a file appears whole or not at all. One that can not be loaded is made again.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
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
        said = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
        if said.returncode == 0:
            version = said.stdout.splitlines()[0]
            if "gcc" in version.lower():
                return Compiler(command, version, gcc_libraries(), THREADS, GCC_EFFORT)
            openmp = THREADS if links(command) else VECTORS
            return Compiler(command, version, LIBRARIES, openmp)
    return None


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
        if subprocess.run(call, capture_output=True, check=False).returncode:
            return False
        try:
            ctypes.CDLL(str(made))
        except OSError:
            return False
        return True


def folder() -> Path:
    """Where compiled objects are kept."""
    own = os.environ.get("MINIPADDLE_CACHE")
    base = Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    found = base / "minipaddle" / "native"
    found.mkdir(parents=True, exist_ok=True)
    return found


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
    if path.exists():
        try:
            os.utime(path)
            return ctypes.CDLL(str(path))
        except OSError:  # cut short, or of another machine
            path.unlink(missing_ok=True)
    build(cc, parts() if parts else [text], path)
    return ctypes.CDLL(str(path))


def build(cc: Compiler, texts: list[str], path: Path) -> None:
    """Compile files, all at once; the library appears at `path` when it is whole."""
    if not any("omp parallel" in text for text in texts):
        cc = cc._replace(openmp=VECTORS)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix="build-") as work:
        made = f"{work}/step.so"
        given = [Path(work) / f"step{k or ''}.c" for k in range(len(texts))]
        for source, text in zip(given, texts, strict=True):
            source.write_text(text, encoding="utf-8")
        if len(given) > 1:
            with ThreadPoolExecutor(len(given)) as pool:
                given = list(pool.map(partial(object_of, cc), given))
        called(cc, [*map(str, given), "-shared", "-o", made, *cc.libraries])
        os.replace(made, path)
    tidy(path.parent)


def object_of(cc: Compiler, source: Path) -> Path:
    """Compile one of several files, which are linked later."""
    made = source.with_suffix(".o")
    called(cc, [str(source), "-c", "-o", str(made)])
    return made


def called(cc: Compiler, words: list[str]) -> None:
    """Run the compiler; RuntimeError with what it says if it fails."""
    command = [*cc.command, *cc.flags, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(cc.command)} failed:\n{done.stderr[:2000]}")


def tidy(where: Path) -> None:
    """Take away the objects that were not used for longest, down to the limit."""
    found = sorted(where.glob("*.so"), key=lambda p: p.stat().st_mtime, reverse=True)
    size = 0
    for p in found:
        size += p.stat().st_size
        if size > LIMIT:
            p.unlink(missing_ok=True)
