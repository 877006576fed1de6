"""Whole numbers of Python that a loop on a tensor carries do not wrap around."""

import pytest

import minipaddle as paddle


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
    with pytest.raises(OverflowError, match="leaves 64 bits in a loop on a tensor"):
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
