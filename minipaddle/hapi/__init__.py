"""The high-level interface: what a network holds and costs. Source: Paddle API `paddle.hapi`."""

from .flops import flops
from .summary import summary

__all__ = ["flops", "summary"]
