"""float32, O2, 8 bits, fewer channels, both: each saved, loaded, the same on all executors."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.engine.executors.compiler import compiler
from tests.benchmarks import compression_stages as user
from tests.benchmarks.quantization import digits

BACKENDS = ["interpreter", *["native"] * (compiler() is not None)]


@pytest.fixture(scope="module")
def stages():
    """A small network that reads digits, stage by stage."""
    paddle.seed(1)
    data = [x[:512] for x in digits("train")]
    return user.stages(user.network(8, 10), data, epochs=5, more=4, align=4)


@pytest.mark.parametrize("name", ["float32", "O2", "int8", "pruned", "pruned int8"])
def test_a_stage_is_saved_and_loaded(name, stages, tmp_path, monkeypatch):
    net, (images, labels) = stages[name], digits("test")
    with paddle.no_grad():
        wanted = net(images)
    assert user.accuracy(wanted, labels) > (0.4 if "pruned" in name else 0.6)
    path = tmp_path / name
    user.save(net, path, [1, 8, 8])
    for backend in BACKENDS[: 2 if name.endswith("int8") else 1]:
        monkeypatch.setenv("MINIPADDLE_BACKEND", backend)
        np.testing.assert_array_equal(user.read(path, images).numpy(), wanted.numpy())


def test_each_stage_is_smaller(stages):
    """Weights in two bytes, in one, fewer of them."""
    size = lambda net: sum(x.size * x.element_size() for x in net.state_dict().values())
    whole = size(stages["float32"])
    assert size(stages["O2"]) < 0.6 * whole
    assert size(stages["int8"]) < 0.4 * whole  # scales, biases, statistics of norms stay floats
    assert size(stages["pruned"]) < 0.8 * whole
    assert size(stages["pruned int8"]) < size(stages["pruned"]) / 2
    kinds = {type(x).__name__ for x in stages["pruned int8"].sublayers()}
    assert {"QuantedConv2D", "QuantedLinear"} <= kinds
    assert not {"Conv2D", "Linear", "BatchNorm2D"} & kinds
    assert {p.dtype for p in stages["O2"].parameters()} == {paddle.bfloat16, paddle.float32}
