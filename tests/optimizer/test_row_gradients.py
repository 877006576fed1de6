"""Gradients that are given by rows: the values of dense ones, and steps that touch no other row."""

import numpy as np
import pytest
import torch

import minipaddle as paddle
from minipaddle import nn, optimizer
from minipaddle.engine.codegen.kernel import IN_PLACE
from minipaddle.ops.row_gradient import RowGradient

ROWS, WIDTH = 50, 3
IDS = np.random.RandomState(3).randint(0, ROWS // 2, (4, 6, 2))
"""Of four steps; half of the rows are never looked up, some are in one step twice."""


class Net(nn.Layer):
    def __init__(self, sparse, padding_idx):
        super().__init__()
        self.table = nn.Embedding(ROWS, WIDTH, sparse=sparse, padding_idx=padding_idx)
        self.out = nn.Linear(WIDTH, 1)

    def forward(self, ids):
        return (self.out(paddle.tanh(self.table(ids).sum(1))) ** 2).mean()


def train(make, sparse=True, capture=False, clip=None, scaled=False, parts=1, padding_idx=None):
    """(the losses, the table) after four steps, each with `parts` backwards."""
    paddle.seed(1)
    net = Net(sparse, padding_idx)
    rule = make(parameters=net.parameters(), grad_clip=clip)
    scaler = paddle.amp.GradScaler(enable=scaled, init_loss_scaling=8.0)

    def step(ids):
        total = 0.0
        for part in paddle.split(ids, parts):
            loss = net(part)
            scaler.scale(loss).backward()
            total = total + loss
        scaler.step(rule)
        scaler.update()
        rule.clear_grad()
        return total

    run = paddle.jit.to_static(step) if capture else step
    losses = [run(paddle.to_tensor(ids)).item() for ids in IDS]
    return losses, net.table.weight.numpy()


RULES = {
    "SGD": lambda **how: optimizer.SGD(0.3, **how),
    "SGD, decay": lambda **how: optimizer.SGD(0.3, weight_decay=0.1, **how),
    "Momentum": lambda **how: optimizer.Momentum(0.3, **how),
    "Adagrad": lambda **how: optimizer.Adagrad(0.3, **how),
    "Adam": lambda **how: optimizer.Adam(0.3, **how),
}
LAZY = {
    "Adam": lambda **how: optimizer.Adam(0.3, lazy_mode=True, **how),
    "AdamW": lambda **how: optimizer.AdamW(0.3, lazy_mode=True, weight_decay=0.1, **how),
    "amsgrad": lambda **how: optimizer.Adam(0.3, lazy_mode=True, amsgrad=True, **how),
}
SETTINGS = {
    "plain": {},
    "norm": {"clip": nn.ClipGradByGlobalNorm(0.1)},
    "value": {"clip": nn.ClipGradByValue(0.02)},
    "padding": {"padding_idx": int(IDS[0, 0, 0])},
    "scaled": {"scaled": True},
    "parts": {"parts": 2},
}


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("rule", RULES)
def test_rows_and_dense_gradients_give_the_same(rule, setting):
    losses, table = train(RULES[rule], sparse=False, **SETTINGS[setting])
    for capture in (False, True):
        ours = train(RULES[rule], capture=capture, **SETTINGS[setting])
        np.testing.assert_allclose(ours[0], losses, rtol=1e-5)
        np.testing.assert_allclose(ours[1], table, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("rule", LAZY)
def test_a_lazy_step_in_a_program(rule, setting):
    losses, table = train(LAZY[rule], **SETTINGS[setting])
    ours = train(LAZY[rule], capture=True, **SETTINGS[setting])
    np.testing.assert_allclose(ours[0], losses, rtol=1e-5)
    np.testing.assert_allclose(ours[1], table, rtol=1e-5, atol=1e-6)


def test_a_lazy_step_beside_pytorch():
    """SparseAdam leaves the rows that no id names, and their averages, as they are."""
    start = np.random.RandomState(5).randn(ROWS, WIDTH)
    table = nn.Embedding(ROWS, WIDTH, sparse=True, _weight=start, dtype="float64")
    adam = optimizer.Adam(0.1, epsilon=1e-12, lazy_mode=True, parameters=table.parameters())
    other = torch.nn.Embedding(ROWS, WIDTH, sparse=True, _weight=torch.tensor(start))
    theirs = torch.optim.SparseAdam(other.parameters(), lr=0.1, eps=1e-12)
    for ids in IDS:
        (table(paddle.to_tensor(ids)).sum(1) ** 2).sum().backward()
        adam.step()
        adam.clear_grad()
        theirs.zero_grad()
        (other(torch.tensor(ids)).sum(1) ** 2).sum().backward()
        theirs.step()
    np.testing.assert_allclose(table.weight.numpy(), other.weight.detach().numpy(), rtol=1e-7)
    assert (table.weight.numpy() == start).all(1).sum() >= ROWS // 2


@pytest.mark.parametrize("make", [RULES["SGD"], RULES["Adagrad"], LAZY["Adam"]])
def test_a_program_makes_no_array_of_the_size_of_the_table(make):
    net = Net(True, None)
    rule = make(parameters=net.parameters(), grad_clip=nn.ClipGradByGlobalNorm(1.0))

    @paddle.jit.to_static
    def step(ids):
        net(ids).backward()
        rule.step()
        rule.clear_grad()

    step(paddle.to_tensor(IDS[0]))
    program = step.concrete_program.program
    large = [r.op.name for r in program.records if r.shape and r.shape[0] == ROWS]
    assert large
    assert set(large) <= IN_PLACE.keys()


def gradient(sparse=True):
    table = nn.Embedding(ROWS, WIDTH, sparse=sparse, _weight=np.ones((ROWS, WIDTH), "float32"))
    (table(paddle.to_tensor(IDS[0])) * 2).sum().backward()
    return table.weight


def test_a_gradient_by_rows_is_a_tensor():
    rows, dense = gradient().grad, gradient(sparse=False).grad
    assert type(rows) is RowGradient
    assert rows.shape == [ROWS, WIDTH] == [*rows.numpy().shape]
    assert rows.dtype == "float32"
    assert rows.tolist() == dense.tolist()
    assert (rows + 1).tolist() == (dense + 1).tolist()
    assert rows.sum().item() == dense.sum().item()


def test_what_is_written_counts():
    """To look at a gradient changes nothing; what is written into it is what a step takes."""
    lazy = []
    for look in (False, True):
        weight = gradient()
        adam = optimizer.Adam(0.1, lazy_mode=True, parameters=[weight])
        adam.step()
        adam.clear_grad()
        (
            paddle.nn.functional.embedding(paddle.to_tensor([1]), weight, sparse=True)
        ).sum().backward()
        if look:
            repr(weight.grad)
        adam.step()
        lazy.append(weight.numpy())
    assert (lazy[0] == lazy[1]).all()
    weight = gradient()
    with paddle.no_grad():
        weight.grad.zero_()
    optimizer.SGD(0.1, parameters=[weight]).step()
    assert (weight.numpy() == 1).all()
    weight = gradient()
    with paddle.no_grad():
        weight.grad[0] = 7.0
    optimizer.SGD(1.0, parameters=[weight]).step()
    assert weight[0].tolist() == [-6.0] * WIDTH


def test_a_gradient_of_an_earlier_run():
    """A program adds to it, though it was given by rows outside."""
    weights = []
    for capture in (False, True):
        weight = gradient()
        sgd = optimizer.SGD(0.1, parameters=[weight])

        def step(ids, weight=weight, sgd=sgd):
            paddle.nn.functional.embedding(ids, weight, sparse=True).sum().backward()
            sgd.step()

        run = paddle.jit.to_static(step) if capture else step
        for ids in IDS[:2]:
            run(paddle.to_tensor(ids))
        weights.append((weight.numpy(), weight.grad.numpy()))
    np.testing.assert_allclose(*[w for w, _ in weights], rtol=1e-6)
    np.testing.assert_allclose(*[g for _, g in weights], rtol=1e-6)


def test_derivatives_of_second_order():
    for sparse in (False, True):
        table = nn.Embedding(4, 2, sparse=sparse, _weight=np.ones((4, 2), "float32"))
        y = (table(paddle.to_tensor([1, 1, 2])) ** 3).sum()
        (g,) = paddle.grad(y, table.weight, create_graph=True)
        (h,) = paddle.grad((g**2).sum(), table.weight)
        assert h.tolist() == [[0.0] * 2, [144.0] * 2, [36.0] * 2, [0.0] * 2]


def test_a_hook_and_a_branch():
    weight = gradient()
    seen = []
    weight.clear_gradient()
    handle = weight.register_hook(lambda g: seen.append(g.shape) or g * 2)
    paddle.nn.functional.embedding(paddle.to_tensor([3]), weight, sparse=True).sum().backward()
    handle.remove()
    assert seen == [[ROWS, WIDTH]]
    assert weight.grad[3].tolist() == [2.0] * WIDTH

    @paddle.jit.to_static
    def branch(ids, x):
        y = paddle.nn.functional.embedding(ids, weight, sparse=True).sum()
        if x > 0:
            y = y * 2 + paddle.nn.functional.embedding(ids, weight, sparse=True).sum()
        return y

    weight.clear_grad()
    branch(paddle.to_tensor([3]), paddle.to_tensor(1.0)).backward()
    assert weight.grad[3].tolist() == [3.0] * WIDTH


def begin_lazy(ranks):
    """A net, averaged over the ranks if there are several, and its lazy optimizer."""
    paddle.seed(1)
    net = Net(True, None)
    if ranks > 1:
        paddle.DataParallel(net)
    return net, LAZY["Adam"](parameters=net.parameters())


@pytest.mark.parametrize("capture", [False, True])
def test_ranks_average_rows(capture):
    """A lazy step of two ranks is that of the whole batch, in which both name some rows."""

    def train(ranks):
        net, adam = begin_lazy(ranks)

        def step(ids):
            net(ids).backward()
            adam.step()
            adam.clear_grad()

        run = paddle.jit.to_static(step) if capture else step
        for ids in IDS:
            run(paddle.to_tensor(np.split(ids, ranks)[paddle.distributed.get_rank()]))
        return net.table.weight.numpy()

    tables = paddle.distributed.spawn(lambda: train(2), nprocs=2).results
    assert (tables[0] == tables[1]).all()
    np.testing.assert_allclose(tables[0], train(1), rtol=1e-4, atol=1e-6)


def test_ranks_may_name_unequally_many_rows():
    """Rank 0 has one text, rank 1 the others; a rank's loss is the mean of its own."""

    def train(ranks):
        net, adam = begin_lazy(ranks)
        for ids in IDS:
            parts = [paddle.to_tensor(part) for part in (ids[:1], ids[1:])]
            if ranks > 1:
                net(parts[paddle.distributed.get_rank()]).backward()
            else:
                ((net(parts[0]) + net(parts[1])) / 2).backward()
            adam.step()
            adam.clear_grad()
        return net.table.weight.numpy()

    tables = paddle.distributed.spawn(lambda: train(2), nprocs=2).results
    assert (tables[0] == tables[1]).all()
    np.testing.assert_allclose(tables[0], train(1), rtol=1e-4, atol=1e-6)


def test_ranks_send_rows_alone():
    """The table is in no collective of a program."""

    def train():
        net = Net(True, None)
        paddle.DataParallel(net)
        sgd = optimizer.SGD(0.3, parameters=net.parameters())

        @paddle.jit.to_static
        def step(ids):
            net(ids).backward()
            sgd.step()
            sgd.clear_grad()

        step(paddle.to_tensor(IDS[0]))
        records = step.concrete_program.program.records
        return [r.shape for r in records if r.op.name.startswith("all_")]

    for shapes in paddle.distributed.spawn(train, nprocs=2).results:
        assert shapes
        assert all(shape and shape[0] != ROWS for shape in shapes if type(shape) is tuple)


def test_half_precision_with_masters():
    tables = []
    for sparse, capture in ((False, False), (True, False), (True, True)):
        start = np.random.RandomState(2).randn(ROWS, WIDTH)
        table = nn.Embedding(ROWS, WIDTH, sparse=sparse, _weight=start, dtype="bfloat16")
        sgd = optimizer.SGD(0.01, parameters=table.parameters(), multi_precision=True)

        def step(ids, table=table, sgd=sgd):
            (table(ids).sum(1).astype("float32") ** 2).sum().backward()
            sgd.step()
            sgd.clear_grad()

        run = paddle.jit.to_static(step) if capture else step
        for ids in IDS:
            run(paddle.to_tensor(ids))
        assert table.weight.dtype == "bfloat16"
        masters = sgd.state_dict()["master_weights"]
        tables.append(next(iter(masters.values())).numpy())
    np.testing.assert_allclose(tables[1], tables[0], rtol=2e-2, atol=1e-3)
    np.testing.assert_allclose(tables[2], tables[1], rtol=2e-2, atol=1e-3)


def test_the_rule_of_a_subclass_may_move_every_row():
    class Decays(optimizer.SGD):
        @staticmethod
        def rule(o, p, g, lr):
            return (0.5 * p - lr * g,)

    weights = [gradient(sparse) for sparse in (True, False)]
    for weight in weights:
        Decays(0.1, parameters=[weight]).step()
    assert weights[0].tolist() == weights[1].tolist()


def accumulate(rule, captured, clip=None):
    """A table after steps on gradients of two backwards each; `captured` names what is."""
    paddle.seed(0)
    table = paddle.nn.Embedding(6, 2, sparse=True)
    adam = rule(parameters=table.parameters(), grad_clip=clip)

    def back(x):
        (table(x) ** 2).sum().backward()

    def step():
        adam.step()
        adam.clear_grad()

    back, step = (paddle.jit.to_static(f) if f.__name__ in captured else f for f in (back, step))
    for rows in ([0, 1], [2, 1], [3, 0]):
        back(paddle.to_tensor(rows))
        back(paddle.to_tensor(rows[::-1]))
        step()
    return table.weight.numpy()


@pytest.mark.parametrize("captured", [("back",), ("step",), ("back", "step")])
def test_rows_that_leave_a_captured_function_are_forgotten(captured):
    """Most steps are the same without them. A lazy one says that it needs them."""
    want = accumulate(RULES["SGD"], ())
    np.testing.assert_allclose(accumulate(RULES["SGD"], captured), want, rtol=1e-6)
    for clip in (None, paddle.nn.ClipGradByGlobalNorm(1.0)):
        with pytest.raises(RuntimeError, match="a lazy step changes the rows"):
            accumulate(LAZY["Adam"], captured, clip)
