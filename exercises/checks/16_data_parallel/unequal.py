"""Checks of 16_data_parallel/unequal."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle.distributed.collectives import unequal_batches
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Unequal batches: the gradient of the joined batch",
    level="easy",
    minutes=20,
    before=("02_autograd",),
    slots={"distributed.joined_mean": "joined_mean"},
    hints=(
        "Write the mean of the joined batch as a sum over the ranks. What stands before the mean "
        "loss of rank r in it? And what does an average over the ranks divide by?",
        "Every rank knows its own count alone; one all-reduce tells it the sum of all. The sum "
        "must be a tensor, because in a program only tensors can be communicated.",
        "total = a tensor of the count, in the loss's dtype; all_reduce(total)\n"
        "return loss · count · (number of ranks) / total",
    ),
    wrong={
        "the mean of means": "loss * (count * ranks / total) → loss",
        "a sum where the ranks take an average": "count * ranks → count",
        "the weight turned over": "count * ranks / total → total / (count * ranks)",
        "sums of losses, not means": "count * ranks / total → count",
        "every rank alike": "count * ranks → ranks",
        "nobody asked the others": "paddle.distributed.all_reduce(total, group=group) → pass",
        "always all ranks, whatever the group": (
            (
                "paddle.distributed.all_reduce(total, group=group) → "
                "paddle.distributed.all_reduce(total)"
            ),
            "paddle.distributed.get_world_size(group) → paddle.distributed.get_world_size()",
        ),
        "always in float32": "loss.dtype → 'float32'",
    },
    unkillable={
        f"joined_mean: right only for {kind}": "a loss is one number"
        for kind in ("small arrays", "arrays that are not empty")
    },
)


def returned(yours, losses, counts, dtype="float64", static=False):
    """What each rank returns."""

    def step(loss):
        return yours.joined_mean(loss, counts[dist.get_rank()])

    def rank():
        own = losses[dist.get_rank()]
        loss = paddle.to_tensor(own, dtype=dtype)
        found = (paddle.jit.to_static(step) if static else step)(loss)
        expect(loss.item(), np.dtype(dtype).type(own), given="the loss of a rank, afterwards")
        return found

    return dist.spawn(rank, nprocs=len(losses), timeout=20.0).results


@exercise.example
def in_the_task(yours):
    """Losses 4 of three samples and 8 of one."""
    got = [x.item() for x in returned(yours, [4.0, 8.0], [3, 1])]
    expect(got, [6.0, 4.0], given="4.0 of 3 samples, 8.0 of 1")


@exercise.example
def a_rank_without_samples(yours):
    """Three samples, none, one: the one without takes part, and counts for nothing."""
    got = [x.item() for x in returned(yours, [4.0, 0.0, 8.0], [3, 0, 1])]
    expect(got, [9.0, 0.0, 6.0], given="4.0 of 3 samples, none, 8.0 of 1")


@exercise.example
def one_rank(yours):
    """Alone, the loss is the loss."""
    expect(returned(yours, [3.0], [5])[0].item(), 3.0)


@exercise.example
def the_dtype_stays(yours):
    """float64 stays float64, to the last digit; float32 stays float32."""
    for dtype in ("float64", "float32"):
        a, b = returned(yours, [1.0 / 3, 0.1], [3, 4], dtype)
        expect((str(a.numpy().dtype), a.shape), (dtype, []), given={"dtype": dtype})
        rtol = 1e-15 if dtype == "float64" else 1e-6
        expect((a.item() + b.item()) / 2, (1.0 + 0.4) / 7, given={"dtype": dtype}, rtol=rtol)
    a, b = returned(yours, [1e-9, 3e-9], [1, 1])
    expect((a.item(), b.item()), (1e-9, 3e-9), given="losses 1e-9 and 3e-9", atol=0)
    a, b = returned(yours, [np.inf, 1.0], [3, 1])
    expect(a.item() + b.item(), np.inf, given="losses inf and 1.0")


@exercise.example
def a_group_of_some(yours):
    """Ranks 0 and 2 of three are a group: rank 1 has no part in it."""

    def rank():
        group, me = dist.new_group([0, 2]), dist.get_rank()
        if me == 1:
            return None
        return yours.joined_mean(paddle.to_tensor([4.0, 0.0, 8.0][me]), [3, 9, 1][me], group).item()

    got = dist.spawn(rank, nprocs=3, timeout=20.0).results
    expect(got, [6.0, None, 4.0], given="the group of ranks 0 and 2")


@exercise.property(
    counts=st.lists(st.integers(1, 5), min_size=2, max_size=3), seed=st.integers(0, 9)
)
def the_gradient_of_the_joined_batch(yours, counts, seed):
    """A program with your loss, on ranks: the gradient in closed form, 2/N Xᵀ(Xw)."""
    rng = np.random.default_rng(seed)
    x, w = rng.standard_normal((sum(counts), 3)), rng.standard_normal((3, 1))
    bounds = np.cumsum([0, *counts])

    def rank():
        me = dist.get_rank()
        net = paddle.nn.Linear(3, 1, bias_attr=False)
        net.to(dtype="float64")
        net.weight.set_value(w)
        net = paddle.DataParallel(net)

        def step(own):
            loss = (net(own) ** 2).mean()
            unequal_batches.joined_mean(loss, counts[me]).backward()
            return net.parameters()[0].grad

        own = paddle.to_tensor(x[bounds[me] : bounds[me + 1]])
        return (paddle.jit.to_static(step) if seed % 2 else step)(own).numpy()

    with exercise.plugged(yours):
        found = dist.spawn(rank, nprocs=len(counts), timeout=20.0).results
    expected = 2 / len(x) * x.T @ (x @ w)
    for got in found:
        expect(got, expected, given={"batches of": counts}, rtol=1e-9)
    expect_that(all(np.array_equal(found[0], g) for g in found), "the same bits", got=found)
