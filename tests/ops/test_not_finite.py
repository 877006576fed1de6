"""One element that is NaN or infinite: it reaches the results and gradients that it reaches in
PyTorch, and no others. An operator that multiplies by zeros what it should leave out would spread
it over whole images and rows.
"""

import numpy as np
import pytest
import torch

from minipaddle.engine.core.op import OPS
from tests.ops.test_operators import (
    ALL,
    CASES,
    differentiable,
    drawn,
    floats,
    listed,
    paddle,
    tensor,
)

GIVEN_MOMENTS = "is given mean and variance, which the oracle computes from x"
PADDED = "a convolution multiplies the zeros of its padding, and of a stride, by the weights"
BY_DEFINITION = "the oracle multiplies by 0 or 1 where the operator selects"
OTHERS = "the derivative is a product of other elements; PyTorch divides, or does not"
DIFFERS = "PyTorch has a value of its own for the derivative, or the function, there"
EXEMPT = (
    dict.fromkeys(["standardize", "standardize_grad", "scale_grad"], GIVEN_MOMENTS)
    | dict.fromkeys([n for n in OPS if n.startswith("conv")], PADDED)
    | dict.fromkeys(["gate", "place", "recurrence", "cross_entropy"], BY_DEFINITION)
    | dict.fromkeys(["prod", "cumprod"], OTHERS)
    | dict.fromkeys(
        ["heaviside", "sign", "abs", "copysign", "softsign", "elu", "celu", "selu", "logcumsumexp",
         "min", "max", "pow", "scatter_min", "scatter_max", "lgamma", "polygamma", "gammainc",
         "gammaincc", "i1", "i1e", "adam_step", "hardswish", "bernoulli_nll",
         "gated"], DIFFERS)
    | dict.fromkeys(["lu", "qr", "pinv", "solve", "solve_triangular", "cholesky", "slogdet",
                     "inverse"], "LAPACK raises, or leaves garbage")
)  # fmt: skip


def differing(name: str, k: int, place: int, value: float) -> list[str]:
    """What one strange element of an input reaches in one library alone."""
    op, case = OPS[name], CASES[name][k]
    arrays = [x.copy() if isinstance(x, np.ndarray) else x for x in drawn(name, k)]
    arrays[place].flat[arrays[place].size // 2] = value
    ours, theirs = [tensor(x) for x in arrays], [
        torch.from_numpy(x) if isinstance(x, np.ndarray) else x for x in arrays
    ]  # fmt: skip
    wrt = differentiable(op, case) if case.order else ()
    for j in wrt:
        ours[j].stop_gradient = False
        theirs[j].requires_grad_()
    pairs = list(zip(listed(op(*ours, **case.attrs)), listed(case.torch(*theirs)), strict=True))
    wrong = [
        f"result {r}"
        for r, (a, b) in enumerate(pairs)
        if not same(a.numpy(), torch.as_tensor(b).detach().numpy())
    ]
    pairs = [(a, b) for a, b in pairs if torch.is_tensor(b) and b.requires_grad]
    if not pairs or not wrt:
        return wrong
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal(tuple(b.shape)) for _, b in pairs]
    mine = paddle.grad([a for a, _ in pairs], [ours[j] for j in wrt], [*map(tensor, weights)])
    other = torch.autograd.grad(
        [b for _, b in pairs], [theirs[j] for j in wrt], [*map(torch.from_numpy, weights)]
    )
    both = zip(wrt, mine, other, strict=True)
    return wrong + [f"gradient {j}" for j, a, b in both if not same(a.numpy(), b.numpy())]


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Are the same elements not finite? (What is not floating always is.)"""
    return a.dtype.kind != "f" or np.array_equal(np.isfinite(a), np.isfinite(b))


HELD = sorted({n for n, k in ALL if n in OPS and n not in EXEMPT and CASES[n][k].torch})


@pytest.mark.parametrize("name", HELD)
@pytest.mark.filterwarnings("ignore")  # of what is computed from NaN and infinity
def test_a_strange_element_reaches_what_it_reaches_in_pytorch(name):
    wrong = []
    for k, case in enumerate(CASES[name]):
        places = floats(drawn(name, k)) if case.torch else []
        for place in (j for j in places if drawn(name, k)[j].size):
            value = (np.nan, np.inf)[(k + place) % 2]
            wrong += [f"case {k}, input {place}, {value}: {what}"
                      for what in differing(name, k, place, value)]  # fmt: skip
    assert wrong == []


def test_exempt_names_are_operators():
    assert not EXEMPT.keys() - OPS.keys()
