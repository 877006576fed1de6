"""The parts of a program in half precision. Source: Paddle API `paddle.static.amp`."""

from contextlib import nullcontext


def fp16_guard() -> nullcontext:
    """A block whose operators mixed precision may compute in half; without it nothing changes.

    >>> with paddle.static.amp.fp16_guard():
    ...     paddle.ones([1]).dtype
    paddle.float32
    """
    return nullcontext()
