"""Inference: a saved model, compiled, run without a tape. `create_predictor(Config(prefix))`."""

from ..core.missing import namespace
from .config import *
from .predictor import *

__getattr__ = namespace("paddle.inference", globals())
