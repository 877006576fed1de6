"""Slices of a fixed length that begin at a tensor: compiled, they select what NumPy does."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.engine.executors.compiler import compiler
from minipaddle.engine.ir.program import open_sizes
from minipaddle.viz.target import executable_of

BACKENDS = ["interpreter", "native"] if compiler() else ["interpreter"]

CASES = {  # name: (set or read a slice, the places that it selects)
    "one": (lambda x, i: x[i : i + 1], lambda i: np.s_[i : i + 1]),
    "two of the second axis": (lambda x, i: x[:, i : i + 2], lambda i: np.s_[:, i : i + 2]),
    "behind an ellipsis": (lambda x, i: x[..., i + 1 : i + 3], lambda i: np.s_[..., i + 1 : i + 3]),
    "around": (lambda x, i: x[1, i - 1 : 2 + i], lambda i: np.s_[1, i - 1 : i + 2]),
    "a new axis": (lambda x, i: x[:, None, i : i + 2], lambda i: np.s_[:, None, i : i + 2]),
    "beside a slice": (lambda x, i: x[1:, :, i : i + 1], lambda i: np.s_[1:, :, i : i + 1]),
    "none": (lambda x, i: x[:, i + 1 : i], lambda i: np.s_[:, i + 1 : i]),
    "a step of one": (lambda x, i: x[:, i : i + 2 : 1], lambda i: np.s_[:, i : i + 2]),
}


def array(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((4, 5, 6)).astype("float32")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["int64", "int32"])
@pytest.mark.parametrize("name", CASES)
def test_what_is_read(name, dtype, backend):
    read, key = CASES[name]
    static = paddle.jit.to_static(lambda x, i: read(x, i) + 0, backend=backend)
    for i in (1, 2):
        x = array(i)
        found = static(paddle.to_tensor(x), paddle.to_tensor(i, dtype=dtype))
        np.testing.assert_array_equal(found.numpy(), x[key(i)])
    assert not open_sizes(static.concrete_program.program)
    assert not static.concrete_program.executables.reasons


def write_one(x, i, y):
    x[i : i + 1] = y
    return x


def write_second(x, i, y):
    x[:, i : i + 2] = y
    return x


def write_last(x, i, y):
    x[..., i + 1 : i + 3] = y
    return x


def write_around(x, i, y):
    x[1, i - 1 : 2 + i] = y
    return x


def write_none(x, i, y):
    x[:, i + 1 : i] = y
    return x


WRITES = {
    "one": write_one, "two of the second axis": write_second, "behind an ellipsis": write_last,
    "around": write_around, "none": write_none,
}  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", WRITES)
def test_what_is_written(name, backend):
    static, key = paddle.jit.to_static(WRITES[name], backend=backend), CASES[name][1]
    for i in (2, 1):
        x = array(i)
        given, value = paddle.to_tensor(x.copy()), np.float32(7 + np.arange(x[key(i)].size))
        value = value.reshape(x[key(i)].shape)
        static(given, paddle.to_tensor(i), paddle.to_tensor(value))
        x[key(i)] = value
        np.testing.assert_array_equal(given.numpy(), x)
    assert not static.concrete_program.executables.reasons


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("i", [4, 6, -1, -2, 2**40])
def test_no_part_lies_outside(i, backend):
    static, x = paddle.jit.to_static(write_second, backend=backend), array()
    given = paddle.to_tensor(x.copy())
    static(given, paddle.to_tensor(0), paddle.to_tensor(x[:, :2]))
    with pytest.raises(IndexError, match="out of bounds"):
        static(given, paddle.to_tensor(i), paddle.zeros([4, 2, 6]))
    np.testing.assert_array_equal(given.numpy(), x)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_derivative_of_a_slice_that_moves(backend):
    def loss(x, i, y):
        z = x * 2
        z[:, i : i + 2] = y
        return (z[:, i + 1 : i + 3] ** 2).sum()

    gradients = []
    for function in (loss, paddle.jit.to_static(loss, backend=backend)):
        x, y = (paddle.to_tensor(a, stop_gradient=False) for a in (array(), array(1)[:, :2]))
        function(x, paddle.to_tensor(1), y).backward()
        gradients.append([x.grad.numpy(), y.grad.numpy()])
    for a, b in zip(*gradients, strict=True):
        np.testing.assert_array_equal(a, b)
    assert np.abs(gradients[0][0]).sum() > 0 < np.abs(gradients[0][1]).sum()


def test_a_view_of_it_is_refused():
    """As everywhere in programs: what it views would not change."""

    @paddle.jit.to_static
    def write(x, i):
        part = x[:, i : i + 2]
        part[...] = 1
        return x + part.sum()

    with pytest.raises(NotImplementedError, match="change of a view"):
        write(paddle.ones([2, 4]), paddle.to_tensor(1))


@pytest.mark.parametrize("backend", BACKENDS)
def test_other_keys_stay_slices(backend):
    """Two such slices, an array beside one, an end that is no number further: as NumPy has them."""

    def several(x, i, j):
        return x[i : i + 2, j : j + 1], x[[0, 2], i : i + 1], x[i:j]

    static, x = paddle.jit.to_static(several, backend=backend), array()
    found = static(paddle.to_tensor(x), paddle.to_tensor(1), paddle.to_tensor(3))
    for a, b in zip(found, (x[1:3, 3:4], x[[0, 2], 1:2], x[1:3]), strict=True):
        np.testing.assert_array_equal(a.numpy(), b)


def test_a_loop_that_writes_a_value_it_carries_wants_no_gradient():
    """Else the loop would keep the values of all iterations, whose number only a run knows."""

    def fill(cache, x):
        cache, at = cache * 1, paddle.to_tensor(0)
        while at < 4:
            cache[:, at : at + 1] = x
            x = x * 2 + cache.sum()
            at = at + 1
        return cache

    static, found = paddle.jit.to_static(fill), []
    for flows in (False, True):
        x = paddle.to_tensor(array()[:, :1], stop_gradient=not flows)
        static(paddle.ones([4, 4, 6]), x)
        program = static.concrete_program.program
        found.append([r.attrs["keep"] for r in program.records if r.op.name == "while_loop"])
    assert found == [[False], [True]]


@pytest.mark.skipif(compiler() is None, reason="no C compiler: install gcc or clang")
def test_a_loop_writes_slices_where_they_lie():
    def decode(cache, x):
        cache, at = cache * 1, paddle.to_tensor(0)
        while at < 6:
            cache[:, at : at + 1] = x + cache[:, at : at + 1]
            x = x + cache.sum(1, keepdim=True)
            at = at + 1
        return cache

    cache, x = array()[:, :, :3].repeat(2, 1), array(1)[:, :1, :3]
    given = paddle.to_tensor(cache), paddle.to_tensor(x)
    static = paddle.jit.to_static(decode, backend="native")
    np.testing.assert_allclose(static(*given).numpy(), decode(*given).numpy(), rtol=1e-5)
    made = executable_of(static)
    assert "by the host: nothing" in made.report()
    loops = [plans["body"] for plans in made.plan.regions.values()]
    assert [c for plan in loops for c in plan.copies if c.value.spec.ndim == 3] == []
