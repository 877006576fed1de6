"""Files whose sizes only a run knows, at several sizes, against onnxruntime."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import minipaddle as paddle
from tests.onnx.running import by_runtime
from tests.onnx.test_load import load, model_of, results


def draw(*shape) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("float32")


def check_sizes(model, folder, *inputs) -> None:
    """One loaded program gives what onnxruntime gives, for inputs of several sizes."""
    net = load(model, folder)
    for arrays in inputs:
        ours = results(net(*map(paddle.to_tensor, arrays)))
        for a, b in zip(ours, by_runtime(model, arrays), strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(a.astype("float64"), b.astype("float64"), 1e-5, 1e-5)


IMAGES = [draw(1, 2, 6, 9)], [draw(3, 2, 7, 4)], [draw(2, 2, 5, 5)]
OPEN = ["n", 2, "h", "w"]


def on_images(kind: str, known=(), opset=17, **attrs):
    """A model of one node whose input is an image of open sizes; `known` are its other inputs."""
    names = [f"k{j}" if a is not None else "" for j, a in enumerate(known)]
    node = helper.make_node(kind, ["x", *names], ["y"], **attrs)
    arrays = {n: a for n, a in zip(names, known, strict=True) if n}
    return model_of([node], [("x", OPEN)], [("y", [None] * 4)], arrays, opset)


SCALES = np.array([1, 1, 2, 3], "float32")
NODES = {
    "Resize floor": on_images("Resize", [None, SCALES], mode="nearest", nearest_mode="floor",
                              coordinate_transformation_mode="asymmetric"),
    "Resize half_pixel": on_images("Resize", [None, SCALES], mode="nearest"),
    "Upsample": on_images("Upsample", [SCALES], 9, mode="nearest"),
    "Conv same": on_images("Conv", [draw(4, 2, 3, 3)], auto_pad="SAME_UPPER", strides=[2, 2]),
    "Conv same before": on_images("Conv", [draw(4, 2, 2, 4)], auto_pad="SAME_LOWER",
                                  strides=[2, 3], kernel_shape=[2, 4]),
    "Conv sparse": on_images("Conv", [draw(4, 2, 1, 1)], auto_pad="SAME_UPPER", strides=[3, 3]),
    "MaxPool same": on_images("MaxPool", kernel_shape=[3, 3], strides=[2, 2],
                              auto_pad="SAME_UPPER"),
    "AveragePool same": on_images("AveragePool", kernel_shape=[2, 2], auto_pad="SAME_UPPER"),
    "Pad reflect": on_images("Pad", [np.array([0, 0, 2, 0, 0, 0, 1, 3])], mode="reflect"),
    "Pad edge": on_images("Pad", [np.array([0, 0, 2, 0, 0, 0, 1, 9])], mode="edge"),
    "Pad wrap": on_images("Pad", [np.array([0, 0, 2, 0, 0, 0, 0, 3])], 19, mode="wrap"),
    "Pad constant": on_images("Pad", [np.array([0, 1, 2, 0, 0, 0, -1, 3])]),
}  # fmt: skip


@pytest.mark.parametrize("name", NODES)
def test_a_node_on_images_of_any_size(name, tmp_path):
    check_sizes(NODES[name], tmp_path, *IMAGES)


def test_compiled_code_takes_any_size(tmp_path):
    """A convolution, a finer image and a border in one compiled function."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], auto_pad="SAME_UPPER", strides=[2, 2]),
        helper.make_node("Resize", ["a", "", "scales"], ["b"], mode="nearest"),
        helper.make_node("Pad", ["b", "pads"], ["y"], mode="reflect"),
    ]
    known = {"w": draw(4, 2, 3, 3), "scales": SCALES, "pads": np.array([0, 0, 1, 1, 0, 0, 1, 1])}
    model = model_of(nodes, [("x", OPEN)], [("y", [None] * 4)], known)
    net = load(model, tmp_path)
    specs = [paddle.static.InputSpec([None, 2, None, None])]
    run = paddle.jit.to_static(lambda x: net(x), input_spec=specs, backend="native")
    for arrays in IMAGES:
        ours = run(*map(paddle.to_tensor, arrays)).numpy()
        np.testing.assert_allclose(ours, by_runtime(model, arrays)[0], 1e-5, 1e-5)
    assert len(run.cache) == 1


def test_scales_that_are_no_whole_numbers_need_a_size(tmp_path):
    model = on_images("Resize", [None, np.array([1, 1, 1.5, 1], "float32")])
    with pytest.raises(NotImplementedError, match="image sizes are computed while it runs"):
        load(model, tmp_path)
    path = tmp_path / "net.onnx"
    net = paddle.onnx.load(path, [paddle.static.InputSpec([None, 2, 6, None])])
    np.testing.assert_array_equal(
        net(paddle.to_tensor(IMAGES[0][0])), by_runtime(model, IMAGES[0])[0]
    )


