"""Every kind of change outside of a converted function, between its calls.

Each case is a small program that converts a function or a layer by `conv`, calls it, changes the
world, calls it again, and returns all that somebody holds. Eager mode says what is right.
`python -m tests.jit.test_changes_outside` prints the table: case × backend × what is converted.
"""

import os
import sys
import threading
import types
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import nn

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def X(*values):
    return paddle.to_tensor([float(v) for v in values])


def constant(value):
    return nn.initializer.Constant(value)


class Thing:
    limit = 2

    def __init__(self, **kw):
        self.__dict__.update(kw)

    def scale(self, x):
        return x * 2


G = 1
GT = X(1, 1)
GL = [1, 2]
GD = {"a": 1}
config = types.ModuleType("config_of_user")


@case
def global_number(conv):
    global G

    def f(x):
        return x + G

    f = conv(f)
    G = 1
    r = [f(X(1))]
    G = 5
    r.append(f(X(1)))
    G = 1
    return [*r, f(X(1))]


@case
def global_tensor_rebound(conv):
    global GT
    GT = X(1, 1)

    def f(x):
        return x + GT

    f = conv(f)
    r = [f(X(1, 1))]
    GT = X(3, 4)
    return [*r, f(X(1, 1))]


@case
def global_tensor_other_shape(conv):
    global GT
    GT = X(1, 1)

    def f(x):
        return x + GT

    f = conv(f)
    r = [f(X(1, 1))]
    GT = X(3)
    return [*r, f(X(1, 1))]


@case
def closure_number(conv):
    n = 1

    def f(x):
        return x + n

    f = conv(f)
    r = [f(X(1))]
    n = 2
    return [*r, f(X(1))]


@case
def closure_tensor(conv):
    t = X(1)

    def f(x):
        return x + t

    f = conv(f)
    r = [f(X(1))]
    t = X(2)
    return [*r, f(X(1))]


@case
def attribute_number(conv):
    o = Thing(n=1)

    def f(x):
        return x * o.n

    f = conv(f)
    r = [f(X(2))]
    o.n = 3
    return [*r, f(X(2))]


@case
def attribute_string(conv):
    o = Thing(mode="a")

    def f(x):
        return x * 2 if o.mode == "a" else x

    f = conv(f)
    r = [f(X(2))]
    o.mode = "b"
    return [*r, f(X(2))]


@case
def attribute_missing_then_there(conv):
    o = Thing()

    def f(x):
        return x * getattr(o, "n", 1)

    f = conv(f)
    r = [f(X(2))]
    o.n = 3
    r.append(f(X(2)))
    del o.n
    return [*r, f(X(2))]


@case
def hasattr_changes(conv):
    o = Thing()

    def f(x):
        return x * 3 if hasattr(o, "n") else x

    f = conv(f)
    r = [f(X(2))]
    o.n = 3
    return [*r, f(X(2))]


@case
def class_attribute(conv):
    o = Thing()

    def f(x):
        return x * o.limit

    f = conv(f)
    r = [f(X(2))]
    Thing.limit = 5
    try:
        r.append(f(X(2)))
    finally:
        Thing.limit = 2
    o.limit = 7
    return [*r, f(X(2))]


@case
def class_attribute_by_class(conv):

    def f(x):
        return x * Thing.limit

    f = conv(f)
    r = [f(X(2))]
    Thing.limit = 5
    try:
        return [*r, f(X(2))]
    finally:
        Thing.limit = 2


@case
def class_attribute_start_value(conv):

    class A:
        h = X(0)

    a, b = (A(), A())

    def f(o, x):
        o.h = o.h + x
        return o.h

    f = conv(f)
    return [f(a, X(1)), f(a, X(1)), f(b, X(1)), A.h, a.h, b.h]


@case
def method_replaced_on_class(conv):

    class A:
        def go(self, x):
            return x + 1

    a = A()

    def f(x):
        return a.go(x)

    f = conv(f)
    r = [f(X(1))]
    A.go = lambda self, x: x + 5
    return [*r, f(X(1))]


@case
def method_replaced_on_object(conv):
    o = Thing()

    def f(x):
        return o.scale(x)

    f = conv(f)
    r = [f(X(1))]
    o.scale = lambda x: x + 5
    return [*r, f(X(1))]


@case
def function_replaced(conv):

    def h(x):
        return x + 1

    def f(x):
        return h(x)

    f = conv(f)
    r = [f(X(1))]

    def h(x):  # noqa: F811
        return x + 9

    return [*r, f(X(1))]


