"""ZeRO's stages as bars: the formula, and what the plan of a rank's compiled program holds."""

import re

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle import nn, viz
from minipaddle.engine.core.dispatch import current
from minipaddle.engine.executors.compiler import compiler
from minipaddle.viz.zero_stages import bytes_of_stage, count_bytes

RANKS, WIDE = 2, 32


@pytest.fixture(autouse=True)
def eager_as_before():
    """Arrays in pieces put another interpreter in charge of a thread."""
    top, kind = current.top, type(current.top)
    yield
    top.__class__ = kind


def captured(stage: int):
    """A training step of a rank that leaves its gradients."""
    paddle.seed(0)
    mesh, net = dist.ProcessMesh([*range(RANKS)], dim_names=["dp"]), nn.Sequential()
    for k in range(4):
        net.add_sublayer(str(k), nn.Linear(WIDE, WIDE, bias_attr=False))
    dist.shard_layer(net, mesh)
    adam = paddle.optimizer.Adam(parameters=net.parameters())
    if stage:
        adam = dist.shard_optimizer(adam, getattr(dist, f"ShardingStage{stage}")("dp"))

    @paddle.jit.to_static(backend="native" if compiler() else "interpreter")
    def step(x):
        (net(x) ** 2).mean().backward()
        adam.step()

    x = np.random.default_rng(0).normal(size=(2, WIDE)).astype("float32")
    step(dist.shard_tensor(paddle.to_tensor(x), mesh, [dist.Shard(0)]))
    return step


@pytest.fixture(scope="module")
def steps():
    return {k: dist.spawn(captured, args=(k,), nprocs=RANKS).results[0] for k in range(4)}


def test_the_formulas_are_the_papers():
    n = 64
    sums = [sum(bytes_of_stage(k, n).values()) for k in range(4)]
    assert sums == [16, 4 + 12 / n, 2 + 14 / n, 16 / n]
    single = [sum(bytes_of_stage(k, n, 4, 4, 8).values()) for k in range(4)]
    assert single == [16, 8 + 8 / n, 4 + 12 / n, 16 / n]


def test_the_program_of_a_rank_holds_what_the_formula_says(steps):
    weights = 4 * WIDE * WIDE
    for stage, step in steps.items():
        found = count_bytes(step)
        for kind, nbytes in bytes_of_stage(stage, RANKS, 4, 4, 8).items():
            if (stage, kind) == (1, "gradients"):  # a program joins the terms once, into pieces
                nbytes = nbytes / RANKS
            assert found[kind] == pytest.approx(nbytes * weights, rel=0.03), (stage, kind)


def test_bars_and_words(steps):
    picture = viz.stages(steps, RANKS)
    first, *lines = str(picture).splitlines()
    assert first == "2 ranks, 4,096 weights: by formula / in its program"
    assert lines[0] == (
        "stage 0: weights 16.0 KB / 16.0 KB, gradients 16.0 KB / 16.0 KB, states 32.0 KB / 32.0 KB"
    )
    assert [line for line in lines if "weights 8.0 KB / 8.0 KB" in line] == [lines[6]]
    (axis,) = picture.figure.axes
    assert [t.get_text() for t in axis.get_xticklabels()] == [f"stage {k}" for k in range(4)]
    bars = [(p.get_x(), p.get_y(), p.get_height()) for p in axis.patches]
    assert len(bars) == 4 * (3 + 4)
    tops = {}
    for x, bottom, height in bars:  # a bar stands on the one below it
        assert bottom == pytest.approx(tops.get(x, 0.0))
        tops[x] = bottom + height
    formula = [top for x, top in sorted(tops.items())][::2]
    assert formula == pytest.approx([64, 48, 40, 32], rel=1e-2)  # KB: 16, 12, 10, 8 bytes each
    assert picture.png().startswith(b"\x89PNG")
    assert re.search(r"working memory [\d.]+ KB", lines[1])


def test_what_was_not_captured_is_refused():
    with pytest.raises(TypeError, match=r"the memory of int(?s:.*)to_static"):
        viz.stages({0: 3}, 2)
