"""The facts of the processor for products of matrices: vector registers and the sizes of caches.

The compiler knows the registers, the system the caches. Where it does not say how large they are, a
walk in random order shows it: a step takes longer where the next cache must serve it. The answers
are kept for each processor and compiler, in the folder of compiled libraries.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import re
import time
from contextlib import suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ..engine.codegen.kernel import read_template
from ..engine.codegen.kernel_schedule import within
from ..engine.core.errors import teach
from ..engine.eager.device import NUMPY
from ..engine.executors.arrays import address
from ..engine.executors.compiler import (
    READ,
    Compiler,
    Unusable,
    answer_of,
    cache_folder,
    compiler,
    load,
    processor,
)

REGISTERS = (("__AVX512F__", 64, 32), ("__AVX__", 32, 16), ("__aarch64__", 16, 32))
"""Macros of the compiler, with the bytes of a vector register, and how many there are."""

DOTS = {"vnni": "__AVX512VNNI__", "bf16": "__AVX512BF16__", "amx": "__AMX_TILE__"}
"""Instructions that multiply and sum neighbouring numbers of few bits, and their macros."""

ARCH_PRCTL, REQUEST, TILES = 158, 0x1023, 18
"""A call of Linux, what it does, and for which registers: the tiles of AMX."""

FOLDER = Path("/sys/devices/system/cpu/cpu0/cache")
WORDS = "level", "type", "size"
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}

STEPS = 50_000
"""Steps of a walk: milliseconds where each reads from memory."""

SLOWER = 1.7
"""The ratio of times from which a step counts as served by the next cache."""


class Facts(NamedTuple):
    """The facts of a processor, in bytes; the defaults hold for any of the last 20 years."""

    vector: int = 16
    registers: int = 16
    first: int = 1 << 15
    second: int = 1 << 18
    third: int = 1 << 21
    vnni: bool = False
    bf16: bool = False
    amx: bool = False


def machine(threads: int) -> str:
    """A hash of what the time of a kernel depends on: processor, compiler, flags, threads."""
    cc, here = compiler(), processor() + " tiles" * permits_tiles()
    key = "\0".join([here, *((*cc.command, cc.version, *cc.flags) if cc else ()), str(threads)])
    return hashlib.sha256(key.encode()).hexdigest()[:12]


_target: ContextVar[Facts | None] = ContextVar("target", default=None)


def target_facts(known: Facts):
    """Within the block, kernels are written for another processor, of which this is known."""
    return within(_target, known)


def target_processor(name: str):
    """Within the block, kernels are written for the processor that compilers call `name`, as in
    `-march=name`, with caches of usual sizes. Raises ValueError if the compiler knows none.

    >>> from minipaddle.codegen.machine import facts, target_processor
    >>> with target_processor("sapphirerapids"):
    ...     facts().vector, facts().vnni, facts().bf16
    (64, True, True)
    """
    known = instructions(name)
    if known is None:
        raise processor_error(name)
    return target_facts(Facts(**known))


def is_elsewhere() -> bool:
    """Whether kernels are written for another processor, where NumPy's libraries are not."""
    return _target.get() is not None


def facts() -> Facts:
    """The facts of the processor that kernels are written for, by default of this one, or of the
    one that the environment variable MINIPADDLE_PROCESSOR names."""
    return _target.get() or facts_here()


@cache
def facts_here() -> Facts:
    """The facts of this processor."""
    try:
        file = cache_folder() / f"facts-{machine(1)}.json"
    except Unusable:
        return find_facts()
    with suppress(OSError, ValueError, TypeError, KeyError):
        kept = json.loads(READ[-1](file))
        known = Facts(**{name: kept[name] for name in Facts._fields})
        if all(type(x) is type(y) and x >= (y > 0) for x, y in zip(known, Facts(), strict=True)):
            return known
    known, temporary = find_facts(), file.with_suffix(f".{os.getpid()}")
    with suppress(OSError):
        temporary.write_text(json.dumps(known._asdict()))
        temporary.chmod(0o644)
        temporary.replace(file)
    return known


