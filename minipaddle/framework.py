"""Limits of dtypes and flags. Source: Paddle API `paddle.framework`, `paddle.finfo`."""

from collections import namedtuple as _namedtuple

import ml_dtypes as _ml_dtypes

from .base.framework import *
from .base.framework import _current_expected_place, _current_expected_place_
from .core.default_dtype import get_default_dtype, set_default_dtype
from .core.flags import get_flags, set_flags
from .eager.modes import no_grad
from .engine.core import dtype as _dt
from .engine.core.errors import value_error as _value_error
from .engine.eager.backward import grad
from .io import load, save
from .nn.param_attr import ParamAttr
from .tensor.generator import seed


class Limits:
    """The base of `iinfo` and `finfo`: the limits of a dtype."""

    def __repr__(self) -> str:
        values = self._asdict().items()
        shown = (f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in values)
        return f"paddle.{type(self).__name__}({', '.join(shown)})"


class iinfo(Limits, _namedtuple("iinfo", "min max bits dtype")):
    """The limits of a whole-number dtype.

    >>> paddle.iinfo("int8")
    paddle.iinfo(min=-128, max=127, bits=8, dtype=int8)
    """

    def __new__(cls, dtype):
        resolved = _dt.resolve(dtype)
        if resolved.kind not in "iu":
            raise _value_error(f"iinfo of {dtype}", "a whole dtype, as int32")
        limits, name = _ml_dtypes.iinfo(resolved), _dt.public(resolved).name
        return super().__new__(cls, int(limits.min), int(limits.max), limits.bits, name)


NUMBERS = ("min", "max", "eps", "resolution", "smallest_normal", "tiny")


class finfo(Limits, _namedtuple("finfo", [*NUMBERS, "bits", "dtype"])):
    """The limits of a floating dtype.

    >>> paddle.finfo(paddle.float32).eps
    1.1920928955078125e-07
    """

    def __new__(cls, dtype):
        resolved = _dt.resolve(dtype)
        if resolved not in _dt.FLOATS:
            raise _value_error(f"finfo of {dtype}", "a floating dtype, as float32")
        limits, name = _ml_dtypes.finfo(resolved), _dt.public(resolved).name
        numbers = [float(getattr(limits, each)) for each in NUMBERS]
        return super().__new__(cls, *numbers, limits.bits, name)


def disable_signal_handler() -> None:
    """Nothing is to be done: MiniPaddle catches no signals of the system.

    >>> paddle.disable_signal_handler()
    """
