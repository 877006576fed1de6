"""Text: a small language model. Source: Paddle API `paddle.text`, which holds none."""

from . import gpt
from .gpt import GPT

__all__ = ["GPT"]
