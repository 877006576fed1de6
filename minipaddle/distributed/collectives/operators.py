"""The collectives as operators with derivatives, so that programs and tapes can hold them.

A rank's loss is one term of the sum that all ranks minimize; so the cotangent of a rank's input
depends on the other ranks' cotangents, and each derivative is a collective, too:

    all_reduce ↔ all_reduce    all_gather ↔ reduce_scatter    broadcast ↔ reduce
    all_to_all ↔ all_to_all    gather ↔ scatter               send ↔ recv

An attribute has the number of the group, which the operator looks up when it runs. All of them are
effects: no pass may drop, double or reorder them. With `early` the pass `async_collectives` may
start a collective before its result is needed: `start_all_reduce` and `start_collective` only
begin, and give a ticket to `finish_all_reduce` and `finish_collective`; between the two a program
computes on. An operator with `early` counts as a value: if nothing needs it, no rank computes it.

Source: the adjoints of linear maps; Hewett and Grady, "A Linear Algebraic Approach to Model
Parallelism in Deep Learning", 2020.
"""

from itertools import accumulate, count

from ...engine.core.dtype import int64
from ...engine.core.op import KEPT, Op, opaque
from ...engine.core.rank import per_rank
from ...engine.core.record import Spec
from ...engine.distributed.process_group import CollectiveTimeout, PeerFailed
from ...engine.passes.registry import LOOKS_FOR
from ..ranks.known_groups import group_numbered

KEPT[:0] = [CollectiveTimeout, PeerFailed]  # so callers can catch them


def keep_shape(x, **attrs) -> Spec:
    """The shape rule of operators that change no shape."""
    return x


def copy_contiguous(m, x):
    """Copy an array in row-major order, for a collective to read or write."""
    return m.array(x, order="C", copy=True)


@opaque
def all_reduce(m, x, *, op="sum", group=0, early=None):
    """The sum ("avg": the average) of the `x` of all ranks."""
    return group_numbered(group).all_reduce(copy_contiguous(m, x), op)


all_reduce.vjp(lambda g, op, group: all_reduce(g, op=op, group=group))


@opaque
def all_fold(m, x, *, op, group=0, early=None):
    """The "max", "min" or "prod" of the `x` of all ranks: an `all_reduce` that is not linear."""
    return group_numbered(group).all_reduce(copy_contiguous(m, x), op)


@all_fold.vjp
def _(g, x, out, op, group):
    g = all_reduce(g, op="sum", group=group)
    if op == "prod":
        return g * out / x
    first = (x == out).astype(g.spec.dtype)
    return g * first / all_reduce(first, op="sum", group=group)


@opaque
def reduce(m, x, *, dst=0, op="sum", group=0):
    """`all_reduce` for the rank `dst`; the others get zeros."""
    group = group_numbered(group)
    y = group.reduce(copy_contiguous(m, x), dst, op)
    return y if group.rank == dst else m.zeros_like(y)


@opaque
def broadcast(m, x, *, src=0, group=0):
    """The `x` of the rank `src`."""
    return group_numbered(group).broadcast(copy_contiguous(m, x), src)


broadcast.vjp(lambda g, src, group: reduce(g, dst=src, op="sum", group=group))


@reduce.vjp
def _(g, dst, op, group):
    if op not in ("sum", "avg"):
        raise NotImplementedError(f"the derivative of reduce with op={op!r}: all_reduce has it")
    g = broadcast(g, src=dst, group=group)
    return g / group_numbered(group).size if op == "avg" else g


@opaque
def all_gather(m, x, *, nranks, group=0, early=None):
    """The `x` of all ranks, one after the other along axis 0."""
    return group_numbered(group).all_gather(copy_contiguous(m, x))


@opaque
def reduce_scatter(m, x, *, nranks, op="sum", group=0, early=None):
    """Part number `rank` of the sum; axis 0 of `x` is cut."""
    return group_numbered(group).reduce_scatter(copy_contiguous(m, x), op)


all_gather.vjp(lambda g, nranks, group: reduce_scatter(g, nranks=nranks, op="sum", group=group))


@reduce_scatter.vjp
def _(g, nranks, op, group):
    if op not in ("sum", "avg"):
        raise NotImplementedError(f"the derivative of reduce_scatter with op={op!r}")
    g = all_gather(g, nranks=nranks, group=group)
    return g / nranks if op == "avg" else g


@opaque
def gather(m, x, *, nranks, dst=0, group=0):
    """`all_gather` for the rank `dst`; the others get zeros."""
    y = group_numbered(group).gather(copy_contiguous(m, x), dst)
    return m.zeros((nranks * x.shape[0], *x.shape[1:]), x.dtype) if y is None else y


