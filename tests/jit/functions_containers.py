"""Lists, dicts, tuples, named tuples, dataclasses under control flow; items, slices, attributes."""

# ruff: noqa: C416

from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass, replace

import minipaddle as paddle
from tests.jit.examples import I, T, example

X, Y = T([1.0, 2.0]), T([-1.0, -2.0])
Point = namedtuple("Point", ["x", "y"])


@dataclass
class State:
    h: object
    c: object
    steps: int = 0


@dataclass(frozen=True)
class Frozen:
    h: object


@example((X, 3), (X, 0))
def list_in_python_loop(x, n):
    out = []
    for k in range(n):
        out.append(x * k)
    return out


@example((X, 3))
def list_then_stack(x, n):
    out = []
    for k in range(n):
        x = x + k
        out.append(x)
    return paddle.stack(out)


@example((X,), (Y,))
def append_in_both_branches(x):
    out = []
    if x.sum() > 0:
        out.append(x)
    else:
        out.append(x * 2)
    return out[0] + len(out)


@example((X,), (Y,))
def list_item_in_a_branch(x):
    items = [x, x + 1]
    if x.sum() > 0:
        items[0] = x * 5
    else:
        items[-1] = x * 7
    return items


@example((X,), (Y,), refused="not the same kind")
def append_in_one_branch(x):
    out = [x]
    if x.sum() > 0:
        out.append(x)
    return out[-1]


@example((X,), (Y,))
def pop_in_both_branches(x):
    items = [x, x + 1, x + 2]
    if x.sum() > 0:
        y = items.pop() * 2
    else:
        y = items.pop(0)
        items.reverse()
    return y, len(items), items


@example((X,), (Y,))
def list_augmented(x):
    items = [x]
    alias = items
    if x.sum() > 0:
        items += [x + 1]
    else:
        items += [x + 2]
    return alias[1], len(alias)


@example((X,))
def list_methods(x):
    items = [3, 1, 2]
    items.sort()
    items.insert(0, 9)
    items.extend([4, 5])
    del items[1]
    items[1:3] = [7]
    n = items.index(7) + items.count(9)
    items.remove(9)
    return x * n, items


@example((X,), (Y,))
def dict_in_a_branch(x):
    d = {"a": x, "b": x + 1}
    if x.sum() > 0:
        d["a"] = d["b"] * 2
    return d["a"] + d["b"]


@example((X,), (Y,))
def dict_filled_in_both(x):
    d = {}
    if x.sum() > 0:
        d["y"] = x
        d["n"] = 1
    else:
        d["y"] = x * 2
        d["n"] = 1
    return d


@example((X,), (Y,), refused="not the same kind")
def dict_key_in_one_branch(x):
    d = {"a": x}
    if x.sum() > 0:
        d["b"] = x
    return d.get("b", x)


@example((T(0.0), X), (T(9.0), X))
def dict_in_a_loop(i, x):
    d = {"s": x, "k": x * 0}
    while i < 3:
        d["s"] = d["s"] + i
        d["k"] = d["s"] * 2
        i = i + 1
    return d


@example((T(0.0), X))
def list_items_in_a_loop(i, x):
    items = [x, x + 1]
    while i < 3:
        items[0] = items[0] + items[1]
        items[1] = items[1] * 2
        i = i + 1
    return items


@example((T(0.0), X))
def nested_containers_in_a_loop(i, x):
    state = {"h": [x, x + 1], "c": (x * 0, {"d": x})}
    while i < 3:
        state["h"][0] = state["h"][0] + i
        state["c"] = (state["c"][0] + 1, {"d": state["c"][1]["d"] * 2})
        i = i + 1
    return state


@example((T(0.0), X))
def tuple_in_a_loop(i, x):
    pair = (x, x + 1)
    while i < 3:
        pair = (pair[1], pair[0] * 2)
        i = i + 1
    return pair


@example((T(0.0), X))
def named_tuple_in_a_loop(i, x):
    p = Point(x, x + 1)
    while i < 3:
        p = Point(p.y, p.x + i)
        i = i + 1
    return p


@example((T(0.0), X))
def dataclass_in_a_loop(i, x):
    s = State(x, x * 0)
    while i < 3:
        s = State(s.h + s.c, s.h, s.steps + 1)
        i = i + 1
    return s.h, s.c, s.steps


@example((X,), (Y,))
def dataclass_attributes_in_a_branch(x):
    s = State(x, x * 0)
    if x.sum() > 0:
        s.h = s.h * 2
        s.steps += 1
    return s.h, s.c, s.steps


@example((T(0.0), X))
def dataclass_attributes_in_a_loop(i, x):
    s = State(x, x * 0)
    while i < 3:
        s.h = s.h + s.c
        s.c = s.h
        s.steps += 1
        i = i + 1
    return s.h, s.c, s.steps


