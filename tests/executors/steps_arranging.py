"""Steps of random graphs, applied to values of a pool: elementwise, reductions, movement."""

from __future__ import annotations

from math import prod

import minipaddle as paddle
import minipaddle.nn.functional as F

UNARY = [
    "tanh", "sigmoid", "abs", "neg", "square", "sin", "cos", "floor", "ceil", "round", "trunc",
    "sign", "erf", "expm1", "reciprocal", "exp", "isnan", "isfinite", "relu", "relu6", "gelu",
    "silu", "softplus", "elu", "leaky_relu", "hardswish", "mish", "softsign", "log_sigmoid",
    "hardtanh", "tanhshrink",
]  # fmt: skip
BINARY = [
    "add", "subtract", "multiply", "divide", "maximum", "minimum", "fmax", "fmin", "atan2",
    "less_than", "equal", "greater_equal", "not_equal", "floor_divide", "remainder", "hypot",
    "copysign", "logaddexp",
]  # fmt: skip
FOLDS = ["sum", "sum", "mean", "mean", "max", "min", "amax", "prod", "logsumexp", "std", "var",
         "all", "any"]  # fmt: skip
ALONG = ["softmax", "log_softmax", "cumsum", "cumprod", "argmax", "argmin", "cummax", "sort",
         "argsort", "topk", "normalize", "logcumsumexp", "median"]  # fmt: skip


