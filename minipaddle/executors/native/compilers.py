"""Care for C compilers: GCC's best flags, zig's wheel, processes that hang, a cache that fills."""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from ...codegen.machine import find_missing
from ...engine.executors.compiler import (
    BUILT,
    COMMANDS,
    DESCRIBED,
    LIBRARIES,
    RUNNERS,
    THREADS,
    VECTORS,
    Compiler,
    Unusable,
    answer_of,
    give_up,
)

COMMANDS.append((sys.executable, "-m", "ziglang", "cc"))

# ---- which flags -----------------------------------------------------------------------------

GCC_EFFORT = (
    "-O2", "-ftree-vectorize", "-fvect-cost-model=dynamic", "-fsplit-loops", "-funswitch-loops",
    "-fno-tree-slp-vectorize", "-fno-schedule-insns2", "-fno-thread-jumps",
    "--param=max-completely-peel-times=8",
)  # fmt: skip
"""The parts of GCC's -O3 that make loops faster. The other parts take over a fifth of GCC's time,
and brought no measurable gain."""


GCC_LIBRARIES = ("-nostdlib", "-Wl,--gc-sections,--as-needed", "-lgomp", "-lmvec", "-lgcc")
"""The libraries to link on glibc. The process already contains the standard libraries of C. Looking
up their names again would take two thirds of the linker's time, 10 ms for each program."""
LIBM, LIBGOMP = "libm.so.6", "libgomp.so.1"
SPINS = "GOMP_SPINCOUNT"
BRIEFLY = "2000"
"""How often a thread of OpenMP looks whether there is work before it sleeps: some 50 µs, as long
as it takes to wake it. GCC's own number, 300,000, is for cores that nobody else uses: where another
process has one of them, each of two threads spins for a whole turn of the scheduler."""


def describe(command: tuple[str, ...], version: str) -> Compiler | None:
    """The compiler behind a command, by its version, with the flags that suit it."""
    if "gcc" in version.lower():
        cc = Compiler(command, version, gcc_libraries(), THREADS, GCC_EFFORT)
    else:
        openmp = THREADS if has_openmp(command) else VECTORS
        cc = Compiler(command, version, LIBRARIES, openmp)
    return choose_compiler(cc)


DESCRIBED.append(describe)


def choose_compiler(cc: Compiler) -> Compiler | None:
    """The compiler for the processor that MINIPADDLE_PROCESSOR names, else for this one; None, with
    a warning, if programs for it would not run here.
    """
    name = os.environ.get("MINIPADDLE_PROCESSOR", "native")
    if name == "native":
        return cc
    try:
        lacks = find_missing(cc, name)
    except ValueError:
        why = f"{' '.join(cc.command)} knows none of this name"
    else:
        if not lacks:
            return cc._replace(processor=name)
        why = f"this processor lacks {', '.join(lacks)}"
    give_up(Unusable(f"MINIPADDLE_PROCESSOR is {name!r}: {why}", hint="native is this processor"))
    return None


def gcc_libraries() -> tuple[str, ...]:
    """The libraries that GCC links to a program."""
    if platform.libc_ver()[0] != "glibc" or platform.machine() != "x86_64":
        return LIBRARIES
    ctypes.CDLL(LIBM, ctypes.RTLD_GLOBAL)  # libraries that are loaded later find its functions
    load_openmp()
    return GCC_LIBRARIES


def load_openmp() -> None:
    """Load OpenMP's library, whose threads then spin `BRIEFLY`, unless the user has said how they
    wait. It reads that when it is loaded; other processes do not inherit it.
    """
    if os.environ.keys().isdisjoint({SPINS, "OMP_WAIT_POLICY"}):
        os.environ[SPINS] = BRIEFLY
        with suppress(OSError):
            ctypes.CDLL(LIBGOMP)
        del os.environ[SPINS]


def has_openmp(command: tuple[str, ...]) -> bool:
    """Whether a compiler has OpenMP's library. zig has not; clang has if libomp is installed."""
    with tempfile.TemporaryDirectory() as work:
        source, library = Path(work) / "parallel.c", Path(work) / "parallel.so"
        source.write_text("void f(void)\n{\n#pragma omp parallel\n;\n}\n")
        call = [*command, THREADS, "-shared", "-fPIC", str(source), "-o", str(library)]
        with suppress(OSError):  # it cannot be loaded
            return answer_of(call) is not None and ctypes.CDLL(str(library)) is not None
        return False


# ---- processes -------------------------------------------------------------------------------


def run_alone(command: list[str], seconds: float) -> tuple[int, str, str]:
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


children: set[subprocess.Popen] = set()
"""The compilers that run now."""


def kill(process: subprocess.Popen) -> None:
    """End a process that `run_command` started, and those that it started."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()


RUNNERS.append(run_alone)

# ---- the cache -------------------------------------------------------------------------------

CACHE_LIMIT = 512 * 2**20
"""Bytes of the cache. Beyond it, the least recently used libraries are deleted."""
ONE_IN = 16
"""The share of new libraries, by their names, after which the size of the cache is looked at: that
takes a system call for each file."""


def evict(path: Path) -> None:
    """Delete the least recently used libraries beyond the limit, if it is `path`'s turn to look."""
    if int(path.stem, 16) % ONE_IN:
        return
    files, size = [], 0
    with os.scandir(path.parent) as entries:
        for entry in entries:
            if entry.name.endswith((".so", ".o")):
                with suppress(FileNotFoundError):  # another process deleted it
                    files.append((entry.stat().st_mtime, entry.stat().st_size, entry.path))
    for _, own, p in sorted(files, reverse=True):
        size += own
        if size > CACHE_LIMIT:
            Path(p).unlink(missing_ok=True)


BUILT.append(evict)
