"""`paddle.onnx.load`: a file of ONNX as a layer of MiniPaddle's operators, which can be trained."""

import os
from collections import Counter
from functools import partial
from math import prod

import numpy

from ..core.prelude import FLOATS, Parameter, Tensor, creation, dt, teach, value_error
from ..ir.input_spec import InputSpec
from ..jit.loading import TranslatedLayer
from ..jit.saved import SavedModel
from ..jit.saving import arguments_of, method_of, states_of
from ..nn import Layer
from .graphs import DEEPEST, GraphReader, NotReadable
from .reading import DamagedFile, array_of, no_model, read
from .table import UnreadableNode, dtype_of, tensor

OLDEST, YOUNGEST = 7, 25
"""The opsets that the functions follow."""
FROZEN = {"BatchNormalization": (3, 4), "QuantizeLinear": (1, 2), "DequantizeLinear": (1, 2),
          "Clip": (1, 2), "Pad": (1, 2), "Resize": (1, 2), "Dropout": (1, 2)}  # fmt: skip
"""Inputs (by place) that are no weights to train."""


def load(path) -> TranslatedLayer:
    """The network in a file of ONNX, as a layer that runs, trains on, and can be saved again.

    Floating initializers are its parameters, under the names that the file gives them; statistics
    of batch norms, scales and whole numbers are buffers. If becomes `cond`, Loop a `while_loop`,
    sizes that the file leaves open stay open. Nothing that the file says is executed but operators
    of this package, which `minipaddle.onnx.FUNCTIONS` lists. Weights in files beside it must stand
    in its folder.

    Raises ValueError for a file that is damaged, that is none (a FIFO), or that asks for more nodes
    than `graphs.MOST_NODES`; one that is a NotImplementedError too and names the node if it cannot
    be read; FileNotFoundError if there is no file.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "net.onnx")
    >>> net = paddle.nn.Sequential(paddle.nn.Linear(4, 2), paddle.nn.ReLU()).eval()
    >>> paddle.onnx.export(net, path, input_spec=[paddle.static.InputSpec([None, 4])])
    net.onnx: opset 18, 3 nodes, 40 bytes of weights
    >>> loaded = paddle.onnx.load(path)
    >>> len(loaded.parameters()), loaded(paddle.ones([3, 4])).shape
    (2, [3, 2])
    """
    path = os.fspath(path)
    path = path if os.path.exists(path) or path.endswith(".onnx") else f"{path}.onnx"
    try:
        model = read(path)
        return layer_of(model, os.path.realpath(os.path.dirname(os.path.abspath(path))))
    except DamagedFile as error:
        raise no_model(path, error) from None
    except (ValueError, FileNotFoundError):
        raise
    except Exception as error:  # whatever comes of a file that makes no sense
        raise no_model(path, error) from error


def layer_of(model, folder: str) -> TranslatedLayer:
    """The layer that a proto describes."""
    graph, opsets = model.graph, {o.domain: o.version for o in model.opset_import}
    opset = opsets.get("", opsets.get("ai.onnx", 0))
    if not OLDEST <= opset <= YOUNGEST:
        raise value_error(
            f"paddle.onnx.load: the file has opset {opset}",
            expected=f"one from {OLDEST} to {YOUNGEST}",
            hint="onnx.version_converter.convert_version changes it",
        )
    properties = {p.key: p.value for p in model.metadata_props}
    owner, weights = weights_of(graph, folder, properties)
    inputs = [v for v in graph.input if v.name not in weights]
    functions = {(f.domain, f.name): f for f in model.functions}

    def forward(*given):
        reading = GraphReader(opset, folder, functions)
        reading.values |= {name: w() if callable(w) else w for name, w in weights.items()}
        reading.values |= {v.name: x for v, x in zip(inputs, given, strict=True)}
        reading.run(graph.node)
        return [as_result(reading.get(v.name)) for v in graph.output]

    def call(*given):
        outputs = forward(*given)
        return outputs[0] if len(outputs) == 1 else outputs

    specs = [spec_of(v) for v in inputs]
    method = method_of("forward", call, arguments_of(call, specs))
    states = states_of(owner, [method.program])
    saved = SavedModel({"forward": method}, states, {})
    return TranslatedLayer(saved.methods, saved.states)


