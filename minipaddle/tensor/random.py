"""Random tensors. Every draw takes the next stream of the generator: see `ops/random.py`."""

from math import pi, prod

from ..core.prelude import Var, broadcast_shapes, current, dt, value_error, whole
from ..engine.core.dim import never, suppose
from ..engine.ops import creation, elementwise, movement
from ..ops import angles, rounding
from ..ops import random as ops
from .arranging import broadcast_tensors
from .creation import dims, floating
from .generator import GENERATOR


def stream(seed: int = 0):
    """The base of the generator's next stream, or of the stream of `seed` if it is not 0."""
    return ops.stream(seed, 0) if seed else GENERATOR.draw()


def sample(op, shape, seed=0, **attrs):
    """`op` applied to 0, 1, 2, … in `shape` and the base of the next stream."""
    i = creation.arange(size=prod(shape), dtype=dt.int64.numpy, start=0, step=1)
    out = op(i, stream(seed), **attrs)
    return out if len(shape) == 1 else movement.reshape(out, shape=shape)


# ---- continuous ------------------------------------------------------------------------------


def uniform(shape, dtype=None, min=0, max=1.0, seed=0, name=None):
    """Uniform on [min, max). With a `seed` other than 0 the same numbers every time.

    >>> x = paddle.uniform([100], min=2.0, max=3.0)
    >>> bool((x >= 2).all() and (x < 3).all())
    True
    """
    dtype = floating(dtype)
    return sample(ops.random_uniform, dims(shape), seed, low=min, high=max, dtype=dtype)


def rand(shape, dtype=None, name=None):
    """Uniform on [0, 1).

    >>> paddle.rand([2, 3]).shape
    [2, 3]
    """
    return uniform(shape, dtype, 0, 1)


def gaussian(shape, mean=0.0, std=1.0, seed=0, dtype=None, name=None):
    """Normal with the given mean and standard deviation.

    >>> paddle.tensor.random.gaussian([2, 3]).shape
    [2, 3]
    """
    dtype = floating(dtype)
    return sample(ops.random_normal, dims(shape), seed, mean=mean, std=std, dtype=dtype)


def standard_normal(shape, dtype=None, name=None):
    """Normal with mean 0 and standard deviation 1.

    >>> paddle.standard_normal([2, 3]).shape
    [2, 3]
    """
    return gaussian(shape, 0, 1, dtype=dtype)


def randn(shape, dtype=None, name=None):
    """`standard_normal` under its shorter name.

    >>> paddle.randn([2, 3]).shape
    [2, 3]
    """
    return standard_normal(shape, dtype)


def normal(mean=0.0, std=1.0, shape=None, name=None):
    """Normal; `mean` and `std` may be tensors, whose shape the result then has.

    Gradients flow to them.

    >>> paddle.normal(mean=paddle.to_tensor([0.0, 100.0]), std=0.1).shape
    [2]
    """
    both = [x for x in (mean, std) if isinstance(x, Var)]
    if not both:
        return gaussian([1] if shape is None else shape, mean, std)
    spec = both[0].spec
    return mean + std * gaussian(broadcast_shapes(*(x.spec.shape for x in both)), dtype=spec.dtype)


def log_normal(mean=1.0, std=2.0, shape=None, name=None):
    """exp of a normal variable.

    >>> bool((paddle.log_normal(shape=[100]) > 0).all())
    True
    """
    return elementwise.exp(normal(mean, std, shape))


def standard_gamma(x, name=None):
    """Gamma-distributed with shape parameters `x` and scale 1.

    >>> paddle.standard_gamma(paddle.full([2, 3], 4.0)).shape
    [2, 3]
    """
    return ops.gamma_quantile(rand(x.spec.shape, "float64"), x)


# ---- whole numbers ---------------------------------------------------------------------------


def randint(low=0, high=None, shape=[1], dtype=None, name=None):  # noqa: B006
    """Whole numbers of [low, high), or of [0, low) without `high`; int64 unless a dtype is given.

    Raises ValueError for an empty range.

    >>> bool((paddle.randint(3, 6, [100]) // 3 == 1).all())
    True
    """
    low, high = (0, low) if high is None else (low, high)
    low, high = whole(low), whole(high)
    if never(low, "<", high):
        raise value_error(f"randint from low={low} to high={high}", "low < high")
    suppose(low, "<", high)
    dtype = dt.resolve("int64" if dtype is None else dtype)
    return sample(ops.random_integers, dims(shape), low=low, high=high, dtype=dtype)


def rand_like(input, name=None, *, dtype=None):
    """`rand` in the shape and dtype of a tensor.

    >>> paddle.rand_like(paddle.ones([2, 3])).shape
    [2, 3]
    """
    return rand(input.spec.shape, input.spec.dtype if dtype is None else dtype)


def randn_like(x, dtype=None, name=None):
    """`randn` in the shape and dtype of a tensor.

    >>> paddle.randn_like(paddle.ones([2, 3])).shape
    [2, 3]
    """
    return randn(x.spec.shape, x.spec.dtype if dtype is None else dtype)


def randint_like(x, low=0, high=None, dtype=None, name=None):
    """`randint` in x's shape, and dtype if none is given.

    >>> paddle.randint_like(paddle.ones([2, 3]), 0, 10).dtype
    paddle.float32
    """
    return randint(low, high, x.spec.shape, x.spec.dtype if dtype is None else dtype)


