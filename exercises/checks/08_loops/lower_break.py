"""Checks of 08_loops/lower_break."""

import ast
import linecache
from textwrap import dedent, indent

from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.engine.core import slots
from minipaddle.engine.jit.converters.jumps import JumpTarget
from minipaddle.engine.jit.transpile import transpile
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="`break` and `continue` become flags",
    level="hard",
    minutes=50,
    before=("08_loops/while_loop",),
    slots={
        "jit.jumps.break": "on_break",
        "jit.jumps.continue": "on_continue",
        "jit.jumps.lower_loop": "lower_loop",
        "jit.jumps.goes_on": "goes_on",
        "jit.jumps.otherwise": "otherwise",
    },
    hints=(
        "After which of the two flags does the loop go on? Which loop does a jump belong to when "
        "there are several around it, and what if two of them had a flag of the same name?",
        "Look at viz.transpiling(function, 'jumps') for a function with one loop, then with two; "
        "in minipaddle/engine/jit/converters/jumps.py, at what calls `lower_loop` and `goes_on`.",
        "lower_loop: count one more; make the loop's two names; put the loop on lowering.loops\n"
        "        body, way, flags = lowering.block(node.body); take the loop off again\n"
        "        node.body = `flag = False` for each of the flags, sorted, and the body\n"
        "        break_flags = the flags without the continue's\n"
        "        before = [breaking = False] if it is one of break_flags, else []",
    ),
    wrong={
        "a continue that ends the loop, as a break does": "flags - {loop.continuing} → set(flags)",
        "a break that only skips the rest of the iteration": "loop.continuing → loop.breaking",
        "an else that runs after a break too": "unless(flags, rest, at) → rest",
        "jumps that belong to the outermost loop": (
            "lowering.loops[-1].breaking → lowering.loops[0].breaking",
            "lowering.loops[-1].continuing → lowering.loops[0].continuing",
        ),
        "one name for the flags of all loops": "lowering.count += 1 → lowering.count = 1",
        "flags that stay up in the next iteration": (
            "[*(_down(flag, node) for flag in sorted(flags)), *body] → body"
        ),
        "a loop that stays on the list": "lowering.loops.pop() → pass",
        "the test of a while asked before the flags": (
            "[quiet(flags, test), test] → [test, quiet(flags, test)]"
        ),
        "a return in the body that does not end the loop": (
            "flags - {loop.continuing} → flags & {loop.breaking}"
        ),
        "a break's flag that nobody puts down before the loop": (
            "[_down(loop.breaking, node)] if loop.breaking in break_flags else [] → []"
        ),
    },
)  # fmt: skip


def function_of(text):
    """The function `f` of a text, with a source that can be found."""
    name = f"<f {hash(text)}>"
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    space = {}
    exec(compile(text, name, "exec"), space)
    return space["f"]


def lowered(yours, text):
    """The text after the pass `jumps` alone."""
    with exercise.plugged(yours):
        return ast.unparse(slots.find("jit.jumps").get()(ast.parse(dedent(text)), None))


def becomes(yours, before, after):
    expect(lowered(yours, before), dedent(after).strip(), given={"source": dedent(before)})


@exercise.example
def a_break(yours):
    """The flag is down before the loop and in each iteration, up at the break, and asked first."""
    becomes(
        yours,
        """
        def f(x):
            while x < 9:
                x = x + 1
                if x == 5:
                    break
                x = x * 2
            return x
        """,
        """
        def f(x):
            _jst_break_1 = False
            while _jst.none((_jst_break_1,)) and x < 9:
                _jst_break_1 = False
                x = x + 1
                if x == 5:
                    _jst_break_1 = True
                else:
                    x = x * 2
            return x
        """,
    )


@exercise.example
def a_continue(yours):
    """It skips the rest of the iteration; the loop and its test are as they were."""
    becomes(
        yours,
        """
        def f(x):
            while x < 9:
                for k in range(3):
                    if k == 1:
                        if x:
                            continue
                        x = 1
                    x = 2
                else:
                    x = 3
        """,
        """
        def f(x):
            while x < 9:
                for k in range(3):
                    _jst_continue_2 = False
                    if k == 1:
                        if x:
                            _jst_continue_2 = True
                        else:
                            x = 1
                    if _jst.none((_jst_continue_2,)):
                        _jst_continue_2 = False
                        x = 2
                x = 3
        """,
    )


