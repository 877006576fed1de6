"""The open inference protocol, version 2: bytes to arrays, and arrays to bytes.

A request is JSON; arrays stand in it as lists, or as bytes after it. The header
`Inference-Header-Content-Length` says where the JSON ends. Whatever is wrong with a request raises
`BadRequest` with a text for its author; nothing else is raised. (`parameters.py` checks the types
of all that is no array.)

Sources: KServe's Open Inference Protocol; the binary extension of NVIDIA Triton.
"""

import json
import math
from dataclasses import dataclass
from typing import NamedTuple

import ml_dtypes
import numpy as np

from ..engine.core.dim import Dim
from ..engine.core.record import Spec
from .parameters import (
    BadRequest,
    anything,
    mapping,
    objects,
    parse,
    read,
    refuse,
    show,
    text,
    truth,
    whole,
)  # fmt: skip

JSON_LENGTH = "Inference-Header-Content-Length"
"""The header: how many bytes of the body are JSON."""

DATATYPES = {
    "BOOL": "bool", "UINT8": "uint8", "INT8": "int8", "INT16": "int16", "INT32": "int32",
    "INT64": "int64", "FP16": "float16", "FP32": "float32", "FP64": "float64",
    "BF16": ml_dtypes.bfloat16,
}  # fmt: skip
DTYPES = {name: np.dtype(kind) for name, kind in DATATYPES.items()}
NAMES = {dtype: name for name, dtype in DTYPES.items()}

MOST_AXES = 32
FITTING = {"b": "b", "i": "iu", "u": "iu", "f": "iuf", "V": "iuf"}
"""For each kind of dtype the kinds of numbers in JSON that it takes."""

MESSAGE = {"id": text(""), "parameters": mapping(), "inputs": objects(), "outputs": objects()}
OF_MESSAGE = {
    "binary_data_output": truth(), "priority": whole(0, default=0), "timeout": whole(0, default=0),
    "sequence_id": refuse(anything(), 0, ""), "sequence_start": refuse(truth(), False),
    "sequence_end": refuse(truth(), False),
}  # fmt: skip
WITH_PARAMETERS = {"parameters": mapping()}
OF_INPUT = {"binary_data_size": whole(0), "shared_memory_region": refuse(text(), "")}
OF_OUTPUT = {
    "binary_data": truth(None), "classification": refuse(whole(0), 0),
    "shared_memory_region": refuse(text(), ""),
}  # fmt: skip
"""The `parameters` that an object may have; the protocol lets clients send others, too."""


class RequestLimits(NamedTuple):
    """The most bytes of a body, and elements of all inputs together."""

    body: int = 64 * 2**20
    elements: int = 16 * 2**20


class WantedOutput(NamedTuple):
    """An output that a request asks for."""

    name: str
    binary: bool


@dataclass
class InferRequest:
    """A request that makes sense. `timeout` is in seconds; of priorities, 1 comes first."""

    id: str
    arrays: list[np.ndarray]
    outputs: list[WantedOutput]
    priority: int = 0
    timeout: float = math.inf


def read_request(
    body: bytes,
    json_length: str | None,
    inputs: dict[str, Spec],
    outputs: dict,
    limits: RequestLimits,
) -> InferRequest:
    """The request in a body, for a model with these inputs and outputs.

    >>> import numpy as np
    >>> from minipaddle.engine.core.record import Spec
    >>> from minipaddle.serving.protocol import RequestLimits, read_request
    >>> spec = Spec((2,), np.dtype("float32"))
    >>> body = b'{"inputs": [{"name": "x", "shape": [2], "datatype": "FP32", "data": [1, 2]}]}'
    >>> read_request(body, None, {"x": spec}, {"y": spec}, RequestLimits()).arrays
    [array([1., 2.], dtype=float32)]
    """
    head, rest = split(body, json_length)
    message = read(parse(head), MESSAGE, closed=False)
    asked = read(message["parameters"], OF_MESSAGE, closed=False)
    return InferRequest(
        message["id"],
        read_inputs(message["inputs"], rest, inputs, limits),
        select_outputs(message["outputs"], outputs, asked["binary_data_output"]),
        asked["priority"],
        asked["timeout"] / 1e6 or math.inf,
    )


