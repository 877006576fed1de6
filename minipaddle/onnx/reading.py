"""A file of ONNX as a proto whose tensors are checked: a file is material, never an instruction.

Lengths are looked at before anything is allocated; external data must lie in the folder of the
file. What is damaged, or lies about its size, is a ValueError that says so.
"""

import os
from math import prod

import numpy

from ..core.files import require_file
from ..engine.core.errors import teach, value_error
from .graph import library

LARGEST = 2**31 - 1
"""Bytes of a file: protobuf's own limit. Files beside it hold larger weights."""
MOST_AXES = 32
DEEPEST = 20
"""Graphs inside graphs, functions that call functions, and layers in layers."""


class DamagedFile(ValueError):
    """A file holds no model that can be read; the message says why."""


def read(path: str):
    """The model in a file, checked by `onnx.checker`."""
    onnx = library()
    require_file(path)
    if not os.path.isfile(path):
        raise FileNotFoundError(
            teach(f"there is no {path}", hint="give the path with its ending .onnx")
        )
    if os.path.getsize(path) > LARGEST:
        raise DamagedFile(f"{path} has more than {LARGEST:,} bytes")
    try:
        model = onnx.load_model(path, load_external_data=False)
    except Exception as error:  # protobuf raises errors of its own
        raise DamagedFile(f"it is no ONNX file: {error!s:.200}") from None
    folder = os.path.realpath(os.path.dirname(os.path.abspath(path)))
    for tensor in tensors(model.graph):
        check_location(onnx, tensor, folder)
    try:
        if all(tensor.data_location != tensor.EXTERNAL for tensor in tensors(model.graph)):
            onnx.checker.check_model(model)
        else:
            onnx.checker.check_model(path)
    except Exception as error:
        raise DamagedFile(f"onnx.checker says: {error!s:.500}") from None
    return model


def tensors(graph):
    """Every tensor in a graph: initializers, attributes, those of subgraphs."""
    yield from graph.initializer
    for node in graph.node:
        for a in node.attribute:
            if a.HasField("t"):
                yield a.t
            yield from a.tensors
        for inner in subgraphs(node):
            yield from tensors(inner)


def subgraphs(node) -> list:
    """The graphs in the attributes of a node."""
    return [g for a in node.attribute for g in [*([a.g] if a.HasField("g") else []), *a.graphs]]


def describe(tensor) -> dict[str, str]:
    """The description of a tensor's external data."""
    return {entry.key: entry.value for entry in tensor.external_data}


def check_location(onnx, tensor, folder: str) -> None:
    """Raise Damaged unless the data of a tensor is where it may be, and as long as it says."""
    name = tensor.name[:80]
    if len(tensor.dims) > MOST_AXES or any(n < 0 for n in tensor.dims):
        raise DamagedFile(f"the tensor {name!r} has the shape {list(tensor.dims)[:8]}")
    if tensor.data_location != onnx.TensorProto.EXTERNAL:
        return
    file, start, length = external(tensor, folder)
    if start < 0 or length < 0 or start + length > os.path.getsize(file):
        raise DamagedFile(f"the tensor {name!r} lies beyond the end of {os.path.basename(file)}")


def external(tensor, folder: str) -> tuple[str, int, int]:
    """(the file, the first byte, the number of bytes) of external data inside a folder."""
    entry = describe(tensor)
    location, name = entry.get("location", ""), tensor.name[:80]
    file = os.path.realpath(os.path.join(folder, location))
    parts = location.replace("\\", "/").split("/")
    if not location or os.path.isabs(location) or ".." in parts or ":" in parts[0]:
        raise DamagedFile(
            f"the tensor {name!r} names the file {location[:80]!r}, outside the folder"
        )
    if os.path.commonpath([folder, file]) != folder or not os.path.isfile(file):
        raise DamagedFile(
            f"the tensor {name!r} names the file {location[:80]!r}, which is not there"
        )
    try:
        start = int(entry.get("offset", 0))
        length = int(entry.get("length", os.path.getsize(file) - start))
    except ValueError:
        raise DamagedFile(f"the tensor {name!r} lies at no number of a byte") from None
    return file, start, length


def array_of(tensor, folder: str) -> numpy.ndarray:
    """A tensor as an array; Damaged if it does not hold what its shape says."""
    onnx, name = library(), tensor.name[:80]
    check_location(onnx, tensor, folder)
    if tensor.data_type == onnx.TensorProto.STRING:
        raise DamagedFile(f"the tensor {name!r} holds strings")
    try:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    except (KeyError, ValueError):
        raise DamagedFile(f"the tensor {name!r} has the unknown dtype {tensor.data_type}") from None
    four = tensor.data_type in (getattr(onnx.TensorProto, n, -1) for n in ("INT4", "UINT4"))
    count = prod(tensor.dims)
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        file, start, length = external(tensor, folder)
        if length != count * dtype.itemsize or four:
            raise lying(name, tensor.dims, length)
        array = numpy.fromfile(file, dtype.newbyteorder("<"), count, offset=start)
        return array.astype(dtype, copy=False).reshape(tensor.dims)
    if tensor.HasField("raw_data") and len(tensor.raw_data) != (
        (count + 1) // 2 if four else count * dtype.itemsize
    ):
        raise lying(name, tensor.dims, len(tensor.raw_data))
    if not tensor.HasField("raw_data") and count > count_held(tensor):
        raise lying(name, tensor.dims, count_held(tensor))
    try:
        return onnx.numpy_helper.to_array(tensor)
    except Exception as error:
        raise DamagedFile(f"the tensor {name!r}: {error!s:.200}") from None


def count_held(tensor) -> int:
    """How many numbers the typed fields hold, at most."""
    fields = (tensor.float_data, tensor.int32_data, tensor.int64_data, tensor.double_data,
              tensor.uint64_data)  # fmt: skip
    return 2 * sum(map(len, fields))  # one element holds two numbers of four bits


def lying(name: str, dims, length: int) -> DamagedFile:
    return DamagedFile(f"the tensor {name!r} of shape {list(dims)[:8]} holds {length} bytes")


def no_model(path: str, error: Exception) -> ValueError:
    """The error of a file that cannot be read."""
    what = str(error) if isinstance(error, ValueError) else repr(error)
    return value_error(f"{path} holds no model, or a damaged one: {what:.1000}")
