"""At inference what is made of weights alone is computed once, and again after every change."""

from copy import deepcopy
from types import SimpleNamespace

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import nn
from minipaddle.engine.executors.compiler import compiler
from minipaddle.executors.native.folded_weights import CHANGES_IN_A_ROW
from minipaddle.executors.native.timing import add_timers

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler")


def picture(seed=0):
    data = np.random.default_rng(seed).normal(size=(1, 3, 8, 8)).astype("float32")
    return paddle.to_tensor(data)


def network():
    paddle.seed(5)
    net = nn.Sequential(nn.Conv2D(3, 16, 3, padding=1), nn.BatchNorm2D(16), nn.ReLU())
    for k, p in enumerate((net[1]._mean, net[1]._variance, net[1].weight, net[1].bias)):
        p.set_value(np.random.default_rng(k).uniform(0.5, 1.5, 16).astype("float32"))
    net.eval()
    return net


def native(net):
    return paddle.jit.to_static(lambda x: net(x), backend="native")


def same(f, net, x):
    with paddle.no_grad():
        np.testing.assert_allclose(f(x).numpy(), net(x).numpy(), rtol=2e-4, atol=2e-5)


def ops(f):
    (made,) = f.executables
    return [r.op.name for r in made.program.records]


def test_weights_are_prepared_and_changes_are_seen():
    net = network()
    f, x = native(net), picture()
    for _ in range(6):
        same(f, net, x)
    (made,) = f.executables
    assert made.weights.folded
    assert "transpose" in {cell.record.op.name for cell in made.weights.folded}
    changes = [
        lambda: net[0].weight.set_value(net[0].weight * 2),
        lambda: net[1]._mean.add_(paddle.ones([16])),
        lambda: setattr(net[1].bias, "data", paddle.full([16], 3.0)),
        lambda: net[0].bias.__setitem__(2, 9.0),
        lambda: net.set_state_dict({k: v + 1 for k, v in net.state_dict().items()}),
    ]
    for change in changes:
        before = f(x).numpy()
        with paddle.no_grad():
            change()
        same(f, net, x)
        assert not np.allclose(before, f(x).numpy())
        for seed in range(3):
            same(f, net, picture(seed))


def test_filters_are_transformed_before_the_run():
    paddle.seed(2)
    twice = nn.Conv2D(16, 16, 3, padding=1)
    net = nn.Sequential(nn.Conv2D(3, 16, 3), nn.ReLU(), twice, twice, nn.Conv2D(16, 20, 3))
    net.eval()
    f, x = native(net), picture()
    same(f, net, x)
    (made,) = f.executables
    before, _, ahead = made.source.own.partition("_prepack(void")
    assert "winograd_kernels_float(" not in before
    assert ahead.count("winograd_kernels_float(made, given") == 3
    for change in (lambda: net[4].weight.set_value(net[4].weight * 3), lambda: twice.bias.zero_()):
        with paddle.no_grad():
            change()
        for seed in range(3):
            same(f, net, picture(seed))
    own = made.program.states[: len(made.program.states) - len(made.weights.arrays)]
    (found,) = add_timers(made)(made.program, [x.numpy(), *(s.storage.read() for s in own)])
    with paddle.no_grad():
        np.testing.assert_allclose(found, net(x).numpy(), rtol=2e-4, atol=2e-5)


def test_matrices_are_packed_before_the_run():
    paddle.seed(3)
    convolutions = nn.Conv2D(3, 37, 1), nn.Conv2D(37, 200, 1), nn.Conv2D(200, 9, 3, stride=2)
    layers = *convolutions, nn.Linear(3, 11)
    net = nn.Sequential(*layers[:2], nn.ReLU(), *layers[2:])
    f, x = native(net), picture()
    same(f, net, x)
    (made,) = f.executables
    before, _, ahead = made.source.own.partition("_prepack(void")
    assert "panels_float(" not in before
    assert ahead.count("given, ") == 4
    for layer in layers:
        with paddle.no_grad():
            layer.weight.set_value(layer.weight * 2)
        for seed in range(3):
            same(f, net, picture(seed))


def rows_of(n, width=256):
    return paddle.to_tensor(np.random.default_rng(n).normal(size=(n, width)).astype("float32"))


