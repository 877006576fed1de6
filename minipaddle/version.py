"""Which version this is, and with what it can compute. Source: Paddle API `paddle.version`."""

from .eager.device import gpu, is_compiled_with_cuda

__all__ = ["cuda", "cudnn", "full_version", "show"]

full_version = "0.1.0"


def cuda() -> str | bool:
    """The version of CUDA that CuPy uses, or False. Source: Paddle API `paddle.version.cuda`."""
    if not is_compiled_with_cuda():
        return False
    version = gpu().cuda.runtime.runtimeGetVersion()
    return f"{version // 1000}.{version % 1000 // 10}"


def cudnn() -> bool:
    """False: cuDNN is not used. Source: Paddle API `paddle.version.cudnn`."""
    return False


def show() -> None:
    """Print the version. Source: Paddle API `paddle.version.show`."""
    print(f"full_version: {full_version}\ncuda: {cuda()}\ncudnn: {cudnn()}")
