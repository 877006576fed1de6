"""Checks of 08_loops/while_loop."""

import ast
from itertools import product
from textwrap import dedent

from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.engine.core import slots
from minipaddle.engine.jit.transpile import transpile
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="A `while` becomes two functions and a call, and the runtime runs the loop",
    level="medium",
    minutes=40,
    before=("07_rewriting/if_else",),
    slots={
        "jit.while_statement": "while_statement",
        "jit.group_names": "group_names",
        "jit.runtime.while_loop": "while_loop",
    },
    hints=(
        "When is the condition evaluated, and how often, if the loop never iterates? A name that "
        "the loop binds: what could need its value once the iteration is over?",
        "Look at minipaddle/engine/jit/converters/loops.py and looping.py, and at "
        "print(code_text(f)) from minipaddle.engine.jit.transpile for a function f with a loop.",
        "answer = test()\n"
        "while the answer is not a tensor of the program:\n"
        "    return if it is false; else body(), and answer = test() again\n"
        "the three groups as variables; Loop(answer, test, body, *groups).write()",
    ),
    wrong={
        "binding names of its own in the body": "share(body, node.binds[1]) → pass",
        "sharing the names with the wrong function": (
            "share(test, node.binds[0]) → share(test, node.binds[1])",
            "share(body, node.binds[1]) → share(body, node.binds[0])",
        ),
        "the condition asked twice in each iteration": "not answer → not test()",
        "carrying only what is needed after the loop": "bound & head - live → set()",
        "carrying every name, temporaries too": "bound & head - live → bound - live",
        "what is needed later taken for no result": "bound & live → bound & head",
        "names that the loop only reads": "bound & head - live → head - live",
        "a name in two groups": "head - live → head",
        "the test's names forgotten": "share(test, node.binds[0]) → pass",
        "a tensor noticed only in the first iteration": (
            "while not is_static(answer): → first = is_static(answer); while not first:"
        ),
        "an iteration before the first question": (
            "while not is_static(answer): → body(); while not is_static(answer):"
        ),
    },
    unkillable={
        "groups = [variables(names, body, test) for names in (live_out, loop_carried, local)] → "
        "groups = [variables(names, test, body) for names in (live_out, loop_carried, local)]": (
            "both functions share the same variables"
        )
    },
)  # fmt: skip


@exercise.mistake("the condition asked once for all iterations")
def while_loop(test, body, live_out=(), loop_carried=(), local=()):
    if test():
        while True:
            body()


def converted(yours, text):
    """The text after the pass `while_loop` alone."""
    with exercise.plugged(yours):
        return ast.unparse(slots.find("jit.while_loop").get()(ast.parse(dedent(text)), None))


@exercise.example
def one_loop(yours):
    """Test, body, call; y is needed afterwards, k and z by the next iteration, t by nobody."""
    text = """
        def f(x, k):
            y = 0
            while (z := x) < 9:
                t = k + 1
                k = t * z
                y = y + k
                x = y
            return y
    """
    after = """
        def f(x, k):
            z: 'bound in a block'
            y = 0

            def _jst_test():
                nonlocal z
                return (z := x) < 9

            def _jst_body():
                nonlocal k, t, x, y
                t = k + 1
                k = t * z
                y = y + k
                x = y
            _jst.while_loop(_jst_test, _jst_body, live_out=('y',), \
loop_carried=('k', 'x', 'z'), local=('t',))
            return y
    """
    got = converted(yours, text).replace("    t: 'bound in a block'\n", "")
    expect(got, dedent(after).strip(), given={"source": dedent(text)})


@exercise.example
def groups(yours):
    """Eight names, one for each way of being bound, live, and needed at the head."""
    kinds = dict(zip("abcdefgh", product([False, True], repeat=3), strict=True))
    bound, live, head = ({x for x, k in kinds.items() if k[i]} for i in range(3))
    live_out, loop_carried, local = yours.group_names(set(bound), set(live), set(head))
    given = {"bound": sorted(bound), "live": sorted(live), "head": sorted(head)}
    for name, got in (("live_out", live_out), ("loop_carried", loop_carried), ("local", local)):
        wanted = {x for x, (b, a, h) in kinds.items() if b
                  and name == ("live_out" if a else "loop_carried" if h else "local")}  # fmt: skip
        expect(sorted(got), sorted(wanted), given=given | {"asked": name})
    expect([sorted(g) for g in yours.group_names(set(), {"a"}, {"a"})], [[], [], []])


