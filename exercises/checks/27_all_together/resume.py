"""Checks of 27_all_together/resume."""

import tempfile

from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle.distributed.fleet import elastic
from minipaddle.engine.core.rank import hash_64
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Resume exactly: the batches and the draws of the run that was not interrupted",
    level="medium",
    minutes=25,
    slots={"elastic.share": "share", "elastic.generator_of": "generator_of"},
    hints=(
        "Which places of an epoch has a step, if you only know its number? And where does rank "
        "0's part of 8 places end, if there are 3 ranks?",
        "step // batches is the epoch, step % batches the turn in it. Rank r begins where rank "
        "r - 1 ends, so find both ends by one formula.",
        "batches = size // batch\nbegin of rank r: turn * batch + r * batch // ranks\n"
        "generator_of: saved[rank] if there; else saved[0] if all are equal; else a new key. "
        "Always a tuple",
    ),
    wrong={
        "the incomplete batch counts": "size // batch → -(-size // batch)",
        "epochs never end": "step // batches → 0",
        "from the first place in every step": "turn * batch → 0",
        "each rank a whole batch": "k * batch // ranks → k * batch",
        "the rest is left out": "k * batch // ranks → k * (batch // ranks)",
        "the rest to all": "k * batch // ranks → k * -(-batch // ranks)",
        "a rank too far": "(rank, rank + 1) → (rank + 1, rank + 2)",
        "all that was before, too": "(rank, rank + 1) → (0, rank + 1)",
        "the last place is missing": "range(*bounds) → range(bounds[0], bounds[1] - 1)",
        "a new rank is taken for an old one": "rank < len(saved) → rank <= len(saved)",
        "nobody is known": "rank < len(saved) → False",
        "the first one's for all": "tuple(saved[rank]) → tuple(saved[0])",
        "all begin anew": "tuple(saved[rank]) → (hash_64(saved, rank) >> 1, 0)",
        "a new rank draws as the first": (
            "all((each == saved[0] for each in saved)) → True"
        ),
        "equal draws are not seen": "all((each == saved[0] for each in saved)) → False",
        "the same draws in all new ranks": "hash_64(saved, rank) → hash_64(saved)",
        "the same draws each time": "hash_64(saved, rank) → hash_64(rank)",
        "a key that is too long": "hash_64(saved, rank) >> 1 → hash_64(saved, rank)",
    },
)  # fmt: skip


@exercise.mistake("the step is the turn")
def share(step, rank, ranks, batch, size):
    bounds = [step * batch + k * batch // ranks for k in (rank, rank + 1)]
    return step * batch // size, range(*bounds)


@exercise.mistake("lists go on as lists")
def generator_of(rank, saved):
    if rank < len(saved):
        return saved[rank]
    if all(each == saved[0] for each in saved):
        return saved[0]
    return hash_64(saved, rank) >> 1, 0


@exercise.example
def parts_of_a_step(yours):
    """Equal and unequal parts, the first step of an epoch, the last one, one rank, one sample."""
    for args, wanted in (
        ((5, 0, 3, 8, 30), (1, range(16, 18))),
        ((5, 1, 3, 8, 30), (1, range(18, 21))),
        ((5, 2, 3, 8, 30), (1, range(21, 24))),
        ((2, 1, 2, 8, 30), (0, range(20, 24))),
        ((3, 0, 1, 8, 30), (1, range(8))),
        ((7, 0, 1, 1, 4), (1, range(3, 4))),
        ((10**9, 0, 2, 4, 4), (10**9, range(2))),
    ):
        given = dict(zip(("step", "rank", "ranks", "batch", "size"), args))
        got = yours.share(*args)
        expect_that(isinstance(got, tuple) and isinstance(got[1], range), "(epoch, a range)",
                    given=given, got=got)  # fmt: skip
        expect(got, wanted, given=given)


@exercise.property(
    step=st.integers(0, 40), ranks=st.integers(1, 7), batch=st.integers(1, 12),
    more=st.integers(0, 20),
)  # fmt: skip
def however_many_ranks(yours, step, ranks, batch, more):
    """All ranks together take the places that one rank takes, in order, in equal parts."""
    given = {"step": step, "ranks": ranks, "batch": batch, "size": batch + more}
    epoch, alone = yours.share(step, 0, 1, batch, batch + more)
    parts = [yours.share(step, rank, ranks, batch, batch + more) for rank in range(ranks)]
    expect([each for each, _ in parts], [epoch] * ranks, given=given, why="the epoch")
    expect([k for _, part in parts for k in part], [*alone], given=given, why="all places")
    sizes = [len(part) for _, part in parts]
    expect_that(max(sizes) - min(sizes) <= 1, "parts that differ by one", given=given, got=sizes)
    expect(len(alone), batch, given=given, why="the places of a step")


@exercise.example
def draws_go_on(yours):
    """Ranks that were there, new ones, all alike, and each with its own."""
    own, alike = [[5, 10], [6, 20]], [[5, 10], [5, 10]]
    for rank, saved, wanted in (
        (0, own, (5, 10)),
        (1, own, (6, 20)),
        (1, alike, (5, 10)),
        (2, alike, (5, 10)),
        (7, alike, (5, 10)),
        (2, own, (hash_64(own, 2) >> 1, 0)),
        (3, own, (hash_64(own, 3) >> 1, 0)),
        (1, [(3, 4)], (3, 4)),
    ):
        got = yours.generator_of(rank, saved)
        expect_that(isinstance(got, tuple), "a tuple", given=(rank, saved), got=got)
        expect(got, wanted, given={"rank": rank, "saved": saved})


X = paddle.arange(40).reshape([20, 2]).astype("float32") / 40


def train(folder, total):
    """The losses of the steps that are left."""
    paddle.seed(1)
    net = paddle.nn.Linear(2, 1)
    adam, losses = paddle.optimizer.Adam(0.1, parameters=net.parameters()), []
    for step in elastic.steps(total, 2, {"net": net, "adam": adam}, folder):
        rows = paddle.to_tensor(elastic.own_samples(step, 6, len(X)))
        noise = paddle.rand([1])  # the same in all ranks
        part = ((net(X[rows]) - noise) ** 2).sum() / 6
        part.backward()
        for p in net.parameters():
            dist.all_reduce(p.grad)
        adam.step()
        adam.clear_grad()
        dist.all_reduce(part)
        losses.append(part.item())
    return losses


@exercise.example
def a_job_loses_a_rank(yours):
    """Three ranks, then two: the losses of the uninterrupted run."""
    alone = dist.spawn(train, args=(tempfile.mkdtemp(), 8), nprocs=1).results[0]
    folder = tempfile.mkdtemp()
    with exercise.plugged(yours):
        first = dist.spawn(train, args=(folder, 4), nprocs=3, timeout=20.0).results[0]
        rest = dist.spawn(train, args=(folder, 8), nprocs=2, timeout=20.0).results[0]
    expect([*first, *rest], alone, given="4 steps of 3 ranks, 4 of 2", rtol=1e-5)
