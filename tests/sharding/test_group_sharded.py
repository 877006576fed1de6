"""All ways to ZeRO's stages lay tensors in the same pieces; `group_sharded_parallel`."""

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle import nn
from minipaddle.distributed import fleet
from minipaddle.distributed.sharding import group_sharded_parallel, save_group_sharded_model

from .models import mlp

LEVELS = ("os", "os_g", "p_g_os")
X = np.random.default_rng(0).normal(size=(8, 6)).astype("float32")


def by_group(net, adam, stage):
    return group_sharded_parallel(net, adam, LEVELS[stage - 1])[:2]


def by_plan(net, adam, stage):
    mesh = dist.ProcessMesh([0, 1], dim_names=["dp"])
    return dist.parallelize(net, adam, mesh, {"dp_config": {"sharding_level": stage}})


def by_fleet(net, adam, stage):
    strategy = fleet.DistributedStrategy()
    strategy.hybrid_configs = {"sharding_degree": 2}
    strategy.sharding_configs = {"stage": stage}
    fleet.init(is_collective=True, strategy=strategy)
    adam = fleet.distributed_optimizer(adam)
    return fleet.distributed_model(net), adam


def by_stage(net, adam, stage):
    mesh = dist.ProcessMesh([0, 1], dim_names=["dp"])
    dist.shard_layer(net, mesh)
    return net, dist.shard_optimizer(adam, getattr(dist, f"ShardingStage{stage}")("dp"))


def model():
    paddle.seed(3 + 7 * dist.get_rank())  # all ranks begin with the weights of the first
    net = mlp()
    return net, paddle.optimizer.Adam(0.05, parameters=net.parameters())


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_all_ways_give_the_same_pieces(stage):
    def work(way):
        net, adam = model()
        if way is by_stage:
            for p in net.parameters():
                dist.broadcast(p, src=0)
        net, adam = way(net, adam, stage)
        mesh = net.parameters()[0].process_mesh
        (net(dist.shard_tensor(X, mesh, [dist.Shard(0)])) ** 2).mean().backward()
        adam.step()
        weights = net.parameters()
        tensors = [*weights, *(p.grad for p in weights), *adam.state_dict().values()]
        return [x.placements for x in tensors], [p.numpy() for p in weights]

    first, *others = (
        dist.spawn(work, args=(way,), nprocs=2).results
        for way in (by_stage, by_group, by_plan, by_fleet)
    )
    for results in others:
        for (place, values), (expected, same) in zip(results, first, strict=True):
            assert place == expected
            for a, b in zip(values, same, strict=True):
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("level", LEVELS)
def test_rows_of_each_rank(level, tmp_path):
    """The average of the gradients is that of the joined batch; what is saved is whole."""

    def work():
        net, adam = model()
        own = X
        if dist.get_world_size() > 1:
            net, adam, scaler = group_sharded_parallel(net, adam, level, offload=True)
            assert scaler is None
            own = np.split(X, 2)[dist.get_rank()]
        losses = []
        for _ in range(3):
            y = net(paddle.to_tensor(own))
            assert y.shape == [len(own), 5]
            loss = (y**2).mean()
            loss.backward()
            adam.step()
            adam.clear_grad()
            losses.append(float(loss))
        if dist.get_world_size() > 1:
            save_group_sharded_model(net, tmp_path, adam)
        return losses, {**net.state_dict()}, [*adam.state_dict().values()]

    (expected,) = dist.spawn(work, nprocs=1).results
    halves = dist.spawn(work, nprocs=2).results
    means = np.mean([losses for losses, *_ in halves], 0)
    np.testing.assert_allclose(means, expected[0], rtol=1e-6)
    saved = paddle.load(str(tmp_path / "model.pdmodel"))
    assert [*saved] == [*expected[1]]
    states = paddle.load(str(tmp_path / "model.pdopt")).values()
    for a, b in zip([*saved.values(), *states], [*expected[1].values(), *expected[2]], strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-7)


def test_rows_in_containers():
    class Pair(nn.Linear):
        def forward(self, pair):
            x, others = pair
            return {"y": super().forward(x), "sums": [others["x"] + 1]}

    def work():
        net = Pair(4, 3)
        sgd = paddle.optimizer.SGD(parameters=net.parameters())
        net, *_ = group_sharded_parallel(net, sgd, "p_g_os")
        x = paddle.full([2, 4], dist.get_rank())
        found = net((x, {"x": x}))
        return found["y"].shape, found["sums"][0].tolist()

    assert dist.spawn(work, nprocs=2).results == [([2, 3], [[k + 1] * 4] * 2) for k in (0, 1)]


