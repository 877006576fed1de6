"""Numbers of Python that only a run knows (`x.item()`, `int(x)`, …) do what Python's numbers do:
among themselves, beside tensors of each dtype, in conditions, loops, sizes and indexes.
"""

import math
import operator

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.jit import to_static

BACKENDS = pytest.mark.parametrize("backend", ["interpreter", "native"])
DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
          "float64"]  # fmt: skip
BINARY = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv,
          operator.mod, operator.pow, operator.and_, operator.or_, operator.xor, operator.lt,
          operator.le, operator.gt, operator.ge, operator.eq, operator.ne]  # fmt: skip
FUNCTIONS = [paddle.maximum, paddle.minimum, paddle.atan2]


def tensor(value, dtype="int64"):
    return paddle.to_tensor(value, dtype=dtype)


def kept(function, *args):
    """A result as an array with its dtype; None if eager mode raises an error."""
    try:
        return as_array(function(*args))
    except (TypeError, ValueError, OverflowError):
        return None


def as_array(x):
    x = x if isinstance(x, paddle.Tensor) else paddle.to_tensor(x)
    return x.astype("float64").numpy(), x.dtype


def same(a, b):
    assert a[1] == b[1]
    np.testing.assert_allclose(a[0], b[0], rtol=1e-6, atol=0)
    assert a[1] != paddle.float64 or np.allclose(a[0], b[0], rtol=1e-14, atol=0)


def agrees(function, *args, backend="interpreter"):
    """Eager mode and the program give the same values in the same dtypes."""
    static = to_static(function, backend=backend)
    expected, found = (f(*[x.clone() for x in args]) for f in (function, static))
    for a, b in zip(*map(paddle.utils.flatten, (expected, found)), strict=True):
        same(as_array(a), as_array(b))


