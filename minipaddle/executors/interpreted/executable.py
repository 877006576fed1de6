"""A program on the interpreter after the passes, for machines without a compiler.

The passes leave fewer records. Large groups run in blocks that stay in the cache
(`cache_blocking`). Passes that help only a compiler are left out: NumPy's own bodies of softmax or
a norm are faster than their parts one after the other, unless these are large enough for blocks;
and NumPy allocates the arrays itself.
"""

from __future__ import annotations

from ...engine.eager.device import current_place
from ...engine.executors.native import fix_sizes
from ...engine.ir.control import fused
from ...engine.ir.program import Program, everywhere
from ...engine.passes.lifetimes import specs_of
from ...engine.passes.manager import optimized, switches_of
from .cache_blocking import LEAST, BlockedRun, flatten

PASSES = {
    "layout": False, "recompute": False, "strip_products": False, "epilogue": False,
    "schedule": False, "decompose_from": 4 * LEAST, "widen_products": False,
    "keep_halves": False,
}  # fmt: skip
"""The switches of passes that differ from those for a compiler."""


class Interpreted:
    """A program after the passes. A call runs it like `ir.interpreter.Run`.

    >>> import numpy
    >>> from minipaddle.executors.interpreted.executable import Interpreted
    >>> @paddle.jit.to_static
    ... def f(x):
    ...     return paddle.tanh(x) * 2 + 1 - 1
    >>> y = f(paddle.zeros([3]))
    >>> executable = Interpreted(f.main_program)
    >>> executable(f.main_program, [numpy.zeros(3, "float32")])[0].tolist()
    [0.0, 0.0, 0.0]
    """

    kind = "interpreter, after the passes"

    def __init__(self, program: Program, strategy=None, sizes=None):
        program = fix_sizes(program, sizes)
        own = PASSES | {"fusion": is_large(program)}
        self.optimized = optimized(program, own | {**switches_of(strategy)})
        self.sizes, self.snapshots = sizes or {}, self.optimized.snapshots
        self.program = flatten(self.optimized.program)
        self.constants = [s.storage.read() for s in self.program.states[len(program.states) :]]

    def __call__(self, program: Program, arrays) -> list:
        """The outputs, then the updated states, for inputs and states."""
        run = BlockedRun(current_place().module, dict(self.sizes))
        return run(self.program, [*arrays, *self.constants])

    def report(self) -> str:
        """The work of the passes, and the number of groups in blocks."""
        groups = sum(r.op is fused for r in self.program.records)
        return f"{self.optimized.report()}\nby the interpreter; groups in blocks: {groups}"


def is_large(program: Program) -> bool:
    """Whether any value is large enough for blocks. (Searching for groups takes time.)"""
    return any(s.nbytes >= LEAST for r in everywhere(program) for s in specs_of(r))
