"""Two graphs side by side, or one below the other, as one picture."""

import re

from ..engine.core.errors import type_error
from .engine import PAGE, SIZE, Drawn, Graph
from .picture import Shown

GAP = 24
"""Points between the two."""


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
        """Both pictures in one `<svg>` element, one below the other if the page is too narrow."""
        parts = [graph.svg() for graph in self.graphs]
        sizes = [[float(n) for n in re.match(SIZE, part).groups()] for part in parts]
        (wide, high), (wide_2, high_2) = sizes
        if (wide + GAP + wide_2) * 4 / 3 > PAGE:
            at, whole = f'y="{high + GAP:g}" ', (max(wide, wide_2), high + GAP + high_2)
        else:
            at, whole = f'x="{wide + GAP:g}" ', (wide + GAP + wide_2, max(high, high_2))
        for k, place in enumerate(("", at)):
            head = '<svg {}width="{:g}" height="{:g}"'.format(place, *sizes[k])
            part = re.sub(SIZE, head, parts[k], count=1)
            parts[k] = part.replace(' id="', f' id="part{k}_')
        size = 'width="{0:g}pt" height="{1:g}pt" viewBox="0 0 {0:g} {1:g}"'.format(*whole)
        return f'<svg {size} xmlns="http://www.w3.org/2000/svg">\n{"".join(parts)}</svg>\n'
