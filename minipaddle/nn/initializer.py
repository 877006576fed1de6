"""Initializers: how the first values of a parameter are drawn.

Source: Paddle API `paddle.nn.initializer`; Glorot and Bengio 2010 (Xavier), He et al. 2015
(Kaiming), Saxe et al. 2014 (orthogonal).
"""

import math

from ..core.prelude import Parameter, Tensor, abs, require_one_of, sign, slot, value_error
from ..ops.gamma import erfinv
from ..tensor import creation, random
from ..tensor.decompositions import qr


class Initializer:
    """The base of initializers: `draw(shape, dtype)` returns values; a call fills a parameter.

    >>> w = paddle.create_parameter([2], "float32")
    >>> paddle.nn.initializer.Constant(3.0)(w)
    >>> w.tolist()
    [3.0, 3.0]
    """

    def draw(self, shape: tuple, dtype):
        """Fresh values of this shape and (NumPy) dtype."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it draws values")

    def __call__(self, param, block=None) -> None:
        self.forward(param, block)

    def forward(self, param, block=None) -> None:
        """Fill `param`. A subclass written for Paddle overrides this instead of `draw`."""
        param.set_value(self.draw(tuple(param.shape), param.spec.dtype))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in vars(self).items())})"


def values_of(initializer, shape: tuple, dtype):
    """The values that `initializer` gives a new parameter."""
    if type(initializer).draw is not Initializer.draw:
        return initializer.draw(shape, dtype)
    parameter = Parameter(creation.zeros(shape, dtype))
    initializer(parameter)
    return parameter


class Constant(Initializer):
    """Every element is `value`.

    >>> paddle.nn.Linear(1, 1, weight_attr=paddle.nn.initializer.Constant(2.0)).weight.item()
    2.0
    """

    def __init__(self, value: float = 0.0):
        self.value = value

    def draw(self, shape, dtype):
        return creation.full(shape, self.value, dtype)


class Uniform(Initializer):
    """Uniform in [low, high).

    >>> layer = paddle.nn.Linear(9, 9, weight_attr=paddle.nn.initializer.Uniform())
    >>> layer.weight.abs().max().item() <= 1
    True
    """

    def __init__(self, low: float = -1.0, high: float = 1.0, name=None):
        if low > high:
            raise ValueError(f"Uniform(low={low}, high={high}): low must not exceed high")
        self.low, self.high = low, high

    def draw(self, shape, dtype):
        return random.uniform(shape, dtype, self.low, self.high)


class Normal(Initializer):
    """Gaussian of this mean and standard deviation.

    >>> paddle.nn.Linear(1, 1, weight_attr=paddle.nn.initializer.Normal(5.0, 0.0)).weight.item()
    5.0
    """

    def __init__(self, mean: float = 0.0, std: float = 1.0, name=None):
        self.mean, self.std = mean, std

    def draw(self, shape, dtype):
        return random.randn(shape, dtype) * self.std + self.mean


class TruncatedNormal(Initializer):
    """Gaussian, cut off outside [a, b]; drawn by inverting its distribution function.

    >>> draw = paddle.nn.initializer.TruncatedNormal(a=-1.0, b=1.0)
    >>> paddle.nn.Linear(9, 9, weight_attr=draw).weight.abs().max().item() <= 1
    True
    """

    def __init__(self, mean=0.0, std=1.0, a: float = -2.0, b: float = 2.0, name=None):
        if a >= b:
            raise ValueError(f"TruncatedNormal(a={a}, b={b}): a must lie below b")
        self.mean, self.std, self.a, self.b = mean, std, a, b

    def draw(self, shape, dtype):
        low, high = (math.erf((x - self.mean) / self.std / math.sqrt(2)) for x in (self.a, self.b))
        z = erfinv(random.uniform(shape, dtype, low, high)) * math.sqrt(2)
        return (z * self.std + self.mean).clip(self.a, self.b)


@slot("nn.initializer.fans")
def fans(shape: tuple) -> tuple[int, int]:
    """(fan in, fan out) of a weight: [in, out] for a matrix, [out, in, *window] for a kernel."""
    if not shape:
        return 1, 1
    if len(shape) == 1:
        return shape[0], shape[0]
    if len(shape) == 2:
        return shape[0], shape[1]
    window = math.prod(shape[2:])
    return shape[1] * window, shape[0] * window


@slot("nn.initializer.xavier_std")
def xavier_std(fan_in: float, fan_out: float, gain: float) -> float:
    """gain · √(2 / (fan in + fan out)): a compromise that keeps signals and gradients about the
    same size.
    """
    return gain * math.sqrt(2 / (fan_in + fan_out))


@slot("nn.initializer.kaiming_std")
def kaiming_std(fan: float, gain: float) -> float:
    """gain / √fan: a sum of `fan` terms keeps their size, times the gain."""
    return gain / math.sqrt(fan)


class ByFan(Initializer):
    """Mean 0 and the deviation `std(shape)`, which depends on the fans; uniform or Gaussian."""

    uniform = False

    def draw(self, shape, dtype):
        std = self.std(shape)
        if not self.uniform:
            return random.randn(shape, dtype) * std
        return random.uniform(shape, dtype, -math.sqrt(3) * std, math.sqrt(3) * std)


class Xavier(ByFan):
    """Variance gain² · 2 / (fan in + fan out): signals keep their size both ways."""

    def __init__(self, fan_in=None, fan_out=None, gain: float = 1.0, name=None):
        self.fan_in, self.fan_out, self.gain = fan_in, fan_out, gain

    def std(self, shape) -> float:
        fan_in, fan_out = fans(shape)
        fan_in = fan_in if self.fan_in is None else self.fan_in
        fan_out = fan_out if self.fan_out is None else self.fan_out
        return xavier_std(fan_in, fan_out, self.gain) if fan_in + fan_out else 0.0


class XavierUniform(Xavier):
    """Uniform with Xavier's variance; the default of `Linear`.

    >>> layer = paddle.nn.Linear(3, 3, weight_attr=paddle.nn.initializer.XavierUniform())
    >>> layer.weight.abs().max().item() <= 1  # √(6 / (3 + 3))
    True
    """

    uniform = True


class XavierNormal(Xavier):
    """Gaussian with Xavier's variance.

    >>> paddle.nn.Linear(3, 3, weight_attr=paddle.nn.initializer.XavierNormal()).weight.shape
    [3, 3]
    """


class Kaiming(ByFan):
    """Variance gain² / fan: keeps the size of signals through rectifiers."""

    def __init__(self, fan_in=None, negative_slope=0.0, nonlinearity="relu", mode="fan_in"):
        require_one_of(type(self).__name__, ("fan_in", "fan_out"), mode=mode)
        self.fan_in, self.negative_slope = fan_in, negative_slope
        self.nonlinearity, self.mode = nonlinearity, mode

    def std(self, shape) -> float:
        fan = fans(shape)[self.mode == "fan_out"] if self.fan_in is None else self.fan_in
        gain = calculate_gain(self.nonlinearity, self.negative_slope)
        return kaiming_std(fan, gain) if fan else 0.0


class KaimingUniform(Kaiming):
    """Uniform with Kaiming's variance.

    >>> layer = paddle.nn.Linear(6, 3, weight_attr=paddle.nn.initializer.KaimingUniform())
    >>> layer.weight.abs().max().item() <= 1  # √(6 / 6)
    True
    """

    uniform = True


class KaimingNormal(Kaiming):
    """Gaussian with Kaiming's variance.

    >>> paddle.nn.Linear(6, 3, weight_attr=paddle.nn.initializer.KaimingNormal()).weight.shape
    [6, 3]
    """


class Assign(Initializer):
    """The given values: an array, a tensor or a nested list of the parameter's shape.

    >>> given = paddle.nn.initializer.Assign([[3.0], [4.0]])
    >>> paddle.nn.Linear(2, 1, weight_attr=given).weight.tolist()
    [[3.0], [4.0]]
    """

    def __init__(self, value, name=None):
        self.value = value

    def draw(self, shape, dtype):
        values = Tensor(self.value, dtype)
        if values.spec.size != math.prod(shape):
            raise value_error(f"Assign was given {values.spec}", f"values of shape {list(shape)}")
        return values.reshape(list(shape))


class Orthogonal(Initializer):
    """Orthonormal rows or columns, whichever are fewer, of the weight as a matrix [first, rest].

    >>> w = paddle.nn.Linear(2, 2, weight_attr=paddle.nn.initializer.Orthogonal()).weight
    >>> paddle.allclose(w @ w.t(), paddle.eye(2), atol=1e-5).item()
    True
    """

    def __init__(self, gain: float = 1.0, name=None):
        self.gain = gain

    def draw(self, shape, dtype):
        if len(shape) < 2:
            raise ValueError(f"Orthogonal needs a weight of 2 or more dimensions, not {shape}")
        rows, cols = shape[0], math.prod(shape[1:])
        tall = rows >= cols
        q, r = qr(random.randn([max(rows, cols), min(rows, cols)], dtype))
        q = q * sign(r.diagonal())  # makes the draw uniform over rotations
        q = q if tall else q.transpose([1, 0])
        return q.reshape(list(shape)) * self.gain


class Dirac(Initializer):
    """A convolution kernel that passes its input through, channel by channel within each group.

    >>> keep = paddle.nn.initializer.Dirac()
    >>> conv = paddle.nn.Conv1D(2, 2, 3, padding=1, weight_attr=keep)
    >>> conv(paddle.ones([1, 2, 4])).tolist()
    [[[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]]]
    """

    def __init__(self, groups: int = 1, name=None):
        self.groups = groups

    def draw(self, shape, dtype):
        if len(shape) not in (3, 4, 5) or shape[0] % self.groups:
            raise value_error(
                f"Dirac(groups={self.groups}) for a weight of shape {list(shape)}",
                "[out, in, *window], with `out` divisible by groups",
            )
        per_group = shape[0] // self.groups
        centre = [n // 2 for n in shape[2:]]
        kernel = Parameter(creation.zeros(shape, dtype), trainable=False)
        for out in range(shape[0]):
            if out % per_group < shape[1]:
                kernel[(out, out % per_group, *centre)] = 1.0
        return kernel


class Bilinear(Initializer):
    """The kernel with which a transposed convolution interpolates bilinearly: [out, in, h, w].

    >>> smooth = paddle.nn.initializer.Bilinear()
    >>> paddle.nn.Conv2DTranspose(1, 1, 4, weight_attr=smooth).weight[0, 0, 0].tolist()
    [0.0625, 0.1875, 0.1875, 0.0625]
    """

    def draw(self, shape, dtype):
        if len(shape) != 4 or shape[2] != shape[3]:
            raise value_error(
                f"Bilinear for a weight of shape {list(shape)}", "[out, in, size, size]"
            )
        factor = math.ceil(shape[3] / 2)
        centre = (2 * factor - 1 - factor % 2) / (2 * factor)
        x = creation.arange(0, shape[3], dtype=dtype)
        hat = 1 - abs(x / factor - centre)
        window = hat.reshape([-1, 1]) * hat
        return window.broadcast_to(list(shape))


GAINS = {
    "sigmoid": 1.0, "linear": 1.0, "tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 0.75,
    **{f"conv{d}d{t}": 1.0 for d in (1, 2, 3) for t in ("", "_transpose")},
}  # fmt: skip


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """By how much a weight before this nonlinearity should be larger than one before none.

    `param` is the slope of `leaky_relu`, 0.01 if absent.

    >>> paddle.nn.initializer.calculate_gain("leaky_relu", 1.0)
    1.0
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else float(param)
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity not in GAINS:
        known = ", ".join([*GAINS, "leaky_relu"])
        raise value_error(f"no gain is known for {nonlinearity!r}", known)
    return GAINS[nonlinearity]


defaults: dict[str, Initializer | None] = {"weight": None, "bias": None}


def set_global_initializer(weight_init, bias_init=None) -> None:
    """Use these initializers for every parameter whose `ParamAttr` names none; None resets them.

    >>> paddle.nn.initializer.set_global_initializer(paddle.nn.initializer.Constant(1.0))
    >>> weight = paddle.nn.Linear(1, 1).weight
    >>> paddle.nn.initializer.set_global_initializer(None)
    >>> weight.item()
    1.0
    """
    for each in (weight_init, bias_init):
        if each is not None and not isinstance(each, Initializer):
            raise TypeError(f"set_global_initializer takes initializers or None, not {each!r}")
    defaults.update(weight=weight_init, bias=bias_init)


__all__ = [
    "Assign", "Bilinear", "Constant", "Dirac", "Initializer", "KaimingNormal", "KaimingUniform",
    "Normal", "Orthogonal", "TruncatedNormal", "Uniform", "XavierNormal", "XavierUniform",
    "calculate_gain", "set_global_initializer",
]  # fmt: skip
