"""Collectives as operators: values and derivatives against PyTorch, which sees all ranks at once.

The oracle writes each collective as a function of the tensors of all ranks in one process; its
autograd knows nothing of ranks. The losses of all ranks are added up, as a training step does.
"""

import numpy as np
import pytest
import torch

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle.distributed.collectives import operators as ops
from minipaddle.engine.passes.manager import optimized

SIZE = 3
X = np.random.default_rng(0).uniform(0.5, 2, (SIZE, 6, 2))
W = np.random.default_rng(1).uniform(0.5, 2, (SIZE, 64))


def total(op):
    fold = {"sum": torch.Tensor.sum, "avg": torch.Tensor.mean, "prod": torch.Tensor.prod}
    fold |= {"max": torch.Tensor.amax, "min": torch.Tensor.amin}
    return lambda xs: fold[op](torch.stack(xs), 0)


def part(x, k):
    return x.chunk(SIZE)[k]


def only(k, y):
    return [y if r == k else torch.zeros_like(y) for r in range(SIZE)]


ROWS = np.array([[1, 2, 3], [2, 2, 2], [0, 6, 0]])  # from rank r to rank k


def uneven(xs):
    cuts = [x.split(rows.tolist()) for x, rows in zip(xs, ROWS)]
    return [torch.cat([cuts[r][k] for r in range(SIZE)]) for k in range(SIZE)]


def ring(x):
    rank = dist.get_rank()
    sent = ops.send(x, dst=(rank + 1) % SIZE)
    return ops.recv(sent, shape=(6, 2), src=(rank - 1) % SIZE)


CASES = {
    **{
        f"all_reduce {op}": (
            lambda x, op=op: (ops.all_reduce if op in "sum avg" else ops.all_fold)(x, op=op),
            lambda xs, op=op: [total(op)(xs)] * SIZE,
        )
        for op in ("sum", "avg", "max", "min", "prod")
    },
    "broadcast": (lambda x: ops.broadcast(x, src=1), lambda xs: [xs[1]] * SIZE),
    "reduce": (lambda x: ops.reduce(x, dst=2), lambda xs: only(2, total("sum")(xs))),
    "reduce avg": (lambda x: ops.reduce(x, dst=0, op="avg"), lambda xs: only(0, total("avg")(xs))),
    "all_gather": (lambda x: ops.all_gather(x, nranks=SIZE), lambda xs: [torch.cat(xs)] * SIZE),
    "gather": (lambda x: ops.gather(x, nranks=SIZE, dst=1), lambda xs: only(1, torch.cat(xs))),
    "reduce_scatter": (
        lambda x: ops.reduce_scatter(x, nranks=SIZE),
        lambda xs: [part(total("sum")(xs), k) for k in range(SIZE)],
    ),
    "reduce_scatter avg": (
        lambda x: ops.reduce_scatter(x, nranks=SIZE, op="avg"),
        lambda xs: [part(total("avg")(xs), k) for k in range(SIZE)],
    ),
    "scatter": (
        lambda x: ops.scatter(x, nranks=SIZE, src=2),
        lambda xs: [part(xs[2], k) for k in range(SIZE)],
    ),
    "all_to_all": (
        ops.all_to_all,
        lambda xs: [torch.cat([part(x, k) for x in xs]) for k in range(SIZE)],
    ),
    "all_to_all uneven": (
        lambda x: ops.all_to_all(
            x,
            sent=tuple(ROWS[dist.get_rank()].tolist()),
            received=tuple(ROWS[:, dist.get_rank()].tolist()),
        ),
        uneven,
    ),
    "send and recv": (ring, lambda xs: [xs[k - 1] for k in range(SIZE)]),
}


def weighed(y, w):
    return (y.reshape([-1]) ** 3 * w).sum()


def in_ranks(call, wrap=lambda f: f):
    """For each rank its result, first and second derivative."""

    def work():
        rank = dist.get_rank()
        x = paddle.to_tensor(X[rank], stop_gradient=False)

        def both(x):
            y = call(x)
            loss = weighed(y, paddle.to_tensor(W[rank, : y.size]))
            (g,) = paddle.grad(loss, x, create_graph=True)
            (gg,) = paddle.grad((g**2).sum(), x)
            return y, g, gg

        return [z.numpy() for z in wrap(both)(x)]

    return dist.spawn(work, nprocs=SIZE, timeout=20).results


