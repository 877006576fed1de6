"""Calls at any depth: functions, closures, classes, decorators, generators, recursion."""

# ruff: noqa: B023, C417, RUF015

import functools
from contextlib import ContextDecorator, contextmanager

import minipaddle as paddle
from minipaddle import nn
from tests.jit.examples import I, T, example

X, Y = T([1.0, 2.0]), T([-1.0, -2.0])
COUNT = 0
SCALE = 3.0


def helper(x, factor=2.0, *, shift=0.0):
    if x.sum() > 0:
        return x * factor + shift
    return x - shift


def twice(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs) * 2

    return wrapper


def scaled(by):
    def decorate(function):
        def wrapper(x):
            if by > 1:
                return function(x) * by
            return function(x)

        return wrapper

    return decorate


@twice
@scaled(3)
def decorated_helper(x):
    if x.sum() > 0:
        return x + 1
    return x - 1


@example((X,), (Y,))
def calls_a_helper(x):
    return helper(x) + helper(x, 3.0, shift=1.0) + helper(factor=0.5, x=x)


@example((X,), (Y,))
def calls_decorated(x):
    return decorated_helper(x)


@example((X,), (Y,))
@twice
def is_decorated(x):
    if x.sum() > 0:
        return x + 1
    return x


@example((X,), (Y,))
def default_arguments(x, y=1.0, *, z=2.0):
    if x.sum() > 0:
        return x + y + z
    return x


@example((X,), (Y,))
def nested_function(x):
    def inner(v):
        if v.sum() > 0:
            return v * 2
        return v * 3

    return inner(x) + inner(-x)


@example((X,), (Y,))
def closure_reads(x):
    k = 5

    def inner(v):
        if v.sum() > 0:
            return v * k
        return v

    k = 7
    return inner(x)


@example((X,), (Y,))
def closure_writes(x):
    count = 0

    def inner(v):
        nonlocal count
        count += 1
        return v + count

    if x.sum() > 0:
        x = inner(inner(x))
    else:
        x = inner(x)
    return x, count


@example((X, 3), (Y, 0))
def nonlocal_in_a_block(x, n):
    k = 1
    for i in range(n):

        def later():
            nonlocal k
            k = i * 2
            return k

        if i > 1:
            x = x + later()
    return x, k


@example((X,), (Y,))
def lambda_with_condition(x):
    f = lambda v, k=2: v * k if v.sum() > 0 else v - k
    return f(x) + f(x, 3)


@example((X,))
def two_lambdas(x):
    f, g = lambda v: v + 1, lambda v: v * 2
    return f(g(x)) - g(f(x))


@example((X,))
def functions_in_map(x):
    values = list(map(lambda v: v * 2 if v > 1 else v, [1, 2, 3]))
    kept = list(filter(lambda v: v > 1 and v < 6, values))
    return x * sum(kept), sorted(values, key=lambda v: -v)


@example((X,))
def partial_function(x):
    f = functools.partial(helper, factor=4.0, shift=1.0)
    return f(x)


@example((X, 5))
def recursion_on_python(x, n):
    def power(v, k):
        if k == 0:
            return v * 0 + 1
        return v * power(v, k - 1)

    return power(x, n)


def power_of(v, k):
    return v * 0 + 1 if k == 0 else v * power_of(v, k - 1)


@example((X, 5))
def recursion_in_a_module(x, n):
    return power_of(x, n)


@example((X, 3), (Y, 2))
def mutual_recursion(x, n):
    def even(v, k):
        return v if k == 0 else odd(v + 1, k - 1)

    def odd(v, k):
        if v.sum() > 100:
            v = v - 100
        return v * 2 if k == 0 else even(v * 2, k - 1)

    return even(x, n)


@example((X,))
def global_read(x):
    return x * SCALE


@example((X,))
def global_written(x):
    global COUNT
    COUNT = 0
    for k in range(3):
        COUNT += k
    return x + COUNT


@example((X,), (Y,))
def global_written_in_a_branch(x):
    global COUNT
    COUNT = x * 0
    if x.sum() > 0:
        COUNT = x * 5
    return COUNT + 1


@example((X,))
def generator_of_tensors(x):
    def rows(v, n):
        for k in range(n):
            yield v * k
        return

    total = x * 0
    for row in rows(x, 3):
        if row.sum() > 3:
            total = total + row
        else:
            total = total - row
    return total


@example((X,))
def sum_over_generator(x):
    def g():
        for k in range(3):
            yield x * k

    return sum(g())


@example((X,), (Y,))
def generator_with_tensor_if(x):
    def g():
        for k in range(3):
            v = x * k
            if v.sum() > 0:
                v = v + 100
            yield v

    return list(g())


@example((X,))
def generator_with_send(x):
    def g():
        got = yield 1
        while got:
            got = yield got * 2

    it = g()
    first = next(it)
    return x * first + it.send(5)