def randperm(n, dtype="int64", name=None):
    """0, 1, … n - 1 in random order.

    >>> paddle.randperm(5).sort().tolist()
    [0, 1, 2, 3, 4]
    """
    return ops.random_permutation(stream(), size=dims(n)[0], dtype=dt.resolve(dtype))


def bernoulli(x, p=None, name=None):
    """1 with probability `x` (or `p` for all), else 0, in x's dtype.

    >>> paddle.bernoulli(paddle.to_tensor([0.0, 1.0])).tolist()
    [0.0, 1.0]
    """
    chance = x.detach() if p is None else p
    return (rand(x.spec.shape, "float32") < chance).astype(x.spec.dtype)


def binomial(count, prob, name=None):
    """Successes in `count` trials that each succeed with probability `prob`, as int64.

    >>> paddle.binomial(paddle.to_tensor([5, 9]), paddle.to_tensor([0.0, 1.0])).tolist()
    [0, 9]
    """
    count, prob = broadcast_tensors([count, prob])
    return ops.binomial_quantile(rand(count.spec.shape, "float64"), count, prob)


def poisson(x, name=None):
    """Counts with means `x`, in its dtype.

    >>> paddle.poisson(paddle.zeros([2])).tolist()
    [0.0, 0.0]
    """
    return ops.poisson_quantile(rand(x.spec.shape, "float64"), x)


def multinomial(x, num_samples=1, replacement=False, name=None):
    """`num_samples` places of each row of `x`, each as likely as its (unnormalised) weight.

    Raises ValueError when there are not enough places to draw from without replacement, and (where
    values are known, not in a program) for a negative weight.

    >>> paddle.multinomial(paddle.to_tensor([0.0, 3.0, 0.0]), 2, replacement=True).tolist()
    [1, 1]
    """
    shape = x.spec.shape
    if len(shape) not in (1, 2):
        raise value_error(f"multinomial of {x.spec}", "weights in one row, or rows")
    if not current.top.tracing and (x < 0).any():
        raise value_error(
            f"multinomial of {x.spec}, which holds negative numbers", "weights from 0 on"
        )
    if replacement:
        return ops.choose_repeatedly(rand((*shape[:-1], num_samples), "float64"), x)
    return ops.choose_distinct(rand(shape, "float64"), x, size=num_samples)


# ---- in place --------------------------------------------------------------------------------


def uniform_(x, min=0, max=1.0, seed=0, name=None):
    """Fill `x` with `uniform` numbers.

    >>> paddle.zeros([2]).uniform_(5.0, 6.0).floor().tolist()
    [5.0, 5.0]
    """
    return x.become(uniform(x.spec.shape, x.spec.dtype, min, max, seed))


def normal_(x, mean=0.0, std=1.0, name=None):
    """Fill `x` with normal numbers.

    >>> paddle.zeros([2]).normal_(7.0, 0.0).tolist()
    [7.0, 7.0]
    """
    return x.become(gaussian(x.spec.shape, mean, std, dtype=x.spec.dtype))


def log_normal_(x, mean=1.0, std=2.0, name=None):
    """Fill `x` with exp of normal numbers.

    >>> bool((paddle.zeros([9]).log_normal_() > 0).all())
    True
    """
    return x.become(elementwise.exp(gaussian(x.spec.shape, mean, std, dtype=x.spec.dtype)))


def bernoulli_(x, p=0.5, name=None):
    """Fill `x` with 1 (probability `p`) and 0.

    >>> paddle.zeros([2]).bernoulli_(1.0).tolist()
    [1.0, 1.0]
    """
    return x.become(bernoulli(x, p))


def exponential_(x, lam=1.0, name=None):
    """Fill `x` with waiting times of rate `lam`.

    >>> bool((paddle.zeros([9]).exponential_() >= 0).all())
    True
    """
    return x.become(waiting(x) / lam)


def geometric_(x, probs, name=None):
    """Fill `x` with the trials up to the first success.

    >>> bool((paddle.zeros([9]).geometric_(0.5) >= 1).all())
    True
    """
    return x.become(rounding.ceil(waiting(x) / -elementwise.log(1 - probs)))


def cauchy_(x, loc=0, scale=1, name=None):
    """Fill `x` with Cauchy-distributed numbers.

    >>> paddle.zeros([2]).cauchy_(loc=3.0, scale=0.0).tolist()
    [3.0, 3.0]
    """
    angle = (rand(x.spec.shape, x.spec.dtype) - 0.5) * pi
    return x.become(angles.tan(angle) * scale + loc)


def waiting(x):
    """Exponentially distributed, mean 1, in x's shape and dtype."""
    return -elementwise.log(1 - rand(x.spec.shape, x.spec.dtype))


__all__ = [
    "bernoulli", "bernoulli_", "binomial", "cauchy_", "exponential_", "gaussian", "geometric_",
    "log_normal", "log_normal_", "multinomial", "normal", "normal_", "poisson", "rand", "rand_like",
    "randint", "randint_like", "randn", "randn_like", "randperm", "standard_gamma",
    "standard_normal", "uniform", "uniform_",
]  # fmt: skip
