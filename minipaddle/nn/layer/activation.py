"""Activations as layers: each calls its function of `nn.functional`."""

from __future__ import annotations

from .. import functional as F
from ..initializer import Constant
from .functional import Functional
from .layers import Layer

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Maxout",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "Sigmoid",
    "Silu",
    "Softmax",
    "Softmax2D",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Swish",
    "Tanh",
    "Tanhshrink",
    "ThresholdedReLU",
]


class CELU(Functional, function=F.celu):
    """max(x, 0) + min(0, α(e^(x/α) - 1)). Source: Paddle API `paddle.nn.CELU`.

    >>> import minipaddle as paddle
    >>> paddle.nn.CELU()(paddle.to_tensor([0.0, 2.0])).tolist()
    [0.0, 2.0]
    """


class ELU(Functional, function=F.elu):
    """x where positive, α(e^x - 1) elsewhere. Source: Paddle API `paddle.nn.ELU`.

    >>> import minipaddle as paddle
    >>> paddle.nn.ELU()(paddle.to_tensor([0.0, 2.0])).tolist()
    [0.0, 2.0]
    """


class GELU(Functional, function=F.gelu):
    """x · Φ(x). Source: Paddle API `paddle.nn.GELU`.

    >>> import minipaddle as paddle
    >>> paddle.nn.GELU()(paddle.to_tensor([0.0, 9.0])).tolist()
    [0.0, 9.0]
    """


class GLU(Functional, function=F.glu):
    """a · sigmoid(b), for the halves of x along `axis`. Source: Paddle API `paddle.nn.GLU`.

    >>> import minipaddle as paddle
    >>> paddle.nn.GLU()(paddle.to_tensor([4.0, 0.0])).tolist()
    [2.0]
    """


class Hardshrink(Functional, function=F.hardshrink):
    """x where |x| > threshold, 0 elsewhere. Source: Paddle API `paddle.nn.Hardshrink`.

    >>> import minipaddle as paddle
    >>> paddle.nn.Hardshrink()(paddle.to_tensor([0.25, 2.0])).tolist()
    [0.0, 2.0]
    """


class Hardsigmoid(Functional, function=F.hardsigmoid, fixed=("name",)):
    """x / 6 + 1/2, cut to [0, 1]. Source: Paddle API `paddle.nn.Hardsigmoid`.

    >>> import minipaddle as paddle
    >>> paddle.nn.Hardsigmoid()(paddle.to_tensor([-4.0, 0.0, 4.0])).tolist()
    [0.0, 0.5, 1.0]
    """


class Hardswish(Functional, function=F.hardswish):
    """x · hardsigmoid(x). Source: Paddle API `paddle.nn.Hardswish`.

    >>> import minipaddle as paddle
    >>> paddle.nn.Hardswish()(paddle.to_tensor([-4.0, 4.0])).tolist()
    [-0.0, 4.0]
    """


class Hardtanh(Functional, function=F.hardtanh):
    """x cut to [min, max]. Source: Paddle API `paddle.nn.Hardtanh`.

    >>> import minipaddle as paddle
    >>> paddle.nn.Hardtanh()(paddle.to_tensor([-4.0, 0.5])).tolist()
    [-1.0, 0.5]
    """


class LeakyReLU(Functional, function=F.leaky_relu):
    """x where positive, negative_slope · x elsewhere. Source: Paddle API `paddle.nn.LeakyReLU`.

    >>> import minipaddle as paddle
    >>> paddle.nn.LeakyReLU(0.25)(paddle.to_tensor([-4.0, 2.0])).tolist()
    [-1.0, 2.0]
    """


class LogSigmoid(Functional, function=F.log_sigmoid):
    """log(1 / (1 + e^-x)). Source: Paddle API `paddle.nn.LogSigmoid`.

    >>> import minipaddle as paddle
    >>> round(paddle.nn.LogSigmoid()(paddle.to_tensor(0.0)).item(), 4)  # -log 2
    -0.6931
    """


class LogSoftmax(Functional, function=F.log_softmax, fixed=("axis", "name")):
    """x - log Σ e^x along `axis`. Source: Paddle API `paddle.nn.LogSoftmax`.

    >>> import minipaddle as paddle
    >>> paddle.nn.LogSoftmax()(paddle.to_tensor([[7.0]])).tolist()
    [[0.0]]
    """


class Maxout(Functional, function=F.maxout):
    """The largest of each group of channels. Source: Paddle API `paddle.nn.Maxout`.

    >>> import minipaddle as paddle
    >>> paddle.nn.Maxout(2)(paddle.to_tensor([[1.0, 3.0, 5.0, 2.0]])).tolist()
    [[3.0, 5.0]]
    """


class Mish(Functional, function=F.mish):
    """x · tanh(softplus(x)). Source: Paddle API `paddle.nn.Mish`.

    >>> import minipaddle as paddle
    >>> paddle.nn.Mish()(paddle.to_tensor([0.0])).tolist()
    [0.0]
    """


class RReLU(Functional, function=F.rrelu):
    """x where positive, a random slope times x elsewhere. Source: Paddle API `paddle.nn.RReLU`.

    >>> import minipaddle as paddle
    >>> paddle.nn.RReLU(0.25, 0.75).eval()(paddle.to_tensor([-4.0])).tolist()
    [-2.0]
    """

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, training={self.training}, dtype={self._dtype}"


