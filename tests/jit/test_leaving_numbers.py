"""Numbers of Python that only a run knows leave a converted function as in eager mode: as an int, a
float or a bool. With full_graph=True, and in a saved program, they are tensors without axes.
"""

import contextlib
import dataclasses
import warnings
from collections import OrderedDict, deque, namedtuple
from functools import partial

import pytest

import minipaddle as paddle
from minipaddle.jit import to_static

Pair = namedtuple("Pair", "n y")
VALUES = 2.7, -1.5, 0.0


@dataclasses.dataclass
class Record:
    n: object
    more: list


class Held:
    def __init__(self, n):
        self.n = n


def all_of(x):
    """Each kind of value, as a text: types and values."""
    if isinstance(x, Held | Record):
        return type(x).__name__, all_of(vars(x))
    if isinstance(x, dict):
        return type(x).__name__, {k: all_of(v) for k, v in x.items()}
    if isinstance(x, list | tuple | deque):
        return type(x).__name__, [*map(all_of, x)]
    if isinstance(x, partial):
        return "partial", all_of(x.args), all_of(x.keywords)
    if callable(x):
        return "result", all_of(x())
    if isinstance(x, paddle.Tensor):
        return "Tensor", x.dtype.name, x.stop_gradient, x.tolist()
    return type(x).__name__, repr(x)


def in_containers(x):
    n = x.item()
    return (n, [int(x), n > 1], {"a": {"b": float(x)}}, OrderedDict(c=bool(x)), Pair(n, x * n),
            Record(int(x), [n]), n)  # fmt: skip


def in_objects(x):
    n = x.item()
    return Held([n, x]), deque([n, x]), partial(max, n, key=int(x)), lambda: (n, x + n)


def from_a_condition(x):
    if x > 0:
        n, flag = 1, True
    else:
        n, flag = -1, False
    return n, flag, (x.item() if x > 0 else 0.5)


def from_a_return(x):
    if x > 1:
        return 3
    return 4


def from_a_loop(x):
    n = 0
    while x > 0:
        x, n = x - 1, n + 1
    return n, x


def from_a_loop_over_a_range(x):
    total, n = 0.5, 0
    for i in range(int(x) + 2):
        total, n = total + x.item() * i, n + i
    return total, n


def of_numbers(x):
    n = x.item()
    return abs(n), -int(x), n / 4, int(x) // 2, n < 2, int(n * 3) + 1, not x, round(n)


def lists_of_numbers(x):
    return paddle.stack([x, x + 1]).tolist(), sum(paddle.stack([x, x]).tolist())


def an_int_or_a_float(x):
    n = 1 if x > 0 else 2.5
    return (
        n,
        n + 1,
        -n,
        n * n,
        n / 2,
        (1 if x > 1 else x.item()),
        max(x.item(), 2),
        min(0, x.item()),
    )


def of_texts(x):
    y = x + 0
    text, number = f"{y}, {int(x):3d}", str(x.item())
    y.add_(x * x)
    return text, {"a": [f"n{x.item():.2f}", chr(66 + int(x))]}, Held(number), number, y


def a_bool_or_an_int(x):
    n = True if x > 0 else 0
    return n, n + 1, (False if x > 0 else 1.0)


def a_sum_that_may_be_empty(x):
    total, y = 0, x
    while y > 0:
        y, total = y - 1, total + y.item()
    return total, total * 2


FUNCTIONS = [in_containers, in_objects, from_a_condition, from_a_return, from_a_loop,
             from_a_loop_over_a_range, of_numbers, lists_of_numbers, an_int_or_a_float,
             a_bool_or_an_int, of_texts, a_sum_that_may_be_empty]  # fmt: skip


@pytest.mark.parametrize("backend", ["interpreter", "native"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_what_a_function_returns_is_what_eager_mode_returns(function, backend):
    static = to_static(function, backend=backend)
    for value in (*VALUES, *VALUES):
        x = paddle.to_tensor(value, stop_gradient=False)
        assert all_of(static(x)) == all_of(function(x))
    assert len(static.program_cache) == 1


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float16", "bfloat16",
                                   "float32", "float64"])  # fmt: skip
