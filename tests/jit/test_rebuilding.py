"""Objects that a converted function makes, returns or keeps: each run gives one with its values."""

from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass
from functools import partial, wraps
from types import SimpleNamespace

import pytest

import minipaddle as paddle
from minipaddle import nn
from minipaddle.engine.jit.refusal import Dygraph2StaticException


def tensor(*values):
    return paddle.to_tensor([float(v) for v in values])


class Result:
    def __init__(self, **parts):
        self.__dict__.update(parts)


class Named(OrderedDict):
    """A dict whose items are attributes, too."""

    def __init__(self, **parts):
        super().__init__(**parts)
        self.__dict__.update(parts)


class Attributes(dict):
    """A dict that is its own attributes."""

    def __init__(self, **parts):
        super().__init__(**parts)
        self.__dict__ = self


class Items(list):
    def __init__(self, **parts):
        super().__init__(parts.values())
        self.__dict__.update(parts)


@pytest.mark.parametrize("kind", [Result, Named, Attributes, Items])
def test_each_call_returns_an_object_of_its_own(kind):
    convert = paddle.jit.to_static(lambda x: [kind(y=x * 2, n=3, inner=Result(z=x + 1))])
    (first,), (second,) = convert(tensor(1, 2)), convert(tensor(5, 6))
    assert type(first) is type(second) is kind
    assert first is not second
    for made, y, z in ((first, [2, 4], [2, 3]), (second, [10, 12], [6, 7])):
        assert (made.y.tolist(), made.n, made.inner.z.tolist()) == (y, 3, z)
        if isinstance(made, dict):
            assert [*made] == ["y", "n", "inner"]
            assert made["y"] is made.y or made["y"].tolist() == y
        if isinstance(made, list):
            assert (len(made), made[0].tolist()) == (3, y)


def test_gradients_pass_through_a_returned_object():
    x = tensor(1, 2)
    x.stop_gradient = False
    paddle.jit.to_static(lambda x: Result(y=x * x))(x).y.sum().backward()
    assert x.grad.tolist() == [2, 4]


def test_sizes_in_a_returned_object():
    convert = paddle.jit.to_static(
        lambda x: Result(n=x.shape[0], y=x + 1), input_spec=[paddle.static.InputSpec([None])]
    )
    assert [convert(tensor(*range(n))).n for n in (2, 3)] == [2, 3]


class Index:
    def __init__(self, edges):
        self.degree = paddle.bincount(edges).astype("float32")


class Graph:
    """An object that computes its index when it is first asked."""

    def __init__(self):
        self.edges, self.made = paddle.to_tensor([0, 1, 1, 2]), None

    def degree(self):
        if self.made is None:
            self.made = Index(self.edges)
        return self.made.degree


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.graph, self.log = Graph(), []

    def forward(self, x):
        self.log.append(Result(x=x * 1))
        return x * self.graph.degree()


def test_an_object_that_is_made_once_and_kept():
    net = Net()
    convert = paddle.jit.to_static(net)
    for k in (1, 2, 3):
        assert convert(tensor(k, k, k)).tolist() == [k, 2 * k, k]
        assert [each.x.tolist() for each in net.log] == [[i] * 3 for i in range(1, k + 1)]
    assert net.graph.made.degree.tolist() == [1, 2, 1]


def test_an_object_in_two_places_is_one():
    kept = []

    def keep(x):
        made = Result(y=x * 2)
        kept.append(made)
        return made

    keep = paddle.jit.to_static(keep)
    assert [keep(tensor(n)) for n in (1, 2)] == kept
    assert [each.y.tolist() for each in kept] == [[2.0], [4.0]]


def test_an_object_without_tensors_stays_as_it_is():
    made = Result(n=1)
    convert = paddle.jit.to_static(lambda x: (x + 1, made, [made]))
    _, first, (second,) = convert(tensor(1))
    assert first is second is made


# ---- functions, and whatever else holds tensors --------------------------------------------------


def closure(x):
    y = x * 2
    return lambda: y + 1


def default(x):
    def result(*, y=x * 2):
        return y + 1

    return result


def recursive(x):
    y = x * 2

    def result(n=1):
        return result(n - 1) + 1 if n else y

    return result


