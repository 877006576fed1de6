"""Devices. Source: Paddle API `paddle.device`."""

from __future__ import annotations

from .core.missing import namespace
from .eager import cuda
from .eager.device import (
    CPUPlace,
    CUDAPinnedPlace,
    CUDAPlace,
    device_guard,
    get_device,
    is_compiled_with_cuda,
    set_device,
    synchronize,
)

__all__ = [
    "CPUPlace",
    "CUDAPinnedPlace",
    "CUDAPlace",
    "cuda",
    "device_count",
    "device_guard",
    "get_all_device_type",
    "get_available_device",
    "get_device",
    "is_compiled_with_cuda",
    "set_device",
    "synchronize",
]

device_count = cuda.device_count


def get_all_device_type() -> list[str]:
    """The kinds of device that can be used here. Source: Paddle API
    `paddle.device.get_all_device_type`.

    >>> import minipaddle as paddle
    >>> "cpu" in paddle.device.get_all_device_type()
    True
    """
    return ["cpu", "gpu"] if is_compiled_with_cuda() else ["cpu"]


def get_available_device() -> list[str]:
    """Every device that can be used here. Source: Paddle API
    `paddle.device.get_available_device`.

    >>> import minipaddle as paddle
    >>> paddle.device.get_available_device()[0]
    'cpu'
    """
    return ["cpu", *(f"gpu:{k}" for k in range(device_count()))]


__getattr__ = namespace("paddle.device", globals())
