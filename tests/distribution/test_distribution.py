"""Distributions against torch (densities, entropies, divergences, gradients) and SciPy (draws)."""

import numpy as np
import pytest
import scipy.stats
import torch
import torch.distributions as TD

import minipaddle as paddle
from minipaddle import distribution as D

A = np.array([[0.3, -1.2, 2.0], [0.0, 0.7, -0.4]])
B = np.array([0.5, 1.5, 2.5])
P = np.array([0.2, 0.5, 0.9])
VALUES = np.array([[0.4, 1.0, 2.1], [0.1, 1.9, 0.3]])
WEIGHTS = np.array([[1.0, 2.0, 3.0], [0.5, 0.1, 0.4]])

CASES = {
    "Normal": ((A, B), (A + 1, B * 2)),
    "LogNormal": ((A, B), (A + 1, B * 2)),
    "Laplace": ((A, B), (A + 1, B * 2)),
    "Gumbel": ((A, B), None),
    "Cauchy": ((A, B), (A + 1, B * 2)),
    "Exponential": ((B,), (B * 3,)),
    "Uniform": ((A - 3, A + B), (A - 4, A + 2 * B)),
    "Bernoulli": ((P,), (P[::-1].copy(),)),
}


def ours(name, args, grad=False):
    tensors = [paddle.to_tensor(x, stop_gradient=not grad) for x in args]
    return tensors, getattr(D, name)(*tensors)


def theirs(name, args, grad=False):
    tensors = [torch.tensor(x, requires_grad=grad) for x in args]
    kind = getattr(torch.distributions, name)
    named = {"Bernoulli": {"probs": tensors[0]}}.get(name)
    options = {"validate_args": False}
    return tensors, kind(**named, **options) if named else kind(*tensors, **options)


def near(found, wanted, rtol=1e-9):
    np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), rtol, 1e-12)


QUANTITIES = {
    "log_prob": lambda d, value: d.log_prob(value),
    "entropy": lambda d, value: d.entropy(),
    "mean": lambda d, value: d.mean,
    "variance": lambda d, value: d.variance,
    "stddev": lambda d, value: d.stddev,
}


@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize("name", CASES)
def test_quantities_and_their_gradients(name, quantity):
    if name == "Cauchy" and quantity in ("mean", "variance", "stddev"):
        pytest.skip("Cauchy has none")
    values = {"Bernoulli": np.round(VALUES - 0.5) % 2, "Uniform": A - 0.2}.get(name, VALUES)
    mine, d = ours(name, CASES[name][0], grad=True)
    other, t = theirs(name, CASES[name][0], grad=True)
    found = QUANTITIES[quantity](d, paddle.to_tensor(values))
    wanted = QUANTITIES[quantity](t, torch.tensor(values))
    near(found, wanted.expand(found.shape))
    (found**2).sum().backward()
    (wanted.expand(found.shape) ** 2).sum().backward()
    for x, y in zip(mine, other, strict=True):
        if y.grad is not None:
            gradient = np.zeros(x.shape) if x.grad is None else x.grad.numpy()
            np.testing.assert_allclose(gradient, y.grad.numpy(), 1e-8, 1e-10)


@pytest.mark.parametrize("name", [name for name, (_, other) in CASES.items() if other])
def test_divergences_and_their_gradients(name):
    first, second = CASES[name]
    (mine, p), (_, q) = ours(name, first, grad=True), ours(name, second)
    (other, t), (_, u) = theirs(name, first, grad=True), theirs(name, second)
    near(p.kl_divergence(q), torch.distributions.kl_divergence(t, u))
    D.kl_divergence(p, q).sum().backward()
    torch.distributions.kl_divergence(t, u).sum().backward()
    for x, y in zip(mine, other, strict=True):
        np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), 1e-8, 1e-10)


SCIPY = {
    "Normal": lambda a, b: scipy.stats.norm(a, b),
    "LogNormal": lambda a, b: scipy.stats.lognorm(b, scale=np.exp(a)),
    "Laplace": lambda a, b: scipy.stats.laplace(a, b),
    "Gumbel": lambda a, b: scipy.stats.gumbel_r(a, b),
    "Cauchy": lambda a, b: scipy.stats.cauchy(a, b),
    "Exponential": lambda a, b: scipy.stats.expon(scale=1 / b),
    "Uniform": lambda a, b: scipy.stats.uniform(a, b - a),
}


@pytest.mark.parametrize("name", SCIPY)
@pytest.mark.parametrize("draw", ["sample", "rsample"])
def test_draws_are_distributed_so(name, draw):
    paddle.seed(3)
    args = (0.7,) if name == "Exponential" else (0.5, 1.5)
    x = getattr(getattr(D, name)(*args), draw)([4000])
    assert x.shape == [4000]
    assert x.dtype == paddle.float32
    assert scipy.stats.kstest(x.numpy(), SCIPY[name](args[0], args[-1]).cdf).pvalue > 0.01


