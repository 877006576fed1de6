"""Kernels of the random generator: its next state, and the stream of a state."""

from __future__ import annotations

import numpy as np

from ...engine.codegen.scalar import ScalarText, statements
from ...ops.random import start
from ..target import KernelTarget, LoopLevel, kernel


@kernel("next_state")
def next_state(k: KernelTarget) -> None:
    """The key stays, the counter is one more."""
    k.loops(LoopLevel("i", 2, "out0[i] = in0[i] + i;\n"))


@kernel("base_of")
def base_of(k: KernelTarget) -> None:
    """The formula of `ops.random`, applied to expressions."""
    words = (ScalarText(f"in0[{k}]", (), np.int64).astype(np.uint64) for k in range(2))
    names = iter(f"t{k}" for k in range(99))
    lines, (value,) = statements([start(*words).astype(np.int64)], names.__next__)
    k.loops(LoopLevel("i", 1, "\n".join([*lines, f"out0[0] = {value};\n"])))
