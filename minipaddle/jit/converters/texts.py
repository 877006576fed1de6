"""f-strings, `"…".format(…)` and `"…" % …`: they may hold values that only a run knows."""

import ast

from ...engine.core.slots import slot
from ...engine.jit.templates import constant, runtime, stand
from ...engine.jit.walking import TreeRewriter, looks_for


@slot("jit.texts")
@looks_for(ast.JoinedStr)
@looks_for(ast.Attribute, attr="format")
@looks_for(ast.BinOp, op=ast.Mod)
def texts(tree: ast.AST, context) -> ast.AST:
    """`f"a {x!r:.2f}"` -> `_jst.text("a ", (x, 114, ".2f"))`; likewise `.format` and `%`."""
    return TextConverter().visit(tree)


class TextConverter(TreeRewriter):
    def visit_JoinedStr(self, node):
        self.generic_visit(node)
        if not any(isinstance(x, ast.FormattedValue) for x in node.values):
            return node
        return runtime("text", node, *(self.part(x, node) for x in node.values))

    @staticmethod
    def part(x, at):
        """A string, or (value, conversion, format)."""
        if isinstance(x, ast.Constant):
            return constant(x.value, at)
        spec = x.format_spec or constant("", at)
        return stand(ast.Tuple([x.value, constant(x.conversion, at), spec], ast.Load()), at)

    def visit_Call(self, node):
        self.generic_visit(node)
        template = node.func.value if isinstance(node.func, ast.Attribute) else None
        if not is_text(template) or node.func.attr != "format":
            return node
        call = runtime("format_text", node, template, *node.args)
        call.keywords = node.keywords
        return call

    def visit_BinOp(self, node):
        self.generic_visit(node)
        if not (isinstance(node.op, ast.Mod) and is_text(node.left)):
            return node
        return runtime("percent", node, node.left, node.right)


def is_text(node) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is str
