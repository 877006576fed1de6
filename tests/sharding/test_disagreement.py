"""One rank deviates: no function goes on silently or waits forever; all ranks hear what differs."""

import pytest

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle import nn
from minipaddle.distributed import fleet
from minipaddle.distributed.auto_parallel.api import dtensor_from_local, dtensor_to_local

S, R = dist.Shard, dist.Replicate()


def mesh(bad=None):
    """All ranks in a row, or what one of them may mean instead."""
    ranks = [*range(dist.get_world_size())]
    others = {"order": ranks[::-1], "shape": [ranks], "fewer": ranks[-2:], "alone": ranks[-1:]}
    found = others.get(bad, ranks)
    return dist.ProcessMesh(found, ["y" if bad == "names" else "x", "y"][: 1 + (bad == "shape")])


def ones(placement=None):
    return dist.shard_tensor(paddle.ones([6, 6]), mesh(), [placement or S(0)])


def net(out=4):
    paddle.seed(1)
    return nn.Sequential(nn.Linear(6, 8), nn.Linear(8, out))


def adam(model, kind=paddle.optimizer.Adam):
    return kind(0.1, parameters=model.parameters())


def captured(function):
    """A function of a tensor in pieces that runs twice; `function(x, bad)` may differ later."""

    def probe(bad):
        x = ones()
        function(x, False)
        return function(x, bad).numpy()

    return probe


@paddle.jit.to_static
def product(x, y):
    return (x * y).sum(0)


@paddle.jit.to_static
def other_product(x, y):
    return (x * y + 1).sum(0)


def optimized(bad, stage=None, kind=None, skip=False):
    model = net()
    optimizer = adam(model, kind if bad and kind else paddle.optimizer.Adam)
    chosen = stage if bad and stage else dist.ShardingStage3
    if not (bad and skip):
        dist.shard_optimizer(optimizer, chosen("x", mesh()))


def loaded(bad, data=1, batch=6, **settings):
    rows = paddle.io.TensorDataset([paddle.arange(12.0).reshape([12, 1]) * (data if bad else 1)])
    loader = paddle.io.DataLoader(rows, batch_size=batch if bad else 6)
    settings = {"shard_dims": 0} | (settings if bad else {})
    for (x,) in dist.shard_dataloader(loader, mesh(), **settings):
        x.numpy()


def parallel(bad, plan=None, out=4, level=0):
    model, plans = net(out if bad else 4), {"0": dist.ColWiseParallel()}
    config = {"mp_config": {"parallelize_plan": {"0": plan} if bad and plan else plans}}
    config |= {"dp_config": {"sharding_level": 1 + (level if bad else 0)}}
    ranks = dist.ProcessMesh([[*range(dist.get_world_size())]], ["dp", "mp"])
    dist.parallelize(model, adam(model), ranks, config)


def fleeting(bad, degrees=None, out=4, kind=None):
    strategy = fleet.DistributedStrategy()
    if bad and degrees:
        strategy.hybrid_configs = degrees
    fleet.init(is_collective=True, strategy=strategy)
    model = fleet.distributed_model(net(out if bad else 4))
    fleet.distributed_optimizer(adam(model, kind if bad and kind else paddle.optimizer.Adam))


def modelled(bad, optimizer=True, steps=1, labels=1.0):
    model = dist.shard_layer(net(), mesh())
    strategy = {"gradient_merge": {"enable": True, "k_steps": steps if bad else 1}}
    given = adam(model) if optimizer or not bad else None
    made = dist.to_static(model, None, nn.MSELoss(), given, dist.Strategy(strategy))
    for step in range(2):
        made(ones(), paddle.full([6, 4], labels if bad and step else 1.0))


def grouped(bad, level="p_g_os", out=4, save=True, **options):
    model = net(out if bad else 4)
    given = ("os" if bad and level == "os" else "p_g_os"), None, None
    found = dist.sharding.group_sharded_parallel(
        model, adam(model), *given, **(options if bad else {})
    )
    if save or not bad:
        dist.sharding.save_group_sharded_model(found[0], "/dev/null/none")


def backward(bad):
    """A gradient that depends on other values, and its next move."""
    x = ones()
    x.stop_gradient = False
    (x * paddle.full([6], 1.0 + bad)).sum().backward()
    return dist.reshard(x.grad, mesh(), [S(0)]).numpy()


