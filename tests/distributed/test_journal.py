"""A server's log on disks that fail: it has what was acknowledged, or the server says what not."""

import os
import struct
from collections import Counter
from itertools import islice
from zlib import crc32

import numpy as np
import pytest

from minipaddle.core.files import Disk
from minipaddle.distributed.ps import journal
from minipaddle.distributed.ps.journal import HEAD, Journal, places
from minipaddle.distributed.ps.server import RowServer
from tests.distributed.disk_faults import Wrong, restored, rounds, run_one
from tests.distributed.ps_conformance import config, ones

PUSHES = 4


@pytest.fixture
def log(tmp_path):
    """The log of a server with a table and some pushes."""
    server = restored(tmp_path, 1, Disk())
    ask(server, "create", config=config("async"))
    for k in range(1, PUSHES + 1):
        push(server, k)
    return tmp_path / "server_0.log.0"


def ask(server: RowServer, do: str, **request):
    return server.handle({"do": do, "table": "t", "worker": 0, **request}).result(0)


def push(server: RowServer, sequence: int):
    given = {"ids": np.arange(2), "rows": ones(2), "counts": np.ones(2, "int64"), "version": 0}
    return ask(server, "push", sequence=sequence, lr=1.0, **given)


def done(path) -> int:
    """The pushes that a server has, which is made of the folder of a log."""
    server = restored(path.parent, 1, Disk())
    found = server.tables["t"].done[0]
    assert server.tables["t"].read(np.arange(2)).tolist() == [[-found, -found]] * 2
    return found


def heads(path) -> list[int]:
    """The first byte of each record."""
    return [start - HEAD.size for start, _ in places(path.read_bytes())]


def change(path, place: int, data: bytes) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:place] + data + whole[place + len(data) :])


PARTS = {"mark": 0, "length": 4, "long length": 8, "sum of the head": 12, "sum": 16, "bytes": 300}


@pytest.mark.parametrize("record", [0, 2, PUSHES])
@pytest.mark.parametrize("part", PARTS)
def test_a_wrong_record_is_reported_and_kept(log, record, part):
    """With its file and byte, wherever it stands and whatever of it is wrong, at each start."""
    at, whole = heads(log)[record], log.read_bytes()
    change(log, at + PARTS[part], bytes([whole[at + PARTS[part]] ^ 0x10]))
    changed = log.read_bytes()
    for _ in range(2):
        with pytest.raises(ValueError, match=rf"{log} is damaged at byte {at}, after {record} "):
            restored(log.parent, 1, Disk())
        assert not log.exists()
        assert log.with_name(f"{log.name}.damaged").read_bytes() == changed
    log.write_bytes(whole)
    assert done(log) == PUSHES


@pytest.mark.parametrize("kept", ["", ".damaged"])
@pytest.mark.parametrize("size", [25, 300, None])
def test_a_log_without_marks_is_old_not_damaged(log, size, kept):
    """As it was written once: a record had its length, a sum of its bytes, and these. Its first
    record may have been cut off; an earlier start may have called it damaged.
    """
    records = [log.read_bytes()[start:stop] for start, stop in places(log.read_bytes())]
    heads = [struct.pack("<QI", len(each), crc32(each)) for each in records]
    old = b"".join(part for pair in zip(heads, records, strict=True) for part in pair)[:size]
    log.unlink()
    log = log.with_name(log.name + kept)
    log.write_bytes(old)
    for _ in range(2):
        with pytest.raises(ValueError, match=rf"{log} has an old format(?s:.*)save_persistables"):
            restored(log.parent, 1, Disk())
        assert os.listdir(log.parent) == [log.name]
        assert log.read_bytes() == old


def test_one_may_go_on_with_what_stands_before_the_damage(log):
    at = heads(log)[3]
    change(log, at + 30, b"?!")
    with pytest.raises(ValueError, match=f"the first {at} bytes of server_0.log.0.damaged"):
        restored(log.parent, 1, Disk())
    log.write_bytes(log.with_name(f"{log.name}.damaged").read_bytes()[:at])
    assert done(log) == 2


def test_a_record_elsewhere_is_no_record(log):
    """One that stands at another byte than it was written for, as in a block that was moved."""
    whole, at = log.read_bytes(), heads(log)
    assert at[3] - at[2] == at[4] - at[3]
    change(log, at[3], whole[at[2] : at[3]])
    with pytest.raises(ValueError, match=f"damaged at byte {at[3]}"):
        restored(log.parent, 1, Disk())


@pytest.mark.parametrize("zeros", [1, 19, 20, 511, 5000])
def test_zeros_at_the_end_are_an_end(log, zeros):
    whole = log.read_bytes()
    log.write_bytes(whole + bytes(zeros))
    assert done(log) == PUSHES
    assert log.read_bytes() == whole
    push(restored(log.parent, 1, Disk()), PUSHES + 1)
    assert done(log) == PUSHES + 1


