"""Graphs become SVG and PNG without a library of the system.

The wheel graphviz-pure brings Graphviz as one program, which draws byte for byte the same on every
machine; resvg paints the PNG with matplotlib's DejaVu and no other font.
"""

import functools
import importlib
import importlib.metadata
import importlib.util
import shutil
import subprocess
from pathlib import Path

import graphviz

from ..core.display import Display
from ..engine.core.errors import type_error
from .markup import embed, fit_page, join_svgs, write_call, write_notice, write_words

HELP = """The graph engine is missing.
  pip install graphviz-pure resvg-py      (their wheels need nothing of the system)"""


class NoEngineError(RuntimeError):
    """Nothing on this machine can draw a graph."""


@functools.cache
def find_program() -> str:
    """The Graphviz of the wheel, wherever pip put it; else a system's `dot`."""
    try:
        names = importlib.metadata.files("graphviz-pure") or []
    except importlib.metadata.PackageNotFoundError:
        names = []
    here = [str(f.locate().resolve()) for f in names if f.stem == "graphviz-pure"]
    for program in (*here, "dot"):
        if path := shutil.which(program):
            return path
    raise NoEngineError(HELP)


def layout(source: str, engine: str = "dot", kind: str = "svg") -> bytes:
    """`source` (DOT) as SVG or another format of Graphviz, the same bytes every time.

    Raises NoEngineError that says what to install, ValueError with Graphviz's message.
    """
    command = [find_program(), f"-K{engine}", f"-T{kind}"]
    done = subprocess.run(command, input=source.encode(), capture_output=True, check=False)
    if done.returncode or not done.stdout:
        raise ValueError(f"{' '.join(command)}: {done.stderr.decode().strip()}\n{source}")
    return done.stdout


def paint(svg: str) -> bytes:
    """An `<svg>` element as PNG, in matplotlib's DejaVu; 96 pixels an inch, as browsers draw."""
    try:
        import resvg_py
    except ImportError as error:
        raise NoEngineError(HELP) from error
    fonts = [str(find_fonts() / f"DejaVuSans{face}.ttf") for face in FACES]
    look = {"dpi": 96, "skip_system_fonts": True, "font_files": fonts}
    return resvg_py.svg_to_bytes(svg_string=svg, **look, **FAMILY)


SANS, MONO = "DejaVu Sans", "DejaVu Sans Mono"
FACES = "", "-Bold", "-Oblique", "Mono"
FAMILY = {"sans_serif_family": SANS, "serif_family": SANS, "monospace_family": MONO}


def find_fonts() -> Path:
    """The folder of matplotlib's fonts; matplotlib itself is slow to import, and rarely needed."""
    (root,) = importlib.util.find_spec("matplotlib").submodule_search_locations
    fonts = Path(root, "mpl-data", "fonts", "ttf")
    if not fonts.exists():  # a distribution has moved them
        fonts = Path(importlib.import_module("matplotlib").get_data_path(), "fonts", "ttf")
    return fonts


# ---- the graph -------------------------------------------------------------------------------

KINDS = ("svg", "png", "dot")


class Drawn:
    """A picture with an SVG: `svg()` makes PNG, files and the output of a notebook."""

    kinds, noun = KINDS, "a graph"
    text = ""
    """Its content in a few lines for a terminal; where empty, the DOT source is shown."""
    call = ""
    """A call with which a reader sees more."""

    def png(self) -> bytes:
        """The picture as PNG, on a transparent page."""
        return paint(self.svg())

    def html(self) -> str:
        """The picture as a part of a page, and the call that shows more of it."""
        return embed(self.svg()) + write_call(self.call)

    def save_as(self, path) -> Path:
        """Write the picture; the suffix (.svg, .png, and of a graph .dot) says the format."""
        path = Path(path)
        kind = path.suffix.removeprefix(".").lower()
        if kind not in self.kinds:
            known = ", ".join(f".{k}" for k in self.kinds)
            what = f"no picture format {path.suffix!r} (of {path.name}) of {self.noun}"
            raise ValueError(f"{what}; there are {known}")
        content = self.source if kind == "dot" else getattr(self, kind)()
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def _repr_mimebundle_(self, include=None, exclude=None, **_):
        source = getattr(self, "source", self.text)
        try:
            svg = self.svg()
            return {  # code hosts show SVG or PNG, a terminal the text
                "text/html": self.html(),
                "image/svg+xml": fit_page(svg),
                "image/png": self.png(),
                "text/plain": self.text or source,
            }
        except NoEngineError as error:
            words = write_words("The graph was not drawn.\n", "strong"), write_words(f"{error}\n\n")
            page = write_notice("#d55e00", *words, write_words(source, "code"))
            return {"text/html": page, "text/plain": source}


class Graph(Drawn, graphviz.Digraph):
    """A `graphviz.Digraph` that draws without a system `dot`, in Jupyter and to files.

    >>> from minipaddle import viz
    >>> g = viz.Graph()
    >>> g.edge("x", "y")
    >>> g.svg().count('class="edge"')
    1
    """

    def __init__(self, *args, **named):
        super().__init__(*args, **{"format": "svg"} | named)

    def pipe(self, format=None, *_, engine=None, encoding=None, **__):
        """The picture as bytes, or as text in an encoding."""
        engine, kind = engine or self.engine, format or self.format
        out = paint(self.svg(engine)) if kind == "png" else layout(self.source, engine, kind)
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

    def svg(self, engine=None) -> str:
        """The picture as an `<svg>` element."""
        return svg_of(self.source, engine or self.engine)


def svg_of(source: str, engine: str = "dot") -> str:
    """A graph in DOT as an `<svg>` element; Verdana (of DejaVu's widths) if a viewer lacks it."""
    text = layout(source, engine).decode("utf-8")
    text = text[text.index("<svg") :]
    for font, families in FAMILIES.items():
        text = text.replace(f'font-family="{font}"', f'font-family="{families}"')
    return text


FAMILIES = {
    SANS: f"{SANS},Verdana,sans-serif",
    "Courier,monospace": f"{MONO},Menlo,Consolas,monospace",  # Graphviz knows Courier's widths
}


# ---- two pictures ------------------------------------------------------------------------------


def beside(left, right) -> "Beside":
    """Two pictures side by side: an eager tape and the program of the same function, say.

    Where the page is too narrow for both, the second stands below the first.
    Shows itself in a notebook, and `save_as` writes .svg and .png. Raises TypeError for what is no
    picture of `viz`.

    >>> from minipaddle import viz
    >>> x = paddle.to_tensor([1.0], stop_gradient=False)
    >>> double = paddle.jit.to_static(lambda x: x * 2)
    >>> _ = double(x)
    >>> print(viz.beside(viz.tape(x * 2), viz.program(double)).text.splitlines()[0])
    v1 = input : float32[1]
    """
    for each in (left, right):
        if not hasattr(each, "svg"):
            expected = "two pictures, such as viz.tape and viz.program make"
            raise type_error(f"beside was given {type(each).__name__}", expected=expected)
    return Beside(left, right)


class Beside(Drawn, Display):
    """Two pictures that are shown together."""

    kinds, noun = ("svg", "png"), "two pictures"

    def __init__(self, left, right):
        self.pictures = left, right
        self.text = "\n\n".join(each.text or getattr(each, "source", "") for each in self.pictures)

    def svg(self) -> str:
        return join_svgs(*(each.svg() for each in self.pictures))
