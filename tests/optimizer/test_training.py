"""Small networks trained for a few steps beside PyTorch, from the same weights."""

import numpy as np
import pytest
import torch

import minipaddle as paddle

pytestmark = pytest.mark.sweep(one_in=4)

RNG = np.random.RandomState(5)


def mlp():
    return paddle.nn.Sequential(
        paddle.nn.Linear(64, 32), paddle.nn.ReLU(), paddle.nn.Linear(32, 32), paddle.nn.Tanh(),
        paddle.nn.Linear(32, 10),
    )  # fmt: skip


def mlp_torch():
    return torch.nn.Sequential(
        torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 32), torch.nn.Tanh(),
        torch.nn.Linear(32, 10),
    )  # fmt: skip


def convolutions():
    return paddle.nn.Sequential(
        paddle.nn.Conv2D(1, 4, 3, padding=1, bias_attr=False),
        paddle.nn.BatchNorm2D(4), paddle.nn.ReLU(),
        paddle.nn.MaxPool2D(2), paddle.nn.Flatten(), paddle.nn.Linear(64, 10),
    )  # fmt: skip


def convolutions_torch():
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3, padding=1, bias=False),
        torch.nn.BatchNorm2d(4), torch.nn.ReLU(),
        torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(64, 10),
    )  # fmt: skip


def copied(source, target) -> None:
    """Paddle's Linear keeps [in, out], PyTorch's [out, in]."""
    for p, q in zip([p for p in source.parameters() if p.trainable], target.parameters()):
        value = torch.tensor(p.numpy())
        q.data = value.T.clone() if value.ndim == 2 else value


@pytest.mark.parametrize(
    ("ours", "theirs", "shape"),
    [(mlp, mlp_torch, (64,)), (convolutions, convolutions_torch, (1, 8, 8))],
    ids=["mlp", "convolutions"],
)
@pytest.mark.parametrize(
    ("make", "make_torch"),
    [
        (
            lambda ps: paddle.optimizer.Momentum(0.1, 0.9, ps, weight_decay=1e-3),
            lambda qs: torch.optim.SGD(qs, 0.1, momentum=0.9, weight_decay=1e-3),
        ),
        (
            lambda ps: paddle.optimizer.AdamW(1e-2, parameters=ps, weight_decay=0.1),
            lambda qs: torch.optim.AdamW(qs, 1e-2, weight_decay=0.1),
        ),
    ],
    ids=["momentum", "adamw"],
)
def test_training_beside_torch(ours, theirs, shape, make, make_torch):
    paddle.seed(0)
    net, other = ours(), theirs()
    copied(net, other)
    optimizer, other_optimizer = make(net.parameters()), make_torch(other.parameters())
    for _ in range(10):
        x, y = RNG.randn(16, *shape).astype("float32"), RNG.randint(0, 10, 16)
        loss = paddle.nn.functional.cross_entropy(net(paddle.to_tensor(x)), paddle.to_tensor(y))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        other_optimizer.zero_grad()
        other_loss = torch.nn.functional.cross_entropy(other(torch.tensor(x)), torch.tensor(y))
        other_loss.backward()
        other_optimizer.step()
        assert loss.item() == pytest.approx(other_loss.item(), rel=2e-3)
    for p, q in zip([p for p in net.parameters() if p.trainable], other.parameters()):
        q = q.detach().numpy()
        np.testing.assert_allclose(p.numpy(), q.T if q.ndim == 2 else q, atol=5e-3)
