"""L-BFGS: step by step beside PyTorch's, and on a valley that is hard to walk."""

import numpy as np
import pytest
import torch

import minipaddle as paddle

RNG = np.random.RandomState(0)
A, B = RNG.randn(12, 4), RNG.randn(12)


def minimised(steps, **options):
    """The parameters after some steps on a logistic loss; ours and PyTorch's."""
    w, b = paddle.Parameter(np.zeros(4)), paddle.Parameter(np.zeros(1))
    ours = paddle.optimizer.LBFGS(parameters=[w, b], **options)

    def closure():
        ours.clear_grad()
        loss = (
            paddle.nn.functional.softplus(-paddle.to_tensor(B) * (paddle.to_tensor(A) @ w + b))
        ).mean()
        (loss + 0.05 * (w * w).sum()).backward()
        return loss + 0.05 * (w * w).sum()

    v, c = (
        torch.zeros(4, dtype=torch.float64, requires_grad=True),
        torch.zeros(1, dtype=torch.float64, requires_grad=True),
    )
    names = {"learning_rate": "lr"}
    theirs = torch.optim.LBFGS([v, c], **{names.get(k, k): x for k, x in options.items()})

    def torch_closure():
        theirs.zero_grad()
        loss = torch.nn.functional.softplus(-torch.tensor(B) * (torch.tensor(A) @ v + c)).mean()
        loss = loss + 0.05 * (v * v).sum()
        loss.backward()
        return loss

    for _ in range(steps):
        a, b_ = ours.step(closure), theirs.step(torch_closure)
        assert float(a) == pytest.approx(b_.item(), rel=1e-6)
    return np.concatenate([w.numpy(), b.numpy()]), torch.cat([v, c]).detach().numpy()


@pytest.mark.parametrize(
    "options",
    [
        {"learning_rate": 0.5, "max_iter": 4},
        {"learning_rate": 1.0, "max_iter": 3, "history_size": 2},
        {"learning_rate": 1.0, "max_iter": 1},
    ],
)
def test_the_steps_are_torchs(options):
    ours, theirs = minimised(5, **options)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-8)


def valley(dtype, **options):
    """Rosenbrock's function from (-1.2, 1): its minimum is at (1, 1)."""
    w = paddle.Parameter(np.array([-1.2, 1.0], dtype))
    optimizer = paddle.optimizer.LBFGS(parameters=[w], line_search_fn="strong_wolfe", **options)

    def closure():
        optimizer.clear_grad()
        loss = (1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2
        loss.backward()
        return loss

    return w, optimizer, closure


def test_the_line_search_walks_a_bent_valley():
    w, optimizer, closure = valley("float64", max_iter=100, tolerance_change=1e-14)
    start = optimizer.step(closure)
    assert start.item() == pytest.approx(24.2, rel=1e-6)
    np.testing.assert_allclose(w.numpy(), [1, 1], atol=1e-5)
    at_rest = w.numpy().copy()
    optimizer.step(closure)
    np.testing.assert_allclose(w.numpy(), at_rest, atol=1e-6)


def test_it_goes_on_where_it_was_saved(tmp_path):
    whole, optimizer, closure = valley("float32", max_iter=3)
    for _ in range(4):
        optimizer.step(closure)
    w, optimizer, closure = valley("float32", max_iter=3)
    for _ in range(2):
        optimizer.step(closure)
    paddle.save({"w": w, "o": optimizer.state_dict()}, tmp_path / "state")
    again, optimizer, closure = valley("float32", max_iter=3)
    state = paddle.load(tmp_path / "state")
    again.set_value(state["w"])
    optimizer.set_state_dict(state["o"])
    for _ in range(2):
        optimizer.step(closure)
    assert again.tolist() == whole.tolist()
    with pytest.raises(ValueError, match="no state dict of LBFGS"):
        optimizer.set_state_dict({})


def test_a_parameter_without_a_gradient_stays():
    w, still = paddle.Parameter(np.ones(2)), paddle.Parameter(np.ones(3))
    optimizer = paddle.optimizer.LBFGS(parameters=[w, still], weight_decay=0.5)

    def closure():
        optimizer.clear_grad(set_to_zero=False)
        loss = ((w - 3.0) ** 2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert still.tolist() == [1.0] * 3
    np.testing.assert_allclose(w.numpy(), 2.4, atol=1e-5)  # 2(w - 3) + w/2 = 0


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda w: paddle.optimizer.LBFGS(parameters=[w]).step(), TypeError, "closure"),
        (
            lambda w: paddle.optimizer.LBFGS(parameters=[w], line_search_fn="x"),
            ValueError,
            "strong_wolfe",
        ),
        (
            lambda w: paddle.optimizer.LBFGS(
                parameters=[w, paddle.Parameter(np.ones(1, "float16"))]
            ),
            ValueError,
            "one dtype",
        ),
    ],
)
def test_what_is_refused_is_explained(make, error, says):
    with pytest.raises(error, match=says):
        make(paddle.Parameter(np.ones(2)))
