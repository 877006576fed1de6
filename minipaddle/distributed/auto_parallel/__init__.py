"""Tensors, layers, optimizers and data in pieces. Source: Paddle API
`paddle.distributed.auto_parallel`.
"""

from ...core.missing import namespace
from . import api
from .mesh import create_mesh, get_mesh, set_mesh

__getattr__ = namespace("paddle.distributed.auto_parallel", globals())
