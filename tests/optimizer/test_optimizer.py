"""What optimizers share: groups, decay, the learning rate, states saved, half precision."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import optimizer as O
from minipaddle.nn.names import guard


def weight(*values, dtype="float32", **attributes):
    w = paddle.Parameter(np.array(values or [1.0, -2.0], dtype), name="w")
    for name, value in attributes.items():
        setattr(w, name, value)
    return w


def stepped(w, optimizer, grad=(3.0, 4.0)):
    """One step with a given gradient; the new value."""
    w.clear_grad()
    (w * paddle.to_tensor(np.array(grad, w.numpy().dtype))).sum().backward()
    optimizer.step()
    return w.numpy().tolist()


# ---- decay, in Paddle's order (numbers measured with Paddle 3.3) ---------------------------------

L1, L2 = paddle.regularizer.L1Decay, paddle.regularizer.L2Decay


@pytest.mark.parametrize(
    ("kind", "own", "options", "expected"),
    [
        (O.SGD, L2(1.0), {"weight_decay": 100.0}, [0.6, -2.2]),
        (O.SGD, L1(1.0), {}, [0.6, -2.3]),
        (
            O.SGD,
            None,
            {"weight_decay": 1.0, "grad_clip": paddle.nn.ClipGradByNorm(1.0)},
            [0.84, -1.88],
        ),
        (O.Momentum, L1(1.0), {"weight_decay": 100.0}, [0.6, -2.3]),
        (O.AdamW, L2(10.0), {}, [0.899, -1.898]),
        (O.AdamW, None, {}, [0.899, -2.098]),
        (
            O.AdamW,
            None,
            {"weight_decay": 0.5, "apply_decay_param_fun": lambda n: n != "w"},
            [0.9, -2.1],
        ),
        (O.AdamW, None, {"weight_decay": None}, [0.9, -2.1]),
        (O.AdamW, None, {"weight_decay": 0.5, "lr_ratio": lambda p: 0.5}, [0.925, -2.0]),
        (O.Lamb, None, {"exclude_from_weight_decay_fn": lambda p: True}, [0.9, -2.1]),
        (O.Lamb, None, {}, [0.8395207, -2.1557126]),
        (O.Momentum, None, {"rescale_grad": 0.5, "weight_decay": 1.0}, [0.75, -2.0]),
    ],
)
def test_decay(kind, own, options, expected):
    w = weight(regularizer=own)
    assert stepped(w, kind(0.1, parameters=[w], **options)) == pytest.approx(expected, rel=1e-6)


def test_own_learning_rate_and_groups():
    a, b, c = weight(), weight(), weight()
    a.optimize_attr["learning_rate"] = 0.5
    optimizer = O.SGD(
        0.1,
        parameters=[
            {"params": [a]},
            {"params": b, "learning_rate": 0.1, "weight_decay": 0.5},
            {"params": [c], "grad_clip": paddle.nn.ClipGradByValue(1.0)},
        ],
        weight_decay=None,
    )
    assert stepped(a, optimizer) == pytest.approx([0.85, -2.2])
    assert stepped(b, optimizer) == pytest.approx([1 - 0.01 * 3.5, -2 - 0.01 * 3.0])
    assert stepped(c, optimizer) == pytest.approx([0.9, -2.1])


def test_a_group_has_its_own_hyperparameters():
    a, b = weight(), weight()
    groups = [{"params": [a], "momentum": 0.0}, {"params": [b]}]
    optimizer = O.Momentum(0.1, momentum=0.5, parameters=groups)
    for _ in range(2):
        ((a + b) * paddle.to_tensor([3.0, 4.0])).sum().backward()
        optimizer.step()
        optimizer.clear_grad()
    assert a.tolist() == pytest.approx([1 - 0.6, -2 - 0.8])
    assert b.tolist() == pytest.approx([1 - 0.3 - 0.45, -2 - 0.4 - 0.6])


def test_only_what_has_a_gradient_moves():
    a, b, frozen = weight(), weight(), weight()
    optimizer = O.Adam(0.1, parameters=[a, b, frozen])
    frozen.grad = paddle.ones([2])
    frozen.stop_gradient = True
    stepped(a, optimizer)
    assert b.tolist() == frozen.tolist() == [1.0, -2.0]
    assert len(optimizer._states) == 1


def test_the_step_is_in_place():
    w = weight()
    alias = w.detach()
    stepped(w, O.SGD(0.1, parameters=[w]))
    assert alias.tolist() == w.tolist()


def test_backward_over_a_stepped_parameter_is_refused():
    w = weight()
    loss = (w * w).sum()
    loss.backward(retain_graph=True)
    O.SGD(0.1, parameters=[w]).step()
    with pytest.raises(RuntimeError, match="overwritten in place"):
        loss.backward()


def test_a_zero_dim_parameter():
    for kind in (O.Adam, O.AdamW, O.Lamb, O.NAdam, O.RAdam, O.Adamax):
        w = paddle.Parameter(np.float32(1.0))
        (w * 2).backward()
        kind(0.1, parameters=[w]).step()
        assert w.shape == []
        assert w.item() < 1.0


def test_minimize_steps_on_the_gradients_there_are():
    w = weight()
    loss = (3 * w).sum()
    loss.backward()
    operations, pairs = O.SGD(0.1, parameters=[w]).minimize(loss)
    assert operations == []
    assert pairs[0][0] is w
    assert w.numpy().tolist() == pytest.approx([0.7, -2.3])
    with pytest.raises(NotImplementedError, match="only the loss"):
        O.SGD(0.1, parameters=[w]).minimize(loss, parameters=[w])


def test_clear_grad():
    w = weight()
    optimizer = O.SGD(0.1, parameters=[w])
    w.sum().backward()
    optimizer.clear_grad()
    assert w.grad.tolist() == [0.0, 0.0]
    optimizer.clear_grad(set_to_zero=False)
    assert w.grad is None
    w.sum().backward()
    optimizer.zero_grad()
    assert w.grad is None


# ---- the learning rate ---------------------------------------------------------------------------


def test_a_number_can_be_set():
    w = weight(0.0)
    optimizer = O.SGD(0.5, parameters=[w])
    assert stepped(w, optimizer, [1.0]) == [-0.5]
    optimizer.set_lr(2)
    assert optimizer.get_lr() == 2.0
    assert stepped(w, optimizer, [1.0]) == [-2.5]
    with pytest.raises(TypeError, match="takes a float"):
        optimizer.set_lr("a")
    with pytest.raises(TypeError, match="takes a schedule"):
        optimizer.set_lr_scheduler(3)


def test_a_schedule_decides():
    w = weight(0.0)
    schedule = O.lr.StepDecay(0.5, 1, gamma=0.5)
    optimizer = O.SGD(schedule, parameters=[w])
    rates = []
    for _ in range(3):
        before = w.item()
        stepped(w, optimizer, [1.0])
        rates.append(before - w.item())
        schedule.step()
    assert rates == [0.5, 0.25, 0.125]
    assert optimizer.get_lr() == 0.0625
    with pytest.raises(RuntimeError, match="set_lr_scheduler"):
        optimizer.set_lr(0.5)
    optimizer.set_lr_scheduler(O.lr.StepDecay(0.75, 1))
    assert optimizer.get_lr() == 0.75


def test_the_rate_is_a_tensor_that_follows():
    """A captured step reads the tensor: it must be the same one, with the new value."""
    rate = O.rate.Rate(0.5)
    tensor, wide = rate.tensor(np.dtype("float32")), rate.tensor(np.dtype("float64"))
    rate.value = 0.1
    assert rate.tensor(np.dtype("float32")) is tensor
    assert tensor.item() == np.float32(0.1)
    assert wide.item() == 0.1


# ---- saving --------------------------------------------------------------------------------------


def model():
    with guard():
        paddle.seed(1)
        return paddle.nn.Linear(3, 2)


def trained(net, optimizer, steps):
    x = paddle.to_tensor(np.linspace(-1, 1, 12).reshape(4, 3).astype("float32"))
    for _ in range(steps):
        (net(x) ** 2).mean().backward()
        optimizer.step()
        optimizer.clear_grad()
        if isinstance(optimizer._learning_rate, O.lr.LRScheduler):
            optimizer._learning_rate.step()
    return [p.numpy().copy() for p in net.parameters()]


KINDS = [O.SGD, O.Momentum, O.Adam, O.AdamW, O.Adamax, O.RMSProp, O.Adagrad, O.Adadelta, O.Lamb,
         O.NAdam, O.RAdam, O.Rprop, O.ASGD]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_training_goes_on_where_it_was_saved(kind, tmp_path):
    def make(net):
        return kind(O.lr.StepDecay(0.1, 2, gamma=0.5), parameters=net.parameters())

    whole = model()
    expected = trained(whole, make(whole), 7)

    first = model()
    optimizer = make(first)
    trained(first, optimizer, 4)
    paddle.save(first.state_dict(), tmp_path / "model.pdparams")
    paddle.save(optimizer.state_dict(), tmp_path / "model.pdopt")

    second = model()
    second.set_state_dict(paddle.load(tmp_path / "model.pdparams"))
    optimizer = make(second)
    optimizer.set_state_dict(paddle.load(tmp_path / "model.pdopt"))
    for ours, theirs in zip(trained(second, optimizer, 3), expected):
        np.testing.assert_array_equal(ours, theirs)


def test_the_names_of_states():
    net = model()
    optimizer = O.Adam(0.1, parameters=net.parameters(), name="my")
    assert optimizer.state_dict() == {}
    trained(net, optimizer, 1)
    assert [k for k in optimizer.state_dict() if "b_0" in k] == [
        "linear_0.b_0_my_moment1_0",
        "linear_0.b_0_my_moment2_0",
        "linear_0.b_0_my_beta1_pow_acc_0",
        "linear_0.b_0_my_beta2_pow_acc_0",
    ]


def test_paddles_states_fit():
    """Paddle keeps the powers of beta as [1], here they are 0-D."""
    w = weight()
    optimizer = O.Adam(0.1, parameters=[w])
    stepped(w, optimizer)
    state = {k: v.numpy().reshape(-1) for k, v in optimizer.state_dict().items()}
    fresh = O.Adam(0.1, parameters=[w])
    fresh.set_state_dict(state)
    assert fresh.state_dict()["w_beta1_pow_acc_0"].item() == np.float32(0.9) * np.float32(0.9)


def test_a_state_dict_that_does_not_fit():
    w = weight()
    optimizer = O.Adam(0.1, parameters=[w])
    stepped(w, optimizer)
    state = optimizer.state_dict()
    with pytest.raises(ValueError, match="belongs to Momentum's parameters"):
        O.Momentum(parameters=[w]).set_state_dict(state)
    with pytest.raises(ValueError, match="lacks w_moment2_0"):
        optimizer.set_state_dict({k: v for k, v in state.items() if "moment2" not in k})
    with pytest.raises(ValueError, match=r"w_moment1_0 has shape \[5\]"):
        optimizer.set_state_dict({**state, "w_moment1_0": paddle.ones([5])})
    optimizer.set_state_dict({})


# ---- half precision ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("kind", [O.SGD, O.Momentum, O.Adam, O.AdamW, O.Lamb])
def test_master_weights_remember_small_steps(kind, dtype):
    """A hundred steps too small for half precision add up in the master weight only."""
    moved = {}
    for precise in (False, True):
        w = paddle.Parameter(np.ones(2, "float32"), dtype, name="w")
        optimizer = kind(1e-5, parameters=[w], multi_precision=precise)
        for _ in range(400):
            w.grad = paddle.full([2], 1.0, dtype)
            optimizer.step()
        moved[precise] = 1 - w.astype("float32").numpy()[0]
        assert w.dtype == dtype
        states = optimizer.state_dict()
        assert ("master_weights" in states) == precise
        assert all(s.dtype == "float32" for k, s in states.items() if k != "master_weights")
    assert moved[False] == 0
    sped_up = 10 if kind is O.Momentum else 1
    assert moved[True] == pytest.approx(0.004 * sped_up, rel=0.15)


def test_master_weights_are_saved_and_loaded(tmp_path):
    w = paddle.Parameter(np.ones(2, "float32"), "float16", name="w")
    optimizer = O.SGD(1e-5, parameters=[w], multi_precision=True)
    w.grad = paddle.ones([2], "float16")
    optimizer.step()
    paddle.save(optimizer.state_dict(), tmp_path / "o")
    fresh = O.SGD(1e-5, parameters=[w], multi_precision=True)
    fresh.set_state_dict(paddle.load(tmp_path / "o"))
    assert fresh.state_dict()["master_weights"]["w"].tolist() == [np.float32(1 - 1e-5)] * 2


# ---- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda w: O.SGD(), ValueError, "model.parameters"),
        (lambda w: O.SGD(0.1, parameters=w), TypeError, "list of parameters"),
        (lambda w: O.SGD(0.1, parameters=[1]), TypeError, "not int"),
        (lambda w: O.SGD(0.1, parameters=[w, w]), ValueError, "twice"),
        (lambda w: O.SGD(0.1, parameters=[{"params": [w]}, {"params": w}]), ValueError, "twice"),
        (lambda w: O.SGD(0.1, parameters=[{"weights": [w]}]), ValueError, '"params"'),
        (lambda w: O.SGD(0.1, parameters=[{"params": [w]}, w]), ValueError, '"params"'),
        (lambda w: O.SGD(0.1, parameters=[{"params": w, "lr": 1}]), ValueError, "option 'lr'"),
        (lambda w: O.SGD("a", parameters=[w]), TypeError, "of type str"),
        (lambda w: O.SGD(0.1, parameters=[w], weight_decay="a"), TypeError, "weight_decay"),
        (lambda w: O.SGD(0.1, parameters=[w], grad_clip=1.0), TypeError, "ClipGradBy"),
        (lambda w: O.Adam(0.1, beta1=1.0, parameters=[w]), ValueError, "beta1"),
        (lambda w: O.Adam(0.1, epsilon=-1.0, parameters=[w]), ValueError, "epsilon"),
        (lambda w: O.RAdam(0.1, beta2=-0.1, parameters=[w]), ValueError, "beta2 .* negative"),
        (lambda w: O.Momentum(momentum=None, parameters=[w]), ValueError, "needs momentum"),
        (lambda w: O.AdamW(parameters=[w], weight_decay=L2(0.1)), TypeError, "a number"),
        (
            lambda w: O.AdamW(parameters=[w], use_lowprecision_moment=True),
            NotImplementedError,
            "float32",
        ),
        (lambda w: O.Adagrad(0.1, epsilon=None, parameters=[w]), ValueError, "epsilon"),
        (lambda w: O.RMSProp(0.1, rho=-1, parameters=[w]), ValueError, "negative"),
        (lambda w: O.NAdam(momentum_decay=-1, parameters=[w]), ValueError, "momentum_decay"),
        (lambda w: O.Rprop(learning_rate_range=(2, 1), parameters=[w]), ValueError, "range"),
        (lambda w: O.Rprop(etas=(2, 1), parameters=[w]), ValueError, "etas"),
        (lambda w: O.ASGD(batch_num=0, parameters=[w]), ValueError, "batch_num"),
        (lambda w: stepped(w, O.Optimizer(0.1, parameters=[w])), NotImplementedError, "rule"),
    ],
)
def test_what_is_refused_is_explained(make, error, says):
    with pytest.raises(error, match=says):
        make(weight())


def test_regularizers_print_and_need_a_gradient():
    assert repr(L2(0.5)) == "L2Decay(0.5)"
    with pytest.raises(NotImplementedError, match="gradient"):
        paddle.regularizer.WeightDecayRegularizer(1.0).gradient(None)
