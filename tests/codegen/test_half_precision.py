"""Half precision in loops of C: a value is rounded wherever the interpreter rounds it."""

import numpy as np
import pytest
import torch

import minipaddle as paddle


@pytest.mark.parametrize("how", [{}, {"backend": "native"}], ids=str)
def test_every_value_is_rounded(how):
    """A value of half precision is rounded, and overflows, where it is not stored, too."""

    def f(x):
        low = (x.astype("float16") * 3.0 + 1.0).astype("float32") - 2.0
        brain = (x.astype("bfloat16") * 3.0 + 1.0).astype("float32") - 2.0
        return low, brain, (x.astype("float16").sum() * 0.5).astype("float32")

    x = np.float32([1.001, 30000.0, -7e4, 1e-9, 3.3, 2049.0, np.nan])
    low, brain, _ = (paddle.jit.to_static(f, **how) if how else f)(paddle.to_tensor(x))
    for found, kind in ((low, torch.float16), (brain, torch.bfloat16)):
        y = torch.tensor(x).to(kind) * 3.0 + 1.0
        assert np.array_equal(found.numpy(), (y.float() - 2.0).numpy(), equal_nan=True)
    y = (paddle.jit.to_static(f, **how) if how else f)(paddle.full([4], 3e4))
    assert y[2].item() == np.inf


def test_all_numbers_of_float16_and_what_becomes_of_floats():
    """In C as in NumPy: denormal numbers, ties, infinities, NaN."""
    halves = np.arange(1 << 16, dtype="uint16").view("float16")
    bits = np.random.default_rng(0).integers(0, 1 << 32, 1 << 16, dtype="uint32")
    near = np.repeat(halves[:0x7C00].astype("float32"), 2)
    near[1::2] = (near[1::2] + np.append(near[3::2], 65536)) / 2  # halfway to the next one
    floats = np.concatenate([bits.view("float32"), near, -near])
    back = lambda x: (x.astype("float16"), x.astype("float16").astype("float32") * 1.0)
    f = paddle.jit.to_static(back, backend="native")
    wide = paddle.jit.to_static(lambda x: x.astype("float32"), backend="native")
    with np.errstate(over="ignore", invalid="ignore"):
        want = floats.astype("float16")
    for got in f(paddle.to_tensor(floats)):
        assert np.array_equal(got.numpy(), want.astype(got.numpy().dtype), equal_nan=True)
        assert np.array_equal(np.signbit(got.numpy()), np.signbit(want))
    got = wide(paddle.to_tensor(halves)).numpy()
    assert np.array_equal(got, halves.astype("float32"), equal_nan=True)


def test_what_is_rounded_stays_as_it_is():
    """ReLU, its derivative and the larger of two round nothing: denormal numbers, infinities and
    NaN go through, and what was not rounded before is.
    """
    bits = np.arange(0, 1 << 16, 3, dtype="uint16")
    x = torch.tensor(bits.view("int16")).view(torch.bfloat16)
    y = x.flip(0)

    def both(lib):
        relu, high = lib.nn.functional.relu, lib.maximum

        def f(x, y):
            wide = x.astype("float32") if lib is paddle else x.float()
            low = (wide * 1.003).astype("bfloat16") if lib is paddle else (wide * 1.003).bfloat16()
            return relu(x), high(x, y), relu(low), high(low, y)

        return f

    run = paddle.jit.to_static(both(paddle), backend="native")
    wide = [paddle.to_tensor(a.float().numpy()).astype("bfloat16") for a in (x, y)]
    for got, want in zip(run(*wide), both(torch)(x, y), strict=True):
        got, want = got.astype("float32").numpy(), want.float().numpy()
        assert np.array_equal(got, want, equal_nan=True)


def test_a_choice_computes_a_root_that_it_may_leave_out():
    def f(c, x, y):
        return paddle.where(c, x, y.sqrt() / (y + 1.0)), paddle.where(y > 0, y.sqrt(), x)

    rng = np.random.default_rng(0)
    c, x, y = rng.normal(size=(3, 1000)).astype("float32")
    given = paddle.to_tensor(c > 0), paddle.to_tensor(x), paddle.to_tensor(y)
    run = paddle.jit.to_static(f, backend="native")
    first, second = (a.numpy() for a in run(*given))
    assert "choose_float(" in run.executables[0].source.own
    with np.errstate(invalid="ignore"):
        root = np.sqrt(y)
    np.testing.assert_allclose(first, np.where(c > 0, x, root / (y + 1)), rtol=1e-6)
    np.testing.assert_allclose(second, np.where(y > 0, root, x), rtol=1e-6)
