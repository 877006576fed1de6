"""Switches: is a tape kept?"""

from __future__ import annotations

from ..engine.core.dispatch import Recording, current


def no_grad(func=None):
    """Keep no tape: `with paddle.no_grad(): ...`, `@paddle.no_grad()`, or `paddle.no_grad(f)`.

    >>> x = paddle.ones([1]).requires_grad_()
    >>> with paddle.no_grad():
    ...     y = x * 2
    >>> y.stop_gradient
    True
    """
    return Recording(False) if func is None else Recording(False)(func)


def enable_grad(func=None):
    """Keep a tape again, inside `no_grad`.

    >>> with paddle.no_grad(), paddle.enable_grad():
    ...     paddle.is_grad_enabled()
    True
    """
    return Recording(True) if func is None else Recording(True)(func)


class set_grad_enabled(Recording):
    """Keep a tape from now on, or none; as a context, until the block ends.

    >>> with paddle.set_grad_enabled(False):
    ...     paddle.is_grad_enabled()
    False
    """

    def __init__(self, mode: bool):
        super().__init__(mode)
        super().__enter__()

    def __enter__(self):
        return self


def is_grad_enabled() -> bool:
    """Is a tape kept?

    >>> paddle.is_grad_enabled()
    True
    """
    return current.top.recording


__all__ = ["enable_grad", "is_grad_enabled", "no_grad", "set_grad_enabled"]
