"""`paddle.onnx.load`: a file of ONNX as a layer of MiniPaddle's operators, which can be trained."""

import os

from ..core.prelude import Tensor, creation, dt, teach, type_error, value_error
from ..ir.input_spec import InputSpec
from ..jit.loading import TranslatedLayer
from ..jit.saved import SavedModel
from ..jit.saving import alike, arguments_of, method_of, states_of
from .graphs import GraphReader, NotReadable
from .reading import DamagedFile, no_model, read
from .table import UnreadableNode, dtype_of, tensor
from .weights import weights_of

OLDEST, YOUNGEST = 7, 25
"""The opsets that the functions follow."""


def load(path, input_spec=None) -> TranslatedLayer:
    """The network in a file of ONNX, as a layer that runs, trains on, and can be saved again.

    `input_spec` fixes sizes that the file leaves open, or opens some that it fixes: InputSpecs in
    the order of the inputs, or for some of them, each with an input's name.

    Floating initializers and Constants are its parameters, under the names that the file gives
    them; statistics of batch norms, scales and whole numbers are buffers (`weights.py`). If becomes
    `cond`, Loop a `while_loop`, sizes that the file leaves open stay open. Nothing that the file
    says is executed but operators of this package, which `minipaddle.onnx.FUNCTIONS` lists. Weights
    in files beside it must stand in its folder.

    Raises ValueError for a file that is damaged, that is none (a FIFO), or that asks for more nodes
    than `graphs.MOST_NODES`, and for an `input_spec` that the inputs cannot have; one that is a
    NotImplementedError too and names the node if it cannot be read; FileNotFoundError if there is
    no file.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "net.onnx")
    >>> net = paddle.nn.Sequential(paddle.nn.Linear(4, 2), paddle.nn.ReLU()).eval()
    >>> paddle.onnx.export(net, path, input_spec=[paddle.static.InputSpec([None, 4])])
    net.onnx: opset 18, 3 nodes, 40 bytes of weights
    >>> loaded = paddle.onnx.load(path)
    >>> len(loaded.parameters()), loaded(paddle.ones([3, 4])).shape
    (2, [3, 2])
    >>> pairs = paddle.onnx.load(path, input_spec=[paddle.static.InputSpec([2, 4])])
    >>> pairs.program().outputs[0].shape
    (2, 2)
    """
    path = os.fspath(path)
    path = path if os.path.exists(path) or path.endswith(".onnx") else f"{path}.onnx"
    wanted = [] if input_spec is None else input_spec
    if not isinstance(wanted, list | tuple) or any(not isinstance(x, InputSpec) for x in wanted):
        what = f"paddle.onnx.load: input_spec is {wanted!r:.80}"
        raise type_error(what, expected="a list of InputSpecs")
    try:
        model = read(path)
        return layer_of(model, os.path.realpath(os.path.dirname(os.path.abspath(path))), wanted)
    except DamagedFile as error:
        raise no_model(path, error) from None
    except (ValueError, FileNotFoundError):
        raise
    except Exception as error:  # whatever comes of a file that makes no sense
        raise no_model(path, error) from error


def layer_of(model, folder: str, wanted=()) -> TranslatedLayer:
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
    own = {t.name for t in graph.initializer}
    inputs = [v for v in graph.input if v.name not in own]
    functions = {(f.domain, f.name): f for f in model.functions}

    def call(*given):
        kept = {name: w() if callable(w) else w for name, w in weights.items()}
        reading = GraphReader(opset, folder, functions, kept)
        outputs = [*map(as_result, reading.read(graph, inputs, given))]
        return outputs[0] if len(outputs) == 1 else outputs

    specs = specs_of(inputs, wanted)
    method = method_of("forward", call, arguments_of(call, specs))
    states = states_of(owner, [method.program])
    saved = SavedModel({"forward": method}, states, {})
    return TranslatedLayer(saved.methods, saved.states)


def as_result(x) -> Tensor:
    """An output of the program, in memory of its own."""
    return creation.assign(tensor(x))


def specs_of(inputs, wanted) -> list[InputSpec]:
    """The inputs of the file, with the sizes that the user gave them."""
    own = [spec_of(v) for v in inputs]
    by_name = {x.name: x for x in wanted if x.name is not None}
    names = [x.name for x in own]
    if len(by_name) == len(wanted) and by_name.keys() <= {*names}:
        return [choose_sizes(x, by_name.get(x.name, x)) for x in own]
    if len(wanted) != len(own) or by_name:
        what = f"{len(wanted)} InputSpecs" + (f" named {[*by_name]}" if by_name else "")
        said = ", ".join(f"{x.name} {format_input(x)}" for x in own)
        raise value_error(
            f"paddle.onnx.load: {what} for the inputs {said}", "one each, or names of theirs"
        )
    return [*map(choose_sizes, own, wanted)]


def choose_sizes(own: InputSpec, wanted: InputSpec) -> InputSpec:
    """An input of the file with other sizes."""
    if own.dtype != wanted.dtype or not alike(own, wanted):
        raise value_error(
            f"paddle.onnx.load: input_spec makes the input {own.name!r} {format_input(wanted)}",
            expected=f"{format_input(own)}, of which the file leaves names and None open",
        )
    return InputSpec(wanted.shape, own.dtype, own.name)


def format_input(x: InputSpec) -> str:
    sizes = ["None" if n == -1 else str(n) for n in x.shape]
    return f"{dt.resolve(x.dtype).name}[{', '.join(sizes)}]"


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
