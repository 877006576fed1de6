"""Texts of kernels: written around statements, or filled templates."""

from __future__ import annotations

import re
from functools import partial
from math import prod

from ...engine.codegen.kernel import parameters_of
from ...engine.codegen.writer import for_head
from .calls import CUDA_TYPES, Launch

THREADS = 256
"""Threads of a block that computes elements."""

MOST_BLOCKS = 4096
"""Blocks beyond which threads take several elements instead."""


FIRST = f"blockIdx.x * {THREADS} + threadIdx.x"
"""Where a thread begins that computes elements."""


def launch(name: str, parameters, lines, blocks, threads, operands, helpers=()) -> Launch:
    """A kernel of these lines, and its call by `blocks` blocks of threads."""
    bound = f"__launch_bounds__({prod(threads)})"
    head = f'extern "C" __global__ void {bound} {name}({", ".join(parameters)})'
    text = "\n".join([head, "{", *lines, "}\n"])
    return Launch(name, text, blocks, threads, tuple(operands), tuple(helpers))


def find_used(parameters, memory, lines) -> tuple[list, list]:
    """Those parameters that the lines name, and their operands."""
    words = set(re.findall(r"(?<![.\w])\w+", "\n".join(lines)))  # not the x of threadIdx.x
    pairs = zip(parameters, memory, strict=True)
    needed = [(p, m) for p, m in pairs if p.rpartition("*")[2] in words]
    return [p for p, _ in needed], [m for _, m in needed]


parameters = partial(parameters_of, types=CUDA_TYPES, pointer="*")
"""The parameters of a kernel from a template: in0, in1, …, out0, …"""


def each(name: str, params, size: int, body: str, operands, i="i", T="int64_t") -> Launch:
    """A kernel that runs `body`, which may `continue`, for every i < size."""
    blocks = max(1, min(-(-size // THREADS), MOST_BLOCKS))
    head = for_head(i, FIRST, size, blocks * THREADS, T)
    inside = [f"        {line}" for line in body.strip("\n").split("\n")]
    lines = [f"    {head} {{", *inside, "    }"]
    return launch(name, params, lines, (blocks, 1), (THREADS, 1), operands)
