"""Checks of 09_to_static/guards."""

from itertools import product

from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.engine.core.dim import at, larger, smaller, symbol
from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.static import InputSpec

exercise = Exercise(
    title="Decisions about open sizes: certain for every size, or guarded",
    level="hard",
    minutes=50,
    before=("09_to_static/sizes",),
    slots={"dim.bounds": "bounds", "dim.certain": "certain", "jit.allowed": "allowed"},
    hints=(
        "n is at least 1. What is the least value of 3n + 2, and the greatest? And of 5 - n? What "
        "does that say about `3n + 2 > 0`?",
        "Chapter 9, “A decision about a size”; `bounds` stands in "
        "minipaddle/engine/core/polynomial.py, `certain` in core/dim.py, `allowed` in "
        "jit/cache.py.",
        "bounds: per term the products of the lows and of the highs, None if one is; times the "
        "coefficient, exchanged if it is negative; then sums\n"
        "certain '<': True if high < 0, False if low >= 0, else None; the others alike\n"
        "allowed: if all symbols are known and the answer would be another: False; else True",
    ),
    wrong={
        "a negative coefficient that does not exchange the bounds": "if coefficient < 0: → pass",
        "a missing bound counted as 0": (
            "None if None in parts else sum(parts) → sum((part for part in parts if part is "
            "not None))"
        ),
        "multiplying bounds of what may be negative": (
            "if len(ends) > 1 and any((least is None or least < 0 for least, _ in ends)): → pass"
        ),
        "the bounds of the last term alone": (
            "(_sum(lows), _sum(highs)) → (_sum(lows[-1:]), _sum(highs[-1:]))"
        ),
        "certain where it is only possible": (
            "True if yes else False if no else None → False if no else True"
        ),
        "never certain that the answer is no": "False if no else None → None",
        "equal when the bounds touch 0": (
            "False if below or above else None → False if below or above else True if low == "
            "high == 0 else None"
        ),
        "less or equal taken for less": "(upto, above) → (below, from_)",
        "a bound of 0 that is overlooked": (
            "(high is not None and high <= 0, low is not None and low >= 0) → (bool(high) and "
            "high <= 0, bool(low) and low >= 0)"
        ),
        "guards that were answered with no are forgotten": (
            "known and COMPARE[sign](at(left, sizes), at(right, sizes)) != answer → answer and "
            "known and (COMPARE[sign](at(left, sizes), at(right, sizes)) != answer)"
        ),
        "asking for sizes that are not known yet": (
            "known and COMPARE[sign](at(left, sizes), at(right, sizes)) != answer → "
            "COMPARE[sign](at(left, sizes), at(right, sizes)) != answer"
        ),
        "looking at the left side of a guard only": (
            "symbols(left) | symbols(right) → symbols(left)"
        ),
        "every program serves every size": "allowed(): False → True",
        "one guard that holds is enough": (
            "COMPARE[sign](at(left, sizes), at(right, sizes)) != answer → "
            "COMPARE[sign](at(left, sizes), at(right, sizes)) == answer",
            "allowed(): return True → return not guards",
            "allowed(): return False → return True",
        ),
    },
    unkillable={
        "if coefficient < 0: → if coefficient <= 0:": "no term has the coefficient 0",
        "if coefficient < 0: → if coefficient < 1:": "no term has the coefficient 0",
    },
)  # fmt: skip


# ---- bounds ----------------------------------------------------------------------------------


def sizes():
    """Symbols with bounds of all kinds: n, m from 1, u0 from 0, a remainder, a minimum, n - 7."""
    n, m, u = symbol("n", 5), symbol("m", 2), symbol("u0", 3)
    return {"n": n, "m": m, "u": u, "r": n % 4, "s": smaller(m, 6), "d": larger(n - 7, -2)}


