"""Networks in half precision: their weights and masters, and the same numbers in every executor."""

import numpy as np
import pytest
import torch

import minipaddle as paddle
from minipaddle import nn
from minipaddle.amp import GradScaler, auto_cast, decorate
from minipaddle.nn import functional as F

KINDS = [(level, dtype) for level in ("O1", "O2") for dtype in ("bfloat16", "float16")]


class Net(nn.Layer):
    """Convolution, batch norm, attention, layer norm: what lists treat differently."""

    def __init__(self):
        super().__init__()
        self.conv, self.batch = nn.Conv2D(1, 4, 3, padding=1), nn.BatchNorm2D(4)
        self.mix, self.norm, self.out = nn.Linear(16, 48), nn.LayerNorm(16), nn.Linear(16, 3)

    def forward(self, x):
        x = F.relu(self.batch(self.conv(x))).flatten(2)
        q, k, v = self.mix(x).unsqueeze(2).chunk(3, -1)
        x = x + F.scaled_dot_product_attention(q, k, v).squeeze(2)
        return self.out(self.norm(x)).mean(1)


def weights_after(steps: int, level: str, dtype: str, **how) -> tuple:
    """(losses, weights) of a network trained from the same start; eagerly without `how`."""
    paddle.seed(0)
    net, found = Net(), []
    sgd = paddle.optimizer.Momentum(0.1, parameters=net.parameters())
    if level == "O2":
        net, sgd = decorate(net, sgd, level, dtype)
    scaler = GradScaler(init_loss_scaling=1024.0)
    x, label = paddle.randn([6, 1, 4, 4]), paddle.randint(0, 3, [6])

    def step(x, label):
        with auto_cast(level=level, dtype=dtype):
            loss = F.cross_entropy(net(x), label)
        scaler.scale(loss).backward()
        scaler.step(sgd)
        scaler.update()
        sgd.clear_grad()
        return loss

    step = paddle.jit.to_static(step, **how) if how else step
    for _ in range(steps):
        found.append(step(x, label).item())
    return found, [w.astype("float32").numpy() for w in net.parameters()]


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize(("level", "dtype"), KINDS)
def test_every_executor_agrees(level, dtype):
    """The interpreter to the last bit; C adds up in another order before it rounds."""
    losses, weights = weights_after(3, level, dtype)
    again, same = weights_after(3, level, dtype, backend="interpreter")
    assert again == losses
    assert all(map(np.array_equal, same, weights))
    compiled, near = weights_after(3, level, dtype, backend="native")
    ulp = {"float16": 2.0**-10, "bfloat16": 2.0**-7}[dtype]
    assert np.allclose(compiled, losses, rtol=2 * ulp)
    assert max(np.abs(a - b).max() for a, b in zip(near, weights, strict=True)) < 2 * ulp


def test_masters_against_a_loop_in_float32():
    """1 + 1/512 is 1 in bfloat16: without a master the weight stays where it is."""
    for master, wanted in ((None, 1 - 8 / 512), (False, 1.0)):
        for convert in (lambda f: f, paddle.jit.to_static):
            net = nn.Linear(1, 1, bias_attr=False)
            net.weight.set_value(paddle.ones([1, 1]))
            sgd = paddle.optimizer.SGD(1 / 512, net.parameters())
            net, sgd = decorate(net, sgd, "O2", "bfloat16", master_weight=master)

            @convert
            def step(x, net=net, sgd=sgd):
                net(x).sum().backward()
                sgd.step()
                sgd.clear_grad()

            for _ in range(8):
                step(paddle.ones([1, 1], "bfloat16"))
            assert net.weight.item() == wanted
    masters = sgd.state_dict().get("master_weights")
    assert masters is None


@pytest.mark.parametrize(
    "kind", ["SGD", "Momentum", "Adam", "AdamW", "Adamax", "Lamb", "RMSProp", "Adagrad"]
)
def test_every_optimizer_keeps_masters(kind):
    """Its steps on half-precision weights are those on float32 weights that are stored rounded."""
    start, slopes = np.float32([0.5, -0.25]), np.float32([[0.5, 1.0], [0.25, -0.5], [1.0, 1.0]])
    results = []
    for dtype in ("float32", "bfloat16"):
        w = paddle.create_parameter([2], "float32", is_bias=True)
        w.set_value(paddle.to_tensor(start))
        layer = nn.Layer()
        layer.w = w
        optimizer = getattr(paddle.optimizer, kind)(0.001, parameters=[w])
        if dtype == "bfloat16":
            decorate(layer, optimizer, "O2", dtype)
        for slope in slopes:
            (w * paddle.to_tensor(slope).astype(dtype)).sum().backward()
            optimizer.step()
            optimizer.clear_grad()
        masters = optimizer.state_dict().get("master_weights", {w.name: w})
        results.append((masters[w.name].numpy(), w.astype("float32").numpy()))
    assert np.array_equal(results[0][0], results[1][0])
    assert np.array_equal(torch.tensor(results[0][0]).bfloat16().float(), results[1][1])


