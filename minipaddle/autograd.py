"""Differentiation. Source: Paddle API `paddle.autograd`."""

from .eager.curvature import hessian, hessian_vector, jacobian
from .eager.modes import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from .eager.packing import saved_tensors_hooks
from .engine.eager.backward import backward, grad
from .engine.eager.pylayer import PyLayer, PyLayerContext

Function = PyLayer  # PyTorch's name, which Paddle has too