def test_each_dtype(dtype):
    x = paddle.to_tensor(3.3, dtype="float64").astype(dtype)
    assert all_of(to_static(in_containers)(x)) == all_of(in_containers(x))


def test_numbers_keep_all_their_digits():
    assert to_static(lambda x: x.item())(paddle.to_tensor(2**62 + 1)) == 2**62 + 1
    assert to_static(lambda x: x.item())(paddle.to_tensor(0.1, "float64")) == 0.1
    with pytest.raises(OverflowError, match="64 bits"):
        to_static(lambda x: x.item() if x > 0 else 0.5)(paddle.to_tensor(2**62 + 1))


def test_no_gradient_flows_into_a_number():
    """Not from outside; and the tensors beside it have theirs."""

    @to_static
    def f(x):
        return x * x.item(), x.item()

    x = paddle.to_tensor(3.0, stop_gradient=False)
    y, n = f(x)
    (y * n).backward()
    assert x.grad.item() == 9.0


class Net(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.layer, self.n, self.log, self.best = paddle.nn.Linear(2, 2), 0, [], {"n": 0.5}

    def forward(self, x):
        self.n = x.sum().item()
        self.log.append(int(x.sum()))
        if x.sum() > 3:
            self.best["n"] = self.n
        return self.layer(x), self.n > 1


class Counter:
    def __init__(self):
        self.n, self.log = 0, []

    def step(self, x):
        self.n = int(x)
        self.log.append(x.item())
        self.log.extend([x, bool(x)])
        return self.n


TOTAL, LOG = 0.0, []


def outside(x):
    global TOTAL
    TOTAL = x.item()
    LOG.append(bool(x))
    return x


def kept_in(make, convert):
    """What three calls return, and what they leave outside."""
    global TOTAL
    TOTAL, LOG[:] = 0.0, []
    owner, call = make(convert)
    found = [call(paddle.to_tensor(value)) for value in ([2.7, 1.0], [-1.5, 0.5], [4.0, 2.0])]
    owner = {k: v for k, v in vars(owner).items() if k in ("n", "log", "best")} if owner else 0
    return all_of(found), all_of(owner), TOTAL, [*LOG]


def of_layer(convert):
    paddle.seed(0)
    net = Net()
    net.forward = convert(net.forward)
    return net, net


def of_method(convert):
    counter = Counter()
    return counter, lambda x: convert_once(convert, counter)(x[0])


def convert_once(convert, counter, known={}):  # noqa: B006
    if id(counter) not in known:
        known.clear()
        known[id(counter)] = counter, convert(counter.step)
    return known[id(counter)][1]


def of_function(convert):
    converted = convert(outside)
    return None, lambda x: converted(x[0])


def of_decorated_class(convert):
    """The decorator of a method, which each object binds."""
    counter = type("Counting", (Counter,), {"step": convert(Counter.step)})()
    return counter, lambda x: counter.step(x[0])


@pytest.mark.parametrize("backend", ["interpreter", "native"])
@pytest.mark.parametrize("make", [of_layer, of_method, of_function, of_decorated_class])
def test_what_a_run_leaves_outside_is_what_eager_mode_leaves(make, backend):
    convert = partial(to_static, backend=backend)
    assert kept_in(make, convert) == kept_in(make, lambda function: function)


def test_lists_and_dicts_that_are_given_get_numbers():
    @to_static
    def f(x, items, named):
        items.append(x.item())
        named["n"] = int(x)

    items, named = [], {}
    for value in VALUES:
        f(paddle.to_tensor(value), items, named)
        assert named == {"n": int(value)}
        assert type(named["n"]) is int
        named.clear()
    assert items == [paddle.to_tensor(value).item() for value in VALUES]


def test_a_number_that_is_only_written_needs_no_further_program():
    counter = Counter()
    step = to_static(counter.step)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [step(paddle.to_tensor(k)) for k in range(12)] == [*range(12)]
    assert len(step.program_cache) == 1
    assert counter.log[-3] == counter.n == 11


def test_a_number_that_is_read_again_is_right_and_there_is_a_warning():
    """It is a Python number of the outside: each value has a program, as each other number has."""

    class Sum(paddle.nn.Layer):
        total = 0.0

        @to_static
        def forward(self, x):
            self.total += x.item()
            return self.total

    net = Sum()
    with pytest.warns(UserWarning, match="`Sum.total` changes at every call: make it a tensor"):
        found = [net(paddle.to_tensor(float(k))) for k in range(12)]
    assert found == [k * (k + 1) / 2 for k in range(12)]


# ---- full_graph, saved ---------------------------------------------------------------------------

SPECS = [paddle.static.InputSpec([], "float32", "x")]


def tensors(x):
    return int(x), x.item(), {"a": x > 1 and bool(x)}, (1 if x > 0 else 2.5)


def check_tensors(found, value):
    flat = paddle.utils.flatten(found)
    assert all(type(y) is paddle.Tensor for y in flat)
    assert [y.dtype.name for y in flat] == ["int64", "float32", "bool", "float32"]
    x = paddle.to_tensor(value)
    assert [y.item() for y in flat] == [*paddle.utils.flatten(tensors(x))]


def test_with_full_graph_they_are_tensors():
    for static in (to_static(tensors, full_graph=True), to_static(full_graph=True)(tensors)):
        for value in VALUES:
            check_tensors(static(paddle.to_tensor(value)), value)


def test_with_full_graph_tensors_are_left():
    counter, log = Counter(), []
    static = to_static(counter.step, full_graph=True)
    for value in (2.7, 3.5):
        log.append(static(paddle.to_tensor(value)))
    assert {*map(type, (counter.n, *counter.log, *log))} == {paddle.Tensor}
    assert [x.tolist() for x in log] == [2, 3]
    assert counter.n.item() == 3
    net = Net()
    net.forward = to_static(net.forward, full_graph=True)
    for value in (1.0, 2.0):
        net(paddle.full([2], value))
        assert type(net.n) is paddle.Tensor
        assert net.n.item() == 2 * value


def test_methods_of_a_class_have_the_mode_of_their_decorator():
    class Both:
        @to_static
        def plain(self, x):
            return x.item()

        @to_static(full_graph=True)
        def whole(self, x):
            return x.item()

    x, both = paddle.to_tensor(2.5), Both()
    assert both.plain(x) == 2.5
    assert type(both.whole(x)) is paddle.Tensor


@pytest.mark.parametrize("full", [False, True])
def test_sot_mode_guard_says_what_is_taken_where_nothing_is_said(full):
    x = paddle.to_tensor(2.5)
    with paddle.jit.api.sot_mode_guard(not full):
        kinds = [type(to_static(lambda x: x.item(), **given)(x))
                 for given in ({}, {"full_graph": True}, {"full_graph": False})]  # fmt: skip
    assert kinds == [paddle.Tensor if full else float, paddle.Tensor, float]
    with contextlib.suppress(KeyError), paddle.jit.api.sot_mode_guard(False):
        raise KeyError
    assert to_static(lambda x: x.item())(x) == 2.5


def test_a_function_called_by_a_converted_one_takes_part_in_it():
    inner = to_static(lambda x: x.item(), full_graph=True)
    assert to_static(lambda x: inner(x) + 1)(paddle.to_tensor(2.5)) == 3.5


def test_a_saved_program_gives_tensors(tmp_path):
    path = str(tmp_path / "f")
    static = to_static(tensors, input_spec=SPECS)
    assert type(static(paddle.to_tensor(2.5))[0]) is int
    paddle.jit.save(static, path)
    loaded = paddle.jit.load(path)
    for value in VALUES:
        check_tensors(loaded(paddle.to_tensor(value)), value)
    assert type(static(paddle.to_tensor(2.5))[0]) is int


def test_a_number_of_a_type_that_nothing_knows_is_refused():
    def inner_choice(x):
        n = 1
        if x > 0:
            n = 2.5 if x > 1 else 3
        return n

    with pytest.raises(Exception, match="int or a float leaves the converted function") as caught:
        to_static(inner_choice)(paddle.to_tensor(2.5))
    assert "inner_choice" in str(caught.value)
    assert to_static(inner_choice, full_graph=True)(paddle.to_tensor(2.5)).item() == 2.5
