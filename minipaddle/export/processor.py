"""The processors that a library can be built for, by name.

The text of a library asks the compiler's macros for vector instructions, so it is right for any
processor; the level decides how wide tiles of products are, and which flags the Makefile has.
"""

from typing import NamedTuple

from ..codegen.machine import Facts


class ProcessorLevel(NamedTuple):
    """A level of processors: vector registers, and the flags of gcc and clang, and of zig."""

    facts: Facts
    flags: str
    about: str


LEVELS = {
    "generic": ProcessorLevel(Facts(), "", "any processor; no flag names one"),
    "x86-64": ProcessorLevel(Facts(), "-march=x86-64", "any of AMD and Intel since 2003 (SSE2)"),
    "x86-64-v2": ProcessorLevel(Facts(), "-march=x86-64-v2", "since about 2009 (SSE4.2)"),
    "x86-64-v3": ProcessorLevel(Facts(32, 16), "-march=x86-64-v3", "since about 2013 (AVX2, FMA)"),
    "x86-64-v4": ProcessorLevel(
        Facts(64, 32), "-march=x86-64-v4 -mprefer-vector-width=512", "servers since 2017 (AVX-512)"
    ),
    "aarch64": ProcessorLevel(Facts(16, 32), "-march=armv8-a", "ARM with 64 bits (NEON)"),
    "wasm-simd": ProcessorLevel(Facts(), "-msimd128", "WebAssembly with vectors of 16 bytes"),
}