class Arranging:
    """What is computed place by place, folded and moved. Needs `random`, `pool` and `sizes`."""

    # ---- values ------------------------------------------------------------------------------

    def any(self):
        """A value; the newest are likelier."""
        near = self.pool[-4:] if self.random.random() < 0.6 else self.pool
        return self.random.choice(near)

    def floating(self):
        for _ in range(8):
            x = self.any()
            if x.is_floating_point():
                return x
        return self.pool[0]

    def whole(self, low: int, high: int, shape=None):
        """Whole numbers of [low, high), of any shape unless one is given."""
        x = self.any()
        shape = x.spec.shape if shape is None else shape
        if x.is_floating_point():
            x = (F.sigmoid(x.detach()) * 7).astype("int64")
        return self.fitted(x.astype("int64"), shape) % max(high - low, 1) + low

    def fitted(self, x, shape):
        """x, or what can be made of it, in a shape."""
        if x.spec.shape == tuple(shape):
            return x
        size = prod(shape)
        if not x.spec.size:
            return paddle.zeros(list(shape), x.dtype)
        flat = x.reshape([-1])
        if x.spec.size < size:
            flat = flat.tile([-(-size // x.spec.size)])
        return flat[:size].reshape(list(shape))

    def axes(self, x) -> list[int]:
        """Some axes of x, in any order, some counted from the end."""
        drawn = self.random.sample(range(x.ndim), self.random.randint(0, x.ndim))
        return [d - x.ndim if self.random.random() < 0.3 else d for d in drawn]

    def axis(self, x) -> int:
        return self.random.randrange(-x.ndim, x.ndim)

    def partner(self, x):
        """A value of the dtype of x that broadcasts with it."""
        y = self.any().astype(x.dtype)
        kind = self.random.random()
        shape = x.spec.shape
        if kind < 0.25:
            shape = [n if self.random.random() < 0.5 else 1 for n in shape]
        elif kind < 0.4:
            shape = shape[self.random.randint(0, len(shape)) :]
        elif kind < 0.5:
            shape = [self.random.choice(self.sizes) if n == 1 else n for n in shape]
        return self.fitted(y, shape)

    def tamed(self, y):
        """y, with its values near 1 sometimes."""
        if y.is_floating_point() and self.random.random() < 0.4:
            return F.tanh(y) if self.random.random() < 0.5 else y * 0.5
        return y

    # ---- elementwise -------------------------------------------------------------------------

    def unary(self):
        name, x = self.random.choice(UNARY), self.floating()
        if name in ("exp", "expm1"):
            x = x.clip(-5.0, 5.0)
        if name == "reciprocal":
            x = x * x + 1.0
        return [getattr(F, name, None)(x) if hasattr(F, name) else getattr(paddle, name)(x)]

    def binary(self):
        name, x = self.random.choice(BINARY), self.floating()
        y = self.partner(x)
        if self.random.random() < 0.2:
            y = self.random.choice((0, 1, 2, -1.5, 0.5))
            if name in ("atan2", "fmax", "fmin", "maximum", "minimum", "hypot", "logaddexp"):
                y = paddle.full([], y, x.dtype)
        signed = ("atan2", "copysign", "divide")  # of 0 from (float)(int)-0.5 C says no sign
        if self.random.random() < 0.2 and name not in signed:
            x, y = (x.astype("int64"), y.astype("int64") if hasattr(y, "astype") else int(y))
        if self.random.random() < 0.3 and hasattr(y, "astype"):
            x, y = y, x
        return [self.tamed(getattr(paddle, name)(x, y))]

    def chosen(self):
        x = self.floating()
        test = self.partner(x) > self.random.choice((-0.5, 0.0, 0.5))
        kind = self.random.randrange(4)
        if kind == 0:
            return [paddle.where(test, x, self.partner(x))]
        if kind == 1:
            return [paddle.where(test, x, paddle.zeros_like(x))]
        if kind == 2:
            return [test, paddle.logical_and(test, self.partner(x) < 0.7)]
        return [paddle.lerp(x, self.partner(x), 0.25), paddle.clip(x, -0.5, 1.0)]

    def convert(self):
        dtype = self.random.choice(["int32", "int64", "float32", "float64", "bool", "bfloat16"])
        return [self.any().astype(dtype)]

    # ---- folds -------------------------------------------------------------------------------

    def fold(self):
        name, x = self.random.choice(FOLDS), self.floating()
        axes = self.axes(x)
        keep = self.random.random() < 0.4
        if name in ("all", "any"):
            x = x > 0.1
        if name == "prod":
            x = F.tanh(x) + 1.0
            axes = axes[:1]
        y = getattr(paddle, name)(x, axes if name != "prod" or axes else None, keepdim=keep)
        found = [self.tamed(y)]
        if keep and x.is_floating_point() and self.random.random() < 0.7:  # use it along the row
            found.append(self.random.choice([x - y, x * y, y / (x * x + 1.0), y + x * 0.5]))
        return found

    def along(self):
        x = self.floating()
        axis = self.axis(x)
        name = self.random.choice(ALONG)
        if name in ("softmax", "log_softmax"):
            return [getattr(F, name)(x, axis)]
        if name == "normalize":
            return [F.normalize(x, axis=axis)]
        if name == "cumprod":
            return [paddle.cumprod(F.tanh(x) + 1.0, axis)]
        if name == "topk":
            return [*paddle.topk(x, self.random.randint(1, x.shape[axis]), axis)]
        found = getattr(paddle, name)(x, axis)
        return list(found) if isinstance(found, tuple) else [found]

    def lines(self):
        """The order of long lines with many ties; now and then a NaN is among them."""
        random = self.random
        shape = [random.choice((1, 3, 17)), random.choice((33, 65, 257, 280, 1100))]
        random.shuffle(shape)
        x = paddle.round(self.fitted(self.floating(), shape) * random.choice((2.0, 50.0)))
        if random.random() < 0.5:
            x = paddle.where(x == x.max(), paddle.full_like(x, float("nan")), x)
        axis, falling = random.randrange(2), random.random() < 0.5
        options = [
            lambda: [paddle.argmax(x, axis), paddle.argmin(x, axis)],
            lambda: [paddle.sort(x, axis, falling), paddle.argsort(x, axis, falling)],
            lambda: [*paddle.topk(x, random.choice((1, 3, 20, x.shape[axis])), axis, falling)],
            lambda: [*paddle.cummax(x, axis)], lambda: [*paddle.cummin(x, axis)],
            lambda: [paddle.cumsum(x * 0.5, axis)], lambda: [paddle.logcumsumexp(x * 0.1, axis)],
            lambda: [paddle.cumprod(F.tanh(x) * 0.1 + 1.0, axis)],
            lambda: [*paddle.mode(x, axis)],
            lambda: [paddle.searchsorted(paddle.sort(x), x[:, :3], right=falling)],
        ]  # fmt: skip
        return random.choice(options)()

    def rows(self):
        """Normalisations and losses."""
        x, kind = self.floating(), self.random.randrange(5)
        if not x.ndim:
            x = self.fitted(x, (2, 3))
        n = x.shape[-1]
        if kind == 0:
            weight = self.fitted(self.floating(), (n,)).astype(x.dtype)
            return [F.layer_norm(x, [n], weight, weight * 0.5)]
        if kind == 1:
            rows = x.reshape([-1, n])
            label = self.whole(0, n, (rows.shape[0],))
            how = self.random.choice(("mean", "sum", "none"))
            return [F.cross_entropy(rows, label, reduction=how)]
        if kind == 2:
            rows = self.fitted(x, (4, 3, 5))
            mean = paddle.zeros([3], x.dtype)
            return [F.batch_norm(rows, mean, mean + 1.0, training=self.random.random() < 0.7)]
        if kind == 3:
            return [F.mse_loss(x, self.partner(x)), F.smooth_l1_loss(x, x.detach() * 0.5)]
        return [F.gelu(x, approximate=True) * self.partner(x), F.glu(self.fitted(x, (3, 4)))]

    # ---- movement ----------------------------------------------------------------------------

    def arrange(self):
        x, random = self.any(), self.random
        options = [self.reshaped, self.sliced, self.moved, self.taken_apart]
        return random.choice(options)(x)

    def reshaped(self, x):
        sizes, left = [], x.spec.size
        while left > 1 and len(sizes) < 4:
            n = self.random.choice([k for k in (1, 2, 3, 4, 5, 7, 8, 17, left) if left % k == 0])
            sizes.append(n)
            left //= n
        kind = self.random.randrange(4)
        if kind == 0:
            return [x.flatten()]
        if kind == 1:
            return [x.unsqueeze(self.random.randint(-x.ndim - 1, x.ndim))]
        if kind == 2:
            return [x.squeeze()]
        return [x.reshape([*sizes, left] if x.spec.size else [0, 3])]

    def sliced(self, x):
        index = []
        for n in x.shape:
            kind = self.random.randrange(7)
            start, stop = sorted(self.random.sample(range(-1, n + 2), 2))
            if kind == 0:
                index.append(self.random.randrange(-n, n))
            elif kind == 1:
                index.append(slice(None, None, self.random.choice((-1, 2, -2))))
            elif kind == 2:
                index.append(slice(max(start, 0), stop, self.random.choice((1, 1, 2))))
            elif kind == 3:
                index.append(None)
                index.append(slice(None))
            else:
                index.append(slice(None))
        cut = index[: self.random.randint(1, len(index))] if index else [None]
        if self.random.random() < 0.2:
            cut = [*cut[:1], ...]
        return [x[tuple(cut)]]

    def moved(self, x):
        random, axis = self.random, self.axis(x)
        order = random.sample(range(x.ndim), x.ndim)
        options = [
            lambda: x.transpose(order), lambda: x.transpose(order), lambda: paddle.flip(x, axis),
            lambda: paddle.roll(x, random.randint(-3, 3), axis), lambda: paddle.tril(x, -1),
            lambda: paddle.triu(x, random.randint(-2, 2)), lambda: paddle.diagonal(x),
            lambda: paddle.expand(x, [random.choice((1, 2, 3)), *x.shape]),
            lambda: paddle.tile(x, [random.choice((1, 2)) for _ in range(x.ndim)]),
            lambda: paddle.repeat_interleave(x, 2, axis), lambda: paddle.diag_embed(x),
            lambda: F.pad(x, [random.randint(0, 2) for _ in range(2 * x.ndim)], value=0.5),
        ]  # fmt: skip
        return [random.choice(options)()]

    def taken_apart(self, x):
        axis = self.axis(x)
        if self.random.random() < 0.4:
            return [*paddle.unstack(x, axis)][:4]
        first = self.random.randint(0, x.shape[axis])
        return [*paddle.split(x, [first, x.shape[axis] - first], axis)]

    def join(self):
        x = self.any()
        same = [y for y in self.pool if y.spec == x.spec]
        parts = [self.random.choice(same) for _ in range(self.random.randint(1, 4))]
        if self.random.random() < 0.4:
            return [paddle.stack(parts, self.random.randint(-x.ndim - 1, x.ndim))]
        axis = self.axis(x)
        if self.random.random() < 0.5:  # of another size along that axis
            y = self.any().astype(x.dtype)
            shape = list(x.shape)
            shape[axis] = self.random.choice(self.sizes)
            parts.append(self.fitted(y, shape))
        return [paddle.concat(parts, axis)]
