"""Collectives of programs in pieces: started early, awaited late, in one order in all ranks."""

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle.engine.eager.device import NUMPY
from minipaddle.engine.executors.compiler import compiler
from minipaddle.engine.ir.interpreter import Run
from minipaddle.engine.passes.manager import optimized
from minipaddle.ir.parser import parse
from minipaddle.nn import functional as F

from .models import GPT
from .test_training import WAYS, batch

pytestmark = pytest.mark.sweep(one_in=3)

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "all_fold")


def step_of(way: str, backend: str, rows: int = 4):
    """A training step that was run once, and its program of this rank."""
    mesh, place, inputs = WAYS[way]
    paddle.seed(3)
    net, mesh = GPT(), dist.ProcessMesh(mesh)
    for name, p in net.named_parameters():
        dist.shard_tensor(p, mesh, place(name, p.spec))
    x, y = (dist.shard_tensor(paddle.to_tensor(a[:rows]), mesh, inputs) for a in batch("gpt"))
    optimizer = paddle.optimizer.AdamW(0.01, parameters=net.parameters())

    @paddle.jit.to_static(backend=backend)
    def step(x, y):
        scores = net(x)
        loss = F.cross_entropy(scores.reshape([-1, scores.shape[-1]]), y.reshape([-1]))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    step(x, y)
    ((part, _),) = step.concrete_program.executables.parts.values()
    return step, part


def collectives(way: str, rows: int) -> tuple[list, list, int | None]:
    """The names of all records after the passes, and what is started; in the first rank also how
    many are started without overlap.
    """
    _, part = step_of(way, "interpreter", rows)
    records = optimized(part).program.records
    started = [(r.op.name, str(r.attrs.get("collective"))) for r in records if is_start(r)]
    alone = None
    if dist.get_rank() == 0:
        alone = sum(map(is_start, optimized(part, overlap=False).program.records))
    return [r.op.name for r in records], started, alone


def is_start(record) -> bool:
    return record.op.name.startswith("start_")


def test_data_parallel_is_one_message():
    """All gradients and the loss fit into one bucket; states are written when it has come."""
    names, _, _ = dist.spawn(collectives, args=("data, 2 ranks", 4), nprocs=2).results[0]
    assert names.count("start_all_reduce") == 1
    assert len(names) - names.index("finish_all_reduce") > 10


@pytest.mark.parametrize("way", WAYS)
def test_all_ranks_start_in_one_order(way):
    """Also where pieces are of different sizes, or empty, as of two rows on three ranks."""
    results = dist.spawn(collectives, args=(way, 2), nprocs=np.size(WAYS[way][0])).results
    (_, kinds, alone), *_ = results
    for names, started, _ in results:
        assert started == kinds
        assert len(started) == alone > 0
        assert not set(names) & set(COLLECTIVES)
        waits = [k for k, name in enumerate(names) if name.startswith("finish_")]
        assert len(waits) == len(started)


def test_weights_and_gradients_travel_in_groups():
    """ZeRO's third stage: fewer messages, the same numbers."""

    def work(switches):
        paddle.seed(1)
        net = paddle.nn.Sequential(*(paddle.nn.Linear(16, 16) for _ in range(6)))
        sgd = paddle.optimizer.SGD(0.1, parameters=net.parameters())
        mesh, strategy = dist.ProcessMesh([0, 1], dim_names=["dp"]), paddle.static.BuildStrategy()
        net, sgd = dist.parallelize(net, sgd, mesh, {"dp_config": {"sharding_level": 3}})
        for name, value in switches.items():
            setattr(strategy, name, value)

        @paddle.jit.to_static(build_strategy=strategy)
        def step(x):
            loss = (net(x) ** 2).mean()
            loss.backward()
            sgd.step()
            sgd.clear_grad()
            return loss

        x = np.random.default_rng(0).normal(size=(6, 16)).astype("float32")
        x = dist.shard_tensor(paddle.to_tensor(x), mesh, [dist.Shard(0)])
        losses = [float(step(x)) for _ in range(3)]
        ((part, _),) = step.concrete_program.executables.parts.values()
        names = [r.attrs.get("collective") for r in optimized(part, switches).program.records]
        return losses, names.count("all_gather"), names.count("reduce_scatter")

    alone, together = (
        dist.spawn(work, args=(switches,), nprocs=2).results[0]
        for switches in ({"gathers_megabytes": 0, "fuse_all_reduce_ops": False}, {})
    )
    assert together[0] == alone[0]
    assert alone[1:] == (12, 12)
    assert max(together[1:]) <= 2


@pytest.mark.parametrize("seed", range(4))
def test_no_bucket_waits_for_one_that_needs_it(seed):
    """Random programs of collectives that need each other: alone in the world, a rank computes
    what they do without the pass.
    """
    draw, lines = np.random.default_rng(seed), ["program p(x: float32[4]) {"]
    kinds = {
        "all_reduce": "op='sum'",
        "all_gather": "nranks=1",
        "reduce_scatter": "nranks=1, op='sum'",
    }
    for time in range(1, 31):
        a, b = (f"v{k}" if k else "x" for k in draw.integers(0, time, 2))
        name = str(draw.choice([*kinds]))
        early = f"group=0, early=(({time},), 16, 1,)"
        of = [f"subtract({a}, {b})", f"{name}({a}, {kinds[name]}, {early})"]
        lines.append(f"v{time} = {draw.choice(of)} : float32[4]")
    results = ", ".join(f"v{time}" for time in range(1, 31))
    program = parse("\n".join([*lines, f"return {results}", "}"]))
    found = optimized(program, until="async_collectives").program
    x = np.arange(4, dtype="float32")
    np.testing.assert_array_equal(*(Run(NUMPY)(p, [x]) for p in (program, found)))
    starts = [r for r in found.records if r.op.name.startswith("start_")]
    assert len(starts) < sum(r.op.effect for r in program.records)


@pytest.mark.skipif(compiler() is None, reason="no C compiler")
def test_a_compiled_step_is_listed():
    def work():
        step, part = step_of("data, 2 ranks", "native")
        names = [state.name for state in part.states]
        listed = [[s.name for s in x.program.states[: len(names)]] for x in step.executables]
        return listed == [names], str(step)

    for listed, text in dist.spawn(work, nprocs=2).results:
        assert listed
        assert text.endswith("1 program: compiled>")
