"""What a server has on the disk: a snapshot, and a log of what was acknowledged since.

A request that changes the server is in the log before it is acknowledged. A server that dies is
made again from its snapshot and its log, and has all that any worker was told it has. A record
that the death cut off was not acknowledged: it is dropped, and its worker sends it again.

A log survives the death of a process. With `MINIPADDLE_PS_FSYNC=1` each record is brought to the
disk, so that it survives the machine's too, which costs the time of a disk for each push.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from ...core.files import replace
from ...engine.core.errors import value_error
from ...io.serialization import encode, load

LEAST = 1 << 24
"""Bytes of a log before the next snapshot; also at least those of the last snapshot."""


def decode(data: bytes):
    """The object that `encode` made bytes of."""
    return load(BytesIO(data))


class Journal:
    """The files of one server in `folder`."""

    def __init__(self, folder: str, index: int):
        self.folder, self.name = Path(folder), f"server_{index}"
        self.number, self.size, self.snapshot_size = 0, 0, 0
        self.file = None
        self.sync = os.environ.get("MINIPADDLE_PS_FSYNC") == "1"

    def log(self, number: int) -> Path:
        """The log that follows a snapshot; that which follows none has the number 0."""
        return self.folder / f"{self.name}.log.{number}"

    def restore(self) -> tuple[dict | None, Iterator[dict]]:
        """The last snapshot, None if there is none, and the requests of the log after it."""
        path, state = self.folder / f"{self.name}.snapshot", None
        if path.exists():
            state = load(path)
            self.number, self.snapshot_size = state["number"], path.stat().st_size
        return state, self.requests()

    def requests(self) -> Iterator[dict]:
        """The requests of the log. A record that is cut off is the last, and is removed."""
        path, whole = self.log(self.number), 0
        data = path.read_bytes() if path.exists() else b""
        while len(data) >= whole + 12:
            length = int.from_bytes(data[whole : whole + 8], "little")
            record = data[whole + 12 : whole + 12 + length]
            if len(record) < length:
                break
            if zlib.crc32(record) != int.from_bytes(data[whole + 8 : whole + 12], "little"):
                raise value_error(f"{path} is damaged at byte {whole}", hint="copy it back")
            yield decode(record)
            whole += 12 + length
        if whole < len(data):
            os.truncate(path, whole)
        self.open(whole)

    def open(self, size: int) -> None:
        """Append to the log from now on, which has `size` bytes."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.file, self.size = self.log(self.number).open("ab"), size

    def append(self, request: dict) -> None:
        """Add a request to the log. When this returns it may be acknowledged."""
        record = encode(request)
        head = len(record).to_bytes(8, "little") + zlib.crc32(record).to_bytes(4, "little")
        self.file.write(head + record)
        self.file.flush()
        if self.sync:
            os.fsync(self.file.fileno())
        self.size += len(head) + len(record)

    def is_long(self) -> bool:
        """Is it time for a snapshot? Then all snapshots together write no more than all logs."""
        return self.size > max(LEAST, self.snapshot_size)

    def snapshot(self, state: dict, waiting: list[dict]) -> None:
        """Write a snapshot, and begin a new log with the requests that it does not contain.

        Until the snapshot has its name the old one counts, with its log, which still is whole.
        """
        before, old = self.number, self.file
        self.number += 1
        self.log(self.number).unlink(missing_ok=True)
        self.open(0)
        for request in waiting:
            self.append(request)
        data = encode(state | {"number": self.number})
        replace({str(self.folder / f"{self.name}.snapshot"): data})
        self.snapshot_size = len(data)
        if old is not None:
            old.close()
            self.log(before).unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the log."""
        if self.file is not None:
            self.file.close()

    __del__ = close
