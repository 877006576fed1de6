"""Graphs of nodes and edges: messages along edges, sums over segments, neighbours drawn at random.

An edge k leads from node `src_index[k]` to node `dst_index[k]`; x holds a row for each node, y one
for each edge. Written in operators, so that gradients and programs follow. What draws and renumbers
gives as many results as it finds: a program knows their number when it runs.
Source: Paddle API `paddle.geometric`; Gilmer et al., "Neural message passing", 2017, and Hamilton
et al., "Inductive representation learning on large graphs", 2017, for the sampling.
"""

import math

from .core.prelude import creation, e, indexing, require_one_of, value_error, whole
from .eager.modes import no_grad
from .engine.ops.movement import broadcast_to, reshape
from .ops.scatter import along_index
from .tensor.along import FOLDS
from .tensor.arranging import repeat_interleave
from .tensor.creation import arange
from .tensor.joining import concat
from .tensor.math import log
from .tensor.random import rand
from .tensor.search import argsort, nonzero, unique
from .tensor.shaping import flatten

MESSAGES = {"add": e.add, "sub": e.subtract, "mul": e.multiply, "div": e.divide}
REDUCTIONS = ("sum", "mean", "max", "min")

# ---- messages --------------------------------------------------------------------------------


def send_u_recv(x, src_index, dst_index, reduce_op="sum", out_size=None, name=None):
    """For each node the sum (mean, max, min) of the rows of x that its edges bring, else 0.

    [nodes, …] to [out_size, …]; without `out_size`, or with 0, as many rows as x has.

    >>> x, begin, end = paddle.to_tensor([[1.0], [2.0], [4.0]]), [0, 1, 2], [1, 2, 1]
    >>> begin, end = paddle.to_tensor(begin), paddle.to_tensor(end)
    >>> paddle.geometric.send_u_recv(x, begin, end, "sum").tolist()
    [[0.0], [5.0], [2.0]]
    """
    require_one_of("send_u_recv", REDUCTIONS, reduce_op=reduce_op)
    messages = indexing.take(x, src_index, axis=0)
    return fold_rows(messages, dst_index, rows_of(x, out_size), reduce_op)


def send_ue_recv(
    x, y, src_index, dst_index, message_op="add", reduce_op="sum", out_size=None, name=None
):  # fmt: skip
    """`send_u_recv`, where an edge adds its row of y to its message (sub, mul, div).

    The rows of x and y broadcast; of vectors they have one column.

    >>> x, y = paddle.to_tensor([[1.0], [2.0]]), paddle.to_tensor([3.0, 5.0])
    >>> begin, end = paddle.to_tensor([0, 1]), paddle.to_tensor([1, 1])
    >>> paddle.geometric.send_ue_recv(x, y, begin, end, "mul", "sum").tolist()
    [[0.0], [13.0]]
    """
    require_one_of("send_ue_recv", MESSAGES, message_op=message_op)
    require_one_of("send_ue_recv", REDUCTIONS, reduce_op=reduce_op)
    rows = rows_of(x, out_size)
    x, y = equalize_ranks(x, y)
    messages = MESSAGES[message_op](indexing.take(x, src_index, axis=0), y)
    return fold_rows(messages, dst_index, rows, reduce_op)


def send_uv(x, y, src_index, dst_index, message_op="add", name=None):
    """For each edge the row of x where it begins + (sub, mul, div) the row of y where it ends.

    >>> x, y = paddle.to_tensor([[1.0], [2.0]]), paddle.to_tensor([[10.0], [20.0]])
    >>> begin, end = paddle.to_tensor([0, 1, 1]), paddle.to_tensor([1, 1, 0])
    >>> paddle.geometric.send_uv(x, y, begin, end, "add").tolist()
    [[21.0], [22.0], [12.0]]
    """
    require_one_of("send_uv", MESSAGES, message_op=message_op)
    x, y = equalize_ranks(x, y)
    begin, end = indexing.take(x, src_index, axis=0), indexing.take(y, dst_index, axis=0)
    return MESSAGES[message_op](begin, end)


def rows_of(x, out_size):
    """How many rows the result has."""
    count = 0 if out_size is None else whole(out_size)
    return x.spec.shape[0] if isinstance(count, int) and count <= 0 else count


def equalize_ranks(x, y):
    """Rows of x and of y with as many axes, at least one, so that they broadcast row by row."""
    ndim = max(x.spec.ndim, y.spec.ndim, 2)
    return (
        reshape(z, shape=(z.spec.shape[0], *[1] * (ndim - z.spec.ndim), *z.spec.shape[1:]))
        for z in (x, y)
    )