def test_a_mean_over_padding_of_any_size_is_refused(tmp_path):
    model = on_images("AveragePool", kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")
    with pytest.raises(NotImplementedError, match="padding follows from sizes"):
        load(model, tmp_path)


# ---- sequences -----------------------------------------------------------------------------------

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def along(kind: str, lengths=False, **attrs):
    """A recurrence over x [length, batch, 3] in both directions."""
    g = GATES[kind]
    known = {"w": draw(2, 5 * g, 3), "r": draw(2, 5 * g, 5), "b": draw(2, 10 * g)}
    more = ["n"] if lengths else []
    outputs = ["y", "h", *(["c"] if kind == "LSTM" else [])]
    node = helper.make_node(
        kind,
        ["x", "w", "r", "b", *more],
        outputs,
        hidden_size=5,
        direction="bidirectional",
        **attrs,
    )
    inputs = [("x", ["t", "batch", 3]), *(("n", ["batch"], TensorProto.INT32) for _ in more)]
    return model_of([node], inputs, [(o, [None] * (3 + (o == "y"))) for o in outputs], known)


@pytest.mark.parametrize("kind", GATES)
def test_a_sequence_of_any_length(kind, tmp_path):
    check_sizes(along(kind), tmp_path, *([draw(t, 2, 3)] for t in (1, 6, 40)))
    if kind == "GRU":
        check_sizes(along(kind, linear_before_reset=1), tmp_path, [draw(6, 2, 3)])


def test_sequences_that_end_early(tmp_path):
    ends = np.array([2, 6], "int32")
    check_sizes(along("LSTM", lengths=True), tmp_path, [draw(6, 2, 3), ends])


# ---- decisions about sizes -----------------------------------------------------------------------


def test_images_are_joined_where_the_run_finds_them_alike(tmp_path):
    """Of the height of a mean nobody knows that it is 1."""
    nodes = [
        helper.make_node("AveragePool", ["x"], ["a"], kernel_shape=[3, 1], strides=[3, 1]),
        helper.make_node("ReduceMean", ["x"], ["b"], axes=[2]),
        helper.make_node("Concat", ["a", "b"], ["y"], axis=1),
    ]
    model = model_of(nodes, [("x", OPEN)], [("y", [None] * 4)])
    check_sizes(model, tmp_path, [draw(1, 2, 3, 5)], [draw(2, 2, 5, 4)])
    with pytest.raises(
        ValueError, match=r"assumes that 1 == \(h//3\) is True; here they are 1 and 2"
    ):
        load(model, tmp_path)(paddle.ones([1, 2, 6, 5]))


def if_last_is_one(then: str, other: str, compared=("n", "one")):
    """If on whether the last size of x is 1."""
    sides = {}
    for side, kind in (("then_branch", then), ("else_branch", other)):
        inputs = ["x", *(["axes"] if kind == "Squeeze" else [])]
        y = helper.make_tensor_value_info(side, TensorProto.FLOAT, None)
        nodes = [helper.make_node(kind, inputs, [side])]
        sides[side] = helper.make_graph(nodes, side, [], [y])
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "last"], ["n"]),
        helper.make_node("Equal", compared, ["is_one"]),
        helper.make_node("If", ["is_one"], ["y"], **sides),
    ]
    known = {"axes": np.array([1]), "last": np.array(-1), "one": np.array(1)}
    return model_of(nodes, [("x", [3, "w"])], [("y", None)], known)


@pytest.mark.parametrize("compared", [["n", "one"], ["one", "n"]])
def test_a_condition_on_a_size_is_decided_once(compared, tmp_path):
    model = if_last_is_one("Squeeze", "Identity", compared)
    for value in model.graph.output:
        value.type.tensor_type.shape.dim.add()
    net = load(model, tmp_path)
    np.testing.assert_array_equal(net(paddle.to_tensor(draw(3, 4))), draw(3, 4))
    with pytest.raises(ValueError, match=r"assumes that .* == .* is False; here they are 1 and 1"):
        net(paddle.ones([3, 1]))
    single = paddle.onnx.load(tmp_path / "net.onnx", [paddle.static.InputSpec([3, 1])])
    assert single(paddle.ones([3, 1])).shape == [3]


