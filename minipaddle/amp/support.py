"""Which dtypes a device computes in, and whether mixed precision is on."""

from contextlib import AbstractContextManager

from ..core.prelude import current, dt
from ..engine.eager.device import as_place, current_place
from .auto_cast import auto_cast

__all__ = [
    "get_autocast_cpu_dtype", "get_autocast_dtype", "get_autocast_gpu_dtype", "is_autocast_enabled",
    "is_bfloat16_supported", "is_float16_supported",
]  # fmt: skip


def is_float16_supported(device: str | None = None) -> bool:
    """Whether a device computes on float16 values: all do, in float32.

    >>> paddle.amp.is_float16_supported("cpu")
    True
    """
    return supports(device, "float16")


def is_bfloat16_supported(device: str | None = None) -> bool:
    """Whether a device computes on bfloat16 values: the CPU with the package ml_dtypes, a GPU not.

    >>> paddle.amp.is_bfloat16_supported("cpu")
    True
    """
    return supports(device, "bfloat16")


def supports(device: str | None, dtype: str) -> bool:
    """Whether a device (None: where new tensors are made) has values of a dtype."""
    place = current_place() if device is None else as_place(device)
    has_dtype = dt.resolve(dtype).kind in "fV" and dt.resolve(dtype).fields is None
    return has_dtype and (dtype == "float16" or not place.is_gpu_place())


# ---- PyTorch's names -------------------------------------------------------------------------


def autocast(
    device_type: str, dtype="float16", enabled: bool = True, cache_enabled: bool = True
) -> AbstractContextManager:
    """`auto_cast(enabled, dtype=dtype)`: one block serves every device, and a program computes
    equal casts once.

    >>> with paddle.autocast("cpu", dtype="bfloat16"):
    ...     paddle.is_autocast_enabled(), paddle.get_autocast_dtype()
    (True, paddle.bfloat16)
    """
    return auto_cast(enabled, dtype=dtype)


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Whether a block of mixed precision is on.

    >>> paddle.is_autocast_enabled()
    False
    """
    return current.top.policy is not None


def get_autocast_dtype(device_type: str | None = None) -> dt.DType:
    """The dtype of the block of mixed precision; outside of one `auto_cast()`'s, float16.

    >>> paddle.get_autocast_dtype()
    paddle.float16
    """
    policy = current.top.policy
    return dt.float16 if policy is None else dt.public(policy.low)


get_autocast_cpu_dtype = get_autocast_gpu_dtype = get_autocast_dtype
