"""The ONNX form of each operator that is neither formula nor row; each file adds its own."""

from ..table import FORMS
from . import bits, control, images, movement, norms, places, scans
