"""NVIDIA GPUs through CuPy. Source: Paddle API `paddle.device.cuda`."""

from __future__ import annotations

from typing import NamedTuple

from ..core.missing import namespace
from ..engine.eager.device import as_place
from .devices import is_compiled_with_cuda
from .devices import synchronize as wait
from .gpu import CUDAPlace, gpu


def device_count() -> int:
    """How many GPUs can be used.

    >>> paddle.device.cuda.device_count() >= 0
    True
    """
    return gpu().cuda.runtime.getDeviceCount() if is_compiled_with_cuda() else 0


def synchronize(device=None) -> None:
    """Wait until the GPU has done all work given to it."""
    wait("gpu" if device is None else device)


def get_device_name(device=None) -> str:
    """The name of the GPU."""
    return get_device_properties(device).name


class Properties(NamedTuple):
    """The properties of a GPU; memory in bytes."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int


def get_device_properties(device=None) -> Properties:
    """Name, compute capability and sizes of a GPU; RuntimeError with the reason without one."""
    device = 0 if device is None else device
    place = as_place(f"gpu:{device}" if isinstance(device, int) else device)
    values = place.module.cuda.runtime.getDeviceProperties(place.index)
    wanted = ("major", "minor", "totalGlobalMem", "multiProcessorCount")
    return Properties(values["name"].decode(), *(values[key] for key in wanted))


def get_device_capability(device=None) -> tuple[int, int]:
    """The compute capability (major, minor) of a GPU."""
    return get_device_properties(device)[1:3]


def pool():
    """CuPy's pool of memory; RuntimeError with the reason without a GPU."""
    return CUDAPlace().module.get_default_memory_pool()


def memory_allocated(device=None) -> int:
    """Bytes that arrays hold on the GPU."""
    return pool().used_bytes()


def memory_reserved(device=None) -> int:
    """Bytes that CuPy's pool has taken from the driver."""
    return pool().total_bytes()


peak_before = [0]
"""The most bytes that the pool had when memory was given back: until then it only grows."""


def max_memory_reserved(device=None) -> int:
    """The most bytes that CuPy's pool has taken from the driver so far; as `memory_reserved`, with
    RuntimeError without a GPU.
    """
    return max(*peak_before, memory_reserved(device))


def empty_cache() -> None:
    """Give the memory that no array holds back to the driver."""
    if is_compiled_with_cuda():
        peak_before[0] = max_memory_reserved()
        pool().free_all_blocks()


__all__ = [
    "device_count", "empty_cache", "get_device_capability", "get_device_name",
    "get_device_properties", "max_memory_reserved", "memory_allocated", "memory_reserved",
    "synchronize",
]  # fmt: skip
__getattr__ = namespace("paddle.device.cuda", globals())
