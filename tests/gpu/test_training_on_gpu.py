"""Real models on the device: the same losses as on the CPU, and nothing that slips to the host."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import nn
from minipaddle.eager import gpu as gpus


class Small(nn.Layer):
    """Convolution, normalisation, attention and a recurrence, in a few numbers."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2D(1, 4, 3, padding=1), nn.BatchNorm2D(4)
        self.attend = nn.MultiHeadAttention(16, 2)
        self.layer_norm, self.lstm = nn.LayerNorm(16), nn.LSTM(16, 8)
        self.head = nn.Linear(8, 10)

    def forward(self, x):
        y = nn.functional.max_pool2d(nn.functional.relu(self.norm(self.conv(x))), 2)
        y = self.layer_norm(y.flatten(2))
        y = y + self.attend(y)
        y, _ = self.lstm(y)
        return self.head(y.mean(axis=1))


OPTIMIZERS = {
    "sgd": lambda p: paddle.optimizer.SGD(0.1, p),
    "momentum": lambda p: paddle.optimizer.Momentum(0.1, 0.9, p, use_nesterov=True),
    "adamw": lambda p: paddle.optimizer.AdamW(0.01, parameters=p),
}


def train(where: str, make_optimizer, steps: int = 3) -> list[float]:
    with paddle.device.device_guard(where):
        paddle.seed(0)
        net = Small()
        rng = np.random.default_rng(0)
        for p in net.parameters():
            p.set_value(rng.normal(size=p.shape).astype("float32") * 0.3)
        x = paddle.to_tensor(rng.normal(size=(4, 1, 8, 8)).astype("float32"))
        labels = paddle.to_tensor(rng.integers(0, 10, 4))
        optimizer, losses = make_optimizer(net.parameters()), []
        for _ in range(steps):
            loss = nn.functional.cross_entropy(net(x), labels)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            losses.append(loss.item())
        assert {p.place.kind for p in net.parameters()} == {where}
    return losses


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_a_model_trains_as_on_the_cpu(gpu, name):
    on_gpu = train("gpu", OPTIMIZERS[name])
    np.testing.assert_allclose(on_gpu, train("cpu", OPTIMIZERS[name]), rtol=1e-4)
    assert on_gpu[-1] < on_gpu[0]


def test_random_numbers_are_the_cpus(gpu):
    draws = {}
    for where in ("cpu", "gpu"):
        with paddle.device.device_guard(where):
            paddle.seed(7)
            draws[where] = paddle.uniform([100]).numpy(), paddle.randn([100]).numpy()
    np.testing.assert_array_equal(draws["cpu"][0], draws["gpu"][0])
    np.testing.assert_array_equal(draws["cpu"][1], draws["gpu"][1])


def test_tensors_move(gpu):
    x = paddle.to_tensor([1.0, 2.0], place="cpu")
    there = x.cuda()
    assert there.place == paddle.CUDAPlace(0)
    assert there.cpu().numpy().tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match=r"(?s)different devices.*x\.to\("):
        x + there


def test_without_a_gpu_the_reason_is_said(monkeypatch):
    monkeypatch.setattr(gpus, "gpu", lambda: "CuPy is installed but finds no CUDA device")
    with pytest.raises(RuntimeError, match=r"(?s)no usable GPU: CuPy is installed.*cuda12"):
        paddle.set_device("gpu")
    assert paddle.get_device() == "cpu"
    assert not paddle.is_compiled_with_cuda()


def test_an_unknown_device_is_refused():
    with pytest.raises(ValueError, match="unknown device 'tpu'"):
        paddle.set_device("tpu")
