"""Files of ONNX become layers: models of PyTorch's exporters, control flow, files that lie."""

import contextlib
import os
import tracemalloc
import warnings
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

import minipaddle as paddle
from minipaddle.onnx import FUNCTIONS
from tests.onnx import fuzz
from tests.onnx.running import by_runtime, error
from tests.onnx.torch_models import MODELS, RECORDED, build

FOLDER = Path(__file__).parents[1] / "data" / "onnx"


def results(y) -> list[np.ndarray]:
    y = y if isinstance(y, tuple | list) else [y]
    return [x.detach().numpy() if isinstance(x, torch.Tensor) else x.numpy() for x in y]


def check_against_torch(path, name) -> None:
    """A file gives what the model of PyTorch gives, also for another batch."""
    model, x = build(name)
    loaded = paddle.onnx.load(path)
    for each in (x, torch.cat([x, x[:1]])):
        ours, theirs = results(loaded(paddle.to_tensor(each.numpy()))), results(model(each))
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def torchscript(name: str, path: str, opset: int = 17) -> None:
    model, x = build(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model, (x,), path, dynamo=False, input_names=["x"], dynamic_axes={"x": {0: "n"}},
            opset_version=opset,
        )  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_the_older_exporter(name, tmp_path):
    path = str(tmp_path / "net.onnx")
    torchscript(name, path)
    check_against_torch(path, name)


@pytest.mark.parametrize("name", RECORDED)
def test_a_model_of_the_newer_exporter(name):
    check_against_torch(FOLDER / f"{name}.onnx", name)


OLD = {"MobileNet": 9, "UNet": 11, "VGG": 12, "DenseNet": 13}


@pytest.mark.parametrize("name", OLD)
def test_an_old_opset(name, tmp_path):
    """Axes, sizes, splits and bounds were attributes then, norms were written out."""
    path = str(tmp_path / "net.onnx")
    torchscript(name, path, OLD[name])
    assert onnx.load(path).opset_import[0].version == OLD[name]
    check_against_torch(path, name)


def test_a_loaded_model_trains_on_like_torchs(tmp_path):
    path = str(tmp_path / "net.onnx")
    torchscript("LeNet", path)
    model, x = build("LeNet")
    labels = torch.tensor([3, 7])
    loaded = paddle.onnx.load(path)
    assert loaded.state_dict().keys() == dict(model.named_parameters()).keys()
    ours = paddle.optimizer.SGD(0.05, parameters=loaded.parameters())
    theirs = torch.optim.SGD(model.parameters(), 0.05)
    for _ in range(4):
        loss = paddle.nn.functional.cross_entropy(
            loaded(paddle.to_tensor(x.numpy())), paddle.to_tensor(labels.numpy())
        )
        loss.backward()
        ours.step()
        ours.clear_grad()
        other = torch.nn.functional.cross_entropy(model(x), labels)
        theirs.zero_grad()
        other.backward()
        theirs.step()
        assert abs(loss.item() - other.item()) < 1e-4
    for name, value in loaded.state_dict().items():
        own = dict(model.named_parameters())[name].detach().numpy()
        np.testing.assert_allclose(value.numpy(), own, atol=1e-4)


def test_what_is_loaded_can_be_saved(tmp_path):
    loaded = paddle.onnx.load(FOLDER / "GPT.onnx")
    tokens = paddle.to_tensor(build("GPT")[1].numpy())
    paddle.jit.save(loaded, str(tmp_path / "net"))
    again = paddle.jit.load(str(tmp_path / "net"))
    assert bool((again(tokens) == loaded(tokens)).all())


