"""Checks of 19_less_memory/merge."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle.distributed import fleet
from minipaddle.distributed.fleet.merging import GradientMerge
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Merge the mean: micro-batches make one step",
    level="medium",
    minutes=30,
    before=("16_data_parallel/unequal",),
    slots={"fleet.merge": "merge", "fleet.update": "update"},
    hints=(
        "Gradients 1 and 3 of one weight: what must `p.grad` be when the optimizer steps, and what "
        "before the next backward?",
        "`self.average_sums()` averages the sums over the ranks already. What is left to divide "
        "by? And which tensors must be zero when `update` returns?",
        "merge: sum ← sum + p.grad; p without a gradient\n"
        "update: for each pair p.grad = sum / k_steps, if it is to be the mean\n"
        "    step\n"
        "    for each sum: p without a gradient, the sum zeros\n"
        "    return []",
    ),
    wrong={
        "the last micro-batch alone": "merged + p.grad → p.grad",
        "gradients that stay": "merge(): p.clear_gradient(set_to_zero=False) → pass",
        "zeros for a gradient": "merge(): p.clear_gradient(set_to_zero=False) → "
                                "p.clear_gradient(set_to_zero=True)",
        "always the sum": "total / self.k_steps if self.avg else total → total",
        "always the mean": "total / self.k_steps if self.avg else total → total / self.k_steps",
        "the mean where the sum is meant": (
            "total / self.k_steps if self.avg else total → "
            "total if self.avg else total / self.k_steps"
        ),
        "the sums stay": "merged.set_value(paddle.zeros_like(merged)) → pass",
        "the gradient of the step stays": "update(): p.clear_gradient(set_to_zero=False) → pass",
        "no step": "self.inner_optimizer.step() → pass",
        "ranks by themselves": "self.average_sums() → self.merged.items()",
        "a new name where a tensor is written": (
            "merged.set_value(merged + p.grad) → merged = merged + p.grad"
        ),
        "sums of another dtype": (
            "merged.set_value(paddle.zeros_like(merged)) → "
            "merged.array = paddle.zeros(merged.shape).array"
        ),
    },
)  # fmt: skip


@exercise.mistake("the sum forgotten before it was used")
def update(self):
    for merged in self.merged.values():
        merged.set_value(paddle.zeros_like(merged))
    for p, total in self.average_sums():
        p.grad = total / self.k_steps if self.avg else total
    self.inner_optimizer.step()
    for p in self.merged:
        p.clear_gradient(set_to_zero=False)
    return []


@exercise.mistake("a step for each parameter")
def update(self):  # noqa: F811
    for p, total in self.average_sums():
        p.grad = total / self.k_steps if self.avg else total
        self.inner_optimizer.step()
    for p, merged in self.merged.items():
        p.clear_gradient(set_to_zero=False)
        merged.set_value(paddle.zeros_like(merged))
    return []


def plain(yours, steps, k, avg=True, dtype="float64", static=False):
    """The values of two weights after each of some steps, whose gradients are given: None is none.

    SGD with a rate of 1, so that a step is a difference.
    """
    paddle.seed(0)
    made = [paddle.create_parameter([2], dtype, is_bias=True) for _ in range(2)]
    merge = GradientMerge(paddle.optimizer.SGD(1.0, parameters=made), k, avg, 25, 1)

    def step(*slopes):
        for p, slope in zip(made, slopes, strict=True):
            if slope is not None:
                (p * slope).sum().backward()
        merge.step()

    step, found = paddle.jit.to_static(step) if static else step, []
    with exercise.plugged(yours):
        for slopes in steps:
            step(*[None if s is None else paddle.to_tensor(s, dtype=dtype) for s in slopes])
            found.append([p.numpy() for p in made])
            left = [p.grad for p in made]
            expect(left, [None, None], given=steps, why="gradients after a step")
    return found


ONE = [([1.0, 2.0], [10.0, 0.0]), ([3.0, 4.0], [20.0, 2.0])]


@exercise.example
def two_make_a_step(yours):
    """Gradients 1 and 3: nothing, then a step by 2; by 4 where the sum is wanted."""
    for static in (False, True):
        for avg, share in ((True, 2.0), (False, 1.0)):
            given = {"gradients": ONE, "avg": avg, "captured": static}
            first, second = plain(yours, ONE, 2, avg, static=static)
            expect(first, [np.zeros(2), np.zeros(2)], given=given, why="after the first")
            step = [np.array([4.0, 6.0]) / -share, np.array([30.0, 2.0]) / -share]
            expect(second, step, given=given, why="after the second")


@exercise.example
def and_from_the_start_again(yours):
    """Four gradients, two steps: the second knows nothing of the first two."""
    for static in (False, True):
        *_, last = plain(yours, ONE + ONE, 2, static=static)
        expect(last, [np.array([-4.0, -6.0]), np.array([-30.0, -2.0])], given=ONE + ONE)


@exercise.example
def a_parameter_without_a_gradient(yours):
    """In one of two micro-batches, or in both: then it stays as it is."""
    steps = [([1.0, 1.0], None), ([3.0, 1.0], [4.0, 4.0])]
    *_, last = plain(yours, steps, 2)
    expect(last, [np.array([-2.0, -1.0]), np.array([-2.0, -2.0])], given=steps)
    steps = [([1.0, 1.0], None)] * 2
    *_, last = plain(yours, steps, 2)
    expect(last, [np.array([-1.0, -1.0]), np.zeros(2)], given=steps)


@exercise.example
def dtypes_and_small_numbers(yours):
    """float64 to the last digit, float32 stays float32; infinities and small numbers arrive."""
    for dtype, value in (("float64", 1 / 3), ("float32", np.float32(1 / 3)), ("float64", 1e-9)):
        steps = [([value, value], [np.inf, value])] * 3
        *_, (a, b) = plain(yours, steps, 3, dtype=dtype)
        rtol = 1e-14 if dtype == "float64" else 1e-6
        expect(str(a.dtype), dtype, given=steps)
        expect(a, np.array([-value] * 2), given=steps, rtol=rtol, atol=0)
        expect(b, np.array([-np.inf, -value]), given=steps, rtol=rtol, atol=0)


@exercise.example
def any_weights(yours):
    """Many weights, none, and infinite ones: a step by the mean of gradients 1 and 3."""
    for value in (np.zeros(1000), np.zeros((0, 3)), np.array([np.inf, 1.0])):
        w = paddle.create_parameter([*value.shape], "float64", is_bias=True)
        w.set_value(value)
        merge = GradientMerge(paddle.optimizer.SGD(1.0, [w]), 2, True, 25, 1)
        with exercise.plugged(yours):
            for slope in (1.0, 3.0):
                (w * slope).sum().backward()
                merge.step()
        expect(w.numpy(), value - 2.0, given={"weights": value})


@exercise.example
def called_once_and_no_results(yours):
    """`update` returns an empty list, and asks for the averages once."""
    w = paddle.create_parameter([1], "float64", is_bias=True)
    merge, asked = GradientMerge(paddle.optimizer.SGD(1.0, [w]), 2, True, 25, 1), []
    with exercise.plugged(yours):
        w.sum().backward()
        merge.merge(w)
        own = merge.average_sums
        merge.average_sums = lambda: asked.append(1) or own()
        expect(merge.update(), [], given="what update returns")
    expect(len(asked), 1, given="how often average_sums() was called")
    expect(w.numpy(), np.array([-0.5]), given="one gradient of 1, k_steps = 2")
    expect_that(w.grad is None, "no gradient afterwards", got=w.grad)


def train(yours, x, k: int, static: bool):
    """The weights after k micro-batches of this rank under Momentum, twice."""
    strategy = fleet.DistributedStrategy()
    strategy.gradient_merge = True
    strategy.gradient_merge_configs = {"k_steps": k}
    fleet.init(is_collective=True, strategy=strategy)
    paddle.seed(1)
    net = paddle.nn.Linear(3, 2)
    opt = paddle.optimizer.Momentum(0.1, parameters=net.parameters(), weight_decay=0.1)
    model, opt = fleet.distributed_model(net), fleet.distributed_optimizer(opt)

    def step(x):
        (model(x) ** 2).mean().backward()
        opt.step()
        opt.clear_grad()

    step = paddle.jit.to_static(step) if static else step
    mine = np.split(x[dist.get_rank() :: dist.get_world_size()], k)
    for part in [*mine, *mine]:
        step(paddle.to_tensor(part))
    return [p.numpy() for p in net.parameters()]


@exercise.property(k=st.integers(1, 3), seed=st.integers(0, 9), examples=4)
def ranks_train_as_one_process(yours, k, seed):
    """Two ranks with k micro-batches each: two steps by the joined batch."""
    x = np.random.default_rng(seed).normal(size=(2 * 2 * k, 3)).astype("float32")
    paddle.seed(1)
    net = paddle.nn.Linear(3, 2)
    opt = paddle.optimizer.Momentum(0.1, parameters=net.parameters(), weight_decay=0.1)
    for _ in range(2):
        (net(paddle.to_tensor(x)) ** 2).mean().backward()
        opt.step()
        opt.clear_grad()
    expected = [p.numpy() for p in net.parameters()]
    with exercise.plugged(yours):
        args = yours, x, k, bool(seed % 2)
        found = dist.spawn(train, args=args, nprocs=2, timeout=20.0).results
    for got in found:
        expect(
            got, expected, given={"k_steps": k, "captured": bool(seed % 2)}, rtol=1e-4, atol=1e-6
        )
