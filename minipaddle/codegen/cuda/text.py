"""Texts of kernels: written around statements, or filled templates."""

from __future__ import annotations

from math import prod

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


def each(name: str, params, size: int, body: str, given, i: str = "i") -> Launch:
    """A kernel that runs `body`, which may `continue`, for every i < size."""
    blocks = max(1, min(-(-size // THREADS), MOST_BLOCKS))
    loop = f"for (int64_t {i} = blockIdx.x * {THREADS} + threadIdx.x; {i} < {size}; "
    loop += f"{i} += {blocks * THREADS}) {{"
    lines = [f"    {loop}", *(f"        {line}" for line in body.strip("\n").split("\n")), "    }"]
    text = kernel(name, params, lines, (THREADS, 1))
    return Launch(name, text, (blocks, 1), (THREADS, 1), tuple(given))
