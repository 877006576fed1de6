"""Checks of 19_less_memory/reshard."""

import tempfile
from itertools import product

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Reshard a checkpoint: rows that two boxes have in common",
    level="medium",
    minutes=35,
    slots={
        "checkpoint.intersect": "intersect",
        "checkpoint.index_within": "index_within",
        "checkpoint.assemble": "assemble",
    },
    hints=(
        "On one axis: rows 2 to 5, and rows 4 to 9. Where does what they share begin, and where "
        "does it end? When is there nothing?",
        "What two boxes have in common stands at two places: in the array that is read, and in the "
        "array that is made. `index_within` gives the index in both, with another `outer`.",
        "intersect: for each axis first = max of the firsts, end = min of the ends; None if "
        "first >= end on any; else (first, end - first)\n"
        "index_within: for each axis slice(start - first, start - first + rows)\n"
        "assemble: an empty array; for each piece that has something in common:\n"
        "    found[index_within(shared, box)] = rows(file, outer, index_within(shared, outer))",
    ),
    wrong={
        "the ends instead of the rows": "(first, end - first) → (first, end)",
        "boxes that touch have nothing in common, but a row": "first >= end → first > end",
        "one row too few": "first >= end → first >= end - 1",
        "never nothing": "return None → continue",
        "the larger of the two": "max(start, other), min(start + n, other + m) → "
                                 "min(start, other), max(start + n, other + m)",
        "from the first row of the tensor": "start - first → start",
        "an index that ends at the number of rows": "slice(k, k + n) → slice(k, n)",
        "the index in the file where the one in the array belongs": (
            "found[index_within(shared, box)] → found[index_within(shared, outer)]"
        ),
        "the whole piece of each file": (
            "rows(file, outer, index_within(shared, outer)) → "
            "rows(file, outer, index_within(outer, outer))[index_within(shared, outer)]"
        ),
        "each file is read, needed or not": (
            "shared = intersect(box, outer) → "
            "shared = intersect(box, outer); rows(file, outer, index_within(outer, outer))"
        ),
        "the first file alone": "pieces → pieces[:1]",
        "always float64": "np.empty([n for _, n in box], dtype) → np.empty([n for _, n in box])",
    },
    unkillable={
        "shared = intersect(box, outer) → shared = intersect(outer, box)": "what two boxes share",
        "for (start, n), (other, m) in zip(a, b, strict=True): → "
        "for (start, n), (other, m) in zip(b, a, strict=True):": "likewise",
    }
    | {
        line.replace("?", "True") + " → " + line.replace("?", "False"): "boxes of one tensor"
        for line in (
            "for (start, n), (other, m) in zip(a, b, strict=?):",
            "pairs = [(start - first, n) for (start, n), (first, _) in zip(box, outer, strict=?)]",
        )
    },
)  # fmt: skip

A, B = ((0, 4), (0, 3)), ((2, 4), (1, 2))


@exercise.example
def boxes_in_common(yours):
    """Overlapping, one in the other, touching, apart, empty, and without axes."""
    for a, b, expected in (
        (A, B, ((2, 2), (1, 2))),
        (((0, 8),), ((3, 2),), ((3, 2),)),
        (((0, 4),), ((4, 4),), None),
        (((0, 4),), ((3, 4),), ((3, 1),)),
        (((0, 2),), ((5, 2),), None),
        (((0, 4), (0, 2)), ((0, 4), (2, 2)), None),
        (((3, 0),), ((0, 9),), None),
        (((5, 0),), ((5, 0),), None),
        ((), (), ()),
    ):
        for x, y in ((a, b), (b, a)):
            expect(yours.intersect(x, y), expected, given={"a": x, "b": y})


@exercise.example
def where_a_box_stands(yours):
    """The index of a box within another one, from the other's first rows."""
    for box, outer, expected in (
        (((2, 2), (1, 2)), B, (slice(0, 2), slice(0, 2))),
        (((2, 2), (1, 2)), A, (slice(2, 4), slice(1, 3))),
        (((7, 1),), ((5, 4),), (slice(2, 3),)),
        ((), (), ()),
    ):
        expect(yours.index_within(box, outer), expected, given={"box": box, "outer": outer})


