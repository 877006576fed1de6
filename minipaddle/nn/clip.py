"""Gradient clipping, for the argument `grad_clip=` of optimizers."""

from ..core.prelude import Recording, e, slot, value_error
from ..ops.arithmetic import clip
from ..ops.row_gradient import map_values

__all__ = ["ClipGradByGlobalNorm", "ClipGradByNorm", "ClipGradByValue"]


class ClipGrad:
    """The base: `clip` changes gradients; those of parameters with `need_clip=False` stay."""

    def __call__(self, params_grads) -> list:
        """Pairs (parameter, gradient) with the gradients clipped; None stays None."""
        pairs = list(params_grads)
        places = [
            k for k, (p, g) in enumerate(pairs) if g is not None and getattr(p, "need_clip", True)
        ]
        with Recording(False):
            clipped = map_values(self.clip, [pairs[k][1] for k in places]) if places else []
        for k, g in zip(places, clipped, strict=True):
            pairs[k] = (pairs[k][0], g)
        return pairs

    def clip(self, grads: list) -> list:
        """The clipped gradients."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v}' for k, v in vars(self).items())})"


class ClipGradByValue(ClipGrad):
    """Every element cut to [min, max]; `min` is -max if absent.

    >>> clip = paddle.nn.ClipGradByValue(1.0)
    >>> w = paddle.zeros([2])
    >>> clip([(w, paddle.to_tensor([-3.0, 0.5]))])[0][1].tolist()
    [-1.0, 0.5]
    """

    def __init__(self, max, min=None):
        if min is None and max <= 0:
            raise value_error(f"ClipGradByValue(max={max})", "max above 0, or a min")
        self.max = float(max)
        self.min = -self.max if min is None else float(min)

    def clip(self, grads):
        return [clip(g, min=self.min, max=self.max) for g in grads]


def shrink(g, norm, limit: float):
    """g · limit / max(norm, limit): no longer than the limit if `norm` is its length."""
    return g * (limit / e.maximum(norm, limit)).astype(g.spec.dtype)


def total_square(grads):
    """The sum of the squares of all elements, in float32 or wider."""
    total = None
    for g in grads:
        wide = g.astype("float32") if g.spec.dtype.itemsize < 4 else g
        square = (wide * wide).sum()
        total = square if total is None else total + square
    return total


@slot("nn.clip_by_global_norm")
def clip_by_norm_of_all(grads, limit: float):
    """All gradients by one factor, so that the length of all together is at most the limit."""
    norm = e.sqrt(total_square(grads))
    return [shrink(g, norm, limit) for g in grads]


class ClipGradByNorm(ClipGrad):
    """Each gradient scaled down so that its 2-norm is at most `clip_norm`.

    >>> clip, w = paddle.nn.ClipGradByNorm(2.5), paddle.zeros([2])
    >>> clip([(w, paddle.to_tensor([3.0, 4.0]))])[0][1].tolist()
    [1.5, 2.0]
    """

    def __init__(self, clip_norm):
        self.clip_norm = float(clip_norm)

    def clip(self, grads):
        return [shrink(g, e.sqrt(total_square([g])), self.clip_norm) for g in grads]


class ClipGradByGlobalNorm(ClipGrad):
    """All gradients scaled by one factor, so that their common 2-norm is at most `clip_norm`.

    `group_name` and `auto_skip_clip` steer Paddle's distributed training and change nothing here.
    Source: Pascanu et al. 2013.

    >>> clip, w = paddle.nn.ClipGradByGlobalNorm(2.5), paddle.zeros([1])
    >>> [g.item() for _, g in clip([(w, paddle.full([1], 3.0)), (w, paddle.full([1], 4.0))])]
    [1.5, 2.0]
    """

    def __init__(self, clip_norm, group_name="default_group", auto_skip_clip=False):
        self.clip_norm = float(clip_norm)

    def clip(self, grads):
        return clip_by_norm_of_all(grads, self.clip_norm)
