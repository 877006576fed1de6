"""Checks of 22_training_with_rounding/straight_through."""

import numpy as np

import minipaddle as paddle
from minipaddle.engine.core.record import Spec
from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.ops.quantization import fake_quantize
from minipaddle.quantization import QAT, QuantConfig
from minipaddle.quantization.quanters import FakeQuanterChannelWiseAbsMax

exercise = Exercise(
    title="Straight-through: the derivative of rounding",
    level="easy",
    minutes=10,
    before=("03_gradients",),
    slots={"ops.fake_quantize.vjp.x": "rounded"},
    hints=(
        "A weight of 0.3 is rounded to 0.25, and the loss would fall if it were larger. Which way "
        "should the weight go, and what would the true derivative of the staircase say?",
        "If x and its rounded numbers have one shape, there is nothing to compute. If not, each "
        "number of x went into several: their shares add up.",
        "g, summed to the shape of x",
    ),
    wrong={
        "the true derivative of a staircase": "g.sum_to(x_spec.shape) → "
                                              "(g * 0.0).sum_to(x_spec.shape)",
        "the shape of g": "g.sum_to(x_spec.shape) → g",
        "turned round": "g.sum_to(x_spec.shape) → (-g).sum_to(x_spec.shape)",
        "a share of it": "g.sum_to(x_spec.shape) → (g * 0.5).sum_to(x_spec.shape)",
        "the signs alone": "g.sum_to(x_spec.shape) → g.sign().sum_to(x_spec.shape)",
        "only small gradients pass": "g.sum_to(x_spec.shape) → g.clip(-1.0, 1.0).sum_to("
                                     "x_spec.shape)",
        "no second derivative": "g.sum_to(x_spec.shape) → g.detach().sum_to(x_spec.shape)",
    },
)  # fmt: skip

FOUR = {"low": -8, "high": 7}


def through(x, scale, slope):
    """The gradient at x, and the one of its square at `slope`, in double precision."""
    x = paddle.to_tensor(x, dtype="float64", stop_gradient=False)
    slope = paddle.to_tensor(slope, dtype="float64", stop_gradient=False)
    scale = paddle.to_tensor(scale, dtype="float64")
    y = (fake_quantize(x, scale, 0.0, **FOUR) * slope).sum()
    (g,) = paddle.grad(y, [x], create_graph=True)
    (again,) = paddle.grad((g * g).sum(), [slope])
    return g.numpy(), again.numpy()


@exercise.example
def the_example(yours):
    """As it is, for clipped numbers too."""
    with exercise.plugged(yours):
        for x in ([0.3, -0.4], [0.0, 5.0], [np.inf, -np.inf]):
            got, again = through(x, 1.0, [5.0, -2.0])
            expect(got, np.array([5.0, -2.0]), given={"x": x, "g": [5.0, -2.0]})
            expect(again, np.array([10.0, -4.0]), given={"x": x}, why="the second derivative")


def summed(g, shape):
    """g, added up along the axes that a shape lacks, or has as 1."""
    y = g.sum(tuple(range(g.ndim - len(shape))))
    axes = tuple(d for d, n in enumerate(shape) if n == 1 and y.shape[d] != 1)
    return y.sum(axes, keepdims=True) if axes else y


@exercise.example
def the_rule_itself(yours):
    """Its shape and dtype, with many axes, no numbers, or infinite ones."""
    rng = np.random.default_rng(0)
    for shape, whole in (
        ((2,), (2,)), ((1,), (2, 1)), ((), (5,)), ((3,), (4, 3)), ((1, 3), (4, 3)), ((0,), (2, 0)),
        ((1, 1, 2, 1, 1, 1, 3), (1, 4, 2, 1, 1, 1, 3)), ((20, 30), (20, 30)),
    ):  # fmt: skip
        for dtype in ("float32", "float64"):
            g = rng.normal(size=whole).astype(dtype)
            g.flat[-1:] = np.inf
            t = paddle.to_tensor(g)
            got = yours.rounded(t, Spec(shape, np.dtype(dtype)))
            given = {"g": g, "shape of x": shape}
            expect(got.shape, [*shape], given=given, why="the shape of what arrives at x")
            expect(str(got.dtype), f"paddle.{dtype}", given=given, why="the dtype of it")
            rtol = 1e-12 if dtype == "float64" else 1e-5
            expect(got.numpy(), summed(g, shape), given=given, rtol=rtol, atol=1e-7)
            expect(t.numpy(), g, given=given, why="g is as it was")


@exercise.example
def broadcast(yours):
    """One row under four scales; a number under many; many rows; none."""
    rng = np.random.default_rng(0)
    for shape, wide in (((1, 3), (4, 1)), ((), (5,)), ((3,), (2, 1)), ((1,), (20, 30))):
        whole = np.broadcast_shapes(shape, wide)
        slope, scale = rng.normal(size=whole) * 1e-6, rng.uniform(1, 2, wide)
        with exercise.plugged(yours):
            got, _ = through(rng.normal(size=shape), scale, slope)
        expected = summed(slope, shape)
        given = {"shape of x": shape, "shape of the scales": wide}
        expect(got.shape, shape, given=given, why="the shape of the gradient")
        expect(got, expected, given=given, rtol=1e-12, atol=1e-18)
    with exercise.plugged(yours):
        expect(through(np.zeros((0, 3)), 1.0, np.zeros((0, 3)))[0].shape, (0, 3))


@exercise.example
def its_dtype(yours):
    """float32 stays float32."""
    x = paddle.to_tensor([0.3], dtype="float32", stop_gradient=False)
    with exercise.plugged(yours):
        fake_quantize(x, paddle.to_tensor(1.0), 0.0, **FOUR).sum().backward()
    expect(str(x.grad.dtype), "paddle.float32", given={"x": [0.3]})


@exercise.example
def a_network_learns(yours):
    """Two weights of three bits are trained by captured steps until they are the right ones."""
    paddle.seed(0)
    net = paddle.nn.Sequential(paddle.nn.Linear(2, 1, bias_attr=False))
    net[0].weight.set_value([[0.9], [0.1]])
    qat = QAT(QuantConfig(activation=None, weight=FakeQuanterChannelWiseAbsMax(bit_length=3)))
    net = qat.quantize(net)
    sgd = paddle.optimizer.SGD(0.1, parameters=net.parameters())
    x = np.random.default_rng(0).normal(size=(32, 2)).astype("f")

    @paddle.jit.to_static
    def step(x, y):
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        sgd.step()
        sgd.clear_grad()
        return loss

    y = paddle.to_tensor(x @ np.array([[-1.0], [1.0]], "f"))
    with exercise.plugged(yours):
        for _ in range(40):
            loss = step(paddle.to_tensor(x), y).item()
    expect_that(loss < 0.2, "a loss below 0.2 after 40 steps", got=loss)
