"""ONNX: layers out of MiniPaddle (`export`) and networks of other frameworks into it (`load`)."""

from .exporting import export
from .functions import FUNCTIONS
from .inventory import forms
from .loading import load
