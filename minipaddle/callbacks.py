"""Callbacks of `paddle.Model`. Source: Paddle API `paddle.callbacks`."""

from .core.missing import namespace
from .hapi.callbacks import Callback, EarlyStopping, LRScheduler, ModelCheckpoint, ProgBarLogger

__all__ = ["Callback", "EarlyStopping", "LRScheduler", "ModelCheckpoint", "ProgBarLogger"]
__getattr__ = namespace("paddle.callbacks", globals())
