"""Checks of 29_reading_a_page/ctc_forward."""

from itertools import groupby, product
from math import inf, log, prod

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle.learn import Exercise, expect, expect_gradients, expect_that

exercise = Exercise(
    title="The forward scores of CTC: all paths at once",
    level="hard",
    minutes=40,
    before=("29_reading_a_page/collapse",),
    slots={"ctc.insert_blanks": "insert_blanks", "ctc.advance": "advance"},
    hints=(
        "Stack blanks and labels along a new last axis, [batch, L, 2], and reshape to [batch, 2L]. "
        "In what order do they then stand, and what is still missing?",
        "To move a tensor by two places, put two rows in front of it and leave out its last two. "
        "That is also right if it has one row. For the labels put blanks in front, for the scores "
        "rows of IMPOSSIBLE.",
        "spelled = blank, label, blank, label, …, blank\n"
        "can skip: spelled is not the blank, and not spelled moved by two\n"
        "moved, skipped = alpha moved by one and by two; skipped is IMPOSSIBLE where it is not "
        "allowed\n"
        "logaddexp of all three, plus emitted",
    ),
    wrong={
        "a skip of any blank": "(spelled != blank) & (spelled != before) → spelled != blank",
        "a skip of letters, too": "(spelled != blank) & (spelled != before) → spelled != before",
        "no skip": "(spelled != blank) & (spelled != before) → (spelled != blank) & (spelled == "
        "blank)",
        "no blank behind": "paddle.concat([pairs, last], axis=1) → "
        "paddle.concat([pairs, pairs[:, -1:]], axis=1)",
        "no blank in front": (
            "paddle.stack([blanks, labels], axis=2) → paddle.stack([labels, blanks], axis=2)"
        ),
        "all blanks first": "paddle.stack([blanks, labels], axis=2) → "
        "paddle.concat([blanks, labels], axis=1)",
        "the blank is 0": "paddle.full_like(labels, blank) → paddle.full_like(labels, 0)",
        "a skip everywhere": "paddle.where(can_skip, skipped, nothing) → skipped",
        "nobody stays": "paddle.logaddexp(alpha, moved) → moved",
        "nobody goes on by one": "paddle.logaddexp(alpha, moved) → alpha",
        "the likeliest way alone": "paddle.logaddexp(paddle.logaddexp(alpha, moved), skipped) → "
        "paddle.maximum(paddle.maximum(alpha, moved), skipped)",
        "the log of 0": "paddle.logaddexp(paddle.logaddexp(alpha, moved), skipped) → "
        "(alpha.exp() + moved.exp() + skipped.exp()).log()",
        "logs are added": "paddle.logaddexp(paddle.logaddexp(alpha, moved), skipped) → "
        "paddle.logaddexp(alpha, moved) + skipped",
        "what is emitted is forgotten": (
            "paddle.logaddexp(paddle.logaddexp(alpha, moved), skipped) + emitted → "
            "paddle.logaddexp(paddle.logaddexp(alpha, moved), skipped)"
        ),
        "around the end": "paddle.concat([nothing[:1], alpha[:-1]]) → paddle.roll(alpha, 1, 0)",
        "the impossible has probability 1": "paddle.full_like(alpha, IMPOSSIBLE) → "
        "paddle.full_like(alpha, 0.0)",
    },
    unkillable={
        "return paddle.logaddexp(paddle.logaddexp(alpha, moved), skipped) + emitted → "
        "return paddle.logaddexp(paddle.logaddexp(moved, alpha), skipped) + emitted": (
            "in another order the sum is the same"
        ),
        "return paddle.logaddexp(paddle.logaddexp(alpha, moved), skipped) + emitted → "
        "return paddle.logaddexp(skipped, paddle.logaddexp(alpha, moved)) + emitted": (
            "in another order the sum is the same"
        ),
    },
)


@exercise.example
def in_the_task(yours):
    """The places of three letters, and a step with two letters."""
    check_blanks(yours, np.array([[3, 5, 5]]), 0)
    with np.errstate(divide="ignore"):
        alpha, emitted = np.log([[0.5, 0.25, 0, 0, 0]]).T, np.log([[0.5, 0.25, 0.5, 0.25, 0.5]]).T
    got = yours.advance(
        paddle.to_tensor(np.maximum(alpha, -1e30)),
        paddle.to_tensor([[False], [False], [False], [True], [False]]),
        paddle.to_tensor(emitted),
    )
    given = "the probabilities of the task"
    expect(got.exp(), [[0.25], [0.1875], [0.125], [0.0625], [0]], given=given, why="exp of yours")


