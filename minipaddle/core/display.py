"""How objects show themselves: rich in a notebook, as text in a terminal."""

import re


class Display:
    """An object that a notebook shows as `rich`, and a terminal as `text`."""

    text = ""

    def rich(self) -> dict:
        """The content for a notebook, by MIME type."""
        return {"text/html": self.html()}

    def __repr__(self) -> str:
        return self.text

    __str__ = __repr__

    def _repr_mimebundle_(self, include=None, exclude=None, **_):
        return {**self.rich(), "text/plain": str(self)}


class TableDisplay(Display):
    """An object whose `table()` is one of the library `rich`; `width` are characters of text."""

    width = 160

    @property
    def text(self) -> str:
        from rich.console import Console

        console = Console(width=self.width, force_jupyter=False, color_system=None)
        with console.capture() as page:
            console.print(self.table())
        return page.get()

    def rich(self) -> dict:
        return self.table()._repr_mimebundle_([], [])


def make_table(title: str, head, rows, words=()):
    """A `rich` table of texts; the first column and the columns `words` are left-aligned."""
    from rich.box import SIMPLE
    from rich.table import Table

    table = Table(title=title, box=SIMPLE, pad_edge=False)
    for k, name in enumerate(head):
        left = not k or name in words
        table.add_column(name, justify="left" if left else "right", no_wrap=name not in words)
    for row in rows:
        table.add_row(*row)
    return table


def hide_folders(text: str) -> str:
    """A text with the user's lines, as comments and pictures have them, without the folders of this
    machine: `net.py:12, in forward; train.py:8, in step`.
    """
    folder = r"""(/\* |;\s?|"|>|^)[^;"<>*\n]*[/\\](?=[^/\\;"<>*\n]*:\d+, in )"""
    return re.sub(folder, r"\1", text, flags=re.MULTILINE)
