"""Stubs: the reader's file is the solution with its signatures and docstrings, but no bodies."""

import ast
import re

FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
TASK = re.compile(r'""".*?"""\n+', re.DOTALL)


def stub_of(solution: str) -> str:
    """The solution's text without the code that the reader writes.

    Every body becomes `raise NotImplementedError`; what begins with `_` vanishes.

    >>> from minipaddle.learn import stub_of
    >>> print(stub_of('def double(x):\\n    "Twice x."\\n    return 2 * x\\n'))
    def double(x):
        "Twice x."
        raise NotImplementedError
    <BLANKLINE>
    """
    lines = solution.splitlines()
    for first, last, replacement in reversed(list(cuts(ast.parse(solution).body))):
        lines[first - 1 : last] = replacement
    return re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines)).rstrip() + "\n"


def cuts(body):
    """(first line, last line, lines to put instead), from the top."""
    for node in body:
        if private(node):
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
            yield first, node.end_lineno, []
        elif isinstance(node, FUNCTIONS):
            doc = ast.get_docstring(node) is not None
            first = node.body[0].end_lineno + 1 if doc else node.body[0].lineno
            indent = " " * (node.col_offset + 4)
            yield first, node.end_lineno, [f"{indent}raise NotImplementedError"]
        elif isinstance(node, ast.ClassDef):
            yield from cuts(node.body)


def private(node) -> bool:
    """Whether this is a helper of the solution that the reader should not see."""
    if isinstance(node, ast.Assign):
        return all(isinstance(t, ast.Name) and t.id.startswith("_") for t in node.targets)
    name = getattr(node, "name", "")
    return name.startswith("_") and not name.endswith("__")


def task_of(text: str) -> str:
    """The docstring that a file begins with, and the blank lines below it; "" if it has none."""
    match = TASK.match(text)
    return match[0] if match else ""


def list_unwritten(source: str, solution: str) -> list[str]:
    """The functions of the stub that the reader has not begun, in order.

    A file without any code has begun none of them.
    """
    stubs = bodies(ast.parse(stub_of(solution)))
    own = bodies(ast.parse(source))
    return [name for name, body in stubs.items() if own.get(name, body) == body]


def bodies(tree) -> dict[str, str]:
    """Each function's name and its body, docstring apart."""
    bodies_of = {}
    for node in ast.walk(tree):
        if isinstance(node, FUNCTIONS):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            bodies_of[node.name] = ast.dump(ast.Module(body, []))
    return bodies_of
