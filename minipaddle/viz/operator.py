"""An operator as the engine has it: its formula and its derivative rules, drawn and in words."""

import ast
import inspect
import linecache
import textwrap
from collections.abc import Iterator
from functools import partial

from ..engine.core import dtype as dt
from ..engine.core import slots
from ..engine.core.op import OPS, Op
from ..engine.core.record import Record, Spec
from ..engine.jit import source as jit_source
from . import symbolic
from .parts import Edge, Frame, Legend, Node, draw, mark_label
from .records import role_of_operator
from .symbolic import Attr, text
from .target import pick

EXAMPLES = {
    "axis": 1, "keepdim": False, "perm": (1, 0), "shape": (3, 2), "dtype": dt.float64.numpy,
    "widths": ((0, 0), (1, 1)), "value": 0, "index": (0,), "sizes": (1, 2), "offset": 0,
    "axis1": 0, "axis2": 1, "shift": (1,), "shifts": (1,), "repeats": 2, "strides": (2, 1),
}  # fmt: skip
"""Attributes to run a rule with when it can't be run on names alone."""

SHAPES = [((2, 3), (2, 3), (2, 3)), ((2, 3), (3, 4), (2, 4)), ((1, 2, 5, 5), (3, 2, 3, 3), (3,))]
"""Shapes of the inputs to try in turn."""

LARGEST = 25
"""A rule that has more parts than this on symbols is shown as its source."""

WIDTH = 60
"""Characters in a line of a heading."""


def operator(name, *shapes, title: str = "", **attrs):
    """The formula of operator `name` and its derivative rules, side by side.

    The rules are run on symbols; where one asks for numbers, `shapes` of the inputs and `attrs` (or
    examples of them) stand in, and where that fails too the rule is shown as it is written. Rules
    the reader has plugged in are marked [yours]. Raises KeyError that points to the nearest name.

    >>> from minipaddle import viz
    >>> print(viz.operator("tanh").text)
    tanh(x), elementwise: Hyperbolic tangent.
      formula: tanh(x)
      d/dx: g * (1 - out * out)
    """
    op = getattr(name, "op", name)
    op = op if isinstance(op, Op) else pick(OPS, op, "operator")
    return draw(Derivation(op, shapes, attrs).parts(title), title, tooltip=title or op.name)


class Derivation:
    """The formula and the rules of an operator, run on symbols."""

    def __init__(self, op, shapes, attrs):
        self.op = op
        self.yours = slots.yours()
        unknown = attrs.keys() - op.attrs.keys()
        if unknown:
            what = f"{op.name} has no attribute {unknown.pop()!r}"
            raise TypeError(f"{what}; it has {list(op.attrs)}")
        examples = {k: EXAMPLES[k] for k in op.attrs if k in EXAMPLES} | op.defaults | attrs
        self.names = {k: attrs.get(k, Attr(k)) for k in op.attrs}
        self.settings = list(settings(op, shapes, examples))

    def functions(self):
        """(heading, slot, function, how to run it) of the formula, then of each rule."""
        op = self.op
        yield "formula", f"ops.{op.name}.body", op.body, partial(symbolic.formula, op)
        for k, name in enumerate(symbolic.names(op, 2 if op.variadic else len(op.inputs))):
            rule = op.rule(k)
            slot = f"ops.{op.name}.vjp" + (f".{op.inputs[k]}" if len(op.inputs) > 1 else "")
            yield f"d/d{name}", slot, rule and rule.fn, partial(symbolic.derivative, op, k)

    def run(self, function, how):
        """(the result of a function, the example attributes it was run with).

        Its source is the answer where it can't be run on symbols.
        """
        for specs, attrs in self.settings if function else ():
            for names in (self.names, attrs):
                try:
                    result = how(specs, attrs, names)
                except Exception:  # whatever a rule of the reader's own may raise
                    continue
                return result, {} if names is self.names else attrs
        return function and source_of(function), {}

    def parts(self, title: str) -> Iterator:
        """The formula and each rule in a frame, and all in words."""
        lines = [self.summarize(), *self.shape()]
        for heading, slot, function, how in self.functions():
            result, examples = self.run(function, how)
            mine = slot in self.yours
            settings_text = (f", {n}={symbolic.constant_text(v)}" for n, v in examples.items())
            head = f"{heading}{''.join(settings_text)}{' [yours]' * mine}"
            what = describe(result) if symbolic.size(result) <= LARGEST else source_of(function)
            lines.append(f"  {head}:" + put_after_colon(what))
            tip = locate(function) if function is not None else what
            label = head if "\n" in what else textwrap.fill(f"{head}:  {what}", WIDTH)
            yield from expression(result, Frame(label, tip), "yours" * mine)
        yield Legend(self.summarize(), text="\n".join(lines))

    def shape(self) -> list[str]:
        """A line on the shape rule, for the kind whose shapes do not follow from the kind."""
        rule = vars(self.op).get("infer")
        if self.op.kind not in ("opaque", "contraction") or rule is None:
            return []
        doc = inspect.getdoc(rule)
        text = doc.splitlines()[0] if doc else source_of(rule)
        return ["  shape: " + text.replace("\n", "\n    ")]

    def summarize(self) -> str:
        op = self.op
        inputs = [f"*{op.inputs[0]}"] if op.variadic else list(op.inputs)
        signature = ", ".join([*inputs, *(f"{k}=" for k in op.attrs)])
        summary = op.doc.split("\n")[0]
        return f"{op.name}({signature}), {op.kind}: {summary}"


