"""Paddle's functions for tensors and layers in pieces: signatures, errors, and what they do."""

import inspect
import json
from pathlib import Path

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle import nn
from minipaddle.distributed.auto_parallel.api import dtensor_from_local, dtensor_to_local
from minipaddle.executors import hot
from tests.executors.hot import flag

RECORD = Path(__file__).parents[1] / "data" / "distributed_signatures.json"
PADDLE = json.loads(RECORD.read_text())["signatures"]


def find(name: str):
    found = paddle
    for part in name.split(".")[1:]:
        found = getattr(found, part, None)
    return found


# SplitPoint is an Enum, of which each Python shows other parameters.
OURS = [
    name for name in PADDLE
    if callable(find(name)) and ".fleet." not in name and not name.endswith(".SplitPoint")
]  # fmt: skip


@pytest.mark.parametrize("name", OURS)
def test_signature(name):
    found = [*inspect.signature(find(name)).parameters.values()]
    found = found[1:] if found and found[0].name == "self" else found
    empty = inspect.Parameter.empty
    own = [(p.name, *([] if p.default is empty else [repr(p.default)])) for p in found]
    assert own == [(p["name"], *([p["default"]] if "default" in p else [])) for p in PADDLE[name]]


def test_the_signatures_are_there():
    assert {"paddle.distributed.shard_layer", "paddle.distributed.shard_optimizer"} <= {*OURS}


def raised(work, nprocs=2) -> list[str]:
    """The message of the error that `work` raises in each rank."""

    def caught():
        try:
            work()
        except (ValueError, TypeError) as error:
            return str(error)

    return dist.spawn(caught, nprocs=nprocs).results


# ---- pieces --------------------------------------------------------------------------------------


def test_pieces_of_each_rank():
    """13 rows on 2 x 2 ranks: lengths, values and gradients."""

    def work():
        mesh = dist.ProcessMesh([[0, 1], [2, 3]])
        x = dist.shard_tensor(paddle.arange(26.0).reshape([13, 2]), mesh, [dist.Shard(0)] * 2)
        x.stop_gradient = False
        own = dtensor_to_local(x, mesh, [dist.Shard(0)] * 2)
        again = dtensor_from_local(own * 2, mesh, [dist.Shard(0)] * 2)
        (again**2).sum().backward()
        return own.shape, x.num_shard, again.numpy(), x.grad.numpy()

    value = np.arange(26.0).reshape(13, 2)
    results = dist.spawn(work, nprocs=4).results
    assert [shape[0] for shape, *_ in results] == [4, 3, 3, 3]
    for _, pieces, again, grad in results:
        assert pieces == 4
        np.testing.assert_array_equal(again, 2 * value)
        np.testing.assert_array_equal(grad, 8 * value)


def test_terms_of_each_rank():
    def work():
        mesh = dist.ProcessMesh([0, 1])
        x = dtensor_from_local(paddle.full([2], 1.0 + dist.get_rank()), mesh, [dist.Partial()])
        return x.shape, x.tolist()

    assert dist.spawn(work, nprocs=2).results == [([2], [3.0, 3.0])] * 2


def test_pieces_that_do_not_fit():
    def work():
        own = paddle.ones([1 + 2 * dist.get_rank(), 2])
        dtensor_from_local(own, dist.ProcessMesh([0, 1]), [dist.Shard(0)])

    for message in raised(work):
        assert "the rank at [0] of the mesh" in message
        assert "piece of shape [1, 2]" in message
        assert "expected: a piece of shape [2, 2] there" in message


@pytest.mark.parametrize("to_local", [False, True])
def test_no_program_has_pieces(to_local):
    def work():
        mesh = dist.ProcessMesh([0])
        f = dtensor_to_local if to_local else dtensor_from_local
        g = paddle.jit.to_static(lambda x: f(x, mesh, [dist.Shard(0)]))
        with pytest.raises(NotImplementedError, match="in a program"):
            g(paddle.ones([2]))

    work()


def test_meshes():
    def work():
        assert dist.get_mesh() is None
        mesh = dist.auto_parallel.create_mesh([("dp", 2)])
        return dist.get_mesh() is mesh, mesh.dim_names

    assert dist.spawn(work, nprocs=2).results == [(True, ["dp"])] * 2
    with pytest.raises(TypeError, match="set_mesh of 3"):
        dist.set_mesh(3)
    with pytest.raises(ValueError, match="of 1 ranks"):
        dist.auto_parallel.create_mesh([("dp", 2)])


