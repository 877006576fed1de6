"""Callbacks of `paddle.Model`. Source: Paddle API `paddle.callbacks`."""

from .hapi.callbacks import Callback, EarlyStopping, LRScheduler, ModelCheckpoint, ProgBarLogger
