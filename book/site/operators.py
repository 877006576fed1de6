"""The reference page of operators: all that is said there stands in the operator's definition."""

import ast
import inspect
import sys
from itertools import groupby
from pathlib import Path

from text import literal

import minipaddle as paddle
from minipaddle.core.markdown import docstring, prose
from minipaddle.engine.core.op import OPS, Op
from minipaddle.executors import support
from minipaddle.viz.code import rules_of, source_of

INDEX = """# {title}

An operator is written once: its formula or body, its shape rule, its derivative, its documentation.
These pages are collected from there. `m` in a formula is the array module, NumPy or CuPy. In a
derivative `g` is how much the loss changes with the operator's result, `out` is that result, and
the rule says how much the loss changes with one input.

{kinds}

The last columns say how each executor computes it. Eager execution and the interpreter run its
body; a compiled program has code for it. The table is derived from the registries of kernels and
passes, and its words mean:

{marks}

| Operator | Kind | | Eager, interpreter | C | CUDA |
|---|---|---|---|---|---|
{rows}

```{{toctree}}
:hidden:
:maxdepth: 1

{pages}
```
"""
KINDS = {
    "elementwise": "one scalar formula; broadcasting, dtypes and shapes follow from it",
    "movement": "elements change place, never value",
    "reduction": "an axis is folded, starting from an identity",
    "opaque": "a body and a shape rule",
    "control": "its branches, tests and bodies are programs of their own",
}
FACES = {"paddle": paddle, "paddle.nn.functional": paddle.nn.functional, "Tensor": paddle.Tensor}


def write_operators(folder: Path, title: str) -> None:
    """A page for each file that defines operators, and one that lists them all."""
    folder.mkdir()
    ops = sorted(OPS.values(), key=lambda op: ("/ops/" not in file_of(op), source_of(op.body)[:2]))
    pages = []
    for file, group in groupby(ops, file_of):
        pages.append(file.removeprefix("minipaddle/").replace("/", "-").removesuffix(".py"))
        (folder / f"{pages[-1]}.md").write_text(page_of(file, list(group)), encoding="utf-8")
    rows = [
        f"| [`{row.op.name}`](#op-{row.op.name}) | {row.op.kind} | {prose(first_sentence(row.op))} "
        f"| {row.body} | {row.c} | {row.cuda} |"
        for row in support.rows()
    ]
    kinds = "\n".join(f"- **{kind}**: {what}" for kind, what in KINDS.items())
    marks = "\n".join(f"- **{mark}**: {what}" for mark, what in support.MARKS.items())
    parts = {"kinds": kinds, "marks": marks, "rows": "\n".join(rows), "pages": "\n".join(pages)}
    index = INDEX.format(title=title, **parts)
    (folder / "index.md").write_text(index, encoding="utf-8")


def file_of(op: Op) -> str:
    """The file that defines the operator."""
    return source_of(op.body)[0]


def page_of(file: str, ops: list[Op]) -> str:
    """The operators of one file, under what the file says of itself."""
    module = sys.modules[ops[0].body.__module__]
    says = docstring(inspect.getdoc(module) or "")
    title = file.removeprefix("minipaddle/").removeprefix("engine/").removeprefix("ops/")
    return "\n".join([f"# {prose(title)}\n", f"`{file}`\n", says, *map(section, ops)])


def section(op: Op) -> str:
    """One operator: what it is, what it does, its formula, its derivative."""
    called = [f"`{where}.{op.name}`" for where, space in FACES.items() if faces(space, op)]
    facts = " · ".join([f"`{signature(op)}`", op.kind, *called])
    rules = list(dict.fromkeys(map(source_of, rules_of(op))))
    return "\n".join(
        [
            f"(op-{op.name})=\n## {prose(op.name)}\n",
            f"{facts}\n",
            docstring(op.doc),
            shown(*source_of(op.body)),
            *(shown(*rule) for rule in rules),
            "" if rules else "It has no derivative rule.\n",
        ]
    )


def faces(space, op: Op) -> bool:
    """Is the operator public in this namespace under its own name?"""
    return getattr(getattr(space, op.name, None), "op", None) is op


def signature(op: Op) -> str:
    required = [k for k in op.attrs if k not in op.defaults]
    attrs = [*required, *(f"{k}={v!r}" for k, v in op.defaults.items())]
    return f"{op.name}({', '.join([*op.inputs, *(['*'] if attrs else []), *attrs])})"


def first_sentence(op: Op) -> str:
    return " ".join(op.doc.split("\n\n")[0].split())


def shown(file: str, line: int, text: str) -> str:
    """Code under its file and line; the docstring, which is shown above it, is left out."""
    (tree,) = ast.parse(text).body
    if isinstance(tree, ast.FunctionDef) and ast.get_docstring(tree) is not None:
        lines, doc = text.splitlines(keepends=True), tree.body[0]
        text = "".join(lines[: doc.lineno - 1] + lines[doc.end_lineno :])
    return literal(text, f"{file}, line {line}")
