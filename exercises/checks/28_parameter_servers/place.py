"""Checks of 28_parameter_servers/place."""

import numpy as np
from hypothesis import strategies as st

from minipaddle.distributed.ps.client import Client
from minipaddle.distributed.ps.threads import Threads
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Placement: which server has a row",
    level="easy",
    minutes=15,
    slots={"ps.place": "place"},
    hints=(
        "What does NumPy do with a product of two int64 that is too large, and with one of two "
        "uint64? What does `>>` do with the sign?",
        "`ids.astype('uint64')` is a copy, so you may change it in place: `z ^= z >> 30`. Python's "
        "large numbers mix with arrays of uint64.",
        "Five lines change z, then one returns the remainder as int64.",
    ),
    wrong={
        "not scrambled": "z % servers → ids % servers",
        "the sign is shifted in": "ids.astype('uint64') → ids.astype('int64')",
        "the ids are changed": "ids.astype('uint64') → ids.view('uint64')",
        "one product is missing": "z *= 0x94D049BB133111EB → pass",
        "the last mixing is missing": "z ^= z >> 31 → pass",
        "unsigned numbers": "(z % servers).astype('int64') → z % servers",
        "one server too many": "z % servers → z % (servers + 1)",
        "only 32 bits of the id": "ids.astype('uint64') → ids.astype('uint32').astype('uint64')",
        "the high bits": "z % servers → (z >> 32) % servers",
    },
)

MASK = 2**64 - 1


def by_hand(row: int, servers: int) -> int:
    """The same with Python's numbers, one by one."""
    z = row
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return (z ^ z >> 31) % servers


def check(yours, ids, servers):
    before = ids.copy()
    got = yours.place(ids, servers)
    expected = np.array([by_hand(int(row), servers) for row in before], "int64")
    given = {"ids": before, "servers": servers}
    expect(got, expected, given=given)
    expect(got.dtype.name, "int64", given=given, why="the dtype")
    expect(ids, before, why="the ids stay as they are")


@exercise.example
def in_the_task(yours):
    """[0, 1, 2, 3, 4, 5] on 4 servers."""
    got = yours.place(np.arange(6), 4)
    expect(got, np.array([0, 1, 2, 0, 0, 0]), given={"ids": np.arange(6), "servers": 4})


@exercise.example
def large_empty_and_small_dtypes(yours):
    """Ids up to 2⁶³ - 1, none at all, other dtypes, every second element."""
    for ids in (
        np.array([2**63 - 1, 2**62, 2**40 + 1, 2**32]),
        np.array([], "int64"),
        np.array([7, 200], "uint8"),
        np.array([5, 70_000], "int32"),
        np.array([2**63 - 1, 3], "uint64"),
        np.arange(20)[::-3],
    ):
        for servers in (1, 2, 5):
            check(yours, ids, servers)


@exercise.property(ids=st.lists(st.integers(0, 2**63 - 1), max_size=20), servers=st.integers(1, 9))
def as_python_s_numbers_say(yours, ids, servers):
    """Any ids, in any order, twice or once."""
    check(yours, np.array(ids, "int64"), servers)


@exercise.example
def rows_are_spread(yours):
    """All even rows, or all multiples of the number of servers: each server has its share."""
    for step in (1, 2, 3, 64):
        counts = np.bincount(yours.place(np.arange(3000) * step, 3), minlength=3)
        even = len(counts) == 3 and counts.min() > 850
        expect_that(even, "about a third on each server", given={"step": step}, got=counts)


@exercise.example
def workers_find_what_they_wrote(yours):
    """A table on three servers by your placement: each row is where it is looked for."""
    config = {
        "rows": 10**9, "width": 2, "dtype": "float32", "recipe": ["constant", 0.0], "base": 0,
        "optimizer": {"kind": "SGD", "options": {}, "decay": None}, "factor": 1.0, "entry": None,
        "mode": "async",
    }  # fmt: skip
    ids = np.random.default_rng(0).integers(0, 10**9, 300)
    with exercise.plugged(yours):
        client = Client(Threads(3))
        client.create("t", config)
        rows = np.arange(600.0, dtype="float32").reshape(300, 2)
        client.write("t", ids, rows)
        expect(client.pull("t", ids[::-1]), rows[::-1])
        sizes = [r["rows"]["t"] for r in client.report()]
    expect([*np.bincount([by_hand(int(i), 3) for i in ids])], sizes, why="rows on each server")
