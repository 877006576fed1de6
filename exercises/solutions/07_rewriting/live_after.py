"""Which names are still needed? The analysis that walks a function backwards.

A name is **live** at some place if its value there may be read later, before it is bound anew. What
an `if` must hand on are the names that it binds and that are live after it. Write the four steps of
the walk, which starts at the end of a function. The engine calls them; `analysis` is the engine's
`Liveness`, and sets are sets of names. In each, `live` are the names live *after* the node.

- `plain(analysis, node, live)`: the set live before a simple statement. First it reads, then it
  binds: what it binds need not be there before, what it reads must. `x = x + y` with live {x}
  gives {x, y}.
- `leaving(analysis, node)`: the set live before a `return` or a `raise`. Nothing after is reached.
- `fork(analysis, node, live)`: the set live before an `if` with `node.test`, `node.body`,
  `node.orelse`: the test is read first, and then either side may run. Without an `else`,
  `node.orelse` is an empty list.
- `block(analysis, statements, live)`: the set live before a list of statements.
  `analysis.before(statement, live)` answers for one of any kind, and so calls `plain`, `leaving`
  and `fork`; `analysis.block(statements, live)` calls yours.

`ScopeNames(nodes)` from minipaddle.engine.jit.scope knows what nodes read and bind: two sets,
`.read` and `.written`. Never change the set `live` itself: somebody else holds it too.

    if a: y = b                 live before the if, when {y} is live after it:
                                {a, b, y}   (y, because without a nothing is bound)

Source: live variables, in Aho, Lam, Sethi and Ullman, "Compilers", 2nd ed., section 9.2.5.
"""

from minipaddle.engine.jit.scope import ScopeNames


def plain(analysis, node, live):
    """The names live before a simple statement, when `live` are live after it."""
    names = ScopeNames([node])
    return (live - names.written) | names.read  # x = x + 1 reads x: reads are added last


def leaving(analysis, node):
    """The names live before a `return` or a `raise`."""
    return ScopeNames([node]).read


def fork(analysis, node, live):
    """The names live before an `if`, when `live` are live after it."""
    sides = [analysis.block(side, live) for side in (node.body, node.orelse)]
    return sides[0] | sides[1] | ScopeNames([node.test]).read


def block(analysis, statements, live):
    """The names live before a list of statements, when `live` are live after the last."""
    for statement in reversed(statements):
        live = analysis.before(statement, live)
    return live
