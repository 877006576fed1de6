"""Which rank the code that runs belongs to, and the groups it knows."""

from __future__ import annotations

from ..engine.core.errors import value_error
from ..engine.core.rank import among, per_rank
from ..engine.distributed.group import ProcessGroup
from ..engine.distributed.threads import World


class Known:
    """The groups of one rank, by number; 0 is the group of all."""

    def __init__(self, world: ProcessGroup, alone: bool = False):
        self.groups: dict[int, ProcessGroup | None] = {0: world}
        self.made = 1  # groups so far, also those that this rank is not of
        self.alone = alone  # did nobody say that there are others?

    @property
    def world(self) -> ProcessGroup:
        return self.groups[0]


_known = per_rank(None)


def known() -> Known:
    """What this rank knows; a process that nobody has told otherwise is a world of one."""
    if _known.now is None:
        _known.now = Known(World(1).group(0), alone=True)
    return _known.now


def enter(world: ProcessGroup) -> ProcessGroup:
    """This thread (or, if it is no rank of several in this process, this process) is of `world`."""
    _known.now, among.now = Known(world), (world.rank, world.size)
    return world


def leave() -> None:
    """Be a world of one again."""
    _known.now, among.now = None, (0, 1)


def group_numbered(id: int) -> ProcessGroup:
    """The group that a program names by its number; ValueError if this rank is not of it."""
    found = known().groups.get(id)
    if found is None:
        raise value_error(
            f"group {id}, of which rank {known().world.rank} is not",
            expected=f"one of {sorted(k for k, g in known().groups.items() if g)}",
            hint="paddle.distributed.new_group(ranks) makes one; all ranks call it",
        )
    return found


def group_of(group) -> ProcessGroup:
    """The group a function was given: None is the group of all."""
    return known().world if group is None else group