def split(body: bytes, json_length: str | None) -> tuple[bytes, memoryview]:
    """The JSON, and the bytes after it."""
    if json_length is None:
        return body, memoryview(b"")
    if not (json_length.isascii() and json_length.isdigit() and len(json_length) < 20):
        raise BadRequest(f"{JSON_LENGTH} is {json_length!r:.40}, not a number")
    n = int(json_length)
    if n > len(body):
        raise BadRequest(f"{JSON_LENGTH} is {n}, the body has {len(body)} bytes")
    return body[:n], memoryview(body)[n:]


# ---- inputs ----------------------------------------------------------------------------------


def read_inputs(
    given: list, rest: memoryview, inputs: dict, limits: RequestLimits
) -> list[np.ndarray]:
    """The arrays of a request, in the order of the model's inputs."""
    arrays, at, elements = {}, 0, 0
    for each in given:
        name = each.get("name")
        if not isinstance(name, str) or name not in inputs:
            raise BadRequest(f"no input {name!r:.60}; there are {[*inputs]}")
        if name in arrays:
            raise BadRequest(f"the input {name} is given twice")
        shape = shape_of(each, name)
        elements += math.prod(shape)
        if elements > limits.elements:
            raise BadRequest(f"the inputs have more than {limits.elements:,} elements")
        dtype = dtype_of(each, name, inputs[name])
        fit(name, shape, inputs[name])
        size = parameters_of(each, OF_INPUT)["binary_data_size"]
        if (size is None) == ("data" not in each):
            raise BadRequest(f"{name} needs either `data` or the parameter `binary_data_size`")
        if size is None:
            arrays[name] = from_json(each["data"], name, shape, dtype)
        else:
            arrays[name] = from_bytes(rest, at, size, name, shape, dtype)
            at += size
    if at != len(rest):
        raise BadRequest(f"{len(rest)} bytes after the JSON; the inputs take {at} of them")
    missing = [name for name in inputs if name not in arrays]
    if missing:
        raise BadRequest(f"the inputs {missing} are missing")
    return [arrays[name] for name in inputs]


def shape_of(given: dict, name: str) -> tuple[int, ...]:
    shape = given.get("shape")
    right = isinstance(shape, list) and len(shape) <= MOST_AXES
    if not right or not all(type(n) is int and 0 <= n < 2**31 for n in shape):
        raise BadRequest(f"the shape of {name} is {shape!r:.60}, not a list of sizes")
    return tuple(shape)


def dtype_of(given: dict, name: str, spec: Spec) -> np.dtype:
    datatype = given.get("datatype")
    if not isinstance(datatype, str) or DTYPES.get(datatype) != spec.dtype:
        raise BadRequest(f"{name} has the datatype {datatype!r:.40}; it takes {NAMES[spec.dtype]}")
    return spec.dtype


def fit(name: str, shape: tuple, spec: Spec) -> None:
    """Raise BadRequest unless the sizes that are numbers agree."""
    same = all(isinstance(n, Dim) or n == k for n, k in zip(spec.shape, shape, strict=False))
    if len(shape) != len(spec.shape) or not same:
        raise BadRequest(f"{name} has the shape {[*shape]}; it takes {public_shape(spec)}")


def from_json(data, name: str, shape: tuple, dtype: np.dtype) -> np.ndarray:
    """An array from a list of numbers, flat or nested as the shape says."""
    if not isinstance(data, list):
        raise BadRequest(f"the data of {name} are {show(data)}, not a list")
    try:
        array = np.array(data)
    except (ValueError, OverflowError, TypeError, RecursionError):
        array = np.array(None)
    if array.size and array.dtype.kind not in FITTING[dtype.kind]:
        raise BadRequest(f"the data of {name} are not a list of numbers for {NAMES[dtype]}")
    count = math.prod(shape)
    if array.shape not in (shape, (count,)) and array.size + count:  # no list says (1, 0, 0)
        raise BadRequest(f"the data of {name} have the shape {[*array.shape]}, not {[*shape]}")
    if dtype.kind in "iu" and array.size:
        info = np.iinfo(dtype)
        if int(array.min()) < info.min or int(array.max()) > info.max:
            raise BadRequest(f"the data of {name} do not fit into {NAMES[dtype]}")
    with np.errstate(over="ignore"):
        array = array.astype(dtype).reshape(shape)
    if dtype.kind in "fV" and not np.isfinite(array).all():
        raise BadRequest(f"the data of {name} do not fit into {NAMES[dtype]}; send them as bytes")
    return array


