"""Records what Paddle's quanters, quantize_linear and PTQ give: `paddle_quantization.json`.

    python tests/data/make_paddle_quantization.py tests/data/paddle_quantization.json

Needs paddlepaddle 3.3.1 (the CPU package), in an environment of its own. `fake` holds, for bits and
three batches, results, scales and the gradient of FakeQuanterWithAbsMaxObserver in training;
`linear` what quantize_linear and dequantize_linear give for a scale, per tensor and along an axis;
`ptq` a network's weights, input, the scales that AbsmaxObserver found, and its converted output.
"""

import json
import sys

import numpy as np
import paddle
from paddle import _legacy_C_ops, nn
from paddle.quantization import PTQ, QuantConfig
from paddle.quantization.observers import AbsmaxObserver
from paddle.quantization.quanters import FakeQuanterWithAbsMaxObserver

rng = np.random.default_rng(0)


def draw(*shape):
    return rng.standard_normal(shape).astype("float32")


def lists(**arrays):
    return {name: np.asarray(x).tolist() for name, x in arrays.items()}


def fake(bits):
    quanter = FakeQuanterWithAbsMaxObserver(moving_rate=0.9, bit_length=bits)._instance(None)
    steps = []
    for _ in range(3):
        x = paddle.to_tensor(draw(4, 5), stop_gradient=False)
        y = quanter(x)
        (y * y).sum().backward()
        steps.append(lists(x=x, y=y, scale=quanter.scales(), grad=x.grad))
    quanter.eval()
    x = draw(4, 5)
    return {"bits": bits, "steps": steps, **lists(x=x, y=quanter(paddle.to_tensor(x)))}


def linear(bits, axis):
    x, high = draw(3, 4, 2), (1 << (bits - 1)) - 1
    scale = np.abs(x).max() * 0.7 if axis < 0 else np.abs(x).max((0, 2))
    scale = paddle.to_tensor(np.atleast_1d(scale).astype("float32"))
    attrs = "quant_axis", axis, "bit_length", bits, "qmin", -high - 1, "qmax", high
    zero = paddle.zeros(scale.shape)
    q = _legacy_C_ops.quantize_linear(paddle.to_tensor(x), scale, zero, *attrs)
    y = _legacy_C_ops.dequantize_linear(q, scale, zero, *attrs)
    return {"bits": bits, "axis": axis, **lists(x=x, scale=scale, q=q, y=y)}


def ptq():
    net = nn.Sequential(nn.Conv2D(2, 3, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(48, 4))
    net.eval()
    given = {name: w.numpy().tolist() for name, w in net.state_dict().items()}
    config = QuantConfig(activation=AbsmaxObserver(8), weight=AbsmaxObserver(8))
    method, x = PTQ(config), draw(2, 2, 4, 4)
    observed = method.quantize(net)
    observed(paddle.to_tensor(x))
    made = method.convert(observed)
    scales = {k: v.numpy().tolist() for k, v in made.state_dict().items() if "_scales" in k}
    y = made(paddle.to_tensor(x))
    return {"weights": given, "scales": scales, "layers": str(made).split(), **lists(x=x, y=y)}


record = {
    "fake": [fake(bits) for bits in (8, 4)],
    "linear": [linear(bits, axis) for bits, axis in ((8, -1), (8, 1), (4, 1))],
    "ptq": ptq(),
}
with open(sys.argv[1], "w", encoding="utf-8") as f:
    json.dump(record, f)
    f.write("\n")
