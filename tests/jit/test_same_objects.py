"""What stands in two places after a call is one object there, and what a condition on a tensor
picks out of two lists is the very one that eager mode picks.
"""

from dataclasses import dataclass
from functools import partial

import pytest

import minipaddle as paddle

UP, DOWN, MIXED = [1.0, 2.0], [-1.0, -2.0], [1.0, -2.0]


class Thing:
    def __init__(self):
        self.l, self.d = [paddle.zeros([2])], {"a": [paddle.ones([2])], "b": [paddle.ones([2])]}


@dataclass
class Record:
    items: list


def kept_and_returned(o, x):
    o.l = [x]
    return o.l


def kept_twice(o, x):
    o.l = o.m = [x]
    return x


def returned_twice(o, x):
    items = [x]
    return {"a": items, "b": (items, 1)}


def inside_another(o, x):
    o.d = {"a": [x], "b": []}
    o.l = [o.d, o.d["a"]]
    return o.l


def object_in_two_places(o, x):
    record = Record([x])
    o.l, o.m = [record], record
    return record


def object_of_python_in_two_places(o, x):
    inner = Thing()
    inner.l = [x]
    o.l, o.m = [inner], inner.l
    return inner.l


def function_and_its_list(o, x):
    items = [x]
    o.m = lambda: items
    return items, o.m()


def bound_twice(o, x):
    items = [x]
    o.m = partial(max, items)
    return o.m.args[0], items


def picked(o, x):
    if x[0] > 0:
        o.l = [x]
    return o.l


def picked_twice(o, x):
    if x[0] > 0:
        o.l = [x]
    if x[1] > 0:
        o.l = [x * 2]
    return o.l


def picked_from_another(o, x):
    if x[0] > 0:
        o.l = o.d["a"]
    return o.l


def picked_then_kept(o, x):
    if x[0] > 0:
        o.l = o.d["a"]
    else:
        o.l = [x]
    if x[1] > 0:
        o.d["a"] = o.l
    return x


def picked_dict(o, x):
    if x[0] > 0:
        o.d = {"a": [x], "b": o.l}
    return o.d["b"]


def picked_variable(o, x):
    items = [x] if x[0] > 0 else o.l
    return items, o.l


def plain(value):
    """A value with lists in place of tensors and objects."""
    if isinstance(value, Record):
        return plain(value.items)
    if isinstance(value, list):
        return [*map(plain, value)]
    if isinstance(value, dict):
        return {key: plain(x) for key, x in value.items()}
    return value.tolist()


def things(value, found=None) -> list:
    """All lists, dicts and objects that a value holds, in order."""
    found = [] if found is None else found
    inside = value if isinstance(value, list | tuple) else ()
    inside = value.values() if isinstance(value, dict) else inside
    inside = vars(value).values() if isinstance(value, Thing | Record) else inside
    inside = value.args if isinstance(value, partial) else inside
    if isinstance(value, list | dict | Thing | Record):
        found.append(value)
    for each in inside:
        things(each, found)
    return found


def history(function) -> list:
    """Which objects are the same one, and the same as before, after each call; and all numbers."""
    o, before, found = Thing(), [], []
    for call in (UP, DOWN, MIXED, [-1.0, 3.0], DOWN, UP):
        now = things([o, function(o, paddle.to_tensor(call))])[1:]
        numbers = [[x.tolist() for x in each if isinstance(x, paddle.Tensor)]
                   for each in now if isinstance(each, list)]  # fmt: skip
        same = [[id(y) for y in now].index(id(x)) for x in now]
        old = [[id(y) for y in before].index(id(x)) if id(x) in map(id, before) else -1
               for x in now]  # fmt: skip
        found.append((numbers, same, old))
        before = now
    return found


@pytest.mark.parametrize("backend", ["interpreter", "native"])
@pytest.mark.parametrize(
    "function",
    [kept_and_returned, kept_twice, returned_twice, inside_another, object_in_two_places,
     object_of_python_in_two_places, function_and_its_list, bound_twice, picked, picked_twice,
     picked_from_another, picked_then_kept, picked_dict, picked_variable],
)  # fmt: skip
def test_the_same_objects_as_in_eager_mode(function, backend):
    static = paddle.jit.to_static(function, backend=backend)
    assert history(static) == history(function)


def test_what_holds_itself_is_refused():
    @paddle.jit.to_static
    def f(x):
        items = [x]
        items.append(items)
        return items

    with pytest.raises(Exception, match="holds itself"):
        f(paddle.ones([1]))


