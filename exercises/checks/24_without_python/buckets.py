"""Checks of 24_without_python/buckets."""

import tempfile

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle import nn
from minipaddle.inference import Config, create_predictor
from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.serving.replica import ModelReplica, ServedModel

exercise = Exercise(
    title="Buckets: a few compiled shapes for requests of any size",
    level="easy",
    minutes=15,
    slots={"inference.bucket_for": "bucket_for", "inference.fill": "fill"},
    hints=(
        "Which of the buckets 16, 1 and 4 serve three rows at all? And which of those wastes "
        "least?",
        "bucket_for: of those that are at least `rows` the least; say what happens if there are "
        "none. fill: one number says how many rows are taken so far.",
        "min over the buckets with n >= rows, default rows\n"
        "for each array: memory[at : at + its rows] = it; note the slice; at goes on\n"
        "the rest = the row before it, if there is one",
    ),
    wrong={
        "the first that fits": "min(fitting) → fitting[0]",
        "the largest that fits": "min(fitting) → max(fitting)",
        "an exact fit is too small": "n >= rows → n > rows",
        "the largest that is too small": "n >= rows → n <= rows",
        "the largest bucket if none fits": "min(fitting) if fitting else rows → "
                                           "min(fitting) if fitting else max(buckets)",
        "all at the front": "memory[at:end] = array → memory[: len(array)] = array",
        "the same place for all": "at = end → pass",
        "slices of lengths": "slice(at, end) → slice(at, len(array))",
        "the rest is whatever was there": "memory[at:] = memory[at - 1] → pass",
        "the rest is 0": "memory[at:] = memory[at - 1] → memory[at:] = 0",
        "the rest repeats the first row": "memory[at:] = memory[at - 1] → memory[at:] = memory[0]",
        "the last row is written over": (
            "memory[at:] = memory[at - 1] → memory[at - 1 :] = memory[0]"
        ),
        "without rows the last of the memory": "if at: → if True:",
        "empty ones have no slice": "places.append(slice(at, end)) → "
                                    "places += [slice(at, end)] if end > at else []",
        "numbers for slices": "slice(at, end) → (at, end)",
    },
)  # fmt: skip


@exercise.property(
    rows=st.integers(0, 40), buckets=st.lists(st.integers(1, 36), max_size=9), examples=60
)
def any_buckets(yours, rows, buckets):
    """Buckets in any order, as a list and as a tuple; none of them large enough; none at all."""
    expected = rows
    for n in sorted(buckets, reverse=True):
        expected = n if n >= rows else expected
    for given in ([*buckets], tuple(buckets)):
        got = yours.bucket_for(rows, given)
        expect(got, expected, given={"rows": rows, "buckets": buckets})
        expect(
            [*given], buckets, given={"rows": rows, "buckets": buckets}, why="buckets, afterwards"
        )


def check(yours, memory, arrays, before=None):
    """Each request is where its slice says, the rest repeats the last row."""
    old, had = memory.copy(), [a.copy() for a in arrays]
    given = {"memory": old.shape, "arrays": had}
    places = yours.fill(memory, [*arrays])
    expect_that(isinstance(places, list) and all(type(p) is slice for p in places),
                "a list of slices", given=given, got=places)  # fmt: skip
    starts = np.cumsum([0, *map(len, had)]).tolist()
    wanted = [[at, at + len(a), None] for at, a in zip(starts, had, strict=False)]
    expect([[p.start, p.stop, p.step] for p in places], wanted, given=given, why="the slices")
    rows = [row for a in had for row in a]
    rows.extend([rows[-1] if rows else None] * (len(old) - len(rows)))
    wanted = old if rows and rows[0] is None else np.array(rows, old.dtype).reshape(old.shape)
    expect(memory, wanted, given=given, why="the memory", rtol=0, atol=0)
    for a, b in zip(arrays, had, strict=True):
        expect_that(np.array_equal(a, b), "the requests stay as they were", given=given, got=a)


@exercise.property(
    counts=st.lists(st.integers(0, 4), max_size=9),
    more=st.integers(0, 5),
    tail=st.sampled_from([(), (2,), (2, 3), (5, 6)]),
    dtype=st.sampled_from(["float32", "float64", "int64", "bool"]),
    seed=st.integers(0, 99),
    examples=40,
)
def any_requests(yours, counts, more, tail, dtype, seed):
    """Requests of several sizes, some empty; memory just large enough, and larger."""
    rng = np.random.default_rng(seed)
    make = lambda n: rng.integers(0, 9, (n, *tail)).astype(dtype)
    check(yours, make(sum(counts) + more), [make(n) for n in counts])


@exercise.example
def strided(yours):
    """Memory and requests that are views: transposed, backwards, every second row; infinities."""
    x = np.random.default_rng(0).normal(size=(20, 30))
    x[3, 3], x[4, 5] = np.inf, -np.inf
    room = np.full((30, 20), 7.0)
    check(yours, room.T[:, :20], [x[:0, :20], x[::-2, 10:30], x[:3, ::-1][:, :20]])
    check(yours, np.zeros((20, 30))[::-1], [np.asfortranarray(x)[:7], x[::3]])


@exercise.example
def in_the_engine(yours):
    """A predictor and the server's replica: one program serves several batches."""
    paddle.seed(0)
    net = nn.Sequential(nn.Embedding(5, 3), nn.Flatten(), nn.Linear(6, 2), nn.Tanh())
    net.eval()
    x = np.random.default_rng(0).integers(1, 5, (16, 2))
    with paddle.no_grad():
        wanted = net(paddle.to_tensor(x)).numpy()
    with tempfile.TemporaryDirectory() as folder, exercise.plugged(yours):
        spec = [paddle.static.InputSpec([None, 2], "int64", "x")]
        paddle.jit.save(net, f"{folder}/net", spec)
        config = Config(f"{folder}/net")
        config.switch_ir_optim(False)  # the interpreter; nothing is compiled
        config.set_buckets([4, 16])
        predictor = create_predictor(config)
        for rows, shapes in ((3, {4}), (1, {4}), (4, {4}), (5, {4, 16}), (16, {4, 16})):
            got = predictor.run([paddle.to_tensor(x[:rows])])[0].numpy()
            expect(got, wanted[:rows], given={"rows": rows, "buckets": [4, 16]}, rtol=1e-5)
            seen = {key[0][0] for key in predictor.bindings}
            expect_that(seen == shapes, f"batches {shapes} in use", given={"rows": rows}, got=seen)
        served = ServedModel(predictor.model, largest=16, buckets=[4])
        served.may_compile = lambda key: False
        found = ModelReplica(served)([[x[:2]], [x[2:3]], [x[3:6]]])
        for k, part in enumerate((slice(0, 2), slice(2, 3), slice(3, 6))):
            given = {"request": k, "rows": part}
            expect_that(isinstance(found[k], list), "no error", given=given, got=found[k])
            expect(found[k][0], wanted[part], given=given, rtol=1e-5)
