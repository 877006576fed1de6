"""Objects that a converted function makes, returns or keeps: each run gives one with its values."""

from collections import OrderedDict

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


def test_an_object_in_two_places_is_refused():
    kept = []

    def keep(x):
        made = Result(y=x * 2)
        kept.append(made)
        return made

    with pytest.raises(Dygraph2StaticException, match="in two places"):
        paddle.jit.to_static(keep)(tensor(1))
    assert kept == []


def test_an_object_without_tensors_stays_as_it_is():
    made = Result(n=1)
    convert = paddle.jit.to_static(lambda x: (x + 1, made, [made]))
    _, first, (second,) = convert(tensor(1))
    assert first is second is made
