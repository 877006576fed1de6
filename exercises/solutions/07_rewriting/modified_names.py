"""The names a block binds: what must be shared once the block has become a function.

Write `find_modified_names(nodes)`. `nodes` are syntax trees (`ast.AST`): the statements of a block,
say. Return the set of names that these nodes bind or delete *in the function where they stand*.
Python binds names in more ways than `=`:

- every `ast.Name` whose `ctx` is not `ast.Load`: the targets of `=`, `+=`, `for`, `with … as`,
  `:=` and `del`, nested tuples and stars included. (`x.y = 1` and `x[0] = 1` bind nothing: the
  `Name` in them is only read.)
- `import a.b` binds `a`, `import a.b as c` binds `c`, `from m import n as k` binds `k`: see
  `node.names`, a list of `alias`es with `name` and `asname`;
- `except E as name` (`ast.ExceptHandler`), and in a `match` statement `case [*name]` (`MatchStar`),
  `case P as name` (`MatchAs`) and `case {**rest}` (`MatchMapping`): the names are plain strings in
  the node, `name` and `rest`, or None;
- `def f` and `class C` bind `f` and `C`. What stands *inside* their bodies, and in a `lambda`,
  belongs to them and not to the block. (There is no `:=` in their heads, in a default value say.)
- a comprehension keeps its own variables to itself; yet a `:=` in it binds in the function.

The statements inside `if`, `for`, `while`, `with`, `try` and `match` belong to the block, however
deep they stand.

    if t: a, (b, *c) = d
    else: e.f = 1                  find_modified_names([that statement])  ->  {"a", "b", "c"}

Source: The Python Language Reference, section 4.2.1, "Binding of names".
"""

import ast

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def find_modified_names(nodes):
    """The set of names that the nodes bind or delete in the function where they stand."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name.split(".")[0])
        elif isinstance(node, ast.MatchMapping):
            found |= {node.rest} - {None}
        elif isinstance(node, (ast.ExceptHandler, ast.MatchStar, ast.MatchAs)):
            found |= {node.name} - {None}
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            found |= {node.name} if hasattr(node, "name") else set()  # a lambda has no name
        elif isinstance(node, _COMPREHENSIONS):
            found |= find_modified_names(ast.iter_child_nodes(node)) - _own(node)
        else:
            found |= find_modified_names(ast.iter_child_nodes(node))
    return found


def _own(comprehension):
    """The variables of a comprehension."""
    return find_modified_names(generator.target for generator in comprehension.generators)