@pytest.mark.parametrize("name", SCIPY)
def test_draws_are_differentiable(name):
    """x = x(parameters, noise): the derivative by finite differences, with the noise again."""
    args = [np.float64(0.6), np.float64(1.3)][: len(CASES[name][0])]

    def total(*args):
        paddle.seed(5)
        tensors, d = ours(name, [np.array(x) for x in args], grad=True)
        x = (d.rsample([6]) * paddle.arange(1, 7).astype("float64")).sum()
        return tensors, x

    tensors, x = total(*args)
    x.backward()
    for k, tensor in enumerate(tensors):
        up, down = ([*args[:k], args[k] + step, *args[k + 1 :]] for step in (1e-6, -1e-6))
        slope = (total(*up)[1].item() - total(*down)[1].item()) / 2e-6
        np.testing.assert_allclose(tensor.grad.item(), slope, 1e-6)


def test_draws_of_bernoulli():
    paddle.seed(1)
    x = D.Bernoulli(paddle.to_tensor(P)).sample([5000])
    assert set(np.unique(x.numpy())) == {0.0, 1.0}
    np.testing.assert_allclose(x.mean(0).numpy(), P, atol=0.03)
    soft = D.Bernoulli(paddle.to_tensor(P)).rsample([5000], temperature=0.01)
    np.testing.assert_allclose((soft > 0).astype("float64").mean(0).numpy(), P, atol=0.03)
    found = D.Bernoulli(0.3).cdf(paddle.to_tensor([-1.0, 0.0, 0.5, 1.0]))
    np.testing.assert_allclose(found.numpy(), scipy.stats.bernoulli(0.3).cdf([-1, 0, 0.5, 1]), 1e-6)


# ---- Categorical: Paddle 3.3.1 divides for `probs`, and exponentiates for the rest ---------------


def test_categorical():
    d = D.Categorical(paddle.to_tensor(WEIGHTS))
    t = torch.distributions.Categorical(probs=torch.tensor(WEIGHTS))
    soft = torch.distributions.Categorical(logits=torch.tensor(WEIGHTS))
    rows = torch.tensor([[0, 1, 2], [2, 1, 0]])
    found = d.log_prob(paddle.to_tensor(rows.numpy()))
    near(found, t.log_prob(rows.T).T)
    near(d.entropy(), soft.entropy())
    other = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 2.0]])
    u = torch.distributions.Categorical(logits=torch.tensor(other))
    kl = d.kl_divergence(D.Categorical(paddle.to_tensor(other)))
    near(kl, torch.distributions.kl_divergence(soft, u)[:, None])


def test_categories_of_one_row_and_of_each():
    """Measured with Paddle 3.3.1: a vector asks every row."""
    one, both = (D.Categorical(paddle.to_tensor(x)) for x in (WEIGHTS[0], WEIGHTS))
    asked = paddle.to_tensor([0, 2])
    np.testing.assert_allclose(one.probs(asked).numpy(), [1 / 6, 0.5])
    np.testing.assert_allclose(both.prob(asked).numpy(), [[1 / 6, 0.5], [0.5, 0.4]])
    assert one.batch_shape == ()
    assert both.sample([4]).shape == [4, 2]
    assert one.sample().shape == []
    paddle.seed(2)
    counts = np.bincount(one.sample([20000]).numpy()) / 20000
    np.testing.assert_allclose(counts, np.exp(WEIGHTS[0]) / np.exp(WEIGHTS[0]).sum(), atol=0.02)


def test_gradients_of_a_policy():
    """What a policy gradient needs: d log_prob / d scores."""
    scores, asked = torch.tensor(A, requires_grad=True), torch.tensor([2, 0])
    torch.distributions.Categorical(logits=scores).log_prob(asked).sum().backward()
    x = paddle.to_tensor(A, stop_gradient=False)
    policy = D.Categorical(paddle.nn.functional.softmax(x))
    policy.log_prob(paddle.to_tensor([[2], [0]])).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), scores.grad.numpy(), 1e-9, 1e-12)


def test_uniform_at_its_ends_and_outside():
    """Measured with Paddle 3.3.1: the ends are outside."""
    found = D.Uniform(0.0, 2.0).prob(paddle.to_tensor([-1.0, 0.0, 0.5, 2.0, 3.0]))
    assert found.tolist() == [0.0, 0.0, 0.5, 0.0, 0.0]
    assert D.kl_divergence(D.Uniform(0.0, 2.0), D.Uniform(1.0, 3.0)).item() == np.inf


# ---- the rest --------------------------------------------------------------------------------


def test_independent_sums_over_events():
    (_, d), (_, t) = ours("Normal", (A, B)), theirs("Normal", (A, B))
    mine, other = D.Independent(d, 1), torch.distributions.Independent(t, 1)
    near(mine.log_prob(paddle.to_tensor(VALUES)), other.log_prob(torch.tensor(VALUES)))
    near(mine.entropy(), other.entropy())
    assert (mine.batch_shape, mine.event_shape) == ((2,), (3,))
    assert mine.sample([5]).shape == mine.rsample([5]).shape == [5, 2, 3]
    assert mine.kl_divergence(mine).tolist() == [0.0, 0.0]
    near(mine.mean, t.mean)
    near(mine.variance, t.variance.expand(2, 3))


