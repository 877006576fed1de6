"""How a layer makes a parameter. Source: Paddle `paddle.base.param_attr`."""

from ..core.missing import namespace as _namespace
from ..nn.param_attr import ParamAttr

__getattr__ = _namespace("paddle.base.param_attr", globals())
