"""Checks of 26_pipelines/halves."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle import nn
from minipaddle.distributed import fleet
from minipaddle.distributed.fleet.meta_parallel import LayerDesc, PipelineLayer
from minipaddle.engine.core.record import Spec
from minipaddle.engine.eager.device import NUMPY
from minipaddle.engine.eager.tracer import trace
from minipaddle.engine.ir.interpreter import Run
from minipaddle.engine.ir.program import ITEM, Program
from minipaddle.engine.ir.verifier import verify
from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.nn import functional as F

exercise = Exercise(
    title="Split off the gradients of the weights",
    level="hard",
    minutes=45,
    before=("11_passes/dead_code", "26_pipelines/one_each"),
    slots={"pipeline.split_weights": "split_weights"},
    hints=(
        "Take the outputs of the weights away. What is dead code now, what is alive?",
        "The second half uses values of the first: `residuals_of` finds them. Which of them does "
        "the first half already give, and which come from the inputs of the backward?",
        "early: what the gradients of the inputs need, and each ITEM of what is early\n"
        "late: all other records\n"
        "kept: residuals_of(late, backward, the gradients of the weights)\n"
        "first: the early records; its outputs are the gradients of the inputs, then what of kept\n"
        "    is early and not among them yet\n"
        "second: takes kept, has the late records, gives the weights' gradients",
    ),
    wrong={
        "no halves": (
            "early = set(needed(Program('first', backward.inputs, [], backward.records, own))) → "
            "early = set(backward.records)"
        ),
        "items left behind": "r.op is ITEM and r.inputs[0] in early → False",
        "all items go first": "r.op is ITEM and r.inputs[0] in early → r.op is ITEM",
        "all is computed twice": (
            "[r for r in backward.records if r not in early] → backward.records"
        ),
        "late values that nobody needs": (
            "pruned(Program('second', kept, [], late, weights)) → "
            "Program('second', kept, [], late, weights)"
        ),
        "the first half does all of it": (
            "[r for r in backward.records if r in early] → backward.records"
        ),
        "nothing is handed over": "[*own, *handed] → own",
        "a gradient of an input is given twice": "r in early and r not in own → r in early",
        "inputs are given, too": "r in early and r not in own → r not in own",
        "the weights' gradients first": (
            "backward.outputs[:inputs], backward.outputs[inputs:] → "
            "backward.outputs[inputs:], backward.outputs[:inputs]"
        ),
    },
)  # fmt: skip


@exercise.mistake("the given program is changed")
def split_weights(backward, inputs):
    from minipaddle.distributed.pipeline.parts import split_weights as right

    first, second = right(backward, inputs)
    backward.records = first.records
    return first, second


@exercise.mistake("the second half takes all inputs of the backward")
def split_weights(backward, inputs):  # noqa: F811
    from minipaddle.distributed.pipeline.parts import split_weights as right

    first, second = right(backward, inputs)
    more = [r for r in backward.inputs if r not in second.inputs]
    second.inputs = [*second.inputs, *more]
    return first, second


def backward_of(function, arrays, wanted: int) -> tuple[Program, int]:
    """(the backward program of a function, how many of its first outputs are for arguments).

    `arrays` are its arguments, of which the first `wanted` want a gradient.
    """
    xs = [paddle.to_tensor(a) for a in arrays]
    for k, x in enumerate(xs):
        x.stop_gradient = k >= wanted
    static = paddle.jit.to_static(function, backend="interpreter")
    static(*xs)
    captured = static.concrete_program
    return captured.backward, len(captured.walk.inputs)


def judge(yours, backward: Program, inputs: int, given) -> None:
    """Both halves are programs, compute what the whole does, and have what belongs to them."""
    records, outputs = [*backward.records], [*backward.outputs]
    first, second = yours.split_weights(backward, inputs)
    expect_that(
        backward.records == records and backward.outputs == outputs, "an unchanged program",
        given=given,
    )  # fmt: skip
    verify(first)
    verify(second)
    rng = np.random.default_rng(0)
    arrays = [
        (rng.normal(size=r.shape) if r.dtype.kind == "f" else rng.integers(0, 2, r.shape)).astype(
            r.dtype
        )
        for r in backward.inputs
    ]
    whole = Run(NUMPY)(backward, arrays)
    known = dict(zip(backward.inputs, arrays, strict=True))
    expect([*first.inputs], [*backward.inputs], given=given, why="what the first half takes")
    found = Run(NUMPY)(first, arrays)
    known |= dict(zip(first.outputs, found, strict=True))
    tuples = [r for r in (*first.outputs, *second.inputs) if r.dtype is None]
    expect_that(not tuples, "values between the halves, not the results of an operator as a whole",
                given=given, got=[r.op.name for r in tuples])  # fmt: skip
    missing = [r for r in second.inputs if r not in known]
    expect_that(not missing, "inputs of the second half that there are", given=given, got=missing)
    for a, b in zip(found, whole[:inputs]):
        expect(a, b, given=given, rtol=1e-6, why="the gradients of the inputs")
    got = Run(NUMPY)(second, [known[r] for r in second.inputs])
    expect(len(got), len(outputs) - inputs, given=given, why="gradients of weights")
    for a, b in zip(got, whole[inputs:]):
        expect(a, b, given=given, rtol=1e-6, why="the gradients of the weights")
    alive = set(outputs[:inputs])
    for record in reversed(records):
        if record in alive:
            alive.update(record.inputs)
    extra = [r for r in first.records if r not in alive and r.op is not ITEM]
    expect_that(not extra, "no record in the first half that only weights need",
                given=given, got=[r.op.name for r in extra])  # fmt: skip
    twice = [r for r in second.records if r in {*first.records}]
    expect_that(not twice, "nothing computed twice", given=given, got=[r.op.name for r in twice])
    used = {s for r in second.records for s in r.inputs} | {*second.outputs}
    unused = [r for r in (*second.inputs, *second.records) if r not in used]
    expect_that(not unused, "nothing in the second half that it does not need",
                given=given, got=[r.op.name for r in unused])  # fmt: skip
    handed = first.outputs[inputs:]
    expect_that(
        len({*first.outputs}) == len(first.outputs) or len({*outputs[:inputs]}) < inputs,
        "each output of the first half once", given=given, got=[r.op.name for r in first.outputs],
    )  # fmt: skip
    spare = [r for r in handed if r not in {*second.inputs} or r not in {*first.records}]
    expect_that(not spare, "no output that the first half does not compute, or the second not take",
                given=given, got=[r.op.name for r in spare])  # fmt: skip


def perceptron(x, w, b, v):
    return F.gelu(x @ w + b) @ v


def several(x, w):
    """`moments` has several results."""
    y = F.layer_norm(x * 2.5, [4], weight=w)
    values, _ = y.topk(2)
    return (values * 2.5).sum() + (y * w).mean() * 2.5


def shared(x, w):
    """The gradient of x is a value that w's gradient needs."""
    return ((x + 0.0) * w).exp()


