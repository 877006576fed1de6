"""Checks of 18_tensor_and_sequence_parallel/vocabulary."""

from types import SimpleNamespace

import numpy as np
from hypothesis import strategies as st
from scipy.special import log_softmax, softmax

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle.distributed import Replicate, Shard
from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.nn import functional as F

exercise = Exercise(
    title="Vocabulary: cross entropy of scores in pieces",
    level="hard",
    minutes=40,
    before=("04_training/cross_entropy", "18_tensor_and_sequence_parallel/columns"),
    slots={
        "losses.cross_entropy": "cross_entropy",
        "losses.softmax_minus_label": "softmax_minus_label",
    },
    hints=(
        "exp(1000) overflows, but softmax does not change if the same number is taken from all "
        "scores of a row. Which number makes every power at most 1?",
        "-log softmax(x)[label] is log Σ eᶻ - z[label] for z = x - max x. Which three reductions "
        "of a row are in that, and what does a rank know of each?",
        "cross_entropy: z = x - max x, loss = log Σ eᶻ - pick(z, label), 0 where ignored;\n"
        "    None: the losses; 'all': their sum over max(size, 1); else weighed by shares\n"
        "softmax_minus_label: p = eᶻ / Σ eᶻ, hit = (arange == as_column(label)) as numbers\n"
        "    (p - hit) · as_column(shares), 0 where ignored",
    ),
    wrong={
        "powers that overflow": (
            "cross_entropy(): x - reduction.max(x, axis=last, keepdim=True) → x + 0.0"
        ),
        "powers of the slope that overflow": (
            "softmax_minus_label(): x - reduction.max(x, axis=last, keepdim=True) → x + 0.0"
        ),
        "one maximum for all rows": (
            "cross_entropy(): reduction.max(x, axis=last, keepdim=True) → "
            "reduction.max(x, axis=tuple(range(x.spec.ndim)), keepdim=True)"
        ),
        "no logarithm": "log(total) → total",
        "without the score of the label": (
            "log(total) - labels.pick(z, label, ignore_index=ignore) → log(total)"
        ),
        "the score before the maximum was taken away": (
            "labels.pick(z, label, ignore_index=ignore) → "
            "labels.pick(x, label, ignore_index=ignore)"
        ),
        "the logarithm of an ignored row": (
            "where(label != ignore, log(total) - labels.pick(z, label, ignore_index=ignore), 0.0)"
            " → log(total) - labels.pick(z, label, ignore_index=ignore)"
        ),
        "-100 is always ignored": "cross_entropy(): record.attrs['ignore_index'] → -100",
        "always a mean": "mean is None → False",
        "always the mean over all": "mean == 'all' → mean is not None",
        "the mean over all as a sum": "float(max(label.spec.size, 1)) → 1.0",
        "the mean of no labels": "max(label.spec.size, 1) → label.spec.size",
        "a sum that nothing weighs": "loss * shares(label, ignore, x.spec.dtype, mean) → loss",
        "the slope without the label": "p - hit → p",
        "the slope upside down": "p - hit → hit - p",
        "the powers without their sum": (
            "e / reduction.sum(e, axis=last, keepdim=True) → e"
        ),
        "the slope of an ignored label": "where(as_column(label != ignore), slope, 0.0) → p - hit",
        "the slope without shares": (
            "(p - hit) * as_column(shares(label, ignore, x.spec.dtype, mean)) → p - hit"
        ),
    },
    unkillable={
        "if mean == 'all': → pass": "the shares of all labels are the same mean",
        "return sum_all(loss) / float(max(label.spec.size, 1)) → pass": "likewise",
        "return sum_all(loss * shares(label, ignore, x.spec.dtype, mean)) → "
        "return sum_all(loss * shares(ignore, label, x.spec.dtype, mean))": "!= is symmetric",
        "slope = (p - hit) * as_column(shares(label, ignore, x.spec.dtype, mean)) → "
        "slope = (p - hit) * as_column(shares(ignore, label, x.spec.dtype, mean))": "likewise",
    },
)  # fmt: skip


@exercise.mistake("logarithms of what softmax gives: none of zero")
def cross_entropy(record, x, label):
    from minipaddle.nn import functional as F

    ignore, mean = record.attrs["ignore_index"], record.attrs["mean"]
    p = labels.pick(F.softmax(x), label, ignore_index=ignore)  # noqa: F821
    loss = where(label != ignore, log(p) * -1.0, 0.0)  # noqa: F821
    if mean is None:
        return loss
    if mean == "all":
        return sum_all(loss) / float(max(label.spec.size, 1))  # noqa: F821
    return sum_all(loss * shares(label, ignore, x.spec.dtype, mean))  # noqa: F821


def expected_of(x, label, ignore, mean):
    """(loss, slope by x) in float64, by SciPy."""
    x, valid = x.astype("float64"), label != ignore
    at = np.where(valid, label, 0)[..., None]
    loss = np.where(valid, -np.take_along_axis(log_softmax(x, -1), at, -1)[..., 0], 0.0)
    hit = np.arange(x.shape[-1]) == at
    slope = np.where(valid[..., None], softmax(x, -1) - hit, 0.0)
    if mean is None:
        return loss, slope
    count = max(1, label.size if mean == "all" else valid.sum())
    return loss.sum() / count, slope / count


