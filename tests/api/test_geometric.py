"""Messages, segments and neighbours of graphs, against loops over the edges in Python."""

from collections import Counter

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.testing import check_grad

G = paddle.geometric
SRC, DST = np.array([0, 1, 2, 0, 4, 2]), np.array([1, 2, 1, 0, 0, 1])
MESSAGES = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}
REDUCTIONS = {
    "sum": lambda rows: rows.sum(0),
    "mean": lambda rows: np.trunc(rows.mean(0)) if rows.dtype.kind == "i" else rows.mean(0),
    "max": lambda rows: rows.max(0),
    "min": lambda rows: rows.min(0),
}


def folded(messages, places, rows, how):
    """The message rows of each place, one place at a time."""
    out = np.zeros((rows, *messages.shape[1:]), messages.dtype)
    for k in range(rows):
        if (places == k).any():
            out[k] = REDUCTIONS[how](messages[places == k])
    return out


def drawn(*shape, dtype="float32"):
    values = np.random.default_rng(0).normal(size=shape) * 10
    return (values + 3).astype(dtype)


def close(found, wanted):
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5)
    assert found.numpy().dtype == wanted.dtype


@pytest.mark.parametrize("how", REDUCTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_send_u_recv(how, dtype):
    x, (src, dst) = drawn(5, 3, dtype=dtype), map(paddle.to_tensor, (SRC, DST))
    for size, rows in ((None, 5), (0, 5), (7, 7), (paddle.to_tensor(3), 3)):
        found = G.send_u_recv(paddle.to_tensor(x), src, dst, how, size)
        close(found, folded(x[SRC], DST, rows, how))
    three = drawn(5, 3, 2, dtype=dtype)
    close(G.send_u_recv(paddle.to_tensor(three), src, dst, how), folded(three[SRC], DST, 5, how))


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize("how", REDUCTIONS)
def test_send_ue_recv(message, how):
    x, (src, dst) = drawn(5, 3), map(paddle.to_tensor, (SRC, DST))
    for y in (drawn(6, 3), drawn(6, 1), drawn(6)):
        rows = MESSAGES[message](x[SRC], y.reshape(6, -1))
        found = G.send_ue_recv(paddle.to_tensor(x), paddle.to_tensor(y), src, dst, message, how)
        close(found, folded(rows, DST, 5, how))


@pytest.mark.parametrize("message", MESSAGES)
def test_send_uv(message):
    x, y = drawn(5, 3), drawn(5, 1)
    tensors = map(paddle.to_tensor, (x, y, SRC, DST))
    close(G.send_uv(*tensors, message), MESSAGES[message](x[SRC], y[DST]))
    vectors = map(paddle.to_tensor, (x[:, 0], x[:, 1], SRC, DST))
    assert G.send_uv(*vectors).shape == [6, 1]  # as in Paddle


@pytest.mark.parametrize("how", REDUCTIONS)
def test_segments(how):
    ids = np.array([0, 0, 1, 3, 3])
    for data in (drawn(5, 3), drawn(5), drawn(5, 2, dtype="int64")):
        found = getattr(G, f"segment_{how}")(paddle.to_tensor(data), paddle.to_tensor(ids))
        close(found, folded(data, ids, 4, how))
    with pytest.raises(ValueError, match=r"expected: a vector"):
        G.segment_sum(paddle.ones([2, 2]), paddle.zeros([2, 1], "int64"))


@pytest.mark.parametrize("how", REDUCTIONS)
def test_gradients(how):
    """Against difference quotients; no two messages to a node are equal here."""
    src, dst = map(paddle.to_tensor, (SRC, DST))
    check_grad(lambda x: G.send_u_recv(x, src, dst, how), drawn(5, 2), order=2)
    check_grad(lambda x, y: G.send_ue_recv(x, y, src, dst, "mul", how), drawn(5, 2), drawn(6, 1))
    ids = paddle.to_tensor([0, 0, 2])
    check_grad(lambda x: getattr(G, f"segment_{how}")(x, ids), drawn(3, 2))
    check_grad(lambda x, y: G.send_uv(x, y, src, dst, "div"), drawn(5, 2), drawn(5, 1))


def test_wrong_names_are_refused():
    x, i = paddle.ones([2, 1]), paddle.zeros([1], "int64")
    with pytest.raises(ValueError, match="reduce_op='avg'"):
        G.send_u_recv(x, i, i, "avg")
    with pytest.raises(ValueError, match="message_op='dot'"):
        G.send_uv(x, x, i, i, "dot")


# ---- programs --------------------------------------------------------------------------------


class Gat(paddle.nn.Layer):
    """One head of a graph attention network: softmax over the edges that end at a node."""

    def __init__(self):
        super().__init__()
        self.fc, self.a = paddle.nn.Linear(3, 4), paddle.nn.Linear(4, 2)

    def forward(self, x, src, dst):
        h = self.fc(x)
        left, right = self.a(h).split(2, 1)
        alpha = paddle.nn.functional.leaky_relu(G.send_uv(left, right, src, dst, "add"), 0.2)
        top = G.segment_max(alpha, dst)
        weight = paddle.exp(alpha - paddle.gather(top, dst))
        total = G.segment_sum(weight, dst)
        return G.send_ue_recv(h, weight / paddle.gather(total, dst), src, dst, "mul", "sum")


@pytest.mark.parametrize("backend", ["interpreter", "native"])
def test_a_network_as_a_program(backend):
    """The converted step computes what eager mode does, for graphs of other sizes too."""
    paddle.seed(0)
    net, rng = Gat(), np.random.default_rng(0)
    spec = paddle.static.InputSpec
    some = [spec([None, 3], name="x"), spec(["edges"], "int64"), spec(["edges"], "int64")]
    static = paddle.jit.to_static(net.forward, input_spec=some, backend=backend)
    for nodes, edges in ((5, 9), (8, 30)):
        src, dst = (paddle.to_tensor(rng.integers(0, nodes, edges)) for _ in range(2))
        x = paddle.to_tensor(rng.normal(size=(nodes, 3)).astype("float32"))
        results = []
        for call in (net.forward, static):
            out = call(x, src, dst)
            (out * out).mean().backward()
            results.append([out.numpy(), *(p.grad.numpy() for p in net.parameters())])
            net.clear_gradients()
        for ours, theirs in zip(*results, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


# ---- parts of graphs -------------------------------------------------------------------------


def test_reindexing():
    """Paddle's own example, and one of two kinds of edges."""
    x, count = paddle.to_tensor([0, 1, 2]), paddle.to_tensor([2, 3, 2], "int32")
    near, far = [8, 9, 0, 4, 7, 6, 7], [0, 2, 3, 5, 1]
    found = G.reindex_graph(x, paddle.to_tensor(near), count)
    assert [t.tolist() for t in found] == [
        [3, 4, 0, 5, 6, 7, 6], [0, 0, 1, 1, 1, 2, 2], [0, 1, 2, 8, 9, 4, 7, 6],
    ]  # fmt: skip
    counts = [count, paddle.to_tensor([1, 3, 1], "int32")]
    found = G.reindex_heter_graph(x, [paddle.to_tensor(near), paddle.to_tensor(far)], counts)
    assert [t.tolist() for t in found] == [
        [3, 4, 0, 5, 6, 7, 6, 0, 2, 8, 9, 1], [0, 0, 1, 1, 1, 2, 2, 0, 1, 1, 1, 2],
        [0, 1, 2, 8, 9, 4, 7, 6, 3, 5],
    ]  # fmt: skip


ROW = [3, 7, 0, 9, 1, 4, 2, 9, 3, 9, 1, 9, 7]
STARTS = [0, 2, 4, 5, 6, 7, 9, 11, 11, 13, 13]


def draw(size, nodes, **more):
    graph = paddle.to_tensor(ROW), paddle.to_tensor(STARTS)
    return G.sample_neighbors(*graph, paddle.to_tensor(nodes), size, **more)


def test_neighbours():
    """All of them, and some: subsets, without repetition, each equally often."""
    found, count = draw(-1, [0, 8, 7, 1])
    assert (found.tolist(), count.tolist()) == ([3, 7, 9, 7, 0, 9], [2, 2, 0, 2])
    assert count.dtype == paddle.int32
    ids = paddle.arange(len(ROW)) + 100
    seen = Counter()
    paddle.seed(0)
    for _ in range(60):
        found, count, edges = draw(1, [5, 3, 9, 8], eids=ids, return_eids=True)
        assert count.tolist() == [1, 1, 0, 1]
        places = [k - 100 for k in edges.tolist()]
        assert [ROW[k] for k in places] == found.tolist()
        assert [places[0] in (7, 8), places[1], places[2] in (11, 12)] == [True, 5, True]
        seen[places[0]] += 1
    assert min(seen[7], seen[8]) > 15
    with pytest.raises(ValueError, match="return_eids=True without eids"):
        draw(1, [0], return_eids=True)


def test_heavy_neighbours_are_drawn_more_often():
    paddle.seed(0)
    row, starts, weight = map(paddle.to_tensor, ([5, 6, 7], [0, 3], [1.0, 2.0, 5.0]))
    nodes = paddle.zeros([1], "int64")
    first = Counter(
        G.weighted_sample_neighbors(row, starts, weight, nodes, 1)[0].item() for _ in range(400)
    )
    share = np.array([first[k] for k in (5, 6, 7)]) / 400
    np.testing.assert_allclose(share, [1 / 8, 2 / 8, 5 / 8], atol=0.09)
