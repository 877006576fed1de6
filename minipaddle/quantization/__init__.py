"""Quantization: networks on whole numbers of a few bits.

`PTQ` observes a trained network on some data, `QAT` trains it while weights and inputs are rounded;
`convert` leaves whole numbers. `QuantConfig` says what observes or rounds where. Source: Paddle API
`paddle.quantization`.
"""

from ..core.missing import namespace
from . import config, factory, observers, quanters, wrapper
from .base import BaseObserver, BaseQuanter
from .config import QuantConfig
from .factory import quanter
from .quantize import PTQ, QAT

__all__ = ["PTQ", "QAT", "BaseObserver", "BaseQuanter", "QuantConfig", "quanter"]
__getattr__ = namespace("paddle.quantization", globals())