@example((X,), (Y,))
def frozen_dataclass(x):
    s = Frozen(x)
    if x.sum() > 0:
        s = replace(s, h=x * 3)
    return s.h


@example((X,), (Y,))
def ordered_and_default_dicts(x):
    o = OrderedDict(a=x, b=x)
    d = defaultdict(list)
    if x.sum() > 0:
        o = OrderedDict(a=x + 1, b=x)
        d["k"].append(x)
    else:
        d["k"].append(x * 2)
    return o["a"], d["k"][0]


@example((X,))
def comprehensions(x):
    squares = [x * k for k in range(3) if k != 1]
    table = {k: x + k for k in range(2)}
    lengths = {len(s) for s in ("a", "bb", "cc")}
    return squares, table, sorted(lengths)


@example((T([[1.0, 2.0], [3.0, 4.0]]),))
def comprehension_over_tensor(x):
    return [row.sum() for row in x], [[v * 2 for v in row] for row in x]


@example((X,))
def nested_comprehension(x):
    k = 5
    grid = [[i * j + k for j in range(2)] for i in range(3)]
    return x * sum(v for row in grid for v in row)


@example((X,))
def comprehension_hides_names(x):
    k = 7
    out = [k for k in range(3)]
    return x * k + len(out)


@example((X,))
def unpacking(x):
    a, b = x
    (c, d), e = (a, b), x
    first, *middle, last = [1, 2, 3, 4]
    return a + b, c * d, e, x * first * last + len(middle)


@example((X,))
def starred_arguments(x):
    def f(a, b, *rest, k=1, **others):
        return a * b + len(rest) * k + len(others)

    args, options = [2, 3, 4], {"k": 10, "z": 0}
    return x * f(*args, **options), [*args, 5], {**options, "y": 1}


