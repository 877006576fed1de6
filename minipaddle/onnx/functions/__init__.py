"""ONNX's operators as functions on tensors; each file adds its own to the table."""

from ..table import FUNCTIONS
from . import bits, control, elementwise, images, integers, norms, places, recurrent, shapes
from .sizes import SIZES
