"""Networks written with all that Python offers."""

import functools
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from tests.jit.models import N, model


@dataclass
class Batch:
    features: object
    weights: object = None
    name: str = "batch"


@dataclass
class Outcome:
    logits: object
    hidden: list = field(default_factory=list)
    loss: object | None = None


@model((Batch(N(3, 4), N(3)),), (Batch(N(2, 4), None, "other"),))
class WithDataclasses(nn.Layer):
    """A dataclass comes in, another goes out; optional parts."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, batch):
        out = Outcome(None)
        h = self.first(batch.features)
        if h.mean() > 0:
            h = F.relu(h)
        else:
            h = F.elu(h)
        out.hidden.append(h)
        out.logits = self.second(h)
        if batch.weights is not None:
            out.loss = (out.logits.sum(-1) * batch.weights).mean()
        return out


class Pair(NamedTuple):
    left: object
    right: object

    @property
    def difference(self):
        return self.left - self.right


@model((Pair(N(3), N(3)), {"scale": N(1)}), (Pair(N(4), N(4)), {"scale": N(1), "shift": N(4)}))
def named_tuples_and_dicts(pair, options):
    """Swapped on data; a dict with open keys."""
    if pair.difference.sum() > 0:
        pair = Pair(pair.right, pair.left)
    y = pair.difference * options["scale"]
    for key, value in options.items():
        if key == "shift":
            y = y + value
    return pair._replace(left=y), {**options, "norm": y.norm()}


@model((N(2, 3), N(2, 3), N(2, 3)), (N(1, 3),))
class ManyInputs(nn.Layer):
    """Any number of inputs and options."""

    def __init__(self, **kwargs):
        super().__init__()
        options = {"size": 3, "bias": True} | kwargs
        self.linear = nn.Linear(options["size"], 2, bias_attr=None if options["bias"] else False)

    def combine(self, *xs, scale=1.0, **rest):
        total = sum(self.linear(x) for x in xs)
        if total.sum() > 0:
            total = total * scale
        return total + rest.get("shift", 0.0)

    def forward(self, first, *others):
        options = {"scale": 2.0} if others else {"shift": 1.0}
        return self.combine(first, *others, **options)


class Scaled(nn.Layer):
    instances = 0

    def __init__(self, dim=3):
        super().__init__()
        self.raw = self.create_parameter([dim])
        type(self).instances += 1

    @property
    def scale(self):
        if self.raw.mean() > 0:
            return F.softplus(self.raw)
        return F.softplus(self.raw) + 1.0

    @staticmethod
    def squash(x):
        return paddle.tanh(x) if x.abs().max() > 1 else x

    @classmethod
    def describe(cls):
        return cls.__name__.lower()

    def forward(self, x):
        return self.squash(x * self.scale)


@model((N(2, 3),), (N(4, 3),))
class Shifted(Scaled):
    """Properties, static and class methods, inherited."""

    def __init__(self):
        super().__init__()
        self.shift = self.create_parameter([3], is_bias=True)
        self.__secret = 2.0

    @property
    def scale(self):
        return super().scale * self.__secret

    def forward(self, x):
        y = super(Shifted, self).forward(x) + self.shift  # noqa: UP008
        return {self.describe(): y, "half": Scaled.squash(y) / 2}


class Counter(nn.Layer):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", paddle.zeros([], "int64"))
        self.register_buffer("positive", paddle.zeros([], "int64"))
        self.last = paddle.zeros([2])


@model((N(3, 2),), (N(2, 2),))
class Remembers(Counter):
    """Attributes of self are written in branches and loops."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def forward(self, x):
        y = self.linear(x)
        self.calls += 1
        if y.sum() > 0:
            self.positive += 1
            self.last = y.detach().mean(0)
        else:
            self.last = self.last * 0.5
        for row in y.detach():
            self.last = self.last + 0.1 * row
        return y + self.last


def residual(function):
    @functools.wraps(function)
    def wrapped(self, x, *args, **kwargs):
        return x + function(self, x, *args, **kwargs)

    return wrapped


