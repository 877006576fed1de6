"""A page for each chapter that says `viz.explore(…)`: its own network, followed down to memory.

A chapter asks for its page in a sentence such as

    Follow `F.gelu(self.a(x))` down to memory: `viz.explore(feed)`.

The site runs the cells that `feed` needs, explores it, and makes a link of the call; the expression
is what the page has selected when it opens.
"""

import ast
import contextlib
import importlib
import io
import linecache
import multiprocessing
import os
import re
import symtable
import sys
import time
import traceback
from functools import partial
from pathlib import Path
from typing import NamedTuple

import nbformat

from minipaddle import viz
from minipaddle.engine.executors.compiler import compiler
from minipaddle.learn.chapters import BOOK, chapters
from minipaddle.viz.markup import escape, tag

FOLDER = "explore"
"""Where the pages lie in the site."""
ASKS = re.compile(r"[Ff]ollow\s+`([^`]+)`[^`]*`viz\.explore\((.+?)\)`")


class Asked(NamedTuple):
    """What a chapter wants to be explored: an expression of its code, and what it is part of."""

    expression: str
    target: str
    at: int
    """The number of the cell that says so."""
    cells: dict[int, str]
    """The code cells, by their numbers."""


def can_explore() -> bool:
    """Whether this machine can compile: a page without kernels would show half of it."""
    return compiler() is not None


def find_asked(notebook) -> Asked | None:
    """What a chapter asks for; None if it does not."""
    kinds = {kind: {} for kind in ("markdown", "code", "raw")}
    for k, cell in enumerate(notebook.cells):
        kinds[cell.cell_type][k] = cell.source
    code = {k: re.sub(r"^%.*", "", text, flags=re.MULTILINE) for k, text in kinds["code"].items()}
    places = [(k, asks) for k, text in kinds["markdown"].items() for asks in ASKS.finditer(text)]
    if not places:
        return None
    ((k, asks),) = places
    return Asked(" ".join(asks[1].split()), asks[2], k, code)


def link_page(text: str, link: str) -> str:
    """A chapter's text, with its call of `viz.explore` as a link."""

    def linked(asks):
        call = f"viz.explore({asks[2]})"
        code = tag("code", escape(call), class_="docutils literal notranslate")
        return asks[0].replace(f"`{call}`", tag("a", code, href=link))

    return ASKS.sub(linked, text)


def write_explorers(site: Path, names=None) -> dict[str, str]:
    """Write the pages of the chapters that ask for one (or of those named), each in a process of
    its own; chapter -> the address of its page.
    """
    names = [name for name in names or chapters() if find_asked(read(name))]
    (site / FOLDER).mkdir(parents=True, exist_ok=True)
    start = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    importlib.import_module("matplotlib.pyplot")  # once, for all processes
    links = {}
    with start.Pool(max(1, os.cpu_count() // 2), maxtasksperchild=1) as pool:
        for name, link, seconds in pool.imap(partial(write_explorer, site), names):
            print(f"explorer of {name}: {seconds:.0f} s", flush=True)
            links[name] = link
    return links


def write_explorer(site: Path, name: str) -> tuple[str, str, float]:
    """Write the page of a chapter: (the chapter, the address, seconds)."""
    began = time.perf_counter()
    asked, chapter = find_asked(read(name)), chapters()[name]
    try:
        page = viz.explore(run(name, asked))
    except Exception:  # it may hold what cannot be sent to another process
        raise RuntimeError(f"{name}: no page\n{traceback.format_exc()}") from None
    selection = find(page.facts, asked.expression, name)
    back = f"{chapter.number} · {chapter.title}", f"../{name}.html"
    page.save_as(site / FOLDER / f"{name}.html", back=back)
    return name, f"{FOLDER}/{name}.html#sel={selection}", time.perf_counter() - began


def read(name: str):
    return nbformat.read(BOOK / f"{name}.ipynb", as_version=4)


# ---- running what a page needs -------------------------------------------------------------------


def run(name: str, asked: Asked):
    """The target, after the cells it needs."""
    os.environ |= {"MPLBACKEND": "agg", "MINIPADDLE_BACKEND": "native"}
    os.chdir(BOOK)
    namespace = {"__name__": "__main__"}
    for k in find_needed_cells(asked):
        text, file = asked.cells[k], f"{k}/{name}.ipynb"
        linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(text, file, "exec"), namespace)
    return eval(asked.target, namespace)


def find_needed_cells(asked: Asked) -> list[int]:
    """The numbers of the cells that bind what the target needs, and what they need themselves. A
    name is that of the last cell before which binds it, or else of the first one after.
    """
    cells = {k: list_names(text) for k, text in asked.cells.items()}
    _, wanted = list_names(asked.target)
    todo, needed = [(name, asked.at) for name in wanted], set()
    while todo:
        name, at = todo.pop()
        binding = [k for k, (binds, _) in cells.items() if name in binds and k != at]
        before = [k for k in binding if k < at]
        for k in before[-1:] or binding[:1]:
            if k not in needed:
                needed.add(k)
                todo += [(each, k) for each in cells[k][1]]
    return sorted(needed)


def list_names(text: str) -> tuple[set[str], set[str]]:
    """The names that a cell binds, and those that it needs from others."""
    cell = symtable.symtable(text, "a cell", "exec")
    binds = {s.get_name() for s in cell.get_symbols() if s.is_assigned() or s.is_imported()}
    nodes = ast.walk(ast.parse(text))
    changed = {ast.unparse(n.target) for n in nodes if isinstance(n, ast.AugAssign)}
    return binds, (read_globals(cell) - binds) | changed


def read_globals(table) -> set[str]:
    """The names of a module that it reads itself, and that functions and classes in it read."""
    inside = [read_globals(child) for child in table.get_children()]
    whole = table.get_type() == "module"
    own = [s for s in table.get_symbols() if s.is_referenced() and (whole or s.is_global())]
    return {s.get_name() for s in own}.union(*inside)


# ---- the selection -------------------------------------------------------------------------------


def find(facts: dict, expression: str, name: str) -> str:
    """Where a page has an expression that wrote records: `line:column-line:column`."""
    written = {row[2] for row in facts["tracks"]} | facts["calls"].keys()
    for k, span in enumerate(facts["spans"]):
        if k in written and cut_text(facts["src"], span) == expression:
            first = next(other for other in facts["spans"] if other[1:] == span[1:])
            if first is span:
                return "{1}:{2}-{3}:{4}".format(*span)
    raise ValueError(f"{name}: no records come from `{expression}`, or not from there alone")


def cut_text(sources: list[dict], span: list[int]) -> str:
    """The text of an expression, on one line."""
    source, first, start, last, end = span
    lines = sources[source]["lines"][first - sources[source]["first"] :][: last - first + 1]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    return " ".join(line.strip() for line in lines)
