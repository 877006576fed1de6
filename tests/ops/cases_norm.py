"""Normalisation, against torch's autograd through its definition."""

import numpy as np
import torch

from tests.ops.cases import Case


def of_x(x, axes, centered):
    """The moments as NumPy has them."""
    mean = x.mean(axes, keepdims=True) if centered else np.zeros_like(x.mean(axes, keepdims=True))
    return mean, ((x - mean) ** 2).mean(axes, keepdims=True)


def inputs(*before, shape, scale, shift=None, axes, centered):
    """A builder of the inputs `before` (shapes), x, scale, maybe shift, and the moments of x."""

    def build(rng):
        lead = [rng.standard_normal(s) for s in before]
        x = rng.standard_normal(shape) * 2 + 0.5
        rest = [rng.standard_normal(s) if isinstance(s, tuple) else s
                for s in (scale, shift) if s is not None]  # fmt: skip
        return [*lead, x, *rest, *of_x(x, axes, centered)]

    return build


def standardized(x, scale, shift, axes, epsilon, centered):
    """The definition; x's own moments, so that autograd sees them move."""
    mean = x.mean(axes, keepdim=True) if centered else 0.0
    var = ((x - mean) ** 2).mean(axes, keepdim=True)
    return (x - mean) / torch.sqrt(var + epsilon) * scale + shift


def slope(x, g, scale, how):
    """Its derivative in x, itself differentiable."""
    given = x if x.requires_grad else x.clone().requires_grad_()
    y = standardized(given, scale, 0.0, **how)
    return torch.autograd.grad(y, given, g, create_graph=True)[0]


def slope_of_scale(x, g, shape, how):
    scale = torch.ones(shape, dtype=x.dtype, requires_grad=True)
    y = standardized(x, scale, 0.0, **how)
    return torch.autograd.grad(y, scale, g, create_graph=True)[0]


SETTINGS = [  # shape of x, shape of scale and shift, axes
    ((4, 3, 5), (1, 3, 1), (0, 2), True),  # batch
    ((4, 5), (5,), (1,), True),  # layer
    ((4, 5), (5,), (1,), False),  # RMS
    ((2, 3, 2, 4), (1, 3, 2, 1), (2, 3), True),  # group: the scale varies within a group
    ((2, 3, 4), (1, 3, 1), (2,), True),  # instance
    ((2, 3, 4), (), (2,), True),
    ((3, 2, 4), (2, 4), (1, 2), True),  # a layer norm over two axes
]
ANY = ("float64", "float32")  # in halves the moments come in float32
CASES = {"moments": [], "standardize": [], "standardize_grad": [], "scale_grad": []}
for shape, scale, axes, centered in SETTINGS:
    how = {"axes": axes, "epsilon": 1e-3, "centered": centered}
    over = {"shape": shape, "axes": axes, "centered": centered}
    CASES["moments"].append(
        Case(
            lambda rng, shape=shape: [rng.standard_normal(shape)],
            attrs={"axes": axes, "centered": centered},
            numpy=lambda x, axes=axes, centered=centered: of_x(x, axes, centered),
        )
    )
    CASES["standardize"].append(
        Case(
            inputs(scale=scale, shift=scale, **over),
            lambda x, scale, shift, *_, how=how: standardized(x, scale, shift, **how),
            how,
            smooth=False,  # a central difference would leave the moments behind
            dtypes=ANY,
        )
    )
    CASES["standardize_grad"].append(
        Case(
            inputs(shape, scale=scale, **over),
            lambda g, x, scale, *_, how=how: slope(x, g, scale, how),
            how,
            smooth=False,
            tolerance=5,
            dtypes=ANY,
        )
    )
    CASES["scale_grad"].append(
        Case(
            inputs(shape, scale=None, **over),
            lambda g, x, *_, how=how, scale=scale: slope_of_scale(x, g, scale, how),
            {"shape": scale, **how},
            smooth=False,
            tolerance=5,
            dtypes=ANY,
        )
    )
CASES["standardize"].append(
    Case(
        inputs(shape=(3, 4), scale=1.0, shift=0.0, axes=(1,), centered=True),
        lambda x, *_: standardized(x, 1.0, 0.0, (1,), 1e-3, True),
        {"axes": (1,), "epsilon": 1e-3, "centered": True},
        smooth=False,
        dtypes=ANY,
    )
)
