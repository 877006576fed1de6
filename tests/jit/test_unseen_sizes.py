"""Sizes that InputSpecs leave open: what a program needs of them is checked when it runs."""

import os

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import nn
from minipaddle.engine.jit.refusal import Dygraph2StaticException
from minipaddle.static import InputSpec

rng = np.random.default_rng(0)


def draw(*shape):
    return paddle.to_tensor(rng.uniform(size=shape).astype("float32"))


def open_spec(ndim: int, dtype="float32") -> InputSpec:
    return InputSpec([None] * ndim, dtype)


def executions(function, specs, folder):
    """The function as it is, as a program, and as one of a file."""
    path = os.path.join(folder, "net")
    paddle.jit.save(function, path, input_spec=specs)
    return function, paddle.jit.to_static(function, input_spec=specs), paddle.jit.load(path)


def check(function, specs, folder, *calls, wrong=None):
    """All ways agree on the calls; a `wrong` one is an error of each."""
    eager, *others = executions(function, specs, folder)
    expected = [eager(*call).numpy() for call in calls]
    for execution in others:
        for call, value in zip(calls, expected, strict=True):
            found = execution(*call).numpy()
            assert found.shape == value.shape
            np.testing.assert_allclose(found, value, rtol=1e-5, atol=1e-6)
        if wrong is not None:
            with pytest.raises(ValueError, match=r"where: |assumes|input_spec says|shape"):
                execution(*wrong)


