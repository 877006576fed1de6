"""Checks of 11_passes/algebra."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.engine.core.record import Spec
from minipaddle.engine.eager.device import NUMPY
from minipaddle.engine.eager.tracer import trace
from minipaddle.engine.ir.interpreter import Run
from minipaddle.engine.passes.algebra import algebra
from minipaddle.engine.passes.dead_code import dead_code
from minipaddle.engine.passes.manager import optimized
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Rules of algebra, for numbers that are not quite numbers",
    level="medium",
    minutes=30,
    before=("11_passes/dead_code",),
    slots={"algebra.numbers": "numbers", "algebra.transposes": "transposes"},
    hints=(
        "Put 0.0, -0.0, inf and nan into each of the trees: for which of them does x + 0 give "
        "something other than x?",
        "`math.frexp(c)` is (f, e) with c = f * 2**e; of a power of two f is 0.5 or -0.5. For the "
        "two transposes: axis d of the result is axis q[d] of the inner one, and that is …",
        "four of the trees do not hold, and have no rule: x + 0, x * 0, x - x, x / x\n"
        "RewriteRule(lambda x, *, c: x / c, lambda x, *, c: …, power_of_two)\n"
        "RewriteRule(lambda x, *, p, q: transpose(transpose(x, perm=p), perm=q),\n"
        "     lambda x, *, p, q: transpose(x, perm=p[d] for each d of q, as a tuple))",
    ),
    wrong={
        "x + 0 is x": "x - 0 → x + 0",
        "x - 0 forgotten": (
            "[RewriteRule(lambda x: x * 1, _same), RewriteRule(lambda x: x / 1, _same), "
            "RewriteRule(lambda x: x - 0, _same), RewriteRule(lambda x: pow(x, 1), _same), "
            "RewriteRule(lambda x: x * -1, neg), RewriteRule(lambda x: neg(neg(x)), _same), "
            "RewriteRule(lambda x, y: x - neg(y), lambda x, y: x + y), RewriteRule(lambda x, y: x "
            "+ neg(y), lambda x, y: x - y), RewriteRule(lambda x: pow(x, 2), square), "
            "RewriteRule(lambda x: maximum(x, x), _same), RewriteRule(lambda x: minimum(x, x), "
            "_same), RewriteRule(lambda c, x: where(c, x, x), lambda c, x: x), RewriteRule(lambda "
            "x, *, c: x / c, lambda x, *, c: x * (1 / c), _power_of_two)] → [RewriteRule(lambda x: "
            "x * 1, _same), RewriteRule(lambda x: x / 1, _same), RewriteRule(lambda x: pow(x, 1), "
            "_same), RewriteRule(lambda x: x * -1, neg), RewriteRule(lambda x: neg(neg(x)), "
            "_same), RewriteRule(lambda x, y: x - neg(y), lambda x, y: x + y), RewriteRule(lambda "
            "x, y: x + neg(y), lambda x, y: x - y), RewriteRule(lambda x: pow(x, 2), square), "
            "RewriteRule(lambda x: maximum(x, x), _same), RewriteRule(lambda x: minimum(x, x), "
            "_same), RewriteRule(lambda c, x: where(c, x, x), lambda c, x: x), RewriteRule(lambda "
            "x, *, c: x / c, lambda x, *, c: x * (1 / c), _power_of_two)]"
        ),
        "x - x is 0": (
            "RewriteRule(lambda x: x / 1, _same) → RewriteRule(lambda x: x - x, lambda x: x * 0)"
        ),
        "a division by any number is a product": (
            "RewriteRule(lambda x, *, c: x / c, lambda x, *, c: x * (1 / c), _power_of_two) → "
            "RewriteRule(lambda x, *, c: x / c, lambda x, *, c: x * (1 / c))"
        ),
        "a product as if the number were its own inverse": "1 / c → c",
        "negative powers of two forgotten": "abs(fraction) → fraction",
        "any even number": "abs(fraction) == 0.5 → c == int(c) and c % 2 == 0",
        "as small or large as it likes": (
            "2.0 ** (-126) <= abs(c) <= 2.0 ** 126 → 0 < abs(c) < math.inf"
        ),
        "y - x for x - y": "x - y → y - x",
        "x - -y forgotten": (
            "[RewriteRule(lambda x: x * 1, _same), RewriteRule(lambda x: x / 1, _same), "
            "RewriteRule(lambda x: x - 0, _same), RewriteRule(lambda x: pow(x, 1), _same), "
            "RewriteRule(lambda x: x * -1, neg), RewriteRule(lambda x: neg(neg(x)), _same), "
            "RewriteRule(lambda x, y: x - neg(y), lambda x, y: x + y), RewriteRule(lambda x, y: x "
            "+ neg(y), lambda x, y: x - y), RewriteRule(lambda x: pow(x, 2), square), "
            "RewriteRule(lambda x: maximum(x, x), _same), RewriteRule(lambda x: minimum(x, x), "
            "_same), RewriteRule(lambda c, x: where(c, x, x), lambda c, x: x), RewriteRule(lambda "
            "x, *, c: x / c, lambda x, *, c: x * (1 / c), _power_of_two)] → [RewriteRule(lambda x: "
            "x * 1, _same), RewriteRule(lambda x: x / 1, _same), RewriteRule(lambda x: x - 0, "
            "_same), RewriteRule(lambda x: pow(x, 1), _same), RewriteRule(lambda x: x * -1, neg), "
            "RewriteRule(lambda x: neg(neg(x)), _same), RewriteRule(lambda x, y: x + neg(y), "
            "lambda x, y: x - y), RewriteRule(lambda x: pow(x, 2), square), RewriteRule(lambda x: "
            "maximum(x, x), _same), RewriteRule(lambda x: minimum(x, x), _same), "
            "RewriteRule(lambda c, x: where(c, x, x), lambda c, x: x), RewriteRule(lambda x, *, c: "
            "x / c, lambda x, *, c: x * (1 / c), _power_of_two)]"
        ),
        "the condition instead of the value": "lambda c, x: x → lambda c, x: c",
        "perms in the other order": "(p[d] for d in q) → (q[d] for d in p)",
        "the inner perm is enough": "tuple((p[d] for d in q)) → p",
        "every transpose does nothing": (
            "RewriteRule(lambda x, *, p: transpose(x, perm=p), _same, lambda x, p: list(p) == "
            "sorted(p)) → RewriteRule(lambda x, *, p: transpose(x, perm=p), _same)"
        ),
        "only transposes of matrices": "list(p) == sorted(p) → p == (0, 1)",
        "twice is nothing": (
            "lambda x, *, p, q: transpose(x, perm=tuple((p[d] for d in q))) → _same"
        ),
    },
)

HOSTILE = np.array(
    [[0.0, -0.0, np.inf, -np.inf], [np.nan, 1e-45, 3.4e38, -1.5], [1e-38, 3.0, -7.1, 0.1]], "f4"
)


def program_of(function, *shapes):
    specs = [Spec(shape, np.dtype("float32")) for shape in shapes or [(3, 4)]]
    return trace(lambda *xs: [function(*xs)], specs, names=["x", "y"][: len(specs)]).program


def left(yours, function, *shapes, arrays=None):
    """The operators that are left; results must be the same, to the last bit."""
    program = program_of(function, *shapes)
    with exercise.plugged(yours):
        after = dead_code(algebra(program))
    arrays = arrays or [HOSTILE, HOSTILE[::-1, ::-1].copy()][: len(program.inputs)]
    with np.errstate(all="ignore"):
        (expected,), (got,) = (Run(NUMPY)(p, list(arrays)) for p in (program, after))
    same = (expected == got) & (np.signbit(expected) == np.signbit(got))
    same |= np.isnan(expected) & np.isnan(got)
    says = {"program": str(program), "after the rules": str(after), "x": arrays[0]}
    if not same.all():
        expect_that(False, "the same to the last bit", given=says | {"wanted": expected}, got=got)
    return " ".join(r.op.name for r in after.records)


@exercise.example
def nothing_is_left(yours):
    """Trees that are x itself, for all floats."""
    for text, function in {
        "x * 1": lambda x: x * 1.0,
        "1 * x": lambda x: 1 * x,
        "x / 1": lambda x: x / 1,
        "x - 0": lambda x: x - 0.0,
        "x ** 1": lambda x: x**1,
        "-(-x)": lambda x: paddle.neg(-x),
        "max(x, x)": lambda x: paddle.maximum(x, x),
        "min(x, x)": lambda x: paddle.minimum(x, x),
        "-(-(x * 1 / 1))": lambda x: paddle.neg(-(x * 1.0 / 1.0)),
    }.items():
        expect(left(yours, function), "", given=text, why="operators that are left")
    found = left(yours, lambda x: paddle.where(x > 0, x, x))
    expect(found, "", given="where(x > 0, x, x)", why="operators that are left")


@exercise.example
def one_less(yours):
    """Trees for which there is a shorter or faster one."""
    for text, function, expected in (
        ("x * -1", lambda x: x * -1.0, "neg"),
        ("e^x - -x", lambda x: x.exp() - (-x), "exp add"),
        ("e^x + -x", lambda x: x.exp() + (-x), "exp subtract"),
        ("-x + e^x", lambda x: (-x) + x.exp(), "exp subtract"),
        ("x ** 2", lambda x: x**2, "square"),
        ("x / 8", lambda x: x / 8.0, "multiply"),
        ("x / -0.25", lambda x: x / -0.25, "multiply"),
        ("x / 2", lambda x: x / 2, "multiply"),
        ("x / 2^126", lambda x: x / 2.0**126, "multiply"),
        ("x / 2^-126", lambda x: x / 2.0**-126, "multiply"),
    ):
        expect(left(yours, function), expected, given=text, why="operators that are left")


@exercise.example
def what_does_not_hold(yours):
    """These look like rules. For some float each of them is wrong, so all stay."""
    for text, function, expected in (
        ("x + 0", lambda x: x + 0.0, "add"),
        ("x - -0.0", lambda x: x - -0.0, "subtract"),
        ("x * 0", lambda x: x * 0.0, "multiply"),
        ("x - x", lambda x: x - x, "subtract"),
        ("x / x", lambda x: x / x, "divide"),
        ("x / 3", lambda x: x / 3.0, "divide"),
        ("x / 6", lambda x: x / 6, "divide"),
        ("x / 0", lambda x: x / 0.0, "divide"),
        ("x / inf", lambda x: x / float("inf"), "divide"),
        ("x / 2^-140", lambda x: x / 2.0**-140, "divide"),
        ("x / 2^127", lambda x: x / 2.0**127, "divide"),
        ("x / 2^-127", lambda x: x / 2.0**-127, "divide"),
        ("-x", lambda x: -x, "neg"),
        ("max(x, -x)", lambda x: paddle.maximum(x, -x), "neg maximum"),
    ):
        with exercise.plugged(yours):
            names = [r.op.name for r in dead_code(algebra(program_of(function))).records]
        expect(" ".join(names), expected, given=text, why="operators that are left")
        left(yours, function)


@exercise.example
def two_values_are_two(yours):
    """max(x, y) is no max(x, x), and a difference has an order."""
    two = (3, 4), (3, 4)
    for function, expected in (
        (lambda x, y: paddle.maximum(x, y), "maximum"),
        (lambda x, y: paddle.minimum(x, y), "minimum"),
        (lambda x, y: paddle.where(x > 0, x, y), "greater_than where"),
        (lambda x, y: x - (-y), "add"),
        (lambda x, y: x + (-y), "subtract"),
        (lambda x, y: (-y) + x, "subtract"),
        (lambda x, y: (-y) - x, "neg subtract"),
    ):
        expect(left(yours, function, *two), expected, given=str(program_of(function, *two)))


@exercise.property(exponent=st.integers(-150, 150), odd=st.sampled_from((1, -1, 3, 5, -7, 1.5)),
                   examples=40)  # fmt: skip
def every_divisor(yours, exponent, odd):
    """x / c for c = odd · 2^exponent: a product if c is a power of two, and not too far out."""
    c = odd * 2.0**exponent
    found = left(yours, lambda x: x / c)
    product = odd in (1, -1) and -126 <= exponent <= 126
    expected = "multiply" if product else "divide"
    if c == 1:
        expected = ""
    elif c == -1:
        expected = found if found in ("neg", "multiply") else "neg"
    expect(found, expected, given={"c": c, "odd": odd, "exponent": exponent})


@exercise.property(p=st.permutations(range(4)), q=st.permutations(range(4)))
def transposes_of_transposes(yours, p, q):
    """Against NumPy's, which does them one after the other."""
    x = np.arange(81, dtype="float32").reshape(3, 3, 3, 3)
    found = left(yours, lambda x: x.transpose(p).transpose(q), x.shape, arrays=[x])
    same = np.array_equal(x.transpose(p).transpose(q), x) and [p[d] for d in q] == [0, 1, 2, 3]
    expect(found, "" if same else "transpose", given={"first": p, "then": q})
    found = left(yours, lambda x: x.transpose(p), x.shape, arrays=[x])
    expect(found, "" if p == [0, 1, 2, 3] else "transpose", given={"perm": p})


@exercise.example
def on_a_real_model(yours):
    """The training step of a small network: fewer records; the same loss and the same weights."""
    paddle.seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 1))
    adam = paddle.optimizer.Adam(0.01, parameters=net.parameters())

    @paddle.jit.to_static
    def step(x, y):
        loss = F.mse_loss(net(x / 2) * 1.0, y)
        loss.backward()
        adam.step()
        adam.clear_grad()
        return loss

    step(paddle.randn([16, 4]), paddle.randn([16, 1]))
    program = step.main_program
    with exercise.plugged(yours):
        done = optimized(program, until="algebra")
    ops = [r.op.name for r in done.program.records]
    expect_that("transpose" not in ops[:3], "no transpose that does nothing", got=ops[:3])
    arrays = [np.linspace(0.1, 0.9, r.spec.size).astype(r.dtype).reshape(r.shape)
              for r in program.given]  # fmt: skip
    expected, got = (Run(NUMPY)(p, [a.copy() for a in arrays]) for p in (program, done.program))
    for a, b in zip(expected, got, strict=True):
        expect(np.array(b), np.array(a), given=str(program)[:300], rtol=1e-3, atol=1e-5)
