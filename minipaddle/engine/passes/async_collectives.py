"""Collectives that travel while a rank computes on: started early, awaited late.

The backward computes the gradients of the last layers first. As soon as all gradients of a bucket
are known, the bucket is sent, and the backward goes on; records that need an average come as late
as possible. So a bucket travels while the next gradients are computed, and a rank waits for the
last bucket only, which is small.

A collective that may travel has the attribute `early`: (its place in the order in which all ranks
start them, the bytes of the whole tensor, `bucket_mb`; see `sharding.buckets`). Ranks may hold
pieces of different sizes, so nothing else decides. The backward of `DataParallel` writes such
collectives, and so does `partition`.

Sources: Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training", 2020
(buckets); Paddle API `paddle.DataParallel`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ..core.op import OPS
from ..core.record import Record
from ..core.slots import slot
from ..ir.cut import has_effect
from ..ir.edit import substitute, users_of, with_records
from ..ir.program import Program, item_of
from ..sharding.buckets import LAST_MB, MB, assign_buckets
from .dead_code import dead_code
from .registry import program_pass


class Bucket(NamedTuple):
    """Collectives that travel together, in the order in which they start."""

    number: int
    members: list[Record]


@program_pass(
    "async_collectives",
    fuse_all_reduce_ops=(True, "off, each gradient travels alone"),
    fuse_grad_size_in_MB=(None, "how full a bucket may be, instead of what its gradients say"),
    overlap=(True, "off, nothing is computed while a bucket travels"),
)
def async_collectives(
    program: Program,
    *,
    fuse_all_reduce_ops: bool,
    fuse_grad_size_in_MB: float | None,
    overlap: bool,
) -> Program:
    """The program in which collectives that may start early do."""
    if not any(map(travels, program.records)):
        return program
    program = dead_code(program)
    program = replace(program, records=hoist_gradients(program))
    bucket_mb = fuse_grad_size_in_MB if fuse_all_reduce_ops else 0
    return insert_all_reduces(program, buckets(program, bucket_mb), overlap)


def travels(record: Record) -> bool:
    """Whether a record is a collective that may start early."""
    return record.op.effect and record.attrs.get("early") is not None


def buckets(program: Program, bucket_mb: float | None = None) -> list[Bucket]:
    """The collectives of a program that travel, in buckets, in the order in which they start. A
    bucket is full at `bucket_mb`, or at the size that its members name.
    """
    collectives = sorted(filter(travels, program.records), key=place_of)
    alike: dict[tuple, list[Record]] = {}
    for record in collectives:
        alike.setdefault(kind_of(record), []).append(record)
    needed = first_needs(program)
    groups = [g for each in alike.values() for g in groups_of(each, needed, bucket_mb)]
    groups.sort(key=lambda members: place_of(members[-1]))
    return [Bucket(n, members) for n, members in enumerate(groups)]


def groups_of(members: list[Record], needed: dict, bucket_mb: float | None) -> list[list[Record]]:
    """Collectives of one kind as groups that travel together, each when its last member does: no
    collective before that may need one of them.
    """
    epochs, epoch, need = [], 0, LATEST
    for record in members:
        if need <= place_of(record):
            epoch, need = epoch + 1, LATEST
        need = min(need, needed[record])
        epochs.append(epoch)
    limits = [MB * bucket_mb_of(r, bucket_mb) for r in members]
    groups = assign_buckets([r.attrs["early"][1] for r in members], epochs, limits, LAST_MB * MB)
    return [[members[k] for k in group] for group in groups]


def place_of(record: Record) -> tuple | None:
    """The place of a collective in the order in which all ranks start them; None for others."""
    return record.attrs["early"][0] if travels(record) else None


def kind_of(record: Record) -> tuple:
    """The key of a bucket: collectives that travel together have it in common."""
    return record.op.name, record.attrs.get("op"), record.dtype, record.attrs["group"]


def bucket_mb_of(record: Record, bucket_mb: float | None) -> float:
    """The megabytes that a record may travel with. What waits for others to travel is whole."""
    name, most = record.op.name, record.attrs["early"][2]
    if bucket_mb is not None:
        most = bucket_mb if name == "all_reduce" else min(most, bucket_mb)
    return min(most, TOGETHER.get(name, most))


TOGETHER = {"all_gather": 1, "reduce_scatter": 1, "all_to_all": 0}
"""The most megabytes in a message. A megabyte takes much longer than the start of a message."""

LATEST = (float("inf"),)
"""A place after all others."""


def first_needs(program: Program) -> dict[Record, tuple]:
    """For each record the first place of a collective that is computed from it."""
    places: dict[Record, tuple] = {}
    for record in reversed(program.records):
        first = min(places.get(record, LATEST), place_of(record) or LATEST)
        for x in record.inputs:
            places[x] = min(places.get(x, LATEST), first)
    return {record: places.get(record, LATEST) for record in program.records}


def insert_all_reduces(program: Program, buckets: list[Bucket], overlap: bool = True) -> Program:
    """The program that sends each bucket as soon as its gradients are known, and computes what
    needs its averages after all that does not. What only updates states comes after all buckets: a
    rank may fail until then, and its states are whole, without copies.
    """
    required, writer = required_buckets(program, buckets), OverlapWriter(buckets, overlap)
    outputs = {*program.outputs}
    for record in reversed(program.records):
        if record in outputs or travels(record) or has_effect(record):
            outputs.update(record.inputs)
        else:
            required[record] = len(buckets) - 1
    for record in sorted(program.records, key=required.get):
        writer.fetch(required[record])
        writer.write(record)
    writer.fetch(len(buckets))
    return with_records(program, writer.records, writer.new)


@slot("async_collectives.hoist_gradients")
def hoist_gradients(program: Program) -> list[Record]:
    """The records in an order in which those that lead only to a gradient or two are computed as
    soon as their inputs are known. (An order that saves memory would compute them late.)
    """
    users, records = users_of(program), set(program.records)
    goals = goals_of(program, users)
    missing = {r: len(records.intersection(r.inputs)) for r in program.records}
    order: dict[Record, None] = {}

    def place(record: Record) -> None:
        order[record] = None
        for user in users.get(record, ()):
            missing[user] -= 1
            if not missing[user] and 0 < len(goals[user]) <= FEW:
                place(user)

    for record in program.records:
        if record not in order:
            place(record)
    return list(order)


def goals_of(program: Program, users) -> dict[Record, set]:
    """The collectives that each record leads to; MANY if to more than FEW, or elsewhere too."""
    goals: dict[Record, set] = {}
    results = set(program.results)
    for record in reversed(program.records):
        reached = {record} if travels(record) else set()
        for user in users.get(record, ()) if not reached else ():
            reached |= goals[user]
        if not travels(record) and (has_effect(record) or record in results):
            reached = reached | {*MANY}
        goals[record] = reached if len(reached) <= FEW else {*MANY}
    return goals


FEW = 2
"""A kernel often makes two gradients: those of a norm's scale and shift."""
MANY = range(FEW + 1)