def check_blanks(yours, labels, blank, dtype="int64"):
    given = {"labels": labels, "blank": blank}
    spelled, can_skip = yours.insert_blanks(paddle.to_tensor(labels, dtype), blank)
    rows = [[blank, *(c for k in row for c in (int(k), blank))] for row in labels]
    allowed = [
        [row[s] not in (blank, row[s - 2]) for s in range(2, len(row))] for row in rows
    ]  # fmt: skip
    shape = [len(labels), 2 * labels.shape[1] + 1]
    expect(spelled, np.array(rows, int).reshape(shape), given=given, why="the labels of the places")
    expect(str(spelled.dtype), str(paddle.to_tensor(labels, dtype).dtype), given=given,
           why="the dtype of the labels")  # fmt: skip
    expect(list(can_skip.shape), shape, given=given, why="the shape of the bools")
    expect_that("bool" in str(can_skip.dtype), "these are no bools", given=given, got=can_skip)
    wanted = np.array(allowed, bool).reshape(len(labels), -1)
    expect(can_skip.numpy()[:, 2:], wanted, given=given, why="from the third place on")


@exercise.property(
    labels=st.lists(st.integers(0, 3), max_size=24),
    batch=st.integers(1, 3),
    blank=st.integers(0, 4),
    dtype=st.sampled_from(["int32", "int64"]),
)
def blanks_between_labels(yours, labels, batch, blank, dtype):
    """Any labels, none, one, twins, and the blank among them, which fills short rows."""
    length = len(labels) // batch
    array = np.array(labels[: length * batch], int).reshape(batch, length)
    check_blanks(yours, array, blank, dtype)


@exercise.example
def many_labels(yours):
    """A batch of 40 with 30 labels."""
    check_blanks(yours, np.random.default_rng(0).integers(0, 5, (40, 30)), 0)


def check_step(yours, p, can_skip, q, dtype="float64"):
    """A step on probabilities, place by place."""
    expected = np.zeros_like(p)
    for s, b in product(*map(range, p.shape)):
        ways = p[s, b] + (p[s - 1, b] if s > 0 else 0)
        ways += p[s - 2, b] if s > 1 and can_skip[s, b] else 0
        expected[s, b] = ways * q[s, b]
    with np.errstate(divide="ignore"):
        alpha, emitted = np.log(p).clip(-1e30), np.log(q)
    given = {"alpha": alpha, "can_skip": can_skip, "emitted": emitted}
    inputs = paddle.to_tensor(alpha, dtype), paddle.to_tensor(emitted, dtype)
    got = yours.advance(inputs[0], paddle.to_tensor(can_skip), inputs[1])
    expect(list(got.shape), list(p.shape), given=given, why="the shape of the scores")
    expect(str(got.dtype), str(inputs[0].dtype), given=given, why="the dtype of the scores")
    expect(inputs[0], alpha.astype(dtype), given=given, why="what is given stays as it is")
    expect(inputs[1], emitted.astype(dtype), given=given, why="what is given stays as it is")
    close = 1e-12 if dtype == "float64" else 2e-6
    found = got.numpy().astype("float64")
    expect(np.exp(found), expected, given=given, rtol=close, atol=0, why="exp of the scores")
    expect_that(np.all(found[expected == 0] < -1e29), "not IMPOSSIBLE", given=given, got=got)


@exercise.property(
    places=st.integers(1, 9), batch=st.integers(1, 3), seed=st.integers(0, 99),
    dtype=st.sampled_from(["float32", "float64"]), none=st.sampled_from([0.0, 0.5]),
)  # fmt: skip
def a_step(yours, places, batch, seed, dtype, none):
    """Places of any number, also one, some of which cannot be reached; float32 stays."""
    rng = np.random.default_rng(seed)
    p, q = rng.uniform(0.01, 1, (2, places, batch))
    p[rng.random(p.shape) < none] = 0
    check_step(yours, p, rng.random(p.shape) < 0.5, q, dtype)


