"""How a layer makes a parameter. Source: Paddle `paddle.base.param_attr`."""

from ..nn.param_attr import ParamAttr
