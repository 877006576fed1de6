"""Texts of kernels: written around statements, or filled templates."""

from __future__ import annotations

import re
from math import prod

from ...engine.codegen.scalar import wide
from ...engine.core import dtype as dt
from .calls import CUDA_TYPES, Launch, operands

THREADS = 256
"""Threads of a block that computes elements."""

MOST_BLOCKS = 4096
"""Blocks beyond which threads take several elements instead."""


def kernel(name: str, parameters, lines, threads: tuple[int, int]) -> str:
    """The text of a kernel."""
    bound = f"__launch_bounds__({prod(threads)})"
    head = f'extern "C" __global__ void {bound} {name}({", ".join(parameters)})'
    body = "\n".join(lines)
    return f"{head}\n{{\n{body}\n}}\n"


def filled(text: str, dtype, words: dict) -> str:
    """A template with its words. E is an element in memory, T what is computed with; LOAD and STORE
    make one of the other.
    """
    E, T = CUDA_TYPES[dtype], CUDA_TYPES[wide(dtype)]
    special = dtype == dt.bfloat16.numpy
    words = {
        "E": E, "T": T, "LOAD": "widen" if special else f"({T})",
        "STORE": "narrow" if special else f"({E})", **words,
    }  # fmt: skip
    return re.sub(r"\b[A-Z]+\b", lambda m: str(words.get(m[0], m[0])), text)


def inserted(text: str, word: str, lines: str) -> str:
    """A template with lines in the place of the line that is the word alone, as far indented."""

    def indented(match) -> str:
        return "\n".join(match[1] + line for line in lines.strip("\n").split("\n"))

    return re.sub(rf"^( *){word}$", indented, text, flags=re.MULTILINE)


def parameters(record) -> list[str]:
    """in0, in1, …, out0, …: what a kernel takes whose template calls them so."""
    found = []
    given = [e.spec for e, o in zip(buffers(record), operands(record))]
    made = [record.spec] if record.dtype is not None else list(record.shape)
    found += [f"const {CUDA_TYPES[s.dtype]} *in{k}" for k, s in enumerate(given)]
    return found + [f"{CUDA_TYPES[s.dtype]} *out{k}" for k, s in enumerate(made)]


def buffers(record) -> list:
    """The inputs that are no numbers."""
    return [x for x in record.inputs if x.op.name != "number"]


def each(name: str, params, size: int, body: str, given) -> Launch:
    """A kernel that runs `body`, which may `continue`, for every i < size."""
    blocks = max(1, min(-(-size // THREADS), MOST_BLOCKS))
    loop = f"for (int64_t i = blockIdx.x * {THREADS} + threadIdx.x; i < {size}; "
    loop += f"i += {blocks * THREADS}) {{"
    lines = [f"    {loop}", *(f"        {line}" for line in body.strip("\n").split("\n")), "    }"]
    text = kernel(name, params, lines, (THREADS, 1))
    return Launch(name, text, (blocks, 1), (THREADS, 1), tuple(given))
