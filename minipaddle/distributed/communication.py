"""Paddle's collectives on tensors: `all_reduce`, `broadcast`, `send`, …

Tensors are written in place, as in Paddle. For a tensor on the tape, or while a program is traced,
the operator computes, which has a derivative; otherwise the group does at once. Ranks are numbers
among all, also with a group; a rank that is not in the group does nothing.
"""

from ..eager.devices import synchronize
from ..engine.core.dispatch import current
from ..engine.core.errors import value_error
from ..engine.distributed.process_group import Done, MappedWork, Work
from ..engine.eager.tensor import wrap
from ..tensor.creation import zeros
from .collectives import operators
from .collectives.tape_or_group import (
    communicate,
    fill,
    gather_rows,
    join_rows,
    make_dense,
    number_in,
    put,
    split_rows,
    write_in_place,
)
from .parallel import ReduceOp
from .ranks.known_groups import group_of

__all__ = [
    "P2POp", "all_gather", "all_reduce", "all_to_all", "alltoall", "alltoall_single", "barrier",
    "batch_isend_irecv", "broadcast", "gather", "irecv", "isend", "recv", "reduce",
    "reduce_scatter", "scatter", "send", "wait",
]  # fmt: skip


def all_reduce(tensor, op=ReduceOp.SUM, group=None, sync_op=True):
    """Replace `tensor` by the sum (op=ReduceOp.MAX: the maximum, …) over all ranks.

    Returns a task; with `sync_op=False` the tensor is ready after its `wait()`.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     x = paddle.to_tensor([1.0, dist.get_rank()])
    ...     dist.all_reduce(x)
    ...     return x.tolist()
    >>> dist.spawn(work, nprocs=2).results
    [[2.0, 1.0], [2.0, 1.0]]
    """
    return write_in_place(tensor, "all_reduce", group, sync_op, op=op)


def broadcast(tensor, src, group=None, sync_op=True):
    """Replace `tensor` by the tensor of the rank `src`.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     x = paddle.to_tensor([float(dist.get_rank())])
    ...     dist.broadcast(x, src=1)
    ...     return x.item()
    >>> dist.spawn(work, nprocs=2).results
    [1.0, 1.0]
    """
    return write_in_place(tensor, "broadcast", group, sync_op, src=src)


def reduce(tensor, dst, op=ReduceOp.SUM, group=None, sync_op=True):
    """`all_reduce`, for the rank `dst` alone; the tensors of the others stay.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     x = paddle.to_tensor([1.0])
    ...     dist.reduce(x, dst=0)
    ...     return x.item()
    >>> dist.spawn(work, nprocs=2).results
    [2.0, 1.0]
    """
    keep = lambda result: (
        put(tensor, result) if group_of(group).rank == number_in(group, dst) else None
    )
    return communicate(tensor, "reduce", group, sync_op, keep, dst=dst, op=op)


def all_gather(tensor_list, tensor, group=None, sync_op=True):
    """Fill `tensor_list` with the tensors of all ranks; an empty list is extended.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     found = []
    ...     dist.all_gather(found, paddle.to_tensor([dist.get_rank()]))
    ...     return [x.item() for x in found]
    >>> dist.spawn(work, nprocs=2).results
    [[0, 1], [0, 1]]
    """
    return gather_rows("all_gather", tensor_list, tensor, group, sync_op)


def gather(tensor, gather_list=None, dst=0, group=None, sync_op=True):
    """`all_gather`, for the rank `dst` alone; the lists of the others stay.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     found = []
    ...     dist.gather(paddle.to_tensor([dist.get_rank()]), found, dst=1)
    ...     return [x.item() for x in found]
    >>> dist.spawn(work, nprocs=2).results
    [[], [0, 1]]
    """
    mine = group_of(group).rank == number_in(group, dst)
    if mine and gather_list is None:
        raise value_error("gather without gather_list in the rank dst", expected="a list")
    return gather_rows("gather", gather_list if mine else None, tensor, group, sync_op, dst=dst)