def test_rows_that_one_hot_rows_pick_out(tmp_path):
    """An initializer that counts is no weight, so a program knows what is compared with it."""
    nodes = [
        helper.make_node("Unsqueeze", ["x", "last"], ["places"]),
        helper.make_node("Equal", ["places", "counted"], ["same"]),
        helper.make_node("Cast", ["same"], ["ones"], to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["ones", "table"], ["y"]),
    ]
    counted, table = np.arange(90, dtype="int32").reshape(1, 90), W.reshape(6, 4).repeat(15, 0)
    initializers = {"last": np.array([-1]), "counted": counted, "table": table}
    inputs = [("x", [3], TensorProto.INT32)]
    loaded = load(model_of(nodes, inputs, [("y", [3, 4])], initializers), tmp_path)
    assert [*loaded.state_dict()] == ["table"]
    x = np.array([88, 0, 90], "int32")
    for run in (loaded, paddle.jit.to_static(lambda x: loaded(x), backend="native")):
        got = run(paddle.to_tensor(x)).numpy()
        np.testing.assert_array_equal(got, [table[88], table[0], np.zeros(4)])
    assert "take" in str(run.executables[0].program)


# ---- single nodes ------------------------------------------------------------------------------


def model_of(nodes, inputs, outputs, initializers=(), opset=17, **more):
    """A model; inputs and outputs are pairs (name, shape) of floats, or name, shape and dtype."""
    declare = lambda name, shape, code=TensorProto.FLOAT: helper.make_tensor_value_info(
        name, code, shape
    )
    graph = helper.make_graph(
        nodes, "g", [declare(*x) for x in inputs], [declare(*y) for y in outputs],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in dict(initializers).items()],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10, **more)


def load(model, folder):
    path = str(folder / "net.onnx")
    onnx.save(model, path)
    return paddle.onnx.load(path)


X = np.random.default_rng(0).standard_normal((2, 3, 4)).astype("float32")
W = np.random.default_rng(1).standard_normal((2, 3, 4)).astype("float32")
WHOLE = np.array([[7, -7, 5], [3, -4, 0]])
IMAGE = np.random.default_rng(2).standard_normal((1, 4, 6, 6)).astype("float32")

