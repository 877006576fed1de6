"""`and`, `or`, `not`, comparisons, `in`, `assert`, casts and other builtins."""

# ruff: noqa: C419

import minipaddle as paddle
from tests.jit.examples import B, I, T, example

X, Y = T([1.0, 2.0]), T([-1.0, -2.0])
ONE, TEN = T(1.0), T(10.0)


@example((ONE, TEN), (TEN, ONE), (TEN, TEN))
def and_of_tensors(x, y):
    if x > 5 and y > 5:
        return x + y
    return x - y


@example((ONE, TEN), (ONE, ONE), (TEN, ONE))
def or_of_tensors(x, y):
    if x > 5 or y > 5:
        return x + y
    return x - y


@example((ONE,), (TEN,))
def not_of_tensor(x):
    if not x > 5:
        return x + 1
    return x


@example((ONE, 1), (TEN, 1), (ONE, 0), (TEN, 0))
def and_of_both_kinds(x, n):
    if n and x > 5:
        x = x + 1
    if x > 5 and n:
        x = x * 2
    return x


@example((ONE, 1), (TEN, 0), (ONE, 0))
def or_of_both_kinds(x, n):
    if n or x > 5:
        x = x + 1
    if x > 5 or n:
        x = x * 2
    return x


@example((0, 3), (2, 3), ("", []), (None, 0))
def values_of_and_or(a, b):
    return a and b, a or b, not a, (a and b) or 7


@example((ONE, TEN, B(True)), refused="not the same kind of value")
def value_of_another_kind(x, y, flag):
    best = (flag and x) or y
    return best * 1.0


@example((ONE, TEN), (T(0.0), TEN), (T(0.0), T(0.0)))
def values_of_one_kind(x, y):
    return x or y, x and y, y or x or y


@example((ONE, TEN), (TEN, ONE))
def long_and(x, y):
    ok = x > 0 and y > 0 and x + y > 10 and y > x
    if ok:
        return x
    return y


@example((ONE,), (TEN,))
def right_side_has_effects(x):
    calls = paddle.zeros([1])

    def noted(value):
        calls.add_(paddle.ones([1]))
        return value

    if x > 5 and noted(x) > 0:
        x = x + 1
    return x, calls


@example((0,), (1,))
def right_side_in_python(n):
    seen = []

    def noted(value):
        seen.append(value)
        return value

    a = n and noted(2)
    b = n or noted(3)
    return a, b, seen


@example((ONE,), (TEN,), (T(-4.0),))
def chained_comparison(x):
    if 0 < x < 5:
        return x + 100
    return x


@example((ONE, 3), (TEN, 3), (ONE, 0))
def chain_of_both_kinds(x, n):
    if 0 < n < x < 20:
        return x * n
    return x


@example((1, 2, 3), (3, 2, 1), (1, 1, 2))
def python_chain(a, b, c):
    return a < b < c, a <= b != c, a == b == c, a is b is not c


@example((X, None), (X, 3))
def is_none(x, y):
    if y is None:
        return x
    if y is not None and x.shape[0] == 2:
        return x * y


@example((X, "a"), (X, "z"))
def in_list(x, k):
    if k in ["a", "b"]:
        x = x + 1
    if k not in ("z",):
        x = x * 2
    return x


@example((X, "a"), (X, "z"))
def in_dict_and_text(x, k):
    if k in {"a": 1} or k in "xyz" or k in {"q"}:
        x = x + 1
    return x


@example((I(2),), (I(7),))
def tensor_in_list(x):
    if x in [paddle.to_tensor(1), paddle.to_tensor(2)]:
        return x * 10
    return x


@example((T([1.0, 3.0]), 3.0), (T([1.0, 3.0]), 5.0))
def number_in_tensor(x, n):
    if n in x:
        return x * 2
    return x


@example((X,))
def assert_on_tensor(x):
    assert x.sum() > 0
    assert x.shape[0] == 2, "two are expected"
    assert (x > 0).all(), f"sum is {x.shape}"
    return x


@example((X, 1))
def assert_on_python(x, n):
    assert n
    assert isinstance(x, paddle.Tensor), "no tensor"
    return x * n


@example((T(2.7),), (T(-2.7),))
def casts(x):
    return int(x) + 1, float(x) * 2, bool(x)


@example((2.7, "3"))
def python_casts(a, b):
    return int(a), float(b), bool(b), int(b, 8), str(a), complex(a), list(b), tuple(b)


