"""Masks: which weights go, as PyTorch and exhaustive search have it, and zeros that stay."""

from copy import deepcopy
from itertools import product

import numpy as np
import pytest
import torch
from torch.nn.utils import prune as torch_prune

import minipaddle as paddle
from minipaddle import nn, slim
from minipaddle.incubate import asp
from minipaddle.optimizer import update
from minipaddle.slim import masks
from tests.executors.hot import at_once, compiles

RNG = np.random.default_rng(0)


def perceptron():
    paddle.seed(2)
    return nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 4))


@pytest.fixture(autouse=True)
def nothing_excluded():
    yield
    asp.reset_excluded_layers()
    for layer in [*asp.SUPPORTED][2:]:
        del asp.SUPPORTED[layer]


# ---- which weights go ------------------------------------------------------------------------


def torch_masks(net, ratio, together):
    """The masks of PyTorch for the same weights."""
    layers = [torch.nn.Linear(*layer.weight.shape[::-1]) for layer in (net[0], net[2])]
    for theirs, ours in zip(layers, (net[0], net[2])):
        theirs.weight = torch.nn.Parameter(torch.tensor(ours.weight.numpy()))
    if together:
        pairs = [(layer, "weight") for layer in layers]
        torch_prune.global_unstructured(pairs, torch_prune.L1Unstructured, amount=ratio)
    else:
        for layer in layers:
            torch_prune.l1_unstructured(layer, "weight", amount=ratio)
    return [layer.weight_mask.numpy() for layer in layers]


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("ratio", [0.0, 0.3, 0.9])
def test_magnitudes_as_torch(ratio, together):
    net = perceptron()
    expected = torch_masks(net, ratio, together)
    before = [net[k].weight.numpy().copy() for k in (0, 2)]
    slim.UnstructuredPruner(net, "ratio", ratio=ratio, local_sparsity=not together).step()
    for k, mask, weight in zip((0, 2), expected, before):
        assert np.array_equal(net[k].weight.numpy(), weight * mask)


def test_a_threshold_and_what_is_skipped():
    net = perceptron()
    first = net[0].weight.numpy().copy()
    skip = lambda model: {model[2].weight.name}
    slim.UnstructuredPruner(net, "threshold", threshold=0.2, skip_params_func=skip).step()
    assert np.array_equal(net[0].weight.numpy(), np.where(abs(first) < 0.2, 0, first))
    assert (net[2].weight.numpy() != 0).all()
    found = (abs(first) < 0.2).sum() + (net[0].bias.numpy() == 0).sum()
    found += (net[2].bias.numpy() == 0).sum()
    assert slim.UnstructuredPruner.total_sparse(net) == found / sum(
        p.size for p in net.parameters()
    )


def best_line(line, n):
    """The best mask of a line, of all there are."""
    every = [m for m in product((0, 1), repeat=len(line)) if sum(m) == n]
    return max(every, key=lambda m: (abs(line) * m).sum())


def test_n_of_m_in_a_line_is_the_best_there_is():
    matrix = RNG.normal(size=(3, 12)).astype("float32")
    for n, m in ((2, 4), (1, 4), (1, 3)):
        lines = matrix.reshape(-1, m)
        expected = np.array([best_line(line, n) for line in lines]).reshape(matrix.shape)
        assert np.array_equal(masks.mask_1d(matrix, n, m), expected)


def test_2d_best_is_the_best_of_all_65536():
    every = np.array([*product((0, 1), repeat=16)]).reshape(-1, 4, 4)
    every = every[((every.sum(1) == 2) & (every.sum(2) == 2)).all(1)]
    block = RNG.normal(size=(4, 8)).astype("float32")
    mask = masks.mask_2d_best(block, 2, 4)
    for part, found in ((block[:, :4], mask[:, :4]), (block[:, 4:], mask[:, 4:])):
        assert found.sum(0).tolist() == found.sum(1).tolist() == [2] * 4
        assert np.isclose((abs(part) * found).sum(), (abs(part) * every).sum((1, 2)).max())


