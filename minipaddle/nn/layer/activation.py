"""Activations as layers: each calls its function of `nn.functional`."""

from ...core.prelude import require_ndim
from .. import functional as F
from ..initializer import Constant
from .functional import Functional
from .layers import Layer


class CELU(Functional, function=F.celu): ...


class ELU(Functional, function=F.elu): ...


class GELU(Functional, function=F.gelu): ...


class GLU(Functional, function=F.glu): ...


class Hardshrink(Functional, function=F.hardshrink): ...


class Hardsigmoid(Functional, function=F.hardsigmoid, fixed=("name",)): ...


class Hardswish(Functional, function=F.hardswish): ...


class Hardtanh(Functional, function=F.hardtanh): ...


class LeakyReLU(Functional, function=F.leaky_relu): ...


class LogSigmoid(Functional, function=F.log_sigmoid): ...


class LogSoftmax(Functional, function=F.log_softmax, fixed=("axis", "name")): ...


class Maxout(Functional, function=F.maxout): ...


class Mish(Functional, function=F.mish): ...


class RReLU(Functional, function=F.rrelu):
    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, training={self.training}, dtype={self._dtype}"


class ReLU(Functional, function=F.relu): ...


class ReLU6(Functional, function=F.relu6): ...


class SELU(Functional, function=F.selu): ...


class Sigmoid(Functional, function=F.sigmoid): ...


class Silu(Functional, function=F.silu): ...


class Softmax(Functional, function=F.softmax, fixed=("axis", "name")): ...


class Softmax2D(Layer):
    """Softmax over the channels of [N, C, H, W] or [C, H, W].

    >>> paddle.nn.Softmax2D()(paddle.zeros([2, 1, 1])).tolist()
    [[[0.5]], [[0.5]]]
    """

    def __init__(self, name=None):
        super().__init__()

    def forward(self, x):
        require_ndim("Softmax2D", x, 3, 4)
        return F.softmax(x, axis=-3)


class Softplus(Functional, function=F.softplus): ...


class Softshrink(Functional, function=F.softshrink): ...


class Softsign(Functional, function=F.softsign): ...


class Swish(Functional, function=F.swish): ...


class Tanh(Functional, function=F.tanh): ...


class Tanhshrink(Functional, function=F.tanhshrink): ...


class ThresholdedReLU(Functional, function=F.thresholded_relu): ...


class PReLU(Layer):
    """x where positive, a learned slope times x elsewhere: one slope, or one per channel.

    Source: He et al. 2015.

    >>> paddle.nn.PReLU(init=0.25)(paddle.to_tensor([-4.0, 2.0])).tolist()
    [-1.0, 2.0]
    """

    _shown = ("num_parameters", "data_format", "init", "_dtype")

    def __init__(
        self, num_parameters=1, init=0.25, weight_attr=None, data_format="NCHW", name=None
    ):
        super().__init__(dtype=None)
        self.num_parameters, self.init, self.data_format = num_parameters, init, data_format
        self._weight = self.create_parameter(
            [num_parameters], weight_attr, default_initializer=Constant(init)
        )

    def forward(self, x):
        return F.prelu(x, self._weight, self.data_format)


__all__ = [
    "CELU", "ELU", "GELU", "GLU", "SELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh",
    "LeakyReLU", "LogSigmoid", "LogSoftmax", "Maxout", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6",
    "Sigmoid", "Silu", "Softmax", "Softmax2D", "Softplus", "Softshrink", "Softsign", "Swish",
    "Tanh", "Tanhshrink", "ThresholdedReLU",
]  # fmt: skip
