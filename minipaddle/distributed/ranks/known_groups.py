"""The rank of the running code, and the groups it knows."""

from ...engine.core.errors import value_error
from ...engine.core.rank import among, per_rank
from ...engine.distributed.process_group import ProcessGroup
from ...engine.distributed.thread_group import World
from ..collectives import exchange_parts, point_to_point  # noqa: F401  (methods of groups)


class KnownGroups:
    """The groups of one rank, by number; 0 is the group of all."""

    def __init__(self, world: ProcessGroup, alone: bool = False):
        self.groups: dict[int, ProcessGroup | None] = {0: world}
        self.count = 1  # of groups so far, including those without this rank
        self.alone = alone  # True in a process that never joined others
        self.before_end = []  # functions that a rank calls when its work is done

    @property
    def world(self) -> ProcessGroup:
        return self.groups[0]


_known = per_rank(None)


def current_groups() -> KnownGroups:
    """The groups of this rank; a process that never joined others is a world of one."""
    if _known.now is None:
        _known.now = KnownGroups(World(1).group(0), alone=True)
    return _known.now


def enter(world: ProcessGroup) -> ProcessGroup:
    """Make this thread (or this process, if it holds one rank) a member of `world`."""
    _known.now, among.now = KnownGroups(world), (world.rank, world.size)
    return world


def leave() -> None:
    """Be a world of one again."""
    _known.now, among.now = None, (0, 1)


def group_numbered(id: int) -> ProcessGroup:
    """The group with a number; ValueError if this rank is not in it."""
    group = current_groups().groups.get(id)
    if group is None:
        raise value_error(
            f"group {id}, of which rank {current_groups().world.rank} is not",
            expected=f"one of {sorted(k for k, g in current_groups().groups.items() if g)}",
            hint="paddle.distributed.new_group(ranks) makes one; all ranks call it",
        )
    return group


def group_of(group) -> ProcessGroup:
    """The group of an argument; None is the group of all ranks."""
    return current_groups().world if group is None else group
