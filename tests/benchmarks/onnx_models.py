"""Networks for ONNX Runtime: a program of ours as an ONNX model, in floats or quantized by it.

Each record becomes the ONNX operator of the same meaning; there are those that the networks of the
benchmarks use. Weights are the initializers, so both sides compute with the same numbers.
"""

from __future__ import annotations

import logging
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper
from onnxruntime import quantization as q
from onnxruntime.quantization.shape_inference import quant_pre_process

SAME = {"add": "Add", "subtract": "Sub", "multiply": "Mul", "relu": "Relu", "matmul": "MatMul"}
OPSET = 17


class Model:
    """An ONNX model while it is written. With an open batch the first size of inputs and results
    varies.
    """

    def __init__(self, program, open_batch: bool = False):
        self.open_batch = open_batch
        self.names, self.nodes, self.weights = {}, [], []
        for k, x in enumerate(program.inputs):
            self.names[x] = f"x{k}"
        for k, state in enumerate(program.states):
            self.names[state.record] = self.weight(state.storage.read(), f"w{k}")
        for record in program.records:
            self.names[record] = f"y{len(self.nodes)}"
            self.write(record)
        value = lambda r: helper.make_tensor_value_info(self.names[r], 1, self.sizes(r, "batch"))
        graph = helper.make_graph(
            self.nodes, "net", [*map(value, program.inputs)], [*map(value, program.outputs)],
            self.weights,
        )  # fmt: skip
        opset = [helper.make_opsetid("", OPSET)]
        self.proto = helper.make_model(graph, opset_imports=opset, ir_version=8)
        onnx.checker.check_model(self.proto)

    def sizes(self, record, first) -> list:
        """The sizes of a value, the first one as given where it varies."""
        return [first, *record.shape[1:]] if self.open_batch else [*record.shape]

    def weight(self, array, name: str = "") -> str:
        name = name or f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def name(self, x) -> str:
        """The name of a value or of a number."""
        if x.op.name == "number":
            return self.weight(np.array(x.attrs["value"], "float32"))
        return self.names[x]

    def node(self, kind: str, inputs, output: str, **attrs) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [output], **attrs))
        return output

    def write(self, record) -> None:
        """The nodes of a record."""
        kind, at, out = record.op.name, record.attrs, self.names[record]
        given = [*map(self.name, record.inputs)]
        if kind in SAME:
            self.node(SAME[kind], given, out)
        elif kind == "affine":
            self.node("Gemm", given, out)
        elif kind == "relu6":
            limits = (self.weight(np.array(v, "float32")) for v in (0, 6))
            self.node("Clip", [*given, *limits], out)
        elif kind == "rsqrt":
            self.node("Reciprocal", [self.node("Sqrt", given, f"{out}_root")], out)
        elif kind == "reshape":
            self.node(
                "Reshape", [*given, self.weight(np.array(self.sizes(record, -1), "int64"))], out
            )
        elif kind == "conv":
            pads = [p[k] for k in (0, 1) for p in at["padding"]]
            how = {"strides": at["stride"], "dilations": at["dilation"], "group": at["groups"]}
            self.node("Conv", given, out, pads=pads, **how)
        elif kind in ("max_pool", "avg_pool"):
            kernel, stride, low, count = zip(*at["windows"], strict=True)
            size = record.inputs[0].shape[2:]
            need = [(c - 1) * s + k for c, s, k in zip(count, stride, kernel, strict=True)]
            high = [max(n - m - b, 0) for n, m, b in zip(need, size, low, strict=True)]
            name = "MaxPool" if kind == "max_pool" else "AveragePool"
            pads = [*low, *high]
            self.node(name, given, out, kernel_shape=kernel, strides=stride, pads=pads)
        else:
            raise NotImplementedError(f"no ONNX operator for {record}")


class Examples(q.CalibrationDataReader):
    """The same arrays that our own observers saw."""

    def __init__(self, arrays):
        self.arrays = iter(arrays)

    def get_next(self):
        x = next(self.arrays, None)
        return None if x is None else {"x0": x}


def quantized(program, examples, folder, open_batch: bool = False) -> tuple[Path, Path]:
    """The files of a program in floats, and in 8 bits: weights by channel, activations unsigned, as
    is fastest without VNNI.
    """
    logging.getLogger().setLevel(logging.ERROR)
    full, ready, small = (Path(folder) / f"{name}.onnx" for name in ("full", "ready", "small"))
    onnx.save(Model(program, open_batch).proto, full)
    quant_pre_process(str(full), str(ready))
    q.quantize_static(
        str(ready), str(small), Examples(examples), quant_format=q.QuantFormat.QDQ,
        per_channel=True, activation_type=q.QuantType.QUInt8, weight_type=q.QuantType.QInt8,
    )  # fmt: skip
    return full, small


def session(path, threads: int = 1):
    """A function of an array that runs a model."""
    made = load(path, threads)
    return lambda x: made.run(None, {"x0": x})[0]


def load(path, threads: int):
    """The session of a model."""
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def language_model(net, given, folder, threads: int) -> dict:
    """Functions that run a torch model on the arrays given: in floats, and with products of whole
    numbers, whose scales are found at each run.
    """
    import torch

    net, xs = net.eval(), [torch.from_numpy(a) for a in given]
    full, small = (Path(folder) / f"{name}.onnx" for name in ("text", "text8"))
    warnings.simplefilter("ignore")
    torch.onnx.export(net, tuple(xs), str(full), dynamo=False, opset_version=OPSET)
    q.quantize_dynamic(str(full), str(small), weight_type=q.QuantType.QInt8)
    runs = {}
    for name, path in (("float32", full), ("8 bits, dynamic", small)):
        made = load(path, threads)
        feed = {i.name: a for i, a in zip(made.get_inputs(), given, strict=True)}
        runs[name] = partial(made.run, None, feed)
    return runs
