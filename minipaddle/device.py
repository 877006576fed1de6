"""Devices. Source: Paddle API `paddle.device`."""

from contextlib import contextmanager

from .eager import cuda
from .eager.cuda import (
    device_count,
    get_device_capability,
    get_device_name,
    get_device_properties,
    max_memory_reserved,
)
from .eager.devices import CUDAPinnedPlace, get_device, is_compiled_with_cuda, synchronize
from .eager.gpu import CUDAPlace
from .engine.eager.device import CPUPlace, device_guard, set_device
from .tensor.generator import get_rng_state, set_rng_state
from .tensor.generator import seed as manual_seed


def absent(question: str, answer):
    """A function that answers a question about hardware MiniPaddle never uses, such as an XPU."""

    def ask():
        return answer

    ask.__name__ = ask.__qualname__ = question
    ask.__doc__ = f"""{answer!r}: MiniPaddle computes on the CPU and on NVIDIA's GPUs.

    >>> paddle.device.{question}()
    {"" if answer is None else answer}
    """
    return ask


ABSENT = {f"is_compiled_with_{kind}": False for kind in ("cinn", "ipu", "rocm", "xpu")} | {
    "get_all_custom_device_type": [],
    "get_available_custom_device": [],
    "get_cudnn_version": None,
}
QUESTIONS = {question: absent(question, answer) for question, answer in ABSENT.items()}
globals().update(QUESTIONS)


def is_compiled_with_custom_device(device_type: str) -> bool:
    """False.

    >>> paddle.device.is_compiled_with_custom_device("npu")
    False
    """
    return False


def is_compiled_with_distribute() -> bool:
    """True: `paddle.distributed` is there.

    >>> paddle.device.is_compiled_with_distribute()
    True
    """
    return True


@contextmanager
def device(device=None):
    """Make new tensors on a device inside the block: "cpu", a place, the number of a GPU, or None,
    which changes nothing.

    >>> with paddle.device.device("cpu"):
    ...     paddle.device.get_device()
    'cpu'
    """
    device = get_device() if device is None else device
    with device_guard(f"gpu:{device}" if isinstance(device, int) else device):
        yield


def is_available() -> bool:
    """Is there a GPU that works?

    >>> paddle.device.is_available() == paddle.is_compiled_with_cuda()
    True
    """
    return is_compiled_with_cuda()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Does the GPU compute in bfloat16 (from compute capability 8 on)? Emulated, every one does.

    >>> paddle.device.is_bf16_supported() == paddle.is_compiled_with_cuda()
    True
    """
    return is_available() and (including_emulation or get_device_capability() >= (8, 0))


def get_all_device_type() -> list[str]:
    """The kinds of device that can be used here.

    >>> "cpu" in paddle.device.get_all_device_type()
    True
    """
    return ["cpu", "gpu"] if is_compiled_with_cuda() else ["cpu"]


def get_available_device() -> list[str]:
    """Every device that can be used here.

    >>> paddle.device.get_available_device()[0]
    'cpu'
    """
    return ["cpu", *(f"gpu:{k}" for k in range(device_count()))]