@BACKENDS
@pytest.mark.parametrize("kind", [bool, int, float], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("shape", [[], [2]], ids=["0-D", "1-D"])
def test_beside_tensors_they_are_weak(kind, shape, backend):
    """Each operator, dtype and side."""
    n = tensor(2.7, "float64")
    tensors = [paddle.full(shape, 1 if d == "bool" else 5, d) for d in DTYPES]
    rows = [(f, k, turned) for f in [*BINARY, *FUNCTIONS] for k in range(len(DTYPES))
            for turned in (False, True)]  # fmt: skip

    def apply(f, k, turned, n, xs):
        return f(n, xs[k]) if turned else f(xs[k], n)

    expected = {row: kept(apply, *row, kind(2.7), tensors) for row in rows}
    rows = [row for row in rows if expected[row] is not None]
    assert len(rows) > 200

    def every(t, *xs):
        n = kind(t)
        return [f(n, xs[k]) if turned else f(xs[k], n) for f, k, turned in rows]

    for row, y in zip(rows, to_static(every, backend=backend)(n, *tensors), strict=True):
        same(expected[row], as_array(y))


VALUES = [(bool, 1), (int, 7), (int, -3), (float, 2.5), (float, -0.1)]
PYTHONS = [True, 3, -2, 0.7]


@BACKENDS
def test_among_numbers_they_compute_as_python_does(backend):
    shifts = [operator.lshift, operator.rshift, divmod, max, min]
    pairs = [(f, a, b) for f in [*BINARY, *shifts] for a in VALUES for b in [*VALUES, *PYTHONS]]

    def of(value):
        return value[0](value[1]) if type(value) is tuple else value

    def fits(f, a, b):
        try:
            _ = f(of(a), of(b)), f(of(b), of(a))
        except (TypeError, ValueError, ZeroDivisionError):
            return False
        mixed = f in (max, min) and type(of(a)) is not type(of(b))  # only a run knows which kind
        return not (mixed or f is operator.pow)

    rows = [row for row in pairs if fits(*row)]
    powers = [((int, 7), 3), ((int, 7), -2), ((int, 7), (int, 7)), ((float, 2.5), 2),
              ((float, 2.5), (float, 2.5))]  # fmt: skip
    rows += [(operator.pow, *row) for row in powers]
    tensors = [tensor(value, "float64") for _, value in VALUES]

    def every(*xs):
        numbers = {row: kind(x) for row, (kind, _), x in zip(VALUES, VALUES, xs)}
        found = []
        for f, a, b in rows:
            left, right = numbers[a], numbers[b] if type(b) is tuple else b
            found += [f(left, right), f(right, left)]
        return [paddle.to_tensor(y, dtype=of_kind(y)) for y in paddle.utils.flatten(found)]

    def of_kind(y):
        return "bool" if isinstance(y, bool) else "int64" if isinstance(y, int) else "float64"

    agrees(every, *tensors, backend=backend)


UNARY = [operator.neg, operator.pos, abs, round, math.floor, math.ceil, math.trunc, math.sqrt,
         math.exp, math.log, math.log2, math.log10, math.log1p, math.expm1, math.sin, math.cos,
         math.tanh, math.fabs, math.isnan, math.isinf, math.isfinite, int, float, bool]  # fmt: skip


@BACKENDS
@pytest.mark.parametrize("value", [True, 4, 2.5, 3.5])
def test_functions_of_one_number(value, backend):
    def every(x):
        n = x.item()
        return [paddle.to_tensor(f(n), dtype=dtype) for f in UNARY for dtype in (None, "float64")]

    agrees(every, paddle.to_tensor(value, dtype="float64" if type(value) is float else None),
           backend=backend)  # fmt: skip


@pytest.mark.parametrize("function", [round, math.floor, math.ceil, math.sqrt, math.exp])
def test_functions_of_a_tensor(function):
    if function is not round:  # a tensor has no `round` for Python
        agrees(lambda x: function(x) + 1, tensor(2.4, "float32"))
    agrees(lambda x: function(x.item()) * tensor([1, 2], "int32"), tensor(2.4, "float32"))


ERRORS = [
    (lambda x: 5 // x.item(), 0, ZeroDivisionError),
    (lambda x: 5 % x.item(), 0, ZeroDivisionError),
    (lambda x: x.item() / (x.item() - 1), 1, ZeroDivisionError),
    (lambda x: 1.0 / x.item(), 0.0, ZeroDivisionError),
    (lambda x: x.item() ** -1, 0, ZeroDivisionError),
    (lambda x: 0.0 ** x.item(), -1.5, ZeroDivisionError),
    (lambda x: x.item() ** 3, 1e200, OverflowError),
    (lambda x: 1 << x.item(), -1, ValueError),
    (lambda x: 1 >> x.item(), -1, ValueError),
    (lambda x: math.sqrt(x.item()), -1.0, ValueError),
    (lambda x: math.log(x), 0.0, ValueError),
    (lambda x: math.exp(x), 1e3, OverflowError),
    (lambda x: int(x), math.nan, ValueError),
    (lambda x: int(x), math.inf, OverflowError),
    (lambda x: round(x.item()), -math.inf, OverflowError),
    (lambda x: math.floor(x), math.nan, ValueError),
    (lambda x: x.item() * paddle.ones([2], "int8"), 300, ValueError),
    (lambda x: x.item() - paddle.ones([2], "uint8"), -1, ValueError),
    (lambda x: x.item() < paddle.ones([2], "int32"), 2**40, ValueError),
]  # fmt: skip


@BACKENDS
@pytest.mark.parametrize("row", range(len(ERRORS)))
def test_errors_are_pythons(row, backend):
    function, value, error = ERRORS[row]
    x = paddle.to_tensor(value, dtype="float64" if type(value) is float else "int64")
    with pytest.raises(error):
        function(x)
    with pytest.raises(error):
        to_static(function, backend=backend)(x)


@pytest.mark.parametrize(
    ("function", "error", "says"),
    [
        (lambda x: (-x).item() ** 0.5, NotImplementedError, "complex"),
        (lambda x: 2 ** int(-x), NotImplementedError, "negative"),
        (lambda x: int(x * 1e30), OverflowError, "leaves 64 bits"),
    ],
)
def test_what_a_program_has_no_number_for_is_refused_when_it_runs(function, error, says):
    with pytest.raises(error, match=says):
        to_static(function)(tensor(2.0, "float64"))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: {2: 1}.get(int(x)),
        lambda x: int(x) in {2, 3},
        lambda x: round(x.item(), 1),
        lambda x: {f"{x.item()}": 1},
    ],
)
def test_what_needs_the_value_is_refused(function):
    with pytest.raises(TypeError, match="no value yet"):
        to_static(function)(tensor(2.0, "float64"))


def mixed_in_a_loop(x):
    total, i = 0, 0
    while i < x:
        total, i = total + x.item(), i + 1
    return total