def test_kinds_of_terms():
    kinds = [getattr(dist.ReduceType, f"kRed{k}") for k in ("Sum", "Max", "Min", "Prod", "Avg")]
    shown = [repr(dist.Partial(k)) for k in kinds]
    assert shown == [f"Partial(reduce_type={k})" for k in ("SUM", "MAX", "MIN", "PROD", "AVG")]


# ---- layers --------------------------------------------------------------------------------------


def test_shard_layer():
    """Weights by columns, all else whole; the functions see inputs and outputs."""

    def columns(name, layer, mesh):
        if isinstance(layer, nn.Linear):
            dist.shard_tensor(layer.weight, mesh, [dist.Shard(1)])

    def work():
        paddle.seed(1)
        net = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1D(6))
        expected = net(paddle.ones([4, 4]) * 2).numpy()
        seen = []
        dist.shard_layer(
            net, dist.ProcessMesh([0, 1]), columns,
            lambda inputs, mesh: [dist.shard_tensor(inputs[0], mesh, [dist.Shard(0)]) * 2],
            lambda y, mesh: seen.append(y.placements) or dist.reshard(y, mesh, [dist.Shard(0)]),
        )  # fmt: skip
        y = net(paddle.ones([4, 4]))
        assert net[1]._mean.placements == [dist.Replicate()]
        assert net[0].weight.placements == [dist.Shard(1)]
        np.testing.assert_allclose(y.numpy(), expected, atol=1e-6)
        return len(seen), y._local_shape

    assert dist.spawn(work, nprocs=2).results == [(1, [2, 6])] * 2


@pytest.mark.parametrize(
    ("make", "place", "message"),
    [
        (lambda k: nn.Linear(4, 2 + k), None, "weight: float32[4, 2] in rank 0, float32[4, 3]"),
        (
            lambda k: nn.Linear(4, 2),
            lambda k: dist.Shard(k),
            "as [Shard(dim=0)] in rank 0, as",
        ),
        (lambda k: paddle.seed(k) and nn.Linear(4, 2), None, "weight: float32[4, 2] with sum"),
        (lambda k: nn.Linear(4, 2, bias_attr=None if k else False), None, "bias: none in rank 0"),
    ],
)
def test_ranks_that_disagree(make, place, message):
    def work():
        rank = dist.get_rank()
        paddle.seed(1)
        net = make(rank)

        def fn(name, layer, mesh):
            if place:
                dist.shard_tensor(layer.weight, mesh, [place(rank)])

        dist.shard_layer(net, dist.ProcessMesh([0, 1]), fn)

    for found in raised(work):
        assert ": the ranks of {shape: [2]" in found
        assert found.startswith(f"shard_{'tensor of linear_' if place else 'layer'}")
        assert message in found


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda k: (paddle.ones([4, 2 + k]), dist.Shard(0)), "float32[4, 2] in rank 0"),
        (lambda k: (paddle.ones([4], "int32" if k else "int64"), dist.Shard(0)), "int32[4] in"),
        (lambda k: (paddle.ones([4, 2]), dist.Shard(k)), "as [Shard(dim=0)] in rank 0, as [Shard"),
        (lambda k: (paddle.full([4], k), dist.Shard(0)), "tensor: float32[4] with sum"),
    ],
)
def test_ranks_that_disagree_about_a_tensor(make, message):
    def work():
        tensor, placement = make(dist.get_rank())
        dist.shard_tensor(tensor, dist.ProcessMesh([0, 1]), [placement])

    assert all("shard_tensor of" in found and message in found for found in raised(work))