def times(k):
    def decorate(function):
        def wrapped(*args):
            y = function(*args)
            for _ in range(k - 1):
                y = function(*args[:-1], y)
            return y

        return wrapped

    return decorate


@model((N(2, 3),), (N(3, 3),))
class Decorated(nn.Layer):
    """Decorators with and without arguments, around methods with tensor conditions."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    @residual
    def block(self, x, slope=0.1):
        y = self.linear(x)
        if y.max() > 0:
            return F.leaky_relu(y, slope)
        return y

    @times(2)
    def twice(self, x):
        return self.block(x, slope=0.2)

    def forward(self, x):
        return self.twice(x)


def make_activation(kind, alpha=1.0):
    count = 0

    def activation(x):
        nonlocal count
        if kind == "hard":
            return paddle.clip(x, -alpha, alpha)
        count += 1
        return alpha * x if (x > 0).all() else alpha * paddle.tanh(x)

    return activation


@model((N(2, 3),), (N(3, 3),))
class WithClosures(nn.Layer):
    """Closures, lambdas, partial functions and functions in containers."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.steps = [
            make_activation("hard", 2.0),
            lambda x, k=2: x * k if x.mean() > 0 else x / k,
            functools.partial(F.dropout, p=0.5),
            self.linear,
        ]

    def forward(self, x):
        soft = make_activation("soft")
        for step in self.steps:
            if isinstance(step, functools.partial):
                x = step(x, training=self.training)
            else:
                x = step(x)
            x = soft(x)
        return functools.reduce(lambda a, b: a + b, [x, soft(x), *map(soft, [x])])


class Mode(Enum):
    SUM = "sum"
    MAX = "max"


@contextmanager
def scaled(net, by):
    before, net.by = net.by, by
    try:
        yield net
    finally:
        net.by = before


@model((N(2, 3), "sum"), (N(2, 4), "max"))
class ManyStatements(nn.Layer):
    """`match`, `with`, `try`, walrus, f-strings, enumerations, star assignments, `del`."""

    by = 1.0

    def __init__(self):
        super().__init__()
        self.bias = self.create_parameter([1], is_bias=True)

    def forward(self, x, mode):
        mode = Mode(mode)
        match mode:
            case Mode.SUM:
                y = x.sum(-1)
            case Mode.MAX:
                y = x.max(-1)
        with scaled(self, 3.0) as net:
            if (total := y.sum()) > 0:
                y = y * net.by
        try:
            y = y + self.missing
        except AttributeError:
            y = y + self.bias
        first, *rest = x
        label = f"{mode.value}:{len(rest)}"
        del rest
        return y + total * 0.1 + first[0], label


@model((N(3, 4),), (N(2, 4),))
class WithContainers(nn.Layer):
    """Lists, dicts, sets, comprehensions; appended in branches and loops."""

    def __init__(self):
        super().__init__()
        self.heads = nn.LayerDict({"a": nn.Linear(4, 2), "b": nn.Linear(4, 2)})
        self.scales = nn.ParameterList([self.create_parameter([2]) for _ in range(2)])

    def forward(self, x):
        found = {name: head(x) for name, head in self.heads.items()}
        stats = {"rounds": 0, "sum": paddle.zeros([2])}
        rows = []
        for row in found["a"]:
            if row.sum() > 0:
                rows.append(row)
            else:
                rows.append(-row)
            stats["sum"] = stats["sum"] + rows[-1]
        while stats["sum"].sum() < 10:
            stats["sum"] = stats["sum"] * 2 + 1
            stats["rounds"] += 1
        merged = [scale * y for scale, y in zip(self.scales, found.values())]
        kinds = {len(m.shape) for m in merged}
        return [paddle.stack(rows), *merged], stats, sorted(kinds)


def pieces(x, size):
    start = 0
    while start < x.shape[0]:
        yield start, x[start : start + size]
        start += size


