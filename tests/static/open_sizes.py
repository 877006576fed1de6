"""How a function with open sizes is tried: one program at several sizes, against eager mode."""

import numpy as np

import minipaddle as paddle
from minipaddle import nn


def spec(*shape, dtype="float32"):
    """An InputSpec; sizes may be names."""
    return paddle.static.InputSpec(list(shape), dtype)


def drawn(specs, sizes: dict) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    arrays = []
    for s in specs:
        shape = [sizes.get(n, n) for n in s.shape]
        floats = s.dtype == paddle.float32
        arrays.append(
            rng.standard_normal(shape).astype("float32") if floats else rng.integers(0, 5, shape)
        )
    return arrays


def tried(function, arrays) -> list:
    """Results, then gradients of the sum of squares of those that have one."""
    xs = [paddle.to_tensor(a, stop_gradient=a.dtype.kind != "f") for a in arrays]
    results = function(*xs)
    results = flat(results)
    tensors = [y for y in results if isinstance(y, paddle.Tensor)]
    losses = [(y * y).sum() for y in tensors if not y.stop_gradient]
    if losses:
        sum(losses[1:], losses[0]).backward()
    return [*results, *(x.grad for x in xs if x.grad is not None)]


def flat(results) -> list:
    if isinstance(results, list | tuple):
        return [y for part in results for y in flat(part)]
    return [results]


def compare(make, specs, sizes, programs: int = 1, tolerance: float = 1e-5) -> None:
    """`make()` gives a function or a layer; it must need no more than `programs` programs."""
    paddle.seed(0)
    eager = make()
    if isinstance(eager, nn.Layer):
        eager.eval()
    forward = eager.forward if isinstance(eager, nn.Layer) else eager
    static = paddle.jit.to_static(forward, input_spec=specs)
    for now in sizes:
        arrays = drawn(specs, now)
        wanted, got = tried(eager, arrays), tried(static, arrays)
        assert len(wanted) == len(got)
        for a, b in zip(wanted, got, strict=True):
            if isinstance(a, paddle.Tensor):
                assert (a.shape, a.dtype) == (b.shape, b.dtype)
                np.testing.assert_allclose(
                    b.astype("float32").numpy(), a.astype("float32").numpy(),
                    rtol=10 * tolerance, atol=tolerance,
                )  # fmt: skip
            else:
                assert a == b
                assert type(a) is type(b)
    assert len(static.program_cache) == programs
