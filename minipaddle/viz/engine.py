"""Graphviz layout without a system `dot`: the pygraphviz wheel first, then `dot`, then a clear box.

The wheel carries Graphviz itself. Its fontconfig would complain about the machine's fonts and lay
out differently everywhere, so it sees matplotlib's DejaVu and nothing else. Graphviz is not
thread-safe: one layout at a time.
"""

from __future__ import annotations

import functools
import html
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

import graphviz

HELP = """No Graphviz layout engine was found. Either
  pip install pygraphviz      (its wheels for Linux, macOS and Windows carry the engine), or
  install the system package  (apt install graphviz, brew install graphviz)."""

ONE_AT_A_TIME = threading.RLock()


class NoEngineError(RuntimeError):
    """Nothing on this machine can lay out a graph."""


# ---- fonts -----------------------------------------------------------------------------------

FONTS = """<?xml version="1.0"?>
<fontconfig>
  <dir>{fonts}</dir>
  <cachedir>{cache}</cachedir>
</fontconfig>
"""


def cache_folder() -> Path:
    """Where this user's caches live, by the platform's convention."""
    if sys.platform == "win32":
        root = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        root = Path.home() / "Library" / "Caches"
    else:
        root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "minipaddle"


def dejavu() -> Path:
    """The folder of matplotlib's fonts; matplotlib itself is slow to import, and rarely needed."""
    (root,) = importlib.util.find_spec("matplotlib").submodule_search_locations
    fonts = Path(root, "mpl-data", "fonts", "ttf")
    if not fonts.exists():  # a distribution has moved them
        fonts = Path(importlib.import_module("matplotlib").get_data_path(), "fonts", "ttf")
    return fonts


@functools.cache
def font_config() -> Path:
    """A fontconfig file that knows DejaVu alone; in a temporary folder if no cache can be kept."""
    fonts = dejavu()
    try:
        folder = cache_folder() / "fontconfig"
        folder.mkdir(parents=True, exist_ok=True)
        return written(folder, fonts)
    except (OSError, RuntimeError):  # read-only, or there is no home
        return written(Path(tempfile.mkdtemp(prefix="minipaddle-fonts-")), fonts)


def written(folder: Path, fonts: Path) -> Path:
    """The configuration file in `folder`; whole at every moment, for others may read it."""
    path, draft = folder / "fonts.conf", folder / f"fonts.{os.getpid()}"
    draft.write_text(FONTS.format(fonts=fonts, cache=folder / "cache"), encoding="utf-8")
    return draft.replace(path)


@contextmanager
def only_dejavu():
    """Let fontconfig see one font family, the same on every machine."""
    before = os.environ.get("FONTCONFIG_FILE")
    os.environ["FONTCONFIG_FILE"] = str(font_config())
    try:
        yield
    finally:
        if before is None:
            del os.environ["FONTCONFIG_FILE"]
        else:
            os.environ["FONTCONFIG_FILE"] = before


@contextmanager
def silent_stderr():
    """Drop what C libraries write to file descriptor 2 (a notebook would show it)."""
    keep, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(keep, 2)
        os.close(keep)
        os.close(null)


# ---- engines ---------------------------------------------------------------------------------


@functools.cache
def pygraphviz():
    """The wheel's module, once its fonts are settled; raises ImportError if it is missing."""
    with only_dejavu(), silent_stderr():
        import pygraphviz

        pygraphviz.AGraph(string="digraph { a }").draw(format="png", prog="dot")
    return pygraphviz


def by_wheel(source: str, engine: str, kind: str) -> bytes:
    graph = pygraphviz().AGraph(string=source)
    graph.number_of_nodes = lambda: 0  # from 1000 on it would print a warning
    return graph.draw(format=kind, prog=engine)


def by_system(source: str, engine: str, kind: str) -> bytes:
    if shutil.which(engine) is None:
        raise ImportError(f"no {engine} on the PATH")
    with only_dejavu():
        return graphviz.pipe(engine, kind, source.encode(), quiet=True)