def test_parts_that_stay_whole_and_groups():
    def work():
        net = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 4))
        sgd = paddle.optimizer.Momentum(parameters=net.parameters())
        strategy = fleet.DistributedStrategy()
        strategy.hybrid_configs = {"dp_degree": 2, "sharding_degree": 2}
        fleet.init(is_collective=True, strategy=strategy)
        hcg = fleet.get_hybrid_communicate_group()
        net, sgd, _ = group_sharded_parallel(
            net, sgd, "p_g_os", group=hcg.get_sharding_parallel_group(), sync_buffers=True,
            dp_group=hcg.get_data_parallel_group(), exclude_layer=["LayerNorm", id(net[2])],
        )  # fmt: skip
        net(paddle.ones([1, 4])).sum().backward()
        sgd.step()
        return (
            [p._local_shape for p in net.parameters()],
            [x._local_shape for x in sgd.state_dict().values()],
        )

    for weights, states in dist.spawn(work, nprocs=4).results:
        assert weights == [[2, 4], [2], [4], [4], [4, 4], [4]]
        assert states == [[2, 4], [2], [2], [2], [2, 4], [2]]


def test_a_checkpoint_of_stage_3_loads_on_any_mesh(tmp_path):
    def work(ranks):
        net, adam = model()
        net, adam = by_plan_on(ranks, net, adam)
        mesh = net.parameters()[0].process_mesh
        loss = (net(dist.shard_tensor(X, mesh, [dist.Shard(0)])) ** 2).mean()
        loss.backward()
        adam.step()
        adam.clear_grad()
        states = {**net.state_dict(), **dict(enumerate_states(adam))}
        if ranks == 2:
            dist.save_state_dict(states, str(tmp_path))
        else:
            for x in states.values():
                x.set_value(x * 0)
            dist.load_state_dict(states, str(tmp_path))
        return {name: x.numpy() for name, x in states.items()}

    def by_plan_on(ranks, net, adam):
        mesh = dist.ProcessMesh([*range(ranks)], dim_names=["dp"])
        return dist.parallelize(net, adam, mesh, {"dp_config": {"sharding_level": 3}})

    def enumerate_states(adam):
        return ((f"state{k}", x) for k, x in enumerate(adam.state_dict().values()))

    expected = dist.spawn(work, args=(2,), nprocs=2).results[0]
    for ranks in (1, 3):
        for found in dist.spawn(work, args=(ranks,), nprocs=ranks).results:
            for name, value in expected.items():
                np.testing.assert_array_equal(found[name], value, err_msg=name)


NET = nn.Linear(4, 3)
SGD = paddle.optimizer.SGD(0.1, parameters=NET.parameters())


def strategy_with(**settings):
    strategy = fleet.DistributedStrategy()
    for name, value in settings.items():
        setattr(strategy, name, value)
    return strategy


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: group_sharded_parallel(3, SGD, "os"), TypeError, "group_sharded_parallel of 3"),
        (lambda: group_sharded_parallel(NET, 3, "os"), TypeError, "with 3"),
        (lambda: group_sharded_parallel(NET, SGD, "p"), ValueError, "level='p'"),
        (lambda: group_sharded_parallel(NET, SGD, "os", 1), NotImplementedError, "mixed precision"),
        (
            lambda: group_sharded_parallel(NET, SGD, "os", exclude_layer=["Conv2D"]),
            ValueError,
            "exclude_layer with 'Conv2D'",
        ),
        (lambda: save_group_sharded_model(NET, "x"), TypeError, "save_group_sharded_model of Lin"),
        (lambda: strategy_with(sharding_configs={"stage": 4}), ValueError, "stage=4"),
        (lambda: strategy_with(sharding_configs={"segment": 4}), NotImplementedError, "segment"),
        (lambda: dist.parallelize(NET, None, None, {"dp_config": {"sharding_level": 1}}),
         ValueError, "no optimizer"),
        (lambda: dist.parallelize(NET, SGD, dist.ProcessMesh([0], ["mp"]),
                                  {"dp_config": {"sharding_level": 1}}), ValueError, "named dp"),
    ],
)  # fmt: skip
def test_what_is_refused(make, error, match):
    with pytest.raises(error, match=match):
        make()