@example((X,))
def yield_from(x):
    def inner(n):
        yield from range(n)
        return n

    def outer():
        got = yield from inner(3)
        yield got * 10

    return x * sum(outer())


class Base:
    kind = "base"

    def __init__(self, scale):
        self.scale = scale
        self.calls = 0

    def apply(self, x):
        self.calls += 1
        if x.sum() > 0:
            return x * self.scale
        return x

    @property
    def doubled(self):
        if self.scale > 2:
            return self.scale * 2
        return self.scale

    @staticmethod
    def shifted(x, by=1.0):
        return x + by if x.sum() > 0 else x - by

    @classmethod
    def made(cls, scale):
        return cls(scale)

    def __private(self, x):
        return x + 0.25 if x.sum() > 0 else x

    def uses_private(self, x):
        self.__hidden = 2.0
        return self.__private(x) * self.__hidden

    def __call__(self, x):
        return self.apply(x) if x.sum() > 0 else x - self.scale


class Derived(Base):
    kind = "derived"

    def __init__(self, scale):
        super().__init__(scale + 1)
        self.limit = 5.0

    def apply(self, x):
        if x.sum() < self.limit:
            return super().apply(x) + 1
        return super().apply(x)

    @property
    def tensor_property(self):
        if self.value.sum() > 0:
            return self.value * 2
        return self.value


@example((X,), (Y,))
def methods(x):
    b = Base(3.0)
    return b.apply(x), b.calls, b.doubled, b.kind


@example((X,), (Y,))
def static_and_class_methods(x):
    b = Base.made(2.0)
    return Base.shifted(x) + b.shifted(x, 2.0) + Derived.made(1.0).apply(x)


@example((X,), (Y,))
def inheritance(x):
    d = Derived(2.0)
    return d.apply(x), d.calls, d.kind, isinstance(d, Base)


@example((X,), (Y,))
def private_names(x):
    return Base(1.0).uses_private(x)


@example((X,), (Y,))
def callable_object(x):
    return Base(4.0)(x)


@example((X,), (Y,))
def property_with_tensor(x):
    d = Derived(1.0)
    d.value = x
    return d.tensor_property


@example((X,), (Y,))
def bound_method_as_value(x):
    f = Base(2.0).apply
    g = Base.apply
    return f(x) + g(Base(3.0), x)


@example((X,), (Y,))
def attribute_written_by_callee(x):
    b = Base(2.0)
    if x.sum() > 0:
        y = b.apply(x)
    else:
        y = x
    return y, b.calls


@example((X,), (Y,))
def inner_class(x):
    class Inner(Base):
        offset = [1.0 if k else 2.0 for k in range(2)][0]

        def apply(self, v):
            if v.sum() > 0:
                return super().apply(v) + self.offset
            return v

    return Inner(2.0).apply(x)


@contextmanager
def noted(log):
    log.append("in")
    try:
        yield len(log)
    finally:
        log.append("out")


@example((X,), (Y,))
def with_statement(x):
    log = []
    with noted(log) as n, paddle.no_grad():
        if x.sum() > 0:
            y = x * n
        else:
            y = x - n
    return y, log


@example((X, "3"), (X, "q"))
def try_except(x, text):
    try:
        n = int(text)
    except (ValueError, TypeError) as error:
        n = len(type(error).__name__)
    else:
        n = n + 1
    finally:
        x = x + 1
    return x * n


@example((X, 0), (X, 2))
def try_around_tensor_if(x, n):
    try:
        if x.sum() > 0:
            x = x * 2
        y = 1 / n
    except ZeroDivisionError:
        y = -1.0
    return x * y


@example((X,), (Y,), refused="ValueError is raised under a condition on a tensor, inside a `try`")
def raise_and_catch(x):
    try:
        if x.sum() > 0:
            raise ValueError("positive")
        x = x * 2
    except (KeyError, ValueError):
        x = x + 1
    return x


@example((Y,))
def raise_and_catch_another(x):
    try:
        if x.sum() > 0:
            raise ValueError("positive")
        x = x * 2
    except KeyError:
        x = x + 1
    return x


@example((X,), (Y,))
def exception_caught_outside(x):
    def fails(v):
        if v.shape[0] == 2:
            raise KeyError("two")
        return v

    try:
        x = fails(x)
    except KeyError as e:
        x = x + len(e.args)
    return x


@example((X, 4))
def walrus_in_if(x, n):
    if (m := n * 2) > 5:
        x = x + m
    return x, m


@example((X, 4), (X, 0))
def walrus_on_the_right(x, n):
    m = -1
    if n > 1 and (m := n * 3) > 5:
        x = x + m
    y = (k := 5) if n else (k := 6)
    return x, m, y, k


@example((X,), (Y,))
def walrus_with_tensor(x):
    if (s := x.sum()) > 0:
        return x / s
    return x * s


