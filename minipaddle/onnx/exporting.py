"""`paddle.onnx.export`: a layer as a file that other runtimes read."""

import os
import warnings
from pathlib import Path

from ..core.files import replace
from ..engine.core.errors import teach, value_error
from ..engine.core.slots import plugged
from ..engine.ir.program import Program
from ..jit.saved import Method, SavedModel
from ..jit.saving import model_of
from .graph import library
from .inventory import forms
from .preparing import effects, prepare
from .writer import IR_VERSION, opset_of, write_graph

LARGEST = 2**31 - 2**20
"""Bytes of weights that fit into one file: protobuf ends at 2 GiB. A file beside holds more."""
CONFIGS = {"enable_onnx_checker"}


def export(layer, path, input_spec=None, opset_version=9, **configs) -> None:
    """Write `path`.onnx: the forward of a layer (or a function) in evaluation mode.

    `input_spec` lists InputSpecs, None for a size that varies, which stays open in the file, or
    example tensors. The opset is the one asked for, or the first that has the operators: 18, or 20
    where there is a Gelu; that is printed. `cond` becomes an If, `while` a Loop, quantized layers
    pairs of QuantizeLinear and DequantizeLinear. Each node says in which layer and at which line it
    was written. The file is checked by `onnx.checker` before it takes its name.

    Raises NotImplementedError that names an operator without ONNX form and the line it stands at,
    ValueError for a layer in training mode.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "net")
    >>> net = paddle.nn.Linear(4, 2).eval()
    >>> paddle.onnx.export(net, path, input_spec=[paddle.static.InputSpec([None, 4])])
    net.onnx: opset 18, 2 nodes, 40 bytes of weights
    >>> bool((paddle.onnx.load(path)(paddle.ones([3, 4])) == net(paddle.ones([3, 4]))).all())
    True
    """
    library()
    unknown = configs.keys() - CONFIGS
    if unknown:
        raise value_error(f"paddle.onnx.export takes no option {min(unknown)!r}")
    check_opset(opset_version)
    path = os.fspath(path)
    if not os.path.basename(path):
        raise value_error(f"paddle.onnx.export to {path!r}", "folder/name, the name is missing")
    path = path if path.endswith(".onnx") else f"{path}.onnx"
    with plugged("quantization.can_multiply", lambda *_: False):  # floats between Q and DQ
        saved = trace_forward(layer, input_spec)
    write(saved, path, opset_version=opset_version)


OPTIONS = {"opset_version": {"type": int, "help": "at least this opset (default: what is needed)"}}
"""Of `write`: their names -> the keywords of `argparse`'s `add_argument`."""


def write(saved: SavedModel, path: str | Path, *, opset_version: int = 9) -> list[Path]:
    """Write the `forward` of a saved model, and print a summary; returns the paths."""
    check_opset(opset_version)
    model, size = model_proto(saved, opset_version)
    paths = save(model, size, os.fspath(path))
    print(
        f"{paths[0].name}: opset {model.opset_import[0].version}, "
        f"{len(model.graph.node)} nodes, {size:,} bytes of weights"
    )
    return paths


def check_opset(version) -> None:
    """Raise ValueError unless it is an opset that the package `onnx` knows."""
    newest = library().defs.onnx_opset_version()
    if not isinstance(version, int) or not 1 <= version <= newest:
        raise value_error(f"opset_version={version!r}", f"a number from 1 to {newest}")


def trace_forward(layer, input_spec) -> SavedModel:
    """The program of a layer's forward and its states."""
    try:
        saved = model_of(layer, input_spec, {})
    except ValueError as error:
        message = str(error.args[0]) if error.args else ""
        raise type(error)(message.replace("jit.save", "paddle.onnx.export")) from error
    if "forward" not in saved.methods:
        raise value_error("paddle.onnx.export of a layer without a forward")
    return saved


def model_proto(saved: SavedModel, opset_version: int = 9) -> tuple:
    """(the model as a proto, the bytes of its weights)."""
    method = saved.methods["forward"]
    check(method, saved)
    states = saved.states.items()
    arrays = {name: kept.tensor.numpy() for name, kept in states if kept.tensor is not None}
    return model_of_program(
        method.program, arrays, opset_version, properties(method.program, saved)
    )


def model_of_program(program: Program, arrays: dict, opset_version: int = 9, props=None) -> tuple:
    """The same for a program and the arrays of its states, by their names."""
    outputs = [f"output_{k}" for k in range(len(program.outputs))]
    outputs = ["output"] if len(outputs) == 1 else outputs
    graph, kinds = write_graph(prepare(program), arrays, outputs)
    helper = library().helper
    opsets = [helper.make_opsetid("", opset_of(kinds, opset_version))]
    version = max(IR_VERSION, helper.find_min_ir_version_for(opsets))
    model = helper.make_model(
        graph, opset_imports=opsets, producer_name="minipaddle", ir_version=version
    )
    helper.set_model_props(model, props or {})
    return model, sum(len(t.raw_data) for t in graph.initializer)


def properties(program: Program, saved: SavedModel) -> dict[str, str]:
    """The weights of the file, by their names: kind and place in the layer; and what the
    program assumes of sizes.
    """
    values = {
        f"{kept.kind}:{name}": (kept.paths or [name])[0]
        for name, kept in saved.states.items()
        if kept.kind != "random"
    }
    assumed = [f"{a} {sign} {b} is {answer}" for a, sign, b, answer in program.guards]
    return values | ({"assumes": "; ".join(assumed)} if assumed else {})


def check(method: Method, saved: SavedModel) -> None:
    """Raise ValueError for programs that train; warn of effects that the file cannot hold."""
    program = method.program
    for state in program.states:
        kind = "draws random numbers" if saved.states[state.name].kind == "random" else ""
        kind = kind or (f"changes {state.name}" if state.update is not None else "")
        if kind:
            users = (r for r in program.records if state.record in r.inputs)
            raise value_error(
                f"paddle.onnx.export: the program {kind}, which an ONNX file cannot",
                expected="a layer in evaluation mode",
                where=next((r.where for r in users), None),
                hint="layer.eval() before the export",
            )
    if any(place is None and leaf is not None for place, leaf in zip(method.places, method.leaves)):
        raise value_error(
            f"{program.name} returns numbers beside tensors", "tensors, in lists, tuples or dicts"
        )
    for record in effects(program):
        warnings.warn(
            teach(f"{record.op.name}: ONNX has no prints and no checks, the file leaves it out",
                  where=record.where), stacklevel=5,
        )  # fmt: skip
    for left, sign, right, answer in program.guards:
        if sign != "==" or not answer:
            warnings.warn(
                f"the model is right where ({left} {sign} {right}) is {answer}, as in the trace; "
                "ONNX does not check it",
                stacklevel=5,
            )


def save(model, size: int, path: str) -> list[Path]:
    """Check a model and put it in its file; a file beside it holds large weights."""
    onnx = library()
    if size <= LARGEST:
        data = model.SerializeToString()
        onnx.checker.check_model(data, full_check=True)
        replace({path: data})
        return [Path(path)]
    beside = Path(f"{path}.data")
    beside.unlink(missing_ok=True)  # the library appends
    onnx.save_model(model, path, save_as_external_data=True, location=beside.name)
    onnx.checker.check_model(path, full_check=True)
    return [Path(path), beside]


__all__ = ["export", "forms"]