NODES = {
    "Hardmax opset 11 softmax": ("Softmax", [X], {"axis": 1}, 11),
    "Div towards 0": ("Div", [WHOLE, np.array([2, 2, -3])], {}, 17),
    "Mod": ("Mod", [WHOLE, np.array([3, 3, -3])], {}, 17),
    "fmod": ("Mod", [X, W], {"fmod": 1}, 17),
    "Clip old": ("Clip", [X], {"min": -0.5, "max": 0.5}, 9),
    "Slice backwards": ("Slice", [X, np.array([-1]), np.array([-9]), np.array([2]),
                                  np.array([-2])], {}, 17),
    "Pad reflect": ("Pad", [X, np.array([0, 1, 2, 0, 1, 1])], {"mode": "reflect"}, 17),
    "Pad edge": ("Pad", [X, np.array([0, 1, 2, 0, 0, 1])], {"mode": "edge"}, 17),
    "Pad negative": ("Pad", [X, np.array([0, -1, 2, 0, 0, -1])], {}, 17),
    "Expand": ("Expand", [X[:, :1], np.array([1, 3, 1])], {}, 17),
    "Tile": ("Tile", [X, np.array([1, 2, 1])], {}, 17),
    "Einsum": ("Einsum", [X, W], {"equation": "abc,abd->acd"}, 17),
    "ReduceL2": ("ReduceL2", [X], {"axes": [1], "keepdims": 0}, 13),
    "ReduceLogSumExp": ("ReduceLogSumExp", [X, np.array([1, 2])], {"keepdims": 0}, 18),
    "ReduceSumSquare": ("ReduceSumSquare", [X], {}, 13),
    "ArgMax last": ("ArgMax", [np.round(X)], {"axis": 2, "select_last_index": 1}, 17),
    "CumSum": ("CumSum", [X, np.array(1)], {"exclusive": 1, "reverse": 1}, 17),
    "GatherElements": ("GatherElements", [X, np.array([[[2, 0]]])], {"axis": 2}, 17),
    "GatherND": ("GatherND", [X, np.array([[0, 1], [1, 2]])], {}, 17),
    "ScatterND": ("ScatterND", [X, np.array([[0, 1], [1, 2]]), W[0, :2]], {}, 17),
    "ScatterElements": ("ScatterElements", [X, np.array([[[2, 0]]]), W[:1, :1, :2]],
                        {"axis": 2, "reduction": "add"}, 17),
    "OneHot": ("OneHot", [WHOLE[1] % 4, np.array(4), np.array([0.5, 2.0], "float32")],
               {"axis": 0}, 17),
    "TopK": ("TopK", [X, np.array([2])], {"axis": 1}, 17),
    "Trilu": ("Trilu", [X, np.array(1)], {"upper": 0}, 17),
    "Range": ("Range", [np.array(2), np.array(11), np.array(3)], {}, 17),
    "SpaceToDepth": ("SpaceToDepth", [IMAGE], {"blocksize": 2}, 17),
    "DepthToSpace": ("DepthToSpace", [IMAGE], {"blocksize": 2}, 17),
    "DepthToSpace CRD": ("DepthToSpace", [IMAGE], {"blocksize": 2, "mode": "CRD"}, 17),
    "MaxPool same": ("MaxPool", [IMAGE], {"kernel_shape": [3, 3], "strides": [2, 2],
                                          "auto_pad": "SAME_UPPER"}, 17),
    "AveragePool ceil": ("AveragePool", [IMAGE], {"kernel_shape": [3, 3], "strides": [2, 2],
                                                  "ceil_mode": 1}, 19),
    "AveragePool pad": ("AveragePool", [IMAGE], {"kernel_shape": [3, 2], "pads": [1, 0, 2, 1],
                                                 "count_include_pad": 1}, 17),
    "Resize nearest": ("Resize", [IMAGE, None, np.array([1, 1, 1.5, 2], "float32")],
                       {"mode": "nearest", "coordinate_transformation_mode": "asymmetric",
                        "nearest_mode": "floor"}, 17),
    "Resize nearest corners": ("Resize", [IMAGE, None, np.array([1, 1, 3, 2], "float32")],
                               {"mode": "nearest",
                                "coordinate_transformation_mode": "align_corners"}, 17),
    "Resize nearest ceil": ("Resize", [IMAGE, None, np.array([1, 1, 3, 2], "float32")],
                            {"mode": "nearest", "nearest_mode": "ceil"}, 17),
    "Upsample": ("Upsample", [IMAGE, np.array([1, 1, 3, 1], "float32")], {}, 9),
    "Resize old": ("Resize", [IMAGE, np.array([1, 1, 3, 0.4], "float32")], {}, 10),
    "Resize cubic": ("Resize", [IMAGE, None, None, np.array([1, 4, 9, 4])],
                     {"mode": "cubic"}, 17),
    "Resize corners": ("Resize", [IMAGE, None, None, np.array([1, 4, 9, 4])],
                       {"mode": "linear", "coordinate_transformation_mode": "align_corners"}, 17),
    "LRN": ("LRN", [IMAGE], {"size": 3}, 17),
    "GroupNormalization": ("GroupNormalization", [IMAGE, W[0, 0], W[0, 1]],
                           {"num_groups": 2}, 21),
    "LpNormalization": ("LpNormalization", [X], {"axis": 1, "p": 2}, 17),
    "Selu": ("Selu", [X], {}, 17),
    "Shrink": ("Shrink", [X], {"lambd": 0.4, "bias": 0.1}, 17),
    "PRelu": ("PRelu", [X, W[0, :, :1]], {}, 17),
    "IsInf": ("IsInf", [np.array([np.inf, -np.inf, 1.0], "float32")], {"detect_negative": 0}, 17),
    "BitShift": ("BitShift", [np.array([1, 4], "uint8"), np.array([3, 1], "uint8")],
                 {"direction": "LEFT"}, 17),
    "NonZero": ("NonZero", [WHOLE], {}, 17),
    "Compress": ("Compress", [X, np.array([True, False, True])], {"axis": 1}, 17),
    "MatMulInteger": ("MatMulInteger", [np.array([[3, 250]], "uint8"),
                                        np.array([[1], [-9]], "int8"), np.array(128, "uint8")],
                      {}, 17),
    "DynamicQuantizeLinear": ("DynamicQuantizeLinear", [X], {}, 17),
    "QuantizeLinear": ("QuantizeLinear", [X, np.array([0.1, 0.2, 0.3], "float32"),
                                          np.array([1, 0, 3], "int8")], {"axis": 1}, 17),
    "DequantizeLinear": ("DequantizeLinear", [np.array([[3], [-100]], "int8"),
                                              np.array([0.1, 0.2], "float32")], {"axis": 0}, 17),
    "RNN": ("RNN", [X, W[:1, :, :], W[1:, :, :3]], {"hidden_size": 3, "direction": "reverse"}, 17),
    "LSTM": ("LSTM", [X, np.ones((1, 4, 4), "float32") / 4, W[:1, 0, :4].reshape(1, 4, 1)],
             {"hidden_size": 1}, 17),
    "LSTM of full length": ("LSTM", [X, np.ones((1, 4, 4), "float32") / 4,
                                     W[:1, 0, :4].reshape(1, 4, 1), None,
                                     np.array([2, 2, 2], "int32")], {"hidden_size": 1}, 17),
    "LSTM of short length": ("LSTM", [X, np.ones((1, 4, 4), "float32") / 4,
                                      W[:1, 0, :4].reshape(1, 4, 1), None,
                                      np.array([1, 2, 1], "int32")], {"hidden_size": 1}, 17),
    "GRU before reset": ("GRU", [X, W[:1], W[1:, :, :1], W.reshape(1, -1)[:, :6]],
                         {"hidden_size": 1, "linear_before_reset": 0}, 17),
    "Col2Im": ("Col2Im", [X, np.array([2, 2]), np.array([1, 1])], {}, 18),
    "GridSample": ("GridSample", [IMAGE, np.tanh(W[:1, :, :].reshape(1, 2, 3, 2))], {}, 16),
}  # fmt: skip
RESULTS = {"TopK": 2, "DynamicQuantizeLinear": 3, "RNN": 2, "LSTM": 3, "GRU": 2}