def as_result(x) -> Tensor:
    """An output of the program, in memory of its own."""
    return creation.assign(tensor(x))


def spec_of(value) -> InputSpec:
    """An input of the file. An open size has its name, or varies by itself."""
    name = f"paddle.onnx.load: the input {value.name[:80]!r}"
    if not value.type.HasField("tensor_type"):
        raise NotReadable(teach(f"{name} is no tensor"))
    kind = value.type.tensor_type
    sizes = [d.dim_value if d.HasField("dim_value") else size_name(d) for d in kind.shape.dim]
    try:
        return InputSpec(sizes, dt.public(dtype_of(kind.elem_type)), value.name or "x")
    except UnreadableNode as error:
        raise NotReadable(teach(f"{name}: {error}")) from None
    except ValueError as error:
        raise DamagedFile(f"the input {value.name[:80]!r}: {error}") from None


def size_name(dimension):
    name = dimension.dim_param
    return name if name.isidentifier() and name not in ("_", "None") else None


# ---- weights ------------------------------------------------------------------------------------


def weights_of(graph, folder: str, properties: dict) -> tuple[Layer, dict]:
    """(a layer that holds the weights, each value by its name): parameters, buffers, constants."""
    owner, weights = Layer("onnx"), {}
    places = {name: (kind, path) for key, path in properties.items()
              for kind, _, name in [key.partition(":")] if kind in KINDS}  # fmt: skip
    frozen = find_frozen(graph)
    taken: set[str] = set()
    for t in graph.initializer:
        array = array_of(t, folder)
        if not array.ndim or (array.size <= 64 and array.dtype.kind in "iub"):
            weights[t.name] = array
            continue
        if array.dtype.name not in dt.NAMES:
            raise DamagedFile(f"the tensor {t.name[:80]!r} has the dtype {array.dtype}")
        if t.name not in places and counts_up(array):
            weights[t.name] = partial(count_up, array.shape, array.dtype)
            continue
        kind, path = places.get(t.name, ("parameter", t.name))
        trains = array.dtype in FLOATS and t.name not in frozen and kind == "parameter"
        weights[t.name] = keep_weight(owner, array, path_of(path, taken), trains)
    return owner, weights


def counts_up(array) -> bool:
    """Whether an array holds 0, 1, 2, …: then a program counts, and its passes know the numbers."""
    return array.dtype.kind in "iu" and bool((array.ravel() == numpy.arange(array.size)).all())


def count_up(shape: tuple, dtype) -> Tensor:
    """0, 1, 2, … in this shape."""
    return creation.arange(size=prod(shape), dtype=dtype).reshape(shape)


KINDS = ("parameter", "buffer", "transient", "constant")
"""Of weights, as `paddle.onnx.export` notes them in the properties of a file."""


def find_frozen(graph) -> set[str]:
    """The names of initializers that are no weights to train."""
    uses, frozen = Counter(), Counter()
    for node in graph.node:
        for k, name in enumerate(node.input):
            uses[name] += 1
            frozen[name] += k in FROZEN.get(node.op_type, ())
    return {name for name, n in frozen.items() if n == uses[name]}


def path_of(name: str, taken: set[str]) -> str:
    """The path of a weight in the layer: its name, if that is a path and free."""
    parts = [part if part.isidentifier() or part.isdigit() else "" for part in name.split(".")]
    path = name if all(parts) and len(parts) < DEEPEST else "w_" + "".join(
        c if c.isalnum() else "_" for c in name)[:80]  # fmt: skip
    while any(path == t or path.startswith(f"{t}.") or t.startswith(f"{path}.") for t in taken):
        path = path.replace(".", "_") + "_"
    taken.add(path)
    return path


def keep_weight(owner: Layer, array, path: str, trains: bool) -> Tensor:
    """A weight in its place."""
    x = Parameter(()) if trains else Tensor(())
    x.array = Tensor(numpy.ascontiguousarray(array)).array
    x.name, x.stop_gradient = path, not trains
    layer, (*outer, key) = owner, path.split(".")
    for part in outer:
        layer = layer._sub_layers.setdefault(part, Layer(part))
    (layer._parameters if trains else layer._buffers)[key] = x
    return x
