"""Wrong solutions, made from the right one by naming what changes.

A change reads `p - lr * g → p + lr * g`: an expression or a statement of the solution, and what
stands there instead. It is found in the syntax tree, so layout does not matter, and must be there
once; `f(): a → b` looks within the function f alone. The head of a loop or a condition (`if a:`)
stands for that statement and keeps its body; `pass` takes a statement away. Any other text
is a complete function, which replaces the solution's function of that name.
"""

import ast
import inspect
import re
import textwrap

ARROW = " → "


def apply_changes(source: str, *changes: str) -> str:
    """The program with the changes made, one after the other; ValueError if one does not fit.

    >>> from minipaddle.learn.wrong import apply_changes
    >>> print(apply_changes("def f(x):\\n    return x * x", "x * x → x + x"))
    def f(x):
        return x + x
    """
    tree = ast.parse(source)
    for change in changes:
        if change.startswith("def ") and ARROW not in change.splitlines()[0]:
            tree = put_in_place(tree, ast.parse(change).body[0])
            continue
        old, arrow, new = change.partition(ARROW)
        if not arrow:
            raise ValueError(f"{change!r} has no {ARROW!r} between the old code and the new")
        within = re.match(r"(\w+)\(\): ", old)
        old = old[within.end() :] if within else old
        make = Change(old.strip(), new.strip(), within[1] if within else "")
        tree = ast.fix_missing_locations(make.visit(tree))
        if make.found != 1:
            often = f"{old!r} occurs {make.found} times in the solution, not once"
            raise ValueError(f"{often}:\n\n{source}")
    return ast.unparse(tree)


def put_in_place(tree: ast.Module, function: ast.FunctionDef) -> ast.Module:
    """The program with another function of the same name."""
    own = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == function.name]
    if len(own) != 1:
        raise ValueError(f"the solution has {len(own)} functions {function.name}, not one")
    own[0].args, own[0].body = function.args, function.body
    return tree


def text_of(function) -> str:
    """A function of a file as text, without its decorators."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    node.decorator_list = []
    return ast.unparse(node)


class Change(ast.NodeTransformer):
    """Replaces `old` by `new`, and counts the replacements in `found`."""

    def __init__(self, old: str, new: str, within: str = ""):
        self.new, self.within, self.found = new, within, 0
        self.expression = is_expression(old) and is_expression(new)
        mode = "eval" if self.expression else "exec"  # which would take a string for a docstring
        self.old = old if is_head(old) else ast.unparse(ast.parse(old, mode=mode))

    def visit(self, node):
        statement = isinstance(node, ast.stmt)
        if isinstance(node, ast.FunctionDef) and self.within not in ("", node.name):
            return node
        if statement and not self.expression and first_line(node) == self.old:
            self.found += 1
            return self.instead(node)
        if self.expression and isinstance(node, ast.expr) and ast.unparse(node) == self.old:
            self.found += 1
            return ast.parse(self.new, mode="eval").body
        node = self.generic_visit(node)
        if statement and getattr(node, "body", node) == []:
            node.body = [ast.Pass()]
        return node

    def instead(self, node):
        """The statements that a statement gives way to."""
        if self.new == "pass":
            return []
        if not is_head(self.new):
            return ast.parse(self.new).body
        before, _, head = self.new.rpartition("; ")
        changed = ast.parse(f"{head} pass").body[0]
        changed.body, changed.orelse = node.body, getattr(node, "orelse", [])
        return [*ast.parse(before).body, self.generic_visit(changed)]


def is_expression(text: str) -> bool:
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True


def is_head(text: str) -> bool:
    return text.endswith(":")


def first_line(statement: ast.stmt) -> str:
    """A statement as one line; of a compound one its head."""
    return ast.unparse(statement).splitlines()[0]
