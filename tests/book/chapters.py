"""Running chapters: what the tests of the book share."""

import os
import re
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from numpy._core._multiarray_umath import __cpu_features__

from tests.processors import settings

BOOK = Path(__file__).parents[2] / "book"
CHAPTERS = sorted(BOOK.glob("*.ipynb"))
FEW = CHAPTERS if os.environ.get("BOOK_ALL") else CHAPTERS[:1]
"""What is also walked through in a browser, and with all exercises solved. Every chapter is run
once as it is; BOOK_ALL=1 walks through all of them."""

WORKSPACE = "MINIPADDLE_EXERCISES"
AVX2 = __cpu_features__.get("X86_V3", __cpu_features__.get("AVX2"))  # since NumPy 2.4, before
SAME = settings("x86-64-v3") if AVX2 else {}
"""Libraries round as the instructions do that they choose for a processor, and so do programs that
are compiled for it. With these, which nearly all can run, chapters say the same on all of them;
where they cannot run, `alike` leaves room for rounding."""

FIGURE = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?|-?\de[+-]\d+|[▁▂▃▄▅▆▇█]")
"""What rounding may change: a number with a point or an exponent, a bar of a small curve."""

# What may differ from run to run, and what it is compared as.
VOLATILE = [
    (re.compile(r"\d[\d,.]*(e-?\d+)?(?= ?(ns|us|µs|ms|s|MB/s|GB/s|GFLOP/s|×)(?![\w]))"), "<n>"),
    (re.compile(r"0x[0-9a-f]{6,}"), "<address>"),
    # with the workspaces of kernels, which differ from processor to processor
    (re.compile(r"(sum of all values +)\d[\d.,]* [KM]iB"), r"\1<n>"),
    (re.compile(r"(arena )[\d.]+( of the bound, +)\d+(% of all values)"), r"\1<n>\2<n>\3"),
    (re.compile(r"((?:minipaddle|exercises|book)/[\w/]+\.py)(:|, line )\d+"), r"\1\2<line>"),
    (re.compile(re.escape(str(BOOK.parent)) + r"[/\\]?"), "<repository>/"),
]

ROUNDS = re.compile(r"\b(rounds|games)=\d+")  # of a measurement, in a cell that measures


def read(path: Path) -> nbformat.NotebookNode:
    """A chapter as it is committed."""
    return nbformat.read(path, as_version=4)


def execute(path: Path, timeout: int = 300, exercises: str = "") -> nbformat.NotebookNode:
    """A chapter run from top to bottom in a fresh kernel.

    `exercises` is the folder of a reader; without it, of one who has solved nothing. Cells that
    measure take few rounds, as their figures are not compared, unless BOOK=write keeps them.
    """
    notebook = read(path)
    if os.environ.get("BOOK") != "write":
        for cell in filter(volatile, notebook.cells):
            cell.source = ROUNDS.sub(r"\1=3", cell.source)
    where = {"metadata": {"path": str(path.parent)}}
    client = NotebookClient(
        notebook,
        timeout=timeout,
        kernel_name="python3",
        record_timing=False,
        resources=where,
        coalesce_streams=True,  # what is printed in pieces is one output, however slow the pieces
    )
    with tempfile.TemporaryDirectory() as folder:
        client.execute(env=os.environ | SAME | {WORKSPACE: exercises or f"{folder}/exercises"})
    for cell in notebook.cells:
        if cell.source.startswith("%exercise "):
            cell.outputs = []  # the task, which stands in the solution alone
    for output in (output for cell in notebook.cells for output in cell.get("outputs", [])):
        if "image/svg+xml" in output.get("data", {}) and not moves(output):
            output.data.pop("text/html", None)  # code hosts prefer it, and cannot show it
    return notebook


def moves(output) -> bool:
    """Whether an output is a picture that the reader moves, which only its HTML has whole."""
    return "<iframe" in output.get("data", {}).get("text/html", "")


def as_text(output) -> str:
    """What a reader sees of an output, as text that two runs can be compared by."""
    if output.output_type == "stream":
        text = f"[{output.name}]\n{output.text}"
    elif output.output_type == "error":
        text = f"[error] {output.ename}: {output.evalue}"
    else:  # a picture is compared by its being there; its DOT is text/plain
        pictures = {"text/html"} if moves(output) else set()
        pictures |= {kind for kind in output.data if not kind.startswith("text/")}
        parts = {k: "(picture)" if k in pictures else v for k, v in output.data.items()}
        text = "\n".join(f"[{kind}]\n{body}" for kind, body in sorted(parts.items()))
    for pattern, name in VOLATILE:
        text = pattern.sub(name, text)
    return text


def transcript(notebook) -> list[tuple[str, str]]:
    """(source, output as text) of every code cell; a cell tagged `volatile` shows only its source.

    Use the tag for a cell that measures: its figures differ on every run.
    """
    return [
        (cell.source, "" if volatile(cell) else "\n".join(map(as_text, cell.outputs)))
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def alike(old: str, new: str) -> bool:
    """Whether two texts say the same. A processor without AVX2 rounds otherwise than all others:
    there a number may differ by a tenth or by two of its last digit, and a bar of a curve at all.
    """
    if SAME or old == new:
        return old == new
    pairs = zip(FIGURE.findall(old), FIGURE.findall(new))
    return FIGURE.sub("#", old) == FIGURE.sub("#", new) and all(near(a, b) for a, b in pairs)


def near(a: str, b: str) -> bool:
    if len(a) == len(b) == 1:
        return True
    digits, _, exponent = a.partition("e")
    last = 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))
    return abs(float(a) - float(b)) <= max(2.001 * last, 0.1 * abs(float(a)))


def volatile(cell) -> bool:
    return "volatile" in cell.metadata.get("tags", [])
