"""Checks of 26_pipelines/tied."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle import nn
from minipaddle.distributed import fleet
from minipaddle.distributed.fleet.meta_parallel import LayerDesc, PipelineLayer, SharedLayerDesc
from minipaddle.learn import Exercise, expect
from minipaddle.nn import functional as F

exercise = Exercise(
    title="Tied weights: one weight in two stages",
    level="medium",
    minutes=25,
    slots={"pipeline.add_gradients": "add_gradients"},
    hints=(
        "Two ranks, one of them without a gradient. What does it have to bring to the sum, so "
        "that the other gets its own?",
        "A copy of the gradient, or zeros that lie as the weight does; then one sum over the "
        "group, in place; then it becomes the gradient.",
        "for each weight, group:\n"
        "    found: the gradient's array, or the weight's; if sharded, placed as the weight lies\n"
        "    a copy; zeros in its local piece if there is no gradient\n"
        "    group.all_reduce(local(found)); weight.grad = Tensor(found)",
    ),
    wrong={
        "who has none stays away": (
            "found = weight.array if weight.grad is None else weight.grad.array → "
            "found = weight.grad.array if weight.grad is not None else 0 * weight.array[:0]"
        ),
        "the weight for a gradient": "local(found)[...] = 0 → None",
        "nothing is added up": "group.all_reduce(local(found)) → None",
        "the mean": "group.all_reduce(local(found)) → group.all_reduce(local(found), 'avg')",
        "the largest": "group.all_reduce(local(found)) → group.all_reduce(local(found), 'max')",
        "the gradient stays": "weight.grad = Tensor(found) → Tensor(found)",
        "zeros for all": "if weight.grad is None: → if True:",
        "in memory that is another's": "found = found.copy() → None",
        "terms as they lie": "found = found.move_to(weight.array.placements) → None",
        "the first weight alone": "for weight, group in tied: → for weight, group in tied[:1]:",
    },
)  # fmt: skip


@exercise.mistake("the weight itself becomes the sum")
def add_gradients(tied):
    from minipaddle.distributed.pipeline.training import add_gradients as right

    right(tied)
    for weight, _ in tied:
        weight.set_value(weight.grad)


def summed(yours, gradients, shape):
    """What each rank has after it: [(gradient, weight)] for weights with these gradients."""
    rank, pairs, group = dist.get_rank(), [], dist.get_group()
    kept = []
    for k, each in enumerate(gradients):
        weight = paddle.create_parameter(list(shape), "float32", is_bias=True)
        weight.set_value(paddle.full(list(shape), 10.0 + k))
        if each[rank] is not None:
            memory = paddle.full([2, *shape], float(each[rank]))
            weight.grad = memory[0]
            kept.append((memory, float(each[rank])))
        pairs.append((weight, group))
    yours.add_gradients(pairs)
    intact = all(np.all(memory.numpy() == value) for memory, value in kept)
    found = [None if w.grad is None else w.grad.numpy() for w, _ in pairs]
    return found, [w.numpy() for w, _ in pairs], intact


def run(yours, gradients, shape=(2, 3)):
    results = dist.spawn(summed, args=(yours, gradients, shape), nprocs=2, timeout=20.0).results
    given = {"gradients of rank 0 and rank 1": gradients}
    for found, weights, intact in results:
        for k, (got, each) in enumerate(zip(found, gradients, strict=True)):
            total = np.full(shape, sum(g for g in each if g is not None), "float32")
            expect(got, total, given=given, why=f"the gradient of weight {k}")
            expect(weights[k], np.full(shape, 10.0 + k, "float32"), given=given, why="the weight")
        expect(intact, True, given=given, why="memory that a gradient was a view of, unchanged")


@exercise.example
def two_ranks(yours):
    """Both have a gradient, one of them, none of them; several weights; none at all."""
    run(yours, [(1, 5)])
    run(yours, [(None, 5)])
    run(yours, [(3, None)])
    run(yours, [(None, None)])
    run(yours, [(1, 2), (None, 4), (-8, 8)])
    run(yours, [(k, 2 * k) for k in range(9)])
    run(yours, [])


@exercise.example
def large_and_infinite(yours):
    """A gradient of 1,200 elements; one that is infinite in a rank is so in both."""
    run(yours, [(1, 5)], (40, 30))
    run(yours, [(float("inf"), 5), (-float("inf"), None)])


@exercise.property(examples=4, a=st.integers(-9, 9), b=st.integers(-9, 9), n=st.integers(0, 3))
def any_gradients(yours, a, b, n):
    """The sum in both, whatever the shape."""
    run(yours, [(a, b)], (n, 2))


def train(tied: bool, mesh_of_stage: int):
    """Losses of a model whose first layer is its last one, too."""
    stages = 2 if tied else 1
    strategy = fleet.DistributedStrategy()
    strategy.hybrid_configs = {"pp_degree": stages, "mp_degree": mesh_of_stage}
    strategy.pipeline_configs = {"accumulate_steps": 2, "micro_batch_size": 4}
    fleet.init(is_collective=True, strategy=strategy)
    paddle.seed(3)
    head = lambda layer, x: paddle.matmul(x, layer.weight, transpose_y=True)
    words = "weight", 7, 6
    layers = [SharedLayerDesc("words", nn.Embedding, None, *words), LayerDesc(nn.Linear, 6, 6),
              nn.Tanh(), SharedLayerDesc("words", nn.Embedding, head, *words)]  # fmt: skip
    loss = lambda y, label: F.cross_entropy(y.reshape([-1, 7]), label.reshape([-1]))
    model = fleet.distributed_model(PipelineLayer(layers, loss_fn=loss))
    if mesh_of_stage > 1:
        mesh = fleet.get_hybrid_communicate_group().mesh
        for p in model.parameters():
            if p.shape == [7, 6]:
                dist.shard_tensor(p, mesh, [dist.Shard(0)])
    sgd = paddle.optimizer.SGD(0.5, parameters=model.parameters())
    x = paddle.to_tensor(np.random.default_rng(0).integers(0, 7, [8, 3]))
    return [model.train_batch((x, (x + 1) % 7), sgd).item() for _ in range(3)]


@exercise.example
def a_pipeline_trains_on_it(yours):
    """Two stages share the words: the losses of one; also with the words in pieces."""
    expected = dist.spawn(train, args=(False, 1), nprocs=1).results[0]
    with exercise.plugged(yours):
        for ranks in (1, 2):
            found = dist.spawn(train, args=(True, ranks), nprocs=2 * ranks, timeout=40.0).results
            for losses in found:
                expect(losses, expected, given={"ranks in each stage": ranks}, rtol=1e-5)
