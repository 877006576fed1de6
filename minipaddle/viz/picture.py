"""A matplotlib figure that shows itself in a notebook, without pyplot and its global state."""

from __future__ import annotations

import io
from pathlib import Path


class Picture:
    """A figure as PNG in a notebook, as text elsewhere, and to files by suffix."""

    def __init__(self, figure, text: str):
        self.figure, self.text = figure, text

    def save_as(self, path) -> Path:
        """Write the picture; the suffix (.png, .svg, .pdf) says the format."""
        path = Path(path)
        self.figure.savefig(path, bbox_inches="tight", metadata=undated(path.suffix))
        return path

    def png(self) -> bytes:
        out = io.BytesIO()
        self.figure.savefig(out, format="png", bbox_inches="tight")
        return out.getvalue()

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_mimebundle_(self, include=None, exclude=None, **_):
        return {"image/png": self.png(), "text/plain": self.text}


def undated(suffix: str) -> dict:
    """Metadata without the date of drawing, so that the same picture is the same file."""
    return {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(suffix.lower(), {})


def figure(width: float, height: float):
    """An empty figure and its axes, on white: a dark page shows it as a card."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(width, height), facecolor="white")
    return fig, fig.add_subplot()
