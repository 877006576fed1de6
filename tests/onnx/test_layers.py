"""A loaded network is a layer like any other: a small one of the operators of PP-OCR's readers."""

import numpy as np
import pytest
from onnx import helper

import minipaddle as paddle
from minipaddle.quantization import PTQ, QuantConfig, report
from minipaddle.quantization.observers import AbsMaxChannelWiseWeightObserver, AbsmaxObserver
from tests.onnx.running import by_runtime
from tests.onnx.test_inputs import constant
from tests.onnx.test_load import load, model_of

NODES = """
    Conv x w0 b0 : a0                   Mul a0 scale : a1                Add a1 shift : a2
    HardSigmoid a2 : gate               Mul a2 gate : a3                 Conv a3 w1 : a4
    AveragePool a4 : a5                 ReduceMean a4 : a6               Concat a5 a6 : a7
    ReduceMean a7 : a8                  Transpose a8 : a9                MatMul a9 w2 : a10
    ReduceMean a10 : mean               Sub a10 mean : c0                Pow c0 two : c1
    ReduceMean c1 : var                 Add var tiny : c2                Sqrt c2 : c3
    Div c0 c3 : c4                      Mul c4 w3 : c5                   Add c5 b3 : c6
    MatMul c6 w4 : c7                   Softmax c7 : y
"""
ATTRIBUTES = {
    "a0": {"strides": [2, 1], "pads": [1, 1, 1, 1]}, "a4": {"auto_pad": "SAME_UPPER", "group": 2},
    "gate": {"alpha": 0.2, "beta": 0.5}, "a5": {"kernel_shape": [4, 1], "strides": [4, 1]},
    "a6": {"axes": [2]}, "a7": {"axis": 1}, "a8": {"axes": [2], "keepdims": 0},
    "a9": {"perm": [0, 2, 1]}, "mean": {"axes": [-1]}, "var": {"axes": [-1]}, "y": {"axis": 2},
}  # fmt: skip


def reader():
    """[n, 3, 8, w] to the probabilities [n, w, 6] of six letters; its weights are Constants."""
    draw = np.random.default_rng(7).standard_normal
    shapes = {"w0": (4, 3, 3, 3), "b0": (4,), "scale": (1,), "shift": (1, 4, 1, 1),
              "w1": (6, 2, 2, 2), "w2": (12, 8), "w3": (8,), "b3": (8,), "w4": (8, 6)}  # fmt: skip
    arrays = {n: (draw(s) * 0.4).astype("float32") for n, s in shapes.items()}
    arrays |= {"two": np.float32(2), "tiny": np.float32(1e-5)}
    words, nodes = NODES.split(), [constant(n, a) for n, a in arrays.items()]
    while words:
        colon = words.index(":")
        kind, *inputs = words[:colon]
        output = words[colon + 1]
        nodes.append(helper.make_node(kind, inputs, [output], **ATTRIBUTES.get(output, {})))
        del words[: colon + 2]
    return model_of(nodes, [("x", ["n", 3, "h", "w"])], [("y", ["n", "w", 6])], opset=12)


def lines(*shape) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("float32")


LINES = lines(2, 3, 8, 12), lines(1, 3, 8, 7), lines(3, 3, 7, 9)
WEIGHTS = {"w0", "b0", "scale", "shift", "w1", "w2", "w3", "b3", "w4"}
ANY = [paddle.static.InputSpec([None, 3, None, None])]


@pytest.fixture
def net(tmp_path):
    return load(reader(), tmp_path)


def check(net, tolerance=2e-6) -> None:
    """What onnxruntime computes, for lines of several widths."""
    with paddle.no_grad():
        for x in LINES:
            ours = net(paddle.to_tensor(x))
            np.testing.assert_allclose(ours, by_runtime(reader(), [x])[0], atol=tolerance)


def test_its_state(net, tmp_path):
    assert {*net.state_dict()} == WEIGHTS
    twin = load(reader(), tmp_path)
    for p in twin.parameters():
        p.set_value(paddle.zeros(p.shape))
    assert float(twin(paddle.to_tensor(LINES[0])).max()) == pytest.approx(1 / 6)
    twin.set_state_dict(net.state_dict())
    check(twin)


def test_it_is_compiled_for_any_size(net):
    run = paddle.jit.to_static(lambda x: net(x), input_spec=ANY, backend="native")
    check(run)
    assert len(run.cache) == 1


def test_it_trains_eagerly_and_compiled(net, tmp_path):
    losses = []
    for model, backend in ((net, None), (load(reader(), tmp_path), "native")):
        optimizer = paddle.optimizer.Adam(0.01, parameters=model.parameters())

        def step(x, model=model, optimizer=optimizer):
            loss = -(model(x)[:, :, 0] + 1e-9).log().mean()
            loss.backward()
            assert all(p.grad is not None for p in model.parameters())
            optimizer.step()
            optimizer.clear_grad()
            return loss

        run = step if backend is None else paddle.jit.to_static(step, backend=backend)
        losses.append([run(paddle.to_tensor(LINES[0])).item() for _ in range(5)])
    np.testing.assert_allclose(*losses, rtol=1e-4)
    assert losses[0][-1] < losses[0][0]


@pytest.mark.parametrize("observer", [AbsmaxObserver, AbsMaxChannelWiseWeightObserver])
def test_it_is_quantized(observer, net, tmp_path):
    """Weights of products become int8, in what is saved too; results stay near."""
    ptq = PTQ(QuantConfig(activation=AbsmaxObserver(), weight=observer()))
    observed = ptq.quantize(net)
    assert {*observed.weights} == {"w0", "w1", "w2", "w4"}
    check(observed)
    assert "weights take 0.25 of the bytes" in report(observed).verdict
    small = ptq.convert(observed)
    check(small, 0.05)
    assert {str(p.weight.dtype) for p in small.products} == {"paddle.int8"}
    x = paddle.to_tensor(LINES[0])
    assert float((small(x) - net(x)).abs().max()) > 1e-4
    check(net)  # it was copied
    path = str(tmp_path / "small")
    paddle.jit.save(small, path, input_spec=ANY)
    np.testing.assert_array_equal(paddle.jit.load(path)(x), small(x))


def test_a_program_without_weights_is_not_quantized(tmp_path):
    node = helper.make_node("Relu", ["x"], ["y"])
    net = load(model_of([node], [("x", [2])], [("y", [2])]), tmp_path)
    with pytest.raises(ValueError, match="a loaded program with 0 weights"):
        PTQ(QuantConfig(activation=None, weight=AbsmaxObserver())).quantize(net)


def test_it_is_exported_and_saved(net, tmp_path):
    paddle.jit.save(net, str(tmp_path / "saved"))
    check(paddle.jit.load(str(tmp_path / "saved")))
    paddle.onnx.export(net, str(tmp_path / "again.onnx"))
    for x in LINES:
        theirs = by_runtime(str(tmp_path / "again.onnx"), [x])[0]
        np.testing.assert_allclose(net(paddle.to_tensor(x)), theirs, atol=2e-6)
    again = paddle.onnx.load(tmp_path / "again.onnx")
    assert {n for n, _ in again.named_parameters()} == WEIGHTS
    check(again)


def test_its_program_is_shown(net):
    text = str(paddle.viz.explore(net, timed=False))
    assert f"{len(net.program().records)} records" in text.splitlines()[0]
