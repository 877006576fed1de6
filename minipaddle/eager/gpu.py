"""GPUs by CuPy: their array module, and their places."""

from __future__ import annotations

import functools
import importlib

from ..engine.core.errors import teach
from ..engine.eager.device import PLACES, ArrayModule, Place


@functools.cache
def gpu() -> ArrayModule | str:
    """cupy as an array module, or the reason why there is no usable GPU."""
    try:
        cupy = importlib.import_module("cupy")
        if not cupy.cuda.is_available():
            return "CuPy is installed but finds no CUDA device"
        if int(cupy.arange(3).sum()) != 3:
            return "CuPy's first kernel gave a wrong sum"
        return ArrayModule(cupy, "cupyx.scipy")
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


class CUDAPlace(Place):
    """GPU number `id`.

    >>> paddle.CUDAPlace(1)
    Place(gpu:1)
    """

    kind = "gpu"

    def __init__(self, id: int = 0):
        self.index = id

    @property
    def module(self) -> ArrayModule:
        """The array module of this place; raises RuntimeError with the reason if it has none."""
        m = gpu()
        if isinstance(m, str):
            raise RuntimeError(
                teach(
                    f"no usable GPU: {m}",
                    hint="pip install 'minipaddle[cuda12]' on a machine with an NVIDIA GPU, "
                    'or paddle.set_device("cpu")',
                )
            )
        return m

    def move(self, array):
        m = self.module
        with m.cuda.Device(self.index):
            return m.asarray(array)

    def use(self) -> None:
        """Make it CuPy's device of this thread."""
        self.module.cuda.Device(self.index).use()


PLACES["gpu"] = CUDAPlace
