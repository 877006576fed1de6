"""A `while` becomes two functions and a call, and the runtime runs the loop.

Three functions of the real transpiler:

- `while_statement(node, share)` rewrites one loop. `node` is an `ast.While` with neither jumps nor
  `else`; `node.test` is an expression, `node.body` a list of statements. Answer the three
  statements `def _jst_test(): return test`, `def _jst_body(): body`, and the call
  `_jst.while_loop(_jst_test, _jst_body)`. What a function binds is its own, so each of the two must
  declare `nonlocal` what it binds of the variables around it: call `share(function, binds)` with
  the `ast.FunctionDef` and one of the two sets in `node.binds` (of the test, of the body), and that
  is done.
- `group_names(bound, live, head)`: three sets of names. `bound` is what the loop binds, `live`
  what is needed after it, and `head` what is needed at the start of an iteration, even of the
  first. Answer three sets that share no name: of `bound`, what is needed after the loop; what only
  the next iteration needs; the rest. The first two are carried as values of the program.
- `while_loop(test, body, live_out=(), loop_carried=(), local=())`: the runtime. `test` and `body`
  are functions without arguments. Do what `while test(): body()` does, until the test answers with
  a tensor that only the running program knows: `is_static(answer)`. From there on the rest of the
  loop belongs to the program, also if iterations have been made before: `TracedLoop(answer, test,
  body, live_out, loop_carried, local).write()` writes it, given three lists of *variables*
  (`variables(names, body, test)` finds those of the names). Evaluate the test once per iteration,
  and once more at the end, as Python does: it may have effects.

    while x < 9:            def _jst_test():
        x = x * 2               return x < 9
                            def _jst_body():
                                nonlocal x
                                x = x * 2
                            _jst.while_loop(_jst_test, _jst_body)

`fill(template, at, hole=...)` makes statements of a text in which names are holes: an expression
takes the place of a name, a list of statements that of a name alone on its line.
Source: Moldovan and others, "AutoGraph: imperative-style coding with graph-based performance",
MLSys 2019, for loops as functions and state.
"""

from minipaddle.engine.eager.control_flow import is_static
from minipaddle.engine.jit.journal import variables
from minipaddle.engine.jit.looping import TracedLoop
from minipaddle.engine.jit.templates import fill

_TEMPLATE = """
def _jst_test():
    return test
def _jst_body():
    body
_jst.while_loop(_jst_test, _jst_body)
"""


def while_statement(node, share):
    """The three statements that stand for a loop."""
    test, body, call = fill(_TEMPLATE, node, test=node.test, body=node.body)
    share(test, node.binds[0])  # a test binds names too, by :=
    share(body, node.binds[1])
    return [test, body, call]


def group_names(bound, live, head):
    """Of what a loop binds: needed after it, needed by the next iteration only, not needed."""
    live_out = bound & live
    loop_carried = bound & head - live
    return live_out, loop_carried, bound - live_out - loop_carried


def while_loop(test, body, live_out=(), loop_carried=(), local=()):
    """`while test(): body()`; once the test answers with a tensor, a loop of the program."""
    answer = test()
    while not is_static(answer):
        if not answer:
            return
        body()
        answer = test()
    groups = [variables(names, body, test) for names in (live_out, loop_carried, local)]
    TracedLoop(answer, test, body, *groups).write()
