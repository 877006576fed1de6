"""GPUs by CuPy: their array module, and their places."""

from __future__ import annotations

import functools
import importlib

from ..engine.core.errors import teach
from ..engine.eager.device import PLACES, ArrayModule, Place


class CuPy(ArrayModule):
    """CuPy as an array module. Its `linalg` raises LinAlgError, as NumPy's does, where CuPy's own
    would return numbers without a meaning: the factor of a matrix that has none.
    """

    def __init__(self, cupy):
        super().__init__(cupy, "cupyx.scipy")

    @functools.cached_property
    def errstate(self):
        """Settings of CuPy within a block."""
        return importlib.import_module("cupyx").errstate

    @functools.cached_property
    def linalg(self) -> CheckedLinalg:
        return CheckedLinalg(self)


class CheckedLinalg:
    """The functions of `cupy.linalg`, each with its checks on."""

    def __init__(self, module: CuPy):
        self.module = module

    def __getattr__(self, name: str):
        function = getattr(self.module.arrays.linalg, name)

        @functools.wraps(function)
        def checked(*args, **kwargs):
            with self.module.errstate(linalg="raise"):
                return function(*args, **kwargs)

        return checked


@functools.cache
def gpu() -> ArrayModule | str:
    """cupy as an array module, or the reason why there is no usable GPU."""
    try:
        cupy = importlib.import_module("cupy")
        if not cupy.cuda.is_available():
            return "CuPy is installed but finds no CUDA device"
        if int(cupy.arange(3).sum()) != 3:
            return "CuPy's first kernel gave a wrong sum"
        return CuPy(cupy)
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
