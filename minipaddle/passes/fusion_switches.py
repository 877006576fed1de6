"""Paddle's switches of fusion: each, turned off, keeps a value and its user in separate groups."""

from __future__ import annotations

from ..engine.core.op import Op
from ..engine.core.record import Record
from ..engine.ops import activation
from ..engine.ops.elementwise import add, multiply
from ..engine.ops.special import sigmoid, tanh
from ..engine.passes.fusion import SEPARATE
from ..engine.passes.fusion_groups import skip_reshapes
from ..engine.passes.registry import SWITCHES, PassSwitch
from ..ops import activations

ACTIVATIONS = {sigmoid, tanh} | {
    op for module in (activation, activations) for op in vars(module).values()
    if isinstance(op, Op) and op.body.__module__ == module.__name__
}  # fmt: skip


def per_channel(x: Record) -> bool:
    """Whether a value has one element for each channel, the same along all other axes."""
    return x.dtype is not None and sum(n != 1 for n in x.shape) <= 1


def is_normalized(x: Record) -> bool:
    """Whether a value is x·f + t with a factor and a term for each channel, as batch norm ends."""
    return x.op is add and any(
        skip_reshapes(y).op is multiply
        and per_channel(t)
        and any(map(per_channel, skip_reshapes(y).inputs))
        for y, t in (x.inputs, x.inputs[::-1])
    )


def register(name: str, doc: str, rule) -> None:
    """A switch of the pass; `rule(value, user)` says which pairs it keeps apart if it is off."""
    SEPARATE[name] = rule
    SWITCHES["passes.fusion"][name] = PassSwitch(True, doc)


register(
    "fuse_elewise_add_act_ops",
    "an activation is in one group with the addition before it",
    lambda x, user: user.op in ACTIVATIONS and x.op is add and not is_normalized(x),
)
register(
    "fuse_bn_act_ops",
    "an activation is in one group with the scale and shift of a batch norm",
    lambda x, user: user.op in ACTIVATIONS and is_normalized(x),
)
register(
    "fuse_bn_add_act_ops",
    "an addition is in one group with the scale and shift of a batch norm",
    lambda x, user: user.op is add and is_normalized(x),
)
