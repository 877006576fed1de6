"""Checks of 24_without_python/weights_file."""

import tempfile
from itertools import accumulate

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle import nn
from minipaddle.engine.executors.compiler import compiler
from minipaddle.export import weights  # noqa: F401  (its slots)
from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.testing import ExportedLibrary

exercise = Exercise(
    title="The weights file: bytes that a program reads where they lie",
    level="easy",
    minutes=25,
    slots={"export.offsets": "offsets", "export.to_bytes": "to_bytes"},
    hints=(
        "Which is the next multiple of 64 after 100, and after 128? What does a whole division "
        "that rounds up look like?",
        "offsets: walk along, and remember where the next array begins. to_bytes: a `bytearray` of "
        "the whole file, arrays into its slices (`array.tobytes()` is row-major), the head at "
        "last, because it holds the sum of what lies behind it.",
        "at = 64; for each size: note at; at += the size, rounded up to 64\n"
        "the slice from `at` on, as long as the array's bytes, gets those bytes\n"
        "struct.pack('<IIQQI', 1, how many, bytes of the file, library, zlib.adler32(data[64:]))",
    ),
    wrong={
        "no head": "places, at = ([], HEADER) → places, at = ([], 0)",
        "not aligned": "-(-size // ALIGNMENT) * ALIGNMENT → size",
        "always one more": (
            "-(-size // ALIGNMENT) * ALIGNMENT → (size // ALIGNMENT + 1) * ALIGNMENT"
        ),
        "rounded down": "-(-size // ALIGNMENT) * ALIGNMENT → size // ALIGNMENT * ALIGNMENT",
        "where they end": "places.append(at) → places.append(at + size)",
        "the size without the end": (
            "return (places, at) → return places, places[-1] if places else at"
        ),
        "as it lies in memory": "array.tobytes() → array.tobytes('A')",
        "big-endian": (
            "struct.pack('<IIQQI', 1, len(arrays), size, library, total) → "
            "struct.pack('>IIQQI', 1, len(arrays), size, library, total)"
        ),
        "the sum of the head, too": "zlib.adler32(data[HEADER:]) → zlib.adler32(data)",
        "another sum": "zlib.adler32(data[HEADER:]) → zlib.crc32(data[HEADER:])",
        "the sum of the arrays alone": (
            "zlib.adler32(data[HEADER:]) → zlib.adler32(b''.join(a.tobytes() for a in arrays))"
        ),
        "the size of the arrays": (
            "struct.pack('<IIQQI', 1, len(arrays), size, library, total) → "
            "struct.pack('<IIQQI', 1, len(arrays), size - HEADER, library, total)"
        ),
        "everything as float32": "array.tobytes() → array.astype('float32').tobytes()",
        "the library in 32 bits": (
            "struct.pack('<IIQQI', 1, len(arrays), size, library, total) → "
            "struct.pack('<IIQQI', 1, len(arrays), size, library % 2**32, total)"
        ),
        "a bytearray": "return bytes(data) → return data",
    },
    unkillable={
        "for at, array in zip(places, arrays, strict=True): → "
        "for at, array in zip(places, arrays, strict=False):": "there is a place for each array",
    },
)  # fmt: skip


def adler(data):
    """The checksum by its definition: a is 1 + the sum of the bytes, b the sum of all a."""
    sums = [*accumulate(data, initial=1)]
    return sum(sums[1:]) % 65521 << 16 | sums[-1] % 65521


def number(data, start, size):
    return int.from_bytes(data[start : start + size], "little")


def read(data, like):
    """The arrays in a file, for arrays of these shapes: found by walking over it."""
    found, at = [], 64
    for array in like:
        at += -at % 64
        found.append(np.frombuffer(data[at : at + array.nbytes], array.dtype).reshape(array.shape))
        at += array.nbytes
    return found, at + -at % 64


