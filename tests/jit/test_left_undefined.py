"""Attributes and globals that a function binds or deletes only if a tensor says so."""

from dataclasses import dataclass

import pytest

import minipaddle as paddle

UP, DOWN = [1.0, 2.0], [-1.0, -2.0]
SPACE = globals()


class Thing:
    pass


@dataclass
class Record:
    number: int = 1


def one_side(o, x):
    if x.sum() > 0:
        o.last = x
    return x


def nested(o, x):
    if x.sum() > 100:
        o.there = x
    elif x.sum() > 0:
        o.last = x
    return x * 2


def behind_a_return(o, x):
    if x.sum() > 0:
        return x
    o.last = x
    return x * 2


def behind_a_break(o, x):
    for _ in range(3):
        if x.sum() > 0:
            break
        o.last = x
        x = x + 1
    return x


def in_a_loop(o, x):
    while x.sum() < 0:
        o.last = x
        x = x + 1
    return x * 2


def in_a_condition_of_a_loop(o, x):
    i = paddle.to_tensor(0)
    while i < 2:
        i += 1
        if x.sum() > 0:
            o.last = x * i
    return x * 2


def in_a_layer(o, x):
    class Net(paddle.nn.Layer):
        def forward(self, x):
            if x.sum() > 0:
                o.last = x
            return x

    return Net()(x)


def containers(o, x):
    if x.sum() > 0:
        o.l, o.n = [x, 3, None], 4
    else:
        o.d = {"a": x}
    return x


def deleted(o, x):
    if x.sum() > 0:
        del o.there
    return x


def of_the_module(o, x):
    global left_undefined
    if x.sum() > 0:
        left_undefined = x
    return x


def asked(o, x):
    if x.sum() > 0:
        o.last = x
    return x * 10 if hasattr(o, "last") else x


def with_a_default(o, x):
    if x.sum() > 0:
        o.last = x
    return getattr(o, "last", x * 5)


def of_an_object_that_it_makes(o, x):
    o.inner = Thing()
    o.inner.thing = Thing()
    if x.sum() > 0:
        o.inner.thing.last = [x]
    else:
        o.inner.other = 3
    return x


def of_a_dataclass_that_it_returns(o, x):
    record = Record()
    if x.sum() > 0:
        record.last = [x]
    return {"record": record}


def plain(value):
    value = vars(value) if isinstance(value, Thing | Record) else value
    if isinstance(value, list | tuple | dict):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return {k: plain(x) for k, x in items}
    return value.tolist() if isinstance(value, paddle.Tensor) else value


def history(function, calls) -> list:
    """What each call returns, and what there is after it."""
    found, o = [], Thing()
    o.there = paddle.zeros([2])
    for call in calls:
        try:
            returned = plain(function(o, paddle.to_tensor(call)))
        except AttributeError as error:
            returned = type(error)
        found.append((returned, plain(vars(o)), plain(SPACE.get("left_undefined"))))
    SPACE.pop("left_undefined", None)
    return found


@pytest.mark.parametrize("backend", ["interpreter", "native"])
@pytest.mark.parametrize(
    "function",
    [one_side, nested, behind_a_return, behind_a_break, in_a_loop, in_a_condition_of_a_loop,
     in_a_layer, containers, deleted, of_the_module, asked, with_a_default,
     of_an_object_that_it_makes, of_a_dataclass_that_it_returns],
)  # fmt: skip
@pytest.mark.parametrize("calls", [[UP, DOWN, [3.0, 4.0]], [DOWN, [-3.0, 0.5], UP, DOWN]])
def test_it_is_there_after_a_run_as_after_a_call(function, calls, backend):
    static = paddle.jit.to_static(function, backend=backend)
    assert history(static, calls) == history(function, calls)


def test_a_use_where_it_is_not_there_names_it():
    @paddle.jit.to_static
    def used(o, x):
        one_side(o, x)
        return o.last + 1

    assert used(Thing(), paddle.to_tensor(UP)).tolist() == [2, 3]
    with pytest.raises(AttributeError, match=r"`Thing.last` has no value: one side of .*, in one_"):
        used(Thing(), paddle.to_tensor(DOWN))


def test_all_attributes_together_show_it_if_it_is_there():
    @paddle.jit.to_static
    def names(o, x):
        one_side(o, x)
        return x * len(vars(o))

    assert names(Thing(), paddle.to_tensor(UP)).tolist() == UP
    with pytest.raises(AttributeError, match="has no value"):
        names(Thing(), paddle.to_tensor(DOWN))


def test_a_saved_program_leaves_none(tmp_path):
    class Net(paddle.nn.Layer):
        def forward(self, x):
            if x.sum() > 0:
                self.last = x
            return x * 2

    with pytest.warns(UserWarning, match="assigns last, which outlives it"):
        paddle.jit.save(Net(), str(tmp_path / "net"), [paddle.static.InputSpec([2], "float32")])
    assert paddle.jit.load(str(tmp_path / "net"))(paddle.to_tensor(UP)).tolist() == [2, 4]
