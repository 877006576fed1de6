"""Making tensors: what Paddle 3.3.1 was measured to give, and what is refused."""

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import minipaddle as paddle

# ---- to_tensor -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (3, "int64", []),
        (3.5, "float32", []),
        (True, "bool", []),
        (np.float64(1.5), "float64", []),
        (np.int32(1), "int32", []),
        ([1.0, 2.0], "float32", [2]),
        ([1, 2.5], "float32", [2]),
        ([[1, 2], [3, 4]], "int64", [2, 2]),
        ([True, 1], "int64", [2]),
        ([True, False], "bool", [2]),
        (np.ones(2), "float64", [2]),
        ([np.float64(1.5)], "float32", [1]),
        ([np.ones(2), np.ones(2)], "float32", [2, 2]),
        (np.ones(2, "int32"), "int32", [2]),
        (np.ones(2, ">f4"), "float32", [2]),
        (np.ones(2, ml_dtypes.bfloat16), "bfloat16", [2]),
        ([], "float32", [0]),
        ((1, 2), "int64", [2]),
        (range(3), "int64", [3]),
        (2**40, "int64", []),
    ],
)
def test_to_tensor_infers_the_dtype(data, dtype, shape):
    x = paddle.to_tensor(data)
    assert x.dtype == dtype
    assert x.shape == shape
    np.testing.assert_array_equal(x.astype("float64").numpy(), np.asarray(data, "float64"))


@pytest.mark.parametrize(
    ("data", "dtype", "value"),
    [
        (1, "float32", 1.0),
        (1.7, "int64", 1),
        (-1.7, "int64", -1),
        (1.5, bool, True),
        (1, np.float32, 1.0),
        (1, np.dtype("int8"), 1),
        (1.5, paddle.bfloat16, 1.5),
        (0.1, "float64", 0.1),
        (2**24 + 1, "float64", 2**24 + 1),
    ],
)
def test_to_tensor_in_a_dtype(data, dtype, value):
    x = paddle.to_tensor(data, dtype=dtype)
    assert x.dtype == dtype
    assert x.item() == value


def test_to_tensor_copies():
    a = np.ones(2, "float32")
    x = paddle.to_tensor(a)
    y = paddle.to_tensor(x)
    z = paddle.to_tensor(a[:1])
    w = paddle.Tensor(a)
    a[0] = 5
    x.set_value(np.array([7.0, 7.0], "float32"))
    assert (y.tolist(), z.tolist(), w.tolist()) == ([1.0, 1.0], [1.0], [1.0, 1.0])


def test_to_tensor_takes_tensors_and_drops_their_past():
    x = paddle.ones([2])
    x.stop_gradient = False
    y = paddle.to_tensor(x * 2)
    assert y.stop_gradient
    assert y.is_leaf
    assert not paddle.to_tensor(1.0, stop_gradient=False).stop_gradient


def test_to_tensor_of_a_list_of_tensors():
    x = paddle.to_tensor([paddle.to_tensor(1.0), paddle.to_tensor(2.0)])
    assert x.dtype == "float32"
    assert x.tolist() == [1.0, 2.0]
    assert paddle.to_tensor(
        [paddle.ones([2], "float64"), 2 * paddle.ones([2], "float64")]
    ).shape == [
        2,
        2,
    ]


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ([[1], [1, 2]], ValueError, "no tensor can be made of this data"),
        ("a", TypeError, "no tensor can be made of str 'a'"),
        (["a"], TypeError, "numbers, booleans, or nested lists"),
        (None, TypeError, "no tensor can be made of NoneType"),
        (2**70, TypeError, "no tensor can be made of int"),
        (1 + 2j, TypeError, "complex numbers are not supported"),
        (np.ones(2, "complex64"), TypeError, "complex numbers are not supported"),
        (np.ones(2, "uint16"), TypeError, "is no data type of MiniPaddle"),
    ],
)
def test_to_tensor_refuses(data, error, message):
    with pytest.raises(error, match=message):
        paddle.to_tensor(data)


@pytest.mark.parametrize("dtype", ["uint16", "complex64", "foo", 3])
def test_no_such_dtype(dtype):
    with pytest.raises(TypeError, match=r"is no data type of MiniPaddle \(bool, uint8"):
        paddle.to_tensor(1, dtype=dtype)


