"""Checks of 19_less_memory/gather."""

from types import SimpleNamespace

import numpy as np

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle import nn
from minipaddle.distributed import Partial, Replicate, Shard
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Gather before use, scatter after",
    level="medium",
    minutes=30,
    before=("19_less_memory/states",),
    slots={
        "sharding.in_use": "in_use",
        "zero.gradient_of": "gradient_of",
        "zero.value_of": "value_of",
    },
    hints=(
        "A weight is cut for tensor parallel, and stored in pieces too: on what may an operator "
        "compute, and what has to be there whole?",
        "in_use changes some of the placements and moves once. gradient_of and value_of are a "
        "`reshard` each; which of them leaves something behind?",
        "in_use: nothing stored → self; else moved to Replicate() where p.stored, p elsewhere\n"
        "gradient_of: no gradient, or not trained → as it is; else resharded to self.layouts[p];"
        "\n    p keeps that one if self.shard_fn.keeps_gradients\n"
        "value_of: p, resharded to self.layouts[p]",
    ),
    wrong={
        "pieces where operators want the whole": (
            "return self.move_to(used, view) → return self"
        ),
        "tensor parallel undone": (
            "dist.Replicate() if p.stored else p → dist.Replicate()"
        ),
        "what is whole is moved, too": (
            "not any(p.stored for p in self.placements) → False"
        ),
        "only what is stored on all axes": "any(p.stored for p in self.placements) → "
                                           "all(p.stored for p in self.placements)",
        "the wrong ones gathered": (
            "dist.Replicate() if p.stored else p → p if p.stored else dist.Replicate()"
        ),
        "terms as a gradient": "gradient_of(): dist.reshard(p.grad, *self.layouts[p]) → p.grad",
        "whole gradients stay": "self.shard_fn.keeps_gradients → False",
        "gradients in pieces in stage 1": "self.shard_fn.keeps_gradients → True",
        "a gradient wherever there is none": "p.grad is None or p.stop_gradient → p.stop_gradient",
        "what is not trained is moved": "p.grad is None or p.stop_gradient → p.grad is None",
        "the step on whole weights": "return dist.reshard(p, *self.layouts[p]) → return p",
        "the gradient for the value": (
            "return dist.reshard(p, *self.layouts[p]) → "
            "return dist.reshard(p.grad, *self.layouts[p])"
        ),
    },
)  # fmt: skip


class Moved:
    """A piece that notes how it was moved."""

    def __init__(self, *placements):
        self.placements, self.asked = placements, []

    def move_to(self, placements, view):
        self.asked.append((placements, view))
        return "moved"


@exercise.example
def what_operators_take(yours):
    """Whole where it is stored, and nowhere else; a piece of which nothing is stored, as it is."""
    stored = Shard(0, stored=True)
    for before, after in (
        ([stored, Shard(1)], (Replicate(), Shard(1))),
        ([Shard(0), Shard(1, 2, stored=True)], (Shard(0), Replicate())),
        ([stored, Shard(1, stored=True)], (Replicate(), Replicate())),
        ([Partial(), stored], (Partial(), Replicate())),
        ([stored], (Replicate(),)),
        ([Replicate()] * 8 + [stored], (Replicate(),) * 9),
        ([Shard(0), Replicate()], None),
        ([Partial()], None),
        ([], None),
    ):
        piece, view = Moved(*before), (1,) * len(before)
        got = yours.in_use(piece, view)
        given = {"placements": before, "stored": [p.stored for p in before]}
        if after is None:
            expect_that(got is piece and not piece.asked, "the piece itself, not moved",
                        given=given, got=piece.asked or got)  # fmt: skip
        else:
            expect(piece.asked, [(after, view)], given=given, why="the moves")
            expect(got, "moved", given=given)


def linear(dtype: str):
    """A layer with small weights."""
    paddle.seed(1)
    net = nn.Linear(4, 6)
    net.to(dtype=dtype)
    for p in net.parameters():
        p.set_value(paddle.to_tensor(np.random.default_rng(2).normal(size=p.shape) * 1e-7, dtype))
    return net, np.random.default_rng(0).normal(size=(4, 4)).astype(dtype)


