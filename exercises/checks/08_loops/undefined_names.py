"""Checks of 08_loops/undefined_names."""

import ast
import copy
import linecache
from itertools import chain
from textwrap import dedent, indent

from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.engine.core import slots
from minipaddle.engine.jit.transpile import code_text
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Names that some path leaves undefined",
    level="hard",
    minutes=50,
    before=("07_rewriting/modified_names",),
    slots={
        "jit.known.block": "block",
        "jit.known.both": "both",
        "jit.known.if": "if_",
        "jit.known.while": "while_",
        "jit.known.for": "for_",
    },
    hints=(
        "Which paths lead to the statement after a loop if it never iterates? And what does a path "
        "that ends in a return say about the names after an `if`?",
        "Write small functions and look at viz.transpiling(function, 'undefined'), or at "
        "`Definedness` in minipaddle/engine/jit/scope.py, which calls your methods.",
        "if: known = what the test leaves; both of (block of the body, block of the orelse)\n"
        "while: known = what the test leaves; the body with known, for its marks only;\n"
        "       both of (known, block of the orelse)\n"
        "for: the same, with the iter for the test, and the target's names known in the body",
    ),
    wrong={
        "a name that one side binds taken as bound": "set.intersection → set.union",
        "a loop's body taken as run at least once": (
            "self.block(node.body, known) → known = self.block(node.body, known)"
        ),
        "the same for a for loop": (
            "self.block(node.body, known | find_modified_names([node.target])) → known = "
            "self.block(node.body, known | find_modified_names([node.target]))"
        ),
        "a path that returned taken as a path that binds nothing": (
            "[path for path in paths if path is not None] → [path or set() for path in paths]"
        ),
        "going on after a return": "break → known = set()",
        "what a for loop binds itself forgotten in its body": (
            "known | find_modified_names([node.target]) → known"
        ),
        "a for's target taken as bound after it": (
            "self.block(node.body, known | find_modified_names([node.target])) → known = known | "
            "find_modified_names([node.target]); self.block(node.body, known)"
        ),
        "no look at the test of an if": "if_(): known = self.reads([node.test], known) → pass",
        "what a test binds forgotten": (
            "while_(): known = self.reads([node.test], known) → self.reads([node.test], known)"
        ),
        "an else that is not looked at": (
            "for_(): self.both(known, self.block(node.orelse, known)) → known"
        ),
        "two sides that no path leaves: an empty set, not None": (
            "set.intersection(*paths) if paths else None → set.intersection(*paths) if paths else "
            "set()"
        ),
    },
    unkillable={
        f"return self.both({a}, {b}) → return self.both({b}, {a})": "paths meet in any order"
        for a, b in (
            ("self.block(node.body, known)", "self.block(node.orelse, known)"),
            ("known", "self.block(node.orelse, known)"),
        )
    },
)  # fmt: skip


def marked(yours, text):
    """The text after the pass `undefined` alone."""
    with exercise.plugged(yours):
        return ast.unparse(slots.find("jit.undefined").get()(ast.parse(text), None))


# ---- the same by another method: every path, one by one ------------------------------------------


