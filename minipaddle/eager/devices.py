"""Questions about devices and places, and waiting for them."""

from __future__ import annotations

from ..engine.core.errors import teach
from ..engine.eager.device import Place, as_place, chosen
from . import gpu as gpus

Place.is_cpu_place = lambda self: self.kind == "cpu"
Place.is_gpu_place = lambda self: self.kind == "gpu"
Place._equals = Place.__eq__
Place.is_cuda_pinned_place = lambda self: False
Place.get_device_id = Place.gpu_device_id = lambda self: self.index


class CUDAPinnedPlace(Place):
    """Page-locked memory of the host: no tensor lives there, so `isinstance` is always False.

    Raises RuntimeError when it is called.

    >>> isinstance(paddle.ones([1]).place, paddle.CUDAPinnedPlace)
    False
    """

    def __init__(self):
        raise RuntimeError(
            teach(
                "MiniPaddle pins no memory: CuPy copies from ordinary memory",
                hint="paddle.CPUPlace()",
            )
        )


def get_device(input=None) -> str:
    """The current device, or that of a tensor, such as "cpu" or "gpu:0".

    >>> paddle.get_device(paddle.ones([1]).cpu())
    'cpu'
    """
    return (chosen.now if input is None else input.place).name


def is_compiled_with_cuda() -> bool:
    """Is there a GPU that works?

    >>> paddle.is_compiled_with_cuda() in (True, False)
    True
    """
    return not isinstance(gpus.gpu(), str)


def synchronize(device=None) -> None:
    """Wait until a GPU has done all work given to it; nothing to wait for on the CPU.

    >>> paddle.device.synchronize()
    """
    place = chosen.now if device is None else as_place(device)
    if place.kind == "gpu":
        place.module.cuda.Device(place.index).synchronize()
