"""Eager execution: tensors, the tape, devices. Importing it puts `Eager` in charge."""

from . import eager

__all__ = ["eager"]