class Paths(ast.NodeVisitor):
    """Walks every path through a small function: at most two iterations, an else perhaps skipped.

    A path is the set of names it has bound; `reads` holds, for each read that is reached, the sets.
    """

    def __init__(self, function):
        self.reads, self.order = {}, []
        inside = [n for s in function.body for n in ast.walk(s) if isinstance(n, ast.Name)]
        self.local = {n.id for n in inside if isinstance(n.ctx, ast.Store)}
        self.block(function.body, {frozenset()})

    def block(self, statements, paths):
        """The paths that get to the end, those that broke off, and those that go on."""
        breaks, continues = set(), set()
        for s in statements:
            paths, b, c = getattr(self, type(s).__name__)(s, paths)
            breaks, continues = breaks | b, continues | c
        return paths, breaks, continues

    def values(self, node, paths):
        """An expression, its names from left to right."""
        names = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
        for n in sorted(names, key=lambda n: (n.col_offset, isinstance(n.ctx, ast.Store))):
            if isinstance(n.ctx, ast.Load):
                self.reads.setdefault(n, set()).update(paths)
        stored = {n.id for n in names if isinstance(n.ctx, ast.Store)}
        return {path | stored for path in paths}

    def Assign(self, s, paths):
        return self.values(s, paths), set(), set()

    Expr = Pass = Assign

    def Return(self, s, paths):
        self.values(s, paths)
        return set(), set(), set()

    def Break(self, s, paths):
        return set(), paths, set()

    def Continue(self, s, paths):
        return set(), set(), paths

    def If(self, s, paths):
        paths = self.values(s.test, paths)
        sides = [self.block(side, paths) for side in (s.body, s.orelse)]
        return tuple(set(chain(*each)) for each in zip(*sides, strict=True))

    def While(self, s, paths):
        return self.loop(s, paths, lambda p, first: self.values(s.test, p), set())

    def For(self, s, paths):
        once = lambda p, first: self.values(s.iter, p) if first else p
        return self.loop(s, paths, once, {s.target.id})

    def loop(self, s, paths, test, binds):
        left = set()
        for k in range(3):
            paths = test(paths, not k)
            left |= paths
            end, broken, on = self.block(s.body, {path | binds for path in paths})
            paths, left = end | on, left | broken
        after, breaks, continues = self.block(s.orelse, left)
        return left | after, breaks, continues


def by_paths(text):
    """The text with each read that some path reaches unbound in `_jst.require_defined`."""
    tree = ast.parse(text)
    found = Paths(tree.body[0])

    class Mark(ast.NodeTransformer):
        def visit_Name(self, node):
            if node.id in found.local and any(node.id not in p for p in found.reads.get(node, ())):
                return ast.parse(f"_jst.require_defined({node.id})").body[0].value
            return node

    return ast.unparse(Mark().visit(copy.copy(tree)))


def agrees(yours, body):
    text = "def f(p):\n" + indent(dedent(body).strip(), "    ")
    expect(marked(yours, text), by_paths(text), given={"source": text})


@exercise.example
def an_if(yours):
    """y is bound on both sides, z on one."""
    text = "def f(t):\n    if t:\n        y = z = 1\n    else:\n        y = 3\n    use(y, z)"
    expect(marked(yours, text).splitlines()[-1], "    use(y, _jst.require_defined(z))", given=text)
    agrees(yours, "if x:\n    x = 1\nuse(x)")
    agrees(yours, "if (x := p):\n    pass\nuse(x)")
    agrees(yours, "\n".join(f"use(x)\nif p:\n    x = {k}" for k in range(4)) + "\nx = 4\nuse(x)")


@exercise.example
def paths_that_meet(yours):
    """`both` alone: what is in all of them; a path that nothing takes does not count."""

    class Analysis:
        pass

    both = lambda *paths: yours.both(Analysis(), *paths)
    for paths, expected in (
        (({"a", "b"}, {"b", "c"}), {"b"}),
        (({"a"}, None), {"a"}),
        ((None, {"a"}, {"a", "b"}), {"a"}),
        ((None, set()), set()),
        ((None, None), None),
        (({"a"}, {"a", "b"}, {"c"}), set()),
    ):
        got = both(*paths)
        expect_that(got == expected, f"{expected}", given={"paths": paths}, got=got)


@exercise.example
def returns(yours):
    """One side returns: what the other binds is bound. After a return nothing is reached."""
    agrees(yours, "if p:\n    return p\nelse:\n    x = 1\nuse(x)")
    agrees(yours, "if p:\n    return p\nx = 1\nuse(x)\nreturn x\nuse(y)\ny = 2")
    agrees(yours, "if p:\n    return p\nelse:\n    return p\nuse(x)\nx = 1")
    agrees(yours, "if p:\n    if p:\n        return 1\n    return 2\nelse:\n    x = 1\nuse(x)")


