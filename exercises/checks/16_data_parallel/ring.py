"""Checks of 16_data_parallel/ring."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle.distributed.collectives.operators import group_numbered
from minipaddle.engine.distributed.process_group import Work
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Ring all-reduce: send to the next, receive from the one before",
    level="medium",
    minutes=40,
    slots={"distributed.all_reduce": "ring"},
    hints=(
        "Draw three ranks and three parts. After the first step, which part of which rank holds a "
        "sum of two? Which part must it send next?",
        "`viz.collective(ring(4))` in the chapter shows every round. A view of an array, such as "
        "`array.reshape(-1)[a:b]`, can be written to.",
        "for step in range(2 * (n - 1)):\n"
        "    begin to send part rank - step to rank + 1\n"
        "    receive part rank - step - 1 from rank - 1, into an array of its own\n"
        "    wait for the sending\n"
        "    put what came to the part: combined in the first n - 1 steps, as it is afterwards",
    ),
    wrong={
        "not waiting for what is sent": "sending.wait() → pass",
        "only the first half: each rank has one whole part": "2 * (n - 1) → n - 1",
        "adding what is complete": "step < n - 1 → True",
        "taking instead of adding": "step < n - 1 → False",
        "one step too many is added": "step < n - 1 → step < n",
        "adding, whatever is asked": "COMBINE[op] → COMBINE['sum']",
        "a copy that nobody sees": "array.reshape(-1) → array.reshape(-1).copy()",
        "always one's own part": "part(rank - step) → part(rank)",
        "all parts alike, the rest forgotten": (
            "flat[flat.size * k // n:flat.size * (k + 1) // n] → flat[flat.size // n * "
            "k:flat.size // n * (k + 1)]"
        ),
        "the other way round the ring": (
            (
                "sending = group.send(part(rank - step), (rank + 1) % n, wait=False) → sending "
                "= group.send(part(rank - step), (rank - 1) % n, wait=False)"
            ),
            "group.recv(came, (rank - 1) % n) → group.recv(came, (rank + 1) % n)",
        ),
    },
    unkillable={
        f"ring: right only for {kind}": "an array in row-major order, says the task"
        for kind in ("arrays in one piece", "strides above 0")
    }
    | {
        "flat = array.reshape(-1) → flat = array.reshape(-2)": "NumPy takes any negative size",
        "mine[...] = COMBINE[op](mine, came) if step < n - 1 else came → "
        "mine[...] = COMBINE[op](came, mine) if step < n - 1 else came": "a + b is b + a",
    },
)

PATIENCE = 5.0


class Sending(Work):
    """A message that is under way: what is sent is read until wait()."""

    def __init__(self, work, array):
        self.work, self.array, self.before, self.over = work, array, array.copy(), False

    def look(self):
        same = np.array_equal(self.array, self.before, equal_nan=True)
        expect_that(same, "what is sent stays as it is until wait()", got=self.array)

    def wait(self, timeout=None):
        self.look()
        self.over = True
        return self.work.wait(timeout)

    def is_completed(self):
        return self.work.is_completed()

    def run_in_background(self):
        self.work.run_in_background()


def reduced(yours, arrays, op="sum"):
    """(each rank's array afterwards, the bytes that each has sent, by message)."""

    def rank():
        group = group_numbered(0)
        mine, sent, post = arrays[group.rank].copy(), [], group.post
        sendings = []

        def counting(array, dst, tag):
            sent.append((dst, array.nbytes))
            sendings.append(Sending(post(array, dst, tag), array))
            return sendings[-1]

        group.post = counting
        with np.errstate(all="ignore"):
            result = yours.ring(group, mine, op)
        expect(result, None, given="what ring returns")
        for sending in sendings:
            if not sending.over:  # as one need not for a copy of one's own
                sending.look()
                shared = np.may_share_memory(sending.array, mine)
                expect_that(not shared, "a wait() for what is sent", given=arrays)
        return mine, sent

    return zip(*dist.spawn(rank, nprocs=len(arrays), timeout=PATIENCE).results, strict=True)


@exercise.example
def two_ranks(yours):
    """[1, 2] and [10, 20]: both end with [11, 22]."""
    arrays = [np.array([1.0, 2.0]), np.array([10.0, 20.0])]
    got, _ = reduced(yours, arrays)
    expect(list(got), [np.array([11.0, 22.0])] * 2, given=arrays)


@exercise.example
def who_sends_what(yours):
    """Four ranks, eight numbers: six messages of two numbers each, all to the next rank."""
    arrays = [np.arange(8.0) * 10**k for k in range(4)]
    got, sent = reduced(yours, arrays)
    expect(list(got), [sum(arrays)] * 4, given=arrays)
    for rank, messages in enumerate(sent):
        expect(list(messages), [((rank + 1) % 4, 16)] * 6, given=f"what rank {rank} has sent")


@exercise.example
def one_rank(yours):
    """Nobody to talk to: the array stays."""
    got, sent = reduced(yours, [np.ones(3)])
    expect((list(got), list(sent)), ([np.ones(3)], [[]]))


@exercise.example
def large_empty_and_infinite(yours):
    """A thousand numbers in uneven parts, none at all, and some that are infinite."""
    for shape, value in (((7, 143), 0.0), ((0,), 0.0), ((2, 0), 0.0), ((5,), np.inf)):
        arrays = [np.random.default_rng(k).standard_normal(shape) for k in range(3)]
        arrays[1].flat[:1] += value
        got, _ = reduced(yours, arrays)
        expect(list(got), [sum(arrays)] * 3, given=arrays)


@exercise.property(
    n=st.integers(2, 4),
    shape=st.sampled_from([(1,), (3,), (2, 3), (7,), (2, 2, 5)]),
    op=st.sampled_from(["sum", "max", "min", "prod"]),
    seed=st.integers(0, 99),
)
def as_numpy_says(yours, n, shape, op, seed):
    """Any shape, even one smaller than the ring; the sum, and the other operations."""
    rng = np.random.default_rng(seed)
    arrays = [rng.integers(-4, 5, shape).astype("float64") for _ in range(n)]
    got, _ = reduced(yours, arrays, op)
    fold = {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod}[op]
    expect(list(got), [fold(np.stack(arrays), axis=0)] * n, given={"op": op, "arrays": arrays})


@exercise.example
def a_model_trains_on_it(yours):
    """Three ranks average their gradients by your ring: all have the weights of one."""

    def rank():
        paddle.seed(1)
        net = paddle.DataParallel(paddle.nn.Linear(4, 3))
        opt = paddle.optimizer.SGD(0.1, parameters=net.parameters())
        x = np.random.default_rng(0).standard_normal((6, 4), "float32")
        mine = paddle.to_tensor(x[dist.get_rank() :: dist.get_world_size()])
        for _ in range(3):
            (net(mine) ** 2).mean().backward()
            opt.step()
            opt.clear_grad()
        return [p.numpy() for p in net.parameters()]

    (alone,) = dist.spawn(rank, nprocs=1).results
    with exercise.plugged(yours):
        together = dist.spawn(rank, nprocs=3, timeout=PATIENCE).results
    for weights in together:
        expect(weights, alone, given="Linear(4, 3), three steps", rtol=1e-5, atol=1e-6)
    same = all(np.array_equal(a, b) for w in together for a, b in zip(w, together[0], strict=True))
    expect_that(same, "the same bits in every rank", got=together)
