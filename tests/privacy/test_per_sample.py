"""Clipped sums of single samples' gradients: against a loop, in eager mode and in programs."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import nn
from minipaddle.privacy.engine import GradSampleModule, SampleBatch
from tests.privacy.networks import NETS, SIZE, batch, loop

F = nn.functional


def begin(net, bound, size=SIZE, here=SIZE):
    """The private network and its batch, of which `here` rows are samples."""
    now = SampleBatch(size, bound, size)
    now.start(here, skip=False)
    return GradSampleModule(net, now), now


def clipped(net, x, y, bound, backend=None, here=SIZE):
    """The clipped sums, by a captured step or (None) in eager mode."""
    private, now = begin(net, bound, here=here)
    parameters = [p for p in net.parameters() if not p.stop_gradient]

    def gradients(x, y):
        return paddle.grad(F.cross_entropy(private(x), y), parameters)

    def step(x, y):
        return now.clip(gradients(x, y), now.marks)

    f = gradients if backend is None else paddle.jit.to_static(step, backend=backend)
    return [g.numpy() for g in f(paddle.to_tensor(x), paddle.to_tensor(y))]


@pytest.mark.parametrize("backend", [None, "interpreter", "native"])
@pytest.mark.parametrize("kind", NETS)
def test_equal_to_the_loop(kind, backend):
    paddle.seed(1)
    net, (x, y) = NETS[kind](), batch(kind)
    _, norms = loop(net, x, y)
    bound = float(np.median(norms))
    expected, _ = loop(net, x, y, bound)
    assert (norms > bound).any()
    assert (norms < bound).any()
    for ours, theirs in zip(clipped(net, x, y, bound, backend), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("backend", [None, "interpreter"])
def test_padding_counts_nothing(backend):
    net, (x, y) = NETS["cnn"](), batch("cnn")
    expected, _ = loop(net, x[:4], y[:4], 0.5)
    for ours, theirs in zip(clipped(net, x, y, 0.5, backend, here=4), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=2e-6)


class Centred(nn.Layer):
    """Subtracts the mean of the batch."""

    def forward(self, x):
        return x - x.mean(0)


class Compared(nn.Layer):
    """Compares each sample with each."""

    def forward(self, x):
        return x @ x.t() @ x


class Largest(nn.Layer):
    """Divides by the largest value of the batch."""

    def forward(self, x):
        return x / x.max(0)


class Neighbours(nn.Layer):
    """Adds the sample before."""

    def forward(self, x):
        return x + paddle.roll(x, 1, 0)


class Placed(nn.Layer):
    """Adds to each place in the batch a weight of its own."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Linear(SIZE, 5).weight

    def forward(self, x):
        return x + self.weight


class Chosen(nn.Layer):
    """Decides by the whole batch."""

    def forward(self, x):
        return paddle.static.nn.cond(x.sum() > 0, lambda: x * 2.0, lambda: x)


@pytest.mark.parametrize("backend", [None, "interpreter"])
@pytest.mark.parametrize(
    ("layer", "name"),
    [(nn.BatchNorm1D(5), "BatchNorm1D"), (Centred(), "Centred"), (Compared(), "Compared"),
     (Largest(), "Largest"), (Neighbours(), "Neighbours"), (Chosen(), "Chosen")],
)  # fmt: skip
def test_what_mixes_samples_is_refused_by_name(layer, name, backend):
    net, (x, y) = nn.Sequential(nn.Linear(5, 5), layer, nn.Linear(5, 5)), batch("mlp")
    with pytest.raises(NotImplementedError, match=rf"(?s){name}.*mixes the samples.*test_per"):
        clipped(net, x, y, 1.0, backend)


@pytest.mark.parametrize("backend", [None, "interpreter"])
def test_a_weight_of_each_place_in_the_batch_is_refused(backend):
    net, (x, y) = nn.Sequential(nn.Linear(5, 5), Placed(), nn.Linear(5, 5)), batch("mlp")
    with pytest.raises(NotImplementedError, match=r"a weight of float32\[6, 5\]"):
        clipped(net, x, y, 1.0, backend)


def test_batch_norm_that_is_not_trained_is_fine():
    net, (x, y) = nn.Sequential(nn.Linear(5, 5), nn.BatchNorm1D(5)), batch("mlp")
    net[1].eval()
    expected, _ = loop(net, x, y, 0.5)
    for ours, theirs in zip(clipped(net, x, y, 0.5), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=2e-6)


class Counted(nn.Layer):
    """Looks words up from the end, too, and some twice."""

    def __init__(self, words):
        super().__init__()
        self.table = nn.Embedding(words, 5).weight

    def forward(self, i):
        return F.tanh(paddle.gather(self.table, i.flatten()).reshape([*i.shape, 5])).sum(1)


@pytest.mark.parametrize("words", [4, 400])
def test_rows_that_are_looked_up_from_the_end(words):
    net, y = Counted(words), batch("mlp")[1]
    x = np.array([[0, -words, 1]] * 3 + [[-1, words - 1, -1]] * 3)
    expected, _ = loop(net, x, y, 0.5)
    for ours, theirs in zip(clipped(net, x, y, 0.5), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=2e-6)


def test_another_size_is_an_error():
    private, _ = begin(NETS["mlp"](), 1.0)
    with pytest.raises(ValueError, match="6 samples on axis 0"):
        private(paddle.ones([5, 5]))


def test_a_product_of_two_vectors_is_not_written():
    """The norm of a sample's gradient is that of its two factors, multiplied."""
    net, (x, y) = NETS["rows"](), batch("rows")
    private, now = begin(net, 1.0)

    def step(x, y):
        loss = F.cross_entropy(private(x), y)
        return now.clip(paddle.grad(loss, net.parameters()), now.marks)

    f = paddle.jit.to_static(step)
    f(paddle.to_tensor(x), paddle.to_tensor(y))
    records = f.concrete_program.program.records
    assert (SIZE, 28, 5) not in {tuple(r.shape) for r in records if r.dtype is not None}