@exercise.example
def loops(yours):
    """No iteration, one, or several; a target; a test that binds; an else."""
    agrees(yours, "while p:\n    x = 1\n    use(x)\nuse(x)")
    agrees(yours, "while p:\n    use(x)\n    x = 1")
    agrees(yours, "while x:\n    x = 1")
    agrees(yours, "x = 1\nwhile x:\n    use(x)\n    y = x\nuse(x, y)")
    agrees(yours, "while (x := p):\n    use(x)\nuse(x)")
    agrees(yours, "for x in p:\n    y = x\n    use(y)\nuse(x, y)")
    agrees(yours, "for x in y:\n    y = x\nuse(x, y)")
    agrees(yours, "for x in p:\n    y = x\nelse:\n    use(x)\n    z = 1\n    use(z)\nuse(z)")
    agrees(yours, "while p:\n    y = 1\nelse:\n    use(y)\n    z = 1\n    use(z)\nuse(z)")
    agrees(yours, "while p:\n    if p:\n        break\n    x = 1\nelse:\n    return 1\nuse(x)")
    agrees(yours, "for x in p:\n    if p:\n        continue\n    else:\n        z = 2\n    use(z)")


def blocks(depth, in_loop):
    name = st.sampled_from("xyz")
    jumps = ["return p", *(["break", "continue"] if in_loop else [])]
    leaf = st.one_of(
        st.builds("{} = p".format, name), st.builds("use({}, {})".format, name, name),
        st.builds("{} = {}".format, name, name), st.sampled_from(jumps),
    )  # fmt: skip
    if depth:
        inside, same = blocks(depth - 1, True), blocks(depth - 1, in_loop)
        test = st.one_of(st.just("p"), name, st.builds("({} := p)".format, name))
        heads = st.one_of(
            st.builds("while {}:".format, test), st.builds("for {} in {}:".format, name, test)
        )
        under = lambda head, block: f"{head}\n{indent(block, '    ')}"
        loop = st.builds(under, heads, inside)
        ifs = st.builds(lambda t, a: under(f"if {t}:", a), test, same)
        two = st.builds(lambda a, b: a + "\n" + under("else:", b), loop | ifs, same)
        leaf = leaf | loop | ifs | two
    return st.lists(leaf, min_size=1, max_size=3).map("\n".join)


@exercise.property(block=blocks(2, False), examples=150)
def as_all_paths_say(yours, block):
    """Against a walk through every path of the function."""
    agrees(yours, block)


# ---- in the transpiler ---------------------------------------------------------------------------


def scaled(x):
    if x.sum() > 0:
        factor = x.max()
        y = x / factor
    else:
        y = x
    return y


def sometimes(x):
    if x.sum() > 0:
        factor = x.max()
    return x / factor


@exercise.example
def programs(yours):
    """A name needed on one side only does no harm; one that is read afterwards is refused."""
    linecache.checkcache()
    with exercise.plugged(yours):
        static = paddle.jit.to_static(scaled)
        for array in ([1.0, 2.0], [-1.0, -3.0]):
            expect(static(paddle.to_tensor(array)), scaled(paddle.to_tensor(array)), given=array)
        message = ""
        try:
            paddle.jit.to_static(sometimes)(paddle.to_tensor([1.0, 2.0]))
        except Exception as error:
            message = str(error)
        marks = [code_text(f).count("_jst.require_defined(") for f in (sometimes, scaled)]
    expect_that(
        "`factor` may be undefined here" in message, "an error that names factor", got=message
    )
    expect(marks, [1, 0], given="the marks in both functions")


@exercise.example
def a_network_trains(yours):
    """A rate that is set where the loss is large: captured, it learns as it does without."""
    losses = []
    for static in (False, True):
        paddle.seed(0)
        x = paddle.linspace(-1, 1, 16).reshape([-1, 1])
        net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
        adam = paddle.optimizer.Adam(0.05, parameters=net.parameters())

        def loss_of(x, net=net):
            loss = F.mse_loss(net(x), x * x)
            if loss > 0.1:
                large = loss.sqrt()
                loss = large * 0.3
            k = paddle.zeros([])
            while k < 2:
                change = loss * 0.1
                loss = loss - change
                k = k + 1
            return loss

        with exercise.plugged(yours):
            step = paddle.jit.to_static(loss_of) if static else loss_of
            for _ in range(12):
                loss = step(x)
                loss.backward()
                adam.step()
                adam.clear_grad()
        losses.append(loss.item())
    expect(losses[1], losses[0], given="12 steps, the last loss", rtol=1e-3)
