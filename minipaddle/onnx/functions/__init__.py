"""ONNX's operators as functions on tensors; each file adds its own to the table."""

from . import bits, control, elementwise, images, norms, places, recurrent, shapes
from .sizes import SIZES
from .table import FUNCTIONS