LAYERS = {
    "linear": (lambda: nn.Linear(4, 3), [(2, 4), (5, 4)], (5, 3)),
    "batch norm": (lambda: nn.BatchNorm2D(3), [(2, 3, 4, 4), (5, 3, 6, 4)], (2, 4, 4, 4)),
    "layer norm": (lambda: nn.LayerNorm([4]), [(2, 4), (5, 4)], (5, 3)),
    "group norm": (lambda: nn.GroupNorm(2, 4), [(2, 4, 3, 3), (1, 4, 2, 5)], (2, 6, 3, 3)),
    "spectral norm": (lambda: nn.SpectralNorm([4, 3]), [(4, 3)], (3, 4)),
    "prelu": (lambda: nn.PReLU(4), [(2, 4, 3), (3, 4, 1)], (2, 3, 3)),
    "conv": (lambda: nn.Conv2D(3, 4, 3), [(2, 3, 5, 4), (1, 3, 3, 6)], (2, 4, 5, 4)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_of_sizes_all_unseen(name, tmp_path):
    make, shapes, wrong = LAYERS[name]
    layer = make()
    layer.eval()
    calls = [(draw(*shape),) for shape in shapes]
    check(layer, [open_spec(len(wrong))], tmp_path, *calls, wrong=(draw(*wrong),))


FUNCTIONS = {
    "two batches": (lambda a, b: a.sum() + b.sum(), [((2, 3), (5, 4)), ((2, 3), (2, 4))], None),
    "one batch": (lambda a, b: a + b, [((2, 3), (2, 3)), ((4, 5), (4, 5))], ((2, 3), (4, 3))),
    "product": (lambda a, b: a @ b, [((2, 4), (4, 3)), ((5, 3), (3, 3))], ((5, 3), (4, 3))),
    "concat": (lambda a, b: paddle.concat([a, b], 1), [((2, 4), (2, 3))], ((2, 3), (4, 3))),
    "cross": (paddle.cross, [((2, 3), (2, 3)), ((4, 3), (4, 3))], ((2, 4), (2, 4))),
    "dot": (lambda a, b: paddle.dot(a, b), [((2, 3), (2, 3))], ((2, 3), (2, 4))),
    "loss": (nn.functional.binary_cross_entropy, [((2, 3), (2, 3))], ((2, 3), (2, 4))),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_two_inputs_of_sizes_all_unseen(name, tmp_path):
    function, calls, wrong = FUNCTIONS[name]
    calls = [tuple(draw(*shape) for shape in call) for call in calls]
    wrong = wrong and tuple(draw(*shape) for shape in wrong)
    check(lambda a, b: function(a, b), [open_spec(2)] * 2, tmp_path, *calls, wrong=wrong)


def test_broadcasting_of_a_batch_of_one():
    static = paddle.jit.to_static(lambda a, b: a + b, input_spec=[open_spec(2)] * 2)
    for shapes in (((2, 3), (2, 3)), ((1, 3), (5, 3)), ((5, 3), (5, 1)), ((2, 3), (2, 3))):
        a, b = (draw(*shape) for shape in shapes)
        np.testing.assert_array_equal(static(a, b).numpy(), (a + b).numpy())
    assert len(static.program_cache) == 3


def test_batches_that_must_be_equal_are_one_in_a_file(tmp_path):
    """The text of a saved program names one batch where it needs one, and two where it does not."""
    for function, count in ((lambda a, b: a + b, 1), (lambda a, b: (a.sum(), b.sum()), 2)):
        _, _, loaded = executions(function, [InputSpec([None, 3]), InputSpec([None, 3])], tmp_path)
        firsts = {str(record.shape[0]) for record in loaded.program("forward").inputs}
        assert len(firsts) == count


def test_the_error_names_the_input_what_it_is_and_what_it_must_be(tmp_path):
    layer = nn.Linear(4, 3)
    _, static, loaded = executions(layer, [InputSpec([None, None], name="pixels")], tmp_path)
    with pytest.raises(ValueError, match=r"in_features=4[^=]*where: batch = 5, pixels_1 = 3"):
        static(draw(5, 3))
    with pytest.raises(ValueError, match=r"are 3 and 4; pixels_1 is the size of axis 1 of pixels"):
        loaded(draw(5, 3))


VALUES = {
    "the rest": (lambda x, n: x.reshape([n, -1]), [3, 4], 5),
    "all": (lambda x, n: x.reshape([n, n, 3]), [2], 3),
    "broadcast": (lambda x, n: paddle.ones([n, 6]) * x, [2], 3),
    "of the shape": (lambda x, n: x.reshape([x.shape[0] * n, -1]), [2, 3], 4),
    "rows": (lambda x, n: x.reshape([x.shape[0], -1]) + paddle.zeros([n, 1]), [2], 3),
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("shape", [[2, 6], [None, 6], [None, None]])
def test_sizes_that_values_decide(name, shape, tmp_path):
    function, numbers, wrong = VALUES[name]
    x = draw(2, 6)
    specs = [InputSpec(shape), InputSpec([], "int64")]
    calls = [(x, paddle.to_tensor(n)) for n in numbers]
    check(lambda x, n: function(x, n), specs, tmp_path, *calls, wrong=(x, paddle.to_tensor(wrong)))


def test_a_known_batch_of_one_broadcasts_beside_a_size_that_a_value_decides():
    def ones(x, n):
        return paddle.ones([n, 4]) * x

    static = paddle.jit.to_static(ones, input_spec=[InputSpec([None, 4]), InputSpec([], "int64")])
    for rows, n in ((2, 2), (1, 3), (3, 3)):
        x, n = draw(rows, 4), paddle.to_tensor(n)
        np.testing.assert_array_equal(static(x, n).numpy(), ones(x, n).numpy())


@pytest.mark.parametrize(
    ("n", "message"), [(0, "a size by which they divide is 0"), (-1, "a size of -1(?s:.*)Python")]
)
def test_sizes_that_values_may_not_have(n, message):
    static = paddle.jit.to_static(lambda x, n: x.reshape([n, -1]))
    with pytest.raises(ValueError, match=message):
        static(draw(2, 6), paddle.to_tensor(n))


def assert_twice(x, y):
    assert x.shape[1] == 2 * y.shape[1], "not twice as long"
    return x.sum(1) + y.sum(1)


def assert_lists(x, y):
    assert x.shape[1:] == [2 * n for n in y.shape[1:]] and True  # noqa: PT018
    return x.sum(1) + y.sum(1)


def raise_unless_twice(x, y):
    if x.ndim != 2 or x.shape[1] != 2 * y.shape[1]:
        raise ValueError("not twice as long")
    return x.sum(1) + y.sum(1)


def raise_if_not_twice(x, y):
    if not x.shape[1] == 2 * y.shape[1]:
        raise ValueError("not twice as long")
    return x.sum(1) + y.sum(1)


@pytest.mark.parametrize(
    "function", [assert_twice, assert_lists, raise_unless_twice, raise_if_not_twice]
)
def test_a_file_relies_on_the_sizes_that_its_checks_ask_for(function, tmp_path):
    specs = [open_spec(2), open_spec(2)]
    saved = executions(function, specs, tmp_path)[2]
    for n in (3, 5):
        x, y = draw(2, 2 * n), draw(2, n)
        np.testing.assert_allclose(saved(x, y), x.numpy().sum(1) + y.numpy().sum(1), rtol=1e-5)
    with pytest.raises(ValueError, match="assumes that"):
        saved(draw(2, 5), draw(2, 3))


def test_checks_of_what_is_no_size_stay_those_of_the_user():
    class Odd:
        __hash__ = None

        def __eq__(self, other):
            return True

        __ne__ = __eq__

    def check(x, odd, pair):
        assert odd == 1
        if pair != [1, None] or x.shape != list(pair[:1]):
            raise ValueError("another pair")
        if odd != 1:
            raise KeyError("odd")
        return x

    converted = paddle.jit.to_static(check)
    for function in (check, converted):
        with pytest.raises(KeyError, match="odd"):
            function(draw(1), Odd(), [1, None])
        with pytest.raises(ValueError, match="another pair"):
            function(draw(1), Odd(), [2, None])


def test_an_open_size_is_an_int_of_the_user(tmp_path):
    def kinds(x):
        n = x.shape[0]
        x = x + 1 if isinstance(n, int) else x
        x = x + 2 if type(n) is int else x
        x = x + 4 if isinstance(n, (float, paddle.Tensor)) else x
        return x + 8 if isinstance(n, (str, int)) else x

    check(kinds, [open_spec(2)], tmp_path, (draw(2, 3),), (draw(4, 3),))


# ---- slices along an open axis -------------------------------------------------------------------


def summed(x):
    total = x[0] * 0
    for k, row in enumerate(paddle.unstack(x)):
        total = total + row * k
    return total


def indexed(x):
    rows, columns = paddle.unstack(x), paddle.unbind(x, axis=1)
    return rows[0].sum() + rows[-1].max() + columns[1].sum() * len(rows) + len(tuple(columns))


def cut(x):
    rows = paddle.unstack(x)
    return paddle.stack(rows[::-1] + rows[1:])


def written(x):
    rows = paddle.unstack(x)
    rows[0] = rows[0] * 5
    rows[1] += 1
    rows.append(rows[0])
    return paddle.stack(rows)


def written_after_a_loop(x):
    rows = []
    for row in x:
        rows.append(row)
    rows[0] = rows[0] * 3
    return paddle.concat(rows[:2])


def added(x):
    return paddle.add_n(paddle.unstack(x, axis=1))


@pytest.mark.parametrize("function", [summed, indexed, cut, written, written_after_a_loop, added])
def test_slices_of_an_open_axis(function, tmp_path):
    check(function, [open_spec(2)], tmp_path, (draw(2, 4),), (draw(5, 3),))


def unpacked(x):
    first, second = x
    third, fourth = paddle.unstack(x)
    return first * 2 + second - third * fourth


def counted(x):
    return paddle.unstack(x, num=2)[1]


@pytest.mark.parametrize("function", [unpacked, counted])
def test_an_open_axis_that_must_have_a_size(function, tmp_path):
    check(function, [open_spec(2)], tmp_path, (draw(2, 4),), (draw(2, 3),), wrong=(draw(3, 3),))


def test_slices_that_come_back(tmp_path):
    convert = paddle.jit.to_static(paddle.unstack, input_spec=[open_spec(2)])
    for x in (draw(2, 4), draw(3, 1)):
        assert [row.tolist() for row in convert(x)] == x.tolist()


def deleted(x):
    rows = paddle.unstack(x)
    del rows[0]
    return rows


def slice_written(x):
    rows = paddle.unstack(x)
    rows[:1] = [x[0]]
    return rows


@pytest.mark.parametrize("function", [deleted, slice_written])
def test_what_an_open_axis_cannot_do(function):
    with pytest.raises(
        Dygraph2StaticException, match=rf"grew in a loop(.*\n)*.*in {function.__name__}"
    ):
        paddle.jit.to_static(function, input_spec=[open_spec(2)])(draw(2, 3))
