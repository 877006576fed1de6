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


class Pool:
    """A pool of CuPy's that has taken 100 bytes, of which arrays hold 30."""

    total, used = 100, 30

    def total_bytes(self):
        return self.total

    def used_bytes(self):
        return self.used

    def free_all_blocks(self):
        self.total = self.used


def test_the_most_that_the_pool_has_taken(gpu, monkeypatch):
    cuda, pool = paddle.device.cuda, Pool()
    cuda.gpu().arrays.get_default_memory_pool = lambda: pool
    monkeypatch.setattr(cuda, "peak_before", [0])
    assert (cuda.memory_reserved(), cuda.max_memory_reserved()) == (100, 100)
    cuda.empty_cache()
    assert (cuda.memory_reserved(), cuda.max_memory_reserved()) == (30, 100)
    pool.total = 250
    assert paddle.device.max_memory_reserved() == 250
    with pytest.raises(AttributeError, match=r"max_memory_allocated: CuPy counts"):
        cuda.max_memory_allocated  # noqa: B018


def test_without_a_gpu_the_reason_is_said(monkeypatch):
    monkeypatch.setattr(gpus, "gpu", lambda: "no CuPy")
    with pytest.raises(RuntimeError, match="no usable GPU: no CuPy"):
        paddle.device.get_device_properties()
    assert not paddle.device.is_bf16_supported()
    for name in ("memory_allocated", "memory_reserved", "max_memory_reserved"):
        with pytest.raises(RuntimeError, match="no usable GPU: no CuPy"):
            getattr(paddle.device.cuda, name)()
