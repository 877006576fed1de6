"""Checks of 24_without_python/onnx_qdq."""

import numpy as np

import minipaddle as paddle
from minipaddle import nn
from minipaddle.engine.core.op import OPS
from minipaddle.engine.core.slots import plugged
from minipaddle.learn import Exercise, expect
from minipaddle.onnx.exporting import model_proto, trace_forward
from minipaddle.quantization import PTQ, QuantConfig
from minipaddle.quantization.observers import AbsmaxObserver

exercise = Exercise(
    title="Q and DQ: whole numbers of few bits as a pair of nodes",
    level="medium",
    minutes=30,
    before=("24_without_python/onnx_nodes", "21_eight_bits"),
    slots={"onnx.step_of": "step_of", "onnx.write_quantize": "write_quantize"},
    hints=(
        "The engine divides by the scale and multiplies by `high`; ONNX only divides, by a step. "
        "Which step gives the same whole numbers?",
        "Broadcasting lines axes up at the end: axis d of a scale with k axes is axis d + n - k "
        "of an x with n. Where the numbers leave int8 there is no form at all; where they are "
        "fewer than it has, there are two nodes.",
        "step_of: known / high as float32; the axes whose size is not 1: none → a constant "
        "without axes, one → a vector and its axis in x, more → NoForm\n"
        "write_quantize: NoForm outside of -128 … 127; step_of, zero_of, 'QuantizeLinear', then "
        "'Clip' if the range is a smaller one",
    ),
    wrong={
        "the scale as the step": "known / high → known",
        "steps up to 127": "known / high → known / 127",
        "the step upside down": "known / high → high / known",
        "a step of float64": "(known / high).astype('float32') → (known / high).astype('float64')",
        "counted in the scale": "wide[0] + len(x.shape) - step.ndim → wide[0]",
        "always axis 0": "wide[0] + len(x.shape) - step.ndim → 0",
        "always axis 1": "wide[0] + len(x.shape) - step.ndim → 1",
        "one scale for all": (
            "return (g.constant(step.ravel()), wide[0] + len(x.shape) - step.ndim) → "
            "return g.constant(step.max()), None"
        ),
        "axes of a single scale": "g.constant(step.reshape(())) → g.constant(step)",
        "scales of groups as a vector": "if len(wide) > 1: → if False:",
        "no vector at all": "if len(wide) > 1: → if wide:",
        "scales that are computed": (
            "if known is None: → known = np.array(1.0) if known is None else known; if False:"
        ),
        "more than 8 bits": "if low < -128 or high > 127: → if False:",
        "never whole numbers": "if low < -128 or high > 127: → if True:",
        "never clipped": "if low > -128 or high < 127: → if False:",
        "clipped to seven bits": "g('Clip', q, np.array(low, 'int8'), np.array(high, 'int8')) → "
                                 "g('Clip', q, np.array(-64, 'int8'), np.array(63, 'int8'))",
        "without an axis": "g('QuantizeLinear', x, step, point, axis=axis, dtype=np.int8) → "
                           "g('QuantizeLinear', x, step, point, dtype=np.int8)",
        "the zero forgotten": "zero_of(g, zero, step, np.int8) → zero_of(g, 0.0, step, np.int8)",
    },
    unkillable={
        "return (g.constant(step.ravel()), wide[0] + len(x.shape) - step.ndim) → "
        "return (g.constant(step.ravel()), wide[-1] + len(x.shape) - step.ndim)": "there is one",
    },
)  # fmt: skip

RNG = np.random.default_rng(0)


def exported(yours, model, *arrays):
    """(the nodes' kinds, what ONNX's own implementation computes) for an exported model."""
    import onnx
    from onnx.reference import ReferenceEvaluator

    specs = [paddle.static.InputSpec(a.shape, str(a.dtype)) for a in arrays]
    with exercise.plugged(yours):
        proto, _ = model_proto(trace_forward(model, specs))
    onnx.checker.check_model(proto, full_check=True)
    kinds = [node.op_type for node in proto.graph.node if node.op_type != "Identity"]
    evaluator = ReferenceEvaluator(proto)
    (found,) = evaluator.run(None, dict(zip(evaluator.input_names, arrays, strict=True)))
    return kinds, found


def rounded(x, scale, zero, low, high):
    """The oracle, in float64: the nearest of the values that whole numbers stand for."""
    step = scale.astype("float64") / high
    return (np.clip(np.rint(x / step) + zero, low, high) - zero) * step


def off_halves(shape, step, zero, low, high):
    """Numbers that lie within a quarter of a step around what whole numbers stand for, some beyond
    the ends."""
    q = RNG.integers(low - 3, high + 4, shape) + RNG.uniform(-0.25, 0.25, shape)
    return ((q - zero) * step).astype("float32")