@pytest.mark.parametrize("name", NODES)
def test_a_node_means_what_onnxruntime_computes(name, tmp_path):
    """The first input is the model's, the others are known; then all of them are inputs."""
    kind, arrays, attrs, opset = NODES[name]
    names = ["" if a is None else f"i{k}" for k, a in enumerate(arrays)]
    outputs = [f"o{k}" for k in range(RESULTS.get(kind, 1))]
    node = helper.make_node(kind, names, outputs, name="it", **attrs)
    code = lambda a: helper.np_dtype_to_tensor_dtype(a.dtype)
    given = {n: a for n, a in zip(names, arrays, strict=True) if a is not None}
    inputs = [("i0", arrays[0].shape, code(arrays[0]))]
    rest = {n: a for n, a in given.items() if n != "i0"}
    model = model_of([node], inputs, [(o, None, TensorProto.FLOAT) for o in outputs], rest, opset)
    for value in model.graph.output:  # their dtypes follow from the node
        value.ClearField("type")
    model = onnx.shape_inference.infer_shapes(model)
    for value in model.graph.output:
        if value.type.WhichOneof("value") is None:
            value.type.CopyFrom(model.graph.input[0].type)
    theirs = by_runtime(model, [arrays[0]])
    ours = results(load(model, tmp_path)(paddle.to_tensor(arrays[0])))
    for a, b in zip(ours, theirs, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a.astype("float64"), b.astype("float64"), 1e-4, 1e-5)


