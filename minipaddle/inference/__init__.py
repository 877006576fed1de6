"""Inference: a saved model, compiled, run without a tape. `create_predictor(Config(prefix))`."""

from .config import *
from .predictor import *