@pytest.mark.parametrize(
    "make", [lambda x: max(x.item(), 0), lambda x: x.item() if x > 0 else 1, mixed_in_a_loop]
)
def test_an_int_or_a_float_is_refused_where_it_matters_which(make):
    x, eight = tensor(2.5, "float64"), paddle.to_tensor(8)
    agrees(lambda x: [make(x) * ONE, make(x) / 3 * ONE, (make(x) + 0.5) * eight, float(make(x))], x)
    agrees(lambda x: [make(x) > 2, int(make(x)) * eight, isinstance(make(x), int | float)], x)
    for use in (
        lambda x: make(x) * eight,
        lambda x: eight < -make(x),
        lambda x: paddle.to_tensor(make(x) + 1),
        lambda x: eight if isinstance(make(x) % 5, int) else x,
        lambda x: type(make(x)) is int,
        lambda x: print(make(x)),
    ):
        with pytest.raises(Exception, match="whether it is an int or a float"):
            to_static(use)(x)


# ---- item ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["bool", "int32", "uint8", "float16", "float32", "float64"])
def test_item_at_an_index(dtype):
    x = tensor(np.arange(24).reshape(2, 3, 4) % 7, dtype)
    one = paddle.ones([2], "float64")
    agrees(lambda x: [x.item(6) * one, x.item(-1) * one, x.item(1, 2, 3) * one], x)
    agrees(lambda x: x[0, 0, :1].tolist()[0] * one, x)
    agrees(lambda x: x[0, 1, 2].tolist() * one, x)
    agrees(lambda x: x.item(int(x[0, 0, 2])) * one, x)


@pytest.mark.parametrize("index", [(), (24,), (-25,), (1, 2), (1, 3, 0), (1.0,), ("a", 0, 0)])
def test_item_raises_the_error_of_eager_mode(index):
    x = paddle.ones([2, 3, 4])
    found = []
    for f in (lambda x: x.item(*index), to_static(lambda x: x.item(*index))):
        with pytest.raises((ValueError, TypeError)) as caught:
            f(x)
        found.append((caught.type, str(caught.value).splitlines()[0]))
    assert found[0] == found[1]


# ---- where they flow -----------------------------------------------------------------------------

ONE = paddle.to_tensor([1.0, 2.0, 3.0, 4.0])


def as_sizes(x):
    n = x.item()
    a = paddle.arange(n) + paddle.zeros([n]).astype("int64") + paddle.ones([4])[:n].sum()
    return a, ONE[n] * paddle.full([2], n), ONE.reshape([n, -1]), [5, 6, 7][n] * ONE.astype("int32")


def as_limits_of_a_loop(x):
    total, count = paddle.zeros([2], "int32"), 0
    for i in range(x.item() + 1):
        total, count = total + i * int(x), count + i
    return total, total * count, count / 7 * ONE.astype("float64")


def as_items_of_a_loop(x):
    total = paddle.zeros([], "int32")
    for i in range(x, 3 * x + 1, x):
        total = total * 2 + i
    for i in range(x - 5, x):
        total = total * 2 - i
    for i, y in enumerate(ONE, x):
        total = total * 2 + i * y.item()
    for i in range(2):
        total = total.astype("int32") * 3 + i
    return total


def chosen(x):
    n = 0.1 if x > 1 else 0.3
    m = x.item() if x > 5 else 2
    k = float(x) if x > 1 else ONE[0]
    return n * ONE.astype("float64"), m * ONE.astype("int32"), k * ONE


def chosen_by_a_function(x):
    def rate(n):
        if n > 1:
            return n * 0.1
        return 1e-9 + n

    return rate(x.item()) * ONE.astype("float64"), rate(float(x)) * ONE


def carried(x):
    s, k, low = 0.0, 0, 1.0
    while k < x.item():
        s, k = s + 0.1, k + 1
        low = min(low, s)
        m = s / 3
    return s * ONE.astype("float64"), k * ONE.astype("int32"), low * ONE, m * ONE.astype("float64")


def a_number_that_becomes_a_tensor(x):
    loss, n = 0.0, 1
    while n < 4:
        loss, n = loss + ONE.sum() * 0.1, n + int(x)
    return loss, loss * ONE.astype("float16")


def a_whole_number_that_becomes_a_float(x):
    n, i = 1, 0
    while i < x:
        n, i = 0.5, i + 1
    return n * ONE.astype("float64")


def counted(x):
    right = 0
    for i in range(4):
        right += ONE[i].item() == float(x)
        right += not x.item()
        right += x.item() in [2, 3]
    return right * ONE.astype("int32"), (ONE > 1).any().item() + True


def built_in(x):
    n = x.item()
    a = max(n, 3) * ONE, min(n / 3, 0.5) * ONE.astype("float64"), sum([n, n]) * ONE.astype("int32")
    return a, abs(-n) * ONE, divmod(n, 3)[1] * ONE, isinstance(n, int), type(n / 2) is float


