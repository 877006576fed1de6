"""Loaders of pieces, and `dist.to_static`: modes, programs, states, several batches to a step."""

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.distributed as dist
import minipaddle.nn.functional as F
from minipaddle import nn

from .models import mlp

MESH = [0, 1]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(26, 6)).astype("float32")
Y = RNG.integers(0, 5, 26)


def loader(mesh=None, batch_size=13, **options):
    """Two batches of thirteen, in pieces if there is a mesh."""
    data = paddle.io.TensorDataset([paddle.to_tensor(X), paddle.to_tensor(Y)])
    found = paddle.io.DataLoader(data, batch_size=batch_size)
    return found if mesh is None else dist.shard_dataloader(found, mesh, **options)


def train(parallel: bool, stage=0, merged=1, batch_size=13, strategy=None):
    """Losses of three epochs, the weights, and the losses of evaluation and prediction."""
    paddle.seed(3)
    net, mesh = mlp(), None
    adam = paddle.optimizer.AdamW(0.02, epsilon=1e-4, parameters=net.parameters())
    if parallel:
        mesh = dist.ProcessMesh(MESH, dim_names=["dp"])
        dist.shard_layer(net, mesh)
        place = getattr(dist, f"ShardingStage{stage}")("dp") if stage else None
        adam = dist.shard_optimizer(adam, place, merged)
    batches = loader(mesh, batch_size, shard_dims="dp") if parallel else loader(None, batch_size)
    model = dist.to_static(net, batches, nn.CrossEntropyLoss(), adam, strategy)
    losses = [float(model(x, y)) for _ in range(3) for x, y in batches]
    weights = [p.numpy() for p in net.parameters()]
    model.eval()
    evaluated = [float(model(x, y)) for x, y in batches]
    model.predict()
    outputs = [model(x).numpy() for x, _ in batches]
    assert all(np.array_equal(p.numpy(), w) for p, w in zip(net.parameters(), weights))
    return losses, evaluated, weights, outputs


