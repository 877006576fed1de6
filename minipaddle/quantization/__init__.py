"""Quantization: networks on whole numbers of a few bits.

`PTQ` observes a trained network on some data, `QAT` trains it while weights and inputs are rounded;
`report` says whether 8 bits pay, `convert` leaves whole numbers. `QuantConfig` says what observes
or rounds where. Source: Paddle API `paddle.quantization`.
"""

from . import config, factory, imperative, observers, quanters, wrapper
from .base import BaseObserver, BaseQuanter
from .config import QuantConfig
from .factory import quanter
from .quantize import PTQ, QAT
from .report import report

__all__ = ["PTQ", "QAT", "BaseObserver", "BaseQuanter", "QuantConfig", "quanter", "report"]
