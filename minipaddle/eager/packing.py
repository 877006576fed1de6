"""Hooks on what the tape keeps: compress it, count it, put it on disk."""

from __future__ import annotations

import threading
from typing import NamedTuple

from ..core.record import Spec
from .tensor import wrap


class Packing(threading.local):
    """The (pack, unpack) pairs of the `saved_tensors_hooks` blocks this thread is in."""

    pairs = ()  # the last one counts


PACKING = Packing()


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
        PACKING.pairs = (*PACKING.pairs, self.hooks)
        return self

    def __exit__(self, *exc):
        PACKING.pairs = tuple(p for p in PACKING.pairs if p is not self.hooks)


def packed(saved: dict) -> dict:
    """What is kept, handed through the pack hook. (Several results in one stay as they are.)"""
    pack, unpack = PACKING.pairs[-1]
    return {
        k: Packed(pack(wrap(v)), unpack) if hasattr(v, "dtype") and type(v) is not Spec else v
        for k, v in saved.items()
    }