def reduce_scatter(tensor, tensor_list, op=ReduceOp.SUM, group=None, sync_op=True):
    """Replace `tensor` by the sum over the ranks of number `rank` of their lists.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     x = paddle.zeros([1])
    ...     dist.reduce_scatter(x, [paddle.to_tensor([1.0]), paddle.to_tensor([5.0])])
    ...     return x.item()
    >>> dist.spawn(work, nprocs=2).results
    [2.0, 10.0]
    """
    keep = lambda result: put(tensor, result)
    rows = join_rows(tensor_list, group)
    return communicate(rows, "reduce_scatter", group, sync_op, keep, op=op)


def scatter(tensor, tensor_list=None, src=0, group=None, sync_op=True):
    """Replace `tensor` by number `rank` of the list of the rank `src`.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     x, parts = paddle.zeros([1]), [paddle.ones([1]), paddle.ones([1]) * 2]
    ...     dist.scatter(x, parts if dist.get_rank() == 0 else None, src=0)
    ...     return x.item()
    >>> dist.spawn(work, nprocs=2).results
    [1.0, 2.0]
    """
    here = group_of(group)
    giving = here.rank == number_in(group, src)
    if giving and not tensor_list:
        raise value_error("scatter without tensor_list in the rank src", expected="a list")
    parts = tensor_list if giving else [tensor] * here.size  # the tensors to send, or their shape
    keep = lambda result: put(tensor, result)
    return communicate(join_rows(parts, group), "scatter", group, sync_op, keep, src=src)


def alltoall(out_tensor_list, in_tensor_list, group=None, sync_op=True):
    """Send number k of `in_tensor_list` to rank k; the tensor from rank k becomes number k of the
    other list, which is extended if it is empty.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     mine, found = 10 * dist.get_rank(), []
    ...     dist.alltoall(found, [paddle.to_tensor([mine]), paddle.to_tensor([mine + 1])])
    ...     return [x.item() for x in found]
    >>> dist.spawn(work, nprocs=2).results
    [[0, 10], [1, 11]]
    """
    shapes = [x.spec.shape for x in out_tensor_list] or [x.spec.shape for x in in_tensor_list]
    sent = tuple(x.spec.shape[0] if x.spec.shape else 1 for x in in_tensor_list)
    received = tuple(shape[0] if shape else 1 for shape in shapes)
    keep = lambda result: fill(out_tensor_list, split_rows(result, received, shapes))
    rows = join_rows(in_tensor_list, group)
    return communicate(rows, "all_to_all", group, sync_op, keep, sent=sent, received=received)


all_to_all = alltoall


def alltoall_single(
    out_tensor, in_tensor, in_split_sizes=None, out_split_sizes=None, group=None, sync_op=True
):
    """`alltoall` of the rows of one tensor; the sizes are the rows to and from each rank.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     x, y = paddle.to_tensor([0, 1]) + 10 * dist.get_rank(), paddle.zeros([2], "int64")
    ...     dist.alltoall_single(y, x)
    ...     return y.tolist()
    >>> dist.spawn(work, nprocs=2).results
    [[0, 10], [1, 11]]
    """
    sizes = {"sent": tuple(in_split_sizes or ()), "received": tuple(out_split_sizes or ())}
    keep = lambda result: put(out_tensor, result)
    return communicate(in_tensor, "all_to_all", group, sync_op, keep, **sizes)


def send(tensor, dst=0, group=None, sync_op=True):
    """Send `tensor` to the rank `dst`, which calls `recv`.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     x = paddle.ones([1]) * dist.get_rank()
    ...     dist.recv(x, src=1) if dist.get_rank() == 0 else dist.send(x, dst=0)
    ...     return x.item()
    >>> dist.spawn(work, nprocs=2).results
    [1.0, 1.0]
    """
    here = group_of(group)
    if here.rank < 0:
        return None
    if current.top.tracing:
        operators.send(tensor, dst=number_in(group, dst), group=here.id)
        return Done()
    work = here.send(make_dense(tensor.array), number_in(group, dst), wait=False)
    if sync_op:
        work.wait()
    return work