def in_functions(x):
    f, n = paddle.nn.functional, x.item()
    y = paddle.clip(ONE, 0, n), paddle.where(n < ONE, ONE, float(n)), paddle.pow(ONE, n)
    y += paddle.scale(ONE, n / 3), ONE.astype("int32").clip(0, n), paddle.lerp(ONE, ONE * 2, n / 10)
    y += paddle.to_tensor([n / 3, 1.0]), paddle.to_tensor(n / 3, "float64"), f.leaky_relu(-ONE)
    return y, paddle.full([2], n / 3), paddle.to_tensor([n, 1]), paddle.to_tensor(n > 1)


def read_before_a_write(x):
    y = x + 1
    n = y.item()
    y.add_(x)
    return n * ONE


def written(x):
    y, z = ONE * 1, [1, 2, 3]
    y[x.item()] = x.item() / 3
    y[0] = float(x)
    z[int(x)] = 7
    return y, z[1] * ONE.astype("int32"), z[2] * ONE.astype("int32")


FLOWS = [as_sizes, as_limits_of_a_loop, as_items_of_a_loop, chosen, chosen_by_a_function, carried,
         a_number_that_becomes_a_tensor, a_whole_number_that_becomes_a_float, counted, built_in,
         in_functions, read_before_a_write, written]  # fmt: skip


@BACKENDS
@pytest.mark.parametrize("function", FLOWS, ids=lambda f: f.__name__)
def test_they_flow_on_as_pythons_do(function, backend):
    for n in (2, 1, 2):
        agrees(function, tensor(n), backend=backend)


def test_a_step_of_reinforcement_learning_is_one_program():
    """Proximal policy optimisation, with all of its numbers taken by `.item()`."""

    def make(convert):
        paddle.seed(0)
        net = paddle.nn.Linear(3, 2)
        adam = paddle.optimizer.Adam(0.01, parameters=net.parameters())

        def step(x, action, old, reward):
            scale = 1.0 / max(reward.std().item(), 1e-3)
            advantage = (reward - reward.mean().item()) * scale
            for _ in range(2):
                probability = paddle.nn.functional.softmax(net(x)).take_along_axis(action, 1)
                ratio = probability / old
                loss = -paddle.minimum(ratio * advantage, ratio.clip(0.8, 1.2) * advantage).mean()
                size = abs(loss.item())
                if size > 0.5:
                    loss = loss * (0.5 / size)
                loss.backward()
                adam.step()
                adam.clear_grad()
            return loss, size

        return convert(step)

    x, reward = paddle.randn([8, 3]), paddle.randn([8, 1])
    action, old = paddle.randint(0, 2, [8, 1]), paddle.rand([8, 1]) + 0.2
    eager, static = make(lambda step: step), make(to_static)
    for _ in range(3):
        (a, n), (b, m) = eager(x, action, old, reward), static(x, action, old, reward)
        np.testing.assert_allclose([a.item(), n], [b.item(), m], rtol=1e-5)
    assert len(static.program_cache) == 1


def test_no_gradient_flows_through_a_number():
    def f(x):
        x.stop_gradient = False
        s = 0.0
        while s < 1:
            s = s + float((x * x).sum())
        return paddle.grad((x * s * x.item()).sum(), x)[0]

    agrees(f, tensor([0.5], "float32"))


def test_mixed_precision_leaves_them_as_they_are():
    def f(x):
        with paddle.amp.auto_cast(level="O2"):
            return ONE * x.item(), paddle.matmul(ONE, ONE) * float(x)

    agrees(f, tensor(1 / 3, "float64"))


def test_a_size_that_varies_divided():
    spec = paddle.static.InputSpec([None], "float64")
    f = to_static(lambda x: x * (x.shape[0] / 3), input_spec=[spec])
    for n in (2, 5):
        assert f(paddle.ones([n], "float64"))[0].item() == n / 3


def test_a_count_needs_no_check_of_its_size():
    """So a loop may stand in a `try` that would catch OverflowError."""

    def f(x, n):
        try:
            for i in range(0, n, 2):
                x = x + i
            for i in range(n, 9):
                x = x * 2 - i
            for i, y in enumerate([x, x], n):
                x = x + i * y
        except Exception:
            pass
        return x

    g = paddle.jit.to_static(f)
    for n in (0, 3, 8):
        given = paddle.ones([1]), paddle.to_tensor(n)
        assert g(*given).tolist() == f(*given).tolist()