@model((N(6, 2),), (N(7, 2),))
class WithGenerators(nn.Layer):
    """Generators, consumed by loops and by `sum`."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def forward(self, x):
        total = sum(self.linear(part).sum(0) for _, part in pieces(x, 2))
        out = {}
        for start, part in pieces(x, 3):
            out[start] = part.mean(0) if part.sum() > 0 else part.max(0)
        return total, out


class Config:
    """A plain object beside the layer."""

    def __init__(self, width=4, use_bias=True, activation=None):
        self.width, self.use_bias, self.activation = width, use_bias, activation or F.gelu


@model((N(2, 3),), (N(3, 3),), dtype="float64")
class Configured(nn.Layer):
    """Options in an object; train and eval differ; tensors and flags of Python mixed."""

    def __init__(self, config=None):
        super().__init__()
        self.config = config or Config()
        self.up, self.down = nn.Linear(3, self.config.width), nn.Linear(self.config.width, 3)
        self.drop = nn.Dropout(0.4)
        self.norm = nn.BatchNorm1D(self.config.width)

    def forward(self, x, flag=True, **extra):
        y = self.norm(self.config.activation(self.up(x)))
        if self.training and y.std() > 0.1:
            y = self.drop(y)
        if not self.training or (flag and y.mean() > 100):
            y = y * 0.5
        residual = x if self.config.use_bias else None
        y = self.down(y)
        return y if residual is None else y + residual


class Round(paddle.autograd.PyLayer):
    """Rounds forward; passes its gradient straight through."""

    @staticmethod
    def forward(ctx, x, width):
        ctx.save_for_backward(x)
        ctx.width = width
        return paddle.round(x * width) / width

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensor()
        return g * (x.abs() < ctx.width).astype("float32")


@model((N(2, 3),), (N(4, 3),))
class Quantized(nn.Layer):
    """A PyLayer within branches of data."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        y = Round.apply(self.linear(x), 4)
        if y.sum() > 0:
            y = Round.apply(y * 0.3, 2)
        return y


@model((N(3, 3),), (N(2, 3),))
class WithHooks(nn.Layer):
    """Hooks on layers, and on a tensor inside."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 2)
        self.first.register_forward_post_hook(lambda layer, x, y: y * 2)
        self.second.register_forward_pre_hook(lambda layer, x: (paddle.tanh(x[0]),))

    def forward(self, x):
        h = self.first(x)
        if not h.stop_gradient:
            h.register_hook(lambda g: g * 0.5)
        return self.second(h)


class Tower(nn.Layer):
    def __init__(self, inside, outside):
        super().__init__()
        self.linear = nn.Linear(inside, outside)
        self.extra = None

    def helper(self, x):
        return self.linear(x) if x.shape[-1] == self.linear.weight.shape[0] else x

    def forward(self, x):
        return self.helper(x) if self.extra is None else self.extra(self.helper(x))


@model((N(2, 3),), (N(5, 3),))
class Nested(nn.Layer):
    """Layers within layers; one used twice; another replaced; methods of sublayers called."""

    def __init__(self):
        super().__init__()
        self.towers = nn.Sequential(("a", Tower(3, 4)), ("b", Tower(4, 3)))
        self.shared = nn.Linear(3, 3)
        self.towers["b"].extra = self.shared
        self.frozen = nn.Linear(3, 3)
        for p in self.frozen.parameters():
            p.stop_gradient = True

    def forward(self, x):
        y = self.towers(x)
        y = self.shared(y) + self.frozen(x).detach()
        return self.towers["a"].helper(y).sum(-1) + y.mean()


@model((N(2, 4),), (N(3, 4),))
def recursive(x, depth=3):
    """Divide and conquer; Python's numbers end it, data says which way."""
    if depth == 0 or x.shape[1] == 1:
        return x.sum(1)
    half = x.shape[1] // 2
    left, right = recursive(x[:, :half], depth - 1), recursive(x[:, half:], depth - 1)
    return paddle.where(left > right, left - right, right) if left.sum() > 0 else left + right


@model((N(3, 3),), (N(4, 4),), hooks=False)
def gradient_inside(x):
    """paddle.grad in the model, and again through it."""
    y = (x**3).sum()
    (g,) = paddle.grad(y, x, create_graph=True)
    if g.mean() > 1:
        g = g / g.mean()
    return (g**2).sum(), g