def assert_close(found, expected):
    for a, b in zip(found[:2], expected[:2], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    for own, other in zip(found[2:], expected[2:], strict=True):
        for a, b in zip(own, other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_training(stage):
    expected = train(False)
    for found in dist.spawn(train, args=(True, stage), nprocs=2).results:
        assert_close(found, expected)


@pytest.mark.parametrize("parallel", [False, True])
def test_two_batches_are_a_step(parallel):
    """The mean of the gradients of two equal batches is that of the joined batch."""
    whole = train(False, batch_size=26)
    merge = dist.Strategy({"gradient_merge": {"enable": True, "k_steps": 2}})
    if parallel:
        halves = dist.spawn(train, args=(True, 1, 2), nprocs=2).results
    else:
        halves = [train(False, strategy=merge)]
    for losses, _, weights, _ in halves:
        means = np.reshape(losses, (3, 2)).mean(1)
        np.testing.assert_allclose(means, whole[0], rtol=1e-5)
        for a, b in zip(weights, whole[2], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_the_sum_of_gradients():
    """Of two batches the sum, as a step of SGD takes it."""

    def step(merged, avg=True):
        paddle.seed(3)
        net = mlp()
        sgd = paddle.optimizer.SGD(0.1, parameters=net.parameters())
        merge = {"gradient_merge": {"enable": True, "k_steps": merged, "avg": avg}}
        model = dist.to_static(net, None, nn.CrossEntropyLoss(), sgd, dist.Strategy(merge))
        before = [p.numpy() for p in net.parameters()]
        for x, y in loader():
            model(x, y)
        return [p.numpy() - b for p, b in zip(net.parameters(), before)]

    for a, b in zip(step(2, avg=False), step(2), strict=True):
        np.testing.assert_allclose(a, 2 * b, rtol=1e-4, atol=1e-7)


def test_programs_and_states():
    def work():
        paddle.seed(1)
        net, mesh = nn.Linear(6, 4), dist.ProcessMesh(MESH)
        dist.shard_tensor(net.weight, mesh, [dist.Shard(1)])
        adam = paddle.optimizer.Adam(parameters=net.parameters())
        model = dist.DistModel(net, None, nn.MSELoss(), adam)
        with pytest.raises(ValueError, match="no program yet"):
            model.dist_main_program()
        model(paddle.ones([2, 6]), paddle.ones([2, 4]))
        specs = [
            {str(s.record.spec) for s in p.states}
            for p in (model.serial_main_program(), model.dist_main_program("train"))
        ]
        assert "float32[6, 4]" in specs[0] - specs[1]
        assert "float32[6, 2]" in specs[1] - specs[0]
        state = {k: x.numpy() for k, x in model.state_dict().items()}
        assert {*model.state_dict("param")} == {"weight", "bias"}
        assert {*model.state_dict("opt")} == {*state} - {"weight", "bias"}
        model(paddle.ones([2, 6]), paddle.ones([2, 4]))
        model.set_state_dict({k: paddle.to_tensor(x) for k, x in state.items()})
        for k, x in model.state_dict().items():
            np.testing.assert_array_equal(x.numpy(), state[k])
        return net.weight._local_shape

    assert dist.spawn(work, nprocs=2).results == [[6, 2]] * 2


AMP = {
    "o1": ("bfloat16", {"init_loss_scaling": 2.0**15}),
    "o2": (
        "float16",
        {"init_loss_scaling": 2.0**24, "decr_ratio": 2.0**-10, "decr_every_n_nan_or_inf": 1},
    ),
}


@pytest.mark.parametrize("level", AMP)
def test_mixed_precision(level):
    """As with auto_cast, decorate and GradScaler by hand: losses, weights, the fallen scale."""
    dtype, scaling = AMP[level]
    x, y = paddle.to_tensor(X), paddle.to_tensor(Y)

    def prepared():
        paddle.seed(3)
        net = mlp()
        return net, paddle.optimizer.Adam(0.02, epsilon=1e-4, parameters=net.parameters())

    def by_hand():
        net, adam = prepared()
        scaler = paddle.amp.GradScaler(**scaling)
        if level == "o2":
            paddle.amp.decorate(net, adam, "O2", dtype)
        losses = []
        for _ in range(4):
            with paddle.amp.auto_cast(level=level, dtype=dtype):
                loss = F.cross_entropy(net(x), y)
            scaler.scale(loss).backward()
            scaler.step(adam), scaler.update(), adam.clear_grad()
            losses.append(loss.item())
        return losses, net[0].weight.astype("float32").numpy(), scaler.get_loss_scaling().item()

    def by_strategy(parallel):
        net, adam = prepared()
        mesh = dist.ProcessMesh(MESH, dim_names=["dp"])
        if parallel:
            dist.shard_layer(net, mesh)
        a = dist.shard_tensor(x, mesh, [dist.Shard(0)]) if parallel else x
        amp = {"enable": True, "level": level, "dtype": dtype, **scaling}
        strategy = dist.Strategy({"amp": amp})
        model = dist.to_static(net, None, nn.CrossEntropyLoss(), adam, strategy)
        losses = [model(a, y).item() for _ in range(4)]
        model.predict()
        assert model(a).dtype == dtype
        weight = net[0].weight.astype("float32").numpy()
        return losses, weight, model.scaler.get_loss_scaling().item()

    wanted = by_hand()
    assert wanted[2] == (2.0**14 if level == "o2" else 2.0**15)  # after an infinite gradient
    assert wanted[0][3] < wanted[0][0]
    for found in (by_strategy(False), *dist.spawn(by_strategy, args=(True,), nprocs=2).results):
        np.testing.assert_allclose(found[0], wanted[0], rtol=2e-2)
        np.testing.assert_allclose(found[1], wanted[1], atol=2e-2)
        assert found[2] == wanted[2]


def test_several_labels():
    net = nn.Linear(2, 1)
    spec = [[None], [None, None]]
    model = dist.to_static(net, None, lambda y, a, b: ((y - a * b) ** 2).sum(), input_spec=spec)
    assert model.mode == "eval"
    x, a, b = (paddle.full([1, n], float(k)) for n, k in ((2, 1), (1, 2), (1, 3)))
    assert float(model(x, a, b)) == pytest.approx(float(((net(x) - 6) ** 2).sum()))


NET = nn.Linear(2, 1)
SGD = paddle.optimizer.SGD(0.1, parameters=NET.parameters())


def with_amp(**how):
    return dist.to_static(NET, strategy=dist.Strategy({"amp": {"enable": True, **how}}))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: dist.to_static(3), TypeError, "layer=3"),
        (lambda: dist.to_static(NET, optimizer=3), TypeError, "optimizer=3"),
        (lambda: dist.to_static(NET, strategy={}), TypeError, "strategy={}"),
        (lambda: dist.to_static(NET, loss=3), TypeError, "loss=3"),
        (lambda: dist.to_static(NET, None, None, SGD), ValueError, "without a loss"),
        (lambda: dist.to_static(NET).train(), ValueError, "'train' of a DistModel without loss"),
        (lambda: dist.to_static(NET).dist_startup_program(), NotImplementedError, "startup"),
        (lambda: dist.to_static(NET).state_dict("x"), ValueError, r"state_dict\('x'\)"),
        (
            lambda: dist.DistModel(NET, None, metrics=[1]),
            NotImplementedError,
            "metrics of a DistModel",
        ),
        (lambda: dist.Strategy([]), TypeError, r"Strategy\(\[\]\)"),
        (lambda: dist.Strategy({"amp": {"levle": 1}}), ValueError, "amp has no setting 'levle'"),
        (
            lambda: dist.Strategy({"amp": {"custom_black_varnames": ["x"]}}),
            ValueError,
            "amp has no",
        ),
        (lambda: with_amp(level="o3"), ValueError, "level='O3'"),
        (lambda: with_amp(dtype="float64"), ValueError, "dtype='float64'"),
        (lambda: dist.Strategy({"recompute": {}}), ValueError, "'recompute'"),
    ],
)
def test_errors(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("name", ["sharding", "fused_passes"])
def test_settings_that_do_nothing(name):
    strategy = dist.Strategy.from_dict({name: {"enable": True}})
    assert strategy.to_dict()[name]["enable"]
    assert strategy.get(name).enable
    with pytest.raises(NotImplementedError, match=rf"{name}\.enable = True"):
        dist.to_static(NET, strategy=strategy)


# ---- loaders -------------------------------------------------------------------------------------


def test_whole_batches_are_cut():
    def work():
        mesh = dist.ProcessMesh(MESH, dim_names=["dp"])
        found = [
            (x.numpy(), x.placements, y.placements, x._local_shape)
            for x, y in loader(mesh, shard_dims=["dp", None])
        ]
        return found

    for rank, batches in enumerate(dist.spawn(work, nprocs=2).results):
        assert np.array_equal(np.concatenate([x for x, *_ in batches]), X)
        for _, x, y, shape in batches:
            assert (x, y, shape) == ([dist.Shard(0)], [dist.Replicate()], [7 - rank, 6])


@pytest.mark.parametrize("rows", [4, 5])
def test_own_parts_are_joined(rows):
    """Each rank loads its rows: 2 and 2, or 3 and 2."""

    def work():
        mesh = dist.ProcessMesh(MESH, dim_names=["dp"])
        own = np.array_split(X[:rows], 2)[dist.get_rank()]
        data = paddle.io.TensorDataset([paddle.to_tensor(own)])
        found = dist.shard_dataloader(
            paddle.io.DataLoader(data, batch_size=3), [mesh, mesh], shard_dims=0,
            is_dataset_splitted=True,
        )  # fmt: skip
        return [x.numpy() for (x,) in found]

    for (found,) in dist.spawn(work, nprocs=2).results:
        np.testing.assert_array_equal(found, X[:rows])


class Rows(paddle.io.Dataset):
    """Samples that are dicts, one field of which is a list."""

    def __getitem__(self, k):
        return {"x": [X[k], X[k] * 2], "y": Y[k], "z": X[k]}

    def __len__(self):
        return 4


def test_batches_that_are_dicts():
    mesh = dist.ProcessMesh([0], dim_names=["dp"])
    batches = dist.shard_dataloader(
        paddle.io.DataLoader(Rows(), batch_size=4), mesh, ["y", "x"], "dp",
        dense_tensor_idx=[[], [1]],
    )  # fmt: skip
    (batch,) = batches
    assert [*batch] == ["y", "x"]
    assert batch["y"].is_dist()
    assert [each.is_dist() for each in batch["x"]] == [True, False]
    assert len(batches) == 1


LINE = dist.ProcessMesh([0], dim_names=["dp"])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: dist.shard_dataloader([1], LINE), TypeError, r"shard_dataloader of \[1\]"),
        (lambda: loader(LINE, shard_dims="mp"), ValueError, "no axis 'mp'"),
        (lambda: loader([LINE, 3]), TypeError, "shard_dataloader of 3"),
        (
            lambda: loader([LINE, dist.ProcessMesh([0])]),
            NotImplementedError,
            "on different meshes",
        ),
        (lambda: [*loader(LINE, shard_dims=["dp"])], ValueError, "a batch with 2 fields"),
        (lambda: [*loader(LINE, input_keys=["x"])], ValueError, "batches that are no dicts"),
        (
            lambda: [*dist.shard_dataloader(paddle.io.DataLoader(Rows()), LINE, ["w"])],
            ValueError,
            "no 'w'",
        ),
    ],
)
def test_errors_of_loaders(make, error, message):
    with pytest.raises(error, match=message):
        make()
