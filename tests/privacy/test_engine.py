"""Private training: against a loop of clipped samples, on ranks, within a budget."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import nn
from minipaddle.distributed import spawn
from minipaddle.privacy import BudgetError, PrivacyEngine
from tests.privacy.networks import NETS, batch, loop

F = nn.functional
X, Y = batch("mlp", 60)
BOUND = 0.7


def prepare(net, *, rule="SGD", lr=0.3, noise=0.0, x=X, **more):
    """The engine, and network, optimizer and loader made private."""
    optimizer = getattr(paddle.optimizer, rule)(lr, parameters=net.parameters())
    data = paddle.io.TensorDataset([paddle.to_tensor(x), paddle.to_tensor(Y)])
    engine = PrivacyEngine(accountant="rdp", seed=3)
    return engine, *engine.make_private(
        module=net, optimizer=optimizer, data_loader=paddle.io.DataLoader(data, batch_size=20),
        noise_multiplier=noise, max_grad_norm=BOUND, **more,
    )  # fmt: skip


def train(*, backend=None, reduction="mean", epochs=2, **more):
    """The weights after some epochs; in eager mode without a backend."""
    paddle.seed(0)
    net = NETS["mlp"]()
    _, private, optimizer, loader = prepare(net, loss_reduction=reduction, **more)

    def step(x, y):
        loss = F.cross_entropy(private(x), y, reduction=reduction)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    step = step if backend is None else paddle.jit.to_static(step, backend=backend)
    for _ in range(epochs):
        for x, y in loader:
            step(x, y)
    return [p.numpy() for p in net.parameters()]


def expected(rule, epochs=2):
    """The same weights, by a loop over the samples that the stated generator draws."""
    paddle.seed(0)
    net = NETS["mlp"]()
    optimizer = getattr(paddle.optimizer, rule)(0.3, parameters=net.parameters())
    random = np.random.default_rng([3, 0])
    for _ in range(3 * epochs):
        chosen = np.flatnonzero(random.random(60) < 1 / 3)
        sums, _ = loop(net, X[chosen], Y[chosen], BOUND)
        for p, g in zip(net.parameters(), sums):
            p.grad = paddle.to_tensor(g / 20)
        optimizer.step()
    return [p.numpy() for p in net.parameters()]


@pytest.mark.parametrize("rule", ["SGD", "Adam"])
@pytest.mark.parametrize(
    "how",
    [{}, {"backend": "interpreter"}, {"backend": "native"}, {"reduction": "sum"},
     {"max_physical_batch_size": 8}, {"max_physical_batch_size": 8, "backend": "interpreter"}],
)  # fmt: skip
def test_training_is_that_of_the_loop(how, rule):
    """With 8 rows a sample of 20 comes in pieces, and none is cut."""
    for ours, theirs in zip(train(rule=rule, **how), expected(rule), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-5)


def test_eager_and_captured_steps_draw_the_same_noise():
    for ours, theirs in zip(train(noise=1.0), train(noise=1.0, backend="interpreter"), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("backend", [None, "interpreter"])
def test_the_noise_has_its_size(backend):
    """Of no gradient at all what is left is noise, over the expected batch size."""
    net = nn.Linear(5, 400)
    _, private, optimizer, loader = prepare(net, lr=1.0, noise=2.0)
    before = net.weight.numpy()

    def step(x):
        (private(x) * 0.0).mean().backward()
        optimizer.step()

    step = step if backend is None else paddle.jit.to_static(step, backend=backend)
    steps = 0
    for x, _ in loader:
        step(x)
        steps += 1
    noise = (net.weight.numpy() - before) * 20 / BOUND / np.sqrt(steps)
    assert noise.std() == pytest.approx(2.0, rel=0.1)
    assert abs(noise.mean()) < 0.2


def test_a_secret_seed_by_default():
    assert PrivacyEngine().seed != PrivacyEngine().seed


# ---- several ranks -------------------------------------------------------------------------------


def train_ranks(backend=None, noise=0.0, lr=0.3, **more):
    """For each rank the weights before and after, and the samples of each piece."""

    def rank():
        paddle.seed(paddle.distributed.get_rank())
        net = NETS["mlp"]()
        _, private, optimizer, loader = prepare(net, noise=noise, lr=lr, **more)
        first, seen = [p.numpy() for p in net.parameters()], []

        def step(x, y):
            F.cross_entropy(private(x), y).backward()
            optimizer.step()

        step = step if backend is None else paddle.jit.to_static(step, backend=backend)
        for x, y in loader:
            n = int(private.batch.here.sum())
            seen.append((x.numpy()[:n], y.numpy()[:n], bool(private.batch.skip)))
            step(x, y)
        return first, [p.numpy() for p in net.parameters()], seen

    return spawn(rank, nprocs=2).results


@pytest.mark.parametrize("how", [{}, {"backend": "interpreter", "max_physical_batch_size": 4}])
def test_ranks_add_up(how):
    (first, ours, seen), (_, others, more) = train_ranks(**how)
    net = NETS["mlp"]()
    for p, value in zip(net.parameters(), first):
        p.set_value(value)
    optimizer = paddle.optimizer.SGD(0.3, parameters=net.parameters())
    kept = []
    for own, other in zip(seen, more, strict=True):
        kept += [own, other]
        if not own[2]:
            x, y = (np.concatenate([each[k] for each in kept]) for k in (0, 1))
            for p, g in zip(net.parameters(), loop(net, x, y, BOUND)[0]):
                p.grad = paddle.to_tensor(g / 20)
            optimizer.step()
            kept = []
    for a, b, p in zip(ours, others, net.parameters(), strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(a, p.numpy(), rtol=1e-3, atol=1e-5)


def test_ranks_add_noise_once():
    (first, ours, _), (_, others, _) = train_ranks(noise=1e3, lr=1.0)
    np.testing.assert_array_equal(ours[0], others[0])
    moved = np.concatenate([(a - b).ravel() for a, b in zip(ours, first)])
    assert moved.std() * 20 / BOUND / 1e3 / np.sqrt(3) == pytest.approx(1.0, rel=0.25)


# ---- the budget, and what is refused -------------------------------------------------------------


def test_a_budget_stops_training():
    net = NETS["mlp"]()
    engine = PrivacyEngine(accountant="rdp", seed=3)
    data = paddle.io.TensorDataset([paddle.to_tensor(X), paddle.to_tensor(Y)])
    _, optimizer, loader = engine.make_private_with_epsilon(
        module=net, optimizer=paddle.optimizer.SGD(0.1, parameters=net.parameters()),
        data_loader=paddle.io.DataLoader(data, batch_size=20), target_epsilon=4.0,
        target_delta=1e-3, epochs=2, max_grad_norm=1.0,
    )  # fmt: skip
    for _ in range(2):
        for _ in loader:
            pass
    assert 3.9 < engine.get_epsilon(1e-3) <= 4.0
    with pytest.raises(BudgetError, match=r"(?s)would use epsilon 4.*expected: at most 4"):
        next(iter(loader))
    assert engine.get_epsilon(1e-3) <= 4.0
    assert optimizer.get_lr() == pytest.approx(0.1)


def test_each_sample_is_drawn_with_the_rate():
    _, _, _, loader = prepare(NETS["mlp"](), x=np.arange(60.0).astype("float32"))
    counts, sizes = np.zeros(60), []
    for _ in range(100):
        for x, _ in loader:
            real = x.numpy()[loader.batch.here.numpy() == 1]
            counts[real.astype(int)] += 1
            sizes.append(len(real))
    assert counts.mean() == pytest.approx(100, rel=0.05)
    assert counts.std() == pytest.approx(np.sqrt(300 * 2 / 9), rel=0.3)
    assert np.std(sizes) == pytest.approx(np.sqrt(60 * 2 / 9), rel=0.2)


def test_samples_count_once():
    net = NETS["mlp"]()
    _, private, optimizer, loader = prepare(net)
    with pytest.raises(RuntimeError, match="before its loader gave one"):
        private(paddle.ones([len(loader.batch.here), 5]))
    batches = iter(loader)
    x, y = next(batches)
    with pytest.raises(RuntimeError, match="without a private call"):
        optimizer.step()
    loss = F.cross_entropy(private(x), y)
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="a second time for one batch"):
        loss.backward()
    with pytest.raises(RuntimeError, match="a second time for one batch"):
        private(x)
    with paddle.no_grad():
        assert private(x).shape == [len(x), 5]
    private.eval()
    assert private(x[:2]).shape == [2, 5]


def test_gradients_of_a_program_without_a_step_are_refused():
    _, private, optimizer, loader = prepare(NETS["mlp"]())
    x, y = next(iter(loader))

    @paddle.jit.to_static
    def backward(x, y):
        F.cross_entropy(private(x), y).backward()

    backward(x, y)
    with pytest.raises(RuntimeError, match="without a private call"):
        optimizer.step()


def test_a_run_for_the_same_batch_changes_nothing():
    net = NETS["mlp"]()
    _, private, optimizer, loader = prepare(net)
    x, y = next(iter(loader))

    @paddle.jit.to_static
    def step(x, y):
        F.cross_entropy(private(x), y).backward()
        optimizer.step()

    step(x, y)
    once = net[0].weight.numpy()
    step(x, y)
    np.testing.assert_array_equal(net[0].weight.numpy(), once)


def test_several_results_are_for_captured_steps():
    class Pair(nn.Layer):
        def __init__(self):
            super().__init__()
            self.net = NETS["mlp"]()

        def forward(self, x):
            return self.net(x), x

    _, private, optimizer, loader = prepare(Pair())
    x, y = next(iter(loader))
    with pytest.raises(NotImplementedError, match="several results, in eager mode"):
        private(x)

    @paddle.jit.to_static
    def step(x, y):
        F.cross_entropy(private(x)[0], y).backward()
        optimizer.step()

    before = private.parameters()[0].numpy()
    step(x, y)
    assert (private.parameters()[0].numpy() != before).any()


def test_what_is_refused():
    net = NETS["mlp"]()
    optimizer = paddle.optimizer.SGD(0.1, parameters=net.parameters())
    how = {"data_loader": paddle.io.DataLoader([1, 2]), "noise_multiplier": 1, "max_grad_norm": 1}
    with pytest.raises(ValueError, match="parameters that the network has not"):
        PrivacyEngine().make_private(module=nn.Linear(1, 1), optimizer=optimizer, **how)
    with pytest.raises(ValueError, match="loss_reduction='max'"):
        prepare(net, loss_reduction="max")
    with pytest.raises(ValueError, match="'rdp' or 'prv'"):
        PrivacyEngine(accountant="moments")
