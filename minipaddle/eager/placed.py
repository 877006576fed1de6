"""A tensor's device: where it is, and how it gets to another."""

from __future__ import annotations

from ..engine.core import dtype as dt
from ..engine.core.dispatch import current
from ..engine.core.op import Op
from ..engine.core.record import Record
from ..engine.eager.device import Place, as_place
from ..engine.eager.tape import get_leaf
from ..engine.eager.tensor import Tensor
from ..engine.ops.var import Var
from ..tensor.methods import own_members


class DeviceMethods:
    """Methods of `Tensor` that ask for its device, or move it."""

    @property
    def device(self) -> Place:
        """The device it is on."""
        return self.place

    @property
    def is_cuda(self) -> bool:
        """Is it on a GPU?"""
        return self.place.is_gpu_place()

    def to(self, *args, **kwargs) -> Var:
        """On another device, in another dtype, or as another tensor is; gradients flow back.

        `x.to("gpu")`, `x.to("float64")`, `x.to("cpu", "int32")`, `x.to(other)`; by keyword
        `device`, `dtype`, `other`, `blocking`.

        >>> paddle.ones([2]).to("cpu", dtype="int64").dtype
        paddle.int64
        """
        place, dtype = destination(args, kwargs)
        out = self if dtype is None or dtype == self.dtype else self.astype(dtype)
        return out if place is None or place == out.place else move_to(out, place)

    def cpu(self) -> Var:
        """On the CPU.

        >>> x = paddle.ones([2])
        >>> x.cpu().place
        Place(cpu)
        """
        return self.to("cpu")

    def cuda(self, device_id: int | None = None, blocking: bool = True) -> Var:
        """On a GPU."""
        return self.to(f"gpu:{device_id or 0}")

    def pin_memory(self, blocking: bool = True) -> Var:
        """Itself: CuPy copies from ordinary memory."""
        return self


def move(m, x, *, place, source):
    """The same values on another device."""
    return place.move(x)


MOVE = Op(move)
MOVE.shape(lambda x, place, source: x)
MOVE.vjp(lambda g, source: g if g.place == source else move_to(g, source))


def move_to(x: Var, place: Place) -> Var:
    """`x` on another device. No interpreter's `apply`: its result lives where its input does."""
    out = x.detach()
    out.array = place.move(x.array)
    if not x.stop_gradient and current.top.recording:
        attrs = {"place": place, "source": x.place}
        out.record = Record(MOVE, [x.record or get_leaf(x)], attrs, *x.spec)
        out.stop_gradient = False
    return out


def destination(args, kwargs) -> tuple:
    """(place, dtype) meant by the arguments of `to`; None for those not given."""
    options = {"device": None, "dtype": None, "other": None, "blocking": None}
    for x in args:
        options[role(x)] = x
    unknown = kwargs.keys() - options.keys()
    if unknown:
        raise TypeError(f"to() takes no argument {unknown.pop()!r}; it has {[*options]}")
    options |= kwargs
    device, dtype, other = options["device"], options["dtype"], options["other"]
    if other is not None:
        device, dtype = other.place, other.dtype
    return (
        None if device is None else as_place(device),
        None if dtype is None else dt.public(dt.resolve(dtype)),
    )


def role(x) -> str:
    """Which argument of `to` a positional one is."""
    if isinstance(x, bool):
        return "blocking"
    if isinstance(x, Var):
        return "other"
    if x is None or isinstance(x, Place) or (isinstance(x, str) and x not in dt.NAMES):
        return "device"
    return "dtype"


Tensor.register(own_members(DeviceMethods))
