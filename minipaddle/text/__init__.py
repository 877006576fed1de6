"""Text: a small language model. Source: Paddle API `paddle.text`, which holds none."""

from ..core.missing import namespace
from . import gpt
from .gpt import GPT

__all__ = ["GPT"]
__getattr__ = namespace("paddle.text", globals())