@opaque
def scatter(m, x, *, nranks, src=0, group=0):
    """Part number `rank` of the `x` of the rank `src`."""
    out = m.empty((x.shape[0] // nranks, *x.shape[1:]), x.dtype)
    return group_numbered(group).scatter(out, copy_contiguous(m, x), src)


gather.vjp(lambda g, nranks, dst, group: scatter(g, nranks=nranks, src=dst, group=group))
scatter.vjp(lambda g, nranks, src, group: gather(g, nranks=nranks, dst=src, group=group))


@all_gather.shape
@gather.shape
def _(x, *, nranks, **attrs):
    return Spec((nranks * rows_of(x), *x.shape[1:]), x.dtype)


@reduce_scatter.shape
@scatter.shape
def _(x, *, nranks, **attrs):
    if rows_of(x) % nranks:
        raise ValueError(f"{nranks} ranks cannot share {rows_of(x)} rows equally")
    return Spec((rows_of(x) // nranks, *x.shape[1:]), x.dtype)


def rows_of(x):
    if not x.shape:
        raise ValueError("a tensor with no axis cannot be cut among ranks: reshape it to [1]")
    return x.shape[0]


@opaque
def all_to_all(m, x, *, sent=(), received=(), group=0, early=None):
    """Part number `rank` of the `x` of every rank; parts of `sent` and `received` rows."""
    return group_numbered(group).all_to_all(copy_contiguous(m, x), sent or None, received or None)


@all_to_all.shape
def _(x, *, sent, received, **attrs):
    return Spec((sum(received) if received else rows_of(x), *x.shape[1:]), x.dtype)


all_to_all.vjp(
    lambda g, sent, received, group: all_to_all(g, sent=received, received=sent, group=group)
)


@opaque
def send(m, x, *, dst, tag=0, group=0):
    """Send `x` to the rank `dst`. The result is zero: a loss that adds it receives the gradient
    back.
    """
    group_numbered(group).send(copy_contiguous(m, x), dst, tag)
    return m.zeros((), x.dtype)


@send.shape
def _(x, *, dst, tag, group):
    return Spec((), x.dtype)


@opaque
def recv(m, token, *, shape, src, tag=0, group=0):
    """The array that rank `src` sends, of `shape` and the dtype of `token`, any scalar."""
    return group_numbered(group).recv(m.empty(shape, token.dtype), src, tag)


@recv.shape
def _(token, *, shape, src, tag, group):
    return Spec(tuple(shape), token.dtype)


@send.vjp
def _(g, x_spec, dst, tag, group):
    return recv(g, shape=x_spec.shape, src=dst, tag=tag, group=group)


recv.vjp(lambda g, src, tag, group: send(g, dst=src, tag=tag, group=group))


# ---- collectives in two halves: start and finish ------------------------------------------------


class StartedWorks:
    """The collectives that a program of one rank has begun, by ticket."""

    def __init__(self):
        self.works, self.tickets = {}, count()

    def __copy__(self):
        return StartedWorks()


started = per_rank(StartedWorks())


@opaque
def start_all_reduce(m, *xs, op="sum", group=0):
    """Begin the `all_reduce` of all `xs`, of one dtype, in one message; return a ticket."""
    if len({x.dtype for x in xs}) > 1:
        raise ValueError("one message holds values of one dtype")
    ticket = next(started.now.tickets)
    message = pack(m, xs, 1)
    started.now.works[ticket] = group_numbered(group).all_reduce(message, op, wait=False)
    return m.asarray(ticket)


@start_all_reduce.shape
def _(*xs, op, group):
    if len({x.dtype for x in xs}) > 1:
        raise ValueError("one message holds values of one dtype")
    return Spec((), int64.numpy)


@opaque
def finish_all_reduce(m, ticket, *, shapes, dtype):
    """Wait for the collective of `start_all_reduce`; return its results, of these shapes."""
    return unpack(ticket, shapes, dtype)


@opaque
def start_collective(m, *xs, collective, group=0, **options):
    """Begin an `all_gather`, `reduce_scatter`, `all_to_all` or `all_fold` of all `xs`, of one
    dtype, in one message; return a ticket.
    """
    group = group_numbered(group)
    parts = group.size if collective == "reduce_scatter" else 1
    message = pack(m, xs, parts) if len(xs) > 1 else copy_contiguous(m, xs[0])
    ticket = next(started.now.tickets)
    begin = getattr(group, METHODS.get(collective, collective))
    started.now.works[ticket] = begin(message, **options, wait=False)
    return m.asarray(ticket)


def pack(m, xs, parts: int):
    """All `xs` in one array of one axis: the first of the `parts` of each, then the second, …"""
    return m.concatenate([x.reshape(parts, -1) for x in xs], axis=1).reshape(-1)


METHODS = {"all_fold": "all_reduce"}
start_collective.shape(lambda *xs, **attrs: Spec((), int64.numpy))


@opaque
def finish_collective(m, ticket, *, shapes, dtype, parts=1):
    """Wait for the collective of `start_collective`; return its results, of these shapes. Each has
    as many `parts`, one from each rank of an `all_gather`.
    """
    return unpack(ticket, shapes, dtype, parts)


def unpack(ticket, shapes, dtype, parts=1) -> tuple:
    """Wait for a message; return the arrays of these shapes in it."""
    message = started.now.works.pop(int(ticket)).wait().reshape(parts, -1)
    ends = [*accumulate(Spec(shape, dtype).size // parts for shape in shapes)]
    cuts = zip([0, *ends], ends, shapes)
    return tuple(message[:, begin:end].reshape(shape) for begin, end, shape in cuts)


@finish_all_reduce.shape
@finish_collective.shape
def _(ticket, *, shapes, dtype, **attrs):
    return tuple(Spec(tuple(shape), dtype) for shape in shapes)


for op in (all_fold, all_reduce, broadcast, reduce):
    op.shape(keep_shape)

COLLECTIVES: tuple[Op, ...] = (
    all_fold, all_gather, all_reduce, all_to_all, broadcast, gather, recv, reduce, reduce_scatter,
    scatter, send, start_all_reduce, finish_all_reduce, start_collective, finish_collective,
)  # fmt: skip
for op in COLLECTIVES:
    op.effect = True

LOOKS_FOR["async_collectives"] = [all_fold, all_gather, all_reduce, all_to_all, reduce_scatter]
LOOKS_FOR["gathers"] = [all_gather]