def forms_of(f):
    (made,) = f.executables
    return [made.weights.inputs[k] for k, s in enumerate(made.weights.storages) if s.sources]


CHANGES = [
    lambda layer: layer.weight.set_value(layer.weight * 2),
    lambda layer: layer.weight.__setitem__(3, 9.0),
    lambda layer: setattr(layer.weight, "data", layer.weight.t().flip(0).t() + 0.1),
]


def test_products_of_few_rows_share_packed_weights():
    paddle.seed(4)
    net = nn.Sequential(nn.Linear(256, 200), nn.GELU(), nn.Linear(200, 256), nn.Linear(256, 3))
    fs, xs = [native(net) for _ in range(3)], [rows_of(n) for n in (8, 19, 7)]
    for f, x in zip(fs, xs, strict=True):
        same(f, net, x)
    few, more, fewer = map(forms_of, fs)
    assert len(few) == len(more) == 2  # the last matrix is small
    assert not fewer
    for k in range(2):
        assert few[k] is more[k]
        assert few[k].ndim == 1
    for change in CHANGES:
        with paddle.no_grad():
            change(net[0])
            change(net[2])
        for _ in range(2):
            for f, x in zip(fs, xs, strict=True):
                same(f, net, x)


@pytest.mark.parametrize("half", ["bfloat16", "float16"])
def test_weights_of_half_precision_stay_so(half):
    """Few rows read a weight as it lies, more rows panels of 16 bits; no product reads floats."""
    paddle.seed(4)
    net = nn.Sequential(nn.Linear(300, 260), nn.ReLU(), nn.Linear(260, 300))
    net.eval()
    net.to(dtype=half)
    fs, xs = (
        [native(net) for _ in range(5)],
        [rows_of(n, 300).astype(half) for n in (1, 2, 3, 8, 40)],
    )
    for change in (lambda layer: None, *CHANGES[:2]):
        with paddle.no_grad():
            change(net[0])
            for f, x in zip(fs, xs, strict=True):
                want = net(x).astype("float32").numpy()
                got = f(x).astype("float32").numpy()
                np.testing.assert_allclose(got, want, rtol=2e-2, atol=1e-2 * abs(want).max())
    sizes = [sum(x.nbytes for x in forms_of(f) if x.dtype == half) for f in fs]
    assert sizes[:2] == [0, 0]
    weights = sum(net[k].weight.array.nbytes for k in (0, 2))
    assert all(weights <= size < 1.2 * weights for size in sizes[2:])
    weight = net[0].weight
    f = native(lambda x: (x @ weight) * 2)  # a product of half precision, and no layer
    with paddle.no_grad():
        got, want = (
            f(xs[3]).astype("float32").numpy(),
            (xs[3] @ weight * 2).astype("float32").numpy(),
        )
    np.testing.assert_allclose(got, want, rtol=2e-2, atol=1e-2 * abs(want).max())
    assert [x.dtype for x in forms_of(f)] == [half]
    for f in fs:
        program = f.executables[0].program
        assert all(s.record.dtype == half or s.record.spec.ndim < 2 for s in program.states)
        assert f.executables[0].plan.size < net[0].weight.array.nbytes


def test_a_borrowed_weight_that_no_kernel_packs_is_copied():
    weight = nn.Linear(256, 512).weight
    f, x = native(lambda x: (x @ weight).t()), rows_of(8)
    for change in (lambda layer: None, *CHANGES):
        with paddle.no_grad():
            change(SimpleNamespace(weight=weight))
        for _ in range(2):
            same(f, lambda x: (x @ weight).t(), x)
        (form,) = forms_of(f)
        assert form.shape == (256, 512)
        assert form is not weight.array


def test_a_strategy_that_freezes_gives_way_to_weights_that_change_always():
    net = nn.Linear(256, 256)
    f = paddle.jit.to_static(lambda x: net(x), backend="native", build_strategy={"frozen": True})
    x = rows_of(8)
    for _ in range(CHANGES_IN_A_ROW + 3):
        same(f, net, x)
        with paddle.no_grad():
            net.weight.set_value(net.weight + 0.5)
    (made,) = f.executables
    assert made.weights.change_always
    assert not made.weights.unfrozen.weights.sources