def cuts(n: int, parts: int) -> list:
    """(first row, rows) of the pieces of an axis, and a last one that may be empty."""
    each = -(-n // parts)
    return [(min(each * k, n), min(each, n - min(each * k, n))) for k in range(parts)]


def read(yours, whole, box, pieces):
    """What the reader's function gives, and {file: (how often it was asked, elements)}."""
    asked = {}
    held = {f: whole[tuple(slice(a, a + n) for a, n in outer)].copy() for f, outer in pieces}

    def rows(file, outer, index):
        expect(outer, dict(pieces)[file], given={"file": file}, why="the box of the file")
        times, elements = asked.get(file, (0, 0))
        part = held[file][index]
        asked[file] = times + 1, elements + part.size
        return part

    got = yours.assemble(box, whole.dtype, [*pieces], rows)
    same = all(np.array_equal(held[f], whole[tuple(slice(a, a + n) for a, n in outer)])
               for f, outer in pieces)  # fmt: skip
    expect_that(same, "what a file holds stays as it is")
    return got, asked


@exercise.example
def two_files(yours):
    """Rows 2, 3, 4 of eight, from files that have four each; of a scalar all there is."""
    whole = np.arange(8.0)
    pieces = [("a", ((0, 4),)), ("b", ((4, 4),))]
    got, asked = read(yours, whole, ((2, 3),), pieces)
    expect(got, whole[2:5], given="rows 2, 3, 4")
    expect(asked, {"a": (1, 2), "b": (1, 1)}, given="rows 2, 3, 4", why="what was read")
    small = whole * 1e-9
    got, _ = read(yours, small, ((2, 3),), pieces)
    expect(got, small[2:5], given="small numbers", atol=0)
    got, asked = read(yours, whole, ((6, 0),), pieces)
    expect((got.shape, asked), ((0,), {}), given="a box without rows")
    got, _ = read(yours, np.array(7.0), (), [("a", ())])
    expect(got, np.array(7.0), given="a tensor without axes")
    deep = np.arange(256.0).reshape([2] * 8)
    pieces = [(k, ((k, 1), *((0, 2),) * 7)) for k in range(2)]
    box = ((0, 2), *((1, 1),) * 7)
    got, _ = read(yours, deep, box, pieces)
    expect(got, deep[(slice(0, 2), *(slice(1, 2),) * 7)], given="a tensor with eight axes")


@exercise.property(
    shape=st.lists(st.integers(0, 7), min_size=1, max_size=3),
    seed=st.integers(0, 9999),
    dtype=st.sampled_from(["float32", "float64", "int64", "bool", "float16"]),
)
def any_mesh_to_any_other(yours, shape, seed, dtype):
    """Random cuts along all axes: every box, and no element read that is not needed."""
    draw = np.random.default_rng(seed)
    whole = draw.integers(0, 100, shape).astype(dtype)
    grids = [[cuts(n, int(draw.integers(1, 4))) for n in shape] for _ in range(2)]
    pieces = [
        (f"file {k}", box) for k, box in enumerate(product(*grids[0])) if all(n for _, n in box)
    ]
    for box in product(*grids[1]):
        given = {"box": box, "pieces": pieces}
        got, asked = read(yours, whole, box, pieces)
        expected = whole[tuple(slice(a, a + n) for a, n in box)]
        expect((got.dtype, got.shape), (expected.dtype, expected.shape), given=given)
        expect(got, expected, given=given)
        expect(sum(n for _, n in asked.values()), expected.size, given=given, why="elements read")
        expect_that(all(times == 1 for times, _ in asked.values()), "each file asked once",
                    given=given, got=asked)  # fmt: skip
        expect_that(not np.may_share_memory(got, whole), "a new array", given=given)


def held(ranks, placements, folder: str, save: bool):
    """Each rank's piece of a tensor [7, 6] that is saved, or loaded."""
    mesh = dist.ProcessMesh(ranks)
    value = np.arange(42, dtype="float32").reshape(7, 6)
    x = dist.shard_tensor(paddle.to_tensor(value if save else value * 0), mesh, placements)
    (dist.save_state_dict if save else dist.load_state_dict)({"x": x}, folder)
    return x._local_value().numpy()


@exercise.example
def four_ranks_to_three(yours):
    """A checkpoint of 2 by 2 ranks on three, which cut its columns, and on one."""
    value = np.arange(42, dtype="float32").reshape(7, 6)
    with tempfile.TemporaryDirectory() as folder:
        four = [[0, 1], [2, 3]], [dist.Shard(0), dist.Shard(1)], folder, True
        dist.spawn(held, args=four, nprocs=4, timeout=20.0)
        with exercise.plugged(yours):
            three = [0, 1, 2], [dist.Shard(1)], folder, False
            found = dist.spawn(held, args=three, nprocs=3, timeout=20.0).results
            alone = dist.spawn(held, args=([0], [], folder, False), nprocs=1, timeout=20.0).results
    for k, got in enumerate(found):
        expect(got, value[:, 2 * k : 2 * k + 2], given={"rank": k, "of": 3})
    expect(alone[0], value, given="one rank")