@case
def module_attribute(conv):
    config.depth = 2

    def f(x):
        return x * config.depth

    f = conv(f)
    r = [f(X(1))]
    config.depth = 3
    return [*r, f(X(1))]


@case
def nested_object(conv):
    o = Thing(cfg=Thing(n=1))

    def f(x):
        return x * o.cfg.n

    f = conv(f)
    r = [f(X(1))]
    o.cfg.n = 2
    r.append(f(X(1)))
    o.cfg = Thing(n=3)
    return [*r, f(X(1))]


@case
def list_item(conv):
    l = [1, 2]

    def f(x):
        return x * l[0]

    f = conv(f)
    r = [f(X(1))]
    l[0] = 3
    return [*r, f(X(1))]


@case
def list_length(conv):
    l = [1, 2]

    def f(x):
        return x * len(l)

    f = conv(f)
    r = [f(X(1))]
    l.append(3)
    return [*r, f(X(1))]


@case
def list_sum(conv):
    l = [1, 2]

    def f(x):
        return x * sum(l)

    f = conv(f)
    r = [f(X(1))]
    l[1] = 3
    return [*r, f(X(1))]


@case
def list_loop(conv):
    l = [X(1), X(2)]

    def f(x):
        for t in l:
            x = x + t
        return x

    f = conv(f)
    r = [f(X(1))]
    l[1] = X(7)
    r.append(f(X(1)))
    l.append(X(1))
    return [*r, f(X(1))]


@case
def dict_item(conv):
    d = {"a": 1, "b": 2}

    def f(x):
        return x * d["a"]

    f = conv(f)
    r = [f(X(1))]
    d["a"] = 3
    d["b"] = 4
    return [*r, f(X(1))]


@case
def dict_get(conv):
    d = {}

    def f(x):
        return x * d.get("a", 1)

    f = conv(f)
    r = [f(X(1))]
    d["a"] = 3
    return [*r, f(X(1))]


@case
def dict_computed_key(conv):
    d = {"a": 1, "b": 2}
    o = Thing(k="a")

    def f(x):
        return x * d[o.k]

    f = conv(f)
    r = [f(X(1))]
    d["a"] = 3
    r.append(f(X(1)))
    o.k = "b"
    return [*r, f(X(1))]


@case
def dict_items(conv):
    d = {"a": X(1)}

    def f(x):
        for _, v in d.items():
            x = x + v
        return x

    f = conv(f)
    r = [f(X(1))]
    d["b"] = X(5)
    return [*r, f(X(1))]


@case
def in_a_set(conv):
    s = {1}

    def f(x):
        return x * 2 if 3 in s else x

    f = conv(f)
    r = [f(X(1))]
    s.add(3)
    return [*r, f(X(1))]


@case
def tuple_state(conv):
    o = Thing(s=(X(0), X(1)))

    def f(x):
        h, c = o.s
        o.s = (h + x, c * 2)
        return h + c

    f = conv(f)
    r = [f(X(1)), f(X(1))]
    o.s = (X(5), X(5))
    return [*r, f(X(1)), o.s[0], o.s[1]]


@case
def list_state(conv):
    o = Thing(s=[X(0), X(1)])

    def f(x):
        o.s = [t + x for t in o.s]
        return o.s[0] + o.s[1]

    f = conv(f)
    r = [f(X(1)), f(X(1))]
    keep = o.s
    r.append(f(X(1)))
    return r + keep + o.s


@case
def list_state_in_place(conv):
    o = Thing(s=[X(0), X(1)])

    def f(x):
        o.s[0] = o.s[0] + x
        return o.s[0] + o.s[1]

    f = conv(f)
    keep = o.s[0]
    r = [f(X(1)), f(X(1)), o.s[0], keep]
    o.s = [X(9), X(9)]
    return [*r, f(X(1)), o.s[0]]


@case
def dict_state(conv):
    d = {"h": X(0)}

    def f(x):
        d["h"] = d["h"] + x
        return d["h"] * 1

    f = conv(f)
    keep = d["h"]
    r = [f(X(1)), f(X(1)), d["h"], keep]
    d["h"] = X(7)
    return [*r, f(X(1)), d["h"]]


@case
def caller_input_kept(conv):
    o = Thing(h=None)

    def f(x):
        o.h = x if o.h is None else o.h + x
        return o.h

    f = conv(f)
    x = X(1)
    r = [f(x), f(x), f(x)]
    return [*r, x, o.h]


@case
def state_reset_to_none(conv):
    o = Thing(h=None)

    def f(x):
        o.h = x * 1 if o.h is None else o.h + x
        return o.h

    f = conv(f)
    r = [f(X(1)), f(X(1))]
    o.h = None
    return [*r, f(X(1)), f(X(1))]


