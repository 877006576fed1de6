"""An early `return`: one way out of a function.

The two sides of an `if` become functions, so a `return` in one of them would return to the wrong
place. It becomes two assignments instead: the value is kept, and a flag says that there is one.
What follows is run only if no flag is up. Write four functions for the real pass, `lowering`:

- `on_return(lowering, node)`: what stands instead of the return `node`. Answer three things: the
  statements `_jst_value = …` and `_jst_returned = True`, in this order; JUMP; and the set of flags
  that may be up now. (VALUE and RETURNED are the two names.) A bare `return` returns None.
- `block(lowering, statements)`: a list of statements, lowered. `lowering.statement(s)` answers for
  one statement: the list of what stands for it, the way control leaves it, and the set of flags
  that may be up then. The way is ON (always to the next statement), JUMP (never) or EITHER. `block`
  answers the same three for all of them:
    - what stands after a JUMP is not reached: leave it out, and the way is JUMP;
    - after an EITHER with flags, lower the rest of the statements, as a block of its own. It goes
      into the other side of the `if`, if possible, and otherwise into an `if` of its own:
      `unless(flags, rest, at)` is a list with `if _jst.none((flag, …)): rest`; `at` is the first
      statement of the rest. An empty rest needs neither. The way is JUMP if the rest's is, else
      EITHER;
    - the flags are those of all that may be reached.
- `into_other_side(node, rest)`: the better way. After an `if`, `node.sides` is the pair of ways in
  which its two sides are left (other statements have no `sides`). If one of them is JUMP and the
  other ON, `rest` runs exactly when the other is taken: append it there (`node.body` and
  `node.orelse` are lists) and return True. Otherwise return False.
- `one_return(lowering)`: the list of statements of the whole function `lowering.function`, which is
  known to return early. `_jst_returned = False` comes first, then the body, lowered, and at last
  `return _jst_value`. Falling off the end of a Python function returns None: lower the body with a
  bare `return` at its end. A docstring (`ast.get_docstring(function)`) stays the first statement.

    def f(x):                       def f(x):
        if x > 0:                       if x > 0:
            return x                        _jst_value = x
        y = x * 2                       else:
        return y                            y = x * 2
                                            _jst_value = y
                                        return _jst_value

(Nobody asks for `_jst_returned` here; the pass removes such flags afterwards.)

Tools: `store(name, value, at)` is the statement `name = value`, `constant(True, at)` and
`load(name, at)` are expressions, `stand(node, at)` gives a node that you made the position of `at`.
Source: Böhm and Jacopini, Communications of the ACM 9(5), 1966; for conditions instead of jumps,
Allen and others, "Conversion of control dependence to data dependence", POPL 1983.
"""

import ast

from minipaddle.engine.jit.converters.jumps import EITHER, JUMP, ON, RETURNED, VALUE, unless
from minipaddle.engine.jit.templates import constant, load, stand, store


def on_return(lowering, node):
    """What stands for an early `return`: (statements, JUMP, flags)."""
    raise NotImplementedError


def block(lowering, statements):
    """A list of statements, lowered: (statements, way, flags)."""
    raise NotImplementedError


def into_other_side(node, rest):
    """Put `rest` on the side that does not jump, if that is certain; return whether it was."""
    raise NotImplementedError


def one_return(lowering):
    """The statements of a function that returns early."""
    raise NotImplementedError