def test_a_function_that_the_file_defines_is_called(tmp_path):
    node = helper.make_node("Twice", ["x"], ["y"], domain="mine")
    model = model_of([node], [("x", [2])], [("y", [2])])
    body = [helper.make_node("Add", ["a", "a"], ["b"])]
    opsets = [helper.make_opsetid("", 17)]
    model.functions.append(helper.make_function("mine", "Twice", ["a"], ["b"], body, opsets))
    model.opset_import.append(helper.make_opsetid("mine", 1))
    assert load(model, tmp_path)(paddle.to_tensor([1.0, 2.0])).tolist() == [2.0, 4.0]


def test_results_that_nobody_names(tmp_path):
    """An LSTM of which the last state alone is wanted."""
    node = helper.make_node("LSTM", ["x", "w", "r"], ["", "h"], hidden_size=1)
    known = {"w": np.ones((1, 4, 4), "float32"), "r": np.ones((1, 4, 1), "float32")}
    model = model_of([node], [("x", [2, 3, 4])], [("h", [1, 3, 1])], known)
    ours = load(model, tmp_path)(paddle.to_tensor(X)).numpy()
    assert error(ours, by_runtime(model, [X])[0]) < 1e-5


def loop_model(limit, scans: bool):
    """Doubles x `limit` times, and while its sum is small; with scans also each value."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["v", "v"], ["w"]),
            helper.make_node("Identity", ["going"], ["more"]),
            *([helper.make_node("Identity", ["w"], ["s"])] if scans else []),
        ],
        "body",
        [
            helper.make_tensor_value_info("k", TensorProto.INT64, []),
            helper.make_tensor_value_info("going", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", TensorProto.FLOAT, [2]),
        ],
        [
            helper.make_tensor_value_info("more", TensorProto.BOOL, []),
            helper.make_tensor_value_info("w", TensorProto.FLOAT, [2]),
            *([helper.make_tensor_value_info("s", TensorProto.FLOAT, [2])] if scans else []),
        ],
    )
    outputs = ["y", "each"] if scans else ["y"]
    node = helper.make_node("Loop", ["n", "yes", "x"], outputs, body=body)
    known = {"yes": np.array(True)} | ({} if limit is None else {"n": np.array(limit)})
    inputs = [("x", [2])] + ([("n", [], TensorProto.INT64)] if limit is None else [])
    shapes = [("y", [2]), ("each", [None, 2])]
    return model_of([node], inputs, shapes[: len(outputs)], known)


def test_loops(tmp_path):
    x = paddle.to_tensor([1.0, -2.0])
    y, each = load(loop_model(3, True), tmp_path)(x)
    assert y.tolist() == [8.0, -16.0]
    assert each.tolist() == [[2.0, -4.0], [4.0, -8.0], [8.0, -16.0]]
    many = load(loop_model(20, False), tmp_path)
    assert [r.op.name for r in many.program().records].count("while_loop") == 1
    assert many(x).tolist() == [2.0**20, -(2.0**21)]
    for n in (0, 5):
        asked = load(loop_model(None, False), tmp_path)(x, paddle.to_tensor(n))
        assert asked.tolist() == [2.0**n, -2.0 * 2.0**n]
    with pytest.raises(NotImplementedError, match=r"(?s)onnx\.Loop.*results of each iteration"):
        load(loop_model(None, True), tmp_path)


# ---- what is refused ---------------------------------------------------------------------------


def test_what_cannot_be_read_is_named(tmp_path):
    node = helper.make_node("StringNormalizer", ["x"], ["y"], name="words")
    model = model_of([node], [("x", [1], TensorProto.STRING)], [("y", [1], TensorProto.STRING)])
    with pytest.raises(NotImplementedError, match="input 'x'"):
        load(model, tmp_path)
    node = helper.make_node("Multinomial", ["x"], ["y"], name="dice")
    model = model_of([node], [("x", [1, 2])], [("y", [1, 1], TensorProto.INT32)])
    message = r"(?s)'dice' \(onnx\.Multinomial\) is not supported.*of which \w+ is the nearest"
    with pytest.raises(NotImplementedError, match=message):
        load(model, tmp_path)
    node = helper.make_node("Gelu", ["x"], ["y"], domain="com.microsoft", name="theirs")
    model = model_of([node], [("x", [2])], [("y", [2])])
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    with pytest.raises(NotImplementedError, match=r"'theirs' \(com\.microsoft\.Gelu\)"):
        load(model, tmp_path)
    kept = helper.make_node("Dropout", ["x", "", "on"], ["y"], name="chance")
    model = model_of([kept], [("x", [2])], [("y", [2])], {"on": np.array(True)})
    with pytest.raises(NotImplementedError, match=r"'chance'.*evaluation mode"):
        load(model, tmp_path)


def identity(tensor):
    """A model that adds an initializer to its input."""
    node = helper.make_node("Add", ["x", tensor.name], ["y"])
    model = model_of([node], [("x", [4])], [("y", [4])])
    model.graph.initializer.append(tensor)
    return model


def outside(location: str, **entries):
    tensor = numpy_helper.from_array(np.ones(4, "float32"), "w")
    onnx.external_data_helper.set_external_data(tensor, location)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    return identity(tensor)


@pytest.mark.parametrize(
    "location",
    ["../secret", "/etc/passwd", "inner/../../secret", "..\\secret", "", "link", "missing"],
)
def test_external_data_stays_in_its_folder(location, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(bytes(16))
    os.symlink(tmp_path / "secret", folder / "link")
    (folder / "net.onnx").write_bytes(outside(location).SerializeToString())
    with pytest.raises(ValueError, match=r"net\.onnx holds no model, or a damaged one"):
        paddle.onnx.load(folder / "net.onnx")


@pytest.mark.parametrize(
    "entries",
    [{"offset": "8"}, {"length": "12"}, {"length": "-1"}, {"offset": "-4"}, {"offset": "x"},
     {"length": str(2**62)}],
)  # fmt: skip
def test_external_data_is_as_long_as_it_says(entries, tmp_path):
    (tmp_path / "w").write_bytes(np.ones(4, "float32").tobytes())
    path = tmp_path / "net.onnx"
    path.write_bytes(outside("w").SerializeToString())
    assert paddle.onnx.load(path)(paddle.zeros([4])).tolist() == [1.0] * 4
    path.write_bytes(outside("w", **entries).SerializeToString())
    with pytest.raises(ValueError, match="holds no model, or a damaged one"):
        paddle.onnx.load(path)


def lying(change):
    tensor = numpy_helper.from_array(np.ones(4, "float32"), "w")
    change(tensor)
    return identity(tensor).SerializeToString()


def dims(*sizes):
    def change(tensor):
        del tensor.dims[:]
        tensor.dims.extend(sizes)

    return change


LIES = {
    "longer": lying(dims(5)),
    "huge": lying(dims(2**40, 2**20)),
    "negative": lying(dims(-4)),
    "many axes": lying(dims(*[1] * 99, 4)),
    "dtype": lying(lambda t: setattr(t, "data_type", 12345)),
    "strings": lying(lambda t: setattr(t, "data_type", TensorProto.STRING)),
    "no protobuf": b"\x80\x04cos\nsystem\n",
    "cut off": lying(lambda t: None)[:-9],
    "empty": b"",
}


@pytest.mark.parametrize("lie", LIES)
def test_a_file_that_lies_is_refused(lie, tmp_path):
    path = tmp_path / "net.onnx"
    path.write_bytes(LIES[lie])
    with pytest.raises(ValueError, match=r"net\.onnx"):
        paddle.onnx.load(path)


def test_a_small_file_does_not_fill_the_memory(tmp_path):
    """A constant of a terabyte is a record of the program; its memory is asked for when it runs."""
    nodes = [
        helper.make_node("ConstantOfShape", ["s"], ["big"]),
        helper.make_node("ReduceSum", ["big"], ["sum"], keepdims=0),
        helper.make_node("Add", ["x", "sum"], ["y"]),
    ]
    model = model_of(nodes, [("x", [4])], [("y", [4])], {"s": np.array([2**20, 2**18])})
    assert load(model, tmp_path).program().records


def test_a_missing_file_and_an_opset_that_is_not_known(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no .*other\.onnx"):
        paddle.onnx.load(tmp_path / "other.onnx")
    node = helper.make_node("Relu", ["x"], ["y"])
    with pytest.raises(ValueError, match=r"opset 6.*\n.*from 7"):
        load(model_of([node], [("x", [2])], [("y", [2])], opset=6), tmp_path)
    rank = model_of([node], [("x", None)], [("y", None)])
    with pytest.raises(ValueError, match="shape"):
        load(rank, tmp_path)
    assert "Conv" in FUNCTIONS


def test_what_is_loaded_can_be_exported_again(tmp_path):
    x = build("Encoder")[1].numpy()
    loaded = paddle.onnx.load(FOLDER / "Encoder.onnx")
    path = str(tmp_path / "again.onnx")
    paddle.onnx.export(loaded, path)
    assert error(loaded(paddle.to_tensor(x)).numpy(), by_runtime(path, [x])[0]) < 1e-5
    model = onnx.load(path)
    assert [n.op_type for n in model.graph.node].count("LayerNormalization") == 4
    assert len(model.graph.node) <= 110  # the file of PyTorch has 103


def calling(levels: int, times: int, leaf) -> onnx.ModelProto:
    """A model whose function calls another one so many times, on so many levels."""
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    functions = [helper.make_function("own", "f0", ["a"], ["b"], [leaf], sets)]
    for k in range(1, levels):
        names = ["a", *(f"t{j}" for j in range(1, times)), "b"]
        body = [helper.make_node(f"f{k - 1}", [x], [y], domain="own") for x, y in pairwise(names)]
        functions.append(helper.make_function("own", f"f{k}", ["a"], ["b"], body, sets))
    node = helper.make_node(f"f{levels - 1}", ["x"], ["y"], domain="own")
    model = model_of([node], [("x", [2])], [("y", [2])], functions=functions)
    model.opset_import.append(sets[1])
    return model


@pytest.mark.timeout(120)
def test_functions_that_call_functions_end_at_a_limit(tmp_path, monkeypatch):
    """Ten calls on each of nine levels are a thousand million nodes in a file of 5 kB."""
    leaf = helper.make_node("Identity", ["a"], ["b"])
    with pytest.raises(ValueError, match=r"net\.onnx holds no model.*over 65,536 nodes"):
        load(calling(9, 10, leaf), tmp_path)
    assert (tmp_path / "net.onnx").stat().st_size < 8000
    few = calling(3, 5, helper.make_node("Add", ["a", "a"], ["b"]))
    assert load(few, tmp_path)(paddle.to_tensor([1.0, 2.0])).tolist() == [2.0**25, 2.0**26]
    monkeypatch.setattr("minipaddle.onnx.graphs.MOST_NODES", 30)
    with pytest.raises(ValueError, match="over 30 nodes"):
        load(few, tmp_path)


@pytest.mark.timeout(120)
def test_loops_in_loops_end_at_the_same_limit(tmp_path):
    """Each of six levels is written out eight times: 8^6 additions."""
    model = loop_model(8, False)
    for _ in range(5):
        inner = model.graph.node[0]
        outer = loop_model(8, False)
        node = helper.make_node("Loop", ["n8", "yes1", "v"], ["w"], body=inner.attribute[0].g)
        del outer.graph.node[0].attribute[0].g.node[0]
        outer.graph.node[0].attribute[0].g.node.insert(0, node)
        for name, value in {"n8": np.array(8), "yes1": np.array(True)}.items():
            outer.graph.node[0].attribute[0].g.initializer.append(
                numpy_helper.from_array(value, name)
            )
        model = outer
    with pytest.raises(ValueError, match="over 65,536 nodes"):
        load(model, tmp_path)


GROWTHS = {
    "outer products": ["MatMul", {"a": np.ones((64, 1)), "b": np.ones((1, 128))}],
    "a step of a range": ["Range", {"a": np.array(0.0), "b": np.array(1.0), "c": np.array(1e-8)}],
    "pads of a small array": ["Pad", {"a": np.ones((1, 1)), "b": np.array([1 << 12] * 4)}],
}


@pytest.mark.parametrize("name", GROWTHS)
def test_what_is_computed_while_a_file_is_read_is_small(name, tmp_path):
    """Arrays of half a gigabyte become records of the program, or are refused."""
    kind, given = GROWTHS[name]
    constants = [
        helper.make_node("Constant", [], [n], value=numpy_helper.from_array(a))
        for n, a in given.items()
        if n
    ]
    nodes = [*constants, helper.make_node(kind, [*given], ["big"])]
    if kind == "MatMul":  # 2^13 elements, then 2^26
        nodes += [
            helper.make_node("Reshape", ["big", "row"], ["r"]),
            helper.make_node("Reshape", ["big", "column"], ["s"]),
            helper.make_node("MatMul", ["s", "r"], ["bigger"]),
        ]
        rows = {"row": np.array([1, -1]), "column": np.array([-1, 1])}
    last = nodes[-1].output[0]
    nodes += [
        helper.make_node("Cast", [last], ["f"], to=1),
        helper.make_node("ReduceSum", ["f"], ["sum"], keepdims=0),
        helper.make_node("Add", ["x", "sum"], ["y"]),
    ]
    model = model_of(nodes, [("x", [4])], [("y", [4])], rows if kind == "MatMul" else {})
    tracemalloc.start()
    with contextlib.suppress(ValueError):
        load(model, tmp_path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200 << 20


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs")
@pytest.mark.timeout(20)
def test_a_fifo_is_refused(tmp_path):
    os.mkfifo(tmp_path / "net.onnx")
    with pytest.raises(ValueError, match=r"net\.onnx is a FIFO"):
        paddle.onnx.load(tmp_path / "net.onnx")


def test_what_cannot_be_read_is_a_value_error_too(tmp_path):
    """Who loads strangers' files catches one kind of error."""
    node = helper.make_node("Multinomial", ["x"], ["y"], name="dice")
    model = model_of([node], [("x", [1, 2])], [("y", [1, 1], TensorProto.INT32)])
    with pytest.raises(ValueError, match="Multinomial"):
        load(model, tmp_path)


