"""One rank of many, simulated alone: its memory, its program, its messages.

Nothing here knows how a model is sharded: code for many ranks runs unchanged. A collective takes
this rank's value for the value of every other rank; so values mean nothing, but shapes, bytes and
programs equal those of the real rank.
"""

from __future__ import annotations

from ...engine.distributed.process_group import TIMEOUT, Done, ProcessGroup, Work
from ...engine.eager.device import module_of
from ..ranks.known_groups import enter
from ..ranks.spawning import spawn


class PretendedGroup(ProcessGroup):
    """A group whose ranks all have the same values."""

    backend = "pretended"

    def start(self, name: str, array, **options) -> Work:
        return Done(GIVES[name](self, array, **options))

    def subgroup(self, id: int, ranks, timeout: float) -> PretendedGroup | None:
        rank, ranks = self.ranks[self.rank], [*ranks]
        return PretendedGroup(id, ranks, ranks.index(rank), TIMEOUT) if rank in ranks else None

    def post(self, array, dst: int, tag: int) -> Work:
        return Done()

    def take(self, array, src: int, tag: int) -> Work:
        return Done(array)

    def count_call(self, what: str) -> int:
        return 0

    def report_timeout(self, number: int, what: str, timeout: float):
        raise AssertionError("nobody waits")

    def check(self) -> None:
        """Return: no rank fails."""

    def close(self) -> None:
        """Nothing to release."""


def repeat(array, n: int):
    """An array n times, along axis 0."""
    return module_of(array).concatenate([array] * n)


def scatter(group, array, op):
    """This rank's rows of a sum."""
    n = len(array) // group.size
    return add_up(group, array, op)[group.rank * n : (group.rank + 1) * n]


def add_up(group, array, op):
    """The sum of all ranks' values; of maxima the array itself."""
    if op == "sum":
        array *= group.size
    return array


def exchange_rows(group, array, sent, received):
    """As many rows as this rank receives, from the rows that it sends."""
    rows = sum(received)
    return repeat(array, -(-rows // max(len(array), 1)))[:rows] if len(array) else array[:0]


def part_of(group, array, root, out):
    """This rank's part of the array if it is the root; otherwise `out` as it is."""
    if array is not None:
        out[...] = array.reshape(group.size, *out.shape)[group.rank]
    return out


GIVES = {
    "all_gather": lambda group, array: repeat(array, group.size),
    "all_reduce": add_up,
    "all_to_all": exchange_rows,
    "barrier": lambda group, array: None,
    "broadcast": lambda group, array, root: array,
    "gather": lambda group, array, root: repeat(array, group.size),
    "reduce": lambda group, array, op, root: add_up(group, array, op),
    "reduce_scatter": scatter,
    "scatter": part_of,
}
"""The result of each collective on this rank."""


def pretend(function, args=(), *, ranks: int, rank: int = 0):
    """The result of `function(*args)` on rank `rank` of `ranks`, simulated alone.

    >>> import minipaddle.distributed as dist
    >>> from minipaddle.distributed.simulator import pretend
    >>> def work():
    ...     mesh = dist.ProcessMesh([*range(dist.get_world_size())])
    ...     return dist.shard_tensor(paddle.ones([8192, 4]), mesh, [dist.Shard(0)])._local_shape
    >>> pretend(work, ranks=4096)
    [2, 4]
    """

    def work():
        enter(PretendedGroup(0, range(ranks), rank))
        return function(*args)

    return spawn(work, nprocs=1).results[0]
