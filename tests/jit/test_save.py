"""`jit.save` and `jit.load`: what is saved gives the same, and trains the same."""

import contextlib
import json
import os
import re
import subprocess
import sys
import textwrap
from collections import OrderedDict, namedtuple
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle.engine.ir.program import Program
from minipaddle.static import InputSpec
from tests.jit import hostile
from tests.near import assert_same

N = None


def data(*shape, seed=0):
    return paddle.to_tensor(np.random.RandomState(seed).rand(*shape).astype("float32"))


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "folder" / "net")


class Recurrent(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.cell, self.out = paddle.nn.GRUCell(3, 4), paddle.nn.Linear(4, 2)

    def forward(self, x, state):
        h = state["h"]
        for t in range(x.shape[1]):
            h, _ = self.cell(x[:, t], h)
        return self.out(h), {"h": h}


class Tied(paddle.nn.Layer):
    """A weight in two places, a constant, and a buffer that is not kept."""

    def __init__(self):
        super().__init__()
        self.embed = paddle.nn.Embedding(5, 3)
        self.head = paddle.nn.Layer()
        self.head.table = self.embed.weight
        self.scale = paddle.to_tensor([2.0, 3.0, 4.0])
        self.register_buffer("shift", paddle.ones([5]), persistable=False)
        self.frozen = self.create_parameter([5])
        self.frozen.stop_gradient = True
        self.unused = paddle.nn.Linear(1, 1)

    def forward(self, ids):
        h = self.embed(ids) * self.scale
        return paddle.matmul(h, self.head.table, transpose_y=True) + self.shift + self.frozen


MODELS = {
    "mlp": (hostile.Mlp, [InputSpec([N, 4])], lambda n: [data(n, 4)]),
    "conv": (hostile.Conv, [InputSpec([N, 2, N, 8])], lambda n: [data(n, 2, 6 + n, 8)]),
    "control": (
        hostile.Control,
        [InputSpec([N, 3]), InputSpec([], "int64")],
        lambda n: [data(n, 3), paddle.to_tensor(n)],
    ),
    "recurrent": (
        Recurrent,
        [InputSpec([N, 5, 3]), {"h": InputSpec([N, 4])}],
        lambda n: [data(n, 5, 3), {"h": data(n, 4)}],
    ),
    "tied": (Tied, [InputSpec([N, 2], "int64")], lambda n: [paddle.to_tensor([[1, 4]] * n)]),
    "attention": (
        lambda: paddle.nn.TransformerEncoderLayer(4, 2, 8),
        [InputSpec([N, N, 4])],
        lambda n: [data(n, n + 1, 4)],
    ),
}


def tensors(x):
    """The tensors in a result, in order."""
    if isinstance(x, paddle.Tensor):
        return [x]
    inside = x.values() if isinstance(x, dict) else x if isinstance(x, list | tuple) else ()
    return [y for each in inside for y in tensors(each)]


def same(a, b):
    """The same structure and numbers: bit for bit, if programs are not compiled."""
    assert type(a) is type(b)
    if isinstance(a, paddle.Tensor):
        assert_same(a.numpy(), b.numpy())
    elif isinstance(a, dict):
        assert list(a) == list(b)
        same(list(a.values()), list(b.values()))
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    else:
        assert a == b


def loss(net, inputs):
    return sum((y**2).mean() for y in tensors(net(*inputs)) if y.dtype == "float32")


@pytest.fixture(params=[*MODELS])
def pair(request, path):
    """(a model, the model loaded from its files, its inputs for a batch)."""
    kind, spec, inputs = MODELS[request.param]
    paddle.seed(7)
    net = kind()
    paddle.jit.save(net, path, input_spec=spec)
    return net, paddle.jit.load(path), inputs


# ---- it is the same model --------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 3])
def test_values(pair, n):
    net, loaded, inputs = pair
    paddle.seed(1)
    wanted = net(*inputs(n))
    paddle.seed(1)
    same(wanted, loaded(*inputs(n)))
    state = loaded.state_dict()
    assert set(state) == set(net.state_dict())
    for name, x in net.state_dict().items():
        np.testing.assert_array_equal(x.numpy(), state[name].numpy())


def test_values_without_a_tape(pair):
    net, loaded, inputs = pair
    with paddle.no_grad():
        for n in (2, 4):  # running statistics and the random counter move along
            paddle.seed(n)
            wanted = net(*inputs(n))
            paddle.seed(n)
            same(wanted, loaded(*inputs(n)))
    same(net.state_dict(), loaded.state_dict())


def test_gradients(pair):
    net, loaded, inputs = pair
    found = []
    for model in (net, loaded):
        given = inputs(3)
        for x in tensors(given):
            x.stop_gradient = x.dtype != "float32"
        paddle.seed(2)
        loss(model, given).backward()
        grads = {k: p.grad for k, p in model.named_parameters() if p.grad is not None}
        found.append(({k: g.numpy() for k, g in grads.items()}, [x.grad for x in tensors(given)]))
    (own, to_inputs), (again, to_inputs_again) = found
    assert own
    assert own.keys() == again.keys()
    for k, g in own.items():
        np.testing.assert_array_equal(g, again[k])
    for a, b in zip(to_inputs, to_inputs_again, strict=True):
        same(a, b)


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize("captured", [False, True])
def test_training(pair, captured):
    net, loaded, inputs = pair

    def losses(model, convert):
        opt = paddle.optimizer.Adam(0.01, parameters=model.parameters())
        paddle.seed(3)

        def step(*given):
            found = loss(model, given)
            found.backward()
            opt.step()
            opt.clear_grad()
            return found

        step = paddle.jit.to_static(step) if convert else step
        return [step(*inputs(k)) for k in (2, 3, 2, 3)]

    same(losses(net, captured), losses(loaded, captured))
    same(net.state_dict(), loaded.state_dict())


def test_second_derivatives(path):
    net = paddle.nn.Sequential(paddle.nn.Linear(2, 3), paddle.nn.Tanh(), paddle.nn.Linear(3, 1))
    paddle.jit.save(net, path, input_spec=[InputSpec([N, 2])])

    def penalty(model):
        x = data(4, 2)
        x.stop_gradient = False
        (g,) = paddle.grad(model(x).sum(), [x], create_graph=True)
        (g * g).sum().backward()
        return [p.grad.numpy() for p in model.parameters() if p.grad is not None]

    for a, b in zip(penalty(net), penalty(paddle.jit.load(path)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_saved_again(pair, path):
    _, loaded, inputs = pair
    paddle.jit.save(loaded, f"{path}2")
    for suffix in (".pdmodel", ".pdiparams.info"):
        with open(path + suffix, "rb") as a, open(f"{path}2{suffix}", "rb") as b:
            assert a.read() == b.read()
    loss(loaded, inputs(2)).backward()
    opt = paddle.optimizer.SGD(0.1, parameters=loaded.parameters())
    opt.step()
    paddle.jit.save(loaded, f"{path}2")
    again = paddle.jit.load(f"{path}2")
    for name, x in loaded.state_dict().items():
        np.testing.assert_array_equal(x.numpy(), again.state_dict()[name].numpy())


def test_a_copy_has_parameters_of_its_own(pair):
    _, loaded, inputs = pair
    copy, again = deepcopy(loaded), deepcopy(loaded)
    for p in copy.parameters():
        p.set_value(p * 0)
    found = []
    for model in (loaded, again, copy):
        paddle.seed(1)
        found.append(model(*inputs(2)))
    same(found[0], found[1])
    pairs = zip(tensors(found[0]), tensors(found[2]), strict=True)
    assert not all(np.array_equal(a.numpy(), b.numpy()) for a, b in pairs)


def test_part_of_another_model(path):
    """A loaded model is a layer: it can be a part, be traced, be saved within another."""
    paddle.jit.save(hostile.Mlp(), path, input_spec=[InputSpec([N, 4])])

    class Whole(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.body, self.head = paddle.jit.load(path), paddle.nn.Linear(3, 2)

        def forward(self, x):
            found = self.body(x[:, :4])
            return self.head(found["logits"]) * found["size"]

    whole = Whole()
    paddle.jit.save(whole, f"{path}2", input_spec=[InputSpec([N, 6])])
    same(whole(data(5, 6)), paddle.jit.load(f"{path}2")(data(5, 6)))
    assert "body.first.weight" in paddle.jit.load(f"{path}2").state_dict()
    static = paddle.jit.to_static(whole.forward)
    same(whole(data(5, 6)), static(data(5, 6)))


def test_regions_with_open_sizes_are_replayed(path):
    """Inside a branch the size of a batch is used that no input of the branch has as its own."""

    class Net(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.w = self.create_parameter([3])

        def forward(self, x):
            n = x.shape[0]
            total = x.sum()
            if total > 0:
                out = paddle.ones([n, 3]) * self.w * total
            else:
                out = paddle.zeros([n, 3]) + self.w
            return out * n

    net = Net()
    paddle.jit.save(net, path, input_spec=[InputSpec([N, 3])])
    loaded = paddle.jit.load(path)
    step = paddle.jit.to_static(lambda x: loaded(x))
    for x in (data(2, 3), -data(4, 3)):
        same(net(x), loaded(x))
        with paddle.no_grad():
            same(net(x), loaded(x))
        same(net(x), step(x))


def test_a_state_that_is_returned_and_updated(path):
    class Counter(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", paddle.zeros([1]))

        def forward(self, x):
            before = self.count * 1
            self.count += 1
            return before, self.count

    paddle.jit.save(Counter(), path, input_spec=[InputSpec([1])])
    loaded = paddle.jit.load(path)
    x = data(1)
    assert [float(y) for y in loaded(x)] == [0, 1]
    before = loaded.count
    assert [float(y) for y in loaded(x)] == [1, 2]
    assert float(before) == 2, "the buffer is the same tensor, written in place"
    x.stop_gradient = False
    assert [float(y) for y in loaded(x)] == [2, 3]


def test_modes_are_frozen(path):
    net = paddle.nn.Sequential(paddle.nn.Dropout(0.5), paddle.nn.BatchNorm1D(4))
    x = data(64, 4)
    paddle.jit.save(net, path, input_spec=[InputSpec([N, 4])])
    training = paddle.jit.load(path)
    training.eval()
    assert not np.array_equal(training(x).numpy(), training(x).numpy())
    net.eval()
    paddle.jit.save(net, path, input_spec=[InputSpec([N, 4])])
    fixed = paddle.jit.load(path)
    fixed.train()
    same(fixed(x), net(x))


def test_the_python_is_not_needed(tmp_path):
    """Another process, that knows no class of ours, gives the same numbers."""
    path = str(tmp_path / "net")
    net = Recurrent()
    paddle.jit.save(net, path, input_spec=MODELS["recurrent"][1])
    script = f"""
        import numpy as np, minipaddle as paddle
        net = paddle.jit.load({path!r})
        x = np.random.RandomState(0).rand(2, 5, 3).astype("float32")
        y, state = net(x, {{"h": np.zeros((2, 4), "float32")}})
        print(np.concatenate([y.numpy(), state["h"].numpy()], 1).tolist())
    """
    run = [sys.executable, "-c", textwrap.dedent(script)]
    out = subprocess.run(run, capture_output=True, text=True, check=True, cwd=os.getcwd()).stdout
    y, state = net(data(2, 5, 3), {"h": paddle.zeros([2, 4])})
    assert json.loads(out) == np.concatenate([y.numpy(), state["h"].numpy()], 1).tolist()


# ---- functions, methods, properties --------------------------------------------------------------


def test_a_function(path):
    scale = paddle.to_tensor([2.0], stop_gradient=False)
    inner = paddle.nn.Linear(2, 2)
    paddle.jit.save(lambda x: inner(x) * scale, path, input_spec=[InputSpec([N, 2], name="rows")])
    loaded = paddle.jit.load(path)
    same(loaded(rows=data(3, 2)), inner(data(3, 2)) * scale)
    assert len(loaded.parameters()) == 2
    assert isinstance(loaded.program(), Program)
    loaded(data(3, 2)).sum().backward()
    assert all(p.grad is not None for p in loaded.parameters())


class Several(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.inner = paddle.nn.Linear(3, 2)

    def forward(self, x):
        return self.decode(self.encode(x))

    @paddle.jit.to_static(input_spec=[InputSpec([None, 3])])
    def encode(self, x):
        return self.inner(x)

    @paddle.jit.to_static(input_spec=[InputSpec([None, 2])])
    def decode(self, z):
        return z @ self.inner.weight.T

    @paddle.jit.to_static(property=True)
    def width(self):
        return 3


def test_several_methods(path):
    net = Several()
    net.forward = paddle.jit.to_static(net.forward, input_spec=[InputSpec([None, 3])])
    paddle.jit.save(net, path)
    loaded = paddle.jit.load(path)
    x = data(4, 3)
    same(loaded(x), net(x))
    same(loaded.encode(x), net.encode(x))
    same(loaded.decode(loaded.encode(x)), net(x))
    assert loaded.width == 3
    assert len(loaded.parameters()) == 2, "the methods share their weights"
    assert loaded.program("encode").name == "encode"
    loaded.inner.weight.set_value(loaded.inner.weight * 0)
    assert float(deepcopy(loaded).encode(x).abs().sum()) == float(loaded.encode(x).abs().sum())
    with pytest.raises(ValueError, match=r"encode.*forward|no program 'nope'"):
        loaded.program("nope")
    with pytest.raises(ValueError, match="converted too"):
        paddle.jit.save(net, path, input_spec=[InputSpec([None, 3])])
    paddle.jit.save(net, path, skip_forward=True)
    with pytest.raises(ValueError, match="no program 'forward'"):
        paddle.jit.load(path)(x)
    with pytest.raises(ValueError, match="skip_forward"):
        paddle.jit.save(hostile.Mlp(), path, skip_forward=True)


def test_a_converted_method_alone(path):
    net = Several()
    paddle.jit.save(net.encode, path)
    same(paddle.jit.load(path)(data(1, 3)), net.encode(data(1, 3)))
    assert "inner.weight" in paddle.jit.load(path).state_dict()


def test_what_was_called_last_is_saved(path):
    @paddle.jit.to_static
    def f(x, k):
        return x * k

    with pytest.raises(ValueError, match="has no program"):
        paddle.jit.save(f, path)
    f(data(2), 3)
    paddle.jit.save(f, path)
    same(paddle.jit.load(path)(data(2)), data(2) * 3)
    f(data(3), 4)
    with pytest.warns(UserWarning, match="2 programs"):
        paddle.jit.save(f, path)
    same(paddle.jit.load(path)(data(3)), data(3) * 4)
    with pytest.raises(ValueError, match=r"x is float32\[2\]"):
        paddle.jit.load(path)(data(2))


def test_a_layer_that_was_never_traced(path):
    with pytest.raises(ValueError, match="input_spec"):
        paddle.jit.save(hostile.Mlp(), path)
    assert not os.path.exists(os.path.dirname(path))


def test_specs_by_example_and_constants(path):
    def f(x, how, y=2.0):
        return x.sum() if how == "sum" else x.mean() * y

    paddle.jit.save(f, path, input_spec=[data(2, 2), "mean"])
    same(paddle.jit.load(path)(data(2, 2)), data(2, 2).mean() * 2.0)
    paddle.jit.save(f, path, input_spec=[np.ones([2], "float32"), "sum"])
    assert float(paddle.jit.load(path)(np.ones([2], "float32"))) == 2


def test_the_decorators_spec_wins(path):
    net = paddle.jit.to_static(paddle.nn.Linear(4, 2), input_spec=[InputSpec([None, 4])])
    with pytest.warns(UserWarning, match="input_spec that to_static was given"):
        paddle.jit.save(net, path, input_spec=[InputSpec([3, 4])])
    assert paddle.jit.load(path)(data(5, 4)).shape == [5, 2]
    for wrong in ([InputSpec([None, 5])], [InputSpec([None, 4], "float64")], [InputSpec([4])], []):
        with pytest.raises(ValueError, match="expected: that of to_static"):
            paddle.jit.save(net, path, input_spec=wrong)


Pair = namedtuple("Pair", "a b")


@dataclass
class Record:
    a: object
    b: object


def test_results_of_every_kind(path):
    def f(x):
        y = x + 1
        return [
            y, y, None, True, "s", 1.5, (), [x], {"k": {1: y, None: 2}},
            Pair(y, 3), Record(x, y), OrderedDict(z=y), x.shape[0] // 2,
        ]  # fmt: skip

    paddle.jit.save(f, path, input_spec=[InputSpec([None])])
    x = data(5)
    wanted = f(x)
    wanted[9], wanted[10] = tuple(wanted[9]), {"a": x, "b": x + 1}
    wanted[11] = dict(wanted[11])
    same(paddle.jit.load(path)(x), wanted)
    with pytest.raises(TypeError, match="cannot be saved"):
        paddle.jit.save(lambda x: [x, object()], path, input_spec=[InputSpec([None])])


def test_a_list_that_is_changed_and_returned_is_refused(path):
    class Net(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.seen = [paddle.zeros([])]

        def forward(self, x):
            self.seen[0] = self.seen[0] + x.sum()
            return self.seen

    with pytest.warns(UserWarning, match="outlives"), pytest.raises(TypeError, match="a copy"):
        paddle.jit.save(Net(), path, input_spec=[InputSpec([None])])


def test_inputs_in_a_dict_stand_by_key(path):
    def f(x, given):
        return x - given["b"] * 2 - given["a"] * 3 - given["c"][0] * 4

    given = {"b": data(2), "c": [data(1) + 4], "a": data(2, seed=3)}
    x = data(2, seed=5)
    wanted = f(x, given)
    static = paddle.jit.to_static(f)
    static(x, given)
    paddle.jit.save(static, path)
    loaded = paddle.jit.load(path)
    same(loaded(x, given["a"], given["b"], given["c"][0]), wanted)
    same(loaded(x, given), wanted)
    same(loaded(x, dict(sorted(given.items()))), wanted)


def test_a_file_of_before_takes_a_dict_in_its_order(path):
    """Files of format 2 that do not say `by_key`."""

    def f(given):
        return given["a"] - given["b"]

    a, b = data(2), data(2, seed=3)
    static = paddle.jit.to_static(f)
    static({"a": a, "b": b})
    paddle.jit.save(static, path)
    files = {s: Path(path + s).read_bytes() for s in (".pdmodel", ".pdiparams.info", ".pdiparams")}
    files[".pdiparams.info"] = re.sub(rb'"by_key": true,\s*', b"", files[".pdiparams.info"])
    Path(path + ".pdiparams.info").write_bytes(files[".pdiparams.info"])
    Path(path + ".pdmodel").write_bytes(hostile.resigned(files))
    loaded = paddle.jit.load(path)
    same(loaded({"a": a, "b": b}), a - b)
    same(loaded({"b": a, "a": b}), a - b)


def test_names_that_mean_something_else(path):
    """Inputs called as keywords of the text are, and a weight called as an input is."""

    def f(state, update, inf, v1, v1_, assume):
        return state + update * inf - v1 / (v1_ + assume) * weight

    weight = paddle.create_parameter([2], "float32")
    weight.name = "state"
    specs = [InputSpec([2])] * 6
    paddle.jit.save(f, path, input_spec=specs)
    xs = [data(2, seed=k) + 1 for k in range(6)]
    same(paddle.jit.load(path)(*xs), f(*xs))
    twice = [InputSpec([2], name="x")] * 6
    paddle.jit.save(f, path, input_spec=twice)
    same(paddle.jit.load(path)(*xs), f(*xs))


def test_a_training_step(path):
    """Even a whole step can be saved: it trains without Python."""
    net = paddle.nn.Linear(3, 1)
    opt = paddle.optimizer.Momentum(0.1, parameters=net.parameters())

    def step(x, y):
        found = F.mse_loss(net(x), y)
        found.backward()
        opt.step()
        opt.clear_grad()
        return found

    given = data(8, 3), data(8, 1)
    step(*given)
    paddle.jit.save(step, path, input_spec=[InputSpec([None, 3]), InputSpec([None, 1])])
    loaded = paddle.jit.load(path)
    same([loaded(*given) for _ in range(4)], [step(*given) for _ in range(4)])

    def half(x):
        net(x).sum().backward()

    with pytest.raises(ValueError, match="gradients"):
        paddle.jit.save(half, path, input_spec=[InputSpec([None, 3])])


@pytest.mark.parametrize("options", [{}, {"with_hook": True}])
@pytest.mark.parametrize("convert", [lambda net: net, paddle.jit.to_static])
def test_hooks_of_the_layer_itself(path, convert, options):
    net = convert(paddle.nn.Linear(2, 2))
    net.register_forward_pre_hook(lambda layer, inputs: (inputs[0] * 2,))
    net.register_forward_post_hook(lambda layer, inputs, y: y * 10 if y.sum() > 0 else y)
    expected = [net(data(1, 2)), net(-data(1, 2))]
    paddle.jit.save(net, path, input_spec=[InputSpec([None, 2])], **options)
    same([paddle.jit.load(path)(x) for x in (data(1, 2), -data(1, 2))], expected)


def test_hooks_after_a_call_without_a_spec(path):
    net = paddle.jit.to_static(paddle.nn.Linear(2, 2))
    net.register_forward_post_hook(lambda layer, inputs, y: y * 10)
    expected = net(data(1, 2))
    paddle.jit.save(net, path)
    same(paddle.jit.load(path)(data(1, 2)), expected)


def test_a_method_is_saved_without_hooks(path):
    class Net(paddle.nn.Linear):
        @paddle.jit.to_static(input_spec=[InputSpec([None, 2])])
        def other(self, x):
            return x * 3

    net = Net(2, 2)
    net.register_forward_post_hook(lambda layer, inputs, y: y * 10)
    paddle.jit.save(net.other, path)
    same(paddle.jit.load(path)(data(1, 2)), data(1, 2) * 3)


class Outputs(paddle.nn.Layer):
    def forward(self, x):
        return {"sum": x + 1, "number": 3, "pair": [x * 2, x * 3]}


@pytest.mark.parametrize("chosen", [[0], [2, 0], [1]])
@pytest.mark.parametrize("by_place", [True, False])
def test_output_spec_selects_outputs(path, chosen, by_place):
    net = paddle.jit.to_static(Outputs(), input_spec=[InputSpec([None, 2])])
    x = data(1, 2)
    each = [x + 1, x * 2, x * 3]
    wanted = chosen if by_place else [net.forward.outputs[k] for k in chosen]
    paddle.jit.save(net, path, output_spec=wanted)
    found = paddle.jit.load(path)(x)
    same(found, each[chosen[0]] if len(chosen) == 1 else [each[k] for k in chosen])


def test_output_spec_of_all_outputs_changes_nothing(path):
    net = paddle.jit.to_static(Outputs(), input_spec=[InputSpec([None, 2])])
    paddle.jit.save(net, path, output_spec=net.forward.outputs)
    assert paddle.jit.load(path)(data(1, 2)).keys() == {"sum", "number", "pair"}


@pytest.mark.parametrize("wrong", [[3], [True], ["sum"], [paddle.ones([2])]])
def test_output_spec_of_something_else_is_refused(path, wrong):
    with pytest.raises(ValueError, match="in output_spec"):
        paddle.jit.save(Outputs(), path, input_spec=[InputSpec([None, 2])], output_spec=wrong)


def test_what_forward_keeps_for_itself(path):
    class Net(paddle.nn.Layer):
        def forward(self, x):
            self.last = x * 2
            return x

    with pytest.warns(UserWarning, match="assigns last"):
        paddle.jit.save(Net(), path, input_spec=[InputSpec([2])])
    same(paddle.jit.load(path)(data(2)), data(2))


def test_an_input_that_is_written(path):
    """The program has the new values; the caller's tensor stays as it is, and has a gradient."""

    def f(x):
        x[0] = 5.0
        x.add_(paddle.ones([2]))
        return x * x, x

    paddle.jit.save(f, path, input_spec=[InputSpec([2])])
    x = data(2)
    x.stop_gradient = False
    for _ in range(2):
        y, z = paddle.jit.load(path)(x)
        assert float(z[0]) == 6
        assert float(y[0]) == 36
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [0, 2 * (float(x[1]) + 1)])
    np.testing.assert_array_equal(x.numpy(), data(2).numpy())


def test_python_that_runs_after_each_run_is_refused(path):
    rate = paddle.optimizer.lr.StepDecay(0.1, step_size=1)

    def f(x):
        y = x * rate()
        rate.step()
        return y

    with pytest.raises(ValueError, match="a call of Python code"):
        paddle.jit.save(f, path, input_spec=[InputSpec([2])])


# ---- calling ---------------------------------------------------------------------------------


def test_arguments(path):
    paddle.jit.save(lambda a, b: a + b, path, input_spec=[InputSpec([N, 2]), InputSpec([N, 2])])
    loaded = paddle.jit.load(path)
    x = data(3, 2)
    same(loaded(x, b=x), x + x)
    same(loaded((x, x)), x + x)
    for wrong in ((x,), (x, x, x), (x, 2), (x, None)):
        with pytest.raises(TypeError, match=r"expected: tensors: a: float32\[batch, 2\]"):
            loaded(*wrong)
    with pytest.raises(TypeError, match="another number or name"):
        loaded(x, c=x)
    with pytest.raises(ValueError, match="batch = 3"):
        loaded(x, data(4, 2))
    with pytest.raises(ValueError, match=r"float32\[3, 3\]"):
        loaded(data(3, 3), x)
    with pytest.raises(ValueError, match="float64"):
        loaded(x.astype("float64"), x)


def test_sizes_the_program_was_not_made_for(path):
    def f(x):
        return x * 2 if x.shape[0] > 4 else x

    paddle.jit.save(f, path, input_spec=[InputSpec([None])])
    loaded = paddle.jit.load(path)
    same(loaded(data(5)), data(5) * 2)
    with pytest.raises(ValueError, match="batch > 4 is True; here they are 3 and 4; batch is the"):
        loaded(data(3))


def test_a_trace_takes_over_what_a_model_assumes(path):
    """A program of open sizes that calls a model holds for the sizes that the model is for."""

    def twice(x):
        half = x[: x.shape[0] // 2]
        return x + paddle.concat([half, half])

    paddle.jit.save(twice, path, input_spec=[InputSpec([N])])
    loaded = paddle.jit.load(path)
    outer = paddle.jit.to_static(lambda x: loaded(x) * 2, input_spec=[InputSpec([N])])
    for n in (4, 6):
        assert (
            outer(paddle.arange(float(n))).tolist() == (twice(paddle.arange(float(n))) * 2).tolist()
        )
    assert len(outer.program_cache.concrete_programs()) == 1
    with pytest.raises(ValueError, match="the program assumes that"):
        outer(paddle.arange(5.0))


def test_an_error_knows_the_users_line(path):
    def f(x, i):
        y = x * 2
        return y[i]

    paddle.jit.save(f, path, input_spec=[InputSpec([3]), InputSpec([], "int64")])
    with (
        paddle.no_grad(),
        pytest.raises((RuntimeError, IndexError), match=r"test_save.py:\d+, in f"),
    ):
        paddle.jit.load(path)(data(3), paddle.to_tensor(7))


# ---- files -----------------------------------------------------------------------------------


def test_paths(path, tmp_path):
    net, spec = paddle.nn.Linear(2, 2), [InputSpec([N, 2])]
    with pytest.raises(ValueError, match="the name is missing"):
        paddle.jit.save(net, f"{tmp_path}{os.sep}", input_spec=spec)
    with pytest.raises(FileNotFoundError, match="pdmodel"):
        paddle.jit.load(path)
    paddle.jit.save(net, path, input_spec=spec)
    assert sorted(os.listdir(os.path.dirname(path))) == sorted(f"net{s}" for s in hostile.SUFFIXES)
    os.unlink(f"{path}.pdiparams")
    with pytest.raises(FileNotFoundError):
        paddle.jit.load(path)


def test_a_state_dict(path):
    net, other = hostile.Mlp(), hostile.Mlp()
    paddle.jit.save(net, path, input_spec=[InputSpec([N, 4])])
    state = paddle.load(path)
    assert set(state) == {p.name for p in net.parameters()}
    assert net.set_state_dict(state, use_structured_name=False) == ([], [])
    assert other.set_state_dict(paddle.jit.load(path).state_dict()) == ([], [])
    same(other(data(2, 4)), net(data(2, 4)))


def test_refusals(path):
    net, spec = paddle.nn.Linear(2, 2), [InputSpec([N, 2])]
    with pytest.raises(ValueError, match="no option 'outputs'"):
        paddle.jit.save(net, path, input_spec=spec, outputs=[])
    with pytest.raises(ValueError, match="in output_spec"):
        paddle.jit.save(net, path, input_spec=spec, output_spec=[])
    with pytest.raises(TypeError, match="a Layer or a function"):
        paddle.jit.save(3, path, input_spec=spec)
    with pytest.raises(TypeError, match="a list of InputSpecs"):
        paddle.jit.save(net, path, input_spec=spec[0])
    paddle.jit.enable_to_static(False)
    try:
        with pytest.raises(RuntimeError, match="enable_to_static"):
            paddle.jit.save(net, path, input_spec=spec)
    finally:
        paddle.jit.enable_to_static(True)

    class Bad(paddle.nn.Layer):
        def forward(self, x):
            return x

        @paddle.jit.to_static(input_spec=spec)
        def program(self, x):
            return x

    with pytest.raises(ValueError, match="'program' cannot be the name of a method"):
        paddle.jit.save(Bad(), path)
    paddle.jit.save(net, path, input_spec=spec)
    with pytest.raises(ValueError, match="no option 'model_filename'"):
        paddle.jit.load(path, model_filename="x")


def contents(path):
    folder = os.path.dirname(path)
    return {name: Path(folder, name).read_bytes() for name in os.listdir(folder)}


@pytest.mark.parametrize(("what", "call"), [("fsync", 1), ("fsync", 3), ("replace", 1)])
def test_a_full_disk_leaves_the_old_files(path, monkeypatch, what, call):
    net, spec = paddle.nn.Linear(2, 2), [InputSpec([N, 2])]
    paddle.jit.save(net, path, input_spec=spec)
    files = contents(path)
    real, calls = getattr(os, what), []

    def full(*args):
        calls.append(args)
        if len(calls) == call:
            raise OSError(28, "No space left on device")
        return real(*args)

    net.weight.set_value(net.weight + 1)
    monkeypatch.setattr(os, what, full)
    with pytest.raises(OSError, match="untouched"):
        paddle.jit.save(net, path, input_spec=spec)
    monkeypatch.undo()
    assert files == contents(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs")
@pytest.mark.timeout(20)
@pytest.mark.parametrize("suffix", hostile.SUFFIXES)
def test_a_fifo_is_refused(path, suffix):
    paddle.jit.save(paddle.nn.Linear(2, 2), path, input_spec=[InputSpec([N, 2])])
    os.unlink(path + suffix)
    os.mkfifo(path + suffix)
    with pytest.raises(ValueError, match=f"{path}{suffix} is a FIFO"):
        paddle.jit.load(path)


def test_files_of_two_saves_are_told(path):
    spec = [InputSpec([N, 2])]
    for k in (1, 2):
        paddle.jit.save(paddle.nn.Linear(2, 2), f"{path}{k}", input_spec=spec)
    for suffix in hostile.SUFFIXES:
        paddle.jit.save(paddle.nn.Linear(2, 2), path, input_spec=spec)
        os.replace(f"{path}1{suffix}", path + suffix)
        with pytest.raises(ValueError, match=r"not of one save|do not agree|weights have"):
            paddle.jit.load(path)


SAVING = """
    import sys
    import minipaddle as paddle
    from minipaddle.jit.saving import model_of, write

    path, width = sys.argv[1], int(sys.argv[2])
    spec = [paddle.static.InputSpec([None, 4])]
    models = [model_of(paddle.nn.Linear(4, width + k), spec, {}) for k in (0, 1)]
    for line in sys.stdin:
        for k in range(int(line)):
            write(models[k % 2], path)
        print("saved", flush=True)
"""


class Savers:
    """Processes that save models of one width or the next, in turn, to one path."""

    def __init__(self, path, *widths):
        call = [sys.executable, "-c", textwrap.dedent(SAVING), path]
        self.each = [
            subprocess.Popen([*call, str(n)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for n in widths
        ]

    def save(self, times):
        for each in self.each:
            each.stdin.write(b"%d\n" % times)
            each.stdin.flush()

    def wait(self):
        for each in self.each:
            assert each.stdout.readline() == b"saved\n"

    def end(self):
        for each in self.each:
            each.kill()
            each.communicate()


def test_processes_that_save_and_load_at_once(path):
    """Two that save leave a whole model each time; one that loads beside them always finds one."""
    savers, widths = Savers(path, 2, 5), set()
    try:
        savers.save(1)
        savers.wait()
        for _ in range(15):
            savers.save(3)
            for _ in range(8):
                widths.add(paddle.jit.load(path)(paddle.ones([1, 4])).shape[1])
            savers.wait()
            paddle.jit.load(path)
    finally:
        savers.end()
    assert len(widths) > 1


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
@pytest.mark.parametrize("renamed", [0, 1, 2, 3])
def test_a_process_killed_between_two_names(path, monkeypatch, renamed):
    """What it leaves is the old model or the new one; the next one to save tidies up."""

    class Killed(BaseException):
        """No handler for errors sees it, as if the process were gone."""

    def save(width):
        paddle.jit.save(paddle.nn.Linear(4, width), path, input_spec=[InputSpec([N, 4])])

    real, done = os.replace, []

    def replace(*args):
        if len(done) == renamed:
            raise Killed
        done.append(real(*args))

    save(2)
    monkeypatch.setattr(os, "replace", replace)
    with contextlib.nullcontext() if renamed == 3 else pytest.raises(Killed):
        save(3)
    monkeypatch.undo()
    assert len(contents(path)) == 3 + (3 - renamed if renamed else 0)
    assert paddle.jit.load(path)(paddle.ones([1, 4])).shape == [1, 3 if renamed else 2]
    save(4)
    assert len(contents(path)) == 3
    assert paddle.jit.load(path)(paddle.ones([1, 4])).shape == [1, 4]


def test_a_part_that_was_never_finished_is_left_alone(path):
    paddle.jit.save(paddle.nn.Linear(4, 2), path, input_spec=[InputSpec([N, 4])])
    for suffix in hostile.SUFFIXES:
        folder, name = os.path.split(path + suffix)
        Path(folder, f".{name}.01234567.part").write_bytes(b"# minipaddle 2 half")
    assert paddle.jit.load(path)(paddle.ones([1, 4])).shape == [1, 2]
    Path(f"{path}.pdiparams").write_bytes(b"")
    with pytest.raises(ValueError, match=r"\(another SHA-256\): the weights"):
        paddle.jit.load(path)
    os.unlink(f"{path}.pdiparams")
    os.unlink(f"{os.path.dirname(path)}/.net.pdiparams.01234567.part")
    with pytest.raises(FileNotFoundError, match="pdiparams"):
        paddle.jit.load(path)


# ---- enemies ---------------------------------------------------------------------------------


@pytest.mark.sweep
def test_random_damage():
    outcomes, failures = hostile.attack(300, seed=1)
    assert not failures, "\n".join(failures)
    assert outcomes["ValueError"] > 200
    assert outcomes["valid"] > 3


def damaged(path, change, model=("", "")):
    """What loading says of a saved model with a changed description or text."""
    paddle.jit.save(hostile.Mlp(), path, input_spec=[InputSpec([N, 4])])
    with open(f"{path}.pdiparams.info") as file:
        description = json.load(file)
    change(description)
    with open(f"{path}.pdiparams.info", "w") as file:
        json.dump(description, file, indent=1)
    with open(f"{path}.pdmodel") as file:
        text = file.read()
    assert model[0] in text
    with open(f"{path}.pdmodel", "w") as file:
        file.write(text.replace(*model))
    with pytest.raises(ValueError, match=r".") as caught:
        paddle.jit.load(path)
    return str(caught.value)


def states(description):
    return list(description["states"].values())


def renamed(description, name):
    description["methods"][name] = description["methods"].pop("forward")


def outputs(node):
    return lambda description: description["methods"]["forward"].update(outputs=node)


def deep(n):
    node = {"tensor": 0}
    for _ in range(n):
        node = {"list": [node]}
    return node


TRICKS = {
    "a path that leads out": (lambda s: states(s)[0].update(paths=["../x"]), "no path"),
    "a path with a hole": (lambda s: states(s)[0].update(paths=["a..b"]), "no path"),
    "a deep path": (lambda s: states(s)[0].update(paths=[".".join("a" * 60)]), "no path"),
    "a path twice": (lambda s: [x.update(paths=["w"]) for x in states(s)], "two states have"),
    "a layer that is a tensor": (
        lambda s: [x.update(paths=[p]) for x, p in zip(states(s), ["a", "a.b", "c", "d"])],
        "a tensor and a layer",
    ),
    "a path of a constant": (lambda s: states(s)[0].update(kind="constant"), "path of a constant"),
    "an unknown kind": (lambda s: states(s)[0].update(kind="code"), "of no kind"),
    "paths that are no list": (lambda s: states(s)[0].update(paths="w"), "of no kind"),
    "another shape": (lambda s: states(s)[0].update(spec="float32[9]"), "the weights have no"),
    "a missing state": (lambda s: s["states"].popitem(), "other names than the states"),
    "a random state": (lambda s: states(s)[0].update(kind="random"), "other names"),
    "another constant": (outputs({"list": [{"value": 4}]}), "(another SHA-256): the description"),
    "another format": (lambda s: s.update(format="x"), "the methods are"),
    "no methods": (lambda s: s.update(methods=[]), "makes no sense"),
    "an output too many": (outputs({"tensor": 1}), "the file names another one"),
    "an output before the first": (outputs({"tensor": -1}), "the file names another one"),
    "an output by a truth": (outputs({"tensor": True}), "the file names another one"),
    "an output of no kind": (outputs({"code": 0}), "makes no sense"),
    "results without end": (outputs(deep(60)), "nested more than"),
    "results of two kinds": (outputs({"tensor": 0, "value": 1}), "makes no sense"),
    "a value that is none": (outputs({"value": [1]}), "no plain value"),
    "a size that is none": (outputs({"size": "n n"}), "cannot be read"),
    "other inputs": (lambda s: s["methods"]["forward"].update(inputs=[]), "do not agree"),
    "a property that is none": (lambda s: s.update(properties={"a": {}}), "no plain value"),
    "a property called as a method": (
        lambda s: s.update(properties={"forward": 1}), "one name",
    ),
    "a property called as a layer's": (
        lambda s: s.update(properties={"state_dict": 1}), "cannot be the name",
    ),
    "a hidden property": (lambda s: s.update(properties={"_methods": 1}), "cannot be the name"),
}  # fmt: skip


@pytest.mark.parametrize("trick", [*TRICKS])
def test_tricks(path, trick):
    change, message = TRICKS[trick]
    assert message in damaged(path, change)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (("# minipaddle 2", "# minipaddle two"), "not the first line"),
        (("# minipaddle 2", "# minipaddle 3"), "has the format 3: a newer MiniPaddle wrote it"),
        (("# minipaddle 2", "# minipaddle 1"), "an older MiniPaddle"),
        (("relu", "tanh"), r"not of one save \(another SHA-256\): the programs\n"),
        (("program forward", "program __class__"), "the methods are"),
        (("state linear", "state other"), "not described|not defined"),
        (("float32[4, 8]", "float32[4, 9]"), "weights|says|affine|linear|matmul"),
        (("  return v", "  return w"), "not defined"),
    ],
)
def test_tricks_in_the_text(path, model, message):
    """A wrong sum is the last reason given: another one says more."""
    assert re.search(message, damaged(path, lambda description: None, model))


def test_methods_with_names_of_the_layer(path):
    found = damaged(path, lambda s: renamed(s, "train"), ("program forward", "program train"))
    assert "cannot be the name of a method" in found


def test_two_programs_of_one_name(path):
    paddle.jit.save(lambda x: x, path, input_spec=[InputSpec([2])])
    with open(f"{path}.pdmodel") as file:
        first, *rest = file.readlines()
    with open(f"{path}.pdmodel", "w") as file:
        file.writelines([first, *rest, *rest])
    with pytest.raises(ValueError, match="two programs have one name"):
        paddle.jit.load(path)


def test_a_size_from_nowhere(path):
    paddle.jit.save(lambda x: x.reshape([x.shape[0], 1]), path, input_spec=[InputSpec([None])])
    with open(f"{path}.pdmodel") as file:
        text = file.read()
    for change in (
        text.replace("<batch>", "<k>").replace("[batch, 1]", "[k, 1]"),
        text.replace("(x: float32[batch]) {", "(x: float32[batch]) {\nassume k > 1"),
    ):
        with open(f"{path}.pdmodel", "w") as file:
            file.write(change)
        with pytest.raises(ValueError, match=r"used before it is known|reshape"):
            paddle.jit.load(path)


def test_files_that_are_no_text(path, monkeypatch):
    paddle.jit.save(lambda x: x, path, input_spec=[InputSpec([2])])
    with open(f"{path}.pdmodel", "wb") as file:
        file.write(b"\xff\xfe")
    with pytest.raises(ValueError, match="utf-8"):
        paddle.jit.load(path)
    with open(f"{path}.pdmodel", "wb") as file:
        file.truncate(1 << 40)  # a hole: it takes no room on the disk
    with pytest.raises(ValueError, match="larger than"):
        paddle.jit.load(path)


# ---- sizes that a run decides --------------------------------------------------------------------


def padded(mode):
    def pad(x):
        h, w = x.shape[2], x.shape[3]
        return F.pad(x, [0, (8 - w % 8) % 8, (4 - h % 4) % 4, 0], mode=mode)

    return pad


def padded_by_tensors(x):
    w = paddle.shape(x)[3]
    return F.pad(x, [0, (8 - w % 8) % 8, 0, 0], value=2.0)


def in_windows(x):
    b, c, h, w = x.shape
    x = F.pad(x, [0, (7 - w % 7) % 7, 0, (7 - h % 7) % 7])
    h, w = x.shape[2:]
    return x.reshape([b, c, h // 7, 7, w // 7, 7]).transpose([0, 2, 4, 3, 5, 1])


PADDED = [*map(padded, ["constant", "reflect", "replicate", "circular"]), padded_by_tensors,
          in_windows]  # fmt: skip


@pytest.mark.parametrize("function", PADDED)
def test_a_pad_that_is_0_for_some_sizes(path, function):
    paddle.jit.save(function, path, input_spec=[InputSpec([None, 2, None, None])])
    loaded = paddle.jit.load(path)
    for size in ((13, 21), (9, 30), (16, 8), (8, 8), (28, 56)):
        x = paddle.rand([1, 2, *size])
        same(loaded(x), function(x))
