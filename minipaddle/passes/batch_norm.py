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
from ..engine.passes.patterns import RewriteRule, by_rules
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


def scale_kernel(x, w, f, **at):
    """The convolution with its kernel [O, C, …] scaled."""
    ones = (1,) * (w.spec.ndim - 1)
    return conv(x, w * reshape(f, shape=(f.spec.size, *ones)), **at)


def rule(before, after) -> RewriteRule:
    """A rule in which `**at` are the attributes of a convolution."""
    return RewriteRule(before, after, folds, alone=True, attrs=conv.attrs)


@slot("batch_norm.rules")
def rules() -> list[RewriteRule]:
    """The rules: patterns and their replacements."""
    return [
        rule(lambda x, w, f, **at: conv(x, w, **at) * f, scale_kernel),
        rule(lambda x, w, f, b, **at: (conv(x, w, **at) + b) * f,
             lambda x, w, f, b, **at: scale_kernel(x, w, f, **at) + b * f),
        rule(lambda x, w, t, b, **at: (conv(x, w, **at) + b) + t,
             lambda x, w, t, b, **at: conv(x, w, **at) + (b + t)),
    ]  # fmt: skip


@program_pass(
    "batch_norm",
    looks_for=[conv],
    frozen=(False, "the weights are what they are now, as at inference"),
)
def batch_norm(program: Program, *, frozen: bool) -> Program:
    """The program with batch norms folded into convolutions, if its weights are frozen."""
    return rewritten(program, by_rules(rules())) if frozen else program
