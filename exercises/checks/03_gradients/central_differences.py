"""Checks of 03_gradients/central_differences."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.testing import check_grad

exercise = Exercise(
    title="A slope without rules, and what counts as equal",
    level="easy",
    minutes=20,
    before=("02_autograd",),
    slots={"gradcheck.slope": "slope", "gradcheck.agrees": "agrees"},
    hints=(
        "You stand epsilon to the right of x, then epsilon to the left. How far apart are the two "
        "places, and which arrays does f get to see?",
        "x.copy() makes an array of your own, and array[index] += … changes one element of it, "
        "also for index (). For `agrees`, chapter 3 says why NaN is caught by `<=` and not by `>`.",
        "one copy of x, epsilon more at index\n"
        "another copy, epsilon less at index\n"
        "return (f of the one - f of the other) / (2 * epsilon)\n"
        "agrees: is |derivative - quotient| at most atol + rtol * the larger size?",
    ),
    wrong={
        "dividing by the step instead of twice the step": "2 * epsilon → epsilon",
        "nudging x itself": "(x.copy(), x.copy()) → (x, x.copy())",
        "nudging one copy up, then down from there": "(x.copy(), x.copy()) → [x.copy()] * 2",
        "nudging every element": "ahead[index] += epsilon → ahead += epsilon",
        "forgetting the parentheses around 2 * epsilon": (
            "(f(ahead) - f(behind)) / (2 * epsilon) → (f(ahead) - f(behind)) / 2 * epsilon"
        ),
        "down minus up": "f(ahead) - f(behind) → f(behind) - f(ahead)",
        "an absolute tolerance only": "atol + rtol * max(abs(derivative), abs(quotient)) → atol",
        "a relative tolerance only": (
            "atol + rtol * max(abs(derivative), abs(quotient)) → rtol * max(abs(derivative), "
            "abs(quotient))"
        ),
        "letting NaN pass": (
            "abs(derivative - quotient) <= allowed → not abs(derivative - quotient) > allowed"
        ),
        "comparing without sizes": "abs(derivative - quotient) → derivative - quotient",
        "sizes with their signs": "max(abs(derivative), abs(quotient)) → max(derivative, quotient)",
        "a forward difference": ("behind[index] -= epsilon → pass", "2 * epsilon → epsilon"),
    },
    unkillable={
        "slope: right only for arrays that are not empty": "such an array has no index",
    },
)


@exercise.example
def a_square(yours):
    """(3.5² - 2.5²) / 1 = 6: for a parabola a central difference is exact, whatever the step."""
    x = np.array([1.0, 3.0])
    found = yours.slope(lambda x: float((x**2).sum()), x, (1,), 0.5)
    expect(found, 6.0, given={"f": "sum of squares", "x": x, "index": (1,), "epsilon": 0.5})


@exercise.example
def x_stays_as_it_is(yours):
    """x belongs to somebody else, and f may keep what it is given: the checker asks it again."""
    x, seen = np.array([[1.0, 2.0], [3.0, 4.0]]), []
    yours.slope(lambda x: seen.append(x) or 0.0, x, (1, 0), 0.25)
    expect(x, [[1.0, 2.0], [3.0, 4.0]], given={"index": (1, 0)}, why="x was changed")
    expect(len(seen), 2, why="f is asked twice")
    values = sorted([array.tolist() for array in seen])
    right = [[[1.0, 2.0], [2.75, 4.0]], [[1.0, 2.0], [3.25, 4.0]]]
    expect(
        values,
        right,
        given={"x": x, "index": (1, 0), "epsilon": 0.25},
        why="f was asked at other points",
    )


@exercise.example
def no_axes(yours):
    """The index of an array without axes is ()."""
    found = yours.slope(lambda x: float(x) ** 3, np.array(2.0), (), 1.0)
    expect(found, 13.0, given={"f": "cube", "x": 2.0, "index": (), "epsilon": 1.0})
    place = (0, 1) * 4
    found = yours.slope(lambda x: float(x[place]), np.ones((1, 2) * 4), place, 1.0)
    expect(found, 1.0, given={"f": "one element", "x": "ones of eight axes", "index": place})


@exercise.example
def the_error_falls_with_the_square(yours):
    """A step ten times smaller is a hundred times better: that is what `central` buys."""
    f, x = (lambda x: float(np.exp(x[0]))), np.zeros(1)
    coarse, fine = (abs(yours.slope(f, x, (0,), e) - 1) for e in (0.1, 0.01))
    expect(coarse / fine, 100.0, given={"f": "exp", "x": x}, rtol=0.01, why="how much better")


def judged(yours, cases) -> dict:
    """What `agrees` says of each case (derivative, quotient, rtol, atol)."""
    return {str(case): bool(yours.agrees(*case)) for case in cases}


@exercise.example
def a_share_of_the_larger_size(yours):
    """rtol = 0.01: 101 may be missed by 1.01, whichever of the two is the 101."""
    cases = {
        (100.0, 101.0, 0.01, 0.0): True,
        (101.0, 100.0, 0.01, 0.0): True,
        (-100.0, -101.0, 0.01, 0.0): True,
        (100.0, 102.0, 0.01, 0.0): False,
    }
    expect(judged(yours, cases), {str(case): right for case, right in cases.items()})


@exercise.example
def an_absolute_part_besides(yours):
    """atol is allowed on top, also where both are near zero; exactly that much is allowed."""
    cases = {
        (0.0, 0.5, 0.0, 0.5): True,
        (0.5, 0.0, 0.0, 0.25): False,
        (4.0, 8.0, 0.25, 2.0): True,
        (4.0, 8.25, 0.25, 2.0): False,
    }
    expect(judged(yours, cases), {str(case): right for case, right in cases.items()})


@exercise.example
def another_sign(yours):
    """100 and -100 have the same size and lie 200 apart."""
    cases = {(100.0, -100.0, 0.01, 0.0): False, (-100.0, 100.0, 0.01, 0.0): False}
    expect(judged(yours, cases), {str(case): right for case, right in cases.items()})


@exercise.example
def nothing_agrees_with_nan(yours):
    """A derivative that is NaN must never pass, however loose the tolerance."""
    nan, inf = float("nan"), float("inf")
    cases = [(1.0, nan, 0.5, 1.0), (nan, 1.0, 0.5, 1.0), (nan, nan, 0.5, 1.0), (1.0, inf, 0.0, 1.0)]
    expect(judged(yours, cases), {str(case): False for case in cases})


@exercise.property(
    shape=st.lists(st.integers(1, 4), max_size=3), place=st.integers(0, 63), seed=st.integers(0, 99)
)
def every_element_of_every_shape(yours, shape, place, seed):
    """The slope of Σ w·tanh(x) by one element is its w (1 - tanh² x), and depends on no other."""
    x, w = np.random.default_rng(seed).normal(size=(2, *shape))
    x, w = np.array(x), np.array(w)
    index = np.unravel_index(place % x.size, x.shape)
    found = yours.slope(lambda x: float((w * np.tanh(x)).sum()), x, index, 1e-5)
    exact = w[index] * (1 - np.tanh(x[index]) ** 2)
    expect(found, exact, given={"x": x, "index": index}, rtol=1e-7, atol=1e-9)


def accepted(function, *inputs, **options):
    try:
        check_grad(function, *inputs, **options)
    except AssertionError as error:
        return str(error)
    return "accepted"


@exercise.example
def the_real_checker_runs_on_it(yours):
    """check_grad on your two functions: a network's rules pass, wrong rules are found."""
    random = np.random.default_rng(0)
    inputs = paddle.to_tensor(random.normal(size=(5, 6)))
    labels = paddle.to_tensor([0, 1, 2, 3, 0])
    w1, w2 = random.normal(size=(6, 3)), random.normal(size=(3, 4))

    def loss(w1, w2):
        return F.cross_entropy(paddle.tanh(inputs @ w1) @ w2, labels)

    wrong = {
        "ops.tanh.vjp": (paddle.tanh, lambda g, out: g * (1 - out)),
        "ops.exp.vjp": (paddle.exp, lambda g: g),
        "ops.sin.vjp": (paddle.sin, lambda g, x: g * paddle.cos(x).detach()),
    }
    with exercise.plugged(yours):
        verdict = accepted(loss, w1, w2)
        expect(verdict, "accepted", given={"the engine": "with the right rules"})
        verdict = accepted(lambda x, k: (x[k] ** 3).sum(), [0.5, -2.0], [1, 1], order=2)
        expect(verdict, "accepted", given={"f": "x[1]³ + x[1]³, to second order"})
        for slot, (operator, rule) in wrong.items():
            with paddle.plugged(slot, rule):
                verdict = accepted(operator, [0.7, 1.1], order=2)
            expect_that(
                verdict != "accepted", "a wrong rule is found", given={"wrong": slot}, got=verdict
            )
        with paddle.plugged("ops.matmul.vjp.x", lambda g, y: 2 * (g @ y.t())):
            verdict = accepted(paddle.matmul, [[0.5, 1.0], [2.0, 3.0]], [[4.0, 5.0], [6.0, 7.0]])
    expect_that(
        "for the inputs: [[0.5]], [[4.0]]" in verdict,
        "the smallest failing input of a matmul: one number times one number",
        got=verdict,
    )


def bilinear(yours, x):
    """The slope of x[1, 1] · x[0, 0] by x[1, 1]: x[0, 0], whatever the step."""
    step = float(np.abs(x[0, 0])) / 2
    found = yours.slope(lambda x: float(x[1, 1] * x[0, 0]), x, (1, 1), step)
    return np.asarray(found, x.dtype)


exercise.holds(bilinear, lambda x: x[0, 0], [(3, 4)], large=[(40, 30)], infinite=[np.inf])