def test_to_tensor_on_a_place():
    assert paddle.to_tensor(1, place=paddle.CPUPlace()).place == paddle.CPUPlace()
    assert paddle.to_tensor(1, place="cpu").place == paddle.CPUPlace()
    with pytest.raises(ValueError, match="unknown device 'tpu'"):
        paddle.to_tensor(1, place="tpu")


def test_the_default_dtype():
    paddle.set_default_dtype("float64")
    try:
        made = [
            paddle.to_tensor([1.5]),
            paddle.ones([1]),
            paddle.full([1], 1),
            paddle.rand([1]),
            paddle.arange(3.0),
            paddle.linspace(0, 1, 2),
            paddle.eye(1),
        ]
        assert {x.dtype for x in made} == {paddle.float64}
        assert paddle.to_tensor(np.ones(2, "float32")).dtype == "float32"
        assert paddle.get_default_dtype() == "float64"
    finally:
        paddle.set_default_dtype("float32")
    with pytest.raises(TypeError, match="floating dtype"):
        paddle.set_default_dtype("int32")


# ---- from a value ----------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [[2, 3], (2, 3), [], [0, 3], 4, [np.int64(2)]])
@pytest.mark.parametrize("make", [paddle.zeros, paddle.ones, paddle.empty])
def test_shapes(make, shape):
    x = make(shape)
    assert x.shape == ([shape] if isinstance(shape, int) else list(shape))
    assert x.dtype == "float32"
    assert make(shape, "int64").dtype == "int64"


def test_shapes_from_tensors():
    assert paddle.ones([paddle.to_tensor(2), 1]).shape == [2, 1]
    assert paddle.ones(paddle.to_tensor([2, 1])).shape == [2, 1]
    assert paddle.ones(paddle.to_tensor(3)).shape == [3]


@pytest.mark.parametrize(
    ("shape", "error", "message"),
    [
        ([-1], ValueError, "negative size"),
        ([2.0], TypeError, "whole number"),
        ("ab", TypeError, "whole number"),
        (None, TypeError, "whole number"),
    ],
)
def test_shapes_that_are_none(shape, error, message):
    with pytest.raises(error, match=message):
        paddle.ones(shape)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (1, "float32", 1.0),
        (1.5, "float32", 1.5),
        (True, "bool", True),
        ("inf", "float32", float("inf")),
        (paddle.to_tensor(3), "float32", 3.0),
        (np.float32(2.5), "float32", 2.5),
    ],
)
def test_full(value, dtype, expected):
    x = paddle.full([2], value)
    assert x.dtype == dtype
    assert x.tolist() == [expected] * 2


def test_full_refuses_complex():
    with pytest.raises(TypeError, match="complex numbers are not supported"):
        paddle.full([2], 1 + 1j)


def test_full_in_a_dtype():
    assert paddle.full([1], 2.7, "int64").item() == 2
    assert paddle.full([1], paddle.to_tensor(2.7), "int64").item() == 2


def test_likes():
    x = paddle.ones([2, 3], "int64")
    assert paddle.full_like(x, 2.7).tolist() == [[2] * 3] * 2
    assert paddle.ones_like(x, "bool").dtype == "bool"
    for like in (paddle.zeros_like, paddle.ones_like, paddle.empty_like):
        assert (like(x).shape, like(x).dtype) == ([2, 3], paddle.int64)
        assert like(x, "float16").dtype == "float16"
    assert paddle.zeros_like(x).sum().item() == 0


def test_what_is_filled_can_be_written():
    x = paddle.full([2, 2], paddle.to_tensor(1.0))
    x[0, 0] = 5.0
    assert x.tolist() == [[5.0, 1.0], [1.0, 1.0]]


