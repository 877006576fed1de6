"""In-place functions and methods: the value, the past, and who else sees it."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.tensor.inplace import IN_PLACE, OTHER_SHAPE, SAME_SHAPE

words = str.split
UNARY = words("""
    abs acos asin asinh atan ceil cos cosh erf exp expm1 floor frac lgamma log log10 log1p log2
    logit neg reciprocal round rsqrt sigmoid sin sinc sinh sqrt square tan tanh trunc digamma
    erfinv i0 nan_to_num logical_not
""")
BINARY = words("add subtract multiply divide floor_divide mod remainder pow hypot copysign")


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    x = np.array([0.3, 0.6])
    y = paddle.to_tensor(x)
    result = getattr(y, f"{name}_")()
    assert result is y
    expected = getattr(paddle, name)(paddle.to_tensor(x))
    np.testing.assert_array_equal(y.numpy(), expected.numpy())
    assert y.dtype == expected.dtype


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    x, y = np.array([[3.0, 5.0], [1.0, 2.0]]), np.array([2.0, 3.0])
    t = paddle.to_tensor(x)
    assert getattr(paddle, f"{name}_")(t, paddle.to_tensor(y)) is t
    expected = getattr(paddle, name)(paddle.to_tensor(x), paddle.to_tensor(y))
    np.testing.assert_array_equal(t.numpy(), expected.numpy())


def test_the_table_names_what_exists():
    for table in (SAME_SHAPE, OTHER_SHAPE):
        for module, names in table.items():
            for name in names.split():
                assert IN_PLACE[f"{name}_"].__name__ == f"{name}_"
                assert hasattr(paddle.Tensor, f"{name}_")
                assert callable(getattr(module, name))


def test_arguments_pass_through():
    x = paddle.to_tensor([1.0, 2.0])
    assert x.scale_(2.0, bias=1.0).tolist() == [3.0, 5.0]
    assert x.clip_(min=4.0).tolist() == [4.0, 5.0]
    assert x.lerp_(paddle.zeros([2]), 0.5).tolist() == [2.0, 2.5]
    assert x.add_(1).tolist() == [3.0, 3.5]


def test_another_dtype():
    assert paddle.to_tensor([1, 3]).divide_(paddle.to_tensor([2, 2])).tolist() == [0.5, 1.5]
    x = paddle.to_tensor([1.0, 3.0])
    assert x.equal_(paddle.to_tensor([1.0, 2.0])).dtype == "bool"
    assert paddle.to_tensor([1.7]).cast_("int64").tolist() == [1]


def test_another_shape():
    x = paddle.arange(6)
    assert x.reshape_([2, 3]) is x
    assert x.unsqueeze_(0).shape == [1, 2, 3]
    assert x.squeeze_().shape == [2, 3]
    assert x.t_().shape == [3, 2]
    assert x.transpose_([1, 0]).shape == [2, 3]
    assert x.flatten_().tolist() == [0, 1, 2, 3, 4, 5]


def test_a_shape_that_does_not_fit_is_refused():
    x = paddle.to_tensor([1.0])
    with pytest.raises(
        ValueError, match=r"in-place result of shape \[2\] does not fit float32\[1\]"
    ):
        x.add_(paddle.ones([2]))
    assert x.tolist() == [1.0]


def test_others_who_hold_the_memory_see_it():
    x = paddle.to_tensor([1.0, 2.0])
    alias = x.detach()
    x.add_(paddle.ones([2]))
    assert alias.tolist() == [2.0, 3.0]


def test_gradients_pass_through():
    x = paddle.to_tensor([0.5, 1.0], stop_gradient=False)
    y = x * 2
    y.tanh_().add_(x)
    y.sum().backward()
    t = np.tanh(2 * x.numpy())
    np.testing.assert_allclose(x.grad.numpy(), 2 * (1 - t * t) + 1, rtol=1e-6)


def test_what_the_methods_own_derivative_needs_is_spared():
    x = paddle.to_tensor([0.5, 1.0], stop_gradient=False)
    y = x * 2
    y.multiply_(x)  # the derivative by x asks for the old y
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 4 * x.numpy())


def test_what_a_derivative_needs_is_not_overwritten_unnoticed():
    x = paddle.to_tensor([0.5, 1.0], stop_gradient=False)
    y = x * 2
    z = y * x  # the derivative by x asks for y
    y.add_(x)
    with pytest.raises(RuntimeError, match="backward through multiply: its input 'x' was overwr"):
        z.sum().backward()


def test_a_leaf_that_wants_a_gradient_is_refused():
    x = paddle.to_tensor([1.0], stop_gradient=False)
    with pytest.raises(ValueError, match="in-place change of a leaf"):
        x.exp_()
    with paddle.no_grad():
        assert x.exp_().item() == pytest.approx(np.e)


def test_fill_and_zero():
    x = paddle.to_tensor([1, 2])
    assert x.fill_(2.7).tolist() == [2, 2]
    assert x.fill_(paddle.to_tensor(3)).tolist() == [3, 3]
    assert x.zero_().tolist() == [0, 0]
    y = paddle.ones([2], dtype="float32")
    y.stop_gradient = False
    z = y * 2
    z.zero_()
    assert z.tolist() == [0.0, 0.0]


def test_increment():
    x = paddle.to_tensor([1])
    assert paddle.increment(x) is x
    assert paddle.increment(x, 2.0).tolist() == [4]
    assert x.dtype == "int64"


def test_where():
    x = paddle.to_tensor([1.0, 2.0])
    assert paddle.where_(x > 1, x, paddle.zeros([2])) is x
    assert x.tolist() == [0.0, 2.0]


@pytest.mark.parametrize(
    ("shape", "offset", "wrap", "ones"),
    [
        ((3, 3), 0, False, [(0, 0), (1, 1), (2, 2)]),
        ((3, 4), 1, False, [(0, 1), (1, 2), (2, 3)]),
        ((3, 4), -1, False, [(1, 0), (2, 1)]),
        ((7, 3), 0, False, [(0, 0), (1, 1), (2, 2)]),
        ((7, 3), 0, True, [(0, 0), (1, 1), (2, 2), (4, 0), (5, 1), (6, 2)]),
        ((2, 2, 2), 0, False, [(0, 0, 0), (1, 1, 1)]),
    ],
)
def test_fill_diagonal(shape, offset, wrap, ones):
    x = paddle.zeros(list(shape)).fill_diagonal_(1.0, offset, wrap)
    assert sorted(map(tuple, np.argwhere(x.numpy()).tolist())) == ones


def test_fill_diagonal_stops_the_gradient_there():
    x = paddle.ones([2, 2])
    x.stop_gradient = False
    y = x * 3
    y.fill_diagonal_(5.0)
    y.sum().backward()
    assert x.grad.tolist() == [[0.0, 3.0], [3.0, 0.0]]
    with pytest.raises(ValueError, match=r"the diagonal of float32\[2, 3, 2\]"):
        paddle.zeros([2, 3, 2]).fill_diagonal_(1.0)
