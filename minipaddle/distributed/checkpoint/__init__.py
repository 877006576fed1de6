"""Checkpoints that are written on one mesh and read on any other."""

from .loading import load_state_dict
from .saving import save_state_dict
