"""The base of distributions, and the Kullback-Leibler divergence of two."""

from ..core.prelude import dt, not_supported, value_error, whole_numbers
from ..eager.modes import no_grad
from ..tensor.arranging import broadcast_tensors
from ..tensor.creation import to_tensor
from ..tensor.math import exp

__all__ = ["Distribution", "Independent", "kl_divergence", "register_kl"]


def parameters(*values):
    """Tensors of one floating dtype and one shape."""
    tensors = [x if hasattr(x, "spec") else to_tensor(x) for x in values]
    kinds = [x.spec.dtype for x in tensors if x.spec.dtype in dt.FLOATS]
    dtype = max(kinds, key=lambda kind: kind.itemsize) if kinds else dt.default()
    return broadcast_tensors([x.astype(dtype) for x in tensors])


class Distribution:
    """The base: a density `log_prob(value)` and a way to draw, `rsample(shape)`.

    >>> paddle.distribution.Normal([0.0, 1.0], 1.0).sample([3]).shape
    [3, 2]
    """

    def __init__(self, batch_shape=(), event_shape=()):
        self._batch_shape, self._event_shape = tuple(batch_shape), tuple(event_shape)

    @property
    def batch_shape(self) -> tuple:
        """The shape of the parameters, one distribution for each element."""
        return self._batch_shape

    @property
    def event_shape(self) -> tuple:
        """The shape of one draw."""
        return self._event_shape

    def missing(self, what: str):
        return not_supported(f"{type(self).__name__} has no {what}")

    @property
    def mean(self):
        """The expected value."""
        raise self.missing("mean")

    @property
    def variance(self):
        """The expected square of the distance to the mean."""
        raise self.missing("variance")

    @property
    def stddev(self):
        """√variance."""
        return self.variance**0.5

    def sample(self, shape=(), seed=0):
        """Draws of shape [*shape, *batch_shape, *event_shape], without gradients."""
        with no_grad():
            return self.draw(self.extend(shape), seed)

    def rsample(self, shape=()):
        """Draws through which gradients flow to the parameters."""
        return self.draw(self.extend(shape), 0)

    def draw(self, shape: list, seed: int):
        """Draws of this shape, as a function of the parameters."""
        raise self.missing("way to draw")

    def extend(self, shape) -> list:
        return [*whole_numbers(shape), *self.batch_shape, *self.event_shape]

    def log_prob(self, value):
        """The logarithm of the density at `value`."""
        raise self.missing("density")

    def prob(self, value):
        """The density at `value`."""
        return exp(self.log_prob(value))

    def probs(self, value):
        """The density at `value`."""
        return self.prob(value)

    def entropy(self):
        """-E[log prob]."""
        raise self.missing("entropy")

    def kl_divergence(self, other):
        """E[log prob - log prob of `other`] over draws from this one."""
        return kl_divergence(self, other)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(batch_shape={self.batch_shape})"


class Independent(Distribution):
    """The last `reinterpreted_batch_rank` axes of a batch as one event: densities are summed.

    >>> base = paddle.distribution.Normal(paddle.zeros([2, 3]), paddle.ones([2, 3]))
    >>> paddle.distribution.Independent(base, 1).entropy().shape
    [2]
    """

    def __init__(self, base, reinterpreted_batch_rank):
        rank = reinterpreted_batch_rank
        if not 0 < rank <= len(base.batch_shape):
            raise value_error(
                f"Independent was given reinterpreted_batch_rank={rank}",
                f"1 to {len(base.batch_shape)}, the rank of the batch",
            )
        self.base, self.rank = base, rank
        shape, outer = base.batch_shape + base.event_shape, len(base.batch_shape) - rank
        super().__init__(shape[:outer], shape[outer:])

    mean = property(lambda self: self.base.mean)
    variance = property(lambda self: self.base.variance)

    def sample(self, shape=()):
        return self.base.sample(shape)

    def rsample(self, shape=()):
        return self.base.rsample(shape)

    def log_prob(self, value):
        return self.base.log_prob(value).sum(list(range(-self.rank, 0)))

    def entropy(self):
        return self.base.entropy().sum(list(range(-self.rank, 0)))


# ---- divergences -----------------------------------------------------------------------------

DIVERGENCES = {}
"""(class of p, class of q) -> the function (p, q) of `kl_divergence`."""


def register_kl(cls_p, cls_q):
    """Decorator: the divergence of two classes."""

    def register(function):
        DIVERGENCES[cls_p, cls_q] = function
        return function

    return register


def kl_divergence(p, q):
    """∫ p log(p / q): the extra nats to encode draws from p with the code for q.

    >>> p, q = paddle.distribution.Normal(0.0, 1.0), paddle.distribution.Normal(1.0, 1.0)
    >>> paddle.distribution.kl_divergence(p, q).item()
    0.5
    """
    for a in type(p).__mro__:
        for b in type(q).__mro__:
            if (a, b) in DIVERGENCES:
                return DIVERGENCES[a, b](p, q)
    names = [f"{a.__name__} from {b.__name__}" for a, b in DIVERGENCES]
    raise not_supported(
        f"kl_divergence of {type(p).__name__} from {type(q).__name__}",
        ", ".join(names),
        hint="register_kl adds one",
    )


@register_kl(Independent, Independent)
def _(p, q):
    return kl_divergence(p.base, q.base).sum(list(range(-p.rank, 0)))
