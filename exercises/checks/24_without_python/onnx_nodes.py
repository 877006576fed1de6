"""Checks of 24_without_python/onnx_nodes."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.onnx.exporting import model_proto, trace_forward

exercise = Exercise(
    title="ONNX nodes: one operator in the words of another language",
    level="easy",
    minutes=25,
    slots={"onnx.conv": "conv", "onnx.affine": "affine", "onnx.place_of": "place_of"},
    hints=(
        "Paddle pads an axis by a pair. In which order does ONNX want the numbers of all pairs: "
        "for two axes, which number is the second one?",
        "`zip(*padding)` turns pairs into befores and afters. Which branch a form takes, `x.shape` "
        "and `axis` say while the file is written; no node decides.",
        "conv: g('Conv', x, w, pads=[*befores, *afters], …)\n"
        "affine: 'Gemm' if x has two axes, else 'Add' of 'MatMul'\n"
        "place_of: one node with an axis; else 'Reshape' to (-1,), the place along axis 0, and "
        "with keepdim a 'Reshape' to ones",
    ),
    wrong={
        "pair after pair": (
            "[*before, *after] → [n for pair in padding for n in pair]"
        ),
        "the same before and after": "[*before, *after] → [*before, *before]",
        "afters first": "[*before, *after] → [*after, *before]",
        "no padding": "[*before, *after] → [0 for _ in (*before, *after)]",
        "one group": (
            "{'strides': stride, 'dilations': dilation, 'group': groups} → "
            "{'strides': stride, 'dilations': dilation}"
        ),
        "no dilation": (
            "{'strides': stride, 'dilations': dilation, 'group': groups} → "
            "{'strides': stride, 'group': groups}"
        ),
        "no stride": (
            "{'strides': stride, 'dilations': dilation, 'group': groups} → "
            "{'dilations': dilation, 'group': groups}"
        ),
        "always Gemm": "if len(x.shape) == 2: → if True:",
        "Gemm without the bias": "g('Gemm', x, weight, bias) → g('Gemm', x, weight)",
        "always two nodes": "if len(x.shape) == 2: → if False:",
        "MatMul without the bias": "g('Add', product, bias) → product",
        "always the largest": (
            "g(kind, x, axis=axis, keepdims=int(keepdim), dtype=np.int64) → "
            "g('ArgMax', x, axis=axis, keepdims=int(keepdim), dtype=np.int64)"
        ),
        "the axis always stays": "int(keepdim) → 1",
        "the axis always goes": "int(keepdim) → 0",
        "None is axis 0": "if axis is not None: → axis = axis or 0; if True:",
        "flat, never with axes": (
            "g('Reshape', at, (1,) * len(x.shape)) if keepdim else at → at"
        ),
        "along axis 0 of what is not flat": "g('Reshape', x, (-1,)) → x",
    },
    unkillable={
        "before, after = zip(*padding, strict=True) → "
        "before, after = zip(*padding, strict=False)": "a pair has two numbers",
        "return g('Add', product, bias) → return g('Add', bias, product)": "a sum has no order",
        "at = g(kind, flat, axis=0, keepdims=0, dtype=np.int64) → "
        "at = g(kind, flat, axis=-1, keepdims=0, dtype=np.int64)": "a flat array has one axis",
        "place_of: right only for positive axes": "records count their axes from the front",
        "conv: right only for short lists": "no convolution has more than three axes of sizes",
    },
)  # fmt: skip


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


def correlated(x, w, stride, padding, dilation, groups):
    """The oracle: windows of a padded array."""
    n = x.ndim - 2
    x = np.pad(x.astype("float64"), [(0, 0), (0, 0), *padding])
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilation)]
    windows = sliding_window_view(x, reach, axis=tuple(range(2, 2 + n)))
    steps = tuple(slice(None, None, s) for s in stride)
    taps = tuple(slice(None, None, d) for d in dilation)
    windows = windows[(slice(None), slice(None), *steps, *taps)]
    parts = zip(np.split(windows, groups, 1), np.split(w.astype("float64"), groups), strict=True)
    axes = [1, *range(2 + n, 2 + 2 * n)], [1, *range(2, 2 + n)]
    return np.concatenate([np.moveaxis(np.tensordot(a, b, axes), -1, 1) for a, b in parts], 1)


RNG = np.random.default_rng(0)


def random(*shape):
    return RNG.normal(size=shape).astype("float32")


@exercise.example
def a_convolution(yours):
    """Another padding on each of the four sides."""
    x, w = random(1, 2, 5, 6), random(3, 2, 2, 3)
    padding = ((1, 2), (0, 3))
    kinds, got = exported(
        yours, lambda x: F.conv2d(x, paddle.to_tensor(w), padding=[1, 2, 0, 3]), x
    )
    given = {"x": list(x.shape), "w": list(w.shape), "padding": padding}
    expect(kinds, ["Conv"], given=given, why="the nodes")
    expect(got, correlated(x, w, (1, 1), padding, (1, 1), 1), given=given, rtol=1e-4, atol=1e-5)


@exercise.example
def other_convolutions(yours):
    """Strides, dilations and groups, each axis its own; one axis, and three."""
    for call, shape, kernel, stride, padding, dilation, groups in (
        (F.conv2d, (2, 4, 7, 9), (6, 2, 3, 2), (2, 3), ((0, 1), (2, 0)), (1, 2), 2),
        (F.conv2d, (1, 3, 6, 6), (3, 1, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 3),
        (F.conv1d, (2, 2, 9), (4, 1, 3), (2,), ((3, 1),), (2,), 2),
        (F.conv3d, (1, 2, 4, 5, 3), (2, 2, 2, 1, 2), (1, 2, 1), ((1, 0), (0, 0), (0, 2)),
         (1, 1, 1), 1),
    ):  # fmt: skip
        x, w = random(*shape), random(*kernel)
        how = {"stride": list(stride), "dilation": list(dilation), "groups": groups}
        flat = [n for pair in padding for n in pair]
        model = lambda x: call(x, paddle.to_tensor(w), padding=flat, **how)  # noqa: B023
        _, got = exported(yours, model, x)
        given = {"x": shape, "w": kernel, "padding": padding, **how}
        wanted = correlated(x, w, stride, padding, dilation, groups)
        expect(got, wanted, given=given, rtol=1e-4, atol=1e-5)


@exercise.example
def an_affine_layer(yours):
    """Of two axes one node; of one more, and of four, a product and a sum."""
    for shape, nodes in (
        ((3, 4), ["Gemm"]), ((1, 4), ["Gemm"]), ((2, 3, 4), ["MatMul", "Add"]),
        ((2, 2, 3, 4), ["MatMul", "Add"]),
    ):  # fmt: skip
        x, w, b = random(*shape), random(4, 5), random(5)
        layer = nn.Linear(4, 5)
        layer.weight.set_value(w)
        layer.bias.set_value(b)
        kinds, got = exported(yours, layer.eval(), x)
        expect(kinds, nodes, given={"x": shape}, why="the nodes")
        wanted = x.astype("float64") @ w + b
        expect(got, wanted, given={"x": shape}, rtol=1e-4, atol=1e-5)


@exercise.example
def places(yours):
    """The largest and the smallest, along each axis and flat, axes that stay and that go."""
    x = random(3, 4, 5)
    for name, oracle in (("argmax", np.argmax), ("argmin", np.argmin)):
        for axis in (None, 0, 1, 2):
            for keepdim in (False, True):
                model = lambda x: getattr(paddle, name)(x, axis=axis, keepdim=keepdim)  # noqa: B023
                _, got = exported(yours, model, x)
                given = {"x": [3, 4, 5], "operator": name, "axis": axis, "keepdim": keepdim}
                wanted = oracle(x, axis=axis, keepdims=keepdim)
                expect(got, wanted, given=given)
                expect(got.dtype.name, "int64", given=given, why="the dtype")
    _, got = exported(yours, lambda x: paddle.argmax(x), random(7))
    expect_that(got.shape == (), "of a vector: a number without axes", given="7 numbers", got=got)


@exercise.example
def in_the_engine(yours):
    """A whole network: convolutions, a head, and the digit it sees."""
    paddle.seed(0)
    net = nn.Sequential(
        nn.Conv2D(1, 4, 3, padding=1, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(64, 10)
    )
    net.eval()
    x = random(5, 1, 8, 8)
    kinds, got = exported(yours, lambda x: net(x).argmax(1), x)
    expect(kinds[0], "Conv", given="a network", why="the first node")
    with paddle.no_grad():
        expect(got, net(paddle.to_tensor(x)).numpy().argmax(1), given="a network")