def test_a_branch_that_cannot_be_read_is_refused_when_it_is_taken(tmp_path):
    """The second one multiplies matrices of sizes that do not fit."""
    sides = {}
    for side, w in (("then_branch", "w"), ("else_branch", "v")):
        y = helper.make_tensor_value_info(side, TensorProto.FLOAT, [None, 2])
        node = helper.make_node("MatMul", ["x", w], [side])
        sides[side] = helper.make_graph([node], side, [], [y])
    node = helper.make_node("If", ["on"], ["y"], **sides)
    known = {"w": draw(4, 2), "v": draw(5, 2)}
    inputs = [("x", ["n", "k"]), ("on", [], TensorProto.BOOL)]
    model = model_of([node], inputs, [("y", [None, 2])], known)
    load(model, tmp_path)
    for k, taken in ((4, True), (5, False)):
        spec = paddle.static.InputSpec([None, k], name="x")
        net = paddle.onnx.load(tmp_path / "net.onnx", [spec])
        x = draw(3, k)
        ours = net(paddle.to_tensor(x), paddle.to_tensor(taken)).numpy()
        np.testing.assert_allclose(ours, x @ known["w" if taken else "v"], 1e-5)
        with pytest.raises(ValueError, match=r"(?s)takes a branch that could not be read.*MatMul"):
            net(paddle.to_tensor(x), paddle.to_tensor(not taken))


# ---- whole numbers -------------------------------------------------------------------------------


def bytes_of(dtype: str, *shape):
    ends = np.iinfo(dtype)
    return np.random.default_rng(sum(shape)).integers(ends.min, ends.max, shape, dtype)


def convolved(x_dtype, w_dtype, group, x_zero, w_zero, **attrs):
    """ConvInteger on an image of open sizes."""
    known = {"w": bytes_of(w_dtype, 4, 4 // group, 3, 3), "xz": x_zero, "wz": w_zero}
    known = {n: a for n, a in known.items() if a is not None}
    names = ["x", "w", *(n if n in known else "" for n in ("xz", "wz"))]
    node = helper.make_node("ConvInteger", names, ["y"], group=group, **attrs)
    code = helper.np_dtype_to_tensor_dtype(np.dtype(x_dtype))
    y = ("y", [None] * 4, TensorProto.INT32)
    return model_of([node], [("x", ["n", 4, "h", "w"], code)], [y], known)


INTEGERS = {
    "zero points": convolved("uint8", "uint8", 1, np.uint8(131), np.uint8(7),
                             pads=[1, 2, 0, 1], strides=[2, 1]),
    "groups": convolved("uint8", "uint8", 2, np.uint8(0), np.uint8(255), dilations=[1, 2]),
    "signed": convolved("uint8", "int8", 1, np.uint8(255), None, pads=[1, 1, 1, 1]),
    "none": convolved("uint8", "uint8", 4, None, None, auto_pad="SAME_UPPER"),
}  # fmt: skip


@pytest.mark.parametrize("name", INTEGERS)
def test_convolutions_of_bytes_are_exact(name, tmp_path):
    model = INTEGERS[name]
    net = load(model, tmp_path)
    for shape in ((1, 4, 7, 6), (2, 4, 5, 8)):
        x = bytes_of("uint8", *shape)
        ours = net(paddle.to_tensor(x)).numpy()
        np.testing.assert_array_equal(ours, by_runtime(model, [x])[0])


def test_products_of_bytes_with_zero_points_of_rows_and_columns(tmp_path):
    a, b = bytes_of("uint8", 3, 5), bytes_of("int8", 5, 4)
    rows, columns = bytes_of("uint8", 3), bytes_of("int8", 4)
    node = helper.make_node("MatMulInteger", ["a", "b", "row", "column"], ["y"])
    inputs = [("a", ["n", 5], TensorProto.UINT8)]
    known = {"b": b, "row": rows, "column": columns}
    model = model_of([node], inputs, [("y", [None, 4], TensorProto.INT32)], known)
    expected = (a.astype(int) - rows[:, None]) @ (b.astype(int) - columns)
    np.testing.assert_array_equal(load(model, tmp_path)(paddle.to_tensor(a)), expected)


def test_zeros_are_made_bytes(tmp_path):
    """Their scale is 1, where the range has no width."""
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "scale", "zero"])
    kinds = [("q", ["n"], TensorProto.UINT8), ("scale", []), ("zero", [], TensorProto.UINT8)]
    check_sizes(model_of([node], [("x", ["n"])], kinds), tmp_path, [np.zeros(3, "float32")],
                [draw(4)])  # fmt: skip


def test_an_lstm_of_bytes(tmp_path):
    w, r = bytes_of("uint8", 2, 3, 20), bytes_of("uint8", 2, 5, 20)
    known = {"w": w, "r": r, "b": draw(2, 40)}
    for n in "wr":
        known |= {f"{n}s": np.full(2, 0.005, "float32"), f"{n}z": np.array([130, 120], "uint8")}
    names = ["x", "w", "r", "b", "", "", "", "", "ws", "wz", "rs", "rz"]
    node = helper.make_node("DynamicQuantizeLSTM", names, ["y", "h", "c"], domain="com.microsoft",
                            hidden_size=5, direction="bidirectional")  # fmt: skip
    outputs = [("y", [None] * 4), ("h", [None] * 3), ("c", [None] * 3)]
    model = model_of([node], [("x", ["t", 1, 3])], outputs, known)
    model.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    check_sizes(model, tmp_path, [draw(4, 1, 3)], [draw(9, 1, 3)])
