"""A server's files: a snapshot, and a log of what was acknowledged since.

A request that changes the server is in the log, and the log on the disk, before it is acknowledged.
A server that dies, or whose machine loses its power, is made again from its snapshot and its log,
and has all that any worker was told it has. (`MINIPADDLE_PS_FSYNC=0` saves a disk's time for each
push: then a log survives the death of the process, and not the death of the machine.)

A record of a log is a mark, the length, two sums, and the bytes. The first sum is of the record's
place in the file and its length, the second of the bytes too. Where a record is wrong,

- nothing but zeros, or less than the record's length, is the end: the record was being written when
  the process or the power went, nobody was told that it is there, and its worker sends it again;
- another record after it says that it was acknowledged: the log is damaged;
- a block of zeros in it is a block that a power cut kept from the disk: this is the end too, with a
  warning, and a copy of the log is kept;
- without one the bytes were written and have changed: the log is damaged.

A damaged log is kept as `.damaged`, and the server does not start without those records. One of a
MiniPaddle whose records had no mark is refused, and stays as it is.
"""

import errno
import os
import re
import struct
import warnings
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from zlib import crc32

from ...core.files import DISK, Disk, replace, waiting
from ...engine.core.errors import teach, value_error
from ...io.serialization import encode, load

LEAST = 1 << 24
"""Bytes of a log before the next snapshot; also at least the bytes of the last snapshot."""
HEAD = struct.Struct("<4sQII")
MARK, END = b"\x8fPS\n", b"\x8f"
"""The first bytes of a record and its last one, which are not zero."""
BLOCK = 512
"""The bytes that a disk writes whole or not at all."""


OLD = 12, b'{"__metadata__"'
"""Of a log without marks: the bytes of a head, and what each record has 8 bytes after it."""


def decode(data: bytes):
    """Decode the bytes of `encode` to an object."""
    return load(BytesIO(data))


def frame(request: dict, at: int) -> bytes:
    """The record of a request at byte `at` of a log."""
    data = encode(request) + END
    first = crc32(struct.pack("<QQ", at, len(data)))
    return HEAD.pack(MARK, len(data), first, crc32(data, first)) + data


def length_at(log: bytes, at: int) -> int | None:
    """The length in the head of a record at byte `at`; None if there is no head."""
    if at + HEAD.size > len(log):
        return None
    mark, length, first, _ = HEAD.unpack_from(log, at)
    return length if mark == MARK and first == crc32(struct.pack("<QQ", at, length)) else None


def places(log: bytes) -> list[tuple[int, int]]:
    """The first and last byte of each record, as far as the records are complete."""
    records, at = [], 0
    while (length := length_at(log, at)) is not None:
        start, stop = at + HEAD.size, at + HEAD.size + length
        *_, first, total = HEAD.unpack_from(log, at)
        if stop > len(log) or crc32(memoryview(log)[start:stop], first) != total:
            break
        records.append((start, stop - len(END)))
        at = stop
    return records


def is_end(log: bytes, at: int) -> bool:
    """Whether the log ends at byte `at`, with nothing or with an incomplete record."""
    length, size = length_at(log, at), len(log) - at - HEAD.size
    return not log[at:].strip(b"\0") or size < (length or 0)


def goes_on(log: bytes, at: int) -> bool:
    """Whether another record begins after byte `at`."""
    while (at := log.find(MARK, at + 1)) >= 0:
        if length_at(log, at) is not None:
            return True
    return False