class ReLU(Functional, function=F.relu):
    """max(x, 0). Source: Paddle API `paddle.nn.ReLU`.

    >>> import minipaddle as paddle
    >>> paddle.nn.ReLU()(paddle.to_tensor([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """


class ReLU6(Functional, function=F.relu6):
    """x cut to [0, 6]. Source: Paddle API `paddle.nn.ReLU6`.

    >>> import minipaddle as paddle
    >>> paddle.nn.ReLU6()(paddle.to_tensor([-1.0, 9.0])).tolist()
    [0.0, 6.0]
    """


class SELU(Functional, function=F.selu):
    """ELU scaled so that activations normalise themselves. Source: Paddle API `paddle.nn.SELU`.

    >>> import minipaddle as paddle
    >>> paddle.nn.SELU()(paddle.to_tensor([0.0])).tolist()
    [0.0]
    """


class Sigmoid(Functional, function=F.sigmoid):
    """1 / (1 + e^-x). Source: Paddle API `paddle.nn.Sigmoid`.

    >>> import minipaddle as paddle
    >>> paddle.nn.Sigmoid()(paddle.to_tensor([0.0])).tolist()
    [0.5]
    """


class Silu(Functional, function=F.silu):
    """x · sigmoid(x). Source: Paddle API `paddle.nn.Silu`.

    >>> import minipaddle as paddle
    >>> paddle.nn.Silu()(paddle.to_tensor([0.0])).tolist()
    [0.0]
    """


class Softmax(Functional, function=F.softmax, fixed=("axis", "name")):
    """e^x / Σ e^x along `axis`. Source: Paddle API `paddle.nn.Softmax`.

    >>> import minipaddle as paddle
    >>> paddle.nn.Softmax()(paddle.zeros([1, 2])).tolist()
    [[0.5, 0.5]]
    """


class Softmax2D(Layer):
    """Softmax over the channels of [N, C, H, W] or [C, H, W].

    Source: Paddle API `paddle.nn.Softmax2D`.

    >>> import minipaddle as paddle
    >>> paddle.nn.Softmax2D()(paddle.zeros([2, 1, 1])).tolist()
    [[[0.5]], [[0.5]]]
    """

    def __init__(self, name=None):
        super().__init__()

    def forward(self, x):
        if x.spec.ndim not in (3, 4):
            raise ValueError(f"Softmax2D takes 3 or 4 dimensions, not {x.spec}")
        return F.softmax(x, axis=-3)


class Softplus(Functional, function=F.softplus):
    """log(1 + e^(βx)) / β. Source: Paddle API `paddle.nn.Softplus`.

    >>> import minipaddle as paddle
    >>> round(paddle.nn.Softplus()(paddle.to_tensor(0.0)).item(), 4)  # log 2
    0.6931
    """


class Softshrink(Functional, function=F.softshrink):
    """x drawn towards 0 by the threshold. Source: Paddle API `paddle.nn.Softshrink`.

    >>> import minipaddle as paddle
    >>> paddle.nn.Softshrink()(paddle.to_tensor([0.25, 2.0])).tolist()
    [0.0, 1.5]
    """


class Softsign(Functional, function=F.softsign):
    """x / (1 + |x|). Source: Paddle API `paddle.nn.Softsign`.

    >>> import minipaddle as paddle
    >>> paddle.nn.Softsign()(paddle.to_tensor([-1.0, 3.0])).tolist()
    [-0.5, 0.75]
    """


class Swish(Functional, function=F.swish):
    """x · sigmoid(x). Source: Paddle API `paddle.nn.Swish`.

    >>> import minipaddle as paddle
    >>> paddle.nn.Swish()(paddle.to_tensor([0.0])).tolist()
    [0.0]
    """


class Tanh(Functional, function=F.tanh):
    """Hyperbolic tangent. Source: Paddle API `paddle.nn.Tanh`.

    >>> import minipaddle as paddle
    >>> paddle.nn.Tanh()(paddle.to_tensor([0.0])).tolist()
    [0.0]
    """


class Tanhshrink(Functional, function=F.tanhshrink):
    """x - tanh x. Source: Paddle API `paddle.nn.Tanhshrink`.

    >>> import minipaddle as paddle
    >>> paddle.nn.Tanhshrink()(paddle.to_tensor([0.0])).tolist()
    [0.0]
    """


class ThresholdedReLU(Functional, function=F.thresholded_relu):
    """x where above the threshold, `value` elsewhere. Source: Paddle API
    `paddle.nn.ThresholdedReLU`.

    >>> import minipaddle as paddle
    >>> paddle.nn.ThresholdedReLU()(paddle.to_tensor([0.5, 2.0])).tolist()
    [0.0, 2.0]
    """


class PReLU(Layer):
    """x where positive, a learned slope times x elsewhere: one slope, or one per channel.

    Source: Paddle API `paddle.nn.PReLU`; He et al. 2015.

    >>> import minipaddle as paddle
    >>> paddle.nn.PReLU(init=0.25)(paddle.to_tensor([-4.0, 2.0])).tolist()
    [-1.0, 2.0]
    """

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

    def extra_repr(self) -> str:
        return (
            f"num_parameters={self.num_parameters}, data_format={self.data_format}, "
            f"init={self.init}, dtype={self._dtype}"
        )