def test_2d_greedy_takes_the_largest_that_still_fit():
    block = abs(RNG.normal(size=(4, 4))).astype("float32")
    mask = masks.mask_2d_greedy(block, 2, 4)
    assert max(*mask.sum(0), *mask.sum(1)) <= 2
    for i, j in np.argwhere(mask == 0):  # larger ones fill its row or its column
        larger = (block > block[i, j]) * mask
        assert larger[i].sum() == 2 or larger[:, j].sum() == 2


@pytest.mark.parametrize("algorithm", sorted(masks.ALGORITHMS))
@pytest.mark.parametrize("shape", [(8, 5), (6, 3), (5, 8, 3, 3), (4, 6, 1, 1)])
def test_groups_run_along_what_is_summed_over(shape, algorithm):
    weight = RNG.normal(size=shape).astype("float32")
    mask = masks.mask_n_of_m(weight, 2, 4, algorithm)
    lines = np.moveaxis(mask, 0 if len(shape) == 2 else 1, -1)
    lines = lines[..., : lines.shape[-1] // 4 * 4].reshape(-1, 4)
    assert mask.shape == shape
    assert lines.max() == 1
    assert (lines.sum(1) <= 2).all()
    if algorithm == "mask_1d":
        assert (lines.sum(1) == 2).all()


def test_the_gradual_ratio_is_cubic():
    ratios = [masks.gradual_ratio(k, 10, 40, 0.2, 0.9) for k in (0, 9, 10, 30, 50, 99)]
    assert np.allclose(ratios, [0, 0, 0.2, 0.9 - 0.7 / 8, 0.9, 0.9])


def test_the_gradual_pruner_steps_as_paddleslim():
    how = {"stable_iterations": 20, "pruning_iterations": 100, "tunning_iterations": 20,
           "resume_iteration": 0, "pruning_steps": 5, "initial_ratio": 0.15}  # fmt: skip
    net, found = perceptron(), []
    pruner = slim.GMPUnstructuredPruner(net, ratio=0.75, configs=how)
    for _ in range(140):
        pruner.step()
        found.append(pruner.ratio)
    # a stack of ratios, one for each 20 iterations
    steps = [0.0, *(((k / 5 - 1) ** 3 + 1) * (0.75 - 0.15) + 0.15 for k in range(5)), 0.75]
    assert np.allclose(found, np.repeat(steps, 20))
    weights = [net[k].weight.numpy() for k in (0, 2)]
    assert sum((w == 0).sum() for w in weights) == round(0.75 * sum(w.size for w in weights))


# ---- movement --------------------------------------------------------------------------------


@pytest.mark.parametrize("captured", [False, True])
def test_movement_by_hand(captured):
    """Scores from gradients; what was set to zero keeps its value aside, and may come back."""
    net = nn.Linear(4, 4, bias_attr=False)
    w = net.weight.numpy().astype("float64")
    x = RNG.normal(size=(6, 5, 4)).astype("float32")
    y = RNG.normal(size=(6, 5, 4)).astype("float32")
    pruner = slim.MovementPruner(net, 0.5, {"pruning_iterations": 1, "pruning_steps": 1})
    sgd = paddle.optimizer.SGD(0.3, parameters=net.parameters())

    def train(x, y):
        (net(x) - y).square().mean().backward()
        pruner.accumulate()
        sgd.step()
        sgd.clear_grad()

    run = paddle.jit.to_static(train) if captured else train
    score, mask, returned = np.zeros_like(w), np.ones_like(w), False
    pruner.ratio_at = lambda k: 0.5 + 1e-9 * k  # a new mask in each step
    for k in range(6):
        shown = w * mask
        g = x[k].T @ (x[k] @ shown - y[k]) * 2 / 20
        score -= w * g
        w -= 0.3 * g * mask  # what is zero does not move
        before, mask = mask, np.ones_like(w)
        mask.ravel()[score.ravel().argsort()[:8]] = 0
        returned |= bool((mask > before).any())
        run(paddle.to_tensor(x[k]), paddle.to_tensor(y[k]))
        pruner.step()
        assert np.allclose(net.weight.numpy(), w * mask, atol=1e-5)
    assert returned


# ---- zeros stay ------------------------------------------------------------------------------

OPTIMIZERS = {
    "SGD": lambda ps, **how: paddle.optimizer.SGD(0.1, parameters=ps, **how),
    "Momentum": lambda ps, **how: paddle.optimizer.Momentum(0.1, parameters=ps, **how),
    "AdamW": lambda ps, **how: paddle.optimizer.AdamW(0.1, parameters=ps, **how),
}


def train(net, optimizer, steps, captured=False, backend="interpreter", scaler=None):
    """Some steps; the losses."""
    x = paddle.to_tensor(np.random.default_rng(1).normal(size=(6, 8)).astype("float32"))

    def step(x):
        loss = net(x.astype(net[0].weight.dtype)).astype("float32").square().mean()
        if scaler is None:
            loss.backward()
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        optimizer.clear_grad()
        return loss

    run = paddle.jit.to_static(step, backend=backend) if captured else step
    return [run(x).item() for _ in range(steps)]


def density(net):
    return [asp.calculate_density(net[k].weight.numpy()) for k in (0, 2)]


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("how", ["eager", "captured", "native"])
def test_zeros_stay_and_the_rest_moves_as_by_hand(kind, how):
    """Oracle: the plain optimizer, and a product with the mask after each of its steps."""
    nets = [perceptron(), perceptron()]
    plain, kept = (OPTIMIZERS[kind](net.parameters()) for net in nets)
    made = [asp.prune_model(net) for net in nets]
    kept = asp.decorate(kept)
    others = [
        losses for _ in range(4) for losses in (train(nets[0], plain, 1), renew(nets[0], made[0]))
    ]
    losses = train(nets[1], kept, 4, how != "eager", "native" if how == "native" else "interpreter")
    assert np.allclose(losses, [x for pair in others if pair for x in pair], rtol=1e-4)
    for a, b in zip(nets[0].parameters(), nets[1].parameters()):
        assert np.allclose(a.numpy(), b.numpy(), atol=2e-5)
    assert density(nets[1]) == [0.5, 0.5]


def renew(net, made):
    for layer, mask in zip((net[0], net[2]), made.values()):
        layer.weight.set_value(layer.weight * mask)


@compiles
def test_a_step_in_c_keeps_zeros():
    update.UPDATES.clear()
    net = perceptron()
    adam = asp.decorate(paddle.optimizer.Adam(0.1, parameters=net.parameters()))
    asp.prune_model(net)
    with at_once():
        train(net, adam, 6)
    (served,) = update.UPDATES[adam]
    assert served.executable is not None
    assert density(net) == [0.5, 0.5]


def test_masks_may_come_late_and_change():
    """The optimizer has made steps, plain and decorated; captured steps see a new mask, too."""
    net = perceptron()
    adam = paddle.optimizer.Adam(0.05, parameters=net.parameters())
    train(net, adam, 2)
    moment = next(iter(adam._states.values())).states["moment1"]
    assert asp.decorate(asp.decorate(adam)) is adam
    assert next(iter(adam._states.values())).states["moment1"] is moment
    train(net, adam, 1)
    assert density(net) == [1, 1]
    run = lambda: train(net, adam, 2, captured=True)
    run()
    for n in (3, 2, 1):
        asp.prune_model(net, n=n)
        run()
        assert density(net) == [n / 4, n / 4]


def test_master_weights_and_a_step_left_out():
    net = perceptron()
    adam = paddle.optimizer.Adam(0.1, parameters=net.parameters(), multi_precision=True)
    net, adam = paddle.amp.decorate(net, adam, level="O2", dtype="float16")
    adam = asp.decorate(adam)
    asp.prune_model(net)
    scaler = paddle.amp.GradScaler(init_loss_scaling=2.0**18)  # the first steps overflow
    before = net[0].weight.numpy().copy()
    train(net, adam, 1, captured=True, scaler=scaler)
    assert np.array_equal(net[0].weight.numpy(), before)
    train(net, adam, 12, captured=True, scaler=scaler)
    assert not np.array_equal(net[0].weight.numpy(), before)
    assert density(net) == [0.5, 0.5]
    kept = adam._states[net[0].weight]
    assert asp.calculate_density(kept.master.numpy()) == 0.5


def test_a_saved_optimizer_knows_its_masks():
    net = perceptron()
    adam = asp.decorate(paddle.optimizer.Adam(0.1, parameters=net.parameters()))
    asp.prune_model(net)
    train(net, adam, 1)
    states = {k: v.numpy() for k, v in adam.state_dict().items()}
    asp.prune_model(net, n=1)
    adam.set_state_dict(states)
    assert asp.calculate_density(net[0].weight.sparsity_mask.numpy()) == 0.5


def test_what_is_excluded_small_or_of_another_kind():
    net = nn.Sequential(nn.Linear(8, 4), nn.Linear(3, 4), nn.Linear(8, 4), nn.Embedding(8, 4))
    asp.set_excluded_layers([net[0].weight.name])
    assert [*asp.prune_model(net)] == [net[2].weight.name]
    asp.reset_excluded_layers()
    half = lambda w, n, m, algorithm, name: (w * (w > 0), w > 0)
    asp.add_supported_layer(nn.Embedding, half)
    found = asp.prune_model(net, with_mask=False)
    assert [*found] == [net[k].weight.name for k in (0, 2, 3)]
    assert (net[3].weight.numpy() >= 0).all()
    assert not hasattr(net[3].weight, "sparsity_mask")


def test_forward_renews_what_an_optimizer_moved():
    net = perceptron()
    sgd = paddle.optimizer.SGD(0.1, parameters=net.parameters())
    pruner = slim.UnstructuredPruner(net, "ratio", ratio=0.5)
    pruner.step()
    pruner.set_static_masks()
    for captured in (False, True):
        train(net, sgd, 2, captured)
        assert sum(density(net)) > 1.2
        net(paddle.ones([1, 8]))
        weights = [net[k].weight.numpy() for k in (0, 2)]
        assert sum((w == 0).sum() for w in weights) == 72


def test_copies_and_saved_programs_have_masks_but_no_writes(tmp_path):
    net = perceptron()
    slim.UnstructuredPruner(net, "ratio", ratio=0.5).step()
    copy = deepcopy(net)
    train(copy, paddle.optimizer.SGD(0.1, parameters=copy.parameters()), 1)
    copy(paddle.ones([1, 8]))
    assert sum((copy[k].weight.numpy() == 0).sum() for k in (0, 2)) == 72
    assert copy[0].weight.sparsity_mask is not net[0].weight.sparsity_mask
    run = paddle.jit.to_static(copy.eval().forward)
    run(paddle.ones([1, 8]))
    assert all(s.update is None for s in run.main_program.states)
    paddle.jit.save(copy, str(tmp_path / "net"), [paddle.static.InputSpec([1, 8])])
    loaded = paddle.jit.load(str(tmp_path / "net"))
    assert np.array_equal(loaded(paddle.ones([1, 8])).numpy(), copy(paddle.ones([1, 8])).numpy())


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: asp.prune_model(perceptron(), mask_algo="mask_3d"), "mask_1d, mask_2d"),
        (lambda: asp.prune_model(perceptron(), n=4), "0 < n < m"),
        (lambda: asp.prune_model(perceptron(), 4, 8, "mask_2d_best"), "mask_2d_greedy"),
        (lambda: asp.prune_model(None), "Layer"),
        (lambda: asp.decorate(None), "optimizer"),
        (lambda: asp.decorate(paddle.optimizer.LBFGS(parameters=[paddle.ones([1])])), "LBFGS"),
        (lambda: slim.UnstructuredPruner(perceptron(), "best"), "mode"),
        (lambda: slim.UnstructuredPruner(perceptron(), "ratio", ratio=1.0), "below 1"),
        (lambda: slim.UnstructuredPruner(perceptron(), "ratio", sparse_block=[4, 1]), "n of m"),
        (lambda: slim.UnstructuredPruner(perceptron(), "threshold", local_sparsity=True), "mode"),
        (lambda: slim.UnstructuredPruner(nn.ReLU(), "ratio"), "no weight"),
        (lambda: slim.GMPUnstructuredPruner(perceptron(), configs={}), "pruning_iterations"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(wrong, says):
    with pytest.raises((ValueError, TypeError), match=says):
        wrong()
