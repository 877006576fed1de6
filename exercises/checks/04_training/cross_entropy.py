"""Checks of 04_training/cross_entropy."""

import numpy as np
from hypothesis import strategies as st
from scipy.special import log_softmax, softmax

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.learn import Exercise, expect, expect_gradients, expect_that

exercise = Exercise(
    title="The loss of a classifier, and p - y",
    level="medium",
    minutes=40,
    before=("01_arrays/softmax",),
    slots={
        "ops.cross_entropy.body": "cross_entropy",
        "ops.softmax_minus_label.body": "softmax_minus_label",
    },
    hints=(
        "Subtract the largest score of a row from all of them: what becomes of log Σ e^x - "
        "x_label, and of p?",
        "label[..., None] == m.arange(classes) is y: True at the label. Multiply and sum to pick "
        "one score of each row. Rows to ignore: label != ignore_index, as 1.0 and 0.0.",
        "z = x - largest of the row\n"
        "loss = (log of sum of exp(z) - sum of z * y) * counts\n"
        "slope = (exp(z) / sum of exp(z) - y) * counts, with an axis added\n"
        "with a mean: the sum (of the loss), or all (of the slope), over the number that counts",
    ),
    wrong={
        "overflow": "cross_entropy(): x - x.max(axis=-1, keepdims=True) → x",
        "overflow in the derivative": "m.exp(x - x.max(axis=-1, keepdims=True)) → m.exp(x)",
        "forgetting to subtract the label": (
            "e / e.sum(axis=-1, keepdims=True) - at → e / e.sum(axis=-1, keepdims=True)"
        ),
        "y - p": "e / e.sum(axis=-1, keepdims=True) - at → at - e / e.sum(axis=-1, keepdims=True)",
        "counting ignored rows": (
            "m.maximum(counts.sum(), 1) if mean == 'valid' else counts.size → counts.size"
        ),
        "never counting ignored rows": (
            "m.maximum(counts.sum(), 1) if mean == 'valid' else counts.size → "
            "m.maximum(counts.sum(), 1)"
        ),
        "ignored rows in the loss": (
            "(m.log(m.exp(z).sum(axis=-1)) - of_label) * counts → m.log(m.exp(z).sum(axis=-1)) "
            "- of_label"
        ),
        "ignored rows in the derivative": (
            "(e / e.sum(axis=-1, keepdims=True) - at) * counts[..., None] → e / e.sum(axis=-1, "
            "keepdims=True) - at"
        ),
        "forgetting to divide the derivative by the count": (
            "slope if mean is None else slope / _number(m, counts, mean) → slope"
        ),
        "dividing by zero when every row is ignored": "m.maximum(counts.sum(), 1) → counts.sum()",
        "probability instead of its logarithm": (
            "m.log(m.exp(z).sum(axis=-1)) - of_label → 1 - m.exp(of_label) / "
            "m.exp(z).sum(axis=-1)"
        ),
        "softmax down the columns": "e.sum(axis=-1, keepdims=True) → e.sum(axis=0, keepdims=True)",
        "writing into the scores": (
            "e = m.exp(x - x.max(axis=-1, keepdims=True)) → x -= x.max(axis=-1, "
            "keepdims=True); e = m.exp(x)"
        ),
    },
)  # fmt: skip


@np.errstate(all="ignore")
def both(yours, x, label, ignore_index=-100, mean=None):
    """The reader's loss and derivative on NumPy, quiet as the engine is."""
    options = {"ignore_index": ignore_index, "mean": mean}
    return (
        yours.cross_entropy(np, x, label, **options),
        yours.softmax_minus_label(np, x, label, **options),
    )


def reference(x, label, ignore_index, mean):
    """Loss and derivative row by row, with scipy's softmax."""
    loss, slope = np.zeros(label.shape), np.zeros(x.shape)
    for k in np.ndindex(label.shape):
        if label[k] != ignore_index:
            loss[k] = -log_softmax(x[k])[label[k]]
            slope[k] = softmax(x[k])
            slope[k][label[k]] -= 1
    if mean is None:
        return loss, slope
    number = max(1, (label != ignore_index).sum()) if mean == "valid" else label.size
    return loss.sum() / number, slope / number


@exercise.example
def the_example(yours):
    """e^0 + e^(log 3) = 4."""
    x, label = np.log([[1.0, 3.0]]), np.array([0])
    given = {"x": [[0, "log 3"]], "label": [0], "mean": None}
    expect(both(yours, x, label), ([np.log(4.0)], [[-0.75, 0.75]]), given=given)
    expect(x, np.log([[1.0, 3.0]]), given=given, why="the scores given were written into")


