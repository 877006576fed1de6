"""GPU tests run twice: on a strict stand-in for CuPy, always, and on a GPU where there is one."""

import pytest

import minipaddle as paddle
from minipaddle.eager import gpu as gpus
from minipaddle.engine.eager.device import current_place
from minipaddle.executors.gpu import gpu_program
from tests.codegen.cuda_on_cpu import can_emulate_gpu
from tests.gpu import fake_cuda
from tests.gpu.fake_cupy import cupy, errstate, special

CUDA = [] if isinstance(gpus.gpu(), str) else [pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.fixture(params=["stand-in", *CUDA])
def gpu(request, monkeypatch):
    """`paddle.set_device("gpu")` for the length of a test."""
    if request.param != "cuda":
        module = gpus.CuPy(cupy)
        module.special, module.errstate = special, errstate
        monkeypatch.setattr(gpus, "gpu", lambda: module)
    before = paddle.get_device()
    paddle.set_device("gpu")
    yield request.param
    paddle.set_device(before)


@pytest.fixture
def device(gpu, monkeypatch):
    """The device of compiled programs."""
    if gpu == "cuda":
        return gpu_program.gpu_of(0)
    if not can_emulate_gpu():
        pytest.skip("needs g++ on x86-64")
    emulated = fake_cuda.install(current_place().module, monkeypatch)
    monkeypatch.setattr(gpu_program, "gpu_of", lambda index: emulated)
    return emulated