def check(yours, arrays, library=7):
    """The file of some arrays: what was given stays, the head is right, the arrays are there."""
    before = [array.copy() for array in arrays]
    data = yours.to_bytes([*arrays], library)
    given = {"arrays": arrays, "library": library}
    expect_that(type(data) is bytes, "the file is of type bytes", given=given, got=type(data))
    found, size = read(data, arrays)
    expect(len(data), size, given=given, why="the bytes of the file")
    expect(data[:8], b"MPWEIGHT", given=given, why="bytes 0 to 7")
    fields = {"version": (8, 4, 1), "arrays": (12, 4, len(arrays)), "bytes": (16, 8, size),
              "library": (24, 8, library), "Adler-32": (32, 4, adler(data[64:])),
              "zeros": (36, 28, 0)}  # fmt: skip
    for what, (start, count, value) in fields.items():
        got = number(data, start, count)
        expect_that(
            got == value, f"{what}, {count} bytes at {start}: {value}", given=given, got=got
        )
    for k, (got, want) in enumerate(zip(found, before, strict=True)):
        expect_that(got.tobytes() == want.tobytes(), f"array {k} in the file", given=given, got=got)
        expect_that((arrays[k] == want).all(), f"array {k} stays as it was", given=given)
    kept = sum(array.nbytes for array in arrays)
    gaps = sum(map(bool, data[64:])) - sum(sum(map(bool, a.tobytes())) for a in arrays)
    expect_that(gaps == 0, f"what lies beside these {kept} bytes is 0", given=given)
    return data


@exercise.example
def the_example(yours):
    """Three arrays, none, and empty ones."""
    for sizes, expected in (
        ([4, 64, 100], ([64, 128, 192], 320)),
        ([], ([], 64)),
        ([0, 0, 1], ([64, 64, 64], 128)),
        ([65, 0, 64, 63], ([64, 192, 192, 256], 320)),
        ([1] * 9, ([64 * k for k in range(1, 10)], 640)),
    ):
        before = [*sizes]
        places, size = yours.offsets(sizes)
        expect([*places], expected[0], given={"sizes": before}, why="the places")
        expect(size, expected[1], given={"sizes": before}, why="the bytes of the file")
        expect_that(isinstance(places, list), "the places are a list", given={"sizes": before})
        expect(sizes, before, given={"sizes": before}, why="what was given, afterwards")


@exercise.example
def one_array(yours):
    """A vector of three floats; a large number of the library."""
    check(yours, [np.float32([1, 2, 3])])
    check(yours, [np.float32([1, 2, 3])], 2**63 + 12345)
    check(yours, [])


@exercise.property(
    shapes=st.lists(st.sampled_from([(), (0,), (3,), (16,), (5, 4), (2, 3, 4)]), max_size=8),
    dtype=st.sampled_from(["float32", "int8", "bool", "float64", "int64"]),
    seed=st.integers(0, 99),
    examples=15,
)
def any_arrays(yours, shapes, dtype, seed):
    """Several shapes and dtypes, none of them and empty ones."""
    rng = np.random.default_rng(seed)
    check(yours, [np.asarray(rng.integers(0, 100, shape).astype(dtype)) for shape in shapes], seed)


@exercise.example
def other_strides(yours):
    """Transposed, backwards, every second one, and larger ones."""
    x = np.random.default_rng(0).normal(size=(12, 20)).astype("float32")
    check(yours, [x.T, x[::-1], x[:, ::2], np.flip(x), np.asfortranarray(x), x])


@exercise.example
def in_the_engine(yours):
    """A network is exported; its C reads your file, if there is a compiler."""
    paddle.seed(0)
    net = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))
    net.eval()
    x = np.float32([[0.5, -1.0, 2.0]])
    with tempfile.TemporaryDirectory() as folder:
        with exercise.plugged(yours):
            paddle.jit.save(net, folder, [paddle.static.InputSpec([1, 3])], format="c", name="net")
        if compiler() is None:
            return
        library = ExportedLibrary(folder, "-O0", name="net")
        like = np.zeros((1, 2), "float32")
        got = library.run({"input": x}, [like])[0]
    expect(got, net(paddle.to_tensor(x)).numpy(), given={"input": x}, why="what C computes",
           rtol=1e-5)  # fmt: skip
