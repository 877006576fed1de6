"""safetensors files: a number, the length of the header; the header, JSON; then the arrays.

Arrays are written from where they lie and read into where they stay. The format's own library
copies each once more and reads at half the speed; the tests compare with it.
"""

import json
import math
from collections.abc import Iterator
from operator import index
from typing import NamedTuple

import numpy

from ..engine.core import dtype as dt

DTYPES = {
    "BOOL": dt.bool_, "U8": dt.uint8, "I8": dt.int8, "I16": dt.int16, "I32": dt.int32,
    "I64": dt.int64, "F16": dt.float16, "BF16": dt.bfloat16, "F32": dt.float32, "F64": dt.float64,
}  # fmt: skip
"""The dtypes of the format that exist here."""
NAMES = {dtype.numpy: name for name, dtype in DTYPES.items()}
BLOCK = 8 << 20
"""Bytes that are read at once, at most, unless one array has more. Its arrays share the memory."""
MALFORMED = KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError
"""What reading a header may raise whose bytes are not what they should be."""


class Entry(NamedTuple):
    """An array in a file."""

    name: str
    dtype: numpy.dtype
    shape: tuple
    nbytes: int


def parts(arrays: dict[str, numpy.ndarray], metadata: dict[str, str]) -> list:
    """What a file consists of, to be written in this order. The arrays have dtypes in NAMES, and
    rows first; they are not copied, and what has the largest elements comes first: so each begins
    at a multiple of the size of its elements.
    """
    header, end, memory = {"__metadata__": metadata}, 0, []
    for name, a in sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0])):
        start, end = end, end + a.nbytes
        header[name] = {"dtype": NAMES[a.dtype], "shape": a.shape, "data_offsets": (start, end)}
        memory.append(a.astype(a.dtype.newbyteorder("<"), copy=False).reshape(-1).view("uint8"))
    text = json.dumps(header, ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return [len(text).to_bytes(8, "little"), text, *memory]


def read(file) -> tuple[dict[str, numpy.ndarray], dict]:
    """({name: array}, metadata) of a binary file that can seek. Raises LookupError for a dtype that
    does not exist here, ValueError for a file that is not of the format: a size is believed only
    if the file is as long as all sizes say.
    """
    size = file.seek(0, 2)
    file.seek(0)
    length = int.from_bytes(file.read(8), "little")
    if length > size - 8:
        raise ValueError(f"a header of {length} bytes in {size}")
    try:
        header = json.loads(file.read(length))
        metadata = header.pop("__metadata__", {})
        metadata.items()
        arrays = dict(arrays_of(file, [*entries(header, size - 8 - length)]))
    except MALFORMED as error:
        raise ValueError(*error.args) from None
    return arrays, metadata


def entries(header: dict, size: int) -> Iterator[Entry]:
    """The arrays in their order, without gaps; ValueError if they are not as long as the file."""
    end = 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        if entry["dtype"] not in DTYPES:
            what = f"tensor {name!r} has the dtype {entry['dtype']}, which does not exist here"
            raise LookupError(what)
        dtype, shape = DTYPES[entry["dtype"]].numpy, tuple(map(index, entry["shape"]))
        start, end = end, end + math.prod(shape) * dtype.itemsize
        if min(shape, default=0) < 0 or entry["data_offsets"] != [start, end]:
            raise ValueError(f"tensor {name!r} of shape {shape} lies at {entry['data_offsets']}")
        yield Entry(name, dtype, shape, end - start)
    if end != size:
        raise ValueError(f"tensors of {end} bytes in {size}")


def arrays_of(file, found: list[Entry]) -> Iterator[tuple[str, numpy.ndarray]]:
    """Each name and its array."""
    for block in blocks(found):
        memory = memoryview(numpy.empty(sum(entry.nbytes for entry in block), "uint8"))
        if file.readinto(memory) != memory.nbytes:
            raise ValueError("the file became shorter")
        for name, dtype, shape, nbytes in block:  # arrays that know nothing of each other
            flat, memory = numpy.frombuffer(memory[:nbytes], "uint8"), memory[nbytes:]
            if dtype is dt.bool_.numpy and flat.max(initial=0) > 1:
                flat = flat != 0  # compiled code computes with the bytes themselves
            stored = flat.view(dtype.newbyteorder("<")).reshape(shape)
            yield name, numpy.require(stored.astype(dtype, copy=False), requirements="A")


def blocks(found: list[Entry]) -> Iterator[list[Entry]]:
    """Neighbours that are read at once."""
    block, size = [], 0
    for entry in found:
        if block and size + entry.nbytes > BLOCK:
            yield block
            block, size = [], 0
        block.append(entry)
        size += entry.nbytes
    if block:
        yield block