@case
def history(conv):
    o, hist = (Thing(h=X(0)), [])

    def f(x):
        o.h = o.h + x
        hist.append(o.h)
        return x

    f = conv(f)
    [f(X(1)) for _ in range(4)]
    return [*hist, o.h]


@case
def aliased_state(conv):
    o = Thing(a=X(1), b=X(2))

    def f(x):
        o.b = o.a
        o.a = o.a + x
        return o.b * 1

    f = conv(f)
    r = [f(X(1)), f(X(1))]
    o.b.add_(X(10))
    return [*r, o.a, o.b]


@case
def swap(conv):
    o = Thing(a=X(1), b=X(2))

    def f(x):
        o.a, o.b = (o.b, o.a)
        return o.a * 10 + o.b + x

    f = conv(f)
    a = o.a
    r = [f(X(0)) for _ in range(3)]
    return [*r, o.a, o.b, X(float(o.a is a))]


@case
def same_then_different(conv):
    t = X(1)
    o = Thing(a=t, b=t)

    def f(x):
        return o.a + o.b * x

    f = conv(f)
    r = [f(X(1))]
    o.b = X(5)
    r.append(f(X(1)))
    o.a = o.b
    return [*r, f(X(1))]


@case
def identity_of_two(conv):
    t = X(1)
    o = Thing(a=t, b=t)

    def f(x):
        return x if o.a is o.b else x * 9

    f = conv(f)
    r = [f(X(1))]
    o.b = X(1)
    return [*r, f(X(1))]


@case
def equal_arguments(conv):

    class K:
        def __init__(s, n):
            s.n = n

        def __eq__(s, other):
            return True

        def __hash__(s):
            return 1

    def f(x, k):
        return x * k.n

    f = conv(f)
    return [f(X(1), K(1)), f(X(1), K(2))]


@case
def argument_attribute(conv):
    o = Thing(n=1)

    def f(x, o):
        return x * o.n

    f = conv(f)
    r = [f(X(1), o)]
    o.n = 2
    return [*r, f(X(1), o)]


@case
def one_and_true(conv):

    def f(x, n):
        return x * 5 if n is True else x * n

    f = conv(f)
    return [f(X(1), 1), f(X(1), True), f(X(1), 1.0)]


@case
def defaults(conv):

    def f(x, n=1):
        return x * n

    g = f
    f = conv(f)
    r = [f(X(1))]
    g.__defaults__ = (4,)
    return [*r, f(X(1))]


@case
def mutable_default(conv):

    def f(x, log=[]):  # noqa: B006
        log.append(1)
        return x * len(log)

    f = conv(f)
    return [f(X(1)), f(X(1)), f(X(1))]


@case
def thread_local(conv):
    l = threading.local()
    l.n = 1

    def f(x):
        return x * l.n

    f = conv(f)
    r = [f(X(1))]
    l.n = 2
    r.append(f(X(1)))

    def other():
        l.n = 7
        r.append(f(X(1)))

    t = threading.Thread(target=other)
    t.start()
    t.join()
    return [*r, f(X(1))]


@case
def environ(conv):
    os.environ["T3_N"] = "1"

    def f(x):
        return x * int(os.environ["T3_N"])

    f = conv(f)
    r = [f(X(1))]
    os.environ["T3_N"] = "2"
    return [*r, f(X(1))]


@case
def environ_get(conv):
    os.environ.pop("T3_M", None)

    def f(x):
        return x * int(os.environ.get("T3_M", 1))

    f = conv(f)
    r = [f(X(1))]
    os.environ["T3_M"] = "2"
    return [*r, f(X(1))]


@case
def getenv(conv):
    os.environ["T3_N"] = "1"

    def f(x):
        return x * int(os.getenv("T3_N"))

    f = conv(f)
    r = [f(X(1))]
    os.environ["T3_N"] = "2"
    return [*r, f(X(1))]


@case
def numpy_array(conv):
    a = np.array([1.0, 2.0])

    def f(x):
        return x * float(a.sum())

    f = conv(f)
    r = [f(X(1))]
    a[0] = 5
    return [*r, f(X(1))]


@case
def counter(conv):
    o = Thing(n=0)

    def f(x):
        o.n += 1
        return x * o.n

    f = conv(f)
    return [f(X(1)) for _ in range(4)]


@case
def nonlocal_counter(conv):
    n = 0

    def f(x):
        nonlocal n
        n += 1
        return x * n

    f = conv(f)
    return [f(X(1)) for _ in range(4)]