@exercise.example
def bounds_by_hand(yours):
    """Sums, products and coefficients; the size of an argument is at least 1."""
    n, m, u, r, s, d = sizes().values()
    e = larger(n - 3, -1)
    cases = [
        (7, (7, 7)), (0, (0, 0)), (-3, (-3, -3)), (n, (1, None)), (u, (0, None)),
        (2 * n, (2, None)), (2 * n - 1, (1, None)), (n - 4, (-3, None)), (5 - n, (None, 4)),
        (n * m, (1, None)),
        (3 * n * m + n + 2, (6, None)), (-2 * n * m, (None, -2)), (n - m, (None, None)),
        (n * u + 1, (1, None)), (r, (0, 3)), (2 * r + 1, (1, 7)), (1 - r, (-2, 1)),
        (r - s, (-6, 2)),
        (s, (1, 6)), (r * s, (0, 18)), (-1 * r * s + 4, (-14, 4)), (n + r, (1, None)),
        (r - n, (None, 2)), (d, (-2, None)), (d + n, (-1, None)), (-1 * d, (None, 2)),
        (d * n, (None, None)), (d * n + 3, (None, None)),
        (e, (-1, None)), (e * m, (None, None)), (r * n - s, (-6, None)), (u - r, (-3, None)),
    ]  # fmt: skip
    for x, expected in cases:
        expect(yours.bounds(x), expected, given={"x": str(x)})


VALUES = st.fixed_dictionaries({"n": st.integers(1, 12), "m": st.integers(1, 12),
                                "u0": st.integers(0, 9)})  # fmt: skip
TERMS = st.lists(
    st.tuples(st.integers(-3, 3), st.lists(st.sampled_from("nmursd"), max_size=2)), max_size=3
)


@exercise.property(terms=TERMS, values=VALUES, examples=50)
def a_value_is_within(yours, terms, values):
    """Whatever the sizes are, the value lies between the bounds."""
    known, x = sizes(), 0
    for c, names in terms:
        term = c
        for name in names:
            term = term * known[name]
        x = x + term
    low, high = yours.bounds(x)
    number = at(x, values)
    given = {"x": str(x), "sizes": values, "its value": number}
    expect_that(low is None or low <= number, "a value not below the least", given=given, got=low)
    expect_that(high is None or number <= high, "nor above the greatest", given=given, got=high)


# ---- certain ---------------------------------------------------------------------------------

