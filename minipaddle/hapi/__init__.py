"""The high-level interface: `Model` with its callbacks; the summary and the operations of a
network.

Source: Paddle API `paddle.hapi`.
"""

from . import callbacks
from .flops import flops
from .model import Model
from .summary import summary

__all__ = ["Model", "flops", "summary"]
