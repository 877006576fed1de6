"""Steps of optimizers served by programs: the numbers of NumPy, and when it computes after all."""

import copy
import gc
import weakref

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.executors import hot
from minipaddle.optimizer import update
from tests.executors.hot import at_once, compiles, flag

pytestmark = compiles

STEPS = 6


@pytest.fixture(autouse=True)
def soon():
    update.UPDATES.clear()
    with at_once():
        yield


def served() -> int:
    """How many updates a program serves."""
    every = [each for known in update.UPDATES.values() for each in known]
    return sum(each.executable is not None for each in every)


def parameters() -> list:
    rng, made = np.random.default_rng(0), []
    for shape in ([3, 4], [4], [1], [2, 1, 3]):
        made.append(paddle.create_parameter(shape, "float32"))
        made[-1].name = f"w{len(made)}"
        made[-1].set_value(rng.standard_normal(shape).astype("float32"))
    return made


def train(make, steps=STEPS, before_step=lambda k, optimizer, ps: None):
    """The parameters after some steps of the optimizer that `make` returns for them."""
    ps = parameters()
    optimizer = make(ps)
    for k in range(steps):
        for j, p in enumerate(ps):
            ((p * (0.5 + j)).sin() * (k + 1.0)).sum().backward()
        before_step(k, optimizer, ps)
        optimizer.step()
        optimizer.clear_grad()
    return [p.numpy() for p in ps], optimizer


def check(make, programs=1, **options):
    """C must give what NumPy gives."""
    with flag(False):
        expected, _ = train(make, **options)
    found, optimizer = train(make, **options)
    assert served() == programs, hot.report()
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)
    return optimizer


O = paddle.optimizer
MAKE = {
    "SGD": lambda ps: O.SGD(0.1, ps),
    "Momentum": lambda ps: O.Momentum(0.1, 0.9, ps),
    "Nesterov": lambda ps: O.Momentum(0.1, 0.9, ps, use_nesterov=True),
    "Adam": lambda ps: O.Adam(0.1, parameters=ps),
    "Adam, decay, clip": lambda ps: O.Adam(
        0.1, parameters=ps, weight_decay=0.1, grad_clip=paddle.nn.ClipGradByGlobalNorm(0.5)
    ),
    "amsgrad": lambda ps: O.Adam(0.1, parameters=ps, amsgrad=True),
    "AdamW": lambda ps: O.AdamW(
        0.1, parameters=ps, lr_ratio=lambda p: 0.5, apply_decay_param_fun=lambda name: "1" in name
    ),
    "Adamax": lambda ps: O.Adamax(0.1, parameters=ps),
    "Lamb": lambda ps: O.Lamb(0.1, parameters=ps),
    "Adagrad": lambda ps: O.Adagrad(0.1, parameters=ps),
    "Adadelta": lambda ps: O.Adadelta(0.1, parameters=ps),
    "RMSProp": lambda ps: O.RMSProp(0.1, parameters=ps, centered=True, momentum=0.5),
    "NAdam": lambda ps: O.NAdam(0.1, parameters=ps),
    "RAdam": lambda ps: O.RAdam(0.1, parameters=ps),
    "Rprop": lambda ps: O.Rprop(0.1, parameters=ps),
    "ASGD": lambda ps: O.ASGD(0.1, batch_num=2, parameters=ps),
}


@pytest.mark.parametrize("name", MAKE)
def test_each_optimizer(name):
    check(MAKE[name])


def test_groups_are_programs_of_their_own():
    check(
        lambda ps: O.Adam(
            0.1,
            parameters=[
                {"params": ps[:2], "learning_rate": 0.5, "beta1": 0.5},
                {"params": ps[2:], "weight_decay": 0.1},
            ],
        ),
        programs=2,
    )


def test_a_schedule_changes_the_rate():
    rates = lambda: O.lr.StepDecay(0.5, step_size=1, gamma=0.5)
    check(lambda ps: O.SGD(rates(), ps), before_step=lambda k, o, ps: o._learning_rate.step())


def test_the_rate_is_set():
    check(MAKE["Momentum"], before_step=lambda k, o, ps: o.set_lr(0.1 / (k + 1)))


def test_another_schedule():
    def before(k, optimizer, ps):
        if k == STEPS - 1:
            assert served() in (0, 1)
            optimizer.set_lr_scheduler(O.lr.ExponentialDecay(3.0, 0.5))

    check(MAKE["Momentum"], before_step=before)


