"""The file of a library's weights.

    bytes  0– 7   "MPWEIGHT"
           8–11   version of the format, 1
          12–15   number of arrays
          16–23   bytes of the file
          24–31   the library: a hash of its arrays and of its C text
          32–35   Adler-32 of all that follows byte 64
          64–     the arrays, each at a multiple of 64 bytes, in the order of the C text

Numbers are little-endian. Adler-32 is the checksum that takes fewest lines of C and no table.
"""

import struct
import zlib

from ..engine.core.slots import slot
from ..engine.eager.device import NUMPY

MAGIC, VERSION, HEADER, ALIGNMENT = b"MPWEIGHT", 1, 64, 64


def align(size: int) -> int:
    """A size, up to the next multiple of the alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


@slot("export.offsets")
def offsets(sizes: list[int]) -> tuple[list[int], int]:
    """The offsets in the file of arrays of these sizes in bytes, and the size of the file."""
    places, at = [], HEADER
    for size in sizes:
        places.append(at)
        at += align(size)
    return places, at


@slot("export.to_bytes")
def to_bytes(arrays: list, library: int) -> bytes:
    """The bytes of the file."""
    places, size = offsets([a.nbytes for a in arrays])
    data = bytearray(size)
    for at, a in zip(places, arrays, strict=True):
        data[at : at + a.nbytes] = NUMPY.ascontiguousarray(a).tobytes()
    total = zlib.adler32(memoryview(data)[HEADER:])
    data[:36] = MAGIC + struct.pack("<IIQQI", VERSION, len(arrays), size, library, total)
    return bytes(data)
