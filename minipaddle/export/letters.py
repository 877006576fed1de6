"""Models whose classes are letters: writers of texts, and readers of lines."""

from pathlib import Path

from ..engine.core.errors import value_error
from .library import Library

OPTION = {
    "letters": {
        "help": "the characters of a model of texts, in the order of its tokens, or of a reader of "
        "lines, of its classes after the blank, or a file that holds them ('': neither)"
    }
}
LINE = (1, 3, 48)
"""How the shape of a line of text begins."""


def as_letters(letters: str | None) -> str | None:
    """The letters, or those in the file of that name."""
    if letters and "." in letters and Path(letters).is_file():
        return Path(letters).read_text("utf-8")
    return letters


def is_reader(library: Library) -> bool:
    """Whether a model reads lines: float32 [1, 3, 48, width] to [1, columns, classes]."""
    if len(library.inputs) != 1 or not library.outputs:
        return False
    x, y = library.inputs[0].spec, library.outputs[0].spec
    line = x.dtype.name == "float32" and x.ndim == 4 and x.shape[:3] == LINE
    return line and y.dtype.name == "float32" and y.ndim == 3 and y.shape[-1] > 1


def check_letters(letters: str | None, count: int, what: str) -> str | None:
    """The letters, one for each of `count`; None if there are to be none."""
    if letters == "":
        return None
    if letters is None or len(letters) != count:
        raise value_error(
            f"the model has {count} {what}, and letters={letters!r:.40}",
            expected=f"the {count} characters that they stand for, in order",
            hint='--letters "abc…", or --letters FILE.txt; --letters "" does without',
        )
    return letters