@exercise.example
def the_answers(yours):
    """What the five functions hand back, one by one."""

    class Pass:
        def __init__(self):
            self.count, self.loops = 4, []

        def block(self, body):
            self.seen = list(self.loops)
            return body, None, {"_jst_break_5", "_jst_continue_5", "_jst_returned"}

    loop = ast.parse("while t:\n    x").body[0]
    before, break_flags = yours.lower_loop(Pass(), loop)
    ends = ["_jst_break_5", "_jst_returned"]
    expect(sorted(break_flags), ends, given="the flags that end a loop")
    expect([ast.unparse(s) for s in before], ["_jst_break_5 = False"], given="before the loop")
    body = [*(f"{x} = False" for x in ("_jst_break_5", "_jst_continue_5", "_jst_returned")), "x"]
    expect([ast.unparse(s) for s in loop.body], body, given="the body")
    expect_that(yours.goes_on(set(), loop.test) is loop.test, "the test itself if nothing stops it")
    both = ast.unparse(yours.goes_on({"b", "a"}, loop.test))
    expect(both, "_jst.none((a, b)) and t", given={"flags": ["a", "b"], "test": "t"})
    expect(ast.unparse(yours.otherwise(set(), [loop], loop)), ast.unparse(loop))
    rest = ast.parse("\n".join(f"x = {k}" for k in range(8))).body
    (new,) = yours.otherwise({"b"}, list(rest), loop)
    expect(ast.unparse(new.test), "_jst.none((b,))", given="an else of eight statements")
    expect(ast.unparse(new.body[-8:]), ast.unparse(rest), given="an else of eight statements")

    inner = Pass()
    inner.loops += [JumpTarget("B", "C"), JumpTarget("b", "c")]
    at = ast.parse("x").body[0]
    for name, flag in (("on_break", "b"), ("on_continue", "c")):
        new, way, flags = getattr(yours, name)(inner, at)
        expect(ast.unparse(new[0]), f"{flag} = True", given=name)
        expect_that(flags == {flag} and way.name == "JUMP", "that flag, and JUMP", got=(way, flags))


def under(head, block):
    return f"{head}\n{indent(block, '    ')}"


def blocks(depth, in_loop):
    """Blocks of statements, with jumps that are allowed there."""
    jumps = ["return next(number)", *(["break", "continue"] if in_loop else [])]
    leaf = st.sampled_from(["log(next(number))", *(f"if next(bit, False):\n    {j}" for j in jumps),
                            *jumps[1:]])  # fmt: skip
    if depth:
        inside, same = blocks(depth - 1, True), blocks(depth - 1, in_loop)
        heads = st.sampled_from(
            ["for k in range(2):", "while next(bit, False):", "while log(0) or next(bit, False):"]
        )
        loop = st.builds(under, heads, inside)
        both = st.builds(lambda a, b: a + "\n" + under("else:", b), loop, same)
        sides = st.builds(lambda a, b: under("if next(bit, False):", a) + "\n" + under("else:", b),
                          same, same)  # fmt: skip
        leaf = loop | both | sides | leaf
    return st.lists(leaf, min_size=1, max_size=3).map("\n".join)


def outcome(function, bits):
    log = []
    numbers = iter(range(1, 10_000))
    return function(log.append, iter(bits), numbers), log


@exercise.property(block=blocks(2, False), bits=st.lists(st.booleans(), max_size=8), examples=25)
def as_python_does(yours, block, bits):
    """Loops in loops, with jumps and else: what is logged, converted and not."""
    function = function_of("def f(log, bit, number):\n" + indent(block, "    "))
    with exercise.plugged(yours):
        got = outcome(transpile(function), bits)
    expect(got, outcome(function, bits), given={"block": block, "bits": bits})


def found(x, y):
    while x < 4:
        while y < 10:
            y = y + x + 1
            if y > 7:
                break
        else:
            y = y - 2
        x = x + 1
        if y == 9:
            continue
        if y > 50:
            break
        y = y + 0.5
    return x, y


def over_rows(n, x):
    for i in range(n):
        if i == 1:
            continue
        x = x * 2 + i
        if x > 9:
            break
    else:
        x = x - 100
    return x


@exercise.example
def programs_give_what_python_gives(yours):
    """Converted with your flags, as programs whose conditions are tensors."""
    pairs = [(0.0, 0.0), (9.0, 1.0), (2.0, 49.0), (1.0, 6.5)]
    for function, kinds, calls in (
        (found, ("float32", "float32"), pairs),
        (over_rows, ("int64", "float32"), [(0, 1.0), (2, 1.0), (5, 1.0), (4, 20.0)]),
    ):
        with exercise.plugged(yours):
            static = paddle.jit.to_static(function)
            for call in calls:
                given = [paddle.to_tensor(v, dtype=d) for v, d in zip(call, kinds, strict=True)]
                expect(static(*given), function(*given), given={"the arguments": call})


@exercise.example
def a_network_trains(yours):
    """As many iterations as an input needs, at most 6: captured, it learns as it does without."""
    losses = []
    for static in (False, True):
        paddle.seed(0)
        x = paddle.linspace(-1, 1, 16).reshape([-1, 1])
        cell, last = nn.Linear(4, 4), nn.Linear(4, 1)
        parameters = [*cell.parameters(), *last.parameters()]
        sgd = paddle.optimizer.SGD(0.1, parameters=parameters)

        def loss_of(x, iterations, cell=cell, last=last):
            h = x * paddle.ones([4])
            for k in range(iterations):
                new = cell(h).tanh()
                if (new - h).abs().max() < 0.5:
                    break
                if k == 1:
                    continue
                h = h + new
            return F.mse_loss(last(h), x * x)

        with exercise.plugged(yours):
            step = paddle.jit.to_static(loss_of) if static else loss_of
            for _ in range(12):
                loss = step(x, paddle.to_tensor(6))
                loss.backward()
                sgd.step()
                sgd.clear_grad()
        losses.append(loss.item())
    expect(losses[1], losses[0], given="12 steps, the last loss", rtol=1e-3)