def has_holes(log: bytes, at: int) -> bool:
    """Whether a block, or its part after byte `at`, is zeros alone."""
    starts = range(at // BLOCK * BLOCK, len(log), BLOCK)
    return any(not log[max(k, at) : k + BLOCK].strip(b"\0") for k in starts)


class Journal:
    """The files of one server in `folder`."""

    def __init__(self, folder: str, index: int, disk: Disk = DISK):
        self.folder, self.name, self.disk = Path(folder).absolute(), f"server_{index}", disk
        self.snapshot_path = self.folder / f"{self.name}.snapshot"
        self.number, self.size, self.snapshot_size = 0, 0, 0
        self.file, self.broken = None, False
        self.sync = os.environ.get("MINIPADDLE_PS_FSYNC") != "0"

    def log(self, number: int) -> Path:
        """The log after a snapshot; without a snapshot it has the number 0."""
        return self.folder / f"{self.name}.log.{number}"

    def logs(self) -> dict[int, Path]:
        """The existing logs, by their numbers."""
        name = re.compile(re.escape(self.name) + r"\.log\.(\d+)")
        names = os.listdir(self.folder) if self.folder.is_dir() else []
        return {int(m[1]): self.folder / m[0] for m in map(name.fullmatch, names) if m}

    # ---- from the disk -----------------------------------------------------------------------

    def restore(self) -> tuple[dict | None, Iterator[dict]]:
        """Restore the last snapshot, None if there is none, and the requests of the log after it.

        Raises ValueError that names file and byte if one of them is damaged or not there.
        """
        state = None
        self.prepare()
        if self.snapshot_path.exists():
            state = load(self.snapshot_path)
            self.number, self.snapshot_size = state["number"], self.snapshot_path.stat().st_size
        path = self.log(self.number)
        log = self.read(path, state is None)
        records = places(log)
        size = records[-1][1] + len(END) if records else 0
        if not is_end(log, size):
            self.judge(path, log, size, len(records))
        replace({str(path): log[:size]}, self.disk)  # what was read is on the disk from now on
        for left in waiting(self.snapshot_path) + waiting(path):
            self.disk.unlink(left)
        self.open(size)
        return state, (decode(log[start:stop]) for start, stop in records)

    def prepare(self) -> None:
        """Bring the folder to the disk. The process that made it may have died before its name was
        there, or that of a folder above.
        """
        try:
            self.disk.make_folder(str(self.folder))
            for folder in self.folder.parents:
                try:
                    self.disk.sync_folder(str(folder))
                except OSError as error:  # others: it is not ours to sync
                    if error.errno == errno.EIO:
                        raise
        except OSError as error:
            what = f"{error.strerror}: the server cannot keep its files in this folder"
            raise OSError(error.errno, what, str(self.folder)) from error

    def read(self, path: Path, first: bool) -> bytes:
        """Read the bytes of the log; none if it is the first one of a new server."""
        kept = Path(f"{path}.damaged")
        if path.exists():
            return require_marks(path)
        if kept.exists():
            log = require_marks(kept)
            spans = places(log)
            end = spans[-1][1] + len(END) if spans else 0
            raise build_damage_error(path, end, len(spans))
        if first and not self.logs():
            return b""
        raise value_error(
            f"{path} is not there, which has what was acknowledged after "
            f"{'the start' if first else self.snapshot_path.name}",
            hint=f"copy it back, or begin in another folder: {self.folder} is a server's",
        )

    def judge(self, path: Path, log: bytes, at: int, complete: int) -> None:
        """Keep a log in which the record at byte `at` is wrong, and raise ValueError if it may have
        been acknowledged.
        """
        kept = f"{path}.damaged"
        if goes_on(log, at) or not has_holes(log, at):
            self.disk.replace(str(path), kept)
            self.disk.sync_folder(str(self.folder))
            raise build_damage_error(path, at, complete)
        replace({kept: log}, self.disk)
        warnings.warn(
            f"{path}: the record at byte {at} was not acknowledged: a power cut kept parts of it "
            f"from the disk. It is left out ({kept} has it).",
            stacklevel=2,
        )

    def open(self, size: int) -> None:
        """Append to the log from now on, which has `size` bytes."""
        self.file, self.size = self.disk.open(self.log(self.number), "ab"), size

    # ---- to the disk -------------------------------------------------------------------------

    def append(self, request: dict) -> None:
        """Add a request to the log. When this returns it may be acknowledged. Raises OSError that
        says that it may not.
        """
        record = frame(request, self.size)
        self.broken = True  # until the whole record is there, or nothing of it
        try:
            self.add(record)
        except OSError as error:
            raise build_unwritten_error(error, self.log(self.number)) from error
        self.size += len(record)

    def add(self, record: bytes) -> None:
        """Bring a record to the disk; after a write error, as on a full disk, nothing of it.

        After an error in syncing nobody knows what of the file is on the disk, and another `sync`
        says nothing: the log stays broken, and a snapshot has to follow.
        """
        try:
            self.disk.write(self.file, record)
        except OSError:
            self.disk.truncate(self.file, self.size)
            self.settle()
            raise
        self.settle()

    def settle(self) -> None:
        """Bring the log to the disk, in order again."""
        if self.sync:
            self.disk.sync(self.file)
        self.broken = False

    def is_due(self) -> bool:
        """Is a snapshot due? The log is broken, or long: then all snapshots together write
        no more than all logs.
        """
        return self.broken or self.size > max(LEAST, self.snapshot_size)

    def snapshot(self, state: dict, waiting: list[dict]) -> None:
        """Write a snapshot, and begin a new log with the requests that it does not contain.

        Until the snapshot has its name the old one counts, with its log. If there is an error, one
        of both counts, but not which: the log is broken until another snapshot has a new number.
        """
        self.broken, number, log = True, max({self.number, *self.logs()}) + 1, b""
        for request in waiting:
            log += frame(request, len(log))
        data = encode(state | {"number": number})
        try:
            replace({str(self.log(number)): log}, self.disk)
            replace({str(self.snapshot_path): data}, self.disk)
            self.close()
            self.number, self.snapshot_size = number, len(data)
            self.open(len(log))
        except OSError as error:
            raise build_unwritten_error(error, self.snapshot_path) from error
        self.broken = False
        for other, path in self.logs().items():
            if other != number:
                with suppress(OSError):
                    self.disk.unlink(path)

    def close(self) -> None:
        """Close the log."""
        if self.file is not None:
            self.file.close()

    __del__ = close


def require_marks(path: Path) -> bytes:
    """Return the bytes of a log; ValueError if its records have no marks."""
    log, (head, mark) = path.read_bytes(), OLD
    if len(log) > head + 8 and mark.startswith(log[head + 8 :][: len(mark)]):
        raise value_error(
            f"{path} has an old format. It is left as it is",
            expected="records with marks, as MiniPaddle writes them now",
            hint="with the MiniPaddle that wrote it, start the servers on this folder and call "
            "fleet.save_persistables(None, other_folder); then begin in the other folder",
        )
    return log


def build_damage_error(path: Path, at: int, complete: int) -> ValueError:
    """Build the error of a log that is kept as `.damaged`."""
    return value_error(
        f"{path} is damaged at byte {at}, after {complete} whole records. It is kept as "
        f"{path.name}.damaged",
        expected="the record that was written there: it may have been acknowledged",
        hint=f"copy the log back from another disk; to go on without that record and those after "
        f"it, give the first {at} bytes of {path.name}.damaged the name {path.name}",
    )


def build_unwritten_error(error: OSError, path: Path) -> OSError:
    """Build the error of a request that is not in the log, for its worker."""
    what = teach(
        f"{error.strerror}: the server cannot write {path.name}. This request is not acknowledged; "
        "those before it are",
        hint=f"make room on the disk of {path.parent}, and send it again",
    )
    return OSError(error.errno, what, str(path))
