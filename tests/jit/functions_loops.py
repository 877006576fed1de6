"""`while` and `for`, on tensors and on everything Python can iterate."""

# ruff: noqa: B007

import itertools
from collections import OrderedDict, deque

import minipaddle as paddle
from tests.jit.examples import I, T, example

X = T([1.0, 2.0])
M = T([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


@example((T(0.0),), (T(7.5),), (T(20.0),))
def while_on_tensor(x):
    while x < 10:
        x = x + 2
    return x


@example((X, 0), (X, 3))
def while_on_python(x, n):
    while n > 0:
        x = x * 2
        n -= 1
    return x, n


@example((T(0.0), T([1.0, 1.0])), (T(9.0), T([1.0, 1.0])))
def while_carries_several(i, x):
    s = x * 0
    while i < 5:
        s = s + x * i
        x = x + 1
        i += 1
    return i, s, x


@example((I(3), X), (I(0), X))
def while_counts_in_python(n, x):
    k = 0
    while k < n:
        x = x + k
        k = k + 1
    return x, k


@example((I(3),), (I(0),), (I(1),))
def for_tensor_range(n):
    s = 0
    for i in range(n):
        s = s + i
    return s


@example((I(1), I(10), I(3)), (I(10), I(1), I(-4)), (I(5), I(5), I(1)))
def for_tensor_range_with_step(a, b, c):
    s = a * 0
    for i in range(a, b, c):
        s = s * 10 + i
    return s


@example((I(7),), (I(0),))
def for_range_mixed(n):
    s = n * 0
    for i in range(2, n, 2):
        s = s * 10 + i
    for i in range(n, 0, -3):
        s = s * 10 + i
    return s


@example((I(3),), (I(1),))
def loop_variable_afterwards(n):
    for i in range(n):
        pass
    return i


@example((I(2), I(3)), (I(0), I(3)), (I(3), I(0)))
def nested_tensor_ranges(n, m):
    s = n * 0
    for i in range(n):
        for j in range(m):
            s = s + i * 10 + j
    return s


@example((M,))
def for_rows(x):
    s = x[0] * 0
    for row in x:
        s = s * 2 + row
    return s


@example((M,))
def for_enumerate_rows(x):
    s = x[0] * 0
    for i, row in enumerate(x):
        s = s + row * i
    return s


@example((M,))
def for_enumerate_with_start(x):
    s = 0
    for i, row in enumerate(x, 5):
        s = s + row.sum() * i
    return s


@example((M, M))
def for_zip_tensors(x, y):
    s = 0
    for a, b in zip(x, y):
        s = s + (a * b).sum()
    return s


@example((X,))
def for_list(x):
    s = x * 0
    for v in [x, x + 1, x + 2]:
        s = s + v
    return s


@example((X,))
def for_tuple_of_pairs(x):
    s = x * 0
    for k, (v, w) in ((1, (x, x)), (2, (x + 1, x - 1))):
        s = s + k * v - w
    return s


@example((X,))
def for_dict_items(x):
    d = {"a": x, "b": x * 2}
    s = x * 0
    for k, v in d.items():
        s = s + v * len(k)
    for k in d:
        s = s + d[k]
    for v in d.values():
        s = s - v
    return s


@example((X,))
def for_ordered_dict(x):
    d = OrderedDict(a=1, b=2)
    for i, (k, v) in enumerate(d.items()):
        x = x + i * v + len(k)
    return x


@example((X,))
def for_reversed(x):
    for k in reversed(range(4)):
        x = x * 2 + k
    for v in reversed([x, x + 1]):
        x = x + v
    return x


@example((M,))
def for_reversed_rows(x):
    s = x[0] * 0
    for row in reversed(x):
        s = s * 2 + row
    return s


@example((X,))
def for_string(x):
    for c in "abc":
        x = x + ord(c)
    return x


@example((X, {1, 2, 3}))
def for_set(x, numbers):
    for n in sorted(numbers):
        x = x + n
    return x


@example((X,))
def for_generator(x):
    def numbers(n):
        for k in range(n):
            if k % 2:
                yield k

    for k in numbers(6):
        x = x * k
    return x


@example((X,))
def for_generator_expression(x):
    for k in (i * i for i in range(3)):
        x = x + k
    return x


@example((X,))
def for_itertools(x):
    for a, b in itertools.product([1, 2], [3, 4]):
        x = x * a - b
    for k in itertools.islice(itertools.count(5), 3):
        x = x + k
    return x


@example((X,))
def for_deque(x):
    queue = deque([1, 2, 3])
    while queue:
        x = x * queue.popleft()
    return x


@example((X,))
def for_iterator_object(x):
    class Down:
        def __init__(self, n):
            self.n = n

        def __iter__(self):
            return self

        def __next__(self):
            if self.n == 0:
                raise StopIteration
            self.n -= 1
            return self.n

    for k in Down(3):
        x = x * 2 + k
    return x


@example((X,))
def for_star_unpacking(x):
    for first, *rest in [(1, 2, 3), (4,)]:
        x = x * first + len(rest)
    return x


@example((X,))
def for_else_runs(x):
    for k in range(3):
        x = x + k
    else:
        x = x * 10
    return x


@example((X, 1), (X, 9))
def for_else_with_break(x, stop):
    for k in range(3):
        if k == stop:
            break
        x = x + k
    else:
        x = x * 10
    return x


@example((T(0.0), 100.0), (T(0.0), 3.0))
def while_else_with_break(x, limit):
    while x < 6:
        if x > limit:
            break
        x = x + 1
    else:
        x = x * 10
    return x


@example((I(5), T(0.0)), (I(2), T(0.0)), (I(0), T(0.0)))
def for_else_on_tensors(n, x):
    for i in range(n):
        x = x + i
        if x > 4:
            break
    else:
        x = x - 100
    return x


@example((T(1.0),), (T(500.0),))
def while_true_with_tensor_break(x):
    while True:
        x = x * 2
        if x > 100:
            break
    return x


@example((T(1.0),), (T(500.0),))
def while_true_with_tensor_return(x):
    while True:
        x = x * 3
        if x > 100:
            return x - 1


@example((M,), (T([[9.0, 9.0], [1.0, 1.0]]),))
def break_over_rows(x):
    s = x[0] * 0
    for v in x:
        if v.sum() > 6:
            break
        s = s + v
    return s


@example((X, 4), (X, 1))
def python_loop_tensor_break(x, n):
    k = 0
    while k < n:
        if x.sum() > 10:
            break
        x = x * 2
        k = k + 1
    return x


@example((M,))
def for_over_shape(x):
    s = 0
    for size in x.shape:
        s = s * 10 + size
    return x * s


@example((T(0.0), X), (T(4.0), X))
def temporary_in_a_loop(i, x):
    while i < 3:
        t = x * i
        u = t + 1
        x = u - t + x
        i = i + 1
    return x


@example((T(0.0),))
def vector_grows_from_zero(i):
    total = 0
    while i < 3:
        total = total + paddle.ones([2]) * i
        i = i + 1
    return total


@example((I(3), T([1.5, 2.5])), (I(1), T([1.5, 2.5])))
def integer_becomes_float(n, x):
    s = 0
    for i in range(n):
        s = s + x.sum()
    return s


@example((I(3), M))
def rows_by_tensor_index(n, x):
    s = 0.0
    for i in range(n):
        s = s + x[i].sum() * (i + 1)
    return s


@example((T(0.0), T([0.0, 0.0, 0.0])), (T(5.0), T([0.0, 0.0, 0.0])))
def writes_items_in_a_loop(i, x):
    y = x * 1
    while i < 3:
        y[0] = y[0] + i
        y[1:] = y[1:] + 1
        i = i + 1
    return y


@example((I(4), T([0.0] * 4)))
def writes_by_tensor_index(n, x):
    y = x * 1
    for i in range(n):
        y[i] = y[i] + 10.0 * i.astype("float32") if hasattr(i, "astype") else 10.0 * i
    return y


@example((T(0.0), X))
def if_in_a_loop(i, x):
    while i < 5:
        if x.sum() > 10:
            x = x / 2
        else:
            x = x * 3
        i = i + 1
    return x


@example((T(3.0),), (T(0.0),))
def loop_in_an_if(x):
    if x > 1:
        while x < 50:
            x = x * x
    else:
        for _ in range(3):
            x = x + 1
    return x


@example((T(0.0), X))
def loop_in_a_loop(i, x):
    while i < 3:
        j = i * 0
        while j < i:
            x = x + j
            j = j + 1
        i = i + 1
    return x


@example((T(1.0),))
def gradients_through_a_loop(x):
    y = x
    while y < 20:
        y = y * (x + 1)
    (g,) = paddle.grad(y, [x])
    return y, g


@example((I(3), X))
def first_round_is_special(n, x):
    h = x * 0
    for i in range(n):
        if i == 0:
            h = x
        else:
            h = h * 2 + x
    return h


@example((I(3), X), refused="`h` is not the same kind")
def none_before_the_loop(n, x):
    h = None
    for i in range(n):
        if h is None:
            h = x
        else:
            h = h + x * i
    return h


@example((I(3), X))
def none_before_the_loop_not_after(n, x):
    h = None
    s = x * 0
    for i in range(n):
        if h is None:
            h = x
        else:
            h = h + x * i
        s = s + h
    return s


@example((T(0.0), X))
def growing_shape(i, x):
    while i < 3:
        x = paddle.concat([x, x])
        i = i + 1
    return x


@example((X, 3))
def while_with_walrus(x, n):
    while (n := n - 1) > 0:
        x = x + n
    return x, n


@example((T(9.0),), (T(0.5),))
def while_with_tensor_walrus(x):
    k = 0
    while (x := x / 2) > 1:
        k = k + 1
    return x, k


@example((I(3),))
def name_first_bound_in_a_loop(n):
    for i in range(n):
        y = i * 2
    return y


@example((T(0.0), X))
def not_in_condition(i, x):
    done = i > 2
    while not done:
        x = x + 1
        i = i + 1
        done = i > 2
    return x


@example((T(0.0), T(8.0)), (T(5.0), T(1.0)))
def condition_with_and(i, x):
    while i < 5 and x > 2:
        i = i + 1
        x = x - 1.5
    return i, x


@example((X,))
def loop_over_layers(x):
    layers = [lambda v: v + 1, lambda v: v * 2, paddle.tanh]
    for layer in layers:
        x = layer(x)
    return x


@example((X, 3))
def negative_index_in_a_loop(x, n):
    out = [x]
    for _ in range(n):
        out.append(out[-1] * 2)
    return out[-1] + out[-2]


@example((I(3), X))
def delete_in_a_loop(n, x):
    for i in range(n):
        t = x + i
        x = t * 1
        del t
    return x


@example((T([1.0, 2.0, 3.0]),))
def accumulate_maximum(x):
    best = x[0]
    for v in x:
        best = v if v > best else best
    return best


@example((M, I(2)), (M, I(0)))
def zip_range_with_list(x, n):
    s = x[0] * 0
    for i, w in zip(range(n), [1.0, 2.0, 3.0]):
        s = s + x[i] * w
    return s


@example((M, I(2)))
def enumerate_tensor_range(x, n):
    s = 0
    for k, i in enumerate(range(1, n + 1)):
        s = s + k * 10 + i
    return s


@example((I(4),))
def reversed_tensor_range(n):
    s = 0
    for i in reversed(range(n)):
        s = s * 10 + i
    return s