@example((T([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),))
def length(x):
    n = len(x)
    return x * n + len([1, 2]) + len("abc")


@example((X,))
def printing(x):
    print("x =", x, "and", 3)
    print("only python", 1, sep="-")
    return x + 1


@example((X, 3))
def isinstance_of_tensor(x, n):
    y = x * 2
    if isinstance(y, paddle.Tensor) and not isinstance(n, paddle.Tensor):
        return y + n
    return x


@example((ONE, TEN), (TEN, ONE))
def max_and_min(x, y):
    return max(x, y), min(x, y), max(x, 3.0), min([x, y, x + y])


@example((T([3.0, 1.0, 2.0]),))
def max_of_vector(x):
    return max(x), min(x)


@example((3, [1, 4, 2]))
def python_max(a, b):
    return max(a, *b), min(b), max(b, key=lambda v: -v), max([], default=0), sum(b), sum(b, 5)


@example((X,))
def sum_and_abs(x):
    return sum([x, x + 1, x * 2]), abs(-x), sum(x), sum([])


@example((T([1.0, -1.0]),), (T([1.0, 1.0]),), (T([-1.0, -1.0]),))
def any_and_all(x):
    y = x
    if any(v > 0 for v in x):
        y = y + 1
    if all([v > 0 for v in x]):
        y = y * 2
    return y


@example(([0, 1],), ([],), ([1, 2],), ([0, 0],))
def python_any_all(a):
    return any(a), all(a), any(v > 1 for v in a), all(not v for v in a)


@example((X,))
def all_of_vector(x):
    if all(x > 0):
        return x
    return -x


@example((X,))
def round_pow_divmod(x):
    return round(2.567, 1), pow(x, 2), divmod(7, 2), abs(-3)


@example((ONE,), (TEN,))
def conditional_in_call(x):
    return paddle.maximum(x * 2 if x > 5 else x, paddle.ones([]))


@example((ONE,), (TEN,))
def conditional_in_index(x):
    items = [x, x + 1, x + 2]
    return items[1 if x.shape == [] else 0]


@example((I(0), X), (I(2), X))
def list_indexed_by_tensor(i, x):
    items = [x, x + 1, x + 2]
    return items[i]


@example((I(1), T([1.0, 2.0, 3.0, 4.0])), (I(0), T([1.0, 2.0, 3.0, 4.0])))
def slice_with_tensor_bounds(i, x):
    return x[int(i) + 0 : 4].sum() if i.stop_gradient is None else x[i]


@example((X,), (Y,))
def not_in_while(x):
    while not (x.sum() > 10 or x.sum() < -10):
        x = x * 2
    return x


@example((ONE, TEN), (TEN, ONE))
def and_in_value(x, y):
    both = x > 5 and y > 5
    either = x > 5 or y > 5
    return both, either, not both


@example((ONE,), (TEN,))
def all_of_generator_stops(x):
    asked = []

    def ask(k):
        asked.append(k)
        return k < 2

    return x, all(ask(k) for k in range(5)), asked


@example((X,))
def shape_comparisons(x):
    if x.shape == [2] and x.ndim == 1 and x.dtype == paddle.float32:
        return x + 1
    return x


@example((ONE,), (TEN,))
def comparison_with_none(x):
    y = None
    return x if y == None else x + 1  # noqa: E711


@example((X, I(3)), (X, I([2])))
def item_as_a_size(x, n):
    n = n.item()
    return paddle.arange(n), paddle.zeros([n, 2]) + x, paddle.arange(5)[:n], [x, x * 2, x * 3, x][n]


@example((X, I(3)), (X, I(1)))
def item_as_a_number(x, n):
    n, more = n.item(), (n > 2).item()
    for k in range(n):
        x = x + k
    return x * (n + 1) if more and n % 2 else x - n // 2


@example((X, I([3, 1])), (X, I([1, 2])))
def numpy_and_tolist_of_whole_numbers(x, sizes):
    first, second = sizes.tolist()
    whole = sizes.numpy()
    whole[0] = 5
    last = sizes.item(1) if whole.max() > 2 else first
    return x.expand([first, 2]), second * x, sizes, int(whole.sum()) + last, int(whole[1])


@example((X, I(2)), (X, I([3])))
def repeated_by_a_tensor(x, n):
    return paddle.repeat_interleave(x, n), paddle.repeat_interleave(x, int(n))
