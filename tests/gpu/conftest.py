"""GPU tests run twice: on a strict stand-in for CuPy, always, and on a GPU where there is one."""

import pytest

import minipaddle as paddle
from minipaddle.eager import gpu as gpus
from tests.gpu.fake_cupy import cupy, special


@pytest.fixture(params=["stand-in", pytest.param("cuda", marks=pytest.mark.gpu)])
def gpu(request, monkeypatch):
    """`paddle.set_device("gpu")` for the length of a test."""
    if request.param == "cuda":
        found = gpus.gpu()
        if isinstance(found, str):
            pytest.skip(f"no usable GPU: {found}")
    else:
        module = gpus.ArrayModule(cupy, "cupyx.scipy")
        module.special = special
        monkeypatch.setattr(gpus, "gpu", lambda: module)
    before = paddle.get_device()
    paddle.set_device("gpu")
    yield request.param
    paddle.set_device(before)
