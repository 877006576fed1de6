"""Paddle's names: for each that the chapters use, the chapter that builds it, and its file.

All of it is read off the chapters. Their code cells say which names are used. What they open by
`viz.code`, and what their exercises replace, says which code they explain. A name belongs to the
first chapter that opens its own definition, or else its file; a name whose code no chapter opens
belongs to the first that uses it.
"""

import ast
import inspect
import json
import re
from itertools import groupby
from pathlib import Path

import numpy as np

import minipaddle as paddle
from minipaddle.learn.exercise import load, names
from minipaddle.viz.code import ROOT, code, source_of

INDEX = """# Paddle's names

Each name of Paddle that the chapters use: the chapter that builds it or opens its code (of a name
that none does, the first that uses it), the other chapters that use it, and the file in
`minipaddle/` that defines it. Formulas and derivatives are listed under [](/operators/index.md).

{tables}
"""
HAND = {
    "paddle.Tensor": "00_five_minutes",
    "paddle.Tensor.backward": "02_autograd",
    "paddle.Tensor.stop_gradient": "02_autograd",
    "paddle.no_grad": "02_autograd",
    "paddle.nn.BatchNorm2D": "04_training",
    "paddle.nn.Embedding": "09_to_static",
    "paddle.jit.to_static": "09_to_static",
}
"""What a chapter builds under another name, or in a file that no chapter or another one opens."""

HEAD = re.compile(r"^# (minipaddle/\S+\.py):(\d+)\n", re.MULTILINE)
OTHERS = list, dict, str, set, Path, np.ndarray, paddle.optimizer.Optimizer, paddle.autograd.PyLayer
COMMON = {name for kind in OTHERS for name in dir(kind)} | {*ast.Assign._fields}
"""Methods that a tensor shares with other objects of the cells: who knows which is meant?"""


def names_page(chapters: dict) -> str:
    """The page, for the notebooks of the chapters by name."""
    used = {chapter: used_in(notebook) for chapter, notebook in chapters.items()}
    opened = {chapter: opened_in(chapter, notebook) for chapter, notebook in chapters.items()}
    rows = []
    for name in sorted({name for some in used.values() for name in some}, key=place):
        users = [chapter for chapter in chapters if name in used[chapter]]
        file, definition = where(name)
        home = HAND.get(name) or home_of(name, file, definition, opened) or users[0]
        rows.append((name, home, [chapter for chapter in users if chapter != home], file))
    spaces = groupby(rows, lambda row: space_of(row[0]))
    return INDEX.format(tables="\n".join(table(space, list(some)) for space, some in spaces))


def place(name: str) -> tuple:
    """Names of one space stand together, `paddle` first."""
    return space_of(name).lower(), name.lower()


def space_of(name: str) -> str:
    return name.rpartition(".")[0]


def table(space: str, rows: list) -> str:
    lines = [f"## {space}\n", "| Name | Chapter | Used in | File |", "|---|--:|---|---|"]
    for name, home, others, file in rows:
        also = ", ".join(map(link, others))
        short = file.removeprefix("minipaddle/")
        lines.append(f"| `{name}` | {link(home)} | {also} | {short and f'`{short}`'} |")
    return "\n".join([*lines, ""])


def link(chapter: str) -> str:
    return f"[{int(chapter.split('_')[0])}](/{chapter}.ipynb)"


# ---- which names a chapter uses ------------------------------------------------------------------


def paddle_names() -> set[str]:
    """Paddle's public names, as the tests compare them."""
    data = ROOT / "tests/data"
    said = json.loads((data / "paddle_signatures.json").read_text(encoding="utf-8"))
    listed = [(data / f"api_{part}.txt").read_text().split() for part in ("core", "next")]
    return set().union(said["signatures"], said["attributes"], said["unreadable"], *listed)


PADDLE = paddle_names()


def used_in(notebook) -> set[str]:
    """The names of Paddle in the code cells of a chapter."""
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    tree = ast.parse("\n".join(re.sub(r"^%.*", "", source) for source in cells))
    alias = {a.asname or a.name: f"{home}{a.name}" for home, a in imports(tree)}
    found, own = set(), {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            head, *rest = ast.unparse(node).split(".")
            if head in alias:
                found.add(".".join([alias[head], *rest]).replace("minipaddle", "paddle", 1))
            elif isinstance(node, ast.Attribute) and head != "self":
                found |= {f"paddle.Tensor.{node.attr}"} - {f"paddle.Tensor.{n}" for n in own}
    return {name for name in found & PADDLE if counts(name)}


def counts(name: str) -> bool:
    """Is it here, no module, and of the methods one of a tensor alone, that no function repeats?"""
    if name in HAND:
        return True
    method = name.removeprefix("paddle.Tensor.")
    repeated = method != name and (method in COMMON or f"paddle.{method}" in PADDLE)
    return known(name) is not None and not inspect.ismodule(known(name)) and not repeated


def imports(tree):
    """What the imports of a tree name: ("minipaddle.", the alias) for `from minipaddle import`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (("", alias) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((f"{node.module}.", alias) for alias in node.names)


def known(name: str):
    """What a name of Paddle stands for here; None if nothing."""
    found = paddle
    for part in name.split(".")[1:]:
        found = getattr(found, part, None)
    return found


# ---- which code a chapter opens ------------------------------------------------------------------


def opened_in(chapter: str, notebook) -> set[tuple[str, str]]:
    """(file, definition) of the code that a chapter shows and that its exercises replace."""
    found = set()
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            text = output.get("data", {}).get("text/plain", "")
            parts = HEAD.split(text)[1:]
            found |= {(file, defined(text)) for file, text in zip(parts[::3], parts[2::3])}
    for name in names():
        if name.startswith(f"{chapter}/"):
            for file, _, text in code(*load(name).slots).parts:
                found.add((file, defined(text)))
    return found


def defined(text: str) -> str:
    """The name of the function or class that a text defines."""
    return (re.findall(r"^(?:def|class) (\w+)", text, re.MULTILINE) or [""])[0]


def where(name: str) -> tuple[str, str]:
    """(file, definition) of what a name stands for; empty if it is no Python code of its own."""
    thing = known(name)
    body = getattr(getattr(thing, "op", None), "body", None)  # of a function that is an operator's
    try:
        file, _, text = source_of(body or getattr(thing, "fget", None) or thing)
    except TypeError:  # an attribute, a number
        return (where("paddle.Tensor")[0] if "Tensor." in name else "", "")
    return (file, defined(text)) if file.startswith("minipaddle/") else ("", "")


def home_of(name: str, file: str, definition: str, opened: dict) -> str:
    """The first chapter that opens a definition, or else its file; "" if none does."""
    last = name.rpartition(".")[2]  # an operator's body has its name
    same = {(file, definition), *((f, last) for some in opened.values() for f, d in some)}
    exact = [chapter for chapter, some in opened.items() if same & some]
    if exact or "/ops/" in file or "/tensor/" in file:  # such a file holds many operators
        return "".join(exact[:1])
    return next((c for c, some in opened.items() if file in {f for f, _ in some}), "")
