"""The base of all pictures: how they show and save themselves."""

import io
from pathlib import Path

from ..core.shown import Shown


class Picture(Shown):
    """A matplotlib figure: PNG in a notebook, text elsewhere, and to files by suffix."""

    def __init__(self, figure, text: str):
        self.figure, self.text = figure, text

    def save_as(self, path) -> Path:
        """Write the picture; the suffix (.png, .svg, .pdf) says the format."""
        path = Path(path)
        self.figure.savefig(path, bbox_inches="tight", metadata=metadata_of(path.suffix))
        return path

    def png(self) -> bytes:
        out = io.BytesIO()
        self.figure.savefig(out, format="png", bbox_inches="tight")
        return out.getvalue()

    def rich(self) -> dict:
        return {"image/png": self.png()}


def metadata_of(suffix: str) -> dict:
    """Metadata without the date of drawing, so that the same picture is the same file."""
    return {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(suffix.lower(), {})


def figure(width: float, height: float, rows: int = 1, columns: int = 1, **how):
    """A figure on white (a dark page shows it as a card), and then its axes, row by row.

    It is made without pyplot and its global state; `how` are arguments of `Figure.subplots`.
    """
    from matplotlib.figure import Figure

    fig = Figure(figsize=(width, height), facecolor="white")
    return fig, *fig.subplots(rows, columns, squeeze=False, **how).ravel()


def label_colours(fig, colours: dict, edge: str | None = None, **where) -> None:
    """Give a figure, or axes, a legend that names colours, {name: colour}."""
    from matplotlib.patches import Patch

    marks = [Patch(facecolor=c, edgecolor=edge or c, label=n) for n, c in colours.items()]
    fig.legend(handles=marks, frameon=False, fontsize=7, **where)
