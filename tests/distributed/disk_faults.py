"""Power cuts and full disks at every write of a parameter server.

`python -m tests.distributed.disk_faults --rounds 10000` runs short jobs of pushes on a disk that
fails, once or twice in each, and at each of its calls in turn: the power goes, the process is
killed, the disk is full, an fsync fails. It starts the server again and asks for two things:

- every push that was acknowledged is there, and at most the one more that was on its way;
- the rows are the sum that closed forms give for exactly these pushes.

Then a bit of a file flips: the server refuses to start, with the file, or has the same rows.
"""

from __future__ import annotations

import argparse
import errno
import os
import random
import shutil
import sys
import tempfile
import warnings
from collections import Counter
from itertools import count
from pathlib import Path
from unittest import mock

import numpy as np

from minipaddle.core.files import Disk
from minipaddle.distributed.ps import journal
from minipaddle.distributed.ps.journal import Journal
from minipaddle.distributed.ps.server import RowServer
from tests.distributed.ps_conformance import config

BLOCK = 512
FAULTS = ("cut", "kill", "full", "eio")


class PowerCut(BaseException):
    """The machine has no power."""


class Killed(BaseException):
    """The process is gone; the system still has what it wrote."""


GONE = "gone"


class Inode:
    """A file: its bytes as the system sees them (`now`), those on the disk, what may be there of
    the versions that were written since, and blocks that an fsync failed to bring there.
    """

    def __init__(self):
        self.now, self.disk, self.versions, self.lost = b"", b"", [], {}

    def become(self, data: bytes, first: int) -> None:
        """Have other bytes from byte `first` on."""
        self.now = data
        self.lost = {k: block for k, block in self.lost.items() if k < first // BLOCK}
        self.versions.append(self.arriving())

    def arriving(self) -> bytes:
        """What a sync brings to the disk. Blocks that were lost are not written again."""
        data = bytearray(self.now)
        for k, block in self.lost.items():
            data[k * BLOCK : (k + 1) * BLOCK] = block
        return bytes(data[: len(self.now)])

    def arrive(self) -> None:
        """Be synced."""
        self.disk, self.versions = self.arriving(), []

    def fail(self, draw: random.Random) -> None:
        """An fsync fails: what is not on the disk now never comes, and the next one says nothing
        of it.
        """
        self.disk, self.versions = self.after_a_cut(draw), []
        for k in range(-(-len(self.now) // BLOCK)):
            block, there = (data[k * BLOCK :][:BLOCK] for data in (self.now, self.disk))
            if block != there:
                self.lost[k] = there.ljust(len(block), b"\0")

    def cut(self, draw: random.Random) -> None:
        """The power goes, and comes back."""
        self.now = self.disk = self.after_a_cut(draw)
        self.versions, self.lost = [], {}

    def after_a_cut(self, draw: random.Random) -> bytes:
        """The bytes that a power cut leaves: each block of any version, or zeros if it is new."""
        kinds = [self.disk, *self.versions]
        if draw.random() < 0.4:
            return draw.choice(kinds)
        sizes = sorted({len(v) for v in kinds})
        size = draw.choice([*sizes, draw.randint(sizes[0], sizes[-1])])
        parts = []
        for k in range(0, size, BLOCK):
            of = [v[k : k + BLOCK] for v in kinds] + [b""] * (k >= len(self.disk))
            parts.append(draw.choice(of).ljust(BLOCK, b"\0"))
        return b"".join(parts)[:size]


class File:
    """An open file of a `FaultyDisk`."""

    def __init__(self, real, inode: Inode):
        self.real, self.inode, self.close = real, inode, real.close

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class FaultyDisk(Disk):
    """A folder as the system sees it, and what of it is on a disk. `plan` says at which calls there
    is which fault.
    """

    def __init__(self, root: Path, draw: random.Random, plan: dict[int, str]):
        self.root, self.draw, self.plan, self.calls = str(root), draw, dict(plan), 0
        self.happened = Counter()
        self.names = {self.root: None}  # the inode of each path; None: a folder
        self.on_disk = dict(self.names)
        self.changes: list[tuple[str, dict]] = []  # (folder, names or GONE) that are not synced
        self.full, self.failing, self.dead = 0, False, None

    # ---- faults ------------------------------------------------------------------------------

    def call(self, act, partly=lambda: None) -> None:
        """Do what a call does, or what its fault leaves of it."""
        if self.dead:
            raise self.dead
        fault = self.plan.pop(self.calls, None)
        self.calls += 1
        if fault in ("cut", "kill"):
            self.happened[fault] += 1
            (act if self.draw.random() < 0.5 else partly)()
            self.dead = PowerCut() if fault == "cut" else Killed()
            raise self.dead
        if fault == "full":
            self.full = self.draw.randint(1, 6)
        self.failing |= fault == "eio"
        act()

    def need_room(self, often: float) -> None:
        """Raise the error of a full disk, if it is full."""
        if self.full and self.draw.random() < often:
            self.full -= 1
            self.happened["full"] += 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def need_luck(self) -> None:
        """Raise the error of a sync that fails."""
        if self.failing:
            self.failing = False
            self.happened["eio"] += 1
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def begin_again(self) -> None:
        """Another process, with room on the disk; after a power cut with what the disk has."""
        cut, self.dead = isinstance(self.dead, PowerCut), None
        self.full, self.failing = 0, False
        if cut:
            self.cut()

    def cut(self) -> None:
        """What was synced, and any part of the rest."""
        often, names = self.draw.choice([0.0, 0.5, 0.5, 1.0]), dict(self.on_disk)
        for _, change in self.changes:
            if self.draw.random() < often:
                names |= change
        self.names = {p: i for p, i in names.items() if i is not GONE and self.reached(p, names)}
        self.on_disk, self.changes = dict(self.names), []
        shutil.rmtree(self.root)
        for path, inode in sorted(self.names.items(), key=lambda pair: pair[0]):
            if inode is None:
                os.mkdir(path)
            else:
                inode.cut(self.draw)
                Path(path).write_bytes(inode.now)

    def reached(self, path: str, names: dict) -> bool:
        """Whether the folders that a path stands in are there."""
        above = os.path.dirname(path)
        return path == self.root or (names.get(above, GONE) is None and self.reached(above, names))

    def change(self, change: dict) -> None:
        """Change names of one folder, as the system sees them."""
        self.changes.append((os.path.dirname(next(iter(change))), change))
        self.names = {p: i for p, i in (self.names | change).items() if i is not GONE}

    # ---- calls -------------------------------------------------------------------------------

    def open(self, path, mode):
        def act():
            if str(path) not in self.names:
                self.need_room(0.3)
                Path(path).touch()
                self.change({str(path): Inode()})

        self.call(act)
        return File(open(path, mode.replace("x", "r+"), buffering=0), self.names[str(path)])

    def write(self, file, data):
        def some(size):
            file.real.write(data[:size])
            file.inode.become(file.inode.now + data[:size], len(file.inode.now))

        def act():
            try:
                self.need_room(1.0)
            except OSError:
                some(self.draw.randint(0, len(data)))
                raise
            some(len(data))

        self.call(act, lambda: some(self.draw.randint(0, len(data))))

    def truncate(self, file, size):
        def act():
            file.real.truncate(size)
            file.inode.become(file.inode.now[:size], size)

        self.call(act)

    def sync(self, file):
        def act():
            try:
                self.need_room(0.2)
                self.need_luck()
            except OSError:
                file.inode.fail(self.draw)
                raise
            file.inode.arrive()

        self.call(act)

    def replace(self, old, new):
        def act():
            self.need_room(0.2)
            os.replace(old, new)
            self.change({str(new): self.names[str(old)], str(old): GONE})

        self.call(act)

    def unlink(self, path):
        def act():
            os.unlink(path)
            self.change({str(path): GONE})

        self.call(act)

    def make_folder(self, path):
        path = str(path)
        if not os.path.isdir(path):
            self.make_folder(os.path.dirname(path))

            def act():
                self.need_room(0.2)
                os.mkdir(path)
                self.change({path: None})

            self.call(act)
            self.sync_folder(os.path.dirname(path))

    def sync_folder(self, folder):
        def act():
            self.need_luck()
            for above, change in self.changes:
                if above == str(folder):
                    self.on_disk |= change
            self.on_disk = {p: i for p, i in self.on_disk.items() if i is not GONE}
            self.changes = [c for c in self.changes if c[0] != str(folder)]

        if str(folder).startswith(self.root):
            self.call(act)


# ---- a job -----------------------------------------------------------------------------------

ROWS, TRIES = 6, 25


class Wrong(AssertionError):
    """What a server must not do."""


class Job:
    """Workers that push to one server; what they were told, and what the rows have to be."""

    def __init__(self, folder: Path, seed: int, plan: dict[int, str], pushes: int = 12):
        self.draw = random.Random(seed)
        self.mode = ("async", "geo", "sync")[seed % 3]
        self.workers = 1 + (seed // 3) % 2
        self.folder, self.pushes = folder / "jobs" / "one", pushes
        self.disk = FaultyDisk(folder, random.Random(f"{seed} {sorted(plan.items())}"), plan)
        self.server: RowServer | None = None
        self.created = False
        self.told = [0] * self.workers  # the acknowledged pushes of each worker
        self.tried = [0] * self.workers  # those that it has sent
        self.refusals: Counter = Counter()

    def push_of(self, worker: int, sequence: int) -> dict:
        """The arguments of a push: whole numbers, whose sums are exact."""
        draw = random.Random(f"{self.mode} {worker} {sequence}")
        ids = np.array(sorted(draw.sample(range(ROWS), draw.randint(1, 3))), "int64")
        rows = np.array([[draw.randint(-9, 9) * 2.0] * 2 for _ in ids])
        return {"ids": ids, "rows": rows, "counts": np.ones(len(ids), "int64"), "version": 0,
                "lr": 1.0}  # fmt: skip

    def expected(self, done: list[int]) -> np.ndarray:
        """The rows after so many pushes of each worker."""
        found = np.zeros((ROWS, 2))
        steps = [min(done)] * len(done) if self.mode == "sync" else done
        scale = {"geo": 1.0, "async": -1.0, "sync": -1.0 / self.workers}[self.mode]
        for worker, last in enumerate(steps):
            for sequence in range(1, last + 1):
                push = self.push_of(worker, sequence)
                found[push["ids"]] += scale * push["rows"]
        return found

    # ---- the server --------------------------------------------------------------------------

    def ask(self, do: str, **request):
        """The answer of the server, which is started, and started again when it died."""
        for _ in range(TRIES):
            try:
                self.start()
                return self.server.handle({"do": do, "table": "t", **request}).result(0)
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EIO) or not error.filename:
                    raise Wrong(f"an error without a file: {error!r}") from error
                self.refusals[error.errno] += 1
            except (PowerCut, Killed):
                self.server = None
                self.disk.begin_again()
        raise Wrong(f"{do} was refused {TRIES} times")

    def start(self) -> None:
        """Start the server, unless it runs, and look at what it has."""
        if self.server is None:
            self.server = restored(self.folder, self.workers, self.disk)
            self.check()

    def check(self) -> None:
        """Raise Wrong unless the server has what workers were told, and the rows of that."""
        table = self.server.tables.get("t")
        if table is None:
            if self.created:
                raise Wrong("the table is gone")
            return
        done = [table.done.get(w, 0) for w in range(self.workers)]
        for worker, (told, now, tried) in enumerate(zip(self.told, done, self.tried, strict=True)):
            if not told <= now <= tried:
                raise Wrong(f"worker {worker} was told of {told} pushes and sent {tried}: {now}")
        rows = table.read(np.arange(ROWS))
        if not np.array_equal(rows, self.expected(done)):
            raise Wrong(f"after {done} pushes the rows are {rows.tolist()}")
        self.told = done

    # ---- a run -------------------------------------------------------------------------------

    def run(self) -> None:
        """All pushes, then a fault without warning, then another start."""
        self.ask("create", config=config(self.mode, dtype="float64", rows=ROWS), worker=0)
        self.created = True
        while left := [w for w in range(self.workers) if self.told[w] < self.pushes]:
            worker = self.draw.choice(left)
            sequence = self.told[worker] + 1
            self.tried[worker] = sequence
            self.ask("push", worker=worker, sequence=sequence, **self.push_of(worker, sequence))
            self.told[worker] = max(self.told[worker], sequence)
        self.disk.dead = self.draw.choice([PowerCut, Killed])()
        self.server = None
        self.disk.begin_again()
        self.disk.plan = {}
        self.start()
        self.check()
        if self.told != [self.pushes] * self.workers:
            raise Wrong(f"{self.told} of {self.pushes} pushes at the end")

    def flip(self) -> str:
        """Flip a bit of a file, and say what the next start does: refuse, or have the same."""
        self.server = None
        path = self.draw.choice(sorted(p for p in self.folder.iterdir() if p.stat().st_size))
        data = bytearray(path.read_bytes())
        place = self.draw.randrange(len(data))
        data[place] ^= 1 << self.draw.randrange(8)
        path.write_bytes(data)
        try:
            self.server = restored(self.folder, self.workers, Disk())
        except ValueError as error:
            kept = Path(f"{path}.damaged")
            if str(path) not in str(error) or (".log." in path.name and not kept.exists()):
                raise Wrong(f"a flipped bit of {path} is not reported: {error}") from error
            return "refused"
        self.check()
        return "the same"


def restored(folder: Path, workers: int, disk: Disk) -> RowServer:
    """A server as its files say."""
    server = RowServer(0, 1, workers)
    server.restore(Journal(folder, 0, disk), anew=False)
    return server


def rounds():
    """(seed, plan) of each round: a fault of each kind at each call of a job, often with a second
    one soon after it.
    """
    for seed in count():
        for at in range(calls_of(seed)):
            for kind in FAULTS:
                draw = random.Random(f"{seed} {at} {kind}")
                plan = {at: kind}
                if draw.random() < 0.5:
                    plan[at + draw.randint(1, 25)] = draw.choice(FAULTS)
                yield seed, plan


def calls_of(seed: int) -> int:
    """The calls of a job without faults."""
    return run_one(seed, {}, Counter()).disk.calls


def run_one(seed: int, plan: dict[int, str], seen: Counter) -> Job:
    """One round."""
    kept = warnings.catch_warnings(record=True, action="always", category=UserWarning)
    with tempfile.TemporaryDirectory(dir=memory()) as work, kept as said:
        job = Job(Path(work) / "disk", seed, plan)
        os.mkdir(job.disk.root)
        with mock.patch.object(journal, "LEAST", job.draw.choice([1500, 4000, 1 << 24])):
            job.run()
        seen += job.disk.happened
        seen["errors that a worker was given"] += sum(job.refusals.values())
        seen["records with holes, which a warning named"] += len(said)
        seen[f"flipped bits: {job.flip()}"] += 1
        return job


def memory() -> str | None:
    """A folder in memory, where there is one."""
    return "/dev/shm" if os.path.isdir("/dev/shm") else None


def main() -> int:
    """Run rounds; print what happened, and each round that went wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=1000)
    wanted, seen, wrong = parser.parse_args().rounds, Counter(), 0
    for _, (seed, plan) in zip(range(wanted), rounds()):
        try:
            run_one(seed, plan, seen)
        except Exception as error:
            wrong += 1
            print(f"seed {seed}, plan {plan}: {type(error).__name__}: {error}", flush=True)
    print(f"{wanted:,} rounds, {wrong} wrong")
    for name, n in sorted(seen.items()):
        print(f"  {n:7,} {name}")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