def settings(op, shapes, attrs):
    """Pairs (specs, attrs) that the operator's shape rule accepts."""
    number = 2 if op.variadic else len(op.inputs)
    for several in [shapes] if shapes else SHAPES:
        specs = [Spec(tuple(s), dt.float32.numpy) for s in several[:number]]
        for axis in (attrs.get("axis"), (1,)):
            tried = attrs | ({"axis": axis} if "axis" in attrs else {})
            try:
                op.result_spec(list(specs), tried)
            except Exception:  # not a shape for this operator
                continue
            yield specs, tried
            break


def expression(found, frame: Frame, mark: str) -> Iterator:
    """The result of a function, drawn in a frame; `mark` marks the nodes that are results."""
    if found is None or isinstance(found, str):
        yield value(frame, describe(found), "code" if found else "constant", frame, mark)
        return
    seen = set()
    for k, record in enumerate(found if isinstance(found, tuple) else (found,)):
        yield from tree(record, (frame, k), frame, seen, mark)


def tree(record, place: tuple, frame: Frame, seen: set, mark: str = "", above=None) -> Iterator:
    """The node of a record, and all it is made of; a constant is one node at each place."""
    known = isinstance(record, Record)
    key = (frame, id(record)) if known else place
    if key not in seen and not known:
        yield value(key, text(record), "constant", frame)
    elif key not in seen:
        seen.add(key)
        attrs = [f"{k}={symbolic.constant_text(v)}" for k, v in record.attrs.items()]
        label = "\n".join([record.op.name, *attrs])
        yield value(key, label, role_of_operator(record.op), frame, mark)
        parts = record.inputs[:1] if record.op.name == "index" else record.inputs
        for k, part in enumerate(parts):
            yield from tree(part, (key, k), frame, seen, above=(key, f"input {k}"))
    if above is not None:
        yield Edge(key, *above)


def value(key, label: str, role: str, frame: Frame, mark: str = "") -> Node:
    name = mark_label(label) if mark else label
    return Node(key, label, role, f"{name}\n{frame.tip}", (frame,), mark=mark)


def describe(found) -> str:
    if found is None:
        return "no gradient"
    return found if isinstance(found, str) else text(found)


def put_after_colon(what: str) -> str:
    """After a colon: on the same line, or below it when there are several."""
    return "\n" + textwrap.indent(what, "    ") if "\n" in what else f" {what}"


# ---- where it is written ---------------------------------------------------------------------


def locate(function) -> str:
    """`file.py:12` of a function; its kind for one that is not written in Python."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else type(function).__name__


def source_of(function) -> str:
    """The source of a lambda's result, or of a function without decorators and docstring."""
    try:
        node, file, *_ = jit_source.source_of(inspect.unwrap(function))
    except (AttributeError, jit_source.SourceMissing):
        return f"{getattr(function, '__name__', function)} (no source)"
    return lines_of(node, "".join(linecache.getlines(file)))


def lines_of(n, text: str) -> str:
    """The lines of a definition."""
    if isinstance(n, ast.Lambda):
        return textwrap.dedent(ast.get_source_segment(text, n.body))
    lines = text.splitlines()
    if ast.get_docstring(n) is not None:
        end = n.body[0].end_lineno
        lines[n.body[0].lineno - 1 : end] = [None] * (end - n.body[0].lineno + 1)
    body = [line for line in lines[n.lineno - 1 : n.end_lineno] if line is not None]
    return textwrap.dedent("\n".join(body)).strip()