PROBES = {
    **{
        f"{name}, mesh: {bad}": (lambda b, f=function, m=bad: f(mesh(m if b else None)), name)
        for name, function in {
            "shard_tensor of float32[6, 6]": lambda m: dist.shard_tensor(
                paddle.ones([6, 6]), m, [S(0)]
            ),
            "dtensor_from_local of float32[2, 3]": lambda m: dtensor_from_local(
                paddle.ones([2, 3]), m, [S(0)]
            ),
            "shard_layer": lambda m: dist.shard_layer(net(), m),
            "shard_dataloader": lambda m: dist.shard_dataloader(
                paddle.io.DataLoader(paddle.io.TensorDataset([paddle.ones([4])])), m
            ),
            "shard_optimizer": lambda m: dist.shard_optimizer(
                adam(net()), dist.ShardingStage1(0, m)
            ),
            "reshard": lambda m: dist.reshard(ones(), m, [R]),
        }.items()
        for bad in ("order", "names", "shape", "fewer", "alone")
    },
    "shard_tensor, placement": (lambda b: ones(S(int(b))), "as [Shard(dim=1)]"),
    "reshard, placement": (lambda b: dist.reshard(ones(), mesh(), [S(1) if b else R]), "reshard"),
    "reshard, none": (lambda b: [x := ones(), b or dist.reshard(x, mesh(), [R])], "reshard"),
    "reshard, later": (
        lambda b: dist.reshard(ones(R), mesh(), [S(int(b))]).numpy(), "[Shard(dim=1)]"
    ),
    "unshard_dtensor, none": (lambda b: [x := ones(), b or dist.unshard_dtensor(x)], "the move of"),
    "dtensor_from_local, dtype": (
        lambda b: dtensor_from_local(paddle.ones([2], "int32" if b else "int64"), mesh(), [S(0)]),
        "each piece",
    ),
    "dtensor_to_local": (lambda b: dtensor_to_local(ones(), mesh(), [S(0) if b else R]), "reshard"),
    "shard_layer, function": (
        lambda b: dist.shard_layer(
            net(), mesh(), lambda name, each, m: name == "0" and (not b) and
            dist.shard_tensor(each.weight, m, [S(1)])
        ),
        "the call: ",
    ),
    "shard_optimizer, stage": (lambda b: optimized(b, dist.ShardingStage1), "ShardingStage1"),
    "shard_optimizer, kind": (lambda b: optimized(b, kind=paddle.optimizer.SGD), "SGD"),
    "shard_optimizer, none": (lambda b: optimized(b, skip=True), "shard_optimizer"),
    "shard_dataloader, dims": (lambda b: loaded(b, shard_dims=None), "shard_dims: "),
    "shard_dataloader, split": (lambda b: loaded(b, is_dataset_splitted=True), "is_dataset_split"),
    "shard_dataloader, batches": (lambda b: loaded(b, batch=3), "batches: "),
    "shard_dataloader, data": (lambda b: loaded(b, data=2), "float32[6, 1] with sum"),
    "parallelize, plan": (lambda b: parallel(b, dist.RowWiseParallel()), "RowWiseParallel{is_in"),
    "parallelize, level": (lambda b: parallel(b, level=1), "sharding_level: 2"),
    "parallelize, model": (lambda b: parallel(b, out=2), "1.weight: float32[8, "),
    "fleet.init": (lambda b: fleeting(b, {"mp_degree": 2}), "'mp_degree': 2"),
    "fleet.distributed_model": (lambda b: fleeting(b, out=2), "1.weight: float32[8, "),
    "fleet.distributed_optimizer": (lambda b: fleeting(b, kind=paddle.optimizer.SGD), "SGD"),
    "DistModel, optimizer": (lambda b: modelled(b, optimizer=False), "NoneType"),
    "DistModel, strategy": (lambda b: modelled(b, steps=2), "k_steps: 2"),
    "DistModel, labels later": (lambda b: modelled(b, labels=2.0), "float32[6, 4] with sum"),
    "group_sharded_parallel, level": (lambda b: grouped(b, "os"), "level and options: "),
    "group_sharded_parallel, model": (lambda b: grouped(b, out=2), "1.weight: float32[8, "),
    "group_sharded_parallel, layers": (
        lambda b: grouped(b, exclude_layer=["Linear"]), "exclude_layer of parameters [0, "
    ),
    "new_group": (lambda b: dist.new_group([1] if b else [0, 1]), "of the ranks [0, 1]"),
    "new_group, twice": (lambda b: [dist.new_group([0]) for _ in range(1 + b)], "new_group"),
    "an operator": (lambda b: (ones().exp() if b else ones()).numpy(), "exp(float32[6, 6])"),
    "a number": (lambda b: (ones() * (2.0 + b)).numpy(), "multiply(float32[6, 6], 3.0)"),
    "a whole operand": (
        lambda b: (ones() * paddle.full([6], 1.0 + b)).numpy(),
        "multiply(float32[6, 6], float32[6] with sum",
    ),
    "a whole operand, backward": (backward, "the move of"),
    "set_value": (
        lambda b: [(x := ones(R)).set_value(paddle.full([6, 6], 1.0 + b)),
                   dist.reshard(x, mesh(), [S(0)]).numpy()],
        "the move of",
    ),
    "a captured step, later": (
        captured(lambda x, b: product(x, paddle.full([6], 1.0 + b))), "product(y=float32[6] with"
    ),
    "a captured step, program": (
        captured(lambda x, b: (other_product if b else product)(x, paddle.ones([6]))), "product(y="
    ),
}  # fmt: skip
"""What each of some ranks calls, `probe(whether it deviates)`, and what all of them must hear."""


def texts_of(probe, ranks: int, deviating: int) -> list[str]:
    """The error of each rank."""
    found = [""] * ranks

    def work():
        rank = dist.get_rank()
        try:
            probe(rank == deviating)
            dist.barrier()
        except Exception as error:
            found[rank] = str(error)
            raise

    with pytest.raises((ValueError, NotImplementedError, dist.PeerFailed)):
        dist.spawn(work, nprocs=ranks, timeout=20)
    return found


@pytest.mark.parametrize("name", PROBES)
def test_every_rank_hears_what_differs(name):
    probe, expected = PROBES[name]
    ranks = 3 if name.endswith("fewer") else 2
    for deviating in (0, 1) if ranks == 2 and "alone" not in name else (ranks - 1,):
        for text in texts_of(probe, ranks, deviating):
            assert expected in text
