"""Steps before a network is quantized."""

from . import fuse_utils
from .fuse_utils import fuse_layers

__all__ = ["fuse_layers"]
