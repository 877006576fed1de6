"""Ranks, coordinates and groups as Paddle numbers them: `tests/data/topologies.json`."""

import inspect
import json
from pathlib import Path

import pytest

import minipaddle.distributed as dist
from minipaddle.distributed import fleet

DATA = Path(__file__).parents[1] / "data"
RECORDED = json.loads((DATA / "topologies.json").read_text())["topologies"]
HYBRID = [each for each in RECORDED if isinstance(each.get("hybrid"), list)]
named = {"ids": lambda each: "x".join(map(str, each["dims"]))}


@pytest.mark.parametrize("each", RECORDED, **named)
def test_numbers(each):
    names, dims = each["names"], each["dims"]
    found = fleet.CommunicateTopology(names, dims)
    ranks = range(found.world_size())
    assert found.world_size() == each["world_size"]
    assert [list(found.get_coord(k)) for k in ranks] == each["coords"]
    assert all(found.get_rank(**found.get_coord(k)._asdict()) == k for k in ranks)
    for name in names:
        assert found.get_comm_list(name) == each["comm_lists"][name]
        lists = [found.get_axis_list(name, k) for k in range(found.get_dim(name))]
        assert lists == each["axis_lists"][name]
    for pair, expected in each["fused"]:
        assert sorted(found.get_fused_ranks(pair)) == expected


def answers(each, asked):
    """What the methods of the groups say to a rank; None for an error."""
    group = fleet.HybridCommunicateGroup(fleet.CommunicateTopology(each["names"], each["dims"]))
    found = {}
    for name in asked:
        try:
            x = getattr(group, name)()
        except (ValueError, NotImplementedError):
            x = None
        found[name] = getattr(x, "ranks", x)
    return found


def check_groups(each):
    given = each["hybrid"]
    for expected, found in zip(
        given,
        dist.spawn(answers, args=(each, [*given[0]]), nprocs=each["world_size"]).results,
        strict=False,
    ):
        wrong = "AssertionError"
        assert found == {
            k: None if isinstance(x, str) and x.startswith(wrong) else x
            for k, x in expected.items()
        }


@pytest.mark.parametrize("each", [each for each in HYBRID if each["world_size"] <= 4], **named)
def test_groups_of_few(each):
    check_groups(each)


LARGE = [each for each in HYBRID if each["world_size"] > 4 and each["world_size"] != 16]


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize("each", LARGE, **named)
def test_groups(each):
    """16 ranks are four axes of two: 32 ranks have all five of them, 8 ranks any three."""
    check_groups(each)


@pytest.mark.parametrize("name", ["CommunicateTopology", "HybridCommunicateGroup"])
def test_methods_have_the_signatures_of_paddle(name):
    record = json.loads((DATA / "distributed_signatures.json").read_text())["signatures"]
    start = f"paddle.distributed.fleet.{name}"
    for method, given in record.items():
        if method.startswith(start):
            own = getattr(fleet, name)
            own = getattr(own, method[len(start) + 1 :]) if method != start else own
            found = [p for p in inspect.signature(own).parameters.values() if p.name != "self"]
            assert [(p.name, p.kind.name.lower()) for p in found] == [
                (p["name"], p["kind"]) for p in given
            ]
            assert [repr(p.default) for p in found if p.default is not p.empty] == [
                p["default"] for p in given if "default" in p
            ]


def test_behaviours():
    grid = fleet.CommunicateTopology(["data", "model"], [2, 2])
    assert repr(grid.get_coord(1)) == "Coordinate(data=0, model=1)"
    assert grid.get_rank_from_stage(0, model=1) == 1
    for wrong in (
        lambda: grid.get_coord(4),
        lambda: grid.get_comm_list("pipe"),
        lambda: grid.get_rank(data=0),
        lambda: grid.get_rank(data=0, model=2),
        lambda: fleet.CommunicateTopology(["data", "model"], [2]),
        lambda: fleet.HybridCommunicateGroup(
            fleet.CommunicateTopology(["data", "pipe", "sharding", "sep", "model"], [2, 1, 1, 1, 1])
        ),
    ):
        with pytest.raises(ValueError, match="expected: "):
            wrong()


def begin(**degrees):
    strategy = fleet.DistributedStrategy()
    strategy.hybrid_configs = degrees
    fleet.init(is_collective=True, strategy=strategy)
    return fleet.get_hybrid_communicate_group()


def test_the_mesh_of_a_strategy():
    def mesh(degrees):
        return repr(begin(**degrees).mesh)

    (two, *_) = dist.spawn(mesh, args=({"mp_degree": 2},), nprocs=4).results
    assert two == "{shape: [2,2], process_ids: [0,1,2,3], dim_names: [dp,mp]}"
    (one, *_) = dist.spawn(mesh, args=({"dp_degree": 1, "sep_degree": 2},), nprocs=2).results
    assert one == "{shape: [2], process_ids: [0,1], dim_names: [sep]}"


@pytest.mark.parametrize("degrees", [{"mp_degree": 3}, {"dp_degree": 2, "mp_degree": 2}])
def test_wrong_degrees_name_all_of_them(degrees):
    def wrong():
        with pytest.raises(ValueError, match=r"mp_degree=\d of 2 ranks"):
            begin(**degrees)

    dist.spawn(wrong, nprocs=2)
