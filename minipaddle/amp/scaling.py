"""The two operators of a gradient scaler: they run inside a captured step, as all others do.

A gradient of float16 below 6e-8 is zero. So the loss is multiplied by a scale that brings the
gradients into the range of float16; before the step they are divided by it. A scale that is too
large makes them infinite: such a step is left out, and the scale falls.
Source: Micikevicius et al., "Mixed Precision Training", 2018, section 3.2; the kernels
`check_finite_and_unscale` and `update_loss_scaling` of Paddle 3.3.1.
"""

from functools import reduce
from operator import add

from ..core.prelude import Spec, dt, opaque, slot
from ..engine.passes.decompose import RULES, Operators, as_array
from ..engine.passes.registry import LOOKS_FOR


@opaque
def check_finite_and_unscale(m, scale, *gradients):
    """(whether a gradient is infinite or NaN, the gradients divided by the scale)."""
    unscaled = tuple((g * (1 / scale)).astype(g.dtype) for g in gradients)
    total = reduce(add, (m.sum(g * 0.0) for g in unscaled))  # inf · 0 and NaN · 0 are NaN
    return total != 0, *unscaled


@opaque
def update_loss_scaling(
    m, scale, found, good, bad, *, incr_every, decr_every, incr_ratio, decr_ratio
):  # fmt: skip
    """(scale, good, bad): the next scale, and how many steps in a row were finite, or were not.

    After `incr_every` good steps the scale grows by a factor, if it stays finite; after
    `decr_every` bad ones it falls, not below 1.
    """
    good, bad = m.where(found, 0, good + 1), m.where(found, bad + 1, 0)
    grown, fallen = scale * incr_ratio, m.maximum(scale * decr_ratio, 1.0)
    grows, falls = m.greater_equal(good, incr_every), m.greater_equal(bad, decr_every)
    grown = m.where(m.isfinite(grown), grown, scale)
    scale = m.where(falls, fallen, m.where(grows, grown, scale))
    return scale, m.where(grows, 0, good), m.where(falls, 0, bad)


@check_finite_and_unscale.shape
def _(scale, *gradients):
    return Spec((), dt.bool_.numpy), *gradients


@update_loss_scaling.shape
def _(scale, found, good, bad, **_):
    return scale, good, bad


check_finite_and_unscale.composite = True
RULES[update_loss_scaling] = lambda record, *inputs: tuple(
    y.tensor for y in update_loss_scaling.body(Operators(), *map(as_array, inputs), **record.attrs)
)
LOOKS_FOR["decompose"] += [update_loss_scaling]


@slot("amp.check_and_unscale")
def check_and_unscale(gradients: list, scale) -> tuple:
    """(the gradients divided by the scale, whether one of them is infinite or NaN)."""
    overflowed, *unscaled = check_finite_and_unscale(scale, *gradients)
    return unscaled, overflowed


@slot("amp.update_scale")
def update_scale(scale, found, good, bad, *, incr_every, decr_every, incr_ratio, decr_ratio):
    """(scale, good, bad) after a step: see `update_loss_scaling`."""
    how = {"incr_every": incr_every, "decr_every": decr_every}
    how |= {"incr_ratio": incr_ratio, "decr_ratio": decr_ratio}
    return update_loss_scaling(scale, found, good, bad, **how)