@example((X,))
def walrus_in_comprehension(x):
    out = [last := k * 2 for k in range(3)]
    return x * last, out


def linear():
    return nn.Linear(2, 2, weight_attr=nn.initializer.Constant(0.5))


@example((X, lambda: nn.Sequential(linear(), nn.ReLU(), nn.Identity())))
def layer_call(x, net):
    return net(x.reshape([1, 2]))


class Gate(nn.Layer):
    def __init__(self):
        super().__init__()
        self.inner = linear()
        self.register_buffer("seen", paddle.zeros([1]))
        self.last = paddle.zeros([2])

    def forward(self, x):
        if x.sum() > 0:
            self.seen.add_(paddle.ones([1]))
            self.last = x
            x = self.inner(x.reshape([1, 2])).reshape([2])
        else:
            x = self.other(x)
        return x

    def other(self, x):
        return x * 3 if x.mean() < -1 else x


GATE = Gate()


def gate():
    return Gate()


@example((X, gate), (Y, gate))
def user_layer(x, gate):
    y = gate(x)
    return y, gate.seen, gate.last


@example((X,), (Y,))
def user_layer_of_the_module(x):
    return GATE(x)


def gates():
    return nn.Sequential(Gate(), Gate())


@example((X, gates), (Y, gates))
def layers_in_sequential(x, net):
    return net(x)


def listed():
    return nn.LayerList([Gate(), Gate()])


@example((X, listed), (Y, listed))
def layer_list(x, gates):
    for gate in gates:
        x = gate(x) + 1
    return x


@example((X, gate), (Y, gate))
def hooks(x, gate):
    gate.register_forward_post_hook(lambda layer, args, out: out + 1 if out.sum() > 0 else out)
    return gate(x)


@example((X,))
def annotations(x: paddle.Tensor, n: int = 2) -> paddle.Tensor:
    y: float = 3.0
    z: paddle.Tensor
    if n > 1:
        w: int = 2
        z = x * w
    else:
        z = x
    return z * y


@example((X,))
def docstring(x):
    """A text, which stays."""
    for k in range(2):
        if k > 5:
            return x
    return x + 1


@example((X,))
def many_kinds_of_arguments(x):
    def f(a, /, b, *args, c=1, **kw):
        if a > b:
            return a
        return a + b * c + sum(args) + len(kw)

    return x * (f(1, 2) + f(1, b=3, c=4) + f(1, 2, 3, 4, d=5) + f(5, 2))


@example((I(3), X))
def helper_in_a_tensor_loop(n, x):
    for i in range(n):
        x = helper(x, 1.5) + i
    return x


@example((X,), (Y,))
def constructor_with_condition(x):
    class Holder:
        def __init__(self, v):
            if v.sum() > 0:
                self.v = v * 2
            else:
                self.v = v

    return Holder(x).v


@example((X,))
def imports_inside(x):
    import math
    from math import floor as down

    if x.shape[0] == 2:
        from math import ceil
    else:
        ceil = down
    return x * math.pi + down(2.5) + ceil(2.5)


@example((X, 3))
def exec_globals_locals(x, n):
    names = sorted(k for k in locals() if not k.startswith("_jst"))
    return x * n, names, "SCALE" in globals()


@example((X,))
def delete_and_define(x):
    y = x
    del y
    y = x + 1
    d = {"a": 1, "b": 2}
    del d["a"]
    return y * len(d)


def absolute(x):
    if x.sum() < 0:
        return -x
    return x


class Marked(ContextDecorator):
    """A context manager of the user's, as a decorator."""

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False


@contextmanager
def chosen(x, scale=2.0):
    if x.sum() > 0:
        x = x * scale
    yield x


@contextmanager
def around():
    yield


without_grad, always_with_grad = paddle.no_grad()(absolute), paddle.enable_grad(absolute)
with_grad_set = paddle.set_grad_enabled(True)(absolute)
in_single = paddle.amp.auto_cast(enable=False)(absolute)
twice_around = Marked()(around()(absolute))


@example((X,), (Y,))
def decorated_by_context_managers(x):
    found = [f(x) for f in (without_grad, always_with_grad, with_grad_set, in_single, twice_around)]
    return sum(found) * 2


class WithoutGrad:
    @paddle.no_grad()
    def method(self, x):
        return absolute(x) if x.max() < 5 else x

    @staticmethod
    @paddle.no_grad()
    def static(x):
        return x if x.min() > 0 else x * 3


@example((X,), (Y,))
def methods_decorated_by_context_managers(x):
    return WithoutGrad().method(x) + WithoutGrad.static(x)


@example((X,), (Y,))
def generator_of_a_context_manager(x):
    with chosen(x) as y, chosen(x - 1, scale=3.0) as z:
        return y + z if y.sum() > 3 else y - z
