"""safetensors files: the format's own library reads and writes the same."""

import io
import json

import ml_dtypes
import numpy as np
import pytest
import safetensors
import safetensors.numpy

from minipaddle.io import tensor_file

RNG = np.random.default_rng(0)
ARRAYS = {
    "one byte": np.array([True, False, True]),
    "three": RNG.integers(-9, 9, (1, 3)).astype("int8"),
    "halves": RNG.standard_normal((3, 5)).astype("float16"),
    "brains": RNG.standard_normal(7).astype(ml_dtypes.bfloat16),
    "none": np.zeros((0, 4), "float32"),
    "a number": np.array(2.5),
    "long": np.arange(5),
    'Ω "quoted"': np.ones((2, 1, 2), "float32"),
}


def file_of(arrays, metadata=None) -> io.BytesIO:
    return io.BytesIO(b"".join(tensor_file.parts(arrays, metadata or {})))


def equal(found, expected):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape), name
        np.testing.assert_array_equal(found[name], array)
        assert found[name].flags.aligned
        assert found[name].flags.writeable


def test_the_library_reads_what_we_write(tmp_path):
    metadata = {"format": "x", "quoted": '{"a": "ä"}'}
    path = tmp_path / "x"
    path.write_bytes(file_of(ARRAYS, metadata).getvalue())
    equal(safetensors.numpy.load_file(path), ARRAYS)
    with safetensors.safe_open(path, "np") as file:
        assert file.metadata() == metadata


def test_we_read_what_the_library_writes():
    file = io.BytesIO(safetensors.numpy.save(ARRAYS, {"k": "v"}))
    arrays, metadata = tensor_file.read(file)
    equal(arrays, ARRAYS)
    assert metadata == {"k": "v"}


def test_arrays_are_written_from_where_they_lie():
    x = np.arange(6.0)
    assert np.shares_memory(tensor_file.parts({"x": x}, {})[-1], x)


@pytest.mark.parametrize("block", [1, 16, 17, 40, 1000])
def test_blocks_of_any_size(block, monkeypatch):
    """Arrays that are read at once share no element, and none is the other's base."""
    monkeypatch.setattr(tensor_file, "BLOCK", block)
    arrays, _ = tensor_file.read(file_of(ARRAYS))
    equal(arrays, ARRAYS)
    bases = [id(root(a)) for a in arrays.values()]
    assert len(set(bases)) == len(bases)


def root(array):
    """The array that owns the memory, or the first that does not know who does."""
    return root(array.base) if isinstance(array.base, np.ndarray) else array


def test_arrays_at_odd_places():
    """The format does not say where an array begins: read, it is aligned."""
    offsets = {"a": ["U8", [3], [0, 3]], "b": ["F32", [2], [3, 11]]}
    keys = "dtype", "shape", "data_offsets"
    header = json.dumps({name: dict(zip(keys, entry)) for name, entry in offsets.items()}).encode()
    b = np.array([1.5, -2], "<f4")
    data = len(header).to_bytes(8, "little") + header + bytes([1, 2, 3]) + b.tobytes()
    equal(tensor_file.read(io.BytesIO(data))[0], {"a": np.array([1, 2, 3], "uint8"), "b": b})


WRONG = {
    "a gap": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]},
    "another length": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]},
    "less than none": {"dtype": "F32", "shape": [-1, -1], "data_offsets": [0, 4]},
    "half an element": {"dtype": "F32", "shape": [1.0], "data_offsets": [0, 4]},
    "too large to count": {"dtype": "F32", "shape": [0, 2**80], "data_offsets": [0, 0]},
    "more than there is": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]},
    "less than there is": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},
    "no shape": {"dtype": "F32", "data_offsets": [0, 4]},
    "no entry": 5,
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_the_library_refuses_we_refuse(wrong):
    header = json.dumps({"w": WRONG[wrong]}).encode()
    data = len(header).to_bytes(8, "little") + header + bytes(4)
    with pytest.raises(safetensors.SafetensorError):
        safetensors.deserialize(data)
    with pytest.raises(ValueError):  # noqa: PT011  (any words)
        tensor_file.read(io.BytesIO(data))
