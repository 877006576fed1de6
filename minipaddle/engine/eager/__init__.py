"""Eager execution: tensors, the tape, devices. Importing it puts `Eager` in charge."""

from ..ir import printer
from . import execution

__all__ = ["execution", "printer"]