@pytest.mark.parametrize(
    ("others", "names"), [([1, 0], ["x"]), ([0, 1], ["y"]), ([[0, 1]], ["x", "y"])]
)
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("what", ["shard_tensor of float32[4]", "shard_layer"])
def test_ranks_that_disagree_about_the_mesh(others, names, first, what):
    """Also a mesh that one rank has used before and the other has not."""

    def work():
        mesh, x = dist.ProcessMesh([0, 1], dim_names=["x"]), paddle.ones([4])
        if first:
            dist.shard_tensor(x, mesh, [dist.Shard(0)])
        if dist.get_rank():
            mesh = dist.ProcessMesh(others, dim_names=names)
        if what == "shard_layer":
            dist.shard_layer(nn.Linear(2, 2), mesh)
        dist.shard_tensor(x, mesh, [dist.Shard(0)])

    for found in raised(work):
        assert found.startswith(f"{what}: the ranks of {{shape: [")
        assert "the mesh: {shape: [2], process_ids: [0,1], dim_names: [x]} in rank 0" in found


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda x: dist.shard_tensor(x, [0], [dist.Shard(0)]), TypeError, r"the mesh \[0\]"),
        (lambda x: dist.shard_tensor(x, None, []), TypeError, "the mesh None"),
        (
            lambda x: dist.shard_tensor(x, dist.ProcessMesh([0]), dist.Shard(0)),
            ValueError,
            r"placements Shard\(dim=0\) on the mesh",
        ),
        (
            lambda x: dist.shard_tensor(x, dist.ProcessMesh([0]), [dist.Shard("a")]),
            TypeError,
            r"Shard\('a'\)",
        ),
        (
            lambda x: dist.shard_tensor(x, dist.ProcessMesh([0]), [dist.Partial("most")]),
            ValueError,
            r"Partial\(reduce_type=MOST\)",
        ),
        (
            lambda x: dist.parallelize(
                nn.Linear(1, 1), None, dist.ProcessMesh([0]), {"mp_config": {"plan": {}}}
            ),
            ValueError,
            r"mp_config\['plan'\]",
        ),
        (dist.unshard_dtensor, ValueError, r"float32\[4\], which lies on no mesh"),
    ],
)
def test_what_is_no_mesh_and_no_placement(make, error, message):
    with pytest.raises(error, match=message):
        make(paddle.ones([4]))


@pytest.mark.parametrize("name", ["scale", "an outer tensor", ""])
def test_whole_tensors_of_a_program_are_the_same_in_all_ranks(name):
    """A captured step counts them as whole: ranks that give others would be silently wrong."""

    def work():
        x = dist.shard_tensor(paddle.ones([4]), dist.ProcessMesh([0, 1]), [dist.Shard(0)])
        scale = paddle.to_tensor([2.0 + bool(name) * dist.get_rank()])
        if "outer" in name:
            return paddle.jit.to_static(lambda x: x * scale)(x).tolist()
        return paddle.jit.to_static(lambda x, scale: x * scale)(x, scale).tolist()

    if name:
        for found in raised(work):
            assert f"({name}=float32[1] with sum" in found
    else:
        assert dist.spawn(work, nprocs=2).results == [[2.0] * 4] * 2


def test_ranks_of_a_grid_that_disagree():
    """All ranks hear of it, those in other rows and columns too."""

    def work():
        paddle.seed(5 if dist.get_rank() == 3 else 1)
        dist.shard_layer(nn.Linear(2, 2), dist.ProcessMesh([[0, 1], [2, 3]]))

    assert all("in rank 3" in message for message in raised(work, 4))


def test_what_is_no_layer():
    mesh = dist.ProcessMesh([0])
    with pytest.raises(ValueError, match="without a process_mesh"):
        dist.shard_layer(nn.Linear(1, 1), None)
    with pytest.raises(TypeError, match="shard_layer of 3"):
        dist.shard_layer(3, mesh)
    with pytest.raises(TypeError, match=r"shard_layer of \[0\]"):
        dist.shard_layer(nn.Linear(1, 1), [0])


def test_plain_code_goes_on_in_c():
    """After the first tensor in pieces kernels and programs still serve what is whole."""
    with flag(True):
        before = hot.eager_is_compiled()
        dist.shard_tensor(paddle.ones([4]), dist.ProcessMesh([0]), [dist.Shard(0)])
        assert before == hot.eager_is_compiled() == hot.has_compiler()


def test_a_mesh_of_some_ranks_leaves_the_others_out():
    """Two ranks use a mesh of their own first; then all have the same groups."""

    def work():
        if dist.get_rank() < 2:
            dist.shard_tensor(paddle.ones([4]), dist.ProcessMesh([0, 1]), [dist.Shard(0)]).numpy()
        x = dist.shard_tensor(paddle.arange(6), dist.ProcessMesh([0, 1, 2]), [dist.Shard(0)])
        return x.tolist()

    assert dist.spawn(work, nprocs=3).results == [[*range(6)]] * 3
