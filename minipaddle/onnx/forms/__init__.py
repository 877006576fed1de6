"""The ONNX form of each operator that is no formula; each file adds its rules to the table."""

from . import bits, control, images, movement, norms, places, scans
from .table import FORMS
