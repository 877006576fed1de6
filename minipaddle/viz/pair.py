"""Two graphs side by side, as one picture."""

from __future__ import annotations

import re
from pathlib import Path

from ..core.errors import teach
from .engine import Graph, NoEngineError, box, paint

GAP = 24
"""Points between the two."""


def beside(left: Graph, right: Graph) -> Beside:
    """Two graphs side by side: an eager tape and the program of the same function, say.

    Shows itself in a notebook, and `save_as` writes .svg and .png. Raises TypeError for what is no
    graph.

    >>> import minipaddle as paddle
    >>> from minipaddle import viz
    >>> x = paddle.to_tensor([1.0], stop_gradient=False)
    >>> double = paddle.jit.to_static(lambda x: x * 2)
    >>> _ = double(x)
    >>> print(viz.beside(viz.tape(x * 2), viz.program(double)).text.splitlines()[0])
    v1 = input : float32[1]
    """
    for each in (left, right):
        if not isinstance(each, Graph):
            raise TypeError(
                teach(
                    f"beside was given {type(each).__name__}",
                    expected="two graphs, such as viz.tape and viz.program make",
                )
            )
    return Beside(left, right)


class Beside:
    """Two graphs that are shown together."""

    def __init__(self, left: Graph, right: Graph):
        self.graphs = left, right
        self.text = f"{left.text or left.source}\n\n{right.text or right.source}"

    def __repr__(self) -> str:
        return self.text

    def svg(self) -> str:
        """Both pictures in one `<svg>` element."""
        parts, x, height = [], 0.0, 0.0
        for k, graph in enumerate(self.graphs):
            text = graph.svg()
            wide, high = (float(n) for n in re.match(SIZE, text).groups())
            placed = f'<svg x="{x:g}" width="{wide:g}" height="{high:g}"'
            parts.append(re.sub(r' id="', f' id="part{k}_', re.sub(SIZE, placed, text, count=1)))
            x, height = x + wide + GAP, max(height, high)
        size = f'width="{x - GAP:g}pt" height="{height:g}pt" viewBox="0 0 {x - GAP:g} {height:g}"'
        return f'<svg {size} xmlns="http://www.w3.org/2000/svg">\n{"".join(parts)}</svg>\n'

    def png(self) -> bytes:
        """Both pictures in one, on a transparent page."""
        return paint(self.svg())

    def save_as(self, path) -> Path:
        """Write the picture; the suffix (.svg, .png) says the format."""
        path = Path(path)
        kind = path.suffix.lower()
        if kind not in (".svg", ".png"):
            raise ValueError(
                f"no picture format {path.suffix!r} of two graphs; there are .svg, .png"
            )
        if kind == ".svg":
            path.write_text(self.svg(), encoding="utf-8")
        else:
            path.write_bytes(self.png())
        return path

    def _repr_mimebundle_(self, include=None, exclude=None, **_):
        try:
            return {"image/svg+xml": self.svg(), "image/png": self.png(), "text/plain": self.text}
        except NoEngineError as error:
            return {"text/html": box(str(error), self.text), "text/plain": self.text}


SIZE = r'<svg width="([\d.]+)pt" height="([\d.]+)pt"'
