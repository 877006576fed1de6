"""A predictor on a GPU while the default device is the CPU: the numbers of the CPU."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import nn
from minipaddle.inference import Config, create_predictor
from minipaddle.static import InputSpec


@pytest.mark.parametrize("compiled", [False, True])
def test_the_numbers_are_those_of_the_cpu(gpu, compiled, tmp_path):
    paddle.set_device("cpu")
    paddle.seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    prefix = str(tmp_path / "net")
    paddle.jit.save(net, prefix, input_spec=[InputSpec([None, 3], "float32", "x")])
    config = Config(prefix)
    config.enable_use_gpu(100, 0)
    config.enable_cinn() if compiled else config.switch_ir_optim(False)
    predictor = create_predictor(config)
    assert predictor.model.layer.parameters()[0].place == paddle.CUDAPlace(0)
    x = np.random.default_rng(0).normal(size=(2, 3)).astype("float32")
    predictor.get_input_handle("x").copy_from_cpu(x)
    predictor.run()
    with paddle.no_grad():
        wanted = net(paddle.to_tensor(x)).numpy()
    found = predictor.get_output_handle("output_0").copy_to_cpu()
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    found = predictor.run([paddle.to_tensor(x)])[0]
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5, atol=1e-6)
    assert paddle.get_device() == "cpu"
