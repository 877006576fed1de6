"""A tensor's device: where it is, and how it gets to another."""

from __future__ import annotations

from ..core.dispatch import current
from ..core.op import Op
from ..core.record import Record
from ..ops.var import Var
from .convert import destination
from .device import Place, place_of
from .tape import leaf_of


class Placed:
    """The part of `Tensor` that knows of devices."""

    @property
    def place(self) -> Place:
        """The device it is on. Source: Paddle API `Tensor.place`."""
        return place_of(self.array)

    device = place

    @property
    def is_cuda(self) -> bool:
        """Is it on a GPU?"""
        return self.place.is_gpu_place()

    def to(self, *args, **kwargs) -> Var:
        """On another device, in another dtype, or as another tensor is; gradients flow back.

        `x.to("gpu")`, `x.to("float64")`, `x.to("cpu", "int32")`, `x.to(other)`; by keyword
        `device`, `dtype`, `other`, `blocking`. Source: Paddle API `Tensor.to`.

        >>> import minipaddle as paddle
        >>> paddle.ones([2]).to("cpu", dtype="int64").dtype
        paddle.int64
        """
        place, dtype = destination(args, kwargs)
        out = self if dtype is None or dtype == self.dtype else self.astype(dtype)
        return out if place is None or place == out.place else moved(out, place)

    def cpu(self) -> Var:
        """On the CPU. Source: Paddle API `Tensor.cpu`.

        >>> import minipaddle as paddle
        >>> x = paddle.ones([2])
        >>> x.cpu().place
        Place(cpu)
        """
        return self.to("cpu")

    def cuda(self, device_id: int | None = None, blocking: bool = True) -> Var:
        """On a GPU. Source: Paddle API `Tensor.cuda`."""
        return self.to(f"gpu:{device_id or 0}")

    def pin_memory(self, blocking: bool = True) -> Var:
        """Itself: CuPy copies from ordinary memory. Source: Paddle API `Tensor.pin_memory`."""
        return self


def move(m, x, *, place, source):
    """The same values on another device."""
    return place.move(x)


MOVE = Op(move)
MOVE.shape(lambda x, place, source: x)
MOVE.vjp(lambda g, source: g if g.place == source else moved(g, source))


def moved(x: Var, place: Place) -> Var:
    """`x` on another device. No interpreter's `apply`: its result lives where its input does."""
    out = x.detach()
    out.array = place.move(x.array)
    if not x.stop_gradient and current.top.recording:
        attrs = {"place": place, "source": x.place}
        out.record = Record(MOVE, [x.record or leaf_of(x)], attrs, *x.spec)
        out.stop_gradient = False
    return out