def only_weights(x, w):
    return (x.detach() @ w).tanh()


def twice(x, w):
    return (x @ w).tanh() @ w + x


CASES = (
    ("a perceptron", perceptron, [(3, 4), (4, 5), (5,), (5, 2)], 1),
    ("layer norm and topk", several, [(3, 4), (4,)], 1),
    ("a product", shared, [(3,), (3,)], 1),
    ("one weight twice", twice, [(3, 3), (3, 3)], 1),
    ("two inputs, two weights", perceptron, [(3, 4), (4, 5), (5,), (5, 2)], 2),
)


@exercise.example
def backwards_of_small_networks(yours):
    """Halves of programs; the weights are arguments here, after the inputs."""
    rng = np.random.default_rng(1)
    for name, function, shapes, inputs in CASES:
        arrays = [rng.normal(size=shape).astype("float32") for shape in shapes]
        backward, _ = backward_of(function, arrays, len(arrays))
        judge(yours, backward, inputs, {"backward of": name})


@exercise.example
def nothing_for_the_inputs(yours):
    """The first stage: its input wants no gradient. And a part without weights."""
    rng = np.random.default_rng(1)
    arrays = [rng.normal(size=(3, 3)).astype("float32") for _ in range(2)]
    backward, _ = backward_of(only_weights, arrays, 2)
    judge(yours, backward, 0, {"backward of": "a stage whose input wants no gradient"})
    backward, count = backward_of(lambda x, y: (x * y).tanh(), arrays, 2)
    judge(yours, backward, count, {"backward of": "a part without weights"})


@exercise.example
def one_of_several_results(yours):
    """The gradient of the inputs takes one result of an operator, that of the weights another."""

    def function(x):
        first, second, _ = x.unbind(0)
        return [first * 2.5, second * 2.5]

    program = trace(function, [Spec((3, 4), np.dtype("float32"))]).program
    judge(yours, program, 1, {"program": "two rows of three, one in each half"})
    late = lambda x: [x * 2.5, x.exp().unbind(0)[1] * 2.5]
    program = trace(late, [Spec((3, 4), np.dtype("float32"))]).program
    judge(yours, program, 1, {"program": "rows of a value that only weights need"})


@exercise.example
def a_gradient_that_weights_need(yours):
    """The gradient of the inputs is an output already, and goes into a weight's, too."""

    def function(x):
        g = x.exp()
        return [g, g * 2.5]

    program = trace(function, [Spec((3, 4), np.dtype("float32"))]).program
    judge(yours, program, 1, {"program": "exp(x), and exp(x) * 2.5 for a weight"})


@exercise.property(inputs=st.integers(0, 4))
def any_number_of_inputs(yours, inputs):
    """Wherever the weights begin."""
    rng = np.random.default_rng(2)
    shapes = [(3, 4), (4, 5), (5,), (5, 2)]
    arrays = [rng.normal(size=shape).astype("float32") for shape in shapes]
    backward, _ = backward_of(perceptron, arrays, 4)
    judge(yours, backward, inputs, {"backward of": "a perceptron", "inputs": inputs})


@exercise.example
def a_pipeline_trains_on_it(yours):
    """The engine's ZBH1 on two stages: the losses of 1F1B."""

    def work(mode):
        strategy = fleet.DistributedStrategy()
        strategy.hybrid_configs = {"pp_degree": 2}
        how = {"accumulate_steps": 4, "micro_batch_size": 2, "schedule_mode": mode}
        strategy.pipeline_configs = how
        fleet.init(is_collective=True, strategy=strategy)
        paddle.seed(3)
        layers = [LayerDesc(nn.Linear, 4, 8), nn.GELU(), LayerDesc(nn.LayerNorm, 8),
                  LayerDesc(nn.Linear, 8, 8), LayerDesc(nn.Linear, 8, 1)]  # fmt: skip
        model = fleet.distributed_model(PipelineLayer(layers, loss_fn=nn.MSELoss()))
        sgd = paddle.optimizer.SGD(0.1, parameters=model.parameters())
        x = paddle.to_tensor(np.random.default_rng(0).normal(size=(8, 4)).astype("float32"))
        return [model.train_batch((x, x.sum(1, keepdim=True)), sgd).item() for _ in range(4)]

    expected = dist.spawn(work, args=("1F1B",), nprocs=2, timeout=30.0).results
    with exercise.plugged(yours):
        got = dist.spawn(work, args=("ZBH1",), nprocs=2, timeout=30.0).results
    expect(got, expected, given="ZBH1 on two stages", rtol=1e-5)
