"""Recomputation gives the same numbers: of segments, with random numbers, on tensors in pieces."""

import inspect
import json
from pathlib import Path

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle import nn
from minipaddle.distributed import fleet
from minipaddle.distributed.fleet.recompute import recompute_hybrid, recompute_sequential

from .models import R, first_axis, megatron, replicated

LAYERS = 6


def layers():
    """A chain with random numbers and statistics; odd layers are wide, so that they can be cut."""
    made = []
    for _ in range(LAYERS // 2):
        made += [nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Dropout(0.3), nn.Linear(8, 6))]
        made += [nn.Sequential(nn.Identity(), nn.BatchNorm1D(6))]
    return nn.Sequential(*made)


def ways(segments: int):
    chain = lambda net, x: recompute_sequential({"segments": segments}, net, x)
    return {
        "plain": lambda net, x: net(x),
        "segments": chain,
        "list": lambda net, x: chain([*net], x),
    }


def train(way, segments: int, static: bool, mesh=None, place=None, inputs=None):
    """Losses, weights and statistics after some steps."""
    paddle.seed(5)
    net, run = layers(), ways(segments)[way]
    x = paddle.to_tensor(np.random.default_rng(0).normal(size=(8, 6)).astype("float32"))
    if mesh is not None:
        mesh = dist.ProcessMesh(mesh)
        for name, p in net.named_parameters():
            dist.shard_tensor(p, mesh, place(name, p.spec))
        x = dist.shard_tensor(x, mesh, inputs)
    optimizer = paddle.optimizer.SGD(0.05, parameters=net.parameters())

    def step(x):
        loss = (run(net, x) ** 2).mean() + net[0][0].weight.sum()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    step = paddle.jit.to_static(step) if static else step
    losses = [float(step(x)) for _ in range(3)]
    return losses, {name: x.numpy() for name, x in net.state_dict().items()}


def compare(found, wanted, **close):
    np.testing.assert_allclose(found[0], wanted[0], **(close or {"rtol": 1e-6}))
    for name, value in wanted[1].items():
        np.testing.assert_allclose(found[1][name], value, rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("static", [False, True], ids=["eager", "program"])
@pytest.mark.parametrize("segments", [1, 2, 3, 4, 6])
def test_segments(segments, static):
    wanted = train("plain", segments, static)
    for way in ("segments", "list"):
        compare(train(way, segments, static), wanted)


MESHES = {
    "data": ([0, 1], replicated, [dist.Shard(0)]),
    "tensor": ([0, 1], megatron, []),
    "ZeRO-3": ([0, 1, 2], first_axis, [dist.Shard(0)]),
    "data x tensor": ([[0, 1], [2, 3]], lambda n, s: megatron(n, s, [R]), [dist.Shard(0)]),
}


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize("static", [False, True], ids=["eager", "program"])
@pytest.mark.parametrize("mesh", MESHES)
def test_tensors_in_pieces(mesh, static):
    wanted = train("plain", 3, static)
    args = "segments", 3, static, *MESHES[mesh]
    for found in dist.spawn(train, args=args, nprocs=np.size(MESHES[mesh][0])).results:
        compare(found, wanted, rtol=1e-5)


def test_what_is_kept_and_computed_again():
    """A call of each function in all segments but the last is made twice, of the last once."""
    calls = []

    def counted(k):
        return lambda x: calls.append(k) or paddle.sin(x)

    x = paddle.ones([2], "float32")
    x.stop_gradient = False
    y = recompute_sequential({"segments": 3}, [counted(k) for k in range(7)], x)
    assert calls == [*range(7)]
    y.sum().backward()
    assert calls[7:] == [2, 3, 0, 1]


def test_several_arguments_and_the_hybrid():
    x, y = (paddle.to_tensor([v], stop_gradient=False) for v in (2.0, 3.0))
    found = recompute_sequential({"segments": 2}, [paddle.multiply, paddle.exp], x, y)
    found.backward()
    assert x.grad.item() == pytest.approx(3 * np.exp(6.0), rel=1e-6)
    x.clear_grad()
    recompute_hybrid({"mp_group": None, "offload": False}, paddle.multiply, x, y).backward()
    assert x.grad.item() == 3.0


def test_what_is_refused():
    x = paddle.ones([1])
    with pytest.raises(ValueError, match=r"segments=3 of 2 functions(?s:.*)1 to 2"):
        recompute_sequential({"segments": 3}, [paddle.exp] * 2, x)
    with pytest.raises(ValueError, match="ctx has 'segment'"):
        recompute_sequential({"segment": 3}, [paddle.exp] * 2, x)
    with pytest.raises(TypeError, match=r"ctx=2(?s:.*)segments"):
        recompute_sequential(2, [paddle.exp] * 2, x)
    for name in ("offload", "partition"):
        with pytest.raises(NotImplementedError, match=f"recompute_hybrid with {name}=True"):
            recompute_hybrid({name: True}, paddle.exp, x)


@pytest.mark.parametrize("name", ["recompute", "recompute_sequential", "recompute_hybrid"])
def test_signatures(name):
    data = Path(__file__).parents[1] / "data" / "distributed_signatures.json"
    known = json.loads(data.read_text())["signatures"]
    module = inspect.getmodule(recompute_hybrid)
    own = [p.name for p in inspect.signature(getattr(module, name)).parameters.values()]
    assert own == [p["name"] for p in known[f"paddle.distributed.fleet.recompute.{name}"]]
    assert fleet.recompute is fleet.utils.recompute is module.recompute