@exercise.property(answers=st.lists(st.booleans(), max_size=6))
def iterations_of_python(yours, answers):
    """Tests and bodies, in the order in which they are called."""
    log, left = [], iter([*answers, False])
    expected = []
    for answer in [*answers, False]:
        expected.append("test")
        if not answer:
            break
        expected.append("body")

    def test():
        log.append("test")
        return next(left)

    def body():
        log.append("body")
        expect_that(len(log) < 50, "an end", given={"answers": answers}, got="50 calls, and more")

    result = yours.while_loop(test, body)
    expect(log, expected, given={"answers": answers})
    expect_that(result is None, "no result", got=result)


def collatz(n):
    k = 0
    while n > 1:
        even = n % 2 == 0
        n = n // 2 if even else n * 3 + 1
        k = k + 1
    return k


def pairs(x, n):
    while (n := n - 1) > 0:
        m = n
        while m > 0:
            x = x + m
            m = m - 1
    return x, n


def last(x):
    before = x
    while x > 1:
        before = x
        x = x / 2
    return before


def eight_go_round(x):
    a = b = c = d = e = g = h = x
    while x < 9:
        a, b, c, d, e, g, h = x, a, b, c, d, e, g
        x = x + 1
    return x, a, b, c, d, e, g, h


def turns_into_a_tensor(x):
    limit, k = 0, 0
    while k <= limit:
        if k == 2:
            limit = x
        elif k < 2:
            limit = k + 1
        k = k + 1
    return k


@exercise.example
def in_python(yours):
    """Converted, on Python's numbers."""
    with exercise.plugged(yours):
        for function, given in ((collatz, (27,)), (collatz, (1,)), (pairs, (0, 4)), (last, (9.0,)),
                                (eight_go_round, (2,)), (turns_into_a_tensor, (7,))):  # fmt: skip
            what = {"function": function.__name__, "arguments": given}
            expect(transpile(function)(*given), function(*given), given=what)


def ran(function, tensors):
    """What the program gives, or the kind of the error."""
    try:
        return paddle.jit.to_static(function)(*tensors)
    except Exception as error:
        return type(error).__name__


@exercise.example
def in_programs(yours):
    """The same on tensors; in the last the condition is Python's for two iterations."""
    calls = [(collatz, (27,)), (collatz, (1,)), (pairs, (0, 4)), (pairs, (3, 0)), (last, (9.0,)),
             (last, (0.5,)), (eight_go_round, (2,)), (turns_into_a_tensor, (7,)),
             (turns_into_a_tensor, (0,))]  # fmt: skip
    with exercise.plugged(yours):
        for function, given in calls:
            tensors = [paddle.to_tensor(x) for x in given]
            what = {"function": function.__name__, "arguments": given}
            expect(ran(function, tensors), function(*map(paddle.to_tensor, given)), given=what)


@exercise.example
def what_is_carried(yours):
    """The program's loop carries n and k, and the condition; no temporary value."""
    with exercise.plugged(yours):
        static = paddle.jit.to_static(collatz)
        static(paddle.to_tensor(6))
        (loop,) = [r for r in static.main_program.records if r.op.name == "while_loop"]
    expect(loop.attrs["carried"], 3, given="values that are carried in collatz")


@exercise.example
def gradients_and_training(yours):
    """A network applied until it has converged, learning: captured as without."""
    losses = []
    for static in (False, True):
        paddle.seed(0)
        x = paddle.linspace(-1, 1, 16).reshape([-1, 1])
        cell, last = nn.Linear(4, 4), nn.Linear(4, 1)
        parameters = [*cell.parameters(), *last.parameters()]
        sgd = paddle.optimizer.SGD(0.1, parameters=parameters)

        def loss_of(x, cell=cell, last=last):
            h, change = x * paddle.ones([4]), paddle.ones([])
            while change > 0.1:
                new = (cell(h) * 0.5 + x).tanh()
                change = (new - h).abs().max()
                h = new
            return F.mse_loss(last(h), x * x)

        with exercise.plugged(yours):
            step = paddle.jit.to_static(loss_of) if static else loss_of
            for _ in range(12):
                loss = step(x)
                loss.backward()
                sgd.step()
                sgd.clear_grad()
        losses.append(loss.item())
    expect(losses[1], losses[0], given="12 steps, the last loss", rtol=1e-3)