def compare(yours, x, label, ignore=-100, mean=None):
    """Both rules on whole tensors, with operators that compute at once."""
    given = {"x": x, "label": label, "ignore_index": ignore, "mean": mean}
    record = SimpleNamespace(attrs={"ignore_index": ignore, "mean": mean}, dtype=x.dtype)
    scores, numbers = paddle.to_tensor(x), paddle.to_tensor(label)
    loss, slope = expected_of(x, label, ignore, mean)
    tight = {"rtol": 1e-5 if x.dtype == np.float32 else 1e-12, "atol": 1e-7}
    found = [f(record, scores, numbers) for f in (yours.cross_entropy, yours.softmax_minus_label)]
    for got, right, what in zip(found, (loss, slope), ("loss", "slope"), strict=True):
        expect(str(got.numpy().dtype), str(x.dtype), given=given, why=f"the dtype of the {what}")
        expect(got.numpy(), np.asarray(right, x.dtype), given=given, why=what, **tight)
    expect(scores.numpy(), x, given=given, why="the scores, which stay as they are")


@exercise.example
def one_row(yours):
    """Scores 1 3 2 4, label 3: log(e⁻³ + e⁻¹ + e⁻² + e⁰)."""
    for dtype in ("float32", "float64"):
        for mean in (None, "valid", "all"):
            compare(yours, np.array([[1, 3, 2, 4]], dtype), np.array([3]), mean=mean)


@exercise.example
def large_scores(yours):
    """±1e4: no overflow, also where rows differ by as much."""
    x = np.array([[1e4, 0.0, -1e4], [-1e4, -1e4, -9999.0], [3.0, 1.0, 2.0]])
    for mean in (None, "valid", "all"):
        compare(yours, x, np.array([1, 2, 0]), mean=mean)


@exercise.example
def masked_words(yours):
    """Scores of -inf: such a word takes no part; as a label its loss is inf."""
    x = np.array([[1.0, -np.inf, 2.0, 0.5], [-np.inf, 0.0, -np.inf, 1.0]])
    compare(yours, x, np.array([2, 1]))
    compare(yours, x[:1], np.array([1]))


@exercise.example
def ignored_labels(yours):
    """Losses and slopes of 0; a mean over those that count, over all, and over none."""
    x = np.random.default_rng(0).normal(size=(2, 3, 5)).astype("float32")
    label = np.array([[0, 2, 4], [2, 2, 1]])
    for mean in (None, "valid", "all"):
        for ignore in (2, 4, -100):
            compare(yours, x, label, ignore, mean)
        compare(yours, x, np.full((2, 3), -100), -100, mean)
        compare(yours, x[:, :0], label[:, :0], -100, mean)


@exercise.property(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    classes=st.integers(1, 9),
    mean=st.sampled_from([None, "valid", "all"]),
    seed=st.integers(0, 999),
)
def any_shape(yours, shape, classes, mean, seed):
    """Random scores and labels, some of which do not count."""
    draw = np.random.default_rng(seed)
    label = draw.integers(0, classes, shape)
    label[draw.random(shape) < 0.2] = -1
    compare(yours, 9 * draw.normal(size=(*shape, classes)), label, -1, mean)


def on_rank(x, label, ignore, reduction, static):
    """Loss, the piece of its gradient, and the collectives of the program of a rank."""
    mesh = dist.ProcessMesh([*range(dist.get_world_size())], dim_names=["mp"])
    scores = dist.shard_tensor(paddle.to_tensor(x), mesh, [Shard(1)], stop_gradient=False)
    label = dist.shard_tensor(paddle.to_tensor(label), mesh, [Replicate()])

    def step(scores, label):
        loss = F.cross_entropy(scores, label, ignore_index=ignore, reduction=reduction)
        return loss, paddle.grad(loss.sum(), scores)[0]

    step = paddle.jit.to_static(step) if static else step
    loss, slope = step(scores, label)
    travels = []
    if static:
        ((part, _),) = step.concrete_program.executables.parts.values()
        travels = [(r.op.name, r.spec.size) for r in part.records if "group" in r.attrs]
    return loss.numpy(), slope.placements, slope._local_value().numpy(), travels


@exercise.example
def in_pieces(yours):
    """Scores in pieces along the classes, ten of them on 2 and 3 ranks: nothing is gathered."""
    draw = np.random.default_rng(1)
    x, label = draw.normal(size=(6, 10)) * 30, draw.integers(0, 10, 6)
    label[2] = 7
    for ranks, static, reduction in ((2, False, "none"), (3, True, "none"), (2, True, "mean")):
        given = {"ranks": ranks, "captured": static, "reduction": reduction}
        with exercise.plugged(yours):
            args = x, label, 7, reduction, static
            results = dist.spawn(on_rank, args=args, nprocs=ranks, timeout=20.0).results
        right, slope = expected_of(x, label, 7, "valid" if reduction == "mean" else None)
        each = -(-10 // ranks)
        for rank, (loss, lies, got, travels) in enumerate(results):
            expect(loss, right, given=given, why="loss", rtol=1e-9, atol=1e-12)
            expect(lies, [Shard(1)], given=given, why="how the gradient lies")
            mine = slope[:, each * rank : each * (rank + 1)]
            expect(got, mine, given=given, why="gradient", rtol=1e-9, atol=1e-12)
            expect_that(
                all(n <= 6 for _, n in travels), "no more than a number for each row travels",
                given=given, got=travels,
            )  # fmt: skip