@slot("async_collectives.required_buckets")
def required_buckets(program: Program, buckets: list[Bucket]) -> dict[Record, int]:
    """For each record the last bucket whose averages it needs, -1 if it needs none.

    A record with an effect waits for the same buckets as the effects before it.
    """
    bucket = {member: each.number for each in buckets for member in each.members}
    required, effect = {}, -1
    for record in program.records:
        needs = [bucket.get(r, required.get(r, -1)) for r in record.inputs]
        required[record] = max(needs, default=-1)
        if has_effect(record) and not travels(record):
            required[record] = effect = max(effect, required[record])
    return required


class OverlapWriter:
    """Builds the new program: each bucket leaves when it is full, and is fetched when needed."""

    def __init__(self, buckets: list[Bucket], overlap: bool):
        self.buckets, self.overlap = buckets, overlap
        self.of = {member: bucket for bucket in buckets for member in bucket.members}
        self.missing = [len(bucket.members) for bucket in buckets]
        self.started = 0  # how many buckets are on their way, or have come
        self.in_flight: dict[int, Record] = {}  # what starts a bucket, by number
        self.records: list[Record] = []
        self.new: dict[Record, Record] = {}  # what stands for an old record

    def write(self, record: Record) -> None:
        """Add a record of the old program; one that travels fills its bucket."""
        bucket = self.of.get(record)
        if bucket is None:
            self.records.append(substitute(record, self.new))
            return
        self.missing[bucket.number] -= 1
        while self.started < len(self.missing) and not self.missing[self.started]:
            self.start(self.buckets[self.started])
            self.started += 1

    def start(self, bucket: Bucket) -> None:
        """Send a bucket."""
        own = [self.new.get(x, x) for member in bucket.members for x in member.inputs]
        name, attrs = bucket.members[0].op.name, bucket.members[0].attrs
        kept = {k: v for k, v in attrs.items() if k not in ("early", "nranks")}
        start = "start_all_reduce" if name == "all_reduce" else "start_collective"
        kept |= {} if name == "all_reduce" else {"collective": name}
        self.in_flight[bucket.number] = self.add(bucket, start, own, kept)
        if not self.overlap:
            self.fetch(bucket.number)

    def fetch(self, last: int) -> None:
        """Wait for the buckets up to this one."""
        for number in sorted(k for k in self.in_flight if k <= last):
            bucket, start = self.buckets[number], self.in_flight.pop(number)
            first = bucket.members[0]
            attrs = {"shapes": tuple(m.shape for m in bucket.members), "dtype": first.dtype}
            if first.op.name == "all_gather":
                attrs["parts"] = first.attrs["nranks"]
            finish = start.op.name.replace("start", "finish")
            results = self.add(bucket, finish, [start], attrs)
            for k, member in enumerate(bucket.members):
                self.new[member] = item_of(results, k, None)
                self.records.append(self.new[member])

    def add(self, bucket: Bucket, name: str, inputs: list[Record], attrs: dict) -> Record:
        """Add a collective at the line of the bucket's last gradient. (Collectives are defined
        outside the engine, so they are found by name.)
        """
        spec = OPS[name].infer(*(r.spec for r in inputs), **attrs)
        self.records.append(bucket.members[-1].derive(OPS[name], inputs, attrs, spec))
        return self.records[-1]
