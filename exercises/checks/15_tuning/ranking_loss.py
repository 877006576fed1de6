"""Checks of 15_tuning/ranking_loss."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle.learn import Exercise, expect, expect_gradients, expect_that
from minipaddle.tuning import cost_model
from minipaddle.tuning.cost_model import Sample

exercise = Exercise(
    title="The loss of a model that tells the faster of two kernels",
    level="medium",
    minutes=20,
    before=("04_training",),
    slots={"tuning.ranking_loss": "ranking_loss"},
    hints=(
        "Of a column [n, 1] and a row [1, n], what is in place (i, j) of the difference? Which of "
        "the two scores must it fall with?",
        "`F.softplus` is log(1 + e^x) without overflow: an `inf` times a 0 of `slower` is a `nan`.",
        "surprise[i, j] = softplus(score of j - score of i)\n"
        "the sum over the marked pairs, divided by how many there are",
    ),
    wrong={
        "asking for the slower one": "others - mine → mine - others",
        "a mean over all pairs": (
            "(surprise * slower).sum() / slower.sum() → (surprise * slower).mean()"
        ),
        "a sum instead of a mean": (
            "(surprise * slower).sum() / slower.sum() → (surprise * slower).sum()"
        ),
        "pairs that do not count": "surprise * slower → surprise",
        "an exponential that overflows": (
            "F.softplus(others - mine) → (1 + (others - mine).exp()).log()"
        ),
        "a difference instead of a surprise": "F.softplus(others - mine) → others - mine",
        "a hinge": "F.softplus(others - mine) → F.relu(1 + others - mine)",
        "one loss for each score": "(surprise * slower).sum() → (surprise * slower).sum(1)",
    },
    unkillable={
        "ranking_loss: right only for arrays that are not empty": "there is a pair that counts",
        "ranking_loss: right only for finite numbers": "scores and marks are finite",
        "mine, others = (scores.reshape([-1, 1]), scores.reshape([1, -1])) → "
        "mine, others = (scores.reshape([-0, 1]), scores.reshape([1, -1]))": "0 stands for n",
    },
)  # fmt: skip


def tensors(scores, slower):
    return paddle.to_tensor(scores, dtype="float64"), paddle.to_tensor(slower, dtype="float64")


def closed(scores, slower):
    """The same, pair by pair, in NumPy's float64."""
    pairs = [(i, j) for i, j in np.ndindex(*np.shape(slower)) if slower[i][j]]
    return np.mean([np.logaddexp(0, scores[j] - scores[i]) for i, j in pairs])


@exercise.example
def the_example(yours):
    """Two kernels, the first is faster."""
    for scores in ([3.0, 1.0], [1.0, 3.0], [2.0, 2.0]):
        got = yours.ranking_loss(*tensors(scores, [[0, 1], [0, 0]]))
        expect(got, np.logaddexp(0, scores[1] - scores[0]), given={"scores": scores})


@exercise.example
def far_apart(yours):
    """Scores a thousand apart; the pairs that do not count would overflow."""
    scores, slower = [1000.0, 0.0, -1000.0], [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    expect(yours.ranking_loss(*tensors(scores, slower)), 0.0, given={"scores": scores})
    expect(yours.ranking_loss(*tensors(scores[::-1], slower)), 1000.0,
           given={"scores": scores[::-1]})  # fmt: skip


@exercise.property(n=st.integers(2, 5), seed=st.integers(0, 99))
def pair_by_pair(yours, n, seed):
    """Random scores and pairs, beside the sum written out; and its gradient."""
    rng = np.random.default_rng(seed)
    scores, slower = rng.normal(size=n) * 3, rng.integers(0, 2, (n, n))
    slower[0, 1] = 1
    given = {"scores": scores, "slower": slower}
    expect(yours.ranking_loss(*tensors(scores, slower)), closed(scores, slower), given=given)
    pairs = paddle.to_tensor(slower, dtype="float64")
    expect_gradients(lambda s: yours.ranking_loss(s, pairs), [scores])


def samples(count, rng):
    """Ways to write a made-up kernel: one is twice as slow, tiles of 8 are best."""
    found = []
    for _ in range(count):
        way, tile = str(rng.choice(["rows", "dots"])), int(rng.choice([1, 2, 4, 8, 16, 32]))
        seconds = (2.0 if way == "dots" else 1.0) * (1 + abs(np.log2(tile) - 3))
        found.append(Sample("kernel", (1.0,), {"way": way, "tile": tile}, seconds))
    return found


@exercise.example
def the_engine_learns(yours):
    """The engine's cost model, trained on your loss, ranks ways it has not seen."""
    rng = np.random.default_rng(0)
    with exercise.plugged(yours):
        score = cost_model.cost_model(samples(30, rng))
    new = samples(40, rng)
    scores = score(new)
    pairs = [(i, j) for i in range(40) for j in range(40) if new[i].seconds < new[j].seconds]
    right = np.mean([scores[i] > scores[j] for i, j in pairs])
    expect_that(right > 0.85, "of two ways the faster one has the higher score",
                given=f"{len(pairs)} pairs", got=f"{right:.0%} of them")  # fmt: skip


exercise.holds(
    lambda yours, scores, pairs: yours.ranking_loss(scores, (pairs > 0).astype(pairs.dtype)),
    lambda scores, pairs: closed(scores, pairs > 0),
    [(4,), (4, 4)],
    large=[(12,), (12, 12)],
    tensors=True,
)
