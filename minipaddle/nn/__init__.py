"""Layers, their functions, initializers and utilities, with Paddle's names.

`nn.functional` holds functions without state; `nn.layer` the classes that hold parameters.
Source: Paddle API `paddle.nn`.
"""

from ..engine.eager.tensor import Parameter
from . import clip, functional, initializer, layer, quant, utils
from .clip import *
from .layer import *
from .layer import common, container, loss
from .param_attr import ParamAttr

# Paddle's second names, which are PyTorch's.
Module, ModuleDict, ModuleList, SiLU = Layer, LayerDict, LayerList, Silu
for _family in (
    "AdaptiveMaxPool", "CircularPad", "ConstantPad", "Conv", "LPPool", "ReflectionPad",
    "ReplicationPad",
):  # fmt: skip
    for _name in [name for name in layer.__all__ if name[:-2] == _family]:
        globals()[_name.replace("D", "d")] = globals()[_name]

__all__ = [*layer.__all__, *clip.__all__]
