"""`save` and `load`: nested state in one safetensors file that any reader of the format can open.

The tensors are the file's tensors, named by their path; the structure around them is JSON in the
file's metadata, and so are the CRC-32 of each tensor and that of the structure. Nothing in a file
is ever executed.
"""

import json
import os
import re
from functools import partial
from zlib import crc32

import numpy
import safetensors

from ..core.files import replace, require_file
from ..engine.core import dtype as dt
from ..engine.core.errors import teach, value_error
from ..engine.eager.device import CPU, current_place
from ..engine.eager.tensor import Tensor, wrap

PLAIN = (str, int, float, bool, type(None))
DTYPES = {
    "BOOL": dt.bool_, "U8": dt.uint8, "I8": dt.int8, "I16": dt.int16, "I32": dt.int32,
    "I64": dt.int64, "F16": dt.float16, "BF16": dt.bfloat16, "F32": dt.float32, "F64": dt.float64,
}  # fmt: skip
"""The dtypes of safetensors that exist here."""
FORMAT = "minipaddle-1"


def save(obj, path, protocol: int = 4, **configs) -> None:
    """Write tensors, arrays, numbers, strings, None, and lists, tuples and dicts of them.

    `path` is a file name or a binary file object. A file appears whole or not at all: a process
    killed while saving leaves the old file as it was. `protocol` is Paddle's pickle version and has
    no meaning here. Raises TypeError that says where in `obj` a value cannot be saved.

    >>> import io
    >>> file = io.BytesIO()
    >>> paddle.save({"w": paddle.ones([2]), "epoch": 3}, file)
    >>> paddle.load(io.BytesIO(file.getvalue()))["epoch"]
    3
    """
    if configs:
        raise TypeError(f"save takes no option {min(configs)!r}")
    if hasattr(path, "write"):
        path.write(encode(obj))
    else:
        replace({os.fspath(path): partial(write, *contents(obj))})


def encode(obj) -> bytes:
    """The bytes of a file that holds `obj`."""
    arrays, metadata = contents(obj)
    return safetensors.serialize(specs(arrays), metadata)


def write(arrays: dict, metadata: dict, path: str) -> None:
    """Write a file from the arrays' own memory."""
    try:
        safetensors.serialize_file(specs(arrays), path, metadata)
    except safetensors.SafetensorError as error:
        number = re.search(r"os error (\d+)", str(error))
        raise OSError(int(number[1]), os.strerror(int(number[1]))) if number else error from None


def contents(obj) -> tuple[dict, dict]:
    """({name: array}, metadata) of a file that holds `obj`."""
    arrays: dict[str, numpy.ndarray] = {}
    structure = json.dumps(describe(obj, "obj", (), arrays, []))
    sums = json.dumps({name: sum_of(a) for name, a in arrays.items()})
    return arrays, {
        "format": FORMAT, "structure": structure, "sums": sums, "sum": sum_of_texts(structure, sums)
    }  # fmt: skip


def sum_of(array) -> int:
    """The CRC-32 of an array: of its bytes, and of its dtype and shape."""
    first = crc32(f"{array.dtype.name}{list(array.shape)}".encode())
    return crc32(array.reshape(-1).view("uint8"), first)


def sum_of_texts(structure: str, sums: str) -> str:
    """The CRC-32 of the structure of a file, and of the sums of its tensors."""
    return str(crc32(f"{structure}\n{sums}".encode()))


def specs(arrays: dict) -> dict:
    """The facts of arrays with their rows first, for the library."""
    return {
        name: safetensors.TensorSpec(
            dtype=a.dtype.name, shape=a.shape, data_ptr=a.ctypes.data, data_len=a.nbytes
        )
        for name, a in arrays.items()
    }


