"""`selfcheck` accepts the engine as it is and notices engines that are wrong on purpose."""

import pytest

import minipaddle as paddle
from minipaddle import testing


def forgetful(cotangents, record, g):
    cotangents[record] = g


def in_place(cotangents, record, g):
    before = cotangents.setdefault(record, g)
    if before is not g and not isinstance(g, dict):
        before.array[...] += g.array


def twice(hooks, g):
    for hook in [*hooks, *hooks]:
        changed = hook(g)
        g = g if changed is None else changed
    return g


def backwards(hooks, g):
    for hook in hooks[::-1]:
        changed = hook(g)
        g = g if changed is None else changed
    return g


WRONG = {
    "autograd.accumulate": [forgetful, in_place],
    "autograd.history": [lambda roots: sorted(roots, key=id)],
    "autograd.sum_to": [lambda g, shape: g[(0,) * (g.ndim - len(shape))]],
    "autograd.apply_hooks": [twice, backwards, lambda hooks, g: g],
    "ops.add.vjp.y": [lambda g: g * 2],
    "ops.subtract.vjp.y": [lambda g: g],
    "ops.multiply.vjp.y": [lambda g, y: g * y],
    "ops.divide.vjp.y": [lambda g, out: g * out],
    "ops.matmul.vjp.y": [lambda g, x: -(x.t() @ g)],
    "ops.tanh.vjp": [
        lambda g, out: g * (1 - out),
        lambda g, out: g * (1 - out.detach() ** 2),
    ],
    "ops.exp.vjp": [lambda g: g],
    "ops.relu.vjp": [lambda g: g],
    "ops.sum.vjp": [lambda g, x_spec: (g / 2).broadcast_to(x_spec.shape)],
    "ops.mean.vjp": [lambda g, x_spec: g.broadcast_to(x_spec.shape)],
    "ops.transpose.vjp": [lambda g, perm: paddle.transpose(g, list(perm))],
    "pylayer.apply": [lambda layer, args, kwargs: layer.forward(None, *args, **kwargs)],
}


def test_the_engine_is_right():
    testing.selfcheck()


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize("slot", WRONG)
def test_a_wrong_engine_is_noticed(slot):
    for wrong in WRONG[slot]:
        with paddle.plugged(slot, wrong), pytest.raises(Exception):  # noqa: B017, PT011
            testing.selfcheck()


def test_what_is_plugged_in_is_what_checks():
    with (
        paddle.plugged("testing.check_engine", lambda draw: 1 / 0),
        pytest.raises(ZeroDivisionError),
    ):
        testing.selfcheck()


def test_no_number_is_drawn_twice():
    draw = testing.samples()
    numbers = [*draw(3, 4).flatten().tolist(), draw().item(), *draw(2).tolist()]
    assert len(set(numbers)) == 15
    assert {abs(x) > 0.5 for x in numbers} == {True}
    assert min(numbers) < 0 < max(numbers)
    assert max(map(abs, numbers)) < 1.5
