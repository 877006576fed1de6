"""Small mutations of a program: each one changes one operator, number, condition or statement.

Source: DeMillo, Lipton and Sayward, "Hints on test data selection", Computer 11(4), 1978.
"""

from __future__ import annotations

import ast
import random
from typing import NamedTuple

from minipaddle.learn.wrong import ARROW, first_line


class Mutant(NamedTuple):
    """A changed program, and the change: `return a + b → return a - b`."""

    text: str
    change: str


ARITHMETIC = {
    ast.Add: [ast.Sub],
    ast.Sub: [ast.Add],
    ast.Mult: [ast.Div],
    ast.Div: [ast.Mult],
    ast.FloorDiv: [ast.Mult],
    ast.Mod: [ast.FloorDiv],
    ast.Pow: [ast.Mult],
    ast.MatMult: [ast.Mult],
    ast.BitOr: [ast.BitAnd],
    ast.BitAnd: [ast.BitOr],
    ast.And: [ast.Or],
    ast.Or: [ast.And],
    ast.USub: [ast.UAdd],
}
COMPARISON = {
    ast.Lt: [ast.LtE, ast.Gt],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.Lt],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
}
NEARBY = {
    "all": "any",
    "any": "all",
    "argmax": "argmin",
    "ceil": "floor",
    "floor": "ceil",
    "max": "min",
    "maximum": "minimum",
    "mean": "sum",
    "median": "max",
    "min": "max",
    "minimum": "maximum",
    "sorted": "list",
    "sum": "max",
    "zeros": "ones",
}
"""Functions, and another that one might take for them."""
SYMMETRIC = {"max", "min", "maximum", "minimum", "add", "multiply", "swapaxes", "equal", "gcd"}
SYMMETRIC |= {"broadcast_shapes"}
"""Functions that do not mind an exchange of their arguments."""
IDLE = (
    ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom | ast.Pass
)
"""Statements that are not mutated themselves, though those inside them are."""


def mutants(source: str) -> list[Mutant]:
    """Every mutation of the program's statements; signatures and docstrings stay as they are."""
    tree = ast.parse(source)
    found = {}
    for statement in statements(tree):
        was = first_line(statement)
        for owner, field, value in changes(statement):
            before = getattr(owner, field)
            setattr(owner, field, value)
            now = "pass" if owner is not statement and dropped(before, value) else None
            text = ast.unparse(ast.fix_missing_locations(tree))
            found.setdefault(text, f"{was}{ARROW}{now or first_line(statement)}")
            setattr(owner, field, before)
    found.pop(ast.unparse(tree), None)
    return [Mutant(text, change) for text, change in found.items()]


def sample(source: str, count: int, seed: str) -> list[Mutant]:
    """At most `count` mutants, the same ones for the same seed."""
    everything = mutants(source)
    return random.Random(seed).sample(everything, min(count, len(everything)))


def statements(tree):
    """Every statement that does something, with `parent`, `block` and `place`: where it stands."""
    for parent in ast.walk(tree):
        for block in ("body", "orelse", "finalbody"):
            inside = getattr(parent, block, None)
            for k, node in enumerate(inside if isinstance(inside, list) else ()):
                node.parent, node.block, node.place = parent, block, k
                if not isinstance(node, IDLE) and not is_doc(node):
                    yield node


def is_doc(node) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def changes(statement):
    """(owner, field, new value) for each mutation of one statement, those inside it apart."""
    if not isinstance(statement.parent, ast.Module | ast.ClassDef):
        yield dropping(statement)
    if isinstance(statement, ast.Raise):  # its words are for people
        return
    for node in expressions(statement):
        yield from in_expression(node)


def dropping(statement):
    body = list(getattr(statement.parent, statement.block))
    body[statement.place] = ast.Pass()
    return statement.parent, statement.block, body


def dropped(before, value) -> bool:
    return isinstance(value, list) and any(isinstance(node, ast.Pass) for node in value)


def expressions(statement):
    """The statement and the expressions in it, but not the statements inside."""
    yield statement
    for child in ast.iter_child_nodes(statement):
        if not isinstance(child, ast.stmt | ast.JoinedStr | ast.excepthandler):
            yield from expressions(child)


def in_expression(node):
    """The mutations of one node."""
    for other in ARITHMETIC.get(type(getattr(node, "op", None)), ()):
        yield node, "op", other()
    if isinstance(node, ast.Compare):
        for k, op in enumerate(node.ops):
            for other in COMPARISON[type(op)]:
                yield node, "ops", [*node.ops[:k], other(), *node.ops[k + 1 :]]
    elif isinstance(node, ast.Constant):
        yield from ((node, "value", value) for value in near(node.value))
    elif isinstance(node, ast.Call):
        if called(node) in NEARBY and not (called(node) == "sorted" and node.keywords):
            field = "attr" if isinstance(node.func, ast.Attribute) else "id"
            yield node.func, field, NEARBY[called(node)]
        if called(node) in SYMMETRIC:
            return
        for k in range(len(node.args) - 1):
            swapped = [*node.args[:k], node.args[k + 1], node.args[k], *node.args[k + 2 :]]
            yield node, "args", swapped
    elif isinstance(node, ast.If | ast.While | ast.IfExp):
        yield node, "test", ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.comprehension):
        for k, test in enumerate(node.ifs):
            negated = ast.UnaryOp(ast.Not(), test)
            yield node, "ifs", [*node.ifs[:k], negated, *node.ifs[k + 1 :]]


def called(node) -> str:
    """The last name of what is called: `swapaxes` of `paddle.swapaxes(x, 0, 1)`."""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def near(value):
    """The numbers beside a number."""
    if isinstance(value, bool):
        return [not value]
    return [value + 1, value - 1] if isinstance(value, int | float) else []
