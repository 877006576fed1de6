"""Data types: their faces, their many names, the default one."""

import pickle

import ml_dtypes
import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.engine.core import dtype as dt

WHOLE = ["bool", "uint8", "int8", "int16", "int32", "int64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]


@pytest.mark.parametrize("name", WHOLE + FLOATS)
def test_all_names_of_a_dtype_mean_the_same(name):
    face = dt.NAMES[name]
    plain = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
    for written in (face, name, f"paddle.{name}", plain, plain.type):
        assert dt.resolve(written) == plain
        assert dt.public(written) is face
    assert face == name
    assert face == plain
    assert hash(face) == hash(plain)
    assert repr(face) == f"paddle.{name}"
    assert face.itemsize == plain.itemsize
    assert np.dtype(face) == plain
    assert pickle.loads(pickle.dumps(face)) is face


@pytest.mark.parametrize(
    ("written", "name"),
    [(bool, "bool"), (int, "int64"), (float, "float64"), ("int", "int64"), ("float", "float64")],
)
def test_pythons_types_are_numpys(written, name):
    assert dt.public(written).name == name


@pytest.mark.parametrize(
    "written", ["foo", "complex64", np.dtype("complex64"), complex, np.uint16, object, None, 3, [1]]
)
def test_others_are_refused_by_name(written):
    with pytest.raises(TypeError, match=r"is no data type of MiniPaddle \(bool, uint8, .*float64"):
        dt.resolve(written)


def test_complex_is_refused_with_the_reason():
    with pytest.raises(TypeError, match="complex numbers are not supported"):
        dt.resolve("complex128")


def test_unequal_and_unknown():
    assert dt.float32 != "float64"
    assert dt.float32 != "foo"
    assert dt.float32 != None  # noqa: E711 - the comparison is what is tested
    assert dt.float32 in ("float32",)


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [
        ("float16", "bfloat16", "float32"),
        ("bfloat16", "bfloat16", "bfloat16"),
        ("bfloat16", "float32", "float32"),
        ("float16", "float64", "float64"),
        ("int8", "uint8", "int16"),
    ],
)
def test_wider(a, b, result):
    a, b, result = (dt.NAMES[n].numpy for n in (a, b, result))
    assert dt.wider(a, b) == dt.wider(b, a) == result


@pytest.fixture
def default():
    yield
    paddle.set_default_dtype("float32")


@pytest.mark.parametrize("name", FLOATS)
def test_the_default_dtype(default, name):
    paddle.set_default_dtype(name)
    assert paddle.get_default_dtype() == name
    assert paddle.to_tensor([1.5]).dtype == name
    assert paddle.ones([2]).dtype == name
    # What whole numbers become in mathematics does not depend on it, as in Paddle.
    assert (paddle.to_tensor([1]) * 1.5).dtype == "float32"
    assert paddle.exp(paddle.to_tensor([1])).dtype == "float32"


def test_the_default_dtype_is_floating(default):
    with pytest.raises(TypeError, match=r"a floating dtype, not paddle\.int32"):
        paddle.set_default_dtype("int32")
    assert paddle.get_default_dtype() == "float32"
