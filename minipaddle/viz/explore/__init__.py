"""One line of Python, all the way down: records, passes, kernels, C, memory, time, ranks."""

from collections.abc import Callable

from ...core.display import hide_folders
from ...engine.eager.tensor import Tensor
from ..program import draw_levels
from ..tape import tape
from ..target import ends_of, forward_of, program_of
from .facts import StepFacts
from .page import Explorer
from .ranks import rank_programs
from .text import write_text


def explore(target, *, timed: bool = True) -> Explorer:
    """A page on which each line of your Python is followed down to memory.

    `target`: a function or a layer that `to_static` compiled, called once; a saved program that was
    loaded; a Program; a tensor, whose tape is shown (computed within `viz.source_lines()`, so that
    its lines are known). A function that was called on tensors in pieces shows all ranks of their
    mesh; what the backend "auto" interprets is compiled for the page. With `timed` the program
    is compiled once more with clocks in it, and runs on sample numbers, unless it prints; without
    it the same input makes the same page, byte for byte.

    The page needs no network: `save_as("page.html")`, or look at it in a notebook. `str()` is the
    chain of each line for a terminal. Raises TypeError for anything else, ValueError for a
    function that was not called.

    >>> from minipaddle import viz
    >>> @paddle.jit.to_static(backend="native")
    ... def f(x):
    ...     return paddle.tanh(x) * 2
    >>> y = f(paddle.ones([3]))
    >>> print(viz.explore(f, timed=False))
    f: 2 records, 1 pass with changes, 1 kernel, arena 0 B
    f  <doctest minipaddle.viz.explore.explore[1]>
         3  return paddle.tanh(x) * 2
            records  tanh, multiply
            kernels  k0_multiply
            C        1 line, the first is 6
    """
    facts = StepFacts(target, timed).json
    return Explorer(facts, plan_still(target), write_text(facts))


def plan_still(target) -> Callable[[], str]:
    """A function that draws the first program as it is now; of tensors in pieces the first rank's.
    A tape, which goes on, is drawn at once.
    """
    if isinstance(target, Tensor):
        return hide_folders(tape(target).svg()).__str__
    captured = getattr(forward_of(target), "concrete_program", None)
    in_pieces = captured is not None and captured.executables.parts
    target = rank_programs(captured)[0].program if in_pieces else target
    drawn, ends = program_of(target), ends_of(target)
    return lambda: hide_folders(draw_levels(drawn, ends, depth=1).svg())
