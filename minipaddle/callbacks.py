"""Callbacks of `paddle.Model`. Source: Paddle API `paddle.callbacks`."""

from .core.missing import namespace as _namespace
from .hapi.callbacks import Callback, EarlyStopping, LRScheduler, ModelCheckpoint, ProgBarLogger

__getattr__ = _namespace("paddle.callbacks", globals())
