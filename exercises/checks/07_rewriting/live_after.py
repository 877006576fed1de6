"""Checks of 07_rewriting/live_after."""

import ast
from textwrap import indent

from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.engine.jit.scope import Liveness, ScopeNames
from minipaddle.learn import Exercise, expect

exercise = Exercise(
    title="Which names are still needed?",
    level="hard",
    minutes=45,
    before=("07_rewriting/modified_names",),
    slots={
        "jit.live.plain": "plain",
        "jit.live.leaving": "leaving",
        "jit.live.fork": "fork",
        "jit.live.block": "block",
    },
    hints=(
        "In x = x + 1, what happens first, the reading or the binding? Walking backwards, which of "
        "the two do you meet last?",
        "Chapter 7, “Names”, colours a table line by line, from the last line to the first; that "
        "is these four functions.",
        "plain: what is live after, without what is written, and then with what is read\n"
        "leaving: only what the statement reads\n"
        "fork: both sides, each from the same live, joined, and what the test reads\n"
        "block: from the last statement to the first, live becomes what\n"
        "    analysis.before says of the statement",
    ),
    wrong={
        "forgetting that x = x + 1 reads x": (
            "live - names.written | names.read → (live | names.read) - names.written"
        ),
        "never letting go of a name": "live - names.written → live",
        "forgetting the test": (
            "sides[0] | sides[1] | ScopeNames([node.test]).read → sides[0] | sides[1]"
        ),
        "looking at the body only": "sides[0] | sides[1] → sides[0]",
        "what both sides need, instead of either": "sides[0] | sides[1] → sides[0] & sides[1]",
        "taking an `if` for one way that runs body, then else": (
            "sides = [analysis.block(side, live) for side in (node.body, node.orelse)] → live "
            "= analysis.block(node.orelse, live); sides = [analysis.block(node.body, live)] * "
            "2"
        ),
        "from the first statement to the last": "reversed(statements) → statements",
        "going on after a return": (
            "ScopeNames([node]).read → ScopeNames([node]).read | analysis.after",
            (
                "live = analysis.before(statement, live) → analysis.after = live; live = "
                "analysis.before(statement, live)"
            ),
        ),
        "changing the set that was given": (
            "return live - names.written | names.read → live -= names.written; live |= "
            "names.read; return live"
        ),
    },
)  # fmt: skip


class Walk:
    """The analysis as the task describes it: `before` answers for one statement."""

    def __init__(self, yours):
        self.yours = yours

    def block(self, statements, live):
        return self.yours.block(self, statements, live)

    def before(self, node, live):
        if isinstance(node, ast.If):
            return self.yours.fork(self, node, live)
        if isinstance(node, ast.Return | ast.Raise):
            return self.yours.leaving(self, node)
        return self.yours.plain(self, node, live)


def paths(statements):
    """Every path through a block: lists of (names read, names bound), and whether it leaves."""
    found = [([], False)]
    for node in statements:
        if isinstance(node, ast.If):
            test = (ScopeNames([node.test]).read, set())
            steps = [
                ([test, *way], out) for side in (node.body, node.orelse) for way, out in paths(side)
            ]
        else:
            names = ScopeNames([node])
            out = isinstance(node, ast.Return | ast.Raise)
            steps = [([(names.read, names.written)], out)]
        found = [
            pair
            for way, out in found
            for pair in ([(way, out)] if out else [(way + more, left) for more, left in steps])
        ]
    return found


def needed(statements, live):
    """The names that some path reads before it binds them, or carries to the end."""
    found = set()
    for way, out in paths(statements):
        bound = set()
        for reads, writes in way:
            found |= reads - bound
            bound |= writes
        found |= set() if out else live - bound
    return found


def agrees(yours, text, live):
    statements = ast.parse(text).body
    given = frozenset(live)
    mine = set(given)
    found = Walk(yours).block(statements, mine)
    inputs = {"block": text, "live after it": sorted(given)}
    expect(sorted(mine), sorted(given), given=inputs, why="the set that was given has changed")
    expect(sorted(found), sorted(needed(statements, given)), given=inputs)


@exercise.example
def one_statement(yours):
    """It reads first, then it binds."""
    agrees(yours, "x = x + y", {"x"})
    agrees(yours, "x = y", {"x", "z"})
    agrees(yours, "print(x)", {"z"})
    agrees(yours, "x += 1", {"x"})


