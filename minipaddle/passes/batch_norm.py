"""Batch norm folded into the convolution before it: at inference, where weights do not change.

    f · (conv(x, w) + b) + t = conv(x, w · f) + b · f + t      f, t: a number for each channel

So the image is read once less, and w · f and b · f + t are computed once (see `folding`). The
products round differently, by a few units in the last place. In training f depends on the image
itself, and nothing is folded.
"""

from __future__ import annotations

from ..engine.core.dispatch import current
from ..engine.core.slots import slot
from ..engine.ir.program import INPUT, NUMBER, Program
from ..engine.ops.conv import conv
from ..engine.ops.movement import reshape
from ..engine.ops.var import Var
from ..engine.passes.patterns import Rule, by_rules
from ..engine.passes.registry import program_pass
from ..engine.passes.rewriting import made_by, rewritten


@slot("batch_norm.folds")
def folds(x, w, **rest) -> bool:
    """Whether all values but image and kernel depend on weights alone, one for each channel."""
    channels = (1, w.spec.shape[0], *(1,) * (w.spec.ndim - 2))
    beside = [v for v in rest.values() if isinstance(v, Var)]
    return all(v.spec.shape == channels and of_states(made_by(v)) for v in beside)


def of_states(record) -> bool:
    """Whether a value depends on states alone."""
    if record.op is INPUT:
        return record not in current.top.builder.old.inputs
    return record.op is NUMBER or all(map(of_states, record.inputs))


def scaled(x, w, f, **how):
    """The convolution with its kernel [O, C, …] scaled."""
    ones = (1,) * (w.spec.ndim - 1)
    return conv(x, w * reshape(f, shape=(f.spec.size, *ones)), **how)


def conv_(x, w, stride, padding, dilation, groups):
    return conv(x, w, stride=stride, padding=padding, dilation=dilation, groups=groups)


def before(x, w, f, *, stride, padding, dilation, groups):
    return conv_(x, w, stride, padding, dilation, groups) * f


def before_with_bias(x, w, f, b, *, stride, padding, dilation, groups):
    return (conv_(x, w, stride, padding, dilation, groups) + b) * f


def before_with_two(x, w, t, b, *, stride, padding, dilation, groups):
    return (conv_(x, w, stride, padding, dilation, groups) + b) + t


def scaled_with_bias(x, w, f, b, **how):
    return scaled(x, w, f, **how) + b * f


def with_one(x, w, t, b, **how):
    return conv_(x, w, **how) + (b + t)


@slot("batch_norm.rules")
def rules() -> list[Rule]:
    """The rules: patterns and their replacements."""
    return [
        Rule(before, scaled, folds, alone=True),
        Rule(before_with_bias, scaled_with_bias, folds, alone=True),
        Rule(before_with_two, with_one, folds, alone=True),
    ]


@program_pass(
    "batch_norm",
    looks_for=[conv],
    frozen=(False, "the weights are what they are now, as at inference"),
)
def batch_norm(program: Program, *, frozen: bool) -> Program:
    """The program with batch norms folded into convolutions, if its weights are frozen."""
    return rewritten(program, by_rules(rules())) if frozen else program
