"""Paddle's functions of ranks and groups: `init_parallel_env`, `get_rank`, `new_group`."""

import os
from datetime import timedelta

from ..engine.core.errors import value_error
from ..engine.distributed.process_group import TIMEOUT, ProcessGroup
from ..engine.eager.device import current_place, set_device
from .ranks.known_groups import current_groups, enter, group_numbered, group_of, leave
from .ranks.mpi import MPIGroup, is_started_by_mpi
from .ranks.nccl import NCCLGroup
from .ranks.require_same import require_same

__all__ = [
    "ParallelEnv", "ReduceOp", "destroy_process_group", "get_backend", "get_group", "get_rank",
    "get_world_size", "init_parallel_env", "is_available", "is_initialized", "new_group",
]  # fmt: skip

HALF_AN_HOUR = timedelta(seconds=TIMEOUT)


def init_parallel_env(nccl_config=None) -> ProcessGroup:
    """Connect to the other ranks; return the group of all.

    They are the ranks of `spawn`, or the processes that `mpiexec` or `launch` has started; if there
    are none, this is a world of one. With `set_device("gpu")` before, each rank takes a GPU of its
    own and they communicate by NCCL. `PADDLE_PG_TIMEOUT` is the number of milliseconds that a rank
    waits for the others. `nccl_config` changes nothing here.

    >>> def work():
    ...     return paddle.distributed.init_parallel_env()
    >>> paddle.distributed.spawn(work, nprocs=2).results[1]
    <threads group 0: rank 1 of 2, [0, 1]>
    """
    here = current_groups()
    if here.alone and is_started_by_mpi():
        enter(MPIGroup.world(seconds_to_wait()))
    here = current_groups()
    here.alone = False
    if current_place().kind == "gpu" and here.world.backend != "nccl":
        set_device(f"gpu:{here.world.local_rank % count_gpus()}")
        if count_gpus() >= here.world.size > 1:
            enter(NCCLGroup.of(here.world))
    return current_groups().world


def seconds_to_wait() -> float:
    """The seconds that a rank waits for the others."""
    return float(os.environ.get("PADDLE_PG_TIMEOUT", TIMEOUT * 1e3)) / 1e3


def count_gpus() -> int:
    """The number of GPUs of this machine."""
    return current_place().module.cuda.runtime.getDeviceCount()


class ReduceOp:
    """The reductions of several ranks' values: SUM, MAX, MIN, PROD, or AVG, the mean.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     x = paddle.to_tensor([1.0 + 2 * dist.get_rank()])
    ...     dist.all_reduce(x, dist.ReduceOp.AVG)
    ...     return x.item()
    >>> dist.spawn(work, nprocs=2).results
    [2.0, 2.0]
    """

    SUM, MAX, MIN, PROD, AVG = "sum", "max", "min", "prod", "avg"


class ParallelEnv:
    """The environment of a rank.

    >>> env = paddle.distributed.ParallelEnv()
    >>> env.rank, env.world_size
    (0, 1)
    """

    @property
    def rank(self) -> int:
        """The number of this rank."""
        return current_groups().world.rank

    @property
    def world_size(self) -> int:
        """How many ranks there are."""
        return current_groups().world.size

    @property
    def device_id(self) -> int:
        """The number of the GPU this rank computes on."""
        return current_place().index

    local_rank, nranks, dev_id = rank, world_size, device_id


def get_rank(group: ProcessGroup | None = None) -> int:
    """The number of this rank, among all or in a group (-1 if it is not in it).

    >>> paddle.distributed.get_rank()
    0
    """
    return group_of(group).rank


def get_world_size(group: ProcessGroup | None = None) -> int:
    """How many ranks there are.

    >>> paddle.distributed.get_world_size()
    1
    """
    return group_of(group).size


def is_available() -> bool:
    """Can ranks talk to each other here? Always: as threads.

    >>> paddle.distributed.is_available()
    True
    """
    return True


def is_initialized() -> bool:
    """Was `init_parallel_env` called, or is this a rank of `spawn`?

    >>> paddle.distributed.is_initialized()
    False
    """
    return not current_groups().alone


def get_backend(group: ProcessGroup | None = None) -> str:
    """The transport: "THREADS", "MPI" or "NCCL".

    >>> paddle.distributed.get_backend()
    'THREADS'
    """
    return group_of(group).backend.upper()


def get_group(id: int = 0) -> ProcessGroup:
    """The group number `id`.

    >>> paddle.distributed.get_group().ranks
    [0]
    """
    return group_numbered(id)


def new_group(
    ranks=None, backend=None, timeout=HALF_AN_HOUR, nccl_comm_init_option=0, nccl_config=None
) -> ProcessGroup:
    """A group of some ranks; None: of all. Every rank calls it, also those that are not in it.

    For these the group has no rank (-1) and no collectives. `backend` must be the world's.
    `nccl_comm_init_option` and `nccl_config` change nothing here.

    >>> paddle.distributed.new_group([0])
    <threads group 1: rank 0 of 1, [0]>
    """
    world, chosen = current_groups().world, ranks
    chosen = list(world.ranks) if chosen is None else sorted(chosen)
    wrong = [r for r in chosen if r not in world.ranks]
    if wrong or len(set(chosen)) != len(chosen) or not chosen:
        raise value_error(f"new_group({ranks})", expected=f"different ranks, 0 to {world.size - 1}")
    if backend not in (None, "", world.backend):
        raise value_error(
            f"a group with backend={backend!r} of ranks that talk by {world.backend}",
            expected=f"None or {world.backend!r}",
        )
    require_same(
        "new_group", None, {f"group number {current_groups().count}": [f"of the ranks {chosen}"]}
    )
    return build_group(chosen, timeout)


def build_group(chosen: list[int], timeout=HALF_AN_HOUR, id: int = 0) -> ProcessGroup:
    """Build the group of some ranks, in the order of the list. Every rank calls it; with an `id`
    the ranks of the group alone.
    """
    here = current_groups()
    if not id:
        id, here.count = here.count, here.count + 1
    seconds = min(timeout.total_seconds(), here.world.timeout)
    group = here.world.subgroup(id, chosen, seconds)
    here.groups[id] = group
    return group if group is not None else OutsideGroup(id, chosen)


class OutsideGroup:
    """A group that this rank is not in."""

    rank, backend = -1, "none"

    def __init__(self, id: int, ranks: list[int]):
        self.id, self.ranks = id, ranks
        self.size = self.nranks = self.world_size = len(ranks)
        self.host = self

    def is_member(self) -> bool:
        return False

    def get_group_rank(self, rank: int) -> int:
        return self.ranks.index(rank) if rank in self.ranks else -1

    def __repr__(self) -> str:
        return f"<group {self.id}, of which this rank is not: {self.ranks}>"


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Close a group; None: all groups, and be alone again.

    >>> paddle.distributed.destroy_process_group()
    """
    here = current_groups()
    if group is None or group is here.world:
        for one in reversed([g for g in here.groups.values() if g is not None]):
            one.close()
        leave()
    elif here.groups.pop(group.id, None) is not None:
        group.close()
