"""The weights file: bytes that a program reads where they lie.

A program of C should not parse its weights. It maps or reads one file, and every array is already
where it will be used: at a multiple of `ALIGNMENT` bytes, which vector instructions like, in
row-major order. A head of 64 bytes says whether the file is whole, and whether it is the right one.
Write two functions.

`offsets(sizes)`: arrays of these sizes in bytes, one after the other behind the head, each at the
next multiple of 64. Return (list of the places, bytes of the file). The file ends at a multiple of
64, too. An array of 0 bytes takes no room: the next one begins at the same place.

`to_bytes(arrays, library)`: the bytes of the file, for NumPy arrays of any dtype, shape and
strides, which stay as they are. What lies between arrays is 0. The head, little-endian:

    bytes  0– 7   b"MPWEIGHT"
           8–11   version of the format, 1
          12–15   number of arrays
          16–23   bytes of the file
          24–31   `library`, a whole number that is not negative
          32–35   Adler-32 of all bytes from 64 on
          36–63   zeros

    offsets([4, 64, 100])  ->  [64, 128, 192], 320

Source: Adler-32 is in RFC 1950; `zlib.adler32` computes it, `struct.pack` packs numbers.
"""

import struct
import zlib

HEADER, ALIGNMENT = 64, 64


def offsets(sizes):
    """(where arrays of these sizes lie in the file, the bytes of the file)."""
    places, at = [], HEADER
    for size in sizes:
        places.append(at)
        at += -(-size // ALIGNMENT) * ALIGNMENT
    return places, at


def to_bytes(arrays, library):
    """The bytes of the file."""
    places, size = offsets([array.nbytes for array in arrays])
    data = bytearray(size)
    for at, array in zip(places, arrays, strict=True):
        data[at : at + array.nbytes] = array.tobytes()
    total = zlib.adler32(data[HEADER:])
    head = struct.pack("<IIQQI", 1, len(arrays), size, library, total)
    data[: 8 + len(head)] = b"MPWEIGHT" + head
    return bytes(data)