def test_which_layers_stay():
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1D(2), nn.LayerNorm(2), nn.Linear(2, 2))
    kept = nn.Sequential(nn.Linear(2, 2))
    model = nn.Sequential(net, kept)
    assert decorate(model, level="O1") is model
    assert all(p.dtype == "float32" for p in model.parameters())
    (found,) = decorate([model], level="O2", excluded_layers=[nn.LayerNorm, kept])
    assert found is model
    halves = [p.dtype == "float16" for p in model.parameters()]
    assert halves == [True] * 2 + [False] * 6 + [True] * 2 + [False] * 2  # a batch norm has four
    assert net[1]._mean.dtype == "float32"


def test_lists_come_back_as_lists():
    nets = [nn.Linear(1, 1), nn.Linear(1, 1)]
    optimizers = [paddle.optimizer.SGD(0.1, net.parameters()) for net in nets]
    assert decorate(nets, optimizers, "O2") == (nets, optimizers)
    assert all(each.multi_precision for each in optimizers)


def test_a_state_dict_in_another_dtype():
    net = decorate(nn.Sequential(nn.Linear(2, 2)), level="O2", save_dtype="float32")
    assert {str(x.dtype) for x in net.state_dict().values()} == {"paddle.float32"}
    assert net[0].weight.dtype == "float16"
    assert net.state_dict()["0.weight"].tolist() == net[0].weight.tolist()


@pytest.mark.parametrize("convert", [lambda f: f, paddle.jit.to_static], ids=["eager", "program"])
def test_gradients_in_float32(convert):
    """256 + 1 is 256 in bfloat16: sums over backwards need float32."""
    net = nn.Linear(1, 1, bias_attr=False)
    sgd = paddle.optimizer.SGD(1.0, net.parameters())
    net, sgd = decorate(net, sgd, "O2", "bfloat16", master_grad=True)

    @convert
    def total(*xs):
        for x in xs:
            (net(x) * x).sum().backward()
        return net.weight.grad

    g = total(paddle.full([1, 1], 16.0, "bfloat16"), paddle.ones([1, 1], "bfloat16"))
    assert (g.dtype, g.item()) == ("float32", 257.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda net: decorate(net, level="O3"), "decorate was given level='O3'"),
        (lambda net: decorate(net, dtype="float64"), "decorate was given dtype='float64'"),
        (lambda net: decorate(net, save_dtype="int8"), "decorate was given save_dtype='int8'"),
        (lambda net: decorate(net.forward), "expected: a Layer, or a list of them"),
        (lambda net: decorate(net, [3]), "decorate was given 3"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call(nn.Linear(1, 1))


def test_a_model_in_a_data_parallel():
    def work():
        try:
            decorate(paddle.DataParallel(nn.Linear(1, 1)), level="O2")
        except RuntimeError as error:
            return str(error)

    assert "DataParallel" in paddle.distributed.spawn(work, nprocs=2).results[0]


# ---- beside PyTorch ------------------------------------------------------------------------------


def losses_here(weights, x, label, level) -> list:
    """Losses of a network trained at a level, by a captured step."""
    net = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4))
    for p, w in zip(net.parameters(), weights, strict=True):
        p.set_value(paddle.to_tensor(w))
    sgd = paddle.optimizer.Momentum(0.1, parameters=net.parameters())
    if level == "O2":
        net, sgd = decorate(net, sgd, level, "bfloat16")

    @paddle.jit.to_static
    def step(x, label):
        with auto_cast(level=level, dtype="bfloat16"):
            loss = F.cross_entropy(net(x), label)
        loss.backward()
        sgd.step()
        sgd.clear_grad()
        return loss

    x, label = paddle.to_tensor(x), paddle.to_tensor(label)
    return [step(x, label).item() for _ in range(40)]


def losses_of_torch(weights, x, label) -> list:
    """The same under `torch.autocast`."""
    net = torch.nn.Sequential(
        torch.nn.Linear(8, 32), torch.nn.GELU(), torch.nn.LayerNorm(32), torch.nn.Linear(32, 4)
    )
    with torch.no_grad():
        for p, w in zip(net.parameters(), weights, strict=True):
            p.copy_(torch.tensor(w.T if w.ndim == 2 else w))
    sgd, found = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9), []
    for _ in range(40):
        with torch.autocast("cpu", torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(net(torch.tensor(x)), torch.tensor(label))
        loss.backward()
        sgd.step()
        sgd.zero_grad()
        found.append(loss.item())
    return found


def test_losses_fall_as_under_torch_autocast():
    rng = np.random.default_rng(0)
    shapes = (8, 32), (32,), (32,), (32,), (32, 4), (4,)
    weights = [rng.normal(0, 0.3, s).astype("float32") for s in shapes]
    x, label = rng.normal(size=(32, 8)).astype("float32"), rng.integers(0, 4, 32)
    wide = np.array(losses_here(weights, x, label, "O0"))
    far = lambda found: np.abs(np.array(found) - wide).max() / wide[0]
    theirs = far(losses_of_torch(weights, x, label))
    assert wide[-1] < wide[0] / 4
    assert 0 < far(losses_here(weights, x, label, "O1")) < max(2 * theirs, 0.01)
    assert 0 < far(losses_here(weights, x, label, "O2")) < max(3 * theirs, 0.02)
