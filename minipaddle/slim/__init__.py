"""Smaller networks: fewer weights, fewer channels, a teacher, a search.

The names are PaddleSlim's, where it has the same.
"""

from . import asp, dist
from .distill import DML, Distill
from .filters import FPGMFilterPruner, L1NormFilterPruner, L2NormFilterPruner
from .supernet import OFA, Supernet
from .unstructured import GMPUnstructuredPruner, MovementPruner, UnstructuredPruner