def check(yours, shape, scale, zero=0, low=-128, high=127, nodes=("QuantizeLinear",)):
    """A rounded input: the kinds of nodes, and the values."""
    scale = np.float32(scale)
    x = off_halves(shape, scale.astype("float64") / high, zero, low, high)
    numbers = paddle.to_tensor(scale), paddle.to_tensor(float(zero))
    kinds, got = exported(yours, lambda x: OPS["fake_quantize"](x, *numbers, low=low, high=high), x)
    given = {"x": list(shape), "scale": scale, "zero": zero, "low": low, "high": high}
    if nodes:
        expect(kinds, [*nodes, "DequantizeLinear"], given=given, why="the nodes")
    else:
        expect("QuantizeLinear" in kinds, False, given=given, why="there is no form for it")
    expect(got, rounded(x, scale, zero, low, high), given=given, rtol=1e-4, atol=1e-6)


@exercise.example
def one_scale(yours):
    """Eight bits; another zero point; scales with axes of size 1."""
    check(yours, (3, 4), 2.5)
    check(yours, (3, 4), 0.03, zero=-20)
    check(yours, (3, 4), [[6.0]])
    check(yours, (5,), [6.0])
    check(yours, (20, 30), 1.0)


@exercise.example
def fewer_bits(yours):
    """Seven whole numbers below 0 and above, sixteen, an end at each side."""
    both = ("QuantizeLinear", "Clip")
    check(yours, (4, 6), 2.0, low=-7, high=7, nodes=both)
    check(yours, (4, 6), 2.0, low=-8, high=7, nodes=both)
    check(yours, (40, 6), 2.0, low=-127, high=127, nodes=both)
    check(yours, (40, 6), 2.0, low=-128, high=126, nodes=both)
    check(yours, (4, 6), 2.0, zero=3, low=0, high=15, nodes=both)


@exercise.example
def per_channel(yours):
    """A scale for each row, each column, each channel, also with fewer axes than x."""
    check(yours, (3, 4), [[1.0], [20.0], [3.0]])
    check(yours, (2, 3), [1.0, 20.0, 3.0])
    check(yours, (2, 3, 4, 2), np.reshape([1.0, 20.0, 3.0], (3, 1, 1)))
    check(yours, (3, 2, 2, 2), np.reshape([1.0, 20.0, 3.0], (3, 1, 1, 1)), low=-8, high=7,
          nodes=("QuantizeLinear", "Clip"))  # fmt: skip
    check(yours, (1, 2, 3), [[[1.0], [9.0]]])


@exercise.example
def without_a_form(yours):
    """Scales of groups; more than eight bits; a scale that the input decides."""
    check(yours, (2, 3), [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], nodes=())
    check(yours, (4, 5), 9.0, low=0, high=255, nodes=())
    check(yours, (4, 5), 9.0, low=-32768, high=32767, nodes=())
    check(yours, (4, 5), 9.0, low=-200, high=127, nodes=())
    check(yours, (4, 5), 9.0, low=-129, high=100, nodes=())
    check(yours, (4, 5), 9.0, low=-100, high=128, nodes=())
    x = np.float32([[0.5, -2.0, 1.0, 0.26]])
    zero = paddle.to_tensor(0.0)
    model = lambda x: OPS["fake_quantize"](x, x.abs().max(), zero, low=-127, high=127)
    kinds, got = exported(yours, model, x)
    expect("QuantizeLinear" in kinds, False, given={"x": x}, why="the scale is known at a run only")
    expect(got, rounded(x, np.float32(2.0), 0, -127, 127), given={"x": x}, rtol=1e-4)


@exercise.example
def in_the_engine(yours):
    """A quantized network: the file computes what the engine does."""
    paddle.seed(0)
    net = nn.Sequential(nn.Conv2D(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3))
    x = RNG.normal(size=(8, 1, 4, 4)).astype("float32")
    ptq = PTQ(QuantConfig(activation=AbsmaxObserver(), weight=AbsmaxObserver()))
    observed = ptq.quantize(net.eval())
    observed(paddle.to_tensor(x))
    converted = ptq.convert(observed)

    with plugged("quantization.can_multiply", lambda *_: False):
        kinds, got = exported(yours, converted, x)
    expect(kinds.count("QuantizeLinear"), 4, given="two layers", why="values that are rounded")
    with paddle.no_grad():
        wanted = converted(paddle.to_tensor(x)).numpy()
    expect(got, wanted, given="two layers", rtol=1e-3, atol=0.02)
