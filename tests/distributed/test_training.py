"""Training on ranks against training of the joined batch in one process."""

from functools import cache

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.distributed as dist
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.engine.core.slots import plugged
from minipaddle.engine.distributed.reducer import build_buckets
from tests.distributed import programs

STEPS = 20


def trained(kind, ranks, *, steps=STEPS, bucket_mb=0.005, static=None, step_of=programs.plain):
    """For each rank the losses, and the weights and statistics after the steps."""
    given = programs.batches(kind, steps, 12)

    def rank():
        paddle.seed(3 + dist.get_rank())  # weights differ until rank 0 gives its own to all
        net = programs.NETS[kind]()
        if ranks > 1:
            net = nn.SyncBatchNorm.convert_sync_batchnorm(net)
            net = paddle.DataParallel(net, comm_buffer_size=bucket_mb, last_comm_buffer_size=1e-3)
        step = step_of(getattr(net, "_layers", net), optimizer(kind, net))
        step = paddle.jit.to_static(step, backend=static) if static else step
        losses = []
        for batch in given:
            mine = [paddle.to_tensor(a[dist.get_rank() :: ranks]) for a in batch]
            losses.append(step(*mine).item())
        return losses, {name: x.numpy() for name, x in net.state_dict().items()}

    return dist.spawn(rank, nprocs=ranks, timeout=30).results


@cache
def one_process(kind):
    """Losses, weights and statistics of one process."""
    ((*alone,),) = trained(kind, 1)
    return alone


def optimizer(kind, net):
    """With it rounding stays small over twenty steps: Adam takes the sign of what is nearly 0, and
    larger steps bring a ReLU of a ResNet to 0, which takes it or not as BLAS rounds."""
    return paddle.optimizer.Momentum(0.02, 0.9, net.parameters(), weight_decay=1e-4)


def compare(found, alone, rtol=1e-4):
    """The same weights bit by bit in all ranks; to rounding those of one process."""
    losses, weights = alone
    np.testing.assert_allclose(np.mean([own for own, _ in found], 0), losses, rtol=rtol)
    for _, own in found:
        assert own.keys() == weights.keys()
        for name, x in own.items():
            np.testing.assert_array_equal(x, found[0][1][name], name)
            np.testing.assert_allclose(x, weights[name], rtol=rtol, atol=1e-5, err_msg=name)


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize(
    ("kind", "ranks", "static"),
    [
        ("mlp", 2, None), ("mlp", 4, None), ("mlp", 3, "native"), ("gpt", 3, None),
        ("resnet", 2, None), ("resnet", 4, None), ("resnet", 2, "native"),
    ],
)  # fmt: skip
def test_twenty_steps(kind, ranks, static):
    """MLP, GPT, and a ResNet whose batch norms take the moments of all ranks."""
    compare(trained(kind, ranks, static=static), one_process(kind))


def test_batch_norm_of_one_rank_alone_is_another_model():
    """The parity of the ResNet comes from SyncBatchNorm: without it there is none."""
    ((_, weights),) = trained("resnet", 1, steps=3)
    with plugged("nn.sync_moments", lambda here: here):
        found = trained("resnet", 2, steps=3)
    far = max(abs(x - weights[name]).max() for name, x in found[0][1].items())
    assert far > 1e-2


def test_unequal_batches():
    """A mean over ranks is that of the joined batch if each loss is weighed by its share."""
    x, y = programs.batches("mlp", 1, 10)[0]
    shares = [slice(0, 7), slice(7, 9), slice(9, 10)]

    def gradients(ranks, weigh):
        def rank():
            paddle.seed(3)
            net = programs.mlp()
            mine = shares[dist.get_rank()] if ranks > 1 else slice(None)
            net = paddle.DataParallel(net) if ranks > 1 else net
            loss = F.cross_entropy(net(paddle.to_tensor(x[mine])), paddle.to_tensor(y[mine]))
            (loss * (ranks * len(x[mine]) / len(x)) if weigh else loss).backward()
            return [p.grad.numpy() for p in net.parameters()]

        return dist.spawn(rank, nprocs=ranks).results

    (alone,) = gradients(1, False)
    for found in gradients(3, True):
        for a, b in zip(found, alone, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-7)
    plain = gradients(3, False)[0]
    assert max(abs(a - b).max() for a, b in zip(plain, alone)) > 1e-3


def accumulated(ranks, quiet):
    """Gradients of four backwards, averaged once or each time; how many messages there were."""
    batches, sent = programs.batches("mlp", 4, 6), []

    def counting(group, array, op):
        if group.rank == 0:
            sent.append(array.size)
        return group.start("all_reduce", array, op=op)

    def rank():
        paddle.seed(3)
        net = paddle.DataParallel(programs.mlp())
        for k, (x, y) in enumerate(batches):
            mine = [paddle.to_tensor(a[dist.get_rank() :: ranks]) for a in (x, y)]
            with net.no_sync() if quiet and k < 3 else paddle.enable_grad():
                F.cross_entropy(net(mine[0]), mine[1]).backward()
        return [p.grad.numpy() for p in net.parameters()]

    with plugged("distributed.all_reduce", counting):
        return dist.spawn(rank, nprocs=ranks).results, len(sent)


def test_accumulation_reduces_once():
    ((alone,), none), (every, often), (quiet, once) = (
        accumulated(1, False), accumulated(2, False), accumulated(2, True),
    )  # fmt: skip
    assert (none, often) == (0, 4 * once)
    for found in [*every, *quiet]:
        for a, b in zip(found, alone, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-7)


