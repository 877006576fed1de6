"""What can be asked of the devices, on this machine and on a stand-in for a GPU."""

from types import SimpleNamespace

import pytest

import minipaddle as paddle
from minipaddle.eager import gpu as gpus
from minipaddle.engine.eager.device import ArrayModule

PROPERTIES = {
    "name": b"NVIDIA H100", "major": 9, "minor": 0, "totalGlobalMem": 80,
    "multiProcessorCount": 132,
}  # fmt: skip


def test_what_is_never_there():
    asked = ("cinn", "ipu", "rocm", "xpu")
    assert not any(getattr(paddle.device, f"is_compiled_with_{kind}")() for kind in asked)
    assert paddle.device.get_all_custom_device_type() == []
    assert paddle.device.get_cudnn_version() is None
    assert paddle.is_compiled_with_distribute()
    assert not paddle.device.is_compiled_with_custom_device("npu")


def test_the_generator_of_the_device():
    state = paddle.device.get_rng_state()
    first = paddle.rand([2]).tolist()
    paddle.device.set_rng_state(state)
    assert paddle.rand([2]).tolist() == first
    paddle.device.manual_seed(3)
    assert paddle.device.get_rng_state() == [(3, 0)]


@pytest.fixture
def gpu(monkeypatch):
    found = {0: PROPERTIES, 1: PROPERTIES | {"name": b"Tesla V100", "major": 7}}
    runtime = SimpleNamespace(getDeviceProperties=found.get, getDeviceCount=lambda: 2)
    cupy = ArrayModule(SimpleNamespace(__name__="cupy", cuda=SimpleNamespace(runtime=runtime)), "")
    monkeypatch.setattr(gpus, "gpu", lambda: cupy)
    monkeypatch.setattr(paddle.device.cuda, "gpu", lambda: cupy)


@pytest.mark.usefixtures("gpu")
def test_what_a_gpu_says_of_itself():
    assert paddle.device.get_device_properties() == ("NVIDIA H100", 9, 0, 80, 132)
    assert paddle.device.get_device_properties("gpu:1").name == "Tesla V100"
    assert paddle.device.get_device_name(1) == "Tesla V100"
    assert paddle.device.get_device_capability(0) == (9, 0)
    assert paddle.device.is_available()
    assert paddle.device.is_bf16_supported(including_emulation=False)
    assert paddle.device.device_count() == 2
    assert paddle.device.get_available_device() == ["cpu", "gpu:0", "gpu:1"]


def test_without_a_gpu_the_reason_is_said(monkeypatch):
    monkeypatch.setattr(gpus, "gpu", lambda: "no CuPy")
    with pytest.raises(RuntimeError, match="no usable GPU: no CuPy"):
        paddle.device.get_device_properties()
    assert not paddle.device.is_bf16_supported()