ENGINES = {"pygraphviz": by_wheel, "system": by_system}

DATE = re.compile(rb"(?<=/CreationDate \(D:)\d{14}")


def layout(source: str, engine: str = "dot", kind: str = "svg") -> bytes:
    """`source` (DOT) as SVG, PNG or PDF, the same bytes every time.

    Raises NoEngineError that says what to install.
    """
    tried = []
    with ONE_AT_A_TIME:
        for name, draw in ENGINES.items():
            try:
                return DATE.sub(b"20000101000000", draw(source, engine, kind))
            except (ImportError, OSError) as error:
                tried.append(f"{name}: {error}")
    raise NoEngineError("\n".join([HELP, "Tried:", *tried]))


# ---- the graph -------------------------------------------------------------------------------

KINDS = ("svg", "png", "pdf", "dot")


class Graph(graphviz.Digraph):
    """A `graphviz.Digraph` that draws without a system `dot`, in Jupyter and to files.

    >>> from minipaddle import viz
    >>> g = viz.Graph()
    >>> g.edge("x", "y")
    >>> g.svg().count('class="edge"')
    1
    """

    text = ""
    """What it shows, in a few lines for a terminal; the DOT source where nothing better is said."""

    def pipe(self, format=None, *_, engine=None, encoding=None, **__):
        """The picture as bytes, or as text in an encoding."""
        out = layout(self.source, engine or self.engine, format or self.format)
        return out.decode(encoding) if encoding else out

    def render(
        self, filename=None, directory=None, view=False, cleanup=False, format=None, **named
    ):
        """Write the source to `filename` and the picture beside it, as `graphviz` does.

        `outfile=` names the picture itself. Returns its path. Source: graphviz `Graph.render`.
        """
        kind, source = format or self.format, self.save(filename, directory=directory)
        path = Path(named.get("outfile") or f"{source}.{kind}")
        path.write_bytes(self.pipe(format=kind, engine=named.get("engine")))
        if cleanup:
            Path(source).unlink()
        if view:
            self._view(str(path), format=kind, quiet=True)
        return str(path)

    def save_as(self, path) -> Path:
        """Write the picture; the suffix (.svg, .png, .pdf, .dot) says the format."""
        path = Path(path)
        kind = path.suffix.removeprefix(".").lower()
        if kind not in KINDS:
            raise ValueError(
                f"no picture format {path.suffix!r} (of {path.name}); there are "
                + ", ".join(f".{k}" for k in KINDS)
            )
        if kind == "svg":
            path.write_text(self.svg(), encoding="utf-8")
        else:
            path.write_bytes(self.source.encode() if kind == "dot" else self.pipe(format=kind))
        return path

    def svg(self) -> str:
        """The picture as an `<svg>` element; Verdana (of DejaVu's widths) if a viewer lacks it."""
        text = self.pipe(format="svg", encoding="utf-8")
        text = text[text.index("<svg") :]
        text = text.replace('font-family="DejaVu Sans Mono"', f'font-family="{FIXED}"')
        return text.replace('font-family="DejaVu Sans"', f'font-family="{FAMILY}"')

    def _repr_mimebundle_(self, include=None, exclude=None, **_):
        try:
            return {  # an untrusted notebook shows the PNG, a terminal the text
                "image/svg+xml": self.svg(),
                "image/png": self.pipe(format="png"),
                "text/plain": self.text or self.source,
            }
        except NoEngineError as error:
            return {"text/html": box(str(error), self.source), "text/plain": self.source}


FAMILY = "DejaVu Sans,Verdana,sans-serif"
FIXED = "DejaVu Sans Mono,Menlo,Consolas,monospace"


def box(message: str, source: str) -> str:
    """What a notebook shows instead of a picture: the reason, the fixes, the graph as text."""
    style = "border-left:4px solid #d55e00;padding:.5em;white-space:pre-wrap"
    return (
        f'<div style="{style}"><b>The graph was not drawn.</b>\n{html.escape(message)}</div>'
        f"<pre>{html.escape(source)}</pre>"
    )