def test_buckets_leave_while_the_backward_goes_on():
    """The bucket of the last layer is sent before the first layer's gradient is computed."""
    events = []

    def noting(group, array, op):
        events.append("sent")
        return group.start("all_reduce", array, op=op)

    def rank():
        layers = [nn.Linear(8, 8, bias_attr=False) for _ in range(4)]
        layers[0].weight.register_hook(lambda g: events.append("first layer"))
        layers[3].weight.register_hook(lambda g: events.append("last layer"))
        net = paddle.DataParallel(
            nn.Sequential(*layers), comm_buffer_size=0, last_comm_buffer_size=0
        )
        net(paddle.ones([2, 8])).sum().backward()

    with plugged("distributed.all_reduce", noting):
        dist.spawn(rank, nprocs=2)
    first = events.index("first layer")
    assert events.index("last layer") < events.index("sent") < first
    assert events[:first].count("sent") >= 3


def test_buckets():
    sizes = [10, 30, 20, 5, 40]
    weights = [paddle.create_parameter([n], "float32") for n in sizes]
    of = lambda *how: [[p.size for p in b.parameters] for b in build_buckets(weights, *how)]
    kb = 4 / (1 << 20)  # of float32
    assert of(45 * kb, 12 * kb) == [[40, 5], [20], [30], [10]]
    assert of(1, 0) == [[40, 5, 20, 30], [10]]  # nothing is computed while the last one travels
    assert of(0, 0) == [[40], [5], [20], [30], [10]]
    assert of(1, 1) == [[40, 5, 20, 30, 10]]
    weights[1] = paddle.create_parameter([30], "float64")
    assert of(1, 0) == [[40, 5, 20], [30], [10]]


class Branches(nn.Layer):
    """One of two branches, by the rank; a third that no rank takes."""

    def __init__(self):
        super().__init__()
        self.branches = nn.LayerList([nn.Linear(1, 1, bias_attr=False) for _ in range(3)])

    def forward(self, x):
        return self.branches[dist.get_rank() % 2](x)


def test_parameters_that_a_rank_does_not_use():
    def rank():
        net = paddle.DataParallel(Branches(), find_unused_parameters=True)
        net(paddle.full([1, 1], 2.0)).sum().backward()
        return [None if p.grad is None else p.grad.item() for p in net.parameters()]

    assert dist.spawn(rank, nprocs=2).results == [[1.0, 1.0, None]] * 2


def test_parameters_nobody_asked_about():
    def rank():
        net = paddle.DataParallel(Branches())
        net(paddle.full([1, 1], 2.0)).sum().backward()

    with pytest.raises(RuntimeError, match=r"2 parameters .*(?s:.*)find_unused_parameters=True"):
        dist.spawn(rank, nprocs=2, timeout=5)


def test_grad_leaves_gradients_alone_and_frozen_weights_stay():
    def rank():
        inner = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
        inner[0].weight.stop_gradient = True
        net = paddle.DataParallel(inner)
        x = paddle.full([1, 2], 1.0 + dist.get_rank())
        (g,) = paddle.grad(net(x).sum(), [inner[1].bias])
        assert [p.grad for p in net.parameters()] == [None] * 4
        net(x).sum().backward()
        assert inner[0].weight.grad is None
        assert list(net.state_dict()) == list(inner.state_dict())
        net.set_state_dict(inner.state_dict())
        return g.item(), inner[1].bias.grad.item()

    assert dist.spawn(rank, nprocs=2).results == [(1.0, 1.0)] * 2


def test_one_rank_alone_and_nothing_to_train():
    net = paddle.DataParallel(nn.Linear(2, 1))
    net(paddle.ones([1, 2])).sum().backward()
    assert net.scale_loss(3) == 3
    net.apply_collective_grads()
    assert net.parameters()[0].grad.tolist() == [[1.0], [1.0]]
    with pytest.raises(ValueError, match="without a parameter"):
        paddle.DataParallel(nn.ReLU())


def test_gradients_averaged_by_hand():
    def rank():
        net = paddle.DataParallel(nn.Linear(1, 1))
        with net.no_sync():
            net(paddle.full([1, 1], 1.0 + dist.get_rank())).sum().backward()
        own = net.parameters()[0].grad.item()
        net.apply_collective_grads()
        return own, net.parameters()[0].grad.item()

    assert dist.spawn(rank, nprocs=2).results == [(1.0, 1.5), (2.0, 1.5)]


def test_a_model_is_fitted_on_ranks_and_saved_by_the_first(tmp_path):
    x, y = programs.batches("mlp", 1, 24)[0]
    data = paddle.io.TensorDataset([paddle.to_tensor(x), paddle.to_tensor(y)])

    def rank():
        paddle.seed(3)
        net = programs.mlp()
        model = paddle.Model(paddle.DataParallel(net))
        opt = paddle.optimizer.SGD(0.1, parameters=net.parameters())
        model.prepare(opt, nn.CrossEntropyLoss())
        sampler = paddle.io.DistributedBatchSampler(data, 12 // dist.get_world_size())
        model.fit(paddle.io.DataLoader(data, batch_sampler=sampler), epochs=2, verbose=0)
        folder = tmp_path / f"{dist.get_world_size()}-{dist.get_rank()}"
        folder.mkdir()
        model.save(str(folder / "net"))
        return net[0].weight.numpy(), sorted(p.name for p in folder.iterdir())

    ((alone, _),) = dist.spawn(rank, nprocs=1).results
    (first, files), (second, none) = dist.spawn(rank, nprocs=2).results
    np.testing.assert_allclose(first, alone, rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(first, second)
    assert (files, none) == (["net.pdopt", "net.pdparams"], [])