@case
def property_reads(conv):

    class A:
        n = 1

        @property
        def twice(self):
            return self.n * 2

    a = A()

    def f(x):
        return x * a.twice

    f = conv(f)
    r = [f(X(1))]
    a.n = 4
    return [*r, f(X(1))]


@case
def slots(conv):

    class A:
        __slots__ = ("n",)

    a = A()
    a.n = 1

    def f(x):
        return x * a.n

    f = conv(f)
    r = [f(X(1))]
    a.n = 4
    return [*r, f(X(1))]


@case
def special_methods(conv):

    class A:
        def __init__(s):
            s.items = [1, 2]

        def __len__(s):
            return len(s.items)

        def __getitem__(s, k):
            return s.items[k]

    a = A()

    def f(x):
        return x * len(a) + a[0]

    f = conv(f)
    r = [f(X(1))]
    a.items.append(1)
    a.items[0] = 8
    return [*r, f(X(1))]


@case
def dataclass_config(conv):

    @dataclass
    class C:
        n: int = 1

    o = Thing(c=C())

    def f(x):
        return x * o.c.n

    f = conv(f)
    r = [f(X(1))]
    o.c.n = 2
    r.append(f(X(1)))
    o.c = C(5)
    return [*r, f(X(1))]


@case
def seed_inside(conv):

    def f(x):
        paddle.seed(3)
        return x + paddle.rand([1])

    f = conv(f)
    return [f(X(1)), f(X(1)), f(X(1))]


@case
def private_attribute(conv):
    class Counter:
        def __init__(self):
            self.__h, self.__n = X(0), 1

        def step(self, x):
            self.__h = self.__h + x * self.__n
            return self.__h

        def set(self, n):
            self.__n = n

    a = Counter()
    f = conv(a.step)
    r = [f(X(1)), f(X(1))]
    a.set(5)
    return [*r, f(X(1))]


@case
def deleted_attribute(conv):
    o = Thing(h=X(1))

    def f(x):
        y = x + o.h
        del o.h
        return y

    f, r = conv(f), []
    for h in (X(1), X(2), None):
        if h is not None:
            o.h = h
        try:
            r += [f(X(1)), float(hasattr(o, "h"))]
        except AttributeError:
            r.append(-1.0)
    return r


@case
def imported_inside(conv):
    def f(x):
        from config_of_user import depth

        return x * depth

    sys.modules["config_of_user"] = config
    config.depth = 2
    f = conv(f)
    r = [f(X(1))]
    config.depth = 7
    return [*r, f(X(1))]


@case
def dict_of_an_object(conv):
    o = Thing(n=1)

    def f(x):
        return x * o.__dict__["n"] + len(vars(o))

    f = conv(f)
    r = [f(X(1))]
    o.n, o.m = 4, 1
    return [*r, f(X(1))]


@case
def attribute_of_a_tensor(conv):
    w = X(2)
    w.factor = 3

    def f(x):
        return x * w * w.factor

    f = conv(f)
    r = [f(X(1))]
    w.factor = 5
    return [*r, f(X(1))]


def net():
    paddle.seed(1)
    return nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Dropout(0.5))


@case
def layer_replaced(conv):
    n = net()
    n.eval()
    g = conv(n)
    r = [g(X(1, 2))]
    n[0] = nn.Linear(2, 2)
    return [*r, g(X(1, 2)) - 0 * n[0](X(1, 2)), n[0](X(1, 2))]


@case
def layer_added(conv):
    n = net()
    n.eval()
    g = conv(n)
    r = [g(X(1, 2))]
    n.add_sublayer("z", nn.Softmax())
    return [*r, g(X(1, 2))]


@case
def parameter_assigned(conv):
    n = net()
    n.eval()
    g = conv(n)
    r = [g(X(1, 2))]
    n[0].weight = paddle.create_parameter([2, 2], "float32", default_initializer=constant(2.0))
    return [*r, g(X(1, 2))]


@case
def dropout_p(conv):
    n = nn.Dropout(0.5)
    g = conv(n)
    n.p = 0.0
    r = [g(X(1, 2))]
    n.p = 1.0
    return [*r, g(X(1, 2))]


@case
def hook_added(conv):
    n = net()
    n.eval()
    g = conv(n)
    r = [g(X(1, 2))]
    h = n[0].register_forward_post_hook(lambda l, i, o: o * 100)
    r.append(g(X(1, 2)))
    h.remove()
    return [*r, g(X(1, 2))]


