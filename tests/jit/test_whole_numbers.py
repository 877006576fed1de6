"""Whole numbers of Python that only a run knows do not wrap around."""

import pytest

import minipaddle as paddle
from minipaddle.jit.dy2static.utils import Dygraph2StaticException


def times(n):
    r = 1
    while n > 0:
        r, n = r * -10, n - 1
    return r


def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def factorial(n):
    r = 1
    for i in range(1, n + 1):
        r = r * i
    return r


def doubled(n):
    r = 1
    while n > 0:
        r += r
        n -= 1
    return r


def cubed(n):
    r = 3
    while n > 0:
        r, n = r**3, n - 1
    return r


def shifted(n):
    r = 1
    while n > 0:
        r, n = r << 1, n - 1
    return r


def by_a_large_step(n):
    r = 0
    while n > 0:
        r, n = r + 2**62, n - 1
    return r


GROWING = {times: 18, fibonacci: 91, factorial: 20, doubled: 62, cubed: 3, shifted: 62,
           by_a_large_step: 1}  # fmt: skip
"""A function, and for which n its result has 64 bits, and that of some larger n has not."""


@pytest.mark.parametrize("backend", ["interpreter", "native"])
@pytest.mark.parametrize("function", GROWING, ids=lambda f: f.__name__)
def test_what_leaves_64_bits_is_refused(function, backend):
    static, most = paddle.jit.to_static(function, backend=backend), GROWING[function]
    for n in (0, 1, most):
        assert int(static(paddle.to_tensor(n))) == int(function(paddle.to_tensor(n)))
    with pytest.raises(OverflowError, match="leaves 64 bits"):
        static(paddle.to_tensor(most + 3))


def of_a_tensor(n):
    r = paddle.to_tensor(1)
    while n > 0:
        r, n = r * 10, n - 1
    return r


def kept_small(n):
    r = 1
    while n > 0:
        r, n = (r * 1103515245 + 12345) % 2**31, n - 1
    return r


@pytest.mark.parametrize("function", [of_a_tensor, kept_small])
def test_a_tensor_wraps_and_a_remainder_fits(function):
    static = paddle.jit.to_static(function)
    for n in (0, 7, 30):
        assert int(static(paddle.to_tensor(n))) == int(function(paddle.to_tensor(n)))


def test_a_counter_is_not_checked():
    def counts(n):
        k = 0
        while n > 0:
            k, n = k + 1, n - 1
        return k

    static = paddle.jit.to_static(counts)
    assert int(static(paddle.to_tensor(4))) == 4
    assert "check" not in str(static.main_program)


def chosen(t):
    n = 2**62 if t > 0 else 1
    return n + n


def chosen_by_a_side(t):
    n = 5
    if t > 0:
        n = 2**63 - 1
    return n + 1


def powered(t):
    n = 10 if t > 0 else 1
    return n**20


def cast(t):
    return int(t * 2**30) * 2**40


def greatest(t):
    return max(int(t) * 2**40, 3) * 2**30


def changed_in_a_loop_by_a_side(t):
    n, i = 1, 0
    while i < t + 8:
        if t > 0:
            n = n * 1000
        i += 1
    return n


def multiplied_after_a_loop(t):
    n, i = 1, 0
    while i < 8 * t:
        n, i = n * 16, i + 1
    return n * 2**40


def too_long_from_the_start(t):
    n = 1
    if t > 0:
        n = 2**70
    return n


LEAVES = [chosen, chosen_by_a_side, powered, cast, greatest, changed_in_a_loop_by_a_side,
          multiplied_after_a_loop]  # fmt: skip
"""Functions whose result has 64 bits for 0 and more for 1."""


@pytest.mark.parametrize("backend", ["interpreter", "native"])
@pytest.mark.parametrize("function", LEAVES, ids=lambda f: f.__name__)
def test_what_a_condition_or_a_cast_gives_does_not_wrap(function, backend):
    static = paddle.jit.to_static(function, backend=backend)
    assert int(static(paddle.to_tensor(0))) == int(function(paddle.to_tensor(0)))
    with pytest.raises(OverflowError, match="leaves 64 bits"):
        static(paddle.to_tensor(1))


def test_a_number_that_no_program_can_hold_is_refused_with_its_name():
    with pytest.raises(Dygraph2StaticException, match=r"`n` is 1180591620717411303424"):
        paddle.jit.to_static(too_long_from_the_start)(paddle.to_tensor(0))


def test_bounds_show_what_needs_no_check():
    def fits(t):
        n = 3 if t > 0 else -(2**20)
        return paddle.arange(9)[int(t.astype("int32")) * 2 + 1] + (-n * 2**30 - 1) % 5

    static = paddle.jit.to_static(fits)
    for t in (0, 1, 2):
        assert int(static(paddle.to_tensor(t))) == int(fits(paddle.to_tensor(t)))
    assert "check" not in str(static.main_program)
