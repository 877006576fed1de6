"""Checks of 08_loops/early_return."""

import ast
import linecache
from textwrap import dedent, indent

from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.engine.core import slots
from minipaddle.engine.jit.converters.jumps import EITHER, JUMP, ON
from minipaddle.engine.jit.transpile import transpile
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="An early `return`: one way out of a function",
    level="hard",
    minutes=60,
    before=("08_loops/lower_break",),
    slots={
        "jit.jumps.return": "on_return",
        "jit.jumps.block": "block",
        "jit.jumps.other_side": "into_other_side",
        "jit.jumps.one_return": "one_return",
    },
    hints=(
        "What has to run after an `if` of which one side returned? And what does a function return "
        "whose last statement is no return?",
        "Look at viz.transpiling(function, 'jumps') for a function that returns in an `if`, then "
        "in a loop; at `statement` and `If` in minipaddle/engine/jit/converters/jumps.py.",
        "block: for each statement: new, way, flags = lowering.statement(it); collect both\n"
        "       a JUMP: stop here\n"
        "       an EITHER with flags: rest, then, more = lowering.block(what follows); the rest\n"
        "       into the other side of new[-1], or into unless(these flags); stop here\n"
        "one_return: the docstring, RETURNED = False, block(the others and `return`), return VALUE",
    ),
    wrong={
        "the rest run after a return too": "out += unless(flags, rest, following[0]) → out += rest",
        "the rest always in the else": (
            "if sides == (ON, JUMP): → return False",
            "sides == (JUMP, ON) → sides in [(JUMP, ON), (ON, JUMP)]",
        ),
        "the rest in the other side where that may jump too": (
            "sides == (JUMP, ON) → sides in [(JUMP, ON), (JUMP, EITHER)]",
            "[(JUMP, ON), (ON, JUMP)] → [(JUMP, EITHER), (JUMP, ON), (ON, JUMP)]",
        ),
        "never into the other side": "rest and (not into_other_side(new[-1], rest)) → rest",
        "a value that is not kept": (
            "[keep, store(RETURNED, constant(True, node), node)] → [store(RETURNED, "
            "constant(True, node), node)]"
        ),
        "a flag that is never raised": (
            "[keep, store(RETURNED, constant(True, node), node)] → [keep]"
        ),
        "no None at the end of a function": (
            "[*statements[len(head):], bare] → statements[len(head):]"
        ),
        "a bare return that keeps what was there": (
            "store(VALUE, value, node) → store(VALUE, node.value or load(VALUE, node), node)"
        ),
        "a docstring that is no longer the first": (
            "[*head, down, *lowered, stand(ast.Return(load(VALUE, last)), last)] → [down, "
            "*head, *lowered, stand(ast.Return(load(VALUE, last)), last)]"
        ),
        "flags of the rest forgotten: lost in a nested loop": "up | more → up",
        "going on after a jump": "return (out, JUMP, up) → pass",
        "a function that forgets that it has returned on all paths": (
            "JUMP if then is JUMP else EITHER → EITHER"
        ),
        "a flag and the other side": (
            "rest and (not into_other_side(new[-1], rest)) → rest and "
            "[into_other_side(new[-1], rest)]"
        ),
    },
    unkillable={
        "head = statements[:1] if ast.get_docstring(function, clean=False) is not None else [] → "
        "head = statements[:1] if ast.get_docstring(function, clean=True) is not None else []": (
            "a docstring is None or not, clean or not"
        )
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
def in_an_if(yours):
    """What follows goes into the other side, and no flag is asked; also the other way round."""
    becomes(
        yours,
        """
        def f(x):
            'Its text.'
            if x > 0:
                return x
            y = x * 2
            return y
        """,
        """
        def f(x):
            \"\"\"Its text.\"\"\"
            if x > 0:
                _jst_value = x
            else:
                y = x * 2
                _jst_value = y
            return _jst_value
        """,
    )
    becomes(
        yours,
        """
        def f(x):
            if x > 0:
                x = 1
            else:
                return
            x = 2
        """,
        """
        def f(x):
            if x > 0:
                x = 1
                x = 2
                _jst_value = None
            else:
                _jst_value = None
            return _jst_value
        """,
    )


@exercise.example
def in_a_loop(yours):
    """A flag ends the loop, and what stands after it asks the flag."""
    becomes(
        yours,
        """
        def f(x):
            \"\"\"Its text.\"\"\"
            while x < 9:
                x = x + 1
                if x == 5:
                    return x
                    x = 100
            x = 2
        """,
        """
        def f(x):
            \"\"\"Its text.\"\"\"
            _jst_returned = False
            while _jst.none((_jst_returned,)) and x < 9:
                _jst_returned = False
                x = x + 1
                if x == 5:
                    _jst_value = x
                    _jst_returned = True
            if _jst.none((_jst_returned,)):
                _jst_returned = False
                x = 2
                _jst_value = None
                _jst_returned = True
            return _jst_value
        """,
    )
    becomes(
        yours,
        """
        def f(x):
            if x:
                if x > 1:
                    return 1
            else:
                return 2
            x = 3
        """,
        """
        def f(x):
            _jst_returned = False
            if x:
                if x > 1:
                    _jst_value = 1
                    _jst_returned = True
            else:
                _jst_value = 2
                _jst_returned = True
            if _jst.none((_jst_returned,)):
                _jst_returned = False
                x = 3
                _jst_value = None
                _jst_returned = True
            return _jst_value
        """,
    )


@exercise.example
def many_statements(yours):
    """Nine statements: all that follows the `if` goes into its other side."""
    rest = indent("\n".join(f"x = x + {k}" for k in range(8)), "    ")
    before = f"def f(x):\n    if x:\n        return x\n{rest}"
    after = "def f(x):\n    if x:\n        _jst_value = x\n    else:\n"
    after += indent(rest, "    ") + "\n        _jst_value = None\n    return _jst_value"
    becomes(yours, before, after)


@exercise.example
def in_both_sides(yours):
    """One side returns, the other may: neither of them is where the rest belongs."""
    becomes(
        yours,
        """
        def f(x):
            if x:
                return 1
            elif x > 1:
                if x > 2:
                    return 2
                x = 4
            x = 3
        """,
        """
        def f(x):
            _jst_returned = False
            if x:
                _jst_value = 1
                _jst_returned = True
            elif x > 1:
                if x > 2:
                    _jst_value = 2
                    _jst_returned = True
                else:
                    x = 4
            if _jst.none((_jst_returned,)):
                _jst_returned = False
                x = 3
                _jst_value = None
                _jst_returned = True
            return _jst_value
        """,
    )


@exercise.example
def the_answers(yours):
    """What your functions hand back for statements whose ways and flags are made up."""
    lines = ast.parse("if t:\n    a\nelse:\n    b\nc\nd").body
    answers = {lines[0]: (EITHER, {"one"}), lines[1]: (EITHER, {"two"}), lines[2]: (ON, set())}

    class Pass:
        def statement(self, node):
            return [node], *answers[node]

        def block(self, statements):
            return yours.block(self, statements)

    def asked(*ways, sides=(EITHER, ON)):
        lines[0].body, lines[0].orelse = lines[0].body[:1], lines[0].orelse[:1]
        lines[0].sides = sides
        answers.update(zip(lines, ways, strict=True))
        out, way, flags = yours.block(Pass(), lines)
        return [ast.unparse(s) for s in out], way.name, sorted(flags)

    whole, on = "if t:\n    a\nelse:\n    b", (ON, set())
    either = (EITHER, {"one"})
    asks = "if _jst.none((one,)):\n    one = False\n    "
    expect(asked(on, on, on), ([whole, "c", "d"], "ON", []), given="three that go on")
    got, expected = asked(on, (JUMP, {"two"}), on), ([whole, "c"], "JUMP", ["two"])
    expect(got, expected, given="the second jumps")
    expect(asked((EITHER, set()), on, on), ([whole, "c", "d"], "ON", []), given="EITHER, no flag")
    got, expected = asked(either, on, on), ([whole, asks + "c\n    d"], "EITHER", ["one"])
    expect(got, expected, given="the first EITHER")
    place = yours.block(Pass(), lines)[0][-1].lineno
    expect(place, 5, given="the first EITHER", why="the new if stands where the rest begins")
    text = "def f(x):\n    if x:\n        return 1\n    x = 2"
    with exercise.plugged(yours):
        place = slots.find("jit.jumps").get()(ast.parse(text), None).body[0].body[-1].lineno
    expect(place, 4, given={"source": text}, why="the one return stands where the function ends")
    got = asked(either, (JUMP, {"two"}), on)
    expect(got, ([whole, asks + "c"], "JUMP", ["one", "two"]), given="EITHER, then JUMP")
    got = asked(on, either, (JUMP, set()), sides=(ON, ON))
    expect(got, ([whole, "c", asks + "d"], "JUMP", ["one"]), given="the second EITHER, then JUMP")
    got = asked(on, on, either)
    expect(got, ([whole, "c", "d"], "EITHER", ["one"]), given="the last one EITHER: no rest")
    got = asked(either, on, on, sides=(JUMP, ON))
    expected = [whole + "\n    c\n    d"]
    expect(got, (expected, "EITHER", ["one"]), given="the first side jumps, the second does not")
    got = asked(either, on, on, sides=(ON, JUMP))
    expect(got, ([whole.replace("a", "a\n    c\n    d")], "EITHER", ["one"]), given="the other way")
    expect_that(yours.into_other_side(lines[1], lines[2:]) is False, "False: c is no `if`")

    class Twice(Pass):
        def statement(self, node):
            return [ast.Pass(), node] if node is lines[0] else [node], *answers[node]

    answers.update(zip(lines, (either, on, on), strict=True))
    lines[0].body, lines[0].orelse, lines[0].sides = (
        lines[0].body[:1],
        lines[0].orelse[:1],
        (JUMP, ON),
    )
    out, _, _ = yours.block(Twice(), lines)
    got, expected = [ast.unparse(s) for s in out], ["pass", whole + "\n    c\n    d"]
    expect(got, expected, given="a statement for which two stand, the last an `if`")
    lines[0].sides = (JUMP, ON)
    expect_that(yours.into_other_side(lines[0], lines[2:]) is True, "True: d is in the `else`")


def under(head, block):
    return f"{head}\n{indent(block, '    ')}"


def blocks(depth, in_loop):
    """Blocks of statements, with jumps that are allowed there."""
    jumps = ["return next(number)", "return", *(["break", "continue"] if in_loop else [])]
    leaf = st.sampled_from(["log(next(number))", *(f"if next(bit, False):\n    {j}" for j in jumps),
                            *jumps[:1]])  # fmt: skip
    if depth:
        inside, same = blocks(depth - 1, True), blocks(depth - 1, in_loop)
        heads = st.sampled_from(["for k in range(2):", "while next(bit, False):"])
        loop = st.builds(under, heads, inside)
        sides = st.builds(lambda a, b: under("if next(bit, False):", a) + "\n" + under("else:", b),
                          same, same)  # fmt: skip
        more = st.sampled_from(["with log.__self__.within():", "while True:"])
        ending = st.builds(
            lambda head, a: under(head, a + "\nreturn 7" * head.startswith("while")), more, same
        )
        leaf = leaf | loop | sides | ending
    return st.lists(leaf, min_size=1, max_size=3).map("\n".join)


class Log(list):
    """What was logged; as a context it does nothing."""

    def within(self):
        return self

    def __enter__(self):
        self.append("in")

    def __exit__(self, *error):
        self.append("out")


def outcome(function, bits):
    log = Log()
    return function(log.append, iter(bits), iter(range(1, 10_000))), list(log)


@exercise.property(block=blocks(2, False), bits=st.lists(st.booleans(), max_size=8), examples=25)
def as_python_does(yours, block, bits):
    """Returns anywhere: what is returned and logged, converted and not."""
    function = function_of("def f(log, bit, number):\n" + indent(block, "    "))
    with exercise.plugged(yours):
        got = outcome(transpile(function), bits)
    expect(got, outcome(function, bits), given={"block": block, "bits": bits})


def clipped(x):
    if x < 0:
        return x * 0
    if x < 1:
        return x
    elif x < 10:
        if x > 4:
            return x + 1000
        x = x + 1
    return x * 2


def first_large(x, n, m):
    for i in range(n):
        for j in range(m):
            x = x + i + j
            if x > 3:
                return x * 10
        x = x + 0.25
    return x


def forever(x):
    while True:
        x = x * 3
        if x > 100:
            return x - 1


@exercise.example
def programs_give_what_python_gives(yours):
    """Converted, as programs whose conditions are tensors."""
    with exercise.plugged(yours):
        for function, calls in (
            (clipped, [(0.5,), (5.0,), (50.0,), (-1.0,), (2.0,)]),
            (first_large, [(0.0, 3, 4), (0.0, 1, 1), (0.0, 2, 2)]),
            (forever, [(1.0,), (500.0,)]),
        ):
            static = paddle.jit.to_static(function)
            for call in calls:
                tensors = [paddle.to_tensor(x) for x in call]
                what = {"function": function.__name__, "arguments": call}
                expect(static(*tensors), function(*tensors), given=what)


@exercise.example
def a_network_trains(yours):
    """A network with an early exit: captured, it learns as it does without."""
    losses = []
    for static in (False, True):
        paddle.seed(0)
        x = paddle.linspace(-1, 1, 16).reshape([-1, 1])
        first, second = nn.Linear(1, 4), nn.Linear(4, 4)
        last = nn.Linear(4, 1)
        parameters = [*first.parameters(), *second.parameters(), *last.parameters()]
        sgd = paddle.optimizer.SGD(0.3, parameters=parameters)

        def loss_of(x, first=first, second=second, last=last):
            h = first(x).tanh()
            loss = F.mse_loss(last(h), x * x)
            if loss < 0.15:
                return loss
            h = h + second(h).tanh()
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
