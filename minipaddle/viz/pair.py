"""Two graphs side by side, or one below the other, as one picture."""

from ..core.shown import Shown
from ..engine.core.errors import type_error
from .engine import Drawn, Graph
from .markup import join_svgs


def beside(left: Graph, right: Graph) -> "Beside":
    """Two graphs side by side: an eager tape and the program of the same function, say.

    Where the page is too narrow for both, the second stands below the first.
    Shows itself in a notebook, and `save_as` writes .svg and .png. Raises TypeError for what is no
    graph.

    >>> from minipaddle import viz
    >>> x = paddle.to_tensor([1.0], stop_gradient=False)
    >>> double = paddle.jit.to_static(lambda x: x * 2)
    >>> _ = double(x)
    >>> print(viz.beside(viz.tape(x * 2), viz.program(double)).text.splitlines()[0])
    v1 = input : float32[1]
    """
    for each in (left, right):
        if not isinstance(each, Graph):
            expected = "two graphs, such as viz.tape and viz.program make"
            raise type_error(f"beside was given {type(each).__name__}", expected=expected)
    return Beside(left, right)


class Beside(Drawn, Shown):
    """Two graphs that are shown together."""

    kinds, noun = ("svg", "png"), "two graphs"

    def __init__(self, left: Graph, right: Graph):
        self.graphs = left, right
        self.text = f"{left.text or left.source}\n\n{right.text or right.source}"

    def svg(self) -> str:
        return join_svgs(*(graph.svg() for graph in self.graphs))
