"""Hooks on what the tape keeps: compress it, count it, put it on disk."""

from __future__ import annotations

import threading
from typing import NamedTuple

from ..core.record import Spec
from .tensor import wrap

PACKING: list = []
"""The (pack, unpack) pairs of the `saved_tensors_hooks` blocks that any thread is in: so it costs
nothing to see that there is none.
"""


class Own(threading.local):
    """The pairs of the blocks that this thread is in; the last one counts."""

    pairs = ()


OWN = Own()


class Packed(NamedTuple):
    """What a pack hook made of a kept tensor, and the hook that brings it back."""

    held: object
    unpack: object


class saved_tensors_hooks:
    """While the block runs, keep `pack_hook(tensor)` for backward instead of the tensor itself.

    `unpack_hook` turns it into a tensor again. Source: Paddle API
    `paddle.autograd.saved_tensors_hooks`.

    >>> import minipaddle as paddle
    >>> x = paddle.to_tensor([3.0], stop_gradient=False)
    >>> with paddle.autograd.saved_tensors_hooks(lambda t: t.numpy(), paddle.to_tensor):
    ...     y = x * x
    >>> y.backward()
    >>> x.grad.item()
    6.0
    """

    def __init__(self, pack_hook, unpack_hook):
        self.hooks = pack_hook, unpack_hook

    def __enter__(self):
        PACKING.append(self.hooks)
        OWN.pairs = (*OWN.pairs, self.hooks)
        return self

    def __exit__(self, *exc):
        PACKING.remove(self.hooks)
        OWN.pairs = tuple(p for p in OWN.pairs if p is not self.hooks)


def packed(saved: dict) -> dict:
    """What is kept, handed through the pack hook. (Several results in one stay as they are.)"""
    if not OWN.pairs:  # they are another thread's
        return saved
    pack, unpack = OWN.pairs[-1]
    return {
        k: Packed(pack(wrap(v)), unpack) if hasattr(v, "dtype") and type(v) is not Spec else v
        for k, v in saved.items()
    }
