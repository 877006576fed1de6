"""The proof that rows are independent: compared with runs of single rows."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import nn
from minipaddle.inference.rows import batch_of, rows_independent
from minipaddle.static import InputSpec

F = nn.functional


def saved(function, tmp_path, *shape, dtype="float32"):
    prefix = str(tmp_path / "net")
    paddle.jit.save(function, prefix, input_spec=[InputSpec([None, *shape], dtype, "x")])
    return paddle.jit.load(prefix)


def network(layer):
    layer.eval()
    return layer


APART = {
    "perceptron": (network(nn.Sequential(nn.Linear(3, 5), nn.GELU(), nn.Linear(5, 2))), (3,)),
    "layer norm, softmax": (lambda x: F.softmax(F.layer_norm(x, 4), -1), (3, 4)),
    "sorted along a row": (lambda x: paddle.sort(x, 1), (5,)),
    "reshaped rows": (lambda x: paddle.transpose(x.reshape([-1, 2, 3]), [0, 2, 1]), (6,)),
    "a row's mean": (lambda x: x - x.mean(1, keepdim=True), (4,)),
    "products of a row's matrices": (lambda x: x @ paddle.transpose(x, [0, 2, 1]), (3, 2)),
    "flipped rows": (lambda x: paddle.flip(x, [1]), (4,)),
    "convolution and norm": (
        network(nn.Sequential(nn.Conv2D(2, 3, 3, padding=1), nn.BatchNorm2D(3), nn.ReLU(),
                              nn.MaxPool2D(2))), (2, 6, 6)),
    "beside zeros": (lambda x: paddle.concat([x, paddle.zeros_like(x)], 1), (3,)),
}  # fmt: skip

TOGETHER = {
    "mean of the batch": (lambda x: x - x.mean(0), (3,)),
    "softmax over the batch": (lambda x: F.softmax(x, 0), (3,)),
    "a flipped batch": (lambda x: paddle.flip(x, [0]), (3,)),
    "a rolled batch": (lambda x: paddle.roll(x, 1, 0), (3,)),
    "sums so far": (lambda x: paddle.cumsum(x, 0), (3,)),
    "a sorted batch": (lambda x: paddle.sort(x, 0), (3,)),
    "the number of the row": (
        lambda x: x + paddle.arange(x.shape[0], dtype="float32").unsqueeze(1), (3,)),
    "divided by all": (lambda x: x / x.sum(), (3,)),
    "the largest of all": (lambda x: x - x.max(), (3,)),
    "pairs of rows": (lambda x: paddle.tanh(x) @ paddle.transpose(x, [1, 0]) @ x, (3,)),
    "the first row": (lambda x: x - x[:1], (3,)),
    "columns as rows": (lambda x: paddle.transpose(x, [1, 0]) + 0.0, (3,)),
    "a norm in training": (nn.BatchNorm1D(3), (3,)),
    "dropout": (lambda x: F.dropout(x, 0.5, training=True), (3,)),
}  # fmt: skip


@pytest.mark.parametrize("name", APART)
def test_rows_that_are_proved_independent_are(name, tmp_path):
    function, shape = APART[name]
    layer = saved(function, tmp_path, *shape)
    assert rows_independent(layer.program())
    x = np.random.default_rng(0).normal(size=(5, *shape)).astype("float32")
    with paddle.no_grad():
        whole = layer(paddle.to_tensor(x)).numpy()
        alone = [layer(paddle.to_tensor(row[None])).numpy() for row in x]
    np.testing.assert_allclose(whole, np.concatenate(alone), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", TOGETHER)
def test_rows_that_depend_on_each_other_are_not_proved_independent(name, tmp_path):
    function, shape = TOGETHER[name]
    assert not rows_independent(saved(function, tmp_path, *shape).program())


def test_a_language_model(tmp_path):
    net = network(paddle.text.GPT(16, width=8, layers=1, heads=2, context=6))
    assert rows_independent(saved(net, tmp_path, 6, dtype="int64").program())


def test_a_batch_is_in_front_of_every_input_and_output(tmp_path):
    assert batch_of(saved(lambda x: x * 2, tmp_path, 3).program()) == "batch"
    assert batch_of(saved(lambda x: (x * 2, x.sum()), tmp_path, 3).program()) is None
    prefix = str(tmp_path / "two")
    specs = [InputSpec([None, 3], name="x"), InputSpec([3], name="w")]
    paddle.jit.save(lambda x, w: x * w, prefix, input_spec=specs)
    assert batch_of(paddle.jit.load(prefix).program()) is None
