"""Checks of 04_training/batch_norm."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.learn import Exercise, expect, expect_gradients, expect_that

exercise = Exercise(
    title="Batch norm, in training and in evaluation",
    level="medium",
    minutes=30,
    before=("01_arrays",),
    slots={"nn.batch_norm": "batch_norm"},
    hints=(
        "Which numbers of a batch of images share a mean? And where do mean and variance come from "
        "when there is only one image?",
        "x.mean([dimensions], keepdim=True) leaves sizes of 1, which broadcast against x. A [C] "
        "tensor meets x after reshape([1, -1, 1, 1]), with the -1 on `axis`.",
        "training: mean and var over every dimension but axis, keepdim; under no_grad move both "
        "running ones\nelse: the running ones, reshaped\n"
        "y = (x - mean) / root of (var + epsilon); times weight, plus bias, where there are any",
    ),
    wrong={
        "batch statistics in evaluation": "training → True",
        "running statistics in training": (
            "y = (x - mean) * paddle.rsqrt(var + epsilon) → mean, var = "
            "(running_mean.reshape(shape), running_var.reshape(shape)); y = (x - mean) * "
            "paddle.rsqrt(var + epsilon)"
        ),
        "momentum the other way round, as PyTorch has it": (
            "momentum * running + (1 - momentum) * batch.reshape([-1]) → (1 - momentum) * "
            "running + momentum * batch.reshape([-1])"
        ),
        "dividing the variance by the count minus 1": (
            "((x - mean) ** 2).mean(others, keepdim=True) → ((x - mean) ** 2).sum(others, "
            "keepdim=True) / max(x.size // x.shape[axis] - 1, 1)"
        ),
        "a mean over everything": "x.mean(others, keepdim=True) → x.mean()",
        "channels always on axis 1": (
            "d == axis → d == 1",
            "[d for d in range(x.ndim) if d != axis] → [d for d in range(x.ndim) if d != 1]",
        ),
        "forgetting the root": "paddle.rsqrt(var + epsilon) → 1 / (var + epsilon)",
        "epsilon outside the root": "paddle.rsqrt(var + epsilon) → 1 / (var.sqrt() + epsilon)",
        "never moving the statistics": (
            "running.set_value(momentum * running + (1 - momentum) * batch.reshape([-1])) → "
            "momentum * running + (1 - momentum) * batch.reshape([-1])"
        ),
        "a mean that is taken as constant": "x.mean → x.detach().mean",
        "moving the statistics in evaluation": (
            "y = (x - mean) * paddle.rsqrt(var + epsilon) → _move(running_mean, mean, "
            "momentum); y = (x - mean) * paddle.rsqrt(var + epsilon)"
        ),
    },
    unkillable={
        "batch_norm: right only for positive axes": "the task counts axes from the front",
    },
)  # fmt: skip


def tensor(x):
    return paddle.to_tensor(x, dtype="float64")


def called(yours, x, *, axis=1, training=True, momentum=0.9, epsilon=0.0, scale=None):
    """(the result, the running statistics after) with statistics 0 and 1 before."""
    channels = x.shape[axis]
    mean, var = paddle.zeros([channels], "float64"), paddle.ones([channels], "float64")
    weight, bias = (None, None) if scale is None else map(tensor, scale)
    y = yours.batch_norm(tensor(x), mean, var, weight, bias, training, momentum, epsilon, axis)
    return y, mean, var


@exercise.example
def the_example(yours):
    """1 and 3 have the mean 2 and the deviation 1."""
    x = np.array([[1.0], [3.0]])
    y, mean, var = called(yours, x)
    given = {"x": x, "training": True, "momentum": 0.9, "epsilon": 0.0}
    expect(y, [[-1.0], [1.0]], given=given)
    expect((mean, var), ([0.2], [1.0]), given=given, why="other running statistics")


@exercise.example
def evaluation(yours):
    """The running mean 0 and variance 1 leave x as it is; nothing is written."""
    x = np.array([[1.0], [5.0]])
    y, mean, var = called(yours, x, training=False)
    given = {"x": x, "training": False, "running mean": [0.0], "running variance": [1.0]}
    expect(y, x, given=given)
    expect((mean, var), ([0.0], [1.0]), given=given, why="evaluation moved the statistics")


def reference(x, mean, var, weight, bias, training, momentum, epsilon, axis):
    """(y, new mean, new variance) in NumPy, channel by channel."""
    y, mean, var = np.empty_like(x), mean.copy(), var.copy()
    for c in range(x.shape[axis]):
        at = (slice(None),) * axis + (c,)
        m, v = (np.mean(x[at]), np.var(x[at])) if training else (mean[c], var[c])
        y[at] = (x[at] - m) * (v + epsilon) ** -0.5 * weight[c] + bias[c]
        if training:
            mean[c] = momentum * mean[c] + (1 - momentum) * m
            var[c] = momentum * var[c] + (1 - momentum) * v
    return y, mean, var


FORMATS = {"NC": (4, 3), "NCL": (2, 3, 4), "NCHW": (3, 2, 2, 2), "NHWC": (2, 2, 3, 2)}


@exercise.property(
    form=st.sampled_from(list(FORMATS)),
    training=st.booleans(),
    momentum=st.sampled_from([0.9, 0.5]),
    epsilon=st.sampled_from([1e-5, 0.5]),
    scaled=st.booleans(),
    seed=st.integers(0, 99),
    examples=40,
)
def in_the_engine(yours, form, training, momentum, epsilon, scaled, seed):
    """paddle.nn.functional.batch_norm, against NumPy channel by channel."""
    rng, shape = np.random.default_rng(seed), FORMATS[form]
    axis = form.index("C")
    x, channels = rng.normal(2, 3, shape).round(1), shape[axis]
    mean, var = rng.normal(size=channels).round(1), rng.uniform(0.5, 2, channels).round(1)
    weight, bias = np.ones(channels), np.zeros(channels)
    if scaled:
        weight, bias = weight + np.arange(channels), bias - np.arange(1, channels + 1)
    options = training, momentum, epsilon
    given = {"x": x, "format": form, "training": training, "momentum": momentum, "epsilon": epsilon}
    expected = reference(x, mean, var, weight, bias, *options, axis)
    stats = tensor(mean), tensor(var)
    parts = (tensor(weight), tensor(bias)) if scaled else (None, None)
    with exercise.plugged(yours):
        y = F.batch_norm(tensor(x), *stats, *parts, *options, data_format=form)
    expect(y, expected[0], given={**given, "scaled": scaled})
    expect(stats, expected[1:], given=given, why="other running statistics")


@exercise.example
def derivatives(yours):
    """For x (mean and variance move with it), weight and bias: as central differences say."""
    rng = np.random.default_rng(0)
    x, weight, bias = rng.normal(size=(4, 2)), rng.normal(size=2), rng.normal(size=2)
    pull = tensor(rng.normal(size=(4, 2)))

    def loss(x, weight, bias):
        stats = paddle.zeros([2], "float64"), paddle.ones([2], "float64")
        return (F.batch_norm(x, *stats, weight, bias, training=True) * pull).sum()

    with exercise.plugged(yours):
        expect_gradients(loss, [x, weight, bias])


@exercise.example
def two_modes_of_a_layer(yours):
    """nn.BatchNorm1D learns where the data lie, 5 wide by 2, and then needs no batch."""
    rng = np.random.default_rng(0)
    layer = nn.BatchNorm1D(1)
    with exercise.plugged(yours):
        for _ in range(100):
            layer(paddle.to_tensor(rng.normal(5, 2, (64, 1)), dtype="float32"))
        layer.eval()
        y = layer(paddle.to_tensor([[5.0], [7.0]])).numpy()
    kept = layer._mean.stop_gradient and layer._mean.shape == [1]
    expect_that(kept, "statistics that are still [C], without a derivative", got=layer._mean)
    expect_that(np.allclose(y, [[0.0], [1.0]], atol=0.2), "5 -> 0 and 7 -> 1, nearly", got=y)


@exercise.example
def a_network_learns(yours):
    """Inputs a thousand times too large: with batch norm that does not matter."""
    paddle.seed(0)
    rng = np.random.default_rng(0)
    label = np.arange(40) % 2
    points = 1000 * (rng.normal(size=(40, 2)) + 3 * label[:, None])
    x, labels = paddle.to_tensor(points, dtype="float32"), paddle.to_tensor(label)
    net = nn.Sequential(nn.BatchNorm1D(2), nn.Linear(2, 2))
    optimizer = paddle.optimizer.SGD(0.5, parameters=net.parameters())
    with exercise.plugged(yours):
        for _ in range(60):
            F.cross_entropy(net(x), labels).backward()
            optimizer.step()
            optimizer.clear_grad()
        net.eval()
        share = float((net(x).argmax(-1).numpy() == label).mean())
    expect_that(share > 0.9, "over 90 % right in evaluation", got=share)


def normalized(training):
    """A function of yours, x, mean, scale of the variance, weight and bias."""

    def run(yours, x, mean, var, weight, bias):
        stats = mean + 0, var * var + 0.5
        return yours.batch_norm(x, *stats, weight, bias, training, 0.9, 1e-30, 1)

    return run


for training in (True, False):
    exercise.holds(
        normalized(training),
        lambda x, mean, var, w, b, training=training: reference(
            x, mean, var**2 + 0.5, w, b, training, 0.9, 1e-30, 1
        )[0],
        [(5, 3, 4), *[(3,)] * 4],
        large=[(10, 3, 20), *[(3,)] * 4],
        empty=None if training else [(0, 3, 4), *[(3,)] * 4],
        infinite=[] if training else [np.inf],
        tensors=True,
    )
