"""A program on the interpreter after the passes: what runs where there is no compiler.

The passes leave fewer records; large groups run in blocks that stay in the cache (`blocked`). What
serves a compiler alone is left out: NumPy's own bodies of softmax or a norm are faster than their
parts one after the other, unless these are large enough for blocks; and arrays find their memory
themselves.
"""

from __future__ import annotations

from ..engine.eager.device import current_place
from ..engine.executors.native import closed
from ..engine.ir.control import fused
from ..engine.ir.program import Program, everywhere
from ..engine.passes.lifetimes import specs_of
from ..engine.passes.manager import chosen_by, optimized
from .blocked import LEAST, BlockedRun, flattened

PASSES = {
    "layout": False, "recompute": False, "epilogue": False, "schedule": False,
    "expand_from": 4 * LEAST,
}  # fmt: skip
"""What differs from the passes for a compiler."""


class Interpreted:
    """A program after the passes. Calling it is like running it: see `ir.interpreter.Run`.

    >>> import numpy, minipaddle as paddle
    >>> from minipaddle.executors.interpreted import Interpreted
    >>> @paddle.jit.to_static
    ... def f(x):
    ...     return paddle.tanh(x) * 2 + 1 - 1
    >>> y = f(paddle.zeros([3]))
    >>> executable = Interpreted(f.main_program)
    >>> executable(f.main_program, [numpy.zeros(3, "float32")])[0].tolist()
    [0.0, 0.0, 0.0]
    """

    def __init__(self, program: Program, strategy=None, sizes=None):
        program = closed(program, sizes)
        own = PASSES | {"fusion": is_large(program)}
        self.optimized = optimized(program, own | {**chosen_by(strategy)})
        self.sizes, self.snapshots = sizes or {}, self.optimized.snapshots
        self.program = flattened(self.optimized.program)
        self.constants = [s.cell.read() for s in self.program.states[len(program.states) :]]

    def __call__(self, program: Program, arrays) -> list:
        """The outputs, then the updated states, for inputs and states."""
        run = BlockedRun(current_place().module, dict(self.sizes))
        return run(self.program, [*arrays, *self.constants])

    def report(self) -> str:
        """What the passes did, and how many groups run in blocks."""
        groups = sum(r.op is fused for r in self.program.records)
        return f"{self.optimized.report()}\nby the interpreter; groups in blocks: {groups}"


def is_large(program: Program) -> bool:
    """Is any value worth blocks? Looking for groups takes time."""
    return any(s.nbytes >= LEAST for r in everywhere(program) for s in specs_of(r))