# ---- progressions ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "dtype", "expected"),
    [
        ((3,), "int64", [0, 1, 2]),
        ((3.0,), "float32", [0.0, 1.0, 2.0]),
        ((1, 3, 0.5), "float32", [1.0, 1.5, 2.0, 2.5]),
        ((5, 1, -2), "int64", [5, 3]),
        ((5, 1), "int64", []),
        ((1, 2, 5), "int64", [1]),
        ((paddle.to_tensor(3),), "int64", [0, 1, 2]),
        ((np.float64(3),), "float32", [0.0, 1.0, 2.0]),
        ((paddle.to_tensor(1, "int32"), 3), "int32", [1, 2]),
    ],
)
def test_arange(args, dtype, expected):
    x = paddle.arange(*args)
    assert x.dtype == dtype
    assert x.tolist() == expected


def test_arange_in_a_dtype():
    assert paddle.arange(0, 3, dtype="float16").dtype == "float16"
    with pytest.raises(ValueError, match="step=0"):
        paddle.arange(0, 3, 0)


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(-7, 7).filter(bool))
def test_arange_is_pythons_range(start, end, step):
    assert paddle.arange(start, end, step).tolist() == list(range(start, end, step))


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.floats(-100, 100), st.floats(-100, 100), st.integers(1, 40))
def test_linspace_as_torch(start, stop, num):
    x = paddle.linspace(start, stop, num, "float64").numpy()
    y = torch.linspace(start, stop, num, dtype=torch.float64).numpy()
    np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)
    assert x[0] == start
    assert num == 1 or x[-1] == stop


def test_linspace():
    assert paddle.linspace(0, 10, 5, dtype="int64").tolist() == [0, 2, 5, 7, 10]
    assert paddle.linspace(paddle.to_tensor(0.0), paddle.to_tensor(1.0), 3).tolist() == [0, 0.5, 1]
    assert paddle.linspace(0, 1, paddle.to_tensor(1)).tolist() == [0.0]
    with pytest.raises(ValueError, match="num of 1 or more"):
        paddle.linspace(0, 1, 0)


def test_logspace():
    np.testing.assert_allclose(
        paddle.logspace(-1, 2, 7, base=2.0, dtype="float64").numpy(), np.logspace(-1, 2, 7, base=2)
    )


def test_eye():
    assert paddle.eye(2, 3, "int64").tolist() == [[1, 0, 0], [0, 1, 0]]
    with pytest.raises(ValueError, match="negative size"):
        paddle.eye(-1)


def test_vander():
    x = paddle.to_tensor([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(paddle.vander(x).numpy(), np.vander([1.0, 2, 3]))
    np.testing.assert_array_equal(
        paddle.vander(x, 2, increasing=True).numpy(), np.vander([1, 2, 3], 2, increasing=True)
    )


# ---- copies ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        ([1.0, 2.0], "float64", [2]),
        (np.ones(2), "float64", [2]),
        (1.5, "float64", [1]),
        (3, "int64", [1]),
        (True, "bool", [1]),
        ([[1, 2]], "int64", [1, 2]),
    ],
)
def test_assign_of_what_is_no_tensor(data, dtype, shape):
    x = paddle.assign(data)
    assert (x.dtype, x.shape) == (dtype, shape)


@pytest.mark.parametrize("copy", [paddle.assign, paddle.clone, paddle.Tensor.clone])
def test_copies_carry_gradients_and_share_nothing(copy):
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    y = copy(x)
    (y * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    with paddle.no_grad():
        y.set_value(np.zeros(2, "float32"))
    assert x.tolist() == [1.0, 2.0]


def test_assign_into_an_output():
    x, out = paddle.ones([2]), paddle.zeros([2])
    assert paddle.assign(x, out) is out
    assert out.tolist() == [1.0, 1.0]


def test_assign_gives_the_output_another_shape_and_dtype():
    def f(x):
        out = paddle.zeros([3])
        paddle.assign(x, out)
        return out

    for convert in (lambda f: f, paddle.jit.to_static):
        found = convert(f)(paddle.to_tensor([[1, 2], [3, 4]]))
        assert found.tolist() == [[1, 2], [3, 4]]
        assert found.dtype == "int64"


def test_create_parameter():
    one = paddle.nn.initializer.Constant(1.0)
    p = paddle.create_parameter([2, 3], "float32", default_initializer=one)
    assert not p.stop_gradient
    assert p.numpy().sum() == 6


def test_a_number_of_numpys_becomes_an_array():
    assert isinstance(paddle.Tensor(np.float64(3), dtype="float64").array, np.ndarray)