@pytest.mark.timeout(120)
def test_changed_files_load_or_are_refused(tmp_path):
    """Some of those of `python -m tests.onnx.fuzz --files 5000`."""
    seen = Counter()
    files = {p.name: p.read_bytes() for p in sorted(FOLDER.glob("*.onnx"))}
    files["functions.onnx"] = fuzz.with_functions()
    for seed, (name, data) in enumerate(list(files.items()) * 15):
        path = tmp_path / name
        path.write_bytes(fuzz.changed(data, seed))
        seen[fuzz.outcome(path)] += 1
    assert seen["refused"] > 30
    assert {*seen} == {"refused", "loads"}, seen


def test_damaged_bytes_are_refused_by_name(tmp_path):
    """Such a file is another model, or none; it never leads to an error of Python's."""
    data, path = bytearray((FOLDER / "LSTM.onnx").read_bytes()), tmp_path / "net.onnx"
    rng, refused, read = np.random.default_rng(0), 0, 0
    for _ in range(25):
        copy = bytearray(data)
        for place in rng.integers(0, 6000, 4):
            copy[place] = rng.integers(0, 256)
        path.write_bytes(copy)
        try:
            paddle.onnx.load(path)
        except (ValueError, NotImplementedError) as why:
            refused += "net.onnx" in str(why) or "paddle.onnx.load" in str(why)
        else:
            read += 1
    assert refused > 10
    assert read + refused == 25
