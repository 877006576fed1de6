"""Which public names do the programs use? Read from their source, so nothing need run."""

from __future__ import annotations

import ast
import importlib
import inspect

from tests.programs.common import SUBJECTS

NOT_EAGER = ("paddle.amp", "paddle.jit", "paddle.static", "paddle.enable_static")
"""Parts of the Core list that are not about eager mode."""


def used() -> set[str]:
    """Names such as `paddle.nn.Linear`, and `Tensor.reshape` for what is asked of other objects."""
    found = set()
    for subject in SUBJECTS:
        source = inspect.getsource(importlib.import_module(f"tests.programs.{subject}"))
        for function in ast.parse(source).body:
            if isinstance(function, ast.FunctionDef):
                found |= names_in(function)
    return found


def names_in(function: ast.FunctionDef) -> set[str]:
    """What one program uses; `nn = paddle.nn` and the like are followed."""
    meaning = {"paddle": "paddle"}
    found = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for name, value in pairs(node):
                path = dotted(value, meaning)
                if path is not None:
                    meaning[name] = path
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute):
            found.add(dotted(node, meaning) or f"Tensor.{node.attr}")
    return found


def pairs(node: ast.Assign):
    """(name, value) of `a = x` and of `a, b = x, y`."""
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for t, v in zip(target.elts, value.elts):
            if isinstance(t, ast.Name):
                yield t.id, v


def dotted(node, meaning: dict) -> str | None:
    """`paddle.nn.Linear` for an expression that means it, None for any other."""
    if isinstance(node, ast.Name):
        return meaning.get(node.id)
    if isinstance(node, ast.Attribute):
        base = dotted(node.value, meaning)
        return f"{base}.{node.attr}" if base else None
    return None


def eager(core) -> set[str]:
    """The names of the Core list whose subject is eager mode."""
    return {name for name in core if not name.startswith(NOT_EAGER)}
