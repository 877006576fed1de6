"""Optimizers against PyTorch's, in double precision, on a small nonlinear problem."""

import numpy as np
import pytest
import torch

import minipaddle as paddle

F = paddle.nn.functional
RNG = np.random.RandomState(7)
X, Y = RNG.randn(8, 5), RNG.randn(8, 2)
START = [RNG.randn(5, 4), RNG.randn(4), RNG.randn(4, 2)]

CASES = {  # ours, theirs; the two agree where the formulas do
    "SGD": (
        ("SGD", {"learning_rate": 0.05, "weight_decay": 0.1}),
        ("SGD", {"lr": 0.05, "weight_decay": 0.1}),
    ),
    "Momentum": (
        ("Momentum", {"learning_rate": 0.05, "momentum": 0.8, "weight_decay": 0.1}),
        ("SGD", {"lr": 0.05, "momentum": 0.8, "weight_decay": 0.1}),
    ),
    "Nesterov": (
        ("Momentum", {"learning_rate": 0.05, "momentum": 0.8, "use_nesterov": True}),
        ("SGD", {"lr": 0.05, "momentum": 0.8, "nesterov": True}),
    ),
    "Adam": (("Adam", {"learning_rate": 0.1}), ("Adam", {"lr": 0.1})),
    "AMSGrad": (
        ("Adam", {"learning_rate": 0.1, "beta2": 0.5, "amsgrad": True}),
        ("Adam", {"lr": 0.1, "betas": (0.9, 0.5), "amsgrad": True}),
    ),
    "AdamW": (
        ("AdamW", {"learning_rate": 0.1, "weight_decay": 0.3}),
        ("AdamW", {"lr": 0.1, "weight_decay": 0.3}),
    ),
    "Adagrad": (
        ("Adagrad", {"learning_rate": 0.1, "epsilon": 1e-10}),
        ("Adagrad", {"lr": 0.1, "eps": 1e-10}),
    ),
    "Adadelta": (
        ("Adadelta", {"learning_rate": 1.0, "rho": 0.9}),
        ("Adadelta", {"lr": 1.0, "rho": 0.9, "eps": 1e-6}),
    ),
    "Adamax": (
        ("Adamax", {"learning_rate": 0.1, "epsilon": 1e-30}),
        ("Adamax", {"lr": 0.1, "eps": 1e-30}),
    ),
    "NAdam": (("NAdam", {"learning_rate": 0.1}), ("NAdam", {"lr": 0.1})),
    "RAdam": (
        ("RAdam", {"learning_rate": 0.1, "beta2": 0.99}),
        ("RAdam", {"lr": 0.1, "betas": (0.9, 0.99)}),
    ),
    "Rprop": (
        ("Rprop", {"learning_rate": 0.1, "learning_rate_range": (1e-6, 50.0)}),
        ("Rprop", {"lr": 0.1, "step_sizes": (1e-6, 50.0)}),
    ),
}


def ours(kind, args, steps):
    w, b, v = ps = [paddle.Parameter(a.copy()) for a in START]
    optimizer = getattr(paddle.optimizer, kind)(parameters=ps, **args)
    for _ in range(steps):
        loss = ((paddle.tanh(paddle.to_tensor(X) @ w + b) @ v - paddle.to_tensor(Y)) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
    return [p.numpy() for p in ps]


def theirs(kind, args, steps):
    w, b, v = ps = [torch.nn.Parameter(torch.tensor(a)) for a in START]
    optimizer = getattr(torch.optim, kind)(ps, **args)
    for _ in range(steps):
        loss = ((torch.tanh(torch.tensor(X) @ w + b) @ v - torch.tensor(Y)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [p.detach().numpy() for p in ps]


@pytest.mark.parametrize("name", CASES)
def test_twelve_steps_agree(name):
    mine, other = CASES[name]
    for a, b in zip(ours(*mine, 12), theirs(*other, 12)):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("clip", ["norm", "value"])
def test_clipping_agrees(clip):
    ps = [paddle.Parameter(a.copy()) for a in START]
    make = {"norm": paddle.nn.ClipGradByGlobalNorm(0.3), "value": paddle.nn.ClipGradByValue(0.1)}
    optimizer = paddle.optimizer.SGD(0.5, parameters=ps, grad_clip=make[clip])
    qs = [torch.nn.Parameter(torch.tensor(a)) for a in START]
    other = torch.optim.SGD(qs, lr=0.5)
    for _ in range(5):
        sum((p**3).sum() for p in ps).backward()
        optimizer.step()
        optimizer.clear_grad()
        other.zero_grad()
        sum((q**3).sum() for q in qs).backward()
        if clip == "norm":
            torch.nn.utils.clip_grad_norm_(qs, 0.3)
        else:
            torch.nn.utils.clip_grad_value_(qs, 0.1)
        other.step()
    for p, q in zip(ps, qs):
        np.testing.assert_allclose(p.numpy(), q.detach().numpy(), rtol=1e-6)