@case
def layer_state(conv):

    class N(nn.Layer):
        def __init__(s):
            super().__init__()
            s.h = paddle.zeros([1])
            s.k = 2

        def forward(s, x):
            s.h = s.h + x * s.k
            return s.h

    n = N()
    g = conv(n)
    h0 = n.h
    r = [g(X(1)), g(X(1)), h0]
    n.h = X(10)
    r.append(g(X(1)))
    n.k = 3
    return [*r, g(X(1)), n.h]


@case
def buffer_replaced(conv):

    class N(nn.Layer):
        def __init__(s):
            super().__init__()
            s.register_buffer("seen", paddle.zeros([1]))

        def forward(s, x):
            s.seen = s.seen + x
            return s.seen + 0

    n = N()
    g = conv(n)
    r = [g(X(2))]
    n.seen = X(5)
    return [*r, g(X(1)), n.seen]


@case
def state_with_gradient(conv):

    class N(nn.Layer):
        def __init__(s):
            super().__init__()
            s.w = s.create_parameter([1], default_initializer=constant(2.0))
            s.h = paddle.ones([1])

        def forward(s, x):
            s.h = s.h * s.w + x
            return s.h

    n = N()
    g = conv(n)
    g(X(1))
    g(X(1))
    y = g(X(1))
    y.backward()
    return [y, n.w.grad]


@case
def mode(conv):
    n = net()
    n.eval()
    g = conv(n)
    r = [g(X(1, 2))]
    n[2].p = 0.0
    n.train()
    return [*r, g(X(1, 2))]


@case
def layer_list(conv):

    class N(nn.Layer):
        def __init__(s):
            super().__init__()
            s.l = nn.LayerList([nn.ReLU()])

        def forward(s, x):
            for l in s.l:
                x = l(x)
            return x

    n = N()
    g = conv(n)
    r = [g(X(-1))]
    n.l.append(nn.Softmax())
    return [*r, g(X(-1))]


@case
def plain_list_of_layers(conv):

    class N(nn.Layer):
        def __init__(s):
            super().__init__()
            s.l = [nn.ReLU()]

        def forward(s, x):
            for l in s.l:
                x = l(x)
            return x

    n = N()
    g = conv(n)
    r = [g(X(-1))]
    n.l[0] = nn.Tanh()
    return [*r, g(X(-1))]


@case
def generator_in_the_state(conv):
    o = Thing(k=0)

    def f(x):
        o.last = x * 3
        return o.last

    f = conv(f)
    r = [f(X(1))]
    a = o.last
    r.append(f(X(2)))
    return [*r, a, o.last]


# ---- what is converted ---------------------------------------------------------------------------


def as_function(f, to_static):
    return to_static((lambda *args: f(*args)) if isinstance(f, nn.Layer) else f)


def as_method(f, to_static):
    class Owner:
        def call(self, *args):
            return f(*args)

    return to_static(Owner().call)


def as_layer(f, to_static):
    class Outer(nn.Layer):
        def forward(self, *args):
            return f(*args)

    return to_static(f if isinstance(f, nn.Layer) else Outer())


FORMS = {"function": as_function, "method": as_method, "layer": as_layer}
BACKENDS = ("interpreter", "native", "auto")


def plain(values):
    return [v.tolist() if isinstance(v, paddle.Tensor) else v for v in values]


def difference(name, backend, form) -> str:
    """How the converted program differs from the eager one."""

    def convert(f):
        return FORMS[form](f, lambda g: paddle.jit.to_static(g, backend=backend))

    wanted, found = plain(CASES[name](lambda f: f)), plain(CASES[name](convert))
    close = len(wanted) == len(found) and all(
        np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=1e-5)
        for a, b in zip(wanted, found, strict=True)
    )
    return "" if close else f"wanted {wanted}, found {found}"


def slowly(name: str) -> bool:
    """Whether a case is compiled in the suite; the command above compiles them all."""
    return sum(map(ord, name)) % 4 == 0


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", CASES)
def test_as_in_eager_mode(name, form):
    assert not difference(name, "interpreter", form)


@pytest.mark.parametrize("backend", BACKENDS[1:])
@pytest.mark.parametrize("name", [*filter(slowly, CASES)])
def test_compiled_as_in_eager_mode(name, backend):
    assert not difference(name, backend, "function")


if __name__ == "__main__":
    wrong = 0
    for name, backend, form in product(CASES, BACKENDS, FORMS):
        if found := difference(name, backend, form):
            wrong += 1
            print(f"{name}, {backend}, {form}: {found}")
    print(f"{len(CASES)} kinds of change, {len(CASES) * 9} programs, {wrong} wrong")
