"""Paddle's experimental names that model zoos use. Source: Paddle API `paddle.incubate`."""

from ..slim import asp
from . import nn
