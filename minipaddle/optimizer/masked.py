"""Optimizers whose parameters keep zeros: a mask is one more state of a parameter.

The rule multiplies what it computes by the mask. So a mask holds wherever a step is made: operator
by operator, in C, in a captured step, on master weights, and where a scaler leaves the step out.
"""

from __future__ import annotations

from functools import cache

from ..core.prelude import Tensor, type_error
from .optimizer import Optimizer
from .update import UPDATES


@cache
def add_masks(kind: type) -> type:
    """The optimizer class whose rule multiplies parameters by their masks."""

    class Masked(kind):
        keeps_masks = True

        @staticmethod
        def states(o, shape: tuple) -> dict:
            return {**kind.states(o, shape), "mask": (shape, 1.0)}

        @staticmethod
        def rule(o, p, g, lr, *states) -> tuple:
            *own, mask = states
            new, *changed = kind.rule(o, p, g, lr, *own)
            return new * mask, *changed, mask

        def _create_state(self, group, p):
            kept = super()._create_state(group, p)
            share_mask(self, p, kept)
            return kept

    Masked.__name__ = Masked.__qualname__ = f"Masked{kind.__name__}"
    Masked.rule.__module__ = kind.rule.__module__  # C makes the steps of this package's rules
    return Masked


def share_mask(optimizer, p, kept) -> None:
    """Let the mask among the states be the parameter's: later pruning writes into it."""
    known = mask_of(p, kept.dtype)
    known.name = optimizer._key(p, "mask")
    kept.states["mask"] = known


def mask_of(p, dtype=None) -> Tensor:
    """The mask of a parameter: ones and zeros in its shape; the first call makes one of ones."""
    if not hasattr(p, "sparsity_mask"):
        m, dtype = p.place.module, dtype or ("float32" if p.spec.dtype.itemsize == 2 else p.dtype)
        p.sparsity_mask = Tensor(m.ones(p.spec.shape), dtype, p.place)
    return p.sparsity_mask


def keep_masks(optimizer: Optimizer) -> Optimizer:
    """The optimizer itself, which from now on keeps the zeros of pruned parameters.

    Raises TypeError for what does not step parameter by parameter.
    """
    if getattr(type(optimizer), "step", None) is not Optimizer.step:
        what = f"masks were to be kept by {type(optimizer).__name__}"
        raise type_error(what, "an optimizer of paddle.optimizer that steps parameter by parameter")
    if not hasattr(optimizer, "keeps_masks"):
        optimizer.__class__ = add_masks(type(optimizer))
        UPDATES.pop(optimizer, None)
        for p, kept in optimizer._states.items():
            share_mask(optimizer, p, kept)
    return optimizer