@exercise.example
def huge_scores(yours):
    """e^1000 is no float, but the loss of being wrong by 1000 is 1000."""
    x = np.array([[1000.0, 0.0], [-1000.0, -1000.0]])
    expected = [1000.0, np.log(2.0)], [[1.0, -1.0], [0.5, -0.5]]
    expect(both(yours, x, np.array([1, 1])), expected, given={"x": x, "label": [1, 1]})


@exercise.example
def nothing_to_learn_from(yours):
    """Every row ignored: a loss of 0 and no derivative, not 0 / 0."""
    x, label = np.array([[1.0, 2.0]]), np.array([-100])
    for mean in ("valid", "all", None):
        expected = reference(x, label, -100, mean)
        expect(both(yours, x, label, mean=mean), expected, given={"label": [-100], "mean": mean})


@exercise.property(
    shape=st.lists(st.integers(1, 3), min_size=1, max_size=2),
    classes=st.integers(2, 4),
    ignore_index=st.sampled_from([-100, 0, 1]),
    mean=st.sampled_from([None, "valid", "all"]),
    seed=st.integers(0, 99),
    examples=60,
)
def row_by_row(yours, shape, classes, ignore_index, mean, seed):
    """Any shape, any label to ignore, three kinds of mean; against scipy, one row at a time."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(*shape, classes)).round(1)
    label = rng.integers(0, classes, shape)
    label[rng.random(shape) < 0.3] = ignore_index
    given = {"x": x, "label": label, "ignore_index": ignore_index, "mean": mean}
    found = both(yours, x, label, ignore_index, mean)
    expect(found, reference(x, label, ignore_index, mean), given=given)
    single = both(yours, x.astype("float32"), label, ignore_index, mean)
    kinds = [part.dtype.name for part in single]
    expect(kinds, ["float32", "float32"], given=given, why="for float32 scores, another dtype")


@exercise.property(seed=st.integers(0, 99), reduction=st.sampled_from(["mean", "sum", "none"]))
def in_the_engine(yours, seed, reduction):
    """paddle.nn.functional.cross_entropy: your derivative is what central differences give."""
    rng = np.random.default_rng(seed)
    x, label = rng.normal(size=(3, 4)), paddle.to_tensor(rng.integers(0, 4, 3))

    def loss(x):
        each = F.cross_entropy(x, label, ignore_index=2, reduction=reduction)
        return (each * each).sum()

    with exercise.plugged(yours):
        expect_gradients(loss, [x], given={"x": x, "label": label.numpy(), "reduction": reduction})


@exercise.example
def a_model_learns_with_it(yours):
    """Three clouds of points, one of them without labels for half of its points."""
    rng = np.random.default_rng(0)
    label = np.arange(60) % 3
    points = rng.normal(size=(60, 2)) + np.array([[0, 0], [8, 0], [0, 8]])[label]
    x, known = (
        paddle.to_tensor(points, dtype="float32"),
        np.where(np.arange(60) % 6 == 5, -1, label),
    )
    net = nn.Linear(2, 3)
    optimizer = paddle.optimizer.SGD(0.2, parameters=net.parameters())
    with exercise.plugged(yours):
        for _ in range(100):
            F.cross_entropy(net(x), paddle.to_tensor(known), ignore_index=-1).backward()
            optimizer.step()
            optimizer.clear_grad()
    share = float((net(x).argmax(-1).numpy() == label).mean())
    expect_that(share > 0.95, "over 95 % of the points in the right cloud", got=share)


def labelled(x):
    """The last class for every other row, the first for the rest."""
    return np.arange(len(x)) % 2 * (x.shape[-1] - 1)


for part in (0, 1):
    exercise.holds(
        lambda yours, x, part=part: both(yours, x, labelled(x))[part],
        lambda x, part=part: reference(x, labelled(x), -100, None)[part],
        [(3, 4)],
        large=[(30, 5)],
        empty=[(0, 4)],
        infinite=[-np.inf],
    )


@exercise.example
def an_impossible_class(yours):
    """A score of -inf is a probability of 0: nothing to others, an infinite loss to its label."""
    x = np.array([[-np.inf, 0.0, 0.0], [-np.inf, 0.0, 0.0]])
    expected = [np.inf, np.log(2.0)], [[-1.0, 0.5, 0.5], [0.0, -0.5, 0.5]]
    expect(both(yours, x, np.array([0, 1])), expected, given={"x": x, "label": [0, 1]})