@pytest.mark.parametrize("left", [1, 19, 20, 21, 500])
def test_a_record_that_was_cut_off_is_an_end(log, left):
    at = heads(log)[-1]
    log.write_bytes(log.read_bytes()[: at + left])
    assert done(log) == PUSHES - 1
    assert log.stat().st_size == at


def test_a_hole_in_the_last_record_is_said_and_kept(log):
    """A power cut wrote the second block of a record and not its first."""
    at = heads(log)[-1]
    change(log, at, bytes(512 - at % 512))
    changed = log.read_bytes()
    with pytest.warns(UserWarning, match=rf"{log}: the record at byte {at} was not acknowledged"):
        assert done(log) == PUSHES - 1
    assert log.with_name(f"{log.name}.damaged").read_bytes() == changed
    assert done(log) == PUSHES - 1


def test_a_log_that_is_gone_is_missed(log):
    server = restored(log.parent, 1, Disk())
    ask(server, "push", sequence=1, ids=None, rows=None)  # came before: acknowledged again
    server.snapshot()
    server.journal.close()
    (after,) = server.journal.logs().values()
    assert after.name == "server_0.log.1"
    after.unlink()
    with pytest.raises(ValueError, match=r"server_0\.log\.1 is not there(?s:.*)server_0.snapshot"):
        restored(log.parent, 1, Disk())
    after.write_bytes(b"")
    (log.parent / "server_0.snapshot").unlink()
    with pytest.raises(ValueError, match=r"server_0\.log\.0 is not there(?s:.*)another folder"):
        restored(log.parent, 1, Disk())


def test_an_interrupted_push_breaks_nothing(log):
    """As by Ctrl-C, in the middle of a record."""

    class Interrupted(Disk):
        often = 1

        def write(self, file, data):
            if self.often and len(data) > 100:
                self.often = 0
                super().write(file, data[:50])
                raise KeyboardInterrupt
            super().write(file, data)

    disk = Interrupted()
    disk.often = 0
    server = restored(log.parent, 1, disk)
    disk.often = 1
    with pytest.raises(KeyboardInterrupt):
        push(server, PUSHES + 1)
    for k in (1, 2):
        push(server, PUSHES + k)
    assert done(log) == PUSHES + 2


def test_a_push_waits_for_the_disk_unless_it_is_told_not_to(tmp_path, monkeypatch):
    class Counting(Disk):
        synced = 0

        def sync(self, file):
            self.synced += 1
            super().sync(file)

    for number, (asked, expected) in enumerate({"1": 3, "0": 0}.items()):
        monkeypatch.setenv("MINIPADDLE_PS_FSYNC", asked)
        disk = Counting()
        server = restored(tmp_path / str(number), 1, disk)
        before = disk.synced
        ask(server, "create", config=config("async"))
        push(server, 1)
        push(server, 2)
        assert disk.synced - before == expected


def test_what_a_dead_process_left_is_removed(log):
    for name in (log.name, "server_0.snapshot"):
        log.with_name(f".{name}.0123abcd.part").write_bytes(b"half a file")
    assert done(log) == PUSHES
    assert os.listdir(log.parent) == [log.name]


def test_faults_at_every_call():
    """Some of the rounds of `python -m tests.distributed.disk_faults --rounds 10000`."""
    seen = Counter()
    for seed, plan in islice(rounds(), 0, 1800, 29):
        run_one(seed, plan, seen)
    assert all(seen[fault] > 5 for fault in ("cut", "kill", "full", "eio"))
    assert seen["flipped bits: refused"] > 50


def does_not_wait(patch):
    patch.setattr(Journal, "settle", lambda self: setattr(self, "broken", False))


def trusts_a_broken_log(patch):
    patch.setattr(Journal, "is_due", lambda self: self.size > journal.LEAST)


def leaves_half_a_record(patch):
    patch.setattr("tests.distributed.disk_faults.FaultyDisk.truncate", lambda *_: None)


def forgets_the_folder(patch):
    patch.setattr(Journal, "prepare", lambda self: None)


@pytest.mark.parametrize(
    "fault", [does_not_wait, trusts_a_broken_log, leaves_half_a_record, forgets_the_folder]
)
def test_the_rounds_find_a_server_that_loses_pushes(fault, monkeypatch):
    fault(monkeypatch)
    with pytest.raises((Wrong, ValueError)):
        run_many(400)


def run_many(count: int) -> None:
    for seed, plan in islice(rounds(), count):
        run_one(seed, plan, Counter())
