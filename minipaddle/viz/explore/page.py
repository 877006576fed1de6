"""The page of an explorer: one HTML file with the facts of a step, and no other file."""

import base64
import json
import zlib
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from ...core.display import Display
from ..markup import css, embed_page, escape, tag
from .panes import PaneWriter

HERE = Path(__file__).parent
SCRIPTS = "facts.js", "layout.js", "graph.js", "marks.js", "keys.js"
"""One module of the browser, in this order."""


def page(facts: dict, still: str = "", back: tuple[str, str] | None = None) -> str:
    """The HTML of a page; the same facts give the same text.

    `facts` are in the form that `facts.py` describes; `still` is an `<svg>` element, for readers
    without JavaScript; `back` is the text and the address of a link to where the page belongs.
    """
    form = read("page.html")
    parts = {
        "title": escape(facts["title"]),
        "style": read("look.css"),
        "back": link_back(*back) if back else "",
        "still": still,
        "facts": write_facts(facts | {"c": "", "panes": PaneWriter(facts).write()}),
        "dagre": read("dagre.min.js").partition("\n//# sourceMappingURL")[0],
        "script": "".join(map(read, SCRIPTS)),
    }
    for name, text in parts.items():
        before, _, after = form.partition(f"[{name}]")
        form = before + text + after
    return form


def link_back(text: str, address: str) -> str:
    """A link that leaves the frame, too, if the page is in one."""
    look = css(color="var(--accent)", text_decoration="none")
    return tag("a", f"← {escape(text)}", href=escape(address), target="_top", style=look)


def read(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def write_facts(facts: dict) -> str:
    """The facts as an element that a browser does not run, compressed."""
    text = json.dumps(facts, separators=(",", ":"), ensure_ascii=False)
    packed = base64.b64encode(zlib.compress(text.encode(), 9)).decode()
    return tag("script", packed, id="facts", type="text/plain")


def check_name(path) -> Path:
    """The path of a page; raises ValueError unless the suffix is .html."""
    path = Path(path)
    if path.suffix != ".html":
        raise ValueError(f"an explorer is a page: {path.name} should end in .html")
    return path


class Explorer(Display):
    """The page of a step: alive in a notebook, or saved as a file of its own."""

    def __init__(self, facts: dict, draw: Callable[[], str], text: str = ""):
        self.facts, self.draw, self.text = facts, draw, text

    @cached_property
    def still(self) -> str:
        """A picture of the program, an `<svg>` element, drawn when it is asked for."""
        return self.draw()

    def html(self, back: tuple[str, str] | None = None) -> str:
        """The page, whole; `back` is the text and the address of a link to where it belongs."""
        return page(self.facts, self.still, back)

    def save_as(self, path, back: tuple[str, str] | None = None) -> Path:
        """Write the page; the suffix is .html. Raises ValueError for another."""
        path = check_name(path)
        path.write_text(self.html(back), encoding="utf-8")
        return path

    def rich(self) -> dict:
        """The page in a frame that a reader makes higher, or the still picture."""
        framed = embed_page(self.html(), self.still, self.facts["title"], 700, resize="vertical")
        return {"text/html": framed, "image/svg+xml": self.still}
