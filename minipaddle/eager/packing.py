"""Hooks on the arrays of the tape: compress them, count them, put them on disk."""

from __future__ import annotations

from ..engine.core.dispatch import current
from ..engine.core.record import Spec
from ..engine.eager.execution import Packed
from ..engine.eager.tensor import wrap


class saved_tensors_hooks:
    """While the block runs, keep `pack_hook(tensor)` for backward instead of the tensor itself.

    `unpack_hook` turns it into a tensor again.

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
        self.top, self.before = current.top, current.top.pack
        self.top.pack = self.pack
        return self

    def __exit__(self, *exc):
        self.top.pack = self.before

    def pack(self, saved: dict) -> dict:
        """The arrays that a record keeps, packed. (Several results in one stay as they are.)"""
        pack, unpack = self.hooks
        return {
            k: Packed(pack(wrap(v)), unpack) if hasattr(v, "dtype") and type(v) is not Spec else v
            for k, v in saved.items()
        }