def test_evaluation_between_native_training_steps_sees_each_of_them():
    net = network()
    sgd = paddle.optimizer.SGD(0.1, parameters=net.parameters())

    def step(x):
        net.train()
        loss = net(x).square().mean()
        loss.backward()
        sgd.step()
        sgd.clear_grad()
        return loss

    f, step, x = native(net), paddle.jit.to_static(step, backend="native"), picture()
    for _ in range(CHANGES_IN_A_ROW + 3):
        step(x)
        net.eval()
        same(f, net, x)
    (made, *_) = f.executables
    assert made.weights.change_always
    assert not made.weights.unfrozen.weights.sources


def test_a_gradient_or_a_word_of_the_strategy_forbids_it():
    net, x = network(), picture()
    f = native(net)
    f(x)
    assert not f.executables[0].weights.sources
    g = paddle.jit.to_static(lambda x: net(x), backend="native", build_strategy={"frozen": False})
    with paddle.no_grad():
        g(x)
    assert not g.executables[0].weights.sources


@pytest.fixture
def loaded(tmp_path, monkeypatch):
    monkeypatch.setenv("MINIPADDLE_BACKEND", "native")
    path = str(tmp_path / "net")
    spec = paddle.static.InputSpec([None, 3, 8, 8], name="x")
    paddle.jit.save(network(), path, input_spec=[spec])
    return paddle.jit.load(path)


def test_a_loaded_model_is_prepared_as_the_live_one(loaded):
    net, x = network(), picture()
    live = native(net)
    same(live, net, x)
    same(loaded, net, x)
    (wanted,), (made,) = live.executables, loaded._at_once.executables.compiled.values()
    assert [r.op.name for r in made.program.records] == ops(live)
    assert len(made.weights.folded) == len(wanted.weights.folded) > 0
    assert len(made.kernels.texts) == len(wanted.kernels.texts)


def test_a_loaded_model_sees_changed_and_other_weights(loaded):
    net, x = network(), picture()
    same(loaded, net, x)
    copy = deepcopy(loaded)
    weight = loaded.state_dict()["0.weight"]
    changes = [
        lambda m: m.set_state_dict({k: v * 1.5 for k, v in m.state_dict().items()}),
        lambda m: m.state_dict()["1._mean"].add_(paddle.ones([16])),
        lambda m: setattr(
            getattr(m, "0"), "weight", paddle.create_parameter([16, 3, 3, 3], "float32")
        ),
    ]
    for change in changes:
        before = loaded(x).numpy()
        for model in (loaded, net):
            paddle.seed(9)
            with paddle.no_grad():
                change(model)
        same(loaded, net, x)
        with paddle.no_grad():
            assert not np.allclose(before, loaded(x).numpy())
    assert getattr(loaded, "0").weight is not weight
    (made,) = loaded._at_once.executables.compiled.values()
    assert made.weights.sources
    same(copy, network(), x)  # and a copy has weights of its own


@pytest.mark.parametrize("trains", [False, True])
def test_the_executor_prepares_what_trains_nothing(trains, monkeypatch):
    monkeypatch.setenv("MINIPADDLE_BACKEND", "native")
    paddle.enable_static()
    try:
        main = paddle.static.Program()
        with paddle.static.program_guard(main):
            x = paddle.static.data("x", [4, 3])
            layer = nn.Linear(3, 2)
            y = x @ (layer.weight * 2.0 + 1.0)
            if trains:
                paddle.optimizer.SGD(0.1, parameters=[layer.weight]).minimize(y.sum())
        data, executor = np.eye(4, 3, dtype="float32"), paddle.static.Executor()
        for value in (1.0, 5.0):
            with paddle.static.executor.outside():
                layer.weight.set_value(np.full((3, 2), value, "float32"))
            (found,) = executor.run(main, feed={"x": data}, fetch_list=[y])
            np.testing.assert_allclose(found[:3], 2 * value + 1)
        (((_, executables),),) = (main.compiled.values(),)
        (made,) = executables.compiled.values()
        assert bool(made.weights.folded) is not trains
    finally:
        paddle.disable_static()
