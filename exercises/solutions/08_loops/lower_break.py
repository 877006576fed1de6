"""`break` and `continue` become flags.

A program has no place to jump to. So `break` becomes a variable, a flag: it is False before the
loop, `break` makes it True, and a flag that is up ends the loop. `continue` is a flag too, which is
False again at the start of every iteration. Write five functions for the real pass, `lowering`:

- `on_break(lowering, node)`, `on_continue(lowering, node)`: what stands instead of the jump `node`.
  `lowering.loops` is a list of the loops around, the innermost last; a loop has the names of its
  two flags, `loop.breaking` and `loop.continuing`. Return three things: the list of new statements,
  JUMP (the rest of this block is not reached), and the set of the flags that may be up now.
- `lower_loop(lowering, node)` changes `node.body`, the body of the loop `node`. Put a
  `JumpTarget(breaking, continuing)` on the list, call `lowering.block(node.body)`, and take it off
  again. `block` answers (new statements, way, flags): with the flags of this loop, a return in the
  body may have its own. Every loop of a function needs names of its own: `lowering.count` is 0 at
  first, and yours to count with; make them "_jst_break_1" and "_jst_continue_1", and so on. The new
  body first puts each of the flags down, in the order of their names. Return two things: the
  statements that must stand before the loop (the break's flag is put down, if it can end the loop),
  and the set of flags that end the loop, one of which may be a return's.
- `goes_on(flags, test)`: the new test of a `while` that the flags `flags` end too. `test` itself if
  there are none. The flags are asked first, since Python asks no test after a break.
- `otherwise(flags, rest, at)`: the list of statements for the loop's `else`, whose body is `rest`.
  It runs if nothing stopped the loop. New code takes its position in the file from the node `at`.

    while x < 9:                    _jst_break_1 = False
        x = x + 1                   while _jst.none((_jst_break_1,)) and x < 9:
        if x == 5:                      _jst_break_1 = False
            break                       x = x + 1
                                        if x == 5:
                                            _jst_break_1 = True

Tools: `store(name, constant(False, at), at)` is the statement `name = False`; `quiet(flags, at)` is
the expression `_jst.none((flag, ...))`, which asks whether all of them are down; `unless(flags,
rest, at)` is a list with the statement `if _jst.none((flag, ...)): rest`, or `rest` itself for no
flag.

Source: Böhm and Jacopini, "Flow diagrams, Turing machines and languages with only two formation
rules", Communications of the ACM 9(5), 1966.
"""

import ast

from minipaddle.engine.jit.converters.jumps import JUMP, JumpTarget, quiet, unless
from minipaddle.engine.jit.templates import constant, stand, store


def on_break(lowering, node):
    """What stands for a `break`: (statements, JUMP, flags)."""
    return _raised(lowering.loops[-1].breaking, node)


def on_continue(lowering, node):
    """What stands for a `continue`: (statements, JUMP, flags)."""
    return _raised(lowering.loops[-1].continuing, node)


def _raised(flag, node):
    return [store(flag, constant(True, node), node)], JUMP, {flag}


def lower_loop(lowering, node):
    """Lower the body of a loop; what must stand before the loop, and the flags that end it."""
    lowering.count += 1  # before the body is lowered: the loops in it have their own numbers
    loop = JumpTarget(f"_jst_break_{lowering.count}", f"_jst_continue_{lowering.count}")
    lowering.loops.append(loop)
    body, _, flags = lowering.block(node.body)
    lowering.loops.pop()
    node.body = [*(_down(flag, node) for flag in sorted(flags)), *body]
    break_flags = flags - {loop.continuing}  # after a continue the loop goes on
    before = [_down(loop.breaking, node)] if loop.breaking in break_flags else []
    return before, break_flags


def _down(flag, node):
    return store(flag, constant(False, node), node)


def goes_on(flags, test):
    """The test of a `while` that flags end too."""
    if not flags:
        return test
    return stand(ast.BoolOp(ast.And(), [quiet(flags, test), test]), test)


def otherwise(flags, rest, at):
    """The statements for the `else` of a loop."""
    return unless(flags, rest, at)