@exercise.example
def statements_in_a_row(yours):
    """From the last to the first."""
    agrees(yours, "t = x\ny = t + z", {"y"})
    agrees(yours, "y = t + z\nt = x", {"y", "t"})
    agrees(yours, "pass", {"y"})
    agrees(yours, "\n".join(f"x{k + 1} = x{k} + y{k}" for k in range(9)), {"x4", "x9"})
    expect(sorted(Walk(yours).block([], {"y"})), ["y"], given="no statement, y live after it")


@exercise.example
def leaving_early(yours):
    """What stands after a return is not reached, and what was live there does not count."""
    agrees(yours, "return x\ny = z", {"y", "z"})
    agrees(yours, "if a:\n    raise E(x)\ny = z", {"y"})
    agrees(yours, "y = 1\nreturn", {"z"})


@exercise.example
def both_sides(yours):
    """Either side may run; a side that is not there binds nothing."""
    agrees(yours, "if a:\n    y = b", {"y"})
    agrees(yours, "if a:\n    y = b\nelse:\n    y = c", {"y"})
    agrees(yours, "if a:\n    y = b\nelse:\n    z = c\nw = z", {"y", "w"})
    agrees(yours, "if a:\n    t = b\n    b = t\nelif b:\n    return t\nelse:\n    c = t", {"c"})


NAMES = st.sampled_from("abcd")
LINES = st.one_of(
    st.builds("{} = {}".format, NAMES, NAMES),
    st.builds("{} = {} + {}".format, NAMES, NAMES, NAMES),
    st.builds("{} += {}".format, NAMES, NAMES),
    st.builds("print({})".format, NAMES),
    st.builds("return {}".format, NAMES),
)


def branches(block):
    def written(name, then, other):
        text = f"if {name}:\n{indent(then, '    ')}"
        return text + (f"\nelse:\n{indent(other, '    ')}" if other else "")

    one = st.builds(written, NAMES, block, st.none() | block)
    return st.lists(LINES | one, min_size=1, max_size=3).map("\n".join)


BLOCKS = st.recursive(
    st.lists(LINES, min_size=1, max_size=3).map("\n".join), branches, max_leaves=4
)


@exercise.property(block=BLOCKS, live=st.sets(NAMES), examples=80)
def as_all_paths_through_the_block_say(yours, block, live):
    """Every path through a block is walked forwards: what does one read before it binds it?"""
    agrees(yours, block, live)


# ---- in the transpiler ---------------------------------------------------------------------------


@exercise.example
def what_an_if_hands_on(yours):
    """Liveness, the engine's analysis: the set after each `if` of a function."""
    text = (
        "def f(x, y):\n    t = x\n    if x:\n        t = y\n        u = t\n        x = u\n"
        "    if y:\n        u = 2\n        v = 3\n    return x + v"
    )
    function = ast.parse(text).body[0]
    with exercise.plugged(yours):
        Liveness(function)
    found = [sorted(node.live) for node in ast.walk(function) if isinstance(node, ast.If)]
    expect(found, [["v", "x", "y"], ["v", "x"]], given={"function": text})


def temporaries(x):
    if x.sum() > 0:
        t = x * 2
        y = t.sum()
    else:
        t = paddle.concat([x, x])
        y = t.mean()
    return y


def in_turn(x):
    y = x
    if x.sum() > 0:
        y = y * 2
        z = y + 1
    else:
        z = y - 1
    if z.max() > 2:
        x = x + z
    return x * y


def row_after_row(x):
    best, most = x[0], x[0]
    for row in x:
        if row > most:
            step = row - most
            most = most + step
            best = row
    return best * 2


@exercise.example
def programs_give_what_python_gives(yours):
    """Functions converted with your analysis, on arrays that take every path."""
    for function in (temporaries, in_turn, row_after_row):
        for array in ([1.0, 3.0], [-1.0, -2.0], [0.5, -0.2]):
            expected = function(paddle.to_tensor(array))
            with exercise.plugged(yours):
                got = paddle.jit.to_static(function)(paddle.to_tensor(array))
            expect(got, expected, given={"function": function.__name__, "x": array})


@exercise.example
def a_network_trains(yours):
    """A loss whose temporaries have different shapes on the two sides."""
    losses = []
    for static in (False, True):
        paddle.seed(0)
        x = paddle.linspace(-1, 1, 16).reshape([-1, 1])
        net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
        adam = paddle.optimizer.Adam(0.05, parameters=net.parameters())

        def loss_of(x, net=net):
            y = net(x)
            loss = F.mse_loss(y, x * x)
            if loss > 0.1:
                part = loss.sqrt()
                loss = part * 0.3
            else:
                part = y.abs()
                loss = loss + 0.001 * part.mean()
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
