"""Random programs: chains of operators with reuse, broadcasting and axes, beside PyTorch.

A program is a list of steps; each takes values computed before and adds one. The same list runs in
both frameworks, so values, gradients and gradients of gradients must agree.
"""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import minipaddle as paddle

UNARY = ["tanh", "sigmoid", "sin", "exp", "square", "abs"]
BINARY = ["add", "subtract", "multiply", "maximum", "minimum"]
SHAPES = [(3,), (2, 3), (1, 3), (2, 1), (4, 2, 3), (1,), ()]


def broadcasts(a, b) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(a[::-1], b[::-1]))


def small(x):
    """The value kept from growing, so that both frameworks stay in the same decade."""
    return x.tanh()


@st.composite
def programs(draw):
    """(shapes of the inputs, steps): a step is (name, places of its operands, detail)."""
    shapes = draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3))
    known, steps = list(shapes), []
    for _ in range(draw(st.integers(1, 8))):
        kind = draw(st.sampled_from(["unary", "binary", "sum", "transpose", "flatten", "matmul"]))
        k = draw(st.integers(0, len(known) - 1))
        shape = known[k]
        fits = [j for j, other in enumerate(known) if broadcasts(shape, other)]
        if kind == "binary":
            j = draw(st.sampled_from(fits))
            steps.append((draw(st.sampled_from(BINARY)), (k, j), None))
            known.append(np.broadcast_shapes(shape, known[j]))
        elif kind == "sum" and shape:
            axis = draw(st.integers(-len(shape), len(shape) - 1))
            keep = draw(st.booleans())
            steps.append(("sum", (k,), (axis, keep)))
            known.append(np.sum(np.zeros(shape), axis, keepdims=keep).shape)
        elif kind == "transpose" and len(shape) > 1:
            perm = draw(st.permutations(range(len(shape))))
            steps.append(("transpose", (k,), perm))
            known.append(tuple(shape[d] for d in perm))
        elif kind == "flatten":
            steps.append(("flatten", (k,), None))
            known.append((int(np.prod(shape)),))
        elif kind == "matmul" and len(shape) > 1:  # x xᵀ: every value can be its own partner
            steps.append(("gram", (k,), None))
            known.append((*shape[:-1], shape[-2]))
        else:
            steps.append((draw(st.sampled_from(UNARY)), (k,), None))
            known.append(shape)
    return shapes, steps


def run(framework, inputs, steps):
    """The sum of everything the program computed."""
    values = list(inputs)
    for name, places, detail in steps:
        x = [values[k] for k in places]
        if name == "sum":
            y = x[0].sum(detail[0], keepdim=detail[1])
        elif name == "transpose":
            y = framework.transpose(x[0], detail) if framework is paddle else x[0].permute(*detail)
        elif name == "flatten":
            y = x[0].reshape([-1])
        elif name == "gram":
            n = x[0].ndim
            order = [*range(n - 2), n - 1, n - 2]
            turned = x[0].transpose(order) if framework is paddle else x[0].permute(*order)
            y = x[0] @ turned
        else:
            y = getattr(framework, name)(*x)
        values.append(small(y))
    total = values[0].sum()
    for value in values[1:]:
        total = total + value.sum()
    return total


@pytest.mark.sweep
@settings(max_examples=100, deadline=None, derandomize=True)
@given(programs(), st.integers(0, 2**16))
def test_values_and_gradients_are_pytorchs(program, seed):
    shapes, steps = program
    rng = np.random.default_rng(seed)
    arrays = [rng.uniform(0.1, 1.0, shape) * rng.choice([-1, 1], shape) for shape in shapes]
    ours = [paddle.to_tensor(a, "float64", stop_gradient=False) for a in arrays]
    theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
    y, t = run(paddle, ours, steps), run(torch, theirs, steps)
    assert y.item() == pytest.approx(t.item(), rel=1e-9, abs=1e-9)
    first = paddle.grad(y, ours, create_graph=True)
    expected = torch.autograd.grad(t, theirs, create_graph=True)
    for g, e in zip(first, expected, strict=True):
        np.testing.assert_allclose(g.numpy(), e.detach().numpy(), rtol=1e-8, atol=1e-9)
    energy = sum((g * g).sum() for g in first)
    their_energy = sum((g * g).sum() for g in expected)
    if not their_energy.requires_grad:  # a program of sums: its gradient is constant
        return
    second = paddle.grad(energy, ours, allow_unused=True)
    twice = torch.autograd.grad(their_energy, theirs, allow_unused=True)
    for g, e in zip(second, twice, strict=True):
        if e is not None:
            found = np.zeros(e.shape) if g is None else g.numpy()
            np.testing.assert_allclose(found, e.numpy(), rtol=1e-7, atol=1e-8)
