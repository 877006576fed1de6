"""Collectives of Python objects: numbers, strings, None, tensors, and lists and dicts of them.

The format is `paddle.save`'s, which executes nothing: another rank may be another machine. An
object that cannot be saved raises an error.
"""

from copy import deepcopy
from io import BytesIO

from ...engine.core.errors import value_error
from ...engine.eager.device import NUMPY
from ...io.serialization import encode, load
from ..ranks.known_groups import group_of
from .tape_or_group import number_in

__all__ = [
    "all_gather_object", "broadcast_object_list", "recv_object_list", "scatter_object_list",
    "send_object_list",
]  # fmt: skip


def as_octets(obj):
    """An object as an array of bytes."""
    return NUMPY.frombuffer(encode(obj), "uint8").copy()


def as_object(octets):
    return load(BytesIO(octets.tobytes()))


def length(octets=()):
    """The number of bytes, as an array."""
    return NUMPY.array([len(octets)], "int64")


def send_object(here, obj, dst: int, tag: int) -> None:
    """Send an object to the rank `dst` of a group, which calls `receive_object`."""
    octets = as_octets(obj)
    here.host.send(length(octets), dst, tag)
    here.host.send(octets, dst, tag)


def receive_object(here, src: int, tag: int):
    """The object that another rank of a group sends."""
    n = here.host.recv(length(), src, tag).item()
    return as_object(here.host.recv(NUMPY.empty(n, "uint8"), src, tag))


def all_gather_object(object_list, obj, group=None) -> None:
    """Extend `object_list` by the objects of all ranks.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     found = []
    ...     dist.all_gather_object(found, {"rank": dist.get_rank()})
    ...     return found
    >>> dist.spawn(work, nprocs=2).results[0]
    [{'rank': 0}, {'rank': 1}]
    """
    here = group_of(group).host
    if here.rank < 0:
        return
    octets = as_octets(obj)
    lengths = here.all_gather(length(octets)).tolist()
    room = NUMPY.zeros(max(lengths), "uint8")
    room[: len(octets)] = octets
    rows = here.all_gather(room).reshape(here.size, -1)
    known: dict = {}  # equal objects of many ranks are read once
    for row, n in zip(rows, lengths, strict=True):
        key = row[:n].tobytes()
        item = known[key] = deepcopy(known[key]) if key in known else as_object(row[:n])
        object_list.append(item)


def broadcast_object_list(object_list, src, group=None) -> None:
    """Replace the objects of the list by the objects of the rank `src`.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     found = ["a", 1] if dist.get_rank() == 0 else [None, None]
    ...     dist.broadcast_object_list(found, src=0)
    ...     return found
    >>> dist.spawn(work, nprocs=2).results
    [['a', 1], ['a', 1]]
    """
    here = group_of(group).host
    if here.rank < 0:
        return
    root = number_in(group, src)
    octets = as_octets(list(object_list)) if here.rank == root else ()
    n = here.broadcast(length(octets), root).item()
    room = octets if here.rank == root else NUMPY.empty(n, "uint8")
    object_list[:] = as_object(here.broadcast(room, root))


def scatter_object_list(out_object_list, in_object_list=None, src=0, group=None) -> None:
    """Put the object number `rank` of the list of the rank `src` into `out_object_list`.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     found = []
    ...     dist.scatter_object_list(found, ["a", "b"], src=1)
    ...     return found
    >>> dist.spawn(work, nprocs=2).results
    [['a'], ['b']]
    """
    here = group_of(group).host
    if here.rank < 0:
        return
    mine = here.rank == number_in(group, src)
    objects = list(in_object_list or ()) if mine else [None] * here.size
    if len(objects) != here.size:
        raise value_error(f"{len(objects)} objects for {here.size} ranks", expected="one for each")
    broadcast_object_list(objects, src, group)
    out_object_list[:] = [objects[here.rank]]


def send_object_list(object_list, dst=None, group=None, dst_in_group=None) -> None:
    """Send a list of objects to the rank `dst`, which calls `recv_object_list`.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     found, right = [None, None], dist.get_rank() == 1
    ...     dist.recv_object_list(found, 0) if right else dist.send_object_list(["a", 1], 1)
    ...     return found
    >>> dist.spawn(work, nprocs=2).results[1]
    ['a', 1]
    """
    here = group_of(group).host
    to = number_in(group, dst) if dst_in_group is None else dst_in_group
    octets = as_octets(list(object_list))
    here.send(length(octets), to)
    here.send(octets, to)


def recv_object_list(object_list, src=None, group=None, src_in_group=None) -> None:
    """Replace the objects of the list by those that the rank `src` sends.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     found = [None]
    ...     if dist.get_rank() == 0:
    ...         dist.send_object_list([{"lr": 0.1}], dst=1)
    ...     else:
    ...         dist.recv_object_list(found, src=0)
    ...     return found
    >>> dist.spawn(work, nprocs=2).results[1]
    [{'lr': 0.1}]
    """
    here = group_of(group).host
    source = number_in(group, src) if src_in_group is None else src_in_group
    n = here.recv(length(), source).item()
    object_list[:] = as_object(here.recv(NUMPY.empty(n, "uint8"), source))
