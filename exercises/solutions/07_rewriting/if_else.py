"""`if` becomes two functions and a call: the converter.

Write `IfElse.visit_If(node)`, which turns an `if` statement into a list of statements, and
`if_else(tree, context)`, which converts all of a tree: it returns `IfElse().visit(tree)`.

    if x > 0:             def _jst_then():                    # the names are part of the contract
        y = x                 nonlocal y
    else:                     y = x
        y = -x            def _jst_else():
                              nonlocal y
                              y = -x
                          _jst.if_else(x > 0, _jst_then, _jst_else, live_out=("y",))

- First convert what is inside: `generic_visit` visits the children.
- If not `movable(node.body + node.orelse)` (there is a `yield`, say, which cannot go into another
  function), return the node: it stays Python's.
- Without an `else` there is no second function, and the third argument is None.
- `FunctionBlocks` has analysed the function: `node.live` are the names needed after this `if`, and
  `node.binds` a pair of sets, the names bound in the body and those bound in the orelse.
  Its method `share(function, names)` lets a block's function bind these names of the enclosing
  function (it writes the `nonlocal`). Share with each what *it* binds.
- `live_out` are the names bound on either side that are live; `local` those bound and not live.
  `options(node, live_out=…, local=…)` makes the list of keyword arguments from two sets; the call
  has them in `.value.keywords`.
- An `if` from which a `break` or an early `return` was removed has `node.jumps`, which is True or
  False; others may lack it. It goes on to the runtime: `options(…, jumps=…)`.

`fill(template, node, body=…, test=…)` parses a template, fills its holes, and gives the statements,
all at the line of `node`. A hole is a name: one that stands alone on a line takes a list of
statements, one in an expression takes an expression.

Source: Moldovan et al., "AutoGraph: Imperative-style Coding with Graph-based Performance", 2019.
"""

from minipaddle.engine.jit.converters.blocks import FunctionBlocks, options
from minipaddle.engine.jit.scope import movable
from minipaddle.engine.jit.templates import fill

_THEN = """
def _jst_then():
    body
"""
_ELSE = """
def _jst_else():
    orelse
"""


class IfElse(FunctionBlocks):
    """Turns each `if` into functions and a call."""

    def visit_If(self, node):
        """The statements that stand for an `if`, or the node itself."""
        self.generic_visit(node)
        if not movable([*node.body, *node.orelse]):
            return node
        new = fill(_THEN, node, body=node.body)
        if node.orelse:
            new += fill(_ELSE, node, orelse=node.orelse)
        for function, names in zip(new, node.binds):  # without else, only the first
            self.share(function, names)
        other = "_jst_else" if node.orelse else "None"
        new += fill(f"_jst.if_else(test, _jst_then, {other})", node, test=node.test)
        bound = node.binds[0] | node.binds[1]
        live_out, jumps = bound & node.live, getattr(node, "jumps", False)
        new[-1].value.keywords = options(
            node, live_out=live_out, local=bound - live_out, jumps=jumps
        )
        return new


def if_else(tree, context):
    """The tree with all its `if` statements converted."""
    return IfElse().visit(tree)