def in_one(call):
    xs = [torch.tensor(x, requires_grad=True) for x in X]
    ys = call(xs)
    loss = sum(weighed(y, torch.tensor(w[: y.numel()])) for y, w in zip(ys, W))
    zeros = {"allow_unused": True, "materialize_grads": True}
    gs = torch.autograd.grad(loss, xs, create_graph=True, **zeros)
    ggs = torch.autograd.grad(sum((g**2).sum() for g in gs), xs, **zeros)
    return [[z.detach().numpy() for z in zs] for zs in zip(ys, gs, ggs)]


@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives(name):
    ours, oracle = CASES[name]
    for found, expected in zip(in_ranks(ours), in_one(oracle)):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10)


@pytest.mark.parametrize("backend", ["interpreter", "native"])
@pytest.mark.parametrize("name", ["all_reduce sum", "reduce_scatter avg", "send and recv"])
def test_in_programs(name, backend):
    """A program runs them too; compiled, by the host between two kernels."""
    ours, oracle = CASES[name]
    static = lambda f: paddle.jit.to_static(f, backend=backend)
    for found, expected in zip(in_ranks(ours, static), in_one(oracle)):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10)


def test_no_pass_drops_doubles_or_reorders_them():
    """Equal collectives, and one nobody looks at, are all there after all passes, in order."""

    @paddle.jit.to_static
    def f(x):
        y = ops.all_reduce(x * 2)
        z = ops.all_reduce(x * 2)
        ops.broadcast(x, src=0)
        return ops.all_fold(y + z, op="max")

    x = paddle.ones([4])
    assert f(x).tolist() == [4.0] * 4
    left = optimized(f.concrete_program.program).program.records
    names = [r.op.name for r in left if r.op in ops.COLLECTIVES]
    assert names == ["all_reduce", "all_reduce", "broadcast", "all_fold"]


def test_begun_and_finished():
    """Two journeys at once, several tensors in each; a program runs them as eager mode does."""

    def both(a, b):
        first = ops.start_all_reduce(a, b, op="avg")
        second = ops.start_all_reduce(a * 2)
        (doubled,) = ops.finish_all_reduce(second, shapes=((2, 3),), dtype=np.dtype("float32"))
        shapes = ((2, 3), (4,))
        return (doubled, *ops.finish_all_reduce(first, shapes=shapes, dtype=np.dtype("float32")))

    def work():
        rank = dist.get_rank()
        a, b = paddle.full([2, 3], rank + 1.0), paddle.full([4], rank * 3.0)
        paths = [both, *(paddle.jit.to_static(both, backend=k) for k in ("interpreter", "native"))]
        return [[float(x.numpy().reshape(-1)[-1]) for x in path(a, b)] for path in paths]

    assert dist.spawn(work, nprocs=3, timeout=20).results == [[[12.0, 2.0, 3.0]] * 3] * 3


def test_several_in_one_message():
    """Gathered and scattered together, one of them empty: as each by itself."""
    shapes, f32 = ((3, 2), (3,), (0, 4), (6, 1)), np.dtype("float32")

    def work():
        draw = np.random.default_rng(dist.get_rank())
        xs = [paddle.to_tensor(draw.normal(size=shape).astype("float32")) for shape in shapes]
        alone = [ops.all_gather(x, nranks=3) for x in xs]
        alone += [ops.reduce_scatter(x, nranks=3) for x in xs]
        ticket = ops.start_collective(*xs, collective="all_gather")
        whole = [(3 * n, *rest) for n, *rest in shapes]
        found = ops.finish_collective(ticket, shapes=whole, dtype=f32, parts=3)
        ticket = ops.start_collective(*xs, collective="reduce_scatter", op="sum")
        parts = [(n // 3, *rest) for n, *rest in shapes]
        found += ops.finish_collective(ticket, shapes=parts, dtype=f32)
        return [np.array_equal(a, b) and a.shape == b.shape for a, b in zip(alone, found)]

    assert dist.spawn(work, nprocs=3, timeout=20).results == [[True] * 8] * 3


def test_refusals():
    with pytest.raises(ValueError, match="4 ranks cannot share 6 rows"):
        ops.reduce_scatter.infer(paddle.ones([6]).spec, nranks=4, op="sum", group=0)
    with pytest.raises(ValueError, match="no axis cannot be cut"):
        ops.all_gather(paddle.ones([]), nranks=2)
    with pytest.raises(ValueError, match="group 7"):
        ops.all_reduce(paddle.ones([2]), group=7)
    x = paddle.ones([2], "float32")
    x.stop_gradient = False
    with pytest.raises(NotImplementedError, match="all_reduce has it"):
        ops.reduce(x, op="max").sum().backward()
    with pytest.raises(ValueError, match="one dtype"):
        ops.start_all_reduce(paddle.ones([2]), paddle.ones([2], "float64"))