@exercise.example
def large_and_unlikely(yours):
    """Many places; probabilities that exp cannot hold; labels of no probability at all."""
    rng = np.random.default_rng(3)
    p, q = rng.uniform(0.01, 1, (2, 41, 20))
    check_step(yours, p, rng.random(p.shape) < 0.5, q)
    q[rng.random(q.shape) < 0.3] = 0  # emitted is -inf
    check_step(yours, p, rng.random(p.shape) < 0.5, q)
    check_step(yours, np.ones((5, 0)), np.ones((5, 0), bool), np.ones((5, 0)))  # an empty batch
    far, ones = np.array([[-2000.0], [-2001.0], [-1e30]]), np.ones((3, 1), bool)
    got = yours.advance(
        paddle.to_tensor(far), paddle.to_tensor(ones), paddle.zeros([3, 1], "float64")
    )
    both = np.logaddexp(-2000, -2001)
    wanted = [[-2000.0], [both], [both]]
    expect(got, wanted, given={"alpha": far, "can_skip": ones, "emitted": 0.0}, rtol=1e-12)
    emitted = paddle.full([3, 1], -inf, "float64")
    got = yours.advance(paddle.to_tensor(far), paddle.to_tensor(ones), emitted)
    expect(got, np.full((3, 1), -inf), given={"alpha": far, "emitted": -inf})


@exercise.example
def the_derivative_of_a_step(yours):
    """By the scores and by what is emitted; of what cannot be reached it is 0, and no nan."""
    rng = np.random.default_rng(1)
    skip = paddle.to_tensor(rng.random((5, 2)) < 0.5)
    inputs = list(rng.normal(size=(2, 5, 2)))
    for order in (1, 2):
        expect_gradients(lambda a, q: yours.advance(a, skip, q), inputs, order=order)
    alpha = paddle.to_tensor([[0.0], [-1e30], [-1e30], [-1e30]], "float64", stop_gradient=False)
    got = yours.advance(alpha, paddle.ones([4, 1], "bool"), paddle.zeros([4, 1], "float64"))
    got[:3].sum().backward()
    expect(alpha.grad, [[3.0], [0], [0], [0]], given={"alpha": alpha.detach()}, why="the gradient")


def loss_over_paths(p, label, blank):
    """-log of the sum of all paths that spell the label."""
    total = 0.0
    for path in product(range(p.shape[1]), repeat=len(p)):
        if [c for c, _ in groupby(path) if c != blank] == list(label):
            total += prod(p[t, c] for t, c in enumerate(path))
    return -log(total) if total else inf


@exercise.property(
    examples=15,
    labels=st.lists(st.lists(st.sampled_from([0, 1, 3]), max_size=3), min_size=1, max_size=3),
    times=st.lists(st.integers(1, 5), min_size=3, max_size=3),
    seed=st.integers(0, 99),
)
def the_loss_of_all_paths(yours, labels, times, seed):
    """`ctc_loss` on your functions against the list of all paths: twins, no letters, fewer columns
    than letters, lines of several lengths in a batch; the blank is 2.
    """
    p = np.random.default_rng(seed).dirichlet(np.ones(4), (5, len(labels)))
    longest = max(map(len, labels))
    filled = np.array([[*row, *[2] * (longest - len(row))] for row in labels], "int64")
    times = np.array(times[: len(labels)])
    with exercise.plugged(yours):
        got = F.ctc_loss(
            paddle.to_tensor(np.log(p)), paddle.to_tensor(filled.reshape(len(labels), longest)),
            paddle.to_tensor(times), paddle.to_tensor([*map(len, labels)]), blank=2,
            reduction="none",
        )  # fmt: skip
    right = [loss_over_paths(p[:n, k], labels[k], 2) for k, n in enumerate(times)]
    given = {"labels": labels, "columns": times.tolist(), "blank": 2, "probabilities": p}
    expect(got, right, given=given, rtol=1e-9, why="the losses")


@exercise.example
def a_reader_learns(yours):
    """A captured program with the loss; scores of two lines learn to spell 1 1 2, and 3."""
    scores = paddle.create_parameter([8, 2, 4], "float32")
    scores.set_value(np.random.default_rng(0).normal(size=(8, 2, 4)).astype("float32"))
    labels, sizes = paddle.to_tensor([[1, 1, 2], [3, 0, 0]]), paddle.to_tensor([3, 1])
    descent = paddle.optimizer.SGD(2.0, [scores])

    def loss_of(times):
        return F.ctc_loss(scores, labels, times, sizes, reduction="sum")

    with exercise.plugged(yours):
        captured, losses = paddle.jit.to_static(loss_of), []
        for _ in range(30):
            loss = captured(paddle.to_tensor([8, 6]))
            loss.backward()
            descent.step()
            descent.clear_grad()
            losses.append(loss.item())
    expect_that(losses[-1] < 0.5 < losses[0], "it does not learn", got=losses[::6])
    paths = scores.numpy().argmax(2).T
    spelled = [[int(c) for c, _ in groupby(path) if c] for path in (paths[0], paths[1, :6])]
    expect(spelled, [[1, 1, 2], [3]], given="after 30 steps", why="what the likeliest paths spell")