def from_bytes(rest: memoryview, at: int, size: int, name: str, shape, dtype) -> np.ndarray:
    """An array from bytes, without a copy."""
    need = math.prod(shape) * dtype.itemsize
    if size != need:
        raise BadRequest(f"{name} has {size} bytes; its shape and datatype need {need}")
    if at + size > len(rest):
        raise BadRequest(f"{name} has {size} bytes; {len(rest) - at} are left in the body")
    array = np.frombuffer(rest[at : at + size], dtype).reshape(shape)
    if dtype.kind == "b" and array.view("uint8").max(initial=0) > 1:
        raise BadRequest(f"the bytes of {name} are not only 0 and 1")
    return array


def parameters_of(given: dict, table: dict) -> dict:
    """The `parameters` of an input or output."""
    name = given["name"]
    mine = read(given, WITH_PARAMETERS, name, closed=False)
    return read(mine["parameters"], table, name, closed=False)


def select_outputs(asked: list, outputs: dict, binary: bool) -> list[WantedOutput]:
    """The outputs that a request asks for; without any, all."""
    if not asked:
        return [WantedOutput(name, binary) for name in outputs]
    wanted = []
    for each in asked:
        name = each.get("name")
        if not isinstance(name, str) or name not in outputs:
            raise BadRequest(f"no output {name!r:.60}; there are {[*outputs]}")
        own = parameters_of(each, OF_OUTPUT)["binary_data"]
        wanted.append(WantedOutput(name, binary if own is None else own))
    if len({each.name for each in wanted}) < len(wanted):
        raise BadRequest("an output is asked for twice")
    return wanted


# ---- responses -------------------------------------------------------------------------------


def write_response(
    model: str, version: str, id: str, outputs: list[tuple[WantedOutput, np.ndarray]]
) -> tuple[bytes, int | None]:
    """The body, and the length of its JSON if bytes follow it.

    >>> import numpy as np
    >>> from minipaddle.serving.protocol import WantedOutput, write_response
    >>> y = WantedOutput("y", False), np.ones(2, "float32")
    >>> write_response("net", "1", "", [y])[0].decode()[-72:]
    '"outputs":[{"name":"y","datatype":"FP32","shape":[2],"data":[1.0,1.0]}]}'
    """
    described, after = [], []
    for (name, binary), array in outputs:
        head = {"name": name, "datatype": NAMES[array.dtype], "shape": [*array.shape]}
        if binary:
            after.append(array.tobytes())
            head["parameters"] = {"binary_data_size": len(after[-1])}
        else:
            head["data"] = array.ravel().tolist()
        described.append(head)
    message = {"model_name": model, "model_version": version}
    message |= ({"id": id} if id else {}) | {"outputs": described}
    try:
        head = json.dumps(message, separators=(",", ":"), allow_nan=False).encode()
    except ValueError:
        raise BadRequest(
            "an output has NaN or infinity, which JSON has not: ask for it with "
            '"parameters": {"binary_data": true}'
        ) from None
    return (b"".join([head, *after]), len(head)) if after else (head, None)


def public_shape(spec: Spec) -> list[int]:
    """A shape as the protocol writes it: -1 for sizes that vary."""
    return [-1 if isinstance(n, Dim) else n for n in spec.shape]


def describe(specs: dict[str, Spec]) -> list[dict]:
    """Inputs or outputs as the metadata of a model has them."""
    return [
        {"name": name, "datatype": NAMES[spec.dtype], "shape": public_shape(spec)}
        for name, spec in specs.items()
    ]
