"""Objects between two processes of this program, each in one message.

cloudpickle writes an object; it copes with classes defined in a notebook. Arrays do not go through
the pickle: they follow as they lie in memory, and the reader's arrays lie in the memory that the
message was read into. A message is the length of all that follows, the number of arrays, their
lengths, the pickle's length and the pickle, then the arrays. Files are never read here.
"""

import io
import os
from itertools import accumulate

import cloudpickle
import numpy

from ..engine.eager.device import CPU
from ..engine.eager.tensor import Tensor

ALIGNMENT = 64
"""Arrays begin at multiples of it."""


class Pickler(cloudpickle.Pickler):
    """Takes tensors too: between our own processes they may travel."""

    def reducer_override(self, obj):
        if isinstance(obj, Tensor):
            return reduce_tensor(obj)
        return super().reducer_override(obj)


def reduce_tensor(tensor: Tensor):
    """How a tensor travels."""
    return rebuild_tensor, (CPU.move(tensor.array), tensor.stop_gradient, tensor.name)


def rebuild_tensor(array, stop_gradient: bool, name: str) -> Tensor:
    """A tensor on the other side of a channel."""
    tensor = Tensor(array, stop_gradient=stop_gradient)
    tensor.name = name
    return tensor


def message(obj) -> bytes:
    """The message that carries an object; raises what pickling raises."""
    file, arrays = io.BytesIO(), []
    Pickler(file, protocol=5, buffer_callback=arrays.append).dump(obj)
    parts = [file.getbuffer(), *(array.raw() for array in arrays)]
    lengths = [part.nbytes for part in parts]
    head = numpy.array([len(parts), *lengths], "<u8").tobytes()
    padded = [p for part in (head, *parts) for p in (part, bytes(-len(part) % ALIGNMENT))]
    body = sum(map(len, padded))
    return b"".join([body.to_bytes(8, "little"), *padded])


def open_message(body) -> object:
    """The object of a message without its first 8 bytes, its arrays in the memory of `body`."""
    count = int.from_bytes(body[:8], "little")
    lengths = numpy.frombuffer(body[8 : 8 + 8 * count], "<u8").tolist()
    ends = accumulate(-(-n // ALIGNMENT) * ALIGNMENT for n in [8 + 8 * count, *lengths])
    pickled, *arrays = [body[start : start + n] for start, n in zip(ends, lengths)]
    return cloudpickle.loads(pickled, buffers=arrays)


def send(connection, data: bytes) -> None:
    """Write a message."""
    if os.name == "nt":
        return connection.send_bytes(data)
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(connection.fileno(), rest) :]


def receive(connection) -> object:
    """The object of the next message; raises EOFError when the other process is gone."""
    if os.name == "nt":
        return open_message(memoryview(bytearray(connection.recv_bytes()))[8:])
    size = int.from_bytes(read(connection, 8), "little")
    return open_message(read(connection, size))


def read(connection, size: int) -> memoryview:
    """The next bytes, in memory of their own, which a read fills."""
    memory = rest = memoryview(numpy.empty(size, "uint8"))
    while rest:
        count = os.readv(connection.fileno(), [rest])
        if not count:
            raise EOFError
        rest = rest[count:]
    return memory