def load(path, return_numpy: bool = False):
    """Read a file that `save` wrote; with `return_numpy`, arrays in place of tensors.

    The prefix given to `jit.save` loads the saved model's tensors by name. A safetensors file of
    other origin becomes a dict of its tensors. Raises ValueError that names the tensor whose bytes
    have changed, or says what else is wrong with a damaged file, a FIFO or another format;
    FileNotFoundError if there is no file.

    >>> import io
    >>> file = io.BytesIO()
    >>> paddle.save([paddle.ones([2])], file)
    >>> paddle.load(io.BytesIO(file.getvalue()))[0].tolist()
    [1.0, 1.0]
    """
    if hasattr(path, "read"):
        name = "the file object"
        arrays, metadata = parse(name, path.read())
    else:
        name = os.fspath(path)
        if not os.path.exists(name) and os.path.exists(f"{name}.pdiparams"):
            name += ".pdiparams"
        arrays, metadata = parse(name)
    make = (lambda a: a) if return_numpy else (lambda a: wrap(current_place().move(a)))
    version = metadata.get("format", "")
    if version != FORMAT and version.startswith("minipaddle-"):
        what = f"{name} has the format {version!r:.40}: a newer MiniPaddle wrote it"
        raise value_error(what, expected=FORMAT, hint="update MiniPaddle")
    if version != FORMAT and not {"structure", "sums"} <= metadata.keys():
        return {key: make(a) for key, a in arrays.items()}
    try:
        return rebuild(json.loads(metadata["structure"]), arrays, make)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        what = f"{name} is damaged: its structure makes no sense ({error!r:.80})"
        raise value_error(what) from None


# ---- from an object to JSON and arrays -----------------------------------------------------------


def describe(x, where: str, path: tuple, arrays: dict, open_: list):
    """The structure of `x` as JSON; its tensors and arrays go into `arrays` by their path.

    `open_` holds the containers we are inside of: a container inside itself has no end.
    """
    if type(x) in PLAIN:
        return x
    if isinstance(x, Tensor):
        return {"tensor": add_array(CPU.move(x.array), path, arrays, where)}
    if isinstance(x, numpy.generic):
        return {"scalar": add_array(numpy.asarray(x), path, arrays, where)}
    if isinstance(x, numpy.ndarray):
        return {"array": add_array(x, path, arrays, where)}
    if isinstance(x, dict | list | tuple):
        if any(x is outer for outer in open_):
            raise ValueError(f"{where} contains itself: it has no end and cannot be saved")
        return container(x, where, path, arrays, [*open_, x])
    raise TypeError(refusal(x, where))


def container(x, where, path, arrays, open_):
    if not isinstance(x, dict):
        kind = "tuple" if isinstance(x, tuple) else "list"
        items = enumerate(x)
        return {kind: [describe(v, f"{where}[{k}]", (*path, k), arrays, open_) for k, v in items]}
    pairs = []
    for key, value in x.items():
        if type(key) not in PLAIN:
            rule = "keys must be strings, numbers, booleans or None"
            raise TypeError(f"{where} has the key {key!r:.60}: {rule}")
        pairs.append([key, describe(value, f"{where}[{key!r}]", (*path, key), arrays, open_)])
    return {"dict": pairs}


def add_array(array, path: tuple, arrays: dict, where: str) -> str:
    """Put an array among the file's tensors; returns its name there."""
    native = array.dtype.newbyteorder("=")
    if native not in dt.DType._by_numpy:
        raise TypeError(f"{where} is an array of {array.dtype}, which cannot be saved")
    name = ".".join(map(str, path)) or "tensor"
    while name in arrays or name == "__metadata__":
        name += "_"
    arrays[name] = array.astype(native, order="C", copy=False)
    return name


def refusal(x, where: str) -> str:
    if hasattr(x, "state_dict"):
        return teach(
            f"{where} is a {type(x).__name__}: an object with code cannot be saved",
            hint=f"save its numbers: paddle.save({where}.state_dict(), path), and later "
            f"{where}.set_state_dict(paddle.load(path))",
        )
    kind = "function" if callable(x) and not isinstance(x, type) else type(x).__name__
    return teach(
        f"{where} is a {kind}: it cannot be saved",
        expected="tensors, arrays, numbers, strings, booleans, None, and lists, tuples, dicts",
    )


# ---- and back ------------------------------------------------------------------------------------