def recv(tensor, src=0, group=None, sync_op=True):
    """Replace `tensor` by the tensor that the rank `src` sends.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     x = paddle.ones([1]) * dist.get_rank()
    ...     dist.send(x, dst=0) if dist.get_rank() == 1 else dist.recv(x, src=1)
    ...     return x.item()
    >>> dist.spawn(work, nprocs=2).results
    [1.0, 1.0]
    """
    here = group_of(group)
    if here.rank < 0:
        return None
    shape, source = tuple(tensor.spec.shape), number_in(group, src)
    if current.top.tracing:
        token = zeros([], tensor.dtype)
        put(tensor, operators.recv(token, shape=shape, src=source, group=here.id))
        return Done()
    array = make_dense(tensor.array)
    work = MappedWork(here.recv(array, source, wait=False), lambda array: put(tensor, wrap(array)))
    if sync_op:
        work.wait()
    return work


def isend(tensor, dst, group=None):
    """`send` that does not wait.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     x, other = paddle.ones([1]) * dist.get_rank(), 1 - dist.get_rank()
    ...     y = paddle.zeros([1])
    ...     tasks = [dist.irecv(y, other), dist.isend(x, other)]
    ...     for task in tasks:
    ...         task.wait()
    ...     return y.item()
    >>> dist.spawn(work, nprocs=2).results
    [1.0, 0.0]
    """
    return send(tensor, dst, group, sync_op=False)


def irecv(tensor, src=None, group=None):
    """`recv` that does not wait: the tensor is ready after `wait()` of the task it returns.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     x = paddle.ones([1]) * dist.get_rank()
    ...     task = dist.irecv(x, src=1) if dist.get_rank() == 0 else dist.isend(x, dst=0)
    ...     task.wait()
    ...     return x.item()
    >>> dist.spawn(work, nprocs=2).results
    [1.0, 1.0]
    """
    if src is None:
        raise value_error("irecv from any rank", expected="src, the rank that sends")
    return recv(tensor, src, group, sync_op=False)


class P2POp:
    """A later send or receive: `op` is `isend` or `irecv`, `peer` the other rank.

    >>> import minipaddle.distributed as dist
    >>> dist.P2POp(dist.isend, paddle.ones([1]), peer=1).peer
    1
    """

    def __init__(self, op, tensor, peer, group=None):
        if op not in (isend, irecv):
            raise value_error(f"P2POp of {op}", expected="dist.isend or dist.irecv")
        self.op, self.tensor, self.peer, self.group = op, tensor, peer, group


def batch_isend_irecv(p2p_op_list) -> list[Work]:
    """Begin several sends and receives; return their tasks.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     x, y, other = paddle.ones([1]), paddle.zeros([1]), 1 - dist.get_rank()
    ...     both = [dist.P2POp(dist.isend, x, other), dist.P2POp(dist.irecv, y, other)]
    ...     for task in dist.batch_isend_irecv(both):
    ...         task.wait()
    ...     return y.item()
    >>> dist.spawn(work, nprocs=2).results
    [1.0, 1.0]
    """
    works = [p.op(p.tensor, p.peer, p.group) for p in p2p_op_list]
    return [work for work in works if work is not None]


def barrier(group=None) -> None:
    """Wait until all ranks have called it.

    >>> paddle.distributed.barrier()
    """
    here = group_of(group)
    if here.rank >= 0:
        here.barrier()


def wait(tensor, group=None, use_calc_stream=True) -> None:
    """Wait until `tensor` can be used: on a CPU it can after the `wait()` of its task.

    There is one queue of work for all groups: `group` and `use_calc_stream` change nothing.

    >>> paddle.distributed.wait(paddle.ones([1]))
    """
    if tensor.place.is_gpu_place():
        synchronize(tensor.place)
