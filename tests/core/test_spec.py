"""Shape and dtype arithmetic: broadcasting, promotion as measured in Paddle 3.3.1, axes."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minipaddle.engine.core.op import OPS
from minipaddle.engine.core.record import Spec
from minipaddle.engine.core.spec import broadcast_shapes, normalize_axes, normalize_axis, promote

WHOLE = ["bool", "uint8", "int8", "int16", "int32", "int64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
SHORT = {"b": "bool", "u8": "uint8", "f16": "float16", "bf": "bfloat16"} | {
    f"{kind[0]}{bits}": f"{kind}{bits}"
    for kind, sizes in {"int": (8, 16, 32, 64), "float": (32, 64)}.items()
    for bits in sizes
}
TENSORS = """
        b   u8   i8  i16  i32  i64  f16   bf  f32  f64
   b    b    .    .    .    .    .    .    .    .    .
  u8    .   u8    .    .    .    .    .    .    .    .
  i8    .    .   i8    .    .    .    .    .    .    .
 i16    .    .    .  i16    .    .    .    .    .    .
 i32    .    .    .    .  i32    .    .    .    .    .
 i64    .    .    .    .    .  i64    .    .    .    .
 f16    .    .    .    .    .    .  f16  f32  f32  f64
  bf    .    .    .    .    .    .  f32   bf  f32  f64
 f32    .    .    .    .    .    .  f32  f32  f32  f64
 f64    .    .    .    .    .    .  f64  f64  f64  f64
"""
SCALARS = """
          b   u8   i8  i16  i32  i64  f16   bf  f32  f64
bool      b   u8   i8  i16  i32  i64  f16   bf  f32  f64
int     i64   u8   i8  i16  i32  i64  f16   bf  f32  f64
float   f32  f32  f32  f32  f32  f32  f16   bf  f32  f64
"""
# A 0-D tensor (row) with one of other shape (column): it lifts the kind, never the width.
ZERO_DIM = """
        b   u8   i8  i16  i32  i64  f16   bf  f32  f64
   b    b   u8   i8  i16  i32  i64  f16   bf  f32  f64
  u8   u8   u8   i8  i16  i32  i64  f16   bf  f32  f64
 i16  i16   u8   i8  i16  i32  i64  f16   bf  f32  f64
 i64  i64   u8   i8  i16  i32  i64  f16   bf  f32  f64
  bf   bf   bf   bf   bf   bf   bf  f16   bf  f32  f64
 f32  f32  f32  f32  f32  f32  f32  f16   bf  f32  f64
 f64  f64  f64  f64  f64  f64  f64  f16   bf  f32  f64
"""
BOTH_ZERO_DIM = """
        b   u8   i8  i16  i32  i64  f16   bf  f32  f64
  u8   u8   u8  i16  i16  i32  i64  f16   bf  f32  f64
  i8   i8  i16   i8  i16  i32  i64  f16   bf  f32  f64
 i32  i32  i32  i32  i32  i32  i64  f16   bf  f32  f64
 f16  f16  f16  f16  f16  f16  f16  f16  f32  f32  f64
 f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f64
"""


def cells(table):
    header, *rows = [line.split() for line in table.strip().splitlines()]
    return [(row[0], column, cell) for row in rows for column, cell in zip(header, row[1:])]


def dtype(name):
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def array(short, *shape):
    return Spec(shape, dtype(SHORT[short]))


@pytest.mark.parametrize(("a", "b", "result"), cells(TENSORS))
def test_two_tensors(a, b, result):
    pair = [array(a, 2), array(b, 2)]
    if result != ".":
        assert promote("add", pair) == dtype(SHORT[result])
        return
    with pytest.raises(TypeError, match=r"add does not mix .*\[2\].* and .*x.astype"):
        promote("add", pair)


@pytest.mark.parametrize(("scalar", "b", "result"), cells(SCALARS))
def test_a_python_scalar(scalar, b, result):
    value = {"bool": True, "int": 3, "float": 0.5}[scalar]
    assert promote("add", [value, array(b, 2)]) == dtype(SHORT[result])
    assert promote("add", [array(b, 2), value]) == dtype(SHORT[result])


@pytest.mark.parametrize(("a", "b", "result"), cells(ZERO_DIM))
def test_a_tensor_of_no_dimensions(a, b, result):
    assert promote("add", [array(a), array(b, 2)]) == dtype(SHORT[result])
    assert promote("add", [array(b, 2), array(a)]) == dtype(SHORT[result])


@pytest.mark.parametrize(("a", "b", "result"), cells(BOTH_ZERO_DIM))
def test_two_tensors_of_no_dimensions(a, b, result):
    assert promote("add", [array(a), array(b)]) == dtype(SHORT[result])


def test_scalars_alone():
    assert promote("add", [1, 2.5]) == np.float32
    assert promote("add", [True, 2]) == np.int64
    assert promote("add", [True, False]) == np.bool_


def test_arrays_promote_as_their_specs_do():
    for a in ("int32", "float32"):
        for b in (1, 2.5, np.float32(2), np.ones(3, a)):
            x = np.ones(3, a)
            specs = [Spec(v.shape, v.dtype) if hasattr(v, "dtype") else v for v in (x, b)]
            assert promote("add", [x, b]) == promote("add", specs)


@pytest.mark.parametrize("name", WHOLE + FLOATS)
def test_whole_numbers_become_float32_where_only_floats_make_sense(name):
    result = OPS["exp"].infer(Spec((2,), dtype(name))).dtype
    assert result == dtype(name if name in FLOATS else "float32")
    assert OPS["divide"].infer(Spec((2,), dtype(name)), 2).dtype == result
    assert OPS["less_than"].infer(Spec((2,), dtype(name)), 2).dtype == np.bool_


shapes = st.lists(st.integers(0, 3), max_size=3).map(tuple)


@settings(derandomize=True, max_examples=200)
@given(st.lists(shapes, min_size=1, max_size=3))
def test_broadcasting_is_numpys(given_shapes):
    try:
        expected = np.broadcast_shapes(*given_shapes)
    except ValueError:
        with pytest.raises(ValueError, match="do not broadcast: dimension -"):
            broadcast_shapes(*given_shapes)
        return
    assert broadcast_shapes(*given_shapes) == expected


def test_broadcasting_nothing():
    assert broadcast_shapes() == ()


@pytest.mark.parametrize("ndim", [0, 1, 3])
def test_axes_from_both_ends(ndim):
    for axis in range(-max(ndim, 1), max(ndim, 1)):
        expected = axis % ndim if ndim else 0
        assert normalize_axis(axis, ndim) == expected
        assert normalize_axes(axis, ndim) == ((expected,) if ndim else ())
    for outside in (max(ndim, 1), -max(ndim, 1) - 1):
        with pytest.raises(ValueError, match=f"axis {outside} is out of range for {ndim} dim"):
            normalize_axis(outside, ndim)


def test_lists_of_axes():
    assert normalize_axes([2, -3], 3) == (0, 2)
    assert normalize_axes(None, 3) == normalize_axes([], 3) == normalize_axes((), 3) == (0, 1, 2)
    with pytest.raises(ValueError, match=r"axis \[0, -3\] names a dimension twice"):
        normalize_axes([0, -3], 3)
    with pytest.raises(TypeError, match="float"):
        normalize_axes(0.5, 3)