def stepped(yours, stage: int, dtype: str):
    """What a rank sees around a step: placements of gradients, values, and weights afterwards."""
    mesh = dist.ProcessMesh([0, 1], dim_names=["dp"])
    net, x = linear(dtype)
    fixed = paddle.create_parameter([4], "float32", is_bias=True)
    made = [*net.parameters(), fixed]
    sgd = paddle.optimizer.SGD(0.5, parameters=made)
    dist.shard_layer(net, mesh)
    kind = getattr(dist, f"ShardingStage{stage}")
    sgd = dist.shard_optimizer(sgd, kind("dp", mesh))
    stored = [p._local_shape for p in made]
    none = [yours.gradient_of(sgd, p) for p in made]
    y = net(dist.shard_tensor(paddle.to_tensor(x), mesh, [Shard(0)]))
    (y**2).sum().backward()
    fixed.grad = paddle.ones([4])
    fixed.stop_gradient = True
    before = [p.grad for p in made]
    expect_that(yours.gradient_of(sgd, fixed) is fixed.grad is before[2], "a gradient as it is, of "
                "what is not trained")  # fmt: skip
    pieces = [yours.gradient_of(sgd, p) for p in made[:2]]
    values = [yours.value_of(sgd, p) for p in made]
    kept = [p.grad is g for p, g in zip(made, pieces)]
    left = [p.grad is g for p, g in zip(made, before)]
    gradients = [(g.placements, g._local_shape, g.numpy()) for g in pieces]
    expect([v.stop_gradient for v in values], [False, False, True], given="a value's gradient")
    values = [(v.placements, v._local_shape, v.numpy()) for v in values]
    return none, stored, gradients, values, kept, left, [p.numpy() for p in made]


@exercise.example
def around_a_step(yours):
    """Two ranks, each stage: gradients and values in pieces, and what p.grad is afterwards."""
    halves, all_of = [[2, 6], [3], [2]], [[4, 6], [6], [4]]
    for stage, dtype in ((1, "float64"), (2, "float32"), (3, "float64"), (3, "float32")):
        net, x = linear(dtype)
        w, b = (p.numpy() for p in net.parameters())
        slope = 2 * (x @ w + b)
        wanted, whole = [x.T @ slope, slope.sum(0)], [w, b, np.zeros(4)]
        rtol = 1e-9 if dtype == "float64" else 1e-4
        with exercise.plugged(yours):
            args = yours, stage, dtype
            found = dist.spawn(stepped, args=args, nprocs=2, timeout=20.0).results
        for none, stored, gradients, values, kept, left, after in found:
            given = {"stage": stage, "dtype": dtype}
            expect(none, [None] * 3, given=given, why="before any backward")
            expect(stored, halves if stage == 3 else all_of, given=given, why="what is stored")
            for k, (place, shape, value) in enumerate(gradients):
                expect((place, shape), ([Shard(0)], halves[k]), given=given, why="a gradient")
                expect(value, wanted[k], given=given, rtol=rtol, atol=0)
            for k, (place, shape, value) in enumerate(values):
                expect((place, shape), ([Shard(0)], halves[k]), given=given, why="a value")
                expect(value, whole[k], given=given, rtol=1e-7, atol=0)
                expect(str(value.dtype), dtype if k < 2 else "float32", given=given)
            for value, p in zip(after, whole, strict=True):
                expect(value, p, given=given, rtol=1e-7, atol=0, why="parameters afterwards")
            expect(kept, [stage > 1] * 2, given=given, why="is p.grad the piece afterwards?")
            expect(left[:2], [stage == 1] * 2, given=given, why="is p.grad as it was?")


def train(stage: int, static: bool):
    """Losses of a perceptron, tensor parallel and in a stage of ZeRO if there is one."""
    paddle.seed(3)
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 5))
    adam = paddle.optimizer.Adam(0.05, parameters=net.parameters())
    x = paddle.to_tensor(np.random.default_rng(0).normal(size=(8, 6)).astype("float32"))
    if stage:
        mesh = dist.ProcessMesh([[0, 1], [2, 3]], dim_names=["dp", "mp"])
        dist.shard_tensor(net[0].weight, mesh, [Replicate(), Shard(1)])
        dist.shard_tensor(net[2].weight, mesh, [Replicate(), Shard(0)])
        dist.shard_layer(net, mesh)
        adam = dist.shard_optimizer(adam, getattr(dist, f"ShardingStage{stage}")("dp"))
        x = dist.shard_tensor(x, mesh, [Shard(0)])

    def step(x):
        loss = (net(x) ** 2).mean()
        loss.backward()
        adam.step()
        adam.clear_grad()
        return loss

    step = paddle.jit.to_static(step) if static else step
    return [float(step(x)) for _ in range(3)]


@exercise.example
def a_model_trains_on_it(yours):
    """Four ranks, data by tensor parallel in stage 3: the losses of one process."""
    expected = train(0, False)
    for static in (False, True):
        with exercise.plugged(yours):
            found = dist.spawn(train, args=(3, static), nprocs=4, timeout=20.0).results
        for got in found:
            expect(got, expected, given={"stage": 3, "captured": static}, rtol=1e-5)


@exercise.example
def a_gradient_of_nothing(yours):
    """A parameter without a gradient, trained or not: None, and nothing is moved."""
    for stopped in (False, True):
        p = SimpleNamespace(grad=None, stop_gradient=stopped)
        optimizer = SimpleNamespace(layouts={}, shard_fn=SimpleNamespace(keeps_gradients=True))
        expect(yours.gradient_of(optimizer, p), None, given={"stop_gradient": stopped})
