"""Whole networks as ONNX: in onnxruntime, in onnx.reference, and read back."""

import contextlib
import warnings

import numpy as np
import onnx
import pytest

import minipaddle as paddle
from minipaddle import nn
from minipaddle.quantization import PTQ, QAT, QuantConfig
from minipaddle.quantization.observers import AbsmaxObserver
from minipaddle.quantization.quanters import FakeQuanterWithAbsMaxObserver
from minipaddle.static import InputSpec
from minipaddle.text import GPT
from minipaddle.vision import models
from minipaddle.vision.models import resnet
from tests.onnx.running import by_reference, by_runtime, error

WHOLE = ("resnet_small", "resnet18")


@contextlib.contextmanager
def narrow(monkeypatch):
    """The networks of `resnet.py` are built with an eighth of their channels and groups."""
    real_conv, real_norm, real_linear = resnet.conv, nn.BatchNorm2D, nn.Linear

    def eighth(n):
        return n if n <= 3 else n // 8

    with monkeypatch.context() as patch:
        patch.setattr(
            resnet, "conv",
            lambda i, o, kernel, stride=1, groups=1, dilation=1: real_conv(
                eighth(i), eighth(o), kernel, stride, max(groups // 8, 1), dilation
            ),
        )  # fmt: skip
        patch.setattr(nn, "BatchNorm2D", lambda n: real_norm(eighth(n)))
        patch.setattr(nn, "Linear", lambda i, o: real_linear(eighth(i), o))
        yield


def image(*shape) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype("float32")


def moved(net):
    """The network with batch norms that have seen something."""
    rng = np.random.default_rng(1)
    for layer in net.sublayers():
        if isinstance(layer, nn.BatchNorm2D):
            shape = layer._mean.shape
            layer._mean.set_value(rng.normal(0, 0.1, shape).astype("float32"))
            layer._variance.set_value(rng.uniform(0.5, 1.5, shape).astype("float32"))
    return net.eval()


def exported(net, folder, spec) -> str:
    path = str(folder / "net.onnx")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what ONNX cannot check: tests/onnx/test_export.py
        paddle.onnx.export(net, path, input_spec=spec)
    return path


def agrees(net, folder, spec, arrays, fused=True) -> onnx.ModelProto:
    """A network gives the same here, in two other runtimes, and read back."""
    path = exported(net, folder, spec)
    ours = net(*map(paddle.to_tensor, arrays))
    ours = [y.numpy() for y in (ours if isinstance(ours, tuple | list) else [ours])]
    loaded = paddle.onnx.load(path)
    again = loaded(*map(paddle.to_tensor, arrays))
    again = [y.numpy() for y in (again if isinstance(again, tuple | list) else [again])]
    others = by_runtime(path, arrays, fused), by_reference(path, arrays), again
    for other in others:
        assert max(map(error, ours, other)) < 1e-5
    return onnx.load(path)


def kinds(model) -> set[str]:
    return {node.op_type for node in model.graph.node}


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_model(name, tmp_path):
    net = moved(getattr(models, name)())
    model = agrees(net, tmp_path, [InputSpec([None, 3, 32, 32])], [image(2, 3, 32, 32)])
    assert {"Conv", "BatchNormalization", "Relu", "Gemm"} <= kinds(model)
    assert not {"Mul", "Sub", "Sqrt"} & kinds(model)


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize("name", ["resnet34", "resnet50", "resnext50_32x4d", "wide_resnet50_2"])
def test_a_model_an_eighth_as_wide(name, tmp_path, monkeypatch):
    with narrow(monkeypatch):
        net = getattr(models, name)(num_classes=10)
    agrees(moved(net), tmp_path, [InputSpec([None, 3, 32, 32])], [image(1, 3, 32, 32)])


def test_images_of_any_size(tmp_path):
    net = moved(models.resnet_small())
    path = exported(net, tmp_path, [InputSpec([None, 3, None, None])])
    loaded = paddle.onnx.load(path)
    for shape in ((1, 3, 32, 32), (2, 3, 40, 24)):
        x = image(*shape)
        y = net(paddle.to_tensor(x)).numpy()
        assert error(y, by_runtime(path, [x])[0]) < 1e-5
        assert error(y, loaded(paddle.to_tensor(x)).numpy()) < 1e-5


def test_lenet(tmp_path):
    net = models.LeNet().eval()
    model = agrees(net, tmp_path, [InputSpec([None, 1, 28, 28])], [image(3, 1, 28, 28)])
    found = [node.op_type for node in model.graph.node]
    assert found == ["Conv", "Relu", "MaxPool"] * 2 + ["Reshape"] + ["Gemm"] * 3 + ["Identity"]
    sizes = model.graph.input[0].type.tensor_type.shape.dim
    assert [d.dim_param or d.dim_value for d in sizes] == ["batch", 1, 28, 28]
    assert len(model.graph.node[0].input) == 3  # the bias is part of the Conv


def test_mobilenet(tmp_path):
    net = moved(models.mobilenet_v2(num_classes=10))
    model = agrees(net, tmp_path, [InputSpec([None, 3, 32, 32])], [image(1, 3, 32, 32)])
    assert "Clip" in kinds(model)


def test_gpt(tmp_path):
    paddle.seed(0)
    net = GPT(17, 16, 2, 2, 600).eval()
    tokens = np.random.default_rng(0).integers(0, 17, (2, 7))
    model = agrees(net, tmp_path, [InputSpec([None, None], "int64")], [tokens])
    assert {"LayerNormalization", "Gelu", "Softmax", "MatMul"} <= kinds(model)
    assert {o.version for o in model.opset_import} == {20}  # the first with Gelu


def quantized(net, x, symmetric=True):
    ptq = PTQ(QuantConfig(activation=AbsmaxObserver(), weight=AbsmaxObserver()))
    observed = ptq.quantize(net.eval())
    observed(paddle.to_tensor(x))
    return ptq.convert(observed)


@pytest.mark.parametrize("name", ["lenet", "mobilenet"])
def test_a_quantized_network(name, tmp_path):
    """Pairs of QuantizeLinear and DequantizeLinear, the weights in one byte. onnxruntime computes
    them one by one here: its fused int8 kernels saturate on processors without VNNI.
    """
    paddle.seed(0)
    x = image(2, 1, 28, 28) if name == "lenet" else image(1, 3, 32, 32)
    net = models.LeNet() if name == "lenet" else moved(models.mobilenet_v2(num_classes=10))
    converted = quantized(net, x)
    spec = [InputSpec([None, *x.shape[1:]])]
    model = agrees(converted, tmp_path, spec, [x], fused=False)
    assert {"QuantizeLinear", "DequantizeLinear", "Conv", "Gemm"} <= kinds(model)
    weights = [t for t in model.graph.initializer if len(t.dims) > 1]
    assert {t.data_type for t in weights} == {onnx.TensorProto.INT8}


def test_a_network_trained_with_quantization(tmp_path):
    paddle.seed(0)
    quanter = FakeQuanterWithAbsMaxObserver()
    qat = QAT(QuantConfig(activation=quanter, weight=quanter))
    net = qat.quantize(models.LeNet().train())
    x = image(2, 1, 28, 28)
    net(paddle.to_tensor(x))
    net.eval()
    spec = [InputSpec([None, 1, 28, 28])]
    for each in (net, qat.convert(net)):
        model = agrees(each, tmp_path, spec, [x], fused=False)
        assert {"QuantizeLinear", "DequantizeLinear"} <= kinds(model)


def test_states_keep_their_names_and_train_on(tmp_path):
    net = moved(models.resnet_small())
    loaded = paddle.onnx.load(exported(net, tmp_path, [InputSpec([None, 3, 16, 16])]))
    assert loaded.state_dict().keys() == net.state_dict().keys()
    trains = {name for name, p in net.named_parameters() if not p.stop_gradient}
    assert trains == {name for name, p in loaded.named_parameters() if not p.stop_gradient}
    x, labels = paddle.to_tensor(image(8, 3, 16, 16)), paddle.arange(8)
    adam, losses = paddle.optimizer.Adam(0.003, parameters=loaded.parameters()), []
    for _ in range(6):
        loss = nn.functional.cross_entropy(loaded(x), labels)
        loss.backward()
        adam.step()
        adam.clear_grad()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
