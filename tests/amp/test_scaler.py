"""The gradient scaler: against a loop by hand, in one captured program, with several optimizers."""

import math

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import nn
from minipaddle.amp import GradScaler, auto_cast, scaling
from minipaddle.nn import functional as F


class ByHand:
    """The scaler of Paddle 3.3.1's kernel, in Python's numbers."""

    def __init__(self, scale, incr_ratio, decr_ratio, incr_every, decr_every):
        self.scale, self.good, self.bad = scale, 0, 0
        self.how = incr_ratio, decr_ratio, incr_every, decr_every

    def update(self, found: bool) -> None:
        incr_ratio, decr_ratio, incr_every, decr_every = self.how
        if found:
            self.good, self.bad = 0, self.bad + 1
            if self.bad == decr_every:
                self.scale, self.bad = max(self.scale * decr_ratio, 1.0), 0
        else:
            self.good, self.bad = self.good + 1, 0
            if self.good == incr_every:
                grown = float(np.float32(self.scale) * np.float32(incr_ratio))
                self.scale, self.good = grown if math.isfinite(grown) else self.scale, 0


def step_of(w, optimizer, scaler, **how):
    """A step whose gradient is the slope it is given."""

    def step(slope):
        scaler.scale((slope * w).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.clear_grad()

    return paddle.jit.to_static(step, **how) if how else step


SLOPES = [1.0, 2.0, math.inf, 3.0, math.nan, math.inf, 4.0, 1.0, -1.0, -math.inf, 5.0, 6.0]


@pytest.mark.parametrize("how", [{}, {"backend": "interpreter"}, {"backend": "native"}], ids=str)
@pytest.mark.parametrize(
    ("scale", "rest"),
    [(8.0, (2.0, 0.5, 2, 1)), (2.0, (3.0, 0.25, 1, 2)), (2.0**126, (4.0, 0.5, 2, 1))],
)
@np.errstate(all="ignore")
def test_a_trace_of_scales(how, scale, rest):
    w = paddle.create_parameter([2], "float32", is_bias=True)
    scaler = GradScaler(True, scale, *rest)
    step = step_of(w, paddle.optimizer.SGD(1.0, [w]), scaler, **how)
    hand, value = ByHand(scale, *rest), 0.0
    for slope in SLOPES:
        scaled = np.float32(slope) * np.float32(hand.scale)  # may overflow
        found = not math.isfinite(scaled)
        value -= 0.0 if found else slope
        hand.update(found)
        step(paddle.to_tensor(slope))
        now = scaler.get_loss_scaling().item(), scaler._good.item(), scaler._bad.item()
        assert now == (hand.scale, hand.good, hand.bad)
        assert w.tolist() == [value, value]
    if how:
        assert len(step.program_cache) == 1


def test_nothing_runs_on_the_host():
    w = paddle.create_parameter([2], "float32", is_bias=True)
    adam, scaler = paddle.optimizer.Adam(1.0, parameters=[w]), GradScaler()
    step = step_of(w, adam, scaler, backend="native")
    step(paddle.to_tensor(1.0))
    assert "by the host: nothing" in step.executables[0].report()


def test_a_step_that_is_left_out_changes_no_state():
    for how in ({}, {"backend": "interpreter"}):
        w = paddle.create_parameter([2], "float32", is_bias=True)
        adam = paddle.optimizer.AdamW(0.1, parameters=[w], weight_decay=0.5)
        step = step_of(w, adam, GradScaler(init_loss_scaling=4.0), **how)
        step(paddle.to_tensor(1.0))
        before = {k: x.tolist() for k, x in adam.state_dict().items()}, w.tolist()
        step(paddle.to_tensor(math.nan))
        assert ({k: x.tolist() for k, x in adam.state_dict().items()}, w.tolist()) == before
        step(paddle.to_tensor(1.0))
        assert w.tolist() != before[1]


def test_what_the_operators_give():
    found, a, b = scaling.check_finite_and_unscale(
        paddle.to_tensor(4.0), paddle.to_tensor([8.0, 1.0]), paddle.to_tensor([2.0], "float16")
    )
    assert (found.item(), a.tolist(), b.tolist(), b.dtype) == (False, [2.0, 0.25], [0.5], "float16")
    for bad in (math.inf, -math.inf, math.nan):
        grads = paddle.ones([3]), paddle.to_tensor([1.0, bad], "bfloat16")
        assert scaling.check_finite_and_unscale(paddle.to_tensor(4.0), *grads)[0].item()


def test_two_optimizers_and_clipping():
    """Each steps by its own gradients; the scale falls if one of them found infinity."""
    v, w = (paddle.create_parameter([1], "float32", is_bias=True) for _ in range(2))
    first, second = paddle.optimizer.SGD(1.0, [v]), paddle.optimizer.SGD(1.0, [w])
    scaler = GradScaler(init_loss_scaling=16.0)

    def step(slope):
        scaler.scale((2.0 * v + slope * w).sum()).backward()
        scaler.unscale_(first)
        v.grad = v.grad.clip(-0.5, 0.5)
        scaler.step(first)
        scaler.step(second)
        scaler.update()
        for each in (first, second):
            each.clear_grad()

    for call in (step, paddle.jit.to_static(step)):
        for x in (v, w):
            x.set_value(paddle.zeros([1]))
        scaler.set_init_loss_scaling(16.0)
        call(paddle.to_tensor(3.0))
        call(paddle.to_tensor(math.inf))
        assert (v.item(), w.item(), scaler.get_loss_scaling().item()) == (-1.0, -3.0, 8.0)


def test_the_order_of_calls():
    w = paddle.create_parameter([1], "float32", is_bias=True)
    sgd, scaler = paddle.optimizer.SGD(1.0, [w]), GradScaler(init_loss_scaling=2.0)
    scaler.scale((3 * w).sum()).backward()
    scaler.unscale_(sgd)
    with pytest.raises(RuntimeError, match=r"unscale_\(\) after unscale_\(\) since the last"):
        scaler.unscale_(sgd)
    scaler.step(sgd)
    with pytest.raises(RuntimeError, match=r"step\(\) after step\(\) since the last"):
        scaler.step(sgd)
    with pytest.raises(RuntimeError, match=r"unscale_\(\) after step\(\) since the last"):
        scaler.unscale_(sgd)
    scaler.update()
    assert w.item() == -3.0


def test_a_captured_function_that_only_unscales():
    """Its runs, too, let the eager step know that the gradients are unscaled."""
    w = paddle.create_parameter([1], "float32", is_bias=True)
    sgd, scaler = paddle.optimizer.SGD(1.0, [w]), GradScaler(init_loss_scaling=2.0)

    @paddle.jit.to_static
    def backward(slope):
        scaler.scale((slope * w).sum()).backward()
        scaler.unscale_(sgd)

    for k in range(2):
        backward(paddle.to_tensor(3.0))
        scaler.step(sgd)
        scaler.update()
        sgd.clear_grad()
        assert w.item() == -3.0 * (k + 1)
    scaler.unscale_(sgd)
    with pytest.raises(NotImplementedError, match="a step begun outside"):
        step_of(w, sgd, scaler, backend="interpreter")(paddle.to_tensor(1.0))


def test_minimize_and_what_is_not_enabled():
    for enable, scaled in ((True, 6.0), (False, 3.0)):
        w = paddle.create_parameter([1], "float32", is_bias=True)
        sgd, scaler = paddle.optimizer.SGD(1.0, [w]), GradScaler(enable, init_loss_scaling=2.0)
        loss = scaler.scale((3 * w).sum() + 3)
        assert loss.item() == scaled
        loss.backward()
        _, pairs = scaler.minimize(sgd, loss)
        assert (w.item(), pairs[0][1].item(), scaler.is_enable()) == (-3.0, 3.0, enable)


def test_minimize_in_a_static_program():
    paddle.enable_static()
    try:
        main, startup = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(main, startup):
            slope = paddle.static.data("slope", [1])
            w = paddle.static.create_parameter([1], "float32", is_bias=True)
            scaler = GradScaler(init_loss_scaling=4.0)
            scaler.minimize(paddle.optimizer.SGD(1.0), scaler.scale((slope * w).sum()))
        exe = paddle.static.Executor()
        exe.run(startup)
        for value in (2.0, math.inf, 3.0):
            exe.run(main, feed={"slope": np.float32([value])})
    finally:
        paddle.disable_static()
    assert (w.item(), scaler.get_loss_scaling().item()) == (-5.0, 2.0)


def test_its_state():
    scaler = GradScaler(True, 64.0, 3.0, 0.25, 5, 2)
    scaler._good.set_value(4)
    other = GradScaler()
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == scaler.state_dict()
    assert other.state_dict()["scale"].tolist() == [64.0]
    assert GradScaler(False).state_dict() == {}
    with pytest.raises(RuntimeError, match="empty state"):
        other.load_state_dict({})


@pytest.mark.parametrize(
    ("name", "value"),
    [("incr_ratio", 1.0), ("decr_ratio", 1.0), ("incr_every_n_steps", 0), ("decr_ratio", 0.0)],
)
def test_settings_that_make_no_sense(name, value):
    with pytest.raises(ValueError, match=f"{name}={value}"):
        GradScaler(**{name: value})


@pytest.mark.parametrize("how", [{}, {"backend": "native"}], ids=str)
def test_micro_batches_add_up_to_the_batch(how):
    """Sums over 4 micro-batches of a quarter of the loss give the step of the joined batch."""
    found = []
    x, label = paddle.randn([8, 4]), paddle.randint(0, 3, [8])
    for count in (1, 4):
        paddle.seed(0)
        net = nn.Linear(4, 3)
        sgd, scaler = paddle.optimizer.SGD(0.5, net.parameters()), GradScaler()

        def step(x, label, net=net, sgd=sgd, scaler=scaler, count=count):
            for k in range(count):
                part = slice(k * 8 // count, (k + 1) * 8 // count)
                with auto_cast(dtype="bfloat16"):
                    loss = F.cross_entropy(net(x[part]), label[part]) / count
                scaler.scale(loss).backward()
            scaler.step(sgd)
            scaler.update()
            sgd.clear_grad()

        (paddle.jit.to_static(step, **how) if how else step)(x, label)
        found.append(net.weight.numpy())
    assert np.abs(found[0] - found[1]).max() < 2e-3 * np.abs(found[0]).max()
