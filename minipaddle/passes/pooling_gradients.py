"""Algebra of the gradient of max pooling: rules that the pass `algebra` applies too.

    gate(max_pool_grad(g, x, y), x)  =  max_pool_grad(gate(g, y), x, y)
    sum(max_pool_grad(gate(g, y), x, y))  =  sum(gate(g, y))          (over pixels, by channel)

A gradient lands only where x is y, so the gate of an activation before pooling can ask y, of which
there is a quarter. Each number that the gate lets through lands once, so a bias's gradient can be
summed before. (Without a gate a window of -inf or NaN takes none.)
"""

from __future__ import annotations

from ..engine.ops.elementwise import gate
from ..engine.ops.reduction import sum
from ..engine.passes.algebra import OTHERS
from ..engine.passes.patterns import RewriteRule
from ..engine.passes.registry import LOOKS_FOR
from ..ops.channels_last import SIBLINGS
from ..ops.pooling import max_pool, max_pool_grad


def define_rules(pool, grad, channel: int) -> list[RewriteRule]:
    """The rules for images whose channels are on this axis."""

    def by_channel(g, x, axis, **attrs) -> bool:
        """Whether a sum is over all axes but the channels."""
        return {*axis} == {*range(g.ndim)} - {channel % g.ndim}

    return [
        RewriteRule(
            lambda g, x, y, *, windows, low, high, closed: gate(
                grad(g, x, y, windows=windows), x, low=low, high=high, closed=closed
            ),
            lambda g, x, y, *, windows, low, high, closed: grad(
                gate(g, y, low=low, high=high, closed=closed), x, y, windows=windows
            ),
            alone=True,
        ),
        RewriteRule(
            lambda g, x, *, windows, low, high, closed, axis, keepdim: sum(
                grad(
                    gate(g, pool(x, windows=windows), low=low, high=high, closed=closed),
                    x, pool(x, windows=windows), windows=windows,
                ),
                axis=axis, keepdim=keepdim,
            ),
            lambda g, x, *, windows, low, high, closed, axis, keepdim: sum(
                gate(g, pool(x, windows=windows), low=low, high=high, closed=closed),
                axis=axis, keepdim=keepdim,
            ),
            by_channel,
        ),
    ]  # fmt: skip


OTHERS += define_rules(max_pool, max_pool_grad, 1)
OTHERS += define_rules(SIBLINGS[max_pool][0], SIBLINGS[max_pool_grad][0], -1)
LOOKS_FOR["algebra"] += [gate]
