"""All-reduce as a plan of messages, to carry out on arrays and to time on a cluster.

A plan cuts the data into `parts` equal parts. It is a list of phases of several rounds; all
messages of a round travel at once.

Sources: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
2009 (the ring); Thakur et al., "Optimization of Collective Communication Operations in MPICH", 2005
(the tree).
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import NamedTuple

from ...engine.eager.device import NUMPY
from .cluster import Cluster

__all__ = [
    "Message", "Phase", "Phases", "all_reduce_along", "carry_out", "hierarchical", "ring", "rings",
    "rings_in_rings", "seconds", "tree",
]  # fmt: skip


class Message(NamedTuple):
    """Parts [first, last) of one rank for another, which adds them to its own, or replaces its own
    by them.
    """

    source: int
    target: int
    first: int
    last: int
    adds: bool


class Phase(NamedTuple):
    """A number of rounds of equal time; `messages(k)` are the messages of round k."""

    rounds: int
    messages: Callable[[int], list[Message]]


class Phases(NamedTuple):
    """The phases of a collective on `size` ranks."""

    name: str
    size: int
    parts: int
    phases: list[Phase]

    @property
    def rounds(self) -> list[list[Message]]:
        """The messages, round by round."""
        return [phase.messages(k) for phase in self.phases for k in range(phase.rounds)]


def send_around(ranks: list[int], first: int, last: int, step: int, adds: bool) -> list[Message]:
    """Each of `ranks` sends one block of [first, last) to the next one. Number k of them owns
    block k; in this step it sends block k - step.
    """
    n, messages = len(ranks), []
    width = (last - first) // n
    for k, rank in enumerate(ranks):
        start = first + (k - step) % n * width
        messages.append(Message(rank, ranks[(k + 1) % n], start, start + width, adds))
    return messages


def scatter_rings(circles) -> Phase:
    """Reduce-scatter on rings at once; `circles` are (ranks, first, last). At the end the k-th
    rank of a ring has the sum of block k + 1.
    """
    rounds = len(circles[0][0]) - 1
    return Phase(rounds, lambda r: [m for c in circles for m in send_around(*c, r, True)])


def gather_rings(circles) -> Phase:
    """All-gather on rings at once, from where `scatter_rings` ends."""
    rounds = len(circles[0][0]) - 1
    return Phase(rounds, lambda r: [m for c in circles for m in send_around(*c, r - 1, False)])


def ring(n: int) -> Phases:
    """All ranks in one circle: 2 (n - 1) rounds, a message has 1/n of the data.

    >>> from minipaddle.distributed.simulator import ring
    >>> for message in ring(3).rounds[0]:
    ...     print(*message)
    0 1 0 1 True
    1 2 1 2 True
    2 0 2 3 True
    """
    return rings([[*range(n)]])


def rings(lines: list[list[int]]) -> Phases:
    """A ring on each line of ranks, all at once; the lines have one length."""
    n = len(lines[0])
    circles = [(line, 0, n) for line in lines]
    return Phases("ring", len(lines) * n, n, [scatter_rings(circles), gather_rings(circles)])


def tree(n: int) -> Phases:
    """Sums move down a binary tree to rank 0, then the result up again: 2 log₂ n rounds, each
    message has all the data.
    """
    levels = []
    step = 1
    while step < n:
        levels.append([(k + step, k) for k in range(0, n - step, 2 * step)])
        step *= 2
    down = [[Message(a, b, 0, 1, True) for a, b in level] for level in levels]
    up = [[Message(b, a, 0, 1, False) for a, b in level] for level in reversed(levels)]
    phases = [Phase(1, lambda _, level=level: level) for level in [*down, *up]]
    return Phases("tree", n, 1, phases)


def hierarchical(nodes: int, devices: int) -> Phases:
    """Reduce-scatter in each machine, all-reduce of each share between the machines, all-gather in
    each machine: each device sends 1/devices of its bytes between machines.
    """
    return rings_in_rings([[*range(nodes * devices)]], devices)


def rings_in_rings(lines: list[list[int]], devices: int) -> Phases:
    """`hierarchical` on each line of ranks at once; `devices` consecutive ranks share a machine."""
    parts = len(lines[0])
    nodes, machines, across = parts // devices, [], []
    for line in lines:
        machines += [(line[k : k + devices], 0, parts) for k in range(0, parts, devices)]
        for d in range(devices):
            share = (d + 1) % devices * nodes  # of the d-th device of each machine by then
            across.append((line[d::devices], share, share + nodes))
    phases = [
        scatter_rings(machines),
        scatter_rings(across),
        gather_rings(across),
        gather_rings(machines),
    ]
    return Phases("hierarchical", len(lines) * parts, parts, phases)


def all_reduce_along(shape: Sequence[int], axis: int, cluster: Cluster) -> Phases:
    """All-reduces of all lines of a mesh along a dimension at once: rings, or rings in rings if
    several ranks of a line share a machine and others do not. Rank r is device r, and the last
    dimension of the mesh varies fastest.

    >>> from minipaddle.distributed.simulator import NVLINK, Cluster, all_reduce_along
    >>> [all_reduce_along((4, 8), axis, Cluster(4, 8, NVLINK)).name for axis in (0, 1)]
    ['ring', 'ring']
    >>> all_reduce_along((32,), 0, Cluster(4, 8, NVLINK)).name
    'hierarchical'
    """
    ranks = NUMPY.arange(prod(shape)).reshape(shape)
    lines = NUMPY.moveaxis(ranks, axis, -1).reshape(-1, shape[axis]).tolist()
    near = sum(cluster.node(rank) == cluster.node(lines[0][0]) for rank in lines[0])
    nested = near < len(lines[0]) and near > 1 and len(lines[0]) % near == 0
    return rings_in_rings(lines, near) if nested else rings(lines)


def seconds(schedule: Phases, nbytes: float, cluster: Cluster) -> float:
    """The seconds that a collective takes on a cluster, for arrays of this size in bytes."""
    total = 0.0
    for phase in schedule.phases:
        width, loads = traffic(phase, cluster)
        total += phase.rounds * cluster.seconds_of(loads, nbytes * width / schedule.parts)
    return total


@lru_cache(maxsize=64)
def traffic(phase: Phase, cluster: Cluster) -> tuple[int, tuple[int, int]]:
    """The parts in a message of a phase, and the messages on the fullest links."""
    messages = phase.messages(0) if phase.rounds else []
    width = max((m.last - m.first for m in messages), default=0)
    return width, cluster.loads([(m.source, m.target) for m in messages])


def carry_out(schedule: Phases, arrays: list) -> list[list]:
    """Carry out a plan on one flat array of each rank; return the arrays after each round, and
    before the first.
    """
    size = len(arrays[0])
    bounds = [k * size // schedule.parts for k in range(schedule.parts + 1)]
    now = [a.copy() for a in arrays]
    states = [now]
    for messages in schedule.rounds:
        before, now = now, [a.copy() for a in now]
        for source, target, first, last, adds in messages:
            for start, stop in pairwise(bounds[first : last + 1]):
                sent = before[source][start:stop]
                now[target][start:stop] = now[target][start:stop] + sent if adds else sent
        states.append(now)
    return states