ENDS = (None, -2, -1, 0, 1, 2)
COMPARES = {"==": int.__eq__, "<": int.__lt__, "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__}


@exercise.example
def certain_by_counting(yours):
    """All pairs of small bounds: compare every number in between, far out where there is none."""
    for low, high, sign in product(ENDS, ENDS, COMPARES):
        first, last = -9 if low is None else low, 9 if high is None else high
        if first > last:
            continue
        answers = {COMPARES[sign](k, 0) for k in range(first, last + 1)}
        expected = answers.pop() if len(answers) == 1 else None
        if sign == "==" and expected:
            expected = None
        got = yours.certain(low, high, sign)
        given = {"low": low, "high": high, "sign": sign}
        expect_that(got is expected, f"{expected}", given=given, got=got)


# ---- allowed ---------------------------------------------------------------------------------


@exercise.example
def allowed_by_hand(yours):
    """Two guards about n and m; one about a size that only the run knows."""
    n, m, u = symbol("n", 5), symbol("m", 2), symbol("u0", 3)
    guards = [(n, ">", 4, True), (n, "==", 2 * m, False)]
    late = [(u, ">", n, True), (n, "<", u, False)]
    cases = [
        ([], {"n": 1}, True), ([], {}, True), (guards, {"n": 5, "m": 2}, True),
        (guards, {"n": 4, "m": 1}, False), (guards, {"n": 6, "m": 3}, False),
        (guards, {"n": 4, "m": 2}, False), (guards[:1], {"n": 4}, False),
        (guards[:1], {"n": 9}, True),
        (guards[1:], {"n": 4, "m": 2}, False), (guards[1:], {"n": 4, "m": 3}, True),
        (late, {"n": 3}, True), ([*late, *guards], {"n": 4, "m": 9}, False),
        ([(3, "<=", n, True)], {"n": 3}, True), ([(3, "<=", n, True)], {"n": 2}, False),
        ([(n, ">", k, True) for k in range(8)], {"n": 8}, True),
        ([(n, ">", k, True) for k in range(8)], {"n": 7}, False),
    ]  # fmt: skip
    for rules, known, expected in cases:
        text = ", ".join(f"({a} {sign} {b}) is {answer}" for a, sign, b, answer in rules)
        got = yours.allowed(rules, known)
        expect(bool(got), expected, given={"guards": text, "sizes": known})


# ---- the real thing --------------------------------------------------------------------------


def certainly(x):
    n = x.shape[0]
    if 2 * n > 1 and n + n * n >= 2 and not n < 1 and -n < 0:
        return x * 2
    return x


def three_ways(x):
    n = x.shape[0]
    if n > 6:
        return x.reshape([-1]) * n
    if n % 2 == 0:
        return x.sum(axis=0)
    return -x


def two_sizes(x, y):
    if x.shape[0] < 2 * y.shape[0] and x.shape[0] != y.shape[0]:
        return x.sum() + y.sum()
    return x.sum() - y.sum()


def positives(x):
    found = x[x > 0]
    if found.shape[0] > x.shape[0] - 1:
        return found.sum() * 10
    return found.sum()


SPEC = [InputSpec([None, 2], name="x")]
BOTH = [InputSpec(["n"], name="x"), InputSpec(["m"], name="y")]


def kind(n) -> int:
    return 2 if n > 6 else n % 2


@exercise.property(lengths=st.lists(st.integers(1, 10), min_size=1, max_size=7), examples=12)
def programs_for_decisions(yours, lengths):
    """The real to_static: right numbers for every size, and one program for each way through."""
    with exercise.plugged(yours):
        static, sure = (paddle.jit.to_static(f, input_spec=SPEC) for f in (three_ways, certainly))
        for n in lengths:
            x = paddle.arange(2 * n, dtype="float32").reshape([n, 2])
            expect(static(x), three_ways(x), given={"lengths": lengths, "n": n})
            expect(sure(x), certainly(x), given={"lengths": lengths, "n": n})
        given = {"lengths": lengths, "asked": "programs"}
        expect(len(static.program_cache), len({*map(kind, lengths)}), given=given)
        expect(len(sure.program_cache), 1, given=given | {"of": "what is true for every size"})


@exercise.example
def guards_in_the_program(yours):
    """What is certain needs no guard; what is not is written down with its answer."""
    x = paddle.ones([3, 2])
    with exercise.plugged(yours):
        for function, expected in (
            (certainly, []),
            (three_ways, ["x0 > 6: False", "(x0%2) == 0: False"]),
        ):
            static = paddle.jit.to_static(function, input_spec=[InputSpec(["x0", 2], name="x")])
            static(x)
            found = [f"{a} {sign} {b}: {answer}"
                     for a, sign, b, answer in static.main_program.guards]  # fmt: skip
            expect(found, expected, given={"function": function.__name__, "x": "float32[3, 2]"})


@exercise.example
def two_symbols(yours):
    """A comparison of two sizes."""
    with exercise.plugged(yours):
        static = paddle.jit.to_static(two_sizes, input_spec=BOTH)
        for n, m in ((2, 3), (3, 2), (4, 2), (3, 3), (5, 1), (9, 8)):
            x, y = paddle.ones([n]), paddle.ones([m]) * 2
            expect(static(x, y), two_sizes(x, y), given={"n": n, "m": m})
        expect_that(len(static.program_cache) <= 3, "at most three programs", given="six calls",
                    got=len(static.program_cache))  # fmt: skip


class Pooled(nn.Layer):
    """Short sequences are averaged, long ones are averaged in halves."""

    def __init__(self):
        super().__init__()
        self.read, self.out = nn.Linear(3, 8), nn.Linear(8, 2)

    def forward(self, x):
        h, n = self.read(x).tanh(), x.shape[1]
        if n > 4:
            h = (h[:, : n // 2].mean(axis=1) + h[:, n // 2 :].max(axis=1)) / 2
        else:
            h = h.mean(axis=1)
        return self.out(h)


@exercise.example
def a_network_trains(yours):
    """Sequences of six lengths: the losses of eager mode, and two programs."""
    losses = []
    for static in (False, True):
        paddle.seed(0)
        net = Pooled()
        adam = paddle.optimizer.Adam(0.01, parameters=net.parameters())
        with exercise.plugged(yours):
            spec = [InputSpec([4, None, 3], name="x")]
            forward = paddle.jit.to_static(net.forward, input_spec=spec) if static else net.forward
            for n in (2, 7, 4, 5, 3, 9):
                x = paddle.arange(n * 12, dtype="float32").reshape([4, n, 3]).sin()
                loss = F.cross_entropy(forward(x), paddle.arange(4) % 2)
                loss.backward()
                adam.step()
                adam.clear_grad()
                losses.append(loss.item())
            if static:
                expect(len(forward.program_cache), 2, given="programs for six lengths")
    expect(losses[6:], losses[:6], given="six losses", rtol=1e-4)
