"""Checks of 07_rewriting/if_else."""

import ast

from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.engine.jit.transpile import code_text, transpile
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="`if` becomes two functions and a call",
    level="hard",
    minutes=45,
    before=("07_rewriting/live_after",),
    slots={"jit.if_else": "if_else"},
    hints=(
        "Which statements stand for the `if` in the converted source, and which of them are there "
        "without an `else`?",
        "Chapter 7, “Two functions and a call”, builds it on a page of its own; "
        "minipaddle/engine/jit/converters/loops.py has two converters of the same form.",
        "convert the children; a block that is not movable stays\n"
        "the statements of a template `def _jst_then(): body`; the same for the orelse, if any\n"
        "share with each function the names it binds\n"
        "a template for the call; its keywords are the options live_out, local, jumps",
    ),
    wrong={
        "losing the else": (
            "if node.orelse: → if False:",
            "'_jst_else' if node.orelse else 'None' → 'None'",
        ),
        "not converting what is inside": "self.generic_visit(node) → pass",
        "forgetting that a block's names are its own": "self.share(function, names) → pass",
        "sharing with the body only": "zip(new, node.binds) → zip(new[:1], node.binds)",
        "keeping what only the body binds": "node.binds[0] | node.binds[1] → node.binds[0]",
        "keeping everything that is bound": "bound & node.live → bound",
        "keeping what is live, bound or not": "bound & node.live → node.live",
        "forgetting what is dropped": (
            "options(node, live_out=live_out, local=bound - live_out, jumps=jumps) → options(node, "
            "live_out=live_out, jumps=jumps)"
        ),
        "moving a yield into a function": "not movable([*node.body, *node.orelse]) → False",
        "exchanging the sides": (
            "new += fill(f'_jst.if_else(test, _jst_then, {other})', node, test=node.test) → "
            "new += fill(f'_jst.if_else(test, {other}, _jst_then)', node, test=node.test)"
        ),
        "forgetting the mark of a jump": (
            "options(node, live_out=live_out, local=bound - live_out, jumps=jumps) → options(node, "
            "live_out=live_out, local=bound - live_out)"
        ),
    },
    unkillable={
        "live_out, jumps = (bound & node.live, getattr(node, 'jumps', False)) → live_out, jumps = "
        "(bound & node.live, getattr(node, 'jumps', True))": "the step before says it of each",
    },
)  # fmt: skip


def converted(yours, function):
    with exercise.plugged(yours):
        return transpile(function)


def parts(yours, function):
    """The calls of the runtime's if_else in a function, outermost first, as dicts; and its text."""
    with exercise.plugged(yours):
        text = code_text(function)
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "_jst.if_else":
            names = {k.arg: ast.literal_eval(k.value) for k in node.keywords}
            found.append({"args": [ast.unparse(a) for a in node.args], **names})
    return found, text


def with_else(x):
    if x > 0:
        y = x
    else:
        y = -x
    return y


def without_else(x):
    if x > 0:
        x = x * 2
        t = x + 1
        x = t
    return x


def three_ways(x):
    if x > 10:
        y, z = x, 1
    elif x > 0:
        y, z = x * 2, 2
    else:
        y, z = x * 3, 3
    return y + z


@exercise.example
def the_call(yours):
    """The test and the two functions; the names that are needed after it."""
    found, text = parts(yours, with_else)
    call = {"args": ["x > 0", "_jst_then", "_jst_else"], "live_out": ("y",)}
    expect(found, [call], given={"converted": text})


@exercise.example
def no_else(yours):
    """None in place of a function; a name that is bound and not needed is dropped."""
    found, text = parts(yours, without_else)
    call = {"args": ["x > 0", "_jst_then", "None"], "live_out": ("x",), "local": ("t",)}
    expect(found, [call], given={"converted": text})
    expect_that("_jst_else" not in text, "one function is enough", got=text)


@exercise.example
def elif_is_an_if_in_the_else(yours):
    """Both become calls, and both hand on both names."""
    found, text = parts(yours, three_ways)
    expect([call["live_out"] for call in found], [("y", "z")] * 2, given={"converted": text})
    kinds = [type(node) for node in ast.walk(ast.parse(text))]
    expect_that(ast.If not in kinds, "no `if` is left", got=text)


def one_name_each(x, n):
    a, b = 1, 2
    if n:
        a = x
    else:
        b = x
    return a + b + n


