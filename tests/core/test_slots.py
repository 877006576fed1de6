"""Slots: a reader's rule runs in the real engine, and leaves no trace when the block ends."""

import threading

import pytest

import minipaddle as paddle
from minipaddle.engine.core import slots
from minipaddle.engine.core.op import OPS
from minipaddle.engine.core.slots import plugged, slot


def slope_of_tanh() -> float:
    x = paddle.to_tensor(0.5, stop_gradient=False)
    paddle.tanh(x).backward()
    return x.grad.item()


def test_a_plugged_rule_is_what_backward_uses():
    real = slope_of_tanh()
    with plugged("ops.tanh.vjp", lambda g, out: g * 7):
        assert slope_of_tanh() == 7
    assert slope_of_tanh() == real


def test_a_plugged_rule_may_ask_for_other_values_than_the_real_one():
    with plugged("ops.tanh.vjp", lambda g, x: g * x):
        assert slope_of_tanh() == 0.5


def test_a_plugged_body_is_what_forward_uses():
    with plugged("ops.relu.body", lambda m, x: x * 3):
        assert paddle.nn.functional.relu(paddle.to_tensor([-2.0])).item() == -6


def test_a_plugged_body_may_use_the_engine():
    """A reader's body may be written in tensors, though it is given arrays."""

    def body(m, x):
        t = paddle.to_tensor(x)
        return (paddle.exp(t) / (1 + paddle.exp(t))).array

    with plugged("ops.sigmoid.body", body):
        assert paddle.nn.functional.sigmoid(paddle.to_tensor([0.0])).item() == 0.5
        x = paddle.to_tensor([0.0], stop_gradient=False)
        paddle.nn.functional.sigmoid(x).backward()
        assert x.grad.item() == 0.25


def test_a_mistake_in_a_plugged_body_is_shown():
    with (
        plugged("ops.sigmoid.body", lambda m, x: m.no_such_function(x)),
        pytest.raises(ValueError, match=r"sigmoid\(float32\[1\]\).*no_such_function"),
    ):
        paddle.nn.functional.sigmoid(paddle.to_tensor([0.0]))


def test_rules_of_operators_with_several_inputs_are_named_by_input():
    x = paddle.to_tensor(2.0, stop_gradient=False)
    y = paddle.to_tensor(5.0, stop_gradient=False)
    with plugged("ops.multiply.vjp.x", lambda g: g * 0):
        (x * y).backward()
    assert (x.grad.item(), y.grad.item()) == (0, 2)


def fail_inside_a_plug(seen):
    with plugged({"ops.tanh.vjp": None, "ops.exp.vjp": None}):
        seen.extend(slots.yours())
        raise ZeroDivisionError


def test_several_at_once_and_restored_after_an_error():
    real, seen = OPS["tanh"].rules[0], []
    with pytest.raises(ZeroDivisionError):
        fail_inside_a_plug(seen)
    assert set(seen) == {"ops.tanh.vjp", "ops.exp.vjp"}
    assert OPS["tanh"].rules[0] is real
    assert slots.yours() == {}


def test_nested_blocks_restore_each_other():
    with plugged("ops.tanh.vjp", lambda g: g * 2):
        with plugged("ops.tanh.vjp", lambda g: g * 3):
            assert slope_of_tanh() == 3
        assert slope_of_tanh() == 2
        assert "ops.tanh.vjp" in slots.yours()


def test_every_change_moves_the_epoch():
    before = slots.epoch
    with plugged("ops.tanh.vjp", lambda g: g):
        inside = slots.epoch
    assert before < inside < slots.epoch


def test_a_rule_that_asks_for_what_does_not_exist_says_what_does():
    with (
        pytest.raises(TypeError, match=r"tanh asks for 'y'; it may ask for out, x, x_spec"),
        plugged("ops.tanh.vjp", lambda g, y: g),
    ):
        pass


def test_a_rule_of_the_wrong_shape_is_the_readers_error_with_both_shapes():
    x = paddle.ones([2, 3])
    x.stop_gradient = False
    y = x.sum(axis=0)
    with (
        plugged("ops.sum.vjp", lambda g: g),
        pytest.raises(ValueError, match=r"(?s)derivative of sum .* \[3\].*\[2, 3\]"),
    ):
        y.backward()


def test_a_rule_may_ask_for_the_spec_of_a_number():
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    seen = []

    def rule(g, y_spec):
        seen.append(y_spec)
        return g

    with plugged("ops.multiply.vjp.x", rule):
        (x * 2.0).sum().backward()
    assert [str(spec) for spec in seen] == ["float32[]"]


def test_an_unknown_slot_points_to_the_nearest():
    with pytest.raises(KeyError, match=r"no slot 'ops.tanhh.vjp'; did you mean 'ops.tanh.vjp'"):
        slots.find("ops.tanhh.vjp")
    with pytest.raises(KeyError, match="no slot"):
        slots.find("zzz")


@slot("tests.double")
def double(x):
    """Twice."""
    return 2 * x


class Shop:
    @slot("tests.price")
    def price(self):
        return 1


@pytest.fixture
def own_slots():
    """The two slots above; other tests see the engine's only."""
    for name in ("tests.double", "tests.price"):
        slots.SLOTS[name] = OWN[name]
    yield
    for name in OWN:
        del slots.SLOTS[name]


OWN = {name: slots.SLOTS.pop(name) for name in ("tests.double", "tests.price")}


@pytest.mark.usefixtures("own_slots")
def test_a_function_can_be_a_slot():
    assert double(4) == 8
    with plugged("tests.double", lambda x: 3 * x):
        assert double(4) == 12
    assert double(4) == 8
    assert double.__doc__ == "Twice."


@pytest.mark.usefixtures("own_slots")
def test_a_method_can_be_a_slot():
    with plugged("tests.price", lambda self: 2):
        assert Shop().price() == 2
    assert Shop().price() == 1


@pytest.mark.usefixtures("own_slots")
def test_who_holds_a_slot_under_any_name_calls_the_plug():
    table = {"twice": double}
    with plugged("tests.double", lambda x, by=3: by * x):
        assert table["twice"](1) == 3
        assert table["twice"](1, by=5) == 5
        assert double.reference(1) == 2
    assert table["twice"] is double
    assert table["twice"](1) == 2


@pytest.mark.usefixtures("own_slots")
def test_a_plug_may_call_what_it_replaces():
    engine = slots.find("tests.double").get()
    with plugged("tests.double", lambda x: engine(x) + 1):
        assert double(4) == 9


def test_every_name_can_be_found():
    for name in slots.names():
        assert slots.find(name).get() is not None


def test_other_threads_see_the_plug_too():
    seen = []
    with plugged("ops.tanh.vjp", lambda g: g * 7):
        worker = threading.Thread(target=lambda: seen.append(slope_of_tanh()))
        worker.start()
        worker.join()
    assert seen == [7]


def test_the_index_map_of_a_movement_is_a_slot():
    flip = slots.find("ops.flip.source").op
    before = flip.source
    with paddle.plugged("ops.flip.source", len):
        assert flip.source is len
    assert flip.source is before
    assert "ops.flip.source" in slots.names()
    with pytest.raises(KeyError):
        slots.find("ops.tanh.source")
