"""Names that some path leaves undefined: what is bound for certain, statement by statement.

A read of a name is safe if every path that leads there has bound it. The real analysis walks
through a function with the set `known` of names that are bound for certain, and marks each read
that is not safe; the runtime then looks before it reads. Write its five methods about control flow,
`self` being the analysis. Each answers what is known *after*, a new set (do not change `known`), or
`None`: nothing gets there, because every path has returned, raised, or jumped.

- `block(self, statements, known)`: statements in a row. `self.after(statement, known)` answers for
  one of them. What stands after a jump is not looked at.
- `both(self, *paths)`: paths meet; each is a set or None. A path that nothing takes does not count.
- `if_(self, node, known)`. First `self.reads([node.test], known)`, which marks the reads in the
  test, and answers the set with the names the test binds for certain (by `:=`). Then its two sides.
- `while_(self, node, known)`: the test is evaluated at least once (`self.reads` as above); the body
  perhaps never, and after any of its iterations; a loop's `else` (`node.orelse`) after the last
  one.
- `for_(self, node, known)`: `node.iter` is evaluated once (`self.reads`); in the body the names of
  the target are bound, `find_modified_names([node.target])`. There may be no iteration.

Nothing that an iteration binds is bound for certain in the next one or after the loop: perhaps it
was not bound, or there was no iteration. What was known before the loop still is. (A `del` in a
loop would take it away; that is so rare that the real analysis forgets it.) After the loop two
paths meet: the one through its `else`, and the one around it, by a `break`; look for none, and let
both count.

    if t: y = 1; z = 2
    else: y = 3
    use(y, z)               ->  marked: z

Source: definite assignment, The Java Language Specification, chapter 16.
"""

from minipaddle.engine.jit.scope import find_modified_names


def block(self, statements, known):
    """What is bound for certain after statements in a row."""
    for statement in statements:
        if known is None:
            break  # not reached
        known = self.after(statement, known)
    return known


def both(self, *paths):
    """What is bound for certain where paths meet."""
    paths = [path for path in paths if path is not None]
    return set.intersection(*paths) if paths else None


def if_(self, node, known):
    """What is bound for certain after an `if`."""
    known = self.reads([node.test], known)
    return self.both(self.block(node.body, known), self.block(node.orelse, known))


def while_(self, node, known):
    """What is bound for certain after a `while`."""
    known = self.reads([node.test], known)
    self.block(node.body, known)  # for its marks: perhaps there is no iteration
    return self.both(known, self.block(node.orelse, known))


def for_(self, node, known):
    """What is bound for certain after a `for`."""
    known = self.reads([node.iter], known)
    self.block(node.body, known | find_modified_names([node.target]))
    return self.both(known, self.block(node.orelse, known))
