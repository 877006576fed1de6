"""Differentiation. Source: Paddle API `paddle.autograd`."""

from .core.missing import namespace
from .engine.eager.backward import backward, grad
from .engine.eager.curvature import hessian, hessian_vector, jacobian
from .engine.eager.modes import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from .engine.eager.packing import saved_tensors_hooks
from .engine.eager.pylayer import PyLayer, PyLayerContext

Function = PyLayer  # PyTorch's name, which Paddle has too

__all__ = [
    "Function",
    "PyLayer",
    "PyLayerContext",
    "backward",
    "enable_grad",
    "grad",
    "hessian",
    "hessian_vector",
    "is_grad_enabled",
    "jacobian",
    "no_grad",
    "saved_tensors_hooks",
    "set_grad_enabled",
]

__getattr__ = namespace("paddle.autograd", globals())