@example((T([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),))
def items_and_slices(x):
    y = x * 1
    y[0, 1] = 10.0
    y[:, 2] = y[:, 0]
    y[1] += 1
    y[..., 0] *= 2
    return y, y[0], y[:, 1:], y[-1, ::2]


@example((T([1.0, 2.0, 3.0, 4.0]), I(1)), (T([1.0, 2.0, 3.0, 4.0]), I(3)))
def index_by_tensor(x, i):
    y = x * 1
    y[i] = y[i] * 10
    return y, x[i]


@example((T([1.0, 2.0, 3.0]),))
def mask(x):
    y = x * 1
    y[x > 1.5] = 0.0
    return y


@example((X,), (Y,))
def augmented_assignments(x):
    y = x * 1
    if x.sum() > 0:
        y += 1
        y *= 2
        y -= x
        y /= 4
        y **= 2
    return y


@example((X,))
def set_operations(x):
    s = {1, 2}
    s.add(3)
    s |= {4}
    return x * len(s & {3, 4, 5})


@example((X,), (Y,))
def nested_structure_out(x):
    if x.sum() > 0:
        out = {"a": [x, (x + 1, 2)], "b": None}
    else:
        out = {"a": [x * 2, (x, 2)], "b": None}
    return out


@example(([1, [2, {"k": 3}]], X))
def python_values_pass_through(values, x):
    return values, x, "text", 3, None


@example((X, lambda: [T([5.0, 5.0]).tensor(), 3]))
def structured_arguments(x, pair):
    y, n = pair
    if x.sum() > 0:
        y = y * n
    return y


@example((X, lambda: {"w": T([5.0, 5.0]).tensor(), "b": 3}))
def dict_arguments(x, options):
    if (options["w"] * x).sum() > 0:
        x = x + options["b"]
    return x


@example((X,), (Y,))
def object_attribute_in_a_branch(x):
    class Box:
        pass

    box = Box()
    box.value = x
    if x.sum() > 0:
        box.value = box.value * 2
    else:
        box.value = box.value - 1
    return box.value


@example((X,), (Y,))
def alias_of_an_object(x):
    s = State(x, x)
    t = s
    if x.sum() > 0:
        t.h = x * 5
    return s.h + t.c


@example((X,))
def string_formatting(x):
    n = 3
    text = f"{n:>4}|{n!r}|{x.shape}|{'a' if n > 2 else 'b'}"
    return x, text, "%d-%s" % (n, "q"), "{}".format(n)  # noqa: UP031, UP032


@example((X, 2), (X, 0))
def append_after_tensor_if(x, n):
    out = []
    for _ in range(n):
        if x.sum() > 5:
            x = x - 1
        else:
            x = x * 3
        out.append(x)
    return out


# ---- lists that grow in a loop on a tensor ------------------------------------------------------


@example((I(3), X), (I(0), X))
def grown_and_stacked(n, x):
    items = []
    for i in range(n):
        x = x * 0.5 + i
        items.append(x)
    items.append(x)
    return paddle.stack(items, axis=1), paddle.concat(items, axis=0)


@example((I(3), X))
def grown_and_returned(n, x):
    items = [x]
    while n > 0:
        x = paddle.tanh(x)
        items.append(x)
        items.append(x + 1)
        n = n - 1
    return items


@example((I(4), X))
def grown_and_used(n, x):
    items = []
    for _ in range(n):
        x = x * 1.5
        items.append(x)
    total = x * 0
    for item in items:
        total = total + item
    return total, items[-1], items[1], x * len(items), items


@example((I(2), X))
def grown_in_two_loops(n, x):
    items = []
    for i in range(n):
        items.append(x + i)
    for i in range(n):
        items.append(x * i)
    return paddle.stack(items)


@example((I(3), X))
def grown_and_popped(n, x):
    items = [x * 5]
    for i in range(n):
        items.append(x + i)
    items.append(x * 7)
    return items.pop(), items.pop(), items.pop(0), items.pop(1), items


@example((I(3), X), (I(5), X))
def grown_and_popped_in_a_loop(n, x):
    items, last = [], x
    for i in range(n):
        items.append(x + i)
    for _ in range(n - 1):
        last = items.pop()
    return items[0], last, items


@example((I(3), X), refused="list.insert of a list that grew")
def grown_and_inserted(n, x):
    items = []
    for i in range(n):
        items.append(x + i)
    items.insert(1, x)
    return items


@example((I(3), X), refused="list.pop at a place that a tensor says of a list that grew")
def grown_and_popped_at_a_tensor(n, x):
    items = []
    for i in range(n):
        items.append(x + i)
    return items.pop(n - 1)


@example((I(3), X), refused="not the same kind")
def grown_on_one_side(n, x):
    items = []
    for i in range(n):
        if i > 1:
            items.append(x + i)
    return items


@example((X, Y), (Y, X))
def bound_anew_on_one_side(x, y):
    d = {"a": x}
    kept = d
    if x.sum() > 0:
        d = {"a": x * 2}
    else:
        d.update(a=y)
    return d, kept


@example((X, Y, I(3)), (Y, X, I(2)))
def bound_anew_and_written(x, y, n):
    d, pair = {"a": x}, [x, y]
    for i in range(n):
        if i > 1:
            d = {"a": d["a"] * 2}
        d["a"] = d["a"] * y
        pair = [pair[1], pair[0] + 1]
        pair.reverse()
    pair[0] = pair[0] * 5
    return d, pair


@example((X, Y), (Y, X), refused="write to a dict.*may be another dict that is used.*dict[(]z[)]")
def written_with_another_name(x, y):
    d = {"a": x}
    kept = d
    if x.sum() > 0:
        d = {"a": x * 2}
    d["a"] = y
    return kept


@example((X, Y), (Y, X), refused="write to a dict.*may be another dict that is used")
def written_by_another_name(x, y):
    d = {"a": x}
    kept = d
    while x.sum() > 0:
        d = {"a": x * 2}
        x = x - y.abs()
    kept["a"] = y
    return d


@example((X, Y), refused="write to a list.*may be another list that is used")
def written_in_a_round_that_binds_it_anew(x, y):
    pair = [x, y]
    kept = pair
    for _ in range(x.sum().astype("int64")):
        pair[0] = pair[0] * 3
        pair = [pair[1], pair[0] + 1]
    return pair, kept


@example((X, Y), (Y, X), refused=r"write to a State.*copy.copy\(z\)")
def attribute_written_with_another_name(x, y):
    state = State(x, y)
    kept = state
    if x.sum() > 0:
        state = State(y, x)
    state.h = x + y
    return kept.h


@example((X, I(2)), (Y, I([0])))
def list_written_where_a_tensor_says(x, n):
    items, counts = [x, x * 2, x * 3], [0, 1, 2]
    items[n] = x * 9
    items[n - 3] += 1
    counts[n] = 7
    items[0] = items[0] + 1
    if x.sum() > 0:
        items[1] = x
        items[n] = items[n] * 2
    return items, counts


@example((X, I(3)), (Y, I([4])))
def list_written_in_a_loop(x, n):
    grown, fixed = [], [x] * 5
    for _ in range(n):
        grown.append(x)
    for k in range(n):
        grown[k] = x * 2 + grown[n - 1]
        fixed[k] = fixed[k] + fixed[k - 1]
    return paddle.stack(grown), fixed


@example((X, I(1)), refused="they and the new item are not all alike")
def list_of_two_kinds_written(x, n):
    items = [x, paddle.ones([3])]
    items[n] = x
    return items