def test_an_option_is_changed():
    def before(k, optimizer, ps):
        if k == STEPS - 1:
            optimizer._param_groups[0].momentum = 0.1

    check(MAKE["Momentum"], before_step=before)


def test_a_factor_is_changed():
    def before(k, optimizer, ps):
        ps[0].optimize_attr["learning_rate"] = 1.0 if k < STEPS else 0.01

    check(MAKE["Adam"], programs=2, steps=2 * STEPS, before_step=before)


def test_parameters_without_a_gradient():
    """Two sets of parameters take turns."""

    def before(k, optimizer, ps):
        if k % 2:
            ps[1].clear_gradient(False)

    check(MAKE["Adam"], programs=2, steps=12, before_step=before)


def test_states_are_loaded():
    def before(k, optimizer, ps):
        state = {name: x.clone() for name, x in optimizer.state_dict().items()}
        if k == STEPS - 1:
            optimizer.set_state_dict({name: x * 0.5 for name, x in state.items()})

    check(MAKE["Momentum"], before_step=before)


def test_a_parameter_is_overwritten():
    def before(k, optimizer, ps):
        if k == STEPS - 2:
            ps[0].set_value(ps[0] * 2.0)
        if k == STEPS - 1:
            ps[0].array = np.broadcast_to(np.float32(2.0), ps[0].shape)  # no memory of its own

    check(MAKE["Adam"], before_step=before)


def test_a_gradient_that_is_the_parameter():
    def before(k, optimizer, ps):
        ps[0].grad = paddle.to_tensor(ps[0].numpy()) if k < STEPS - 1 else ps[0].detach()
        ps[3].grad = ps[3].detach().transpose([0, 2, 1]).transpose([0, 2, 1])

    check(MAKE["Momentum"], before_step=before)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize("master", [False, True])
def test_other_dtypes(dtype, master):
    def steps():
        values = np.random.default_rng(0).standard_normal((3, 5))
        p = paddle.to_tensor(values, dtype, stop_gradient=False)
        optimizer = O.Adam(0.1, parameters=[p], multi_precision=master)
        for _ in range(STEPS):
            (p * p).sum().backward()
            optimizer.step()
            optimizer.clear_grad()
        return p.astype("float32").numpy(), optimizer

    with flag(False):
        expected, _ = steps()
    found, _optimizer = steps()
    np.testing.assert_allclose(found, expected, rtol=1e-2 if dtype != "float64" else 1e-6)
    assert served() == 1, hot.report()


class Counting(O.SGD):
    calls = 0

    @staticmethod
    def rule(o, p, g, lr):
        Counting.calls += 1
        return (p - lr * g * float(Counting.calls),)


def test_a_rule_of_the_users_is_called_each_time():
    train(lambda ps: Counting(0.1, ps))
    assert Counting.calls == 4 * STEPS
    assert not update.UPDATES


def test_a_readers_rule_is_followed():
    _, optimizer = train(MAKE["SGD"])
    assert served() == 1
    p = optimizer._parameter_list[0]
    p.grad = paddle.ones(p.shape)
    with paddle.plugged("optimizer.sgd", lambda p, g, lr: p * 0.0):
        optimizer.step()
    assert not p.numpy().any()


def test_a_backward_after_the_step_is_an_error():
    """The version of a parameter is known after a step in C."""
    p = paddle.create_parameter([3], "float32")
    optimizer = O.SGD(0.1, [p])
    for _ in range(STEPS):
        y = (p * p).sum()
        (p * 1.0).sum().backward()
        optimizer.step()
        optimizer.clear_grad()
        with pytest.raises(RuntimeError, match="was overwritten in place"):
            y.backward()
    assert served() == 1


def test_copies_and_memory():
    _, optimizer = train(MAKE["Adam"])
    other = copy.deepcopy(optimizer)
    p = optimizer._parameter_list[0]
    before = p.numpy()
    for twin in other._parameter_list:
        twin.grad = paddle.ones(twin.shape)
    other.step()
    np.testing.assert_array_equal(p.numpy(), before)
    gone, gradient = weakref.ref(optimizer), paddle.ones(p.shape)
    p.grad = gradient
    for q in optimizer._parameter_list:
        q.grad = paddle.ones(q.shape)
    there = weakref.ref(optimizer._parameter_list[0].grad.array)
    optimizer.step()
    optimizer.clear_grad(False)
    del optimizer, p, q, gradient
    gc.collect()
    assert gone() is None
    assert there() is None


def test_the_report_names_it():
    _, _optimizer = train(MAKE["Adam"])
    assert "step of Adam for 4 parameters: C" in hot.report()
