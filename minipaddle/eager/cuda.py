"""NVIDIA GPUs through CuPy. Source: Paddle API `paddle.device.cuda`."""

from __future__ import annotations

from ..core.missing import namespace
from .device import gpu, is_compiled_with_cuda
from .device import synchronize as wait

__all__ = [
    "device_count",
    "empty_cache",
    "get_device_name",
    "memory_allocated",
    "synchronize",
]


def device_count() -> int:
    """How many GPUs can be used. Source: Paddle API `paddle.device.cuda.device_count`.

    >>> import minipaddle as paddle
    >>> paddle.device.cuda.device_count() >= 0
    True
    """
    return gpu().cuda.runtime.getDeviceCount() if is_compiled_with_cuda() else 0


def synchronize(device=None) -> None:
    """Wait until the GPU has done all work given to it. Source: Paddle API
    `paddle.device.cuda.synchronize`.
    """
    wait("gpu" if device is None else device)


def get_device_name(device=None) -> str:
    """What the GPU calls itself. Source: Paddle API `paddle.device.cuda.get_device_name`."""
    return gpu().cuda.runtime.getDeviceProperties(device or 0)["name"].decode()


def memory_allocated(device=None) -> int:
    """Bytes that arrays hold on the GPU. Source: Paddle API
    `paddle.device.cuda.memory_allocated`.
    """
    return gpu().get_default_memory_pool().used_bytes()


def empty_cache() -> None:
    """Give the memory that no array holds back to the driver. Source: Paddle API
    `paddle.device.cuda.empty_cache`.
    """
    if is_compiled_with_cuda():
        gpu().get_default_memory_pool().free_all_blocks()


__getattr__ = namespace("paddle.device.cuda", globals())