def fold_rows(messages, places, rows, how: str):
    """[rows, …]: the sum (mean, max, min) of the messages of each place; 0 where there are none."""
    inner, dtype = messages.spec.shape[1:], messages.spec.dtype
    shape = (rows, *inner)
    if how == "sum":
        return indexing.scatter_sum(messages, places, shape=shape, axis=0)
    ones = creation.full(shape=places.spec.shape, value=1, dtype=dtype)
    count = indexing.scatter_sum(ones, places, shape=(rows,), axis=0)
    count = reshape(count, shape=(rows, *[1] * len(inner)))
    if how == "mean":
        total = indexing.scatter_sum(messages, places, shape=shape, axis=0)
        count = e.maximum(count, 1)
        return e.sign(total) * (e.abs(total) // count) if dtype.kind in "iu" else total / count
    fold, neutral = FOLDS[f"a{how}"]
    column = reshape(places, shape=(places.spec.shape[0], *[1] * len(inner)))
    at = along_index(broadcast_to(column, shape=messages.spec.shape), shape=shape, axis=0)
    start = creation.full(shape=(math.prod(shape),), value=neutral(dtype), dtype=dtype)
    folded = reshape(fold(start, flatten(at), flatten(messages)), shape=shape)
    return e.where(count == 0, 0, folded)


# ---- segments --------------------------------------------------------------------------------


def segment(data, segment_ids, how: str):
    """`fold_rows` into as many rows as the largest number of a segment says."""
    require_vector("segment_ids", segment_ids)
    return fold_rows(data, segment_ids, whole(segment_ids.max() + 1), how)


def require_vector(name: str, x) -> None:
    """Raise ValueError unless x is a vector."""
    if x.spec.ndim != 1:
        raise value_error(f"{name} {x.spec}", "a vector")


def segment_sum(data, segment_ids, name=None):
    """The sums of the rows with one number: row k of the result is the sum of segment k.

    >>> data, ids = paddle.to_tensor([[1.0], [2.0], [4.0]]), paddle.to_tensor([0, 0, 1])
    >>> paddle.geometric.segment_sum(data, ids).tolist()
    [[3.0], [4.0]]
    """
    return segment(data, segment_ids, "sum")


def segment_mean(data, segment_ids, name=None):
    """The means of the rows with one number; 0 of a segment without rows.

    >>> data, ids = paddle.to_tensor([[1.0], [2.0], [4.0]]), paddle.to_tensor([0, 0, 2])
    >>> paddle.geometric.segment_mean(data, ids).tolist()
    [[1.5], [0.0], [4.0]]
    """
    return segment(data, segment_ids, "mean")


def segment_max(data, segment_ids, name=None):
    """The largest of the rows with one number, column by column; 0 of a segment without rows.

    >>> data, ids = paddle.to_tensor([[1.0], [2.0], [4.0]]), paddle.to_tensor([0, 0, 1])
    >>> paddle.geometric.segment_max(data, ids).tolist()
    [[2.0], [4.0]]
    """
    return segment(data, segment_ids, "max")


def segment_min(data, segment_ids, name=None):
    """The smallest of the rows with one number, column by column; 0 of a segment without rows.

    >>> data, ids = paddle.to_tensor([[1.0], [2.0], [4.0]]), paddle.to_tensor([0, 0, 1])
    >>> paddle.geometric.segment_min(data, ids).tolist()
    [[1.0], [4.0]]
    """
    return segment(data, segment_ids, "min")


# ---- parts of large graphs -------------------------------------------------------------------


def reindex_graph(x, neighbors, count, value_buffer=None, index_buffer=None, name=None):
    """The graph of nodes x and their neighbours, numbered from 0: (begins, ends, nodes).

    `neighbors` lists those of each node in turn, `count` [len(x)] how many each has. Nodes x come
    first, then the others as they appear; edge k leads from begins[k] to ends[k].

    >>> x, count = paddle.to_tensor([7, 3]), paddle.to_tensor([2, 1])
    >>> neighbors = paddle.to_tensor([3, 9, 7])
    >>> [t.tolist() for t in paddle.geometric.reindex_graph(x, neighbors, count)]
    [[1, 2, 0], [0, 0, 1], [7, 3, 9]]
    """
    return reindex_heter_graph(x, [neighbors], [count], value_buffer, index_buffer)


def reindex_heter_graph(x, neighbors, count, value_buffer=None, index_buffer=None, name=None):
    """`reindex_graph` of edges of several kinds: lists of neighbours and of counts, one a kind.

    >>> x, one = paddle.to_tensor([7]), paddle.to_tensor([1])
    >>> near, far = paddle.to_tensor([9]), paddle.to_tensor([5])
    >>> found = paddle.geometric.reindex_heter_graph(x, [near, far], [one, one])
    >>> [t.tolist() for t in found]
    [[1, 2], [0, 0], [7, 9, 5]]
    """
    with no_grad():
        every = concat([x, *neighbors])
        nodes, first, which = unique(every, return_index=True, return_inverse=True)
        order = argsort(first)
        numbers = argsort(order)[which]  # nodes by where they stand first
        own = arange(x.spec.shape[0])
        ends = concat([repeat_interleave(own, each) for each in count])
        begins = numbers[x.spec.shape[0] :]
        return begins.astype(x.dtype), ends.astype(x.dtype), nodes[order]


def sample_neighbors(
    row, colptr, input_nodes, sample_size=-1, eids=None, return_eids=False, perm_buffer=None,
    name=None,
):  # fmt: skip
    """At most `sample_size` neighbours (-1: all) of each node: (neighbours, how many each has).

    The graph is in compressed columns: those of node v are row[colptr[v] : colptr[v + 1]]. They are
    drawn without replacement, all equally likely, by `paddle.seed`'s generator. With `return_eids`,
    the third result has `eids` of the edges drawn.

    >>> row, colptr = paddle.to_tensor([3, 7, 0, 9]), paddle.to_tensor([0, 2, 4])
    >>> found, count = paddle.geometric.sample_neighbors(row, colptr, paddle.to_tensor([1, 0]))
    >>> found.tolist(), count.tolist()
    ([0, 9, 3, 7], [2, 2])
    """
    return draw_edges(row, colptr, input_nodes, sample_size, eids, return_eids)


def weighted_sample_neighbors(
    row, colptr, edge_weight, input_nodes, sample_size=-1, eids=None, return_eids=False, name=None
):  # fmt: skip
    """`sample_neighbors`, where an edge of twice the weight is twice as likely to be drawn first.

    Source: Efraimidis and Spirakis, "Weighted random sampling with a reservoir", 2006: those with
    the largest u^(1 / weight) stay.

    >>> row, colptr = paddle.to_tensor([3, 7]), paddle.to_tensor([0, 2])
    >>> weight, node = paddle.to_tensor([1.0, 1e9]), paddle.to_tensor([0])
    >>> draw = paddle.geometric.weighted_sample_neighbors
    >>> draw(row, colptr, weight, node, 1)[0].tolist()
    [7]
    """
    return draw_edges(row, colptr, input_nodes, sample_size, eids, return_eids, edge_weight)


def draw_edges(row, colptr, nodes, most: int, eids, return_eids: bool, weights=None) -> tuple:
    """The neighbours drawn, their number for each node, and, on request, the ids of their edges."""
    if return_eids and eids is None:
        raise value_error("return_eids=True without eids", "the ids of the edges, as row has them")
    with no_grad():
        row, colptr, nodes = flatten(row), flatten(colptr).astype("int64"), flatten(nodes)
        begin = colptr[nodes]
        count = colptr[nodes + 1] - begin
        own = repeat_interleave(arange(nodes.spec.shape[0]), count)  # the node of each edge
        first = count.cumsum() - count
        place = arange(own.spec.shape[0]) - first[own]  # the edge's number among those of its node
        edges = begin[own] + place
        if most > 0:
            late = rand(edges.spec.shape)
            if weights is not None:
                late = -log(late) / flatten(weights)[edges]
            order = argsort(late)
            order = order[argsort(own[order], stable=True)]  # by node; in each in random order
            kept = nonzero(place < most)[:, 0]  # the first of each node
            edges = edges[order[kept].sort()]
            count = e.minimum(count, most)
        sampled = (row[edges], count.astype("int32"))
        return (*sampled, flatten(eids)[edges]) if return_eids else sampled


__all__ = [
    "reindex_graph", "reindex_heter_graph", "sample_neighbors", "segment_max", "segment_mean",
    "segment_min", "segment_sum", "send_u_recv", "send_ue_recv", "send_uv",
    "weighted_sample_neighbors",
]  # fmt: skip