def find_facts() -> Facts:
    """The facts, asked and measured."""
    cc = compiler()
    sizes = sizes_in_files() or (find_cache_sizes() if cc else ())
    known = (cc and instructions(cc.processor)) or {}
    return Facts(**known, **dict(zip(("first", "second", "third"), sizes)))


def instructions(name: str) -> dict | None:
    """The registers and instructions of a processor, as the compiler sees it; None if there is no
    compiler, or none that knows it."""
    cc = compiler()
    known = cc and macros(cc, name)
    if not known:
        return None
    sizes = next((known_sizes for macro, *known_sizes in REGISTERS if macro in known), Facts()[:2])
    has = {field: macro in known for field, macro in DOTS.items()}
    has["amx"] &= permits_tiles() or name != cc.processor
    return {"vector": sizes[0], "registers": sizes[1], **has}


@cache
def permits_tiles() -> bool:
    """Whether this processor has tiles, and the system lets this process use them from now on."""
    words = map(ctypes.c_long, (ARCH_PRCTL, REQUEST, TILES))
    return "amx_tile" in processor().split() and ctypes.CDLL(None).syscall(*words) == 0


def macros(cc: Compiler, name: str) -> set[str]:
    """The names that a compiler defines for a processor; none if it does not know the processor."""
    flags = cc._replace(processor=name).flags
    text = answer_of([*cc.command, *flags, "-dM", "-E", "-x", "c", os.devnull])
    return set(re.findall(r"^#define (\w+)", text or "", re.MULTILINE))


def find_missing(cc: Compiler, name: str, here: str = "native") -> list[str]:
    """The instructions of a processor that this one (or `here`) lacks, by the compiler's names.
    Raises ValueError if the compiler does not know the processor.
    """
    asked = macros(cc, name)
    if not asked:
        raise processor_error(name)
    missing = asked - macros(cc, here)
    return sorted(macro.strip("_") for macro in missing if macro.isupper())


def processor_error(name: str) -> ValueError:
    hint = "the compiler's manual lists what it knows, e.g. x86-64-v3, sapphirerapids"
    return ValueError(teach(f"no processor is called {name!r}", hint=hint))


def sizes_in_files(folder: Path = FOLDER) -> tuple[int, ...]:
    """The sizes of the caches for data, from the files of Linux; () if there are none."""
    sizes = {}
    with suppress(OSError, ValueError, KeyError):
        for index in sorted(folder.glob("index*")):
            level, holds, size = ((index / name).read_text().strip() for name in WORDS)
            if holds != "Instruction":
                sizes[int(level)] = int(size[:-1]) * UNITS[size[-1]]
    return tuple(sizes[k] for k in (1, 2, 3) if k in sizes) if {1, 2} <= {*sizes} else ()


def find_cache_sizes(sizes=tuple(1 << k for k in range(13, 26))) -> tuple[int, ...]:
    """The sizes from which on steps take longer: three of `sizes`, or fewer."""
    walk = load(read_template("walk.c", __file__)).walk
    walk.restype = ctypes.c_long
    times = [seconds_of_steps(walk, size) for size in sizes]
    steps, served = [], times[0]
    for size, seconds in zip(sizes, times, strict=True):
        if seconds > SLOWER * served:
            steps.append(size // 2)
            served = seconds
    return tuple(steps[:3]) if len(steps) > 1 else ()


def seconds_of_steps(walk, size: int) -> float:
    """The seconds of a walk through lines of `size` bytes in random order."""
    order = NUMPY.random.default_rng(0).permutation(size // 64)
    lines = NUMPY.zeros((size // 64, 8), "int64")
    lines[order, 0] = NUMPY.roll(order, -1)
    spent = []
    for _ in range(4):
        start = time.perf_counter()
        walk(ctypes.c_void_p(address(lines)), ctypes.c_long(STEPS))
        spent.append(time.perf_counter() - start)
    return min(spent[1:])
