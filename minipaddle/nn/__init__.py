"""Layers, their functions, initializers and utilities, with Paddle's names.

`nn.functional` holds functions without state; `nn.layer` the classes that hold parameters.
Source: Paddle API `paddle.nn`.
"""

from ..core.missing import namespace
from . import clip, functional, initializer, layer, utils
from .clip import *
from .layer import *
from .layer import common, container, loss
from .param_attr import ParamAttr

__all__ = [*layer.__all__, *clip.__all__]
__getattr__ = namespace("paddle.nn", globals())
