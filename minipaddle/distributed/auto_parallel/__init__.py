"""Tensors, layers, optimizers and data in pieces. Source: Paddle API
`paddle.distributed.auto_parallel`.
"""

from . import api
from .mesh import create_mesh, get_mesh, set_mesh
