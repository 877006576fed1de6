"""Sizes that a program knows when it runs: polynomials agree with the integers they stand for."""

import operator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minipaddle.engine.core import dim as dims
from minipaddle.engine.core.dim import assuming, at, hint_of, larger, match_sizes, smaller, symbol

N, M = symbol("n", 6), symbol("m", 4)
U = symbol("u0", 480)
SIZES = {"n": 6, "m": 4, "u0": 0}
STEPS = [operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, larger, smaller]
ON_INTS = {larger: max, smaller: min}


@st.composite
def expressions(draw):
    """(Dim or int, the function of n and m it should be)."""
    kind = draw(st.integers(0, 2))
    value, meaning = [
        (N, lambda n, m: n),
        (M, lambda n, m: m),
        (draw(st.integers(-4, 5)),) * 2,
    ][kind]
    if kind == 2:
        meaning = lambda n, m, c=value: c
    for _ in range(draw(st.integers(0, 4))):
        step = draw(st.sampled_from(STEPS))
        other, of_other = draw(
            st.sampled_from([(N, lambda n, m: n), (M, lambda n, m: m), (2, lambda n, m: 2),
                             (3, lambda n, m: 3), (-1, lambda n, m: -1)])
        )  # fmt: skip
        value = step(value, other)
        meaning = combined(ON_INTS.get(step, step), meaning, of_other)
    return value, meaning


def combined(step, a, b):
    return lambda n, m: step(a(n, m), b(n, m))


@settings(derandomize=True, max_examples=100, deadline=None)
@given(expressions(), st.integers(1, 9), st.integers(1, 9))
def test_arithmetic_is_that_of_integers(expression, n, m):
    value, meaning = expression
    assert at(value, {"n": n, "m": m}) == meaning(n, m)
    assert hint_of(value) == meaning(6, 4)


@settings(derandomize=True, max_examples=150, deadline=None)
@given(expressions(), st.integers(1, 9), st.integers(1, 9))
def test_bounds_hold(expression, n, m):
    value, meaning = expression
    low, high = dims.bounds(value)
    assert low is None or low <= meaning(n, m)
    assert high is None or meaning(n, m) <= high


@settings(derandomize=True, max_examples=100, deadline=None)
@given(expressions(), expressions(), st.sampled_from(list(dims.COMPARE)))
def test_what_is_decided_silently_holds_for_all(left, right, sign):
    """An answer is noted unless it holds whatever the sizes are."""
    noted, note = [], lambda *found: noted.append(found)
    with assuming(note=note):
        a, b = (dims.as_guarded(x, True) for x in (left[0], right[0]))
        answer = dims.COMPARE[sign](a, b)
    assert answer == dims.COMPARE[sign](left[1](6, 4), right[1](6, 4))
    for n in range(1, 6) if not noted else ():
        for m in range(1, 6):
            assert answer == dims.COMPARE[sign](left[1](n, m), right[1](n, m))


@settings(derandomize=True, max_examples=100, deadline=None)
@given(expressions(), st.integers(1, 9), st.integers(1, 9))
def test_renaming(expression, n, m):
    value, meaning = expression
    assert at(dims.rename(value, {"n": "k"}), {"k": n, "m": m}) == meaning(n, m)
    assert dims.rename(value, {"n": n, "m": m}) == meaning(n, m)
    assert hint_of(dims.replace_hints(value, {"n": n, "m": m})) == meaning(n, m)


def test_numbers_come_out_as_numbers():
    assert N - N == 0
    assert 6 * N // (2 * N) == 3
    assert (4 * N + 6) % 2 == 0
    assert divmod(2 * N + 1, 2) == (N, 1)
    assert divmod(9, 4 + N - N) == (2, 1)
    assert larger(N, 1) is N
    assert smaller(N, 1) == 1
    assert larger(N - N, 2) == 2
    assert str((N + 1) // 2) == "((n + 1)//2)"
    assert str(larger(N - 2, 0)) == "max(n - 2, 0)"
    assert f"{N:d} {+N} {abs(N)}" == "n n n"
    assert (N + 1) ** 2 == N * N + 2 * N + 1


def test_values_may_be_nothing():
    """A size that values decide may be 0, any other is at least 1."""
    assert smaller(U, 1) != 1
    assert dims.bounds(U)[0] == 0
    assert dims.bounds(N) == (1, None)
    assert dims.bounds(N % 4) == (0, 3)
    assert dims.bounds((N - M) // 2) == (None, None)
    assert dims.bounds(N * (N - M))[0] is None


def test_equality():
    assert symbol("n", 9) == N
    assert N != M
    assert N != 6
    assert hash(N) == hash(symbol("n", 1))
    assert N != "n"
    assert N is not None
    assert match_sizes(operator.eq, (2, N), (2, 6))
    assert match_sizes(operator.ne, N, 1)
    assert match_sizes(operator.ne, symbol("k", 1), 1)
    with assuming([(2 * N, "==", 2 * M + 4, True)]):
        assert N == M + 2
        assert N - 2 == M
    assert N != M + 2


def test_sizes_that_must_be_equal():
    noted, note = [], lambda *found: noted.append(found)
    with assuming(note=note):
        assert dims.same(N, 6)
        assert dims.same(N, 6)
        assert not dims.same(M, 5)
        assert N + 1 == 7
        assert dims.is_one(symbol("k", 1))
        assert not dims.is_one(N)
        assert dims.same_shape((N, 2), (6, 2))
        assert not dims.same_shape((N,), (6, 2))
        dims.suppose(U, "<=", M)
    assert [" ".join(map(str, found)) for found in noted] == [
        "n == 6 True", "m == 5 False", "k == 1 True", "u0 <= m True",
    ]  # fmt: skip


def test_floats():
    assert N > 5.5
    assert N >= 6.0
    assert not N < 5.5
    assert N <= 6.5
    assert float("inf") > N
    guarded = dims.as_guarded(N, True)
    assert guarded == 6.0
    assert guarded != 6.5


def test_never():
    assert dims.never(N, "<", 1)
    assert not dims.never(N, "<", 2)
    assert dims.never(3, "<", 2)


def test_errors_teach():
    with pytest.raises(TypeError, match="the size n is known only when the program runs"):
        range(N)
    for unknown in (lambda: N / 2, lambda: 2 / N, lambda: N * 0.5, lambda: N + 0.5, lambda: N**0.5):
        with pytest.raises(TypeError, match="no number yet"):
            unknown()
    with pytest.raises(ZeroDivisionError):
        N // 0
    with pytest.raises(TypeError):
        N + "a"
    with pytest.raises(TypeError):
        operator.lt(N, "a")
    with pytest.raises(TypeError):
        N // "a"
