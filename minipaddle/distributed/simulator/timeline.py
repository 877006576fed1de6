"""A training step on many devices: each computes while its link communicates; some wait.

A step is a list of pieces of computation. A piece may *start* the communication of a bucket of
gradients when it is done, and *wait* for buckets before it begins. A bucket travels when all
devices have started it, and the one before has arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ...engine.passes.lifetimes import specs_of
from ..collectives.operators import (
    all_fold,
    all_gather,
    all_reduce,
    all_to_all,
    finish_all_reduce,
    finish_collective,
    reduce_scatter,
    start_all_reduce,
    start_collective,
)
from .cluster import Cluster
from .collectives import Phases, hierarchical, ring, seconds


class TimelinePiece(NamedTuple):
    """A computation, the buckets that it starts at its end, and those that it waits for first."""

    name: str
    seconds: float
    starts: tuple[int, ...] = ()
    waits: tuple[int, ...] = ()


class Bytes(int):
    """The bytes of a sum over the ranks of a group, by its number."""

    group = 0

    def set_group(self, group: int) -> Bytes:
        """The same bytes in another group."""
        nbytes = type(self)(self)
        nbytes.group = group
        return nbytes


class Half(Bytes):
    """The bytes of an all-gather or a reduce-scatter: half an all-reduce, the same messages."""


class Activity(NamedTuple):
    """The state of a device from `start` to `end`: "compute", "communication" or "idle"."""

    device: int
    kind: str
    name: str
    start: float
    end: float


class Timeline(NamedTuple):
    """The spans of some devices, and the time of the step."""

    spans: list[Activity]
    seconds: float
    compute: float  # of one device alone

    @property
    def efficiency(self) -> float:
        """The share of linear scaling: a device's time alone over its time among the others."""
        return self.compute / self.seconds

    def total(self, kind: str, device: int = 0) -> float:
        """The seconds of a device in one kind of activity."""
        return sum(s.end - s.start for s in self.spans if (s.device, s.kind) == (device, kind))


def best_of(cluster: Cluster) -> Phases:
    """The ring in one machine, rings in rings between several."""
    return (
        ring(cluster.size) if cluster.nodes == 1 else hierarchical(cluster.nodes, cluster.devices)
    )


class Clock:
    """The time on each device, and the spans of the first `shown` devices."""

    def __init__(self, factors, shown: int):
        self.now, self.factors = np.zeros(len(factors)), factors
        self.shown, self.spans = min(shown, len(factors)), []

    def compute(self, piece: TimelinePiece) -> None:
        after = self.now + piece.seconds * self.factors
        self.note("compute", piece.name, self.now, after)
        self.now = after

    def wait(self, until: float, name: str) -> None:
        after = np.maximum(self.now, until)
        self.note("idle", name, self.now, after)
        self.now = after

    def note(self, kind: str, name: str, before, after) -> None:
        for device in range(self.shown):
            if after[device] > before[device]:
                start, end = float(before[device]), float(after[device])
                self.spans.append(Activity(device, kind, name, start, end))


def simulate(
    pieces: Sequence[TimelinePiece],
    nbytes: Sequence[float],
    cluster: Cluster,
    *,
    schedule: Phases | None = None,
    overlap: bool = True,
    spread: float = 0.0,
    seed: int = 0,
    shown: int = 8,
    cost: Callable[[float], float] | None = None,
) -> Timeline:
    """A step on all devices of a cluster; bucket k has `nbytes[k]` bytes (`Half`: it is no sum).

    Without `overlap` a device waits from a start until the bucket has arrived. `spread` is the
    standard deviation of the devices' speed, as a share of it. `cost(bytes)` returns the seconds of
    a sum, measured or of a group, instead of the time of `schedule` on the cluster. Groups do not
    wait for each other.
    """
    schedule = best_of(cluster) if schedule is None else schedule
    if schedule.size != cluster.size:
        raise ValueError(f"a {schedule.name} of {schedule.size} ranks on {cluster.size} devices")
    cost = cost or (lambda n: seconds(schedule, n, cluster) if cluster.size > 1 else 0.0)
    drawn = np.random.default_rng(seed).standard_normal(cluster.size)
    clock = Clock(np.maximum(1 + spread * drawn, 0.1), shown)
    arrived: dict[int, float] = {}
    free: dict[int, float] = {}  # when a group's links are free
    for piece in pieces:
        for k in piece.waits:
            clock.wait(arrived[k], f"bucket {k}")
        clock.compute(piece)
        for k in piece.starts:
            group = getattr(nbytes[k], "group", 0)
            begin = max(free.get(group, 0.0), float(clock.now.max()))
            took = cost(nbytes[k]) / (2 if type(nbytes[k]) is Half else 1)
            free[group] = arrived[k] = begin + took
            for device in range(clock.shown):
                clock.spans.append(
                    Activity(device, "communication", f"bucket {k}", begin, arrived[k])
                )
            if not overlap:
                clock.wait(arrived[k], f"bucket {k}")
    end = max(float(clock.now.max()), *free.values(), 0.0)
    return Timeline(clock.spans, end, sum(p.seconds for p in pieces))


STARTS, FINISHES = (start_all_reduce, start_collective), (finish_all_reduce, finish_collective)
AT_ONCE = (all_fold, all_gather, all_reduce, all_to_all, reduce_scatter)
HALVES = ("all_gather", "all_to_all", "reduce_scatter")


def pieces_of(program, times) -> tuple[list[TimelinePiece], list[int]]:
    """(pieces, bytes of each bucket) of a program after the data-parallel pass.

    A gather has the bytes of its result, a scatter the bytes of its input. One that finishes where
    it starts overlaps with nothing.

    `times` are pairs (seconds, record), as `TimedExecutable.times()` returns them for one step.
    """
    took: dict = {}
    for spent, record in times:
        took[record] = took.get(record, 0.0) + spent
    pieces, sizes, waits = [TimelinePiece("begin", 0.0)], [], ()
    bucket: dict = {}  # by ticket
    for record in program.records:
        begins, ends = record.op in (*STARTS, *AT_ONCE), record.op in (*FINISHES, *AT_ONCE)
        if begins:
            if waits:
                pieces, waits = [*pieces, TimelinePiece("wait", 0.0, (), waits)], ()
            bucket[record] = len(sizes)
            pieces[-1] = pieces[-1]._replace(starts=(*pieces[-1].starts, len(sizes)))
            half = record.attrs.get("collective", record.op.name) in HALVES
            nbytes = (Half if half else Bytes)(sum(r.spec.nbytes for r in record.inputs))
            sizes.append(nbytes.set_group(record.attrs["group"]))
        if ends:
            k = bucket[record.inputs[0] if record.op in FINISHES else record]
            waits = (*waits, k)
            if type(sizes[k]) is Half:
                sizes[k] = Half(max(sizes[k], sum(x.nbytes for x in specs_of(record)))).set_group(
                    sizes[k].group
                )
        if record in took and not begins and not ends:
            pieces.append(TimelinePiece(name_of(record), took[record], (), waits))
            waits = ()
    return [*pieces, TimelinePiece("end", 0.0, (), waits)], sizes


def name_of(record) -> str:
    """The name of a record in a timeline; a group has the name of its last record."""
    region = record.attrs.get("region")
    return record.op.name if region is None else region.outputs[-1].op.name