def rebuild(node, arrays: dict, make):
    """The object of a description. Each array is taken once, so the object is no larger than
    its file.
    """
    if type(node) in PLAIN:
        return node
    ((kind, value),) = node.items()
    match kind:
        case "tensor" | "array" | "scalar":
            array = arrays.pop(value)
            return {"tensor": make, "array": lambda a: a, "scalar": lambda a: a[()]}[kind](array)
        case "list" | "tuple":
            items = [rebuild(v, arrays, make) for v in value]
            return items if kind == "list" else tuple(items)
        case "dict":
            return {k: rebuild(v, arrays, make) for k, v in value}
    raise ValueError(f"unknown kind {kind!r}")


def parse(name: str, data: bytes | None = None) -> tuple[dict, dict]:
    """({tensor name: array}, metadata) of a safetensors file, or of the bytes of one. The library
    checks every size; tensors that were saved with sums have them still.
    """
    if data is None:
        require_file(name)
        with open(name, "rb") as file:
            start = file.read(4)
    else:
        start = data[:4]
    try:
        arrays, metadata = (read if data is None else unpack)(name, data)
    except (safetensors.SafetensorError, ValueError) as error:
        raise ValueError(f"{name} {explain(start, error)}") from None
    except LookupError as error:
        raise ValueError(f"{name}: {error.args[0]}") from None
    check_sums(name, arrays, metadata)
    return {key: mend_bools(a) for key, a in arrays.items()}, metadata


def check_sums(name: str, arrays: dict, metadata: dict) -> None:
    """Raise ValueError that names the tensors of a file whose sums are not those that it has. Files
    of older versions, and of others, have none.
    """
    if not {"sum", "sums"} & metadata.keys():
        return
    sums, structure, hint = metadata.get("sums"), metadata.get("structure"), "copy it again"
    if sum_of_texts(structure, sums) != metadata.get("sum"):
        raise value_error(f"{name} is damaged: its structure has another CRC-32", hint=hint)
    known = json.loads(sums)
    if wrong := [key for key, a in arrays.items() if known.get(key) != sum_of(a)]:
        which = ", ".join(repr(key[:80]) for key in wrong[:5]) + (", …" if len(wrong) > 5 else "")
        what = f"{name} is damaged: the bytes of the tensor {which} have changed"
        raise value_error(what, expected="the CRC-32 that they were saved with", hint=hint)


def read(path: str, _) -> tuple[dict, dict]:
    """The contents of a file, each array read to where it stays."""
    with safetensors.safe_open(path, "np", backend="pread") as file:
        for key in file.offset_keys():
            dtype_of(key, file.get_slice(key).get_dtype())
        return file.get_tensors(), file.metadata() or {}


def unpack(name: str, data: bytes) -> tuple[dict, dict]:
    """The contents of a file's bytes."""
    length = int.from_bytes(data[:8], "little")
    arrays = {
        key: numpy.frombuffer(x["data"], dtype_of(key, x["dtype"])).reshape(x["shape"])
        for key, x in safetensors.deserialize(data)  # bytearrays: no copy is needed
    }
    return arrays, json.loads(data[8 : 8 + length]).get("__metadata__", {})


def dtype_of(key: str, name: str) -> numpy.dtype:
    """The dtype with a name of the format; LookupError if it does not exist here."""
    if name not in DTYPES:
        raise LookupError(f"tensor {key!r} has the dtype {name}, which does not exist here")
    return DTYPES[name].numpy


def mend_bools(array):
    """Compiled code computes with the bytes of bools themselves: they are 0 or 1."""
    if array.dtype == bool and array.view("uint8").max(initial=0) > 1:
        return array.view("uint8") != 0
    return array


def explain(data: bytes, error: Exception) -> str:
    """Why a file that begins with `data` is no safetensors file."""
    if data[:1] == b"\x80" and data[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return teach(
            "is a pickle, as Paddle writes .pdparams and .pdopt: loading it would run whatever "
            "code it holds, so it is not loaded",
            hint="convert it once where Paddle is installed: safetensors.numpy.save_file("
            'paddle.load("model.pdparams", return_numpy=True), "model.safetensors")',
        )
    if data[:4] == b"PK\x03\x04":
        return "is a zip archive (PyTorch's .pt files are): it is not a safetensors file"
    if not data:
        return "is empty"
    return f"is no safetensors file, or a damaged one ({error})"
