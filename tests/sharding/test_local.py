"""`LocalLayer` and `local_map`: what each rank computes on its own piece, against the whole."""

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.distributed as dist

ROWS, R, TERMS = [dist.Shard(0)], [dist.Replicate()], [dist.Partial()]
X, W = np.arange(10.0, dtype="float32").reshape(5, 2), np.array([[1.0], [-2.0]], "float32")


class Product(dist.LocalLayer):
    """The rows of a rank times a matrix that each has, and the sum of squares of them."""

    def forward(self, x, w):
        y = x @ w
        return y, (y**2).sum()


def test_a_layer_of_pieces():
    """Its gradients are those of the whole: rows for rows; terms, of what each rank has whole."""

    def work():
        mesh = dist.ProcessMesh([0, 1])
        x, w = (dist.shard_tensor(paddle.to_tensor(a), mesh, p) for a, p in ((X, ROWS), (W, R)))
        x.stop_gradient = w.stop_gradient = False
        y, total = Product([(mesh, ROWS), (mesh, TERMS)], [None, (mesh, TERMS)])(x, w)
        assert (y.placements, total.placements) == (ROWS, TERMS)
        total.backward()
        return y._local_shape, total.item(), x.grad.numpy(), w.grad.placements, w.grad.numpy()

    product = X @ W
    for k, found in enumerate(dist.spawn(work, nprocs=2).results):
        shape, total, dx, lies, dw = found
        assert (shape, total, lies) == ([3 - k, 1], (product**2).sum(), R)
        np.testing.assert_allclose(dx, 2 * product @ W.T, rtol=1e-6)
        np.testing.assert_allclose(dw, 2 * X.T @ product, rtol=1e-6)


def test_a_function_of_pieces():
    """Of nested arguments; a result may be no tensor, and what is in no pieces stays as it is."""

    def work():
        mesh = dist.ProcessMesh([0, 1])
        x = dist.shard_tensor(paddle.to_tensor(X), mesh, ROWS)
        maximum = dist.local_map(lambda pair: {"n": len(pair[0]), "max": pair[0].max() * pair[1]},
                                 [None, [dist.Partial("max")]])  # fmt: skip
        found = maximum((x, 2.0))
        moved = dist.local_map(lambda x: x.sum(0), [ROWS], [[dist.Shard(-1)]], reshard_inputs=True)
        own = maximum((paddle.to_tensor(X), 2.0))["max"]
        return found["n"], found["max"].item(), moved(x)._local_shape, own.is_dist()

    for k, found in enumerate(dist.spawn(work, nprocs=2).results):
        assert found == (3 - k, 18.0, [1], False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([R], [R]), r"lies \[Shard\(dim=0\)\] on .*\n  expected: \[Replicate\(\)\] on"),
        (([R], [None]), r"lies \[Shard\(dim=0\)\]\n  expected: on no mesh"),
        (([R, R], None), r"2 out_placements of <lambda>\n  expected: 1"),
        (([R], [R, R]), r"2 in_placements of <lambda>\n  expected: 1"),
    ],
)
def test_what_does_not_fit(arguments, message):
    mesh = dist.ProcessMesh([0])
    x = dist.shard_tensor(paddle.ones([2]), mesh, ROWS)
    with pytest.raises(ValueError, match=message):
        dist.local_map(lambda x: x, *arguments)(x)
    with pytest.raises(ValueError, match=r"1 grad_dist_attrs of Product\n  expected: 2"):
        Product([(mesh, ROWS)], [None])(x, x)


def test_gradients_of_terms():
    """Of a sum each term's is the whole's; of a mean it is divided; a maximum's is refused."""

    def work(kind):
        mesh = dist.ProcessMesh([0, 1])
        own = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
        y = dist.auto_parallel.api.dtensor_from_local(own, mesh, [dist.Partial(kind)])
        (y * paddle.to_tensor([3.0, 4.0])).sum().backward()
        return own.grad.tolist()

    assert dist.spawn(work, ("sum",), nprocs=2).results == [[3.0, 4.0]] * 2
    assert dist.spawn(work, ("avg",), nprocs=2).results == [[1.5, 2.0]] * 2
    with pytest.raises(NotImplementedError, match=r"dtensor_from_local with Partial\('max'\)"):
        dist.spawn(work, ("max",), nprocs=2)


def test_no_program_has_pieces():
    mesh = dist.ProcessMesh([0])
    x = dist.shard_tensor(paddle.ones([2]), mesh, ROWS)
    mapped = paddle.jit.to_static(dist.local_map(lambda x: x, [ROWS]))
    with pytest.raises(NotImplementedError, match="in a program"):
        mapped(x)


def test_a_model_for_one_process_on_all_ranks():
    """`to_distributed`: the losses are those of one process, which sees whole batches."""

    def train(ranks):
        paddle.seed(3 + dist.get_rank())  # all begin with the weights of rank 0
        net = paddle.nn.Linear(2, 1)
        sgd = paddle.optimizer.SGD(0.01, parameters=net.parameters())
        data = paddle.io.TensorDataset([paddle.to_tensor(X)])
        loader = paddle.io.DataLoader(data, batch_size=3)
        if ranks > 1:
            net, sgd, loader = dist.to_distributed(net, sgd, loader, ranks)
        losses = []
        for _ in range(2):
            for (x,) in loader:
                loss = (net(x) ** 2).mean()
                loss.backward()
                sgd.step()
                sgd.clear_grad()
                losses.append(float(loss))
        return losses

    expected = train(1)
    for losses in dist.spawn(train, (2,), nprocs=2).results:
        np.testing.assert_allclose(losses, expected, rtol=1e-6)
    with pytest.raises(ValueError, match="device_num=2, node_num=1 of 1 ranks"):
        dist.to_distributed(None, None, None, 2)
