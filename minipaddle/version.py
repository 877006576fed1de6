"""The version of Paddle's API, MiniPaddle's own version, and the versions of CUDA and cuDNN.

Source: Paddle API `paddle.version`.
"""

from .eager.devices import is_compiled_with_cuda
from .eager.gpu import gpu

__all__ = ["cuda", "cudnn", "full_version", "major", "minor", "patch", "rc", "show"]

minipaddle = "0.1.0"
"""MiniPaddle's own version; pyproject.toml reads it here."""
full_version = "3.3.1"
major, minor, patch = full_version.split(".")
rc = "0"
commit = "none"  # Paddle's is that of its sources
is_tagged = True


def cuda() -> str | bool:
    """The version of CUDA that CuPy uses, or False."""
    if not is_compiled_with_cuda():
        return False
    version = gpu().cuda.runtime.runtimeGetVersion()
    return f"{version // 1000}.{version % 1000 // 10}"


def cudnn() -> bool:
    """False: cuDNN is not used."""
    return False


def show() -> None:
    """Print the versions."""
    print(f"full_version: {full_version}\nminipaddle: {minipaddle}")
    print(f"cuda: {cuda()}\ncudnn: {cudnn()}")
