"""`onnx.load(path, input_spec=…)`: sizes that the file leaves open, and weights in Constants."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import minipaddle as paddle
from tests.onnx.running import by_runtime
from tests.onnx.test_load import W, X, load, model_of

InputSpec = paddle.static.InputSpec


def sum_of_two(tmp_path):
    """The path of a model that adds x [n, 3, m] and y [3, m]."""
    node = helper.make_node("Add", ["x", "y"], ["z"])
    model = model_of([node], [("x", ["n", 3, "m"]), ("y", [3, "m"])], [("z", ["n", 3, "m"])])
    load(model, tmp_path)
    return tmp_path / "net.onnx", model


def test_sizes_are_given_by_place_or_by_name(tmp_path):
    path, model = sum_of_two(tmp_path)
    open_shape = paddle.onnx.load(path).program().outputs[0].shape
    assert [str(n) for n in open_shape] == ["n", "3", "m"]
    for specs in ([InputSpec([2, 3, 4]), InputSpec([3, 4])], [InputSpec([2, 3, 4], name="x")]):
        fixed = paddle.onnx.load(path, specs)
        assert fixed.program().outputs[0].shape == (2, 3, 4)
        ours = fixed(paddle.to_tensor(X), paddle.to_tensor(W[0])).numpy()
        np.testing.assert_array_equal(ours, by_runtime(model, [X, W[0]])[0])
    half = paddle.onnx.load(path, [InputSpec([None, 3, 4], name="x"), InputSpec([3, 4], name="y")])
    for batch in (X, X[:1]):
        assert half(paddle.to_tensor(batch), paddle.to_tensor(W[0])).shape == [len(batch), 3, 4]
    with pytest.raises(ValueError, match=r"x is float32\[2, 3, 3\]"):
        half(paddle.ones([2, 3, 3]), paddle.ones([3, 3]))


def test_sizes_that_the_file_fixes_are_opened(tmp_path):
    node = helper.make_node("Relu", ["x"], ["y"])
    load(model_of([node], [("x", [2, 3, 4])], [("y", [2, 3, 4])]), tmp_path)
    opened = paddle.onnx.load(tmp_path / "net.onnx", [InputSpec([None, 3, "width"])])
    for shape in ([2, 3, 4], [5, 3, 7]):
        assert opened(paddle.ones(shape)).shape == shape


WRONG = {
    "rank": (
        [InputSpec([2, 3]), InputSpec([3, 4])],
        r"input 'x' float32\[2, 3\]\n.* float32\[n, 3, m\]",
    ),
    "size": ([InputSpec([2, 5, 4], name="x")], r"input 'x' float32\[2, 5, 4\]"),
    "dtype": ([InputSpec([3, 4], "int64", "y")], r"input 'y' int64\[3, 4\]\n.* float32\[3, m\]"),
    "number": ([InputSpec([3, 4])], r"1 InputSpecs for the inputs x .*, y "),
    "name": ([InputSpec([3, 4], name="v")], r"1 InputSpecs named \['v'\] for the inputs x .*, y "),
}


@pytest.mark.parametrize("kind", WRONG)
def test_sizes_that_an_input_cannot_have_are_refused(kind, tmp_path):
    path, _ = sum_of_two(tmp_path)
    specs, message = WRONG[kind]
    with pytest.raises(ValueError, match=message):
        paddle.onnx.load(path, specs)
    with pytest.raises(TypeError, match="a list of InputSpecs"):
        paddle.onnx.load(path, InputSpec([3, 4]))


def constant(name: str, array):
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array))


def normed_product(weights_in):
    """x @ w scaled, normalised and clipped; `weights_in` says where its arrays stand."""
    rng = np.random.default_rng(3)
    draw = lambda *shape: (rng.random(shape) + 0.5).astype("float32")
    arrays = {"w": draw(4, 5), "scale": draw(3), "shift": draw(3), "mean": draw(3), "var": draw(3),
              "half": np.float32(0.5), "top": np.array([4.0], "float32"),
              "square": np.array([2.0], "float32")}  # fmt: skip
    nodes = [
        helper.make_node("Identity", ["mean"], ["same_mean"]),
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Mul", ["a", "half"], ["b"]),
        helper.make_node("BatchNormalization", ["b", "scale", "shift", "same_mean", "var"], ["c"]),
        helper.make_node("Pow", ["c", "square"], ["d"]),
        helper.make_node("Clip", ["d", "", "top"], ["y"]),
    ]
    made = [constant(n, a) for n, a in arrays.items()] if weights_in == "Constant" else []
    known = {} if made else arrays
    return model_of([*made, *nodes], [("x", [2, 3, 4])], [("y", [2, 3, 5])], known)


@pytest.mark.parametrize("weights_in", ["Constant", "initializer"])
def test_constants_are_weights_as_initializers_are(weights_in, tmp_path):
    model = normed_product(weights_in)
    net = load(model, tmp_path)
    assert {n for n, _ in net.named_parameters()} == {"w", "scale", "shift"}
    assert {n for n, _ in net.named_buffers()} == {"mean", "var"}
    np.testing.assert_allclose(net(paddle.to_tensor(X)), by_runtime(model, [X])[0], 1e-5, 1e-5)
    net(paddle.to_tensor(X)).sum().backward()
    assert all(p.grad is not None for p in net.parameters())
    paddle.optimizer.SGD(0.1, parameters=net.parameters()).step()
    trained = net(paddle.to_tensor(X)).numpy()
    path = str(tmp_path / "again.onnx")
    paddle.onnx.export(net, path)
    again = paddle.onnx.load(path)
    assert again.state_dict().keys() == net.state_dict().keys()
    np.testing.assert_allclose(again(paddle.to_tensor(X)), trained, 1e-5, 1e-5)
    np.testing.assert_allclose(by_runtime(path, [X])[0], trained, 1e-5, 1e-5)


def test_weights_in_branches(tmp_path):
    """Those of one name in both branches are two values, and stay numbers of the program."""
    draw = np.random.default_rng(5).standard_normal
    sides = {}
    for side in ("then", "else"):
        own, shared = draw(4).astype("float32"), draw(4).astype("float32")
        nodes = [
            constant(f"{side}_w", own),
            constant("both", shared),
            helper.make_node("Mul", ["x", f"{side}_w"], [f"{side}_m"]),
            helper.make_node("Add", [f"{side}_m", "both"], [f"{side}_y"]),
        ]
        y = helper.make_tensor_value_info(f"{side}_y", TensorProto.FLOAT, [3, 4])
        sides[f"{side}_branch"] = helper.make_graph(nodes, side, [], [y])
    node = helper.make_node("If", ["on"], ["y"], **sides)
    model = model_of([node], [("x", [3, 4]), ("on", [], TensorProto.BOOL)], [("y", [3, 4])])
    net = load(model, tmp_path)
    assert {*net.state_dict()} == {"then_w", "else_w"}
    for on in (True, False):
        ours = net(paddle.to_tensor(X[0]), paddle.to_tensor(on)).numpy()
        np.testing.assert_allclose(ours, by_runtime(model, [X[0], np.array(on)])[0], 1e-6)


def test_weights_that_are_hardly_numbers_are_zeros(tmp_path):
    """A processor multiplies them slowly. In half precision they are numbers like others."""
    for dtype, small, expected in (("float32", 1e-39, 0.0), ("float16", 3e-6, 3e-6)):
        w = np.array([1.5, small, -small, np.nan], dtype)
        code = helper.np_dtype_to_tensor_dtype(w.dtype)
        node = helper.make_node("Mul", ["x", "w"], ["y"])
        model = model_of([node], [("x", [4], code)], [("y", [4], code)], {"w": w})
        kept = load(model, tmp_path).state_dict()["w"].numpy()
        np.testing.assert_array_equal(kept, np.array([1.5, expected, -expected, np.nan], dtype))