def counting(x):
    y = x * 2

    def result():
        nonlocal y
        y = y + 1
        return y

    return result


def decorated(x):
    def twice(function):
        @wraps(function)
        def call():
            return function() * 2

        return call

    @twice
    def result():
        return x + 0.5

    return result


def branching(x):
    def result():
        y = x * 2
        if y.sum() > 0:
            y = y + 1
        return y

    return result


class Method(Result):
    def result(self):
        return self.y + 1


def held_twice(x):
    y = x * 2
    return SimpleNamespace(f=lambda: y, g=lambda: y + 1)


@dataclass
class Data:
    inner: object


def in_place(x):
    kept = SimpleNamespace(f=None)
    kept.f = lambda: x * 2 + 1
    return kept


@pytest.mark.parametrize(
    ("make", "use"),
    [
        (closure, lambda f: f()),
        (default, lambda f: f()),
        (recursive, lambda f: f()),
        (counting, lambda f: f()),
        (decorated, lambda f: f()),
        (branching, lambda f: f()),
        (lambda x: Method(y=x * 2).result, lambda f: f()),
        (lambda x: (x * 2 + 1).clone, lambda f: f()),
        (lambda x: [x * 2 + 1].copy, lambda f: f()[0]),
        (lambda x: partial(paddle.add, x * 2, y=x * 0 + 1), lambda f: f()),
        (lambda x: {"f": [closure(x)]}, lambda r: r["f"][0]()),
        (held_twice, lambda r: r.g() + r.f() - r.f()),
        (in_place, lambda r: r.f()),
        (lambda x: Data(Method(y=x * 2)), lambda r: r.inner.result()),
        (lambda x: defaultdict(list, a=Method(y=x * 2)), lambda r: r["a"].result()),
        (lambda x: {x * 2 + 1}, lambda r: next(iter(r))),
        (lambda x: deque([x, x * 2 + 1], maxlen=1), lambda r: r[0]),
    ],
)
def test_each_call_returns_a_function_of_its_own(make, use):
    convert = paddle.jit.to_static(make)
    first, second = convert(tensor(1)), convert(tensor(5))
    assert use(first).tolist() == use(make(tensor(1))).tolist() == [3]
    assert use(second).tolist() == [11]


def test_a_function_that_is_left_outside():
    kept = []

    def keep(x):
        y = x * 2
        kept.append(lambda z: y + z)
        return y

    convert = paddle.jit.to_static(keep)
    for k in (1, 2, 3):
        convert(tensor(k))
    assert [f(1.0).tolist() for f in kept] == [[3], [5], [7]]


def test_gradients_pass_through_a_returned_function():
    x = tensor(3)
    x.stop_gradient = False
    paddle.jit.to_static(closure)(x)().sum().backward()
    assert x.grad.tolist() == [2]


class Slots:
    __slots__ = ("y",)

    def __init__(self, y):
        self.y = y


def generator(x):
    y = x * 2

    def steps():
        yield y

    return steps()


def local_class(x, instance):
    y = x * 2

    class Local:
        def result(self):
            return y

    return Local() if instance else Local


def two_that_share(x):
    y = x * 2

    def get():
        return y

    def put(new):
        nonlocal y
        y = new

    return get, put


def layer(x):
    made = nn.ReLU()
    made.y = x * 2
    return made


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (generator, "a generator `steps` .* outlives the call\n.*in steps"),
        (lambda x: map(len, [x * 2]), "a map .* outlives the call"),
        (lambda x: iter([x * 2]), "a list_iterator .* outlives the call"),
        (lambda x: local_class(x, False), "a type `Local` .* outlives the call"),
        (lambda x: local_class(x, True), "a type `Local` .* outlives the call"),
        (lambda x: Slots(x * 2), "a Slots .* outlives the call"),
        (layer, "a ReLU .* outlives the call\n.*in layer"),
        (two_that_share, "`put` .* a variable `y` .*one of them writes\n.*in put"),
    ],
)
def test_what_no_run_can_build_is_refused(make, what):
    with pytest.raises(Dygraph2StaticException, match=what):
        paddle.jit.to_static(make)(tensor(1))