@exercise.example
def what_each_side_shares(yours):
    """Each function shares the names that it binds, and no others."""
    with exercise.plugged(yours):
        text = code_text(one_name_each)
    call = parts(yours, one_name_each)[0][0]
    expect(call.get("live_out"), ("a", "b"), given={"converted": text})
    found = {f.name: [n for line in f.body if isinstance(line, ast.Nonlocal) for n in line.names]
             for f in ast.walk(ast.parse(text)) if isinstance(f, ast.FunctionDef)}  # fmt: skip
    expect(found["_jst_then"], ["a"], given={"converted": text})
    expect(found["_jst_else"], ["b"], given={"converted": text})


def with_yield(items):
    for item in items:
        if item > 1:
            yield item
        else:
            item = 0
        if item:
            yield -item


@exercise.example
def a_yield_stays_where_it_is(yours):
    """A generator's `if` around a yield stays Python's."""
    expect(list(converted(yours, with_yield)([1, 2, 3])), [2, -2, 3, -3], given="[1, 2, 3]")


def leaving_early(x):
    for row in x:
        if row < 0:
            return row * 100
    return x.sum()


@exercise.example
def jumps_are_marked(yours):
    """An `if` from which a return was removed: the runtime hears of it; a program is made."""
    found, text = parts(yours, leaving_early)
    marks = [call.get("jumps", False) for call in found]
    expect_that(True in marks, "a call with jumps=True", given={"converted": text}, got=marks)
    found, text = parts(yours, with_else)
    expect_that("jumps" not in found[0], "no jumps=… without a jump", got=text)


def unrelated_names(x, n):
    k, m = 1, [1, 2]
    if x.sum() > 0:
        m = [3, 4]
        k = 2.0
        y = x * m[0]
    else:
        m = "text"
        y = x
    k = 3
    if n > 1:
        y = y + k
    else:
        if y.max() > 1:
            y = y * n
        y = y - k
    return y


FUNCTIONS = {f.__name__: f for f in (with_else, without_else, three_ways)}


@exercise.property(
    name=st.sampled_from(sorted(FUNCTIONS)),
    value=st.sampled_from([-2.0, -0.5, 0.0, 1.0, 5.0, 20.0]),
)
def as_python_does(yours, name, value):
    """A function on a number, on a tensor, and as a program."""
    function = FUNCTIONS[name]
    given = {"function": name, "x": value}
    mine = converted(yours, function)
    expect(mine(value), function(value), given=given)
    expect(mine(paddle.to_tensor([value])), [function(value)], given=given)
    with exercise.plugged(yours):
        got = paddle.jit.to_static(function)(paddle.to_tensor([value]))
    expect(got, [function(value)], given={**given, "as": "a program"})


@exercise.example
def programs_give_what_python_gives(yours):
    """Names of other kinds on the two sides, an `if` in an `if`, an early return."""
    for array in ([1.0, 3.0], [-1.0, -2.0], [0.5, -0.2]):
        for function, more in (
            (unrelated_names, (1,)),
            (unrelated_names, (2,)),
            (leaving_early, ()),
        ):
            expected = function(paddle.to_tensor(array), *more)
            with exercise.plugged(yours):
                got = paddle.jit.to_static(function)(paddle.to_tensor(array), *more)
            expect(got, expected, given={"function": function.__name__, "x": array, "more": more})


@exercise.example
def lines_stay_the_users(yours):
    """An error inside a block is reported at the line where the block was written."""

    def failing(x):
        if x > 0:
            y = x.no_such_thing
        else:
            y = x
        return y

    line = failing.__code__.co_firstlineno + 2
    try:
        converted(yours, failing)(paddle.to_tensor([1.0]))
    except AttributeError as error:
        trace, lines = error.__traceback__, []
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == __file__:
                lines.append(trace.tb_lineno)
            trace = trace.tb_next
        expect(lines[-1], line, given="the line of `y = x.no_such_thing`")


@exercise.example
def a_network_trains(yours):
    """A loss that is a square where it is small and a line where it is large."""
    losses = []
    for static in (False, True):
        paddle.seed(0)
        x = paddle.linspace(-1, 1, 16).reshape([-1, 1])
        net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
        adam = paddle.optimizer.Adam(0.05, parameters=net.parameters())

        def loss_of(x, net=net):
            loss = F.mse_loss(net(x), x * x)
            if loss > 0.1:
                loss = 0.3 * loss.sqrt()
            return loss

        with exercise.plugged(yours):
            step = paddle.jit.to_static(loss_of) if static else loss_of
            for _ in range(30):
                loss = step(x)
                loss.backward()
                adam.step()
                adam.clear_grad()
        losses.append(loss.item())
    expect(losses[1], losses[0], given="30 steps, the last loss", rtol=1e-3)