def changed(o, x):
    if x[0] > 0:
        o.l = [x]
    o.l[0] = x * 3


def grown_and_dropped(o, x):
    if x[0] > 0:
        o.l = [x]
    o.l.append(x * 2)
    o.l = [x]


def changed_inside(o, x):
    if x[0] > 0:
        o.d = {"a": [x], "b": o.l}
    o.d["a"].append(x)
    o.d["c"] = x


def record_changed(o, x):
    if x[0] > 0:
        o.r = Record([x])
    o.r.items = [x * 2]


def changed_before(o, x):
    if x[0] > 0:
        o.l = [x]
    else:
        o.l[0] = x * 5
    o.l[0] = o.l[0] + x


def changed_before_under_a_condition(o, x):
    if x[0] > 0:
        o.l[0] = x * 5
    else:
        o.l = [t * 0.5 for t in o.l]
    if x[1] < 3:
        o.l[0] = o.l[0] + x


def grown_before(o, x):
    o.l.append(x)
    if x[0] > 0:
        o.l = [x, x * 3]
    o.l.append(x * 2)


def stored_before(o, x):
    o.d["c"] = x
    if x[0] > 0:
        o.d = {"a": o.l, "b": o.l, "c": x * 2}
    o.d["c"] = o.d["c"] * 2


def record_changed_before(o, x):
    o.r.items = [x * 3]
    if x[0] > 0:
        o.r = Record([x])
    o.r.items = [x + o.r.items[0]]


def changed_between_two_choices(o, x):
    if x[0] > 0:
        o.l = [x]
    o.l[0] = o.l[0] + x
    if x[1] > 0:
        o.l = [x * 7]
    o.l[0] = o.l[0] * 2


@pytest.mark.parametrize(
    "function",
    [changed, grown_and_dropped, changed_inside, record_changed, changed_before,
     changed_before_under_a_condition, grown_before, stored_before, record_changed_before,
     changed_between_two_choices],
)  # fmt: skip
@pytest.mark.parametrize("call", [UP, DOWN, [1.0, -1.0], [-1.0, 1.0]])
def test_a_write_to_what_was_picked_is_one_to_the_right_one(function, call):
    found = []
    for called in (function, paddle.jit.to_static(function)):
        o = Thing()
        o.r = Record([paddle.ones([2])])
        l, d, a, r = o.l, o.d, o.d["a"], o.r
        called(o, paddle.to_tensor(call))
        same = [o.l is l, o.d is d, o.d["a"] is a, o.r is r]
        found.append((same, *map(plain, (o.l, l, d, a, o.d, r, o.r))))
    assert found[0] == found[1]


def test_a_saved_program_warns_of_a_write_to_what_was_picked(tmp_path):
    class Net(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.l = [paddle.ones([2])]

        def forward(self, x):
            if x[0] > 0:
                self.l = [x]
            self.l[0] = x * 3
            return x * 2

    spec = [paddle.static.InputSpec([2], "float32")]
    with pytest.warns(UserWarning, match="a saved program does not") as told:
        paddle.jit.save(Net(), str(tmp_path / "net"), input_spec=spec)
    assert any("what a condition picks, which outlives it" in str(x.message) for x in told)
    x = paddle.to_tensor(UP)
    assert paddle.jit.load(str(tmp_path / "net"))(x).tolist() == (x * 2).tolist()


def test_a_saved_program_cannot_write_to_an_argument_that_was_picked(tmp_path):
    class Net(paddle.nn.Layer):
        def forward(self, x, items):
            chosen = [x] if x[0] > 0 else items
            chosen[0] = x * 3
            return chosen[0]

    spec = paddle.static.InputSpec([2], "float32")
    with pytest.raises(Exception, match="changes a list that it was given"):
        paddle.jit.save(Net(), str(tmp_path / "net"), input_spec=[spec, [spec]])


def test_a_saved_program_returns_both(tmp_path):
    class Net(paddle.nn.Layer):
        def forward(self, x):
            items = [x, x * 2]
            return {"a": items, "b": items}

    paddle.jit.save(Net(), str(tmp_path / "net"), [paddle.static.InputSpec([2], "float32")])
    found = paddle.jit.load(str(tmp_path / "net"))(paddle.to_tensor(UP))
    assert [x.tolist() for x in [*found["a"], *found["b"]]] == [UP, [2.0, 4.0]] * 2