def test_gradients_flow_through_draws_where_they_do_in_paddle():
    for name, flows in {"Normal": True, "Uniform": True, "Laplace": False, "Gumbel": False}.items():
        _, d = ours(name, (B, B + 1), grad=True)
        assert d.sample([2]).stop_gradient is not flows
        assert not d.rsample([2]).stop_gradient


def test_parameters_of_any_kind():
    d = D.Normal([0.0, 1.0], np.float64(2.0))
    assert d.batch_shape == (2,)
    assert D.Normal(0, 1).sample([3]).shape == [3]
    assert D.Uniform(0.0, [1.0, 2.0]).sample([4]).shape == [4, 2]
    assert repr(d) == "Normal(batch_shape=(2,))"


def test_a_program_draws_and_judges():
    @paddle.jit.to_static
    def surprise(loc):
        d = D.Normal(loc, 2.0)
        return d.log_prob(d.rsample([3])).sum() + d.kl_divergence(D.Normal(0.0, 1.0)).sum()

    loc = paddle.to_tensor([0.5], stop_gradient=False)
    surprise(loc).backward()
    np.testing.assert_allclose(loc.grad.numpy(), [0.5], 1e-6)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: D.Normal(0.0, 1.0).kl_divergence(D.Uniform(0.0, 1.0)), "Normal from Normal"),
        (lambda: D.Distribution().entropy(), "Distribution has no entropy"),
        (lambda: D.Distribution().sample(), "no way to draw"),
        (lambda: D.Distribution().mean, "no mean"),
        (lambda: D.Distribution().variance, "no variance"),
        (lambda: D.Distribution().prob(1.0), "no density"),
        (lambda: D.Cauchy(0.0, 1.0).mean, "no mean"),
        (lambda: D.Independent(D.Normal(0.0, 1.0), 1), "rank of the batch"),
        (lambda: D.Gamma(1.0, 1.0), "an algorithm of their own"),
    ],
)
def test_what_there_is_not(call, says):
    with pytest.raises((NotImplementedError, ValueError, AttributeError), match=says):
        call()


# ---- transforms ------------------------------------------------------------------------------

TRANSFORMS = [
    (D.ExpTransform(), TD.ExpTransform()),
    (D.SigmoidTransform(), TD.SigmoidTransform()),
    (D.TanhTransform(), TD.TanhTransform()),
    (D.PowerTransform(2.5), TD.PowerTransform(torch.tensor(2.5))),
    (D.AffineTransform(1.0, -2.0), TD.AffineTransform(1.0, -2.0)),
    (
        D.ChainTransform([D.AffineTransform(1.0, 2.0), D.TanhTransform()]),
        TD.ComposeTransform([TD.AffineTransform(1.0, 2.0), TD.TanhTransform()]),
    ),
]


@pytest.mark.parametrize(("ours", "theirs"), TRANSFORMS, ids=lambda x: type(x).__name__)
def test_transforms_are_pytorchs(ours, theirs):
    x = np.array([0.1, 0.4, 0.7], "float32")
    a, b = paddle.to_tensor(x), torch.tensor(x)
    y, other = ours(a), theirs(b)
    np.testing.assert_allclose(y.numpy(), other.numpy(), rtol=1e-5)
    np.testing.assert_allclose(ours.inverse(y).numpy(), x, rtol=1e-4)
    change = theirs.log_abs_det_jacobian(b, other).expand(3).numpy()
    np.testing.assert_allclose(ours.forward_log_det_jacobian(a).numpy(), change, rtol=1e-4)
    np.testing.assert_allclose(ours.inverse_log_det_jacobian(y).numpy(), -change, rtol=1e-3)
    assert ours.forward_shape([2, 3]) == ours.inverse_shape([2, 3]) == (2, 3)


def test_a_transformed_distribution():
    ours = D.ExpTransform()(D.Normal([0.0, 1.0], [1.0, 2.0]))
    theirs = torch.distributions.LogNormal(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 2.0]))
    x = np.array([0.5, 3.0], "float32")
    wanted = theirs.log_prob(torch.tensor(x)).numpy()
    np.testing.assert_allclose(ours.log_prob(paddle.to_tensor(x)).numpy(), wanted, rtol=1e-5)
    assert ours.sample([4]).shape == ours.rsample([4]).shape == [4, 2]
    joint = D.TransformedDistribution(
        D.Independent(D.Normal([0.0, 1.0], [1.0, 2.0]), 1), [D.ExpTransform()]
    )
    np.testing.assert_allclose(joint.log_prob(paddle.to_tensor(x)).item(), wanted.sum(), rtol=1e-5)
    chain = D.TanhTransform()(D.ExpTransform())
    assert isinstance(chain, D.ChainTransform)
    assert [x.tolist() for x in D.AbsTransform().inverse(paddle.ones([1]))] == [[-1.0], [1.0]]
    with pytest.raises(TypeError, match="ExpTransform was given 3"):
        D.ExpTransform().forward(3)
    with pytest.raises(NotImplementedError, match="Transform does not define this"):
        D.Transform().forward(paddle.ones([1]))
