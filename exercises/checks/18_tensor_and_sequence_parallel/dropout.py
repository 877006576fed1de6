"""Checks of 18_tensor_and_sequence_parallel/dropout."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle.distributed import Replicate, Shard
from minipaddle.learn import Exercise, expect
from minipaddle.nn import functional as F

exercise = Exercise(
    title="Dropout: one mask, whatever the mesh",
    level="medium",
    minutes=30,
    before=("18_tensor_and_sequence_parallel/columns",),
    slots={"random.bits": "bits", "nn.drop": "drop"},
    hints=(
        "Two ranks have three columns each of [2, 6]. Which places, counted row by row in the "
        "whole, does the second rank need numbers for?",
        "What does a number depend on, if any rank can compute any of them? And which shape does "
        "draw_mask need so that each place has its own number?",
        "bits: scramble(index · GAMMA + base + GAMMA), all uint64\n"
        "drop: p = 1: zeros. shape = that of the whole, 1 on the axes that `axis` leaves out\n"
        "    mask as numbers of x's dtype; over 1 - p in upscale_in_train",
    ),
    wrong={
        "one number for all places": "index.astype(m.uint64) * GAMMA → index.astype(m.uint64) * 0",
        "numbers that know no draw": "base.astype(m.uint64) + GAMMA → GAMMA",
        "nothing mixed": "scramble(z + (base.astype(m.uint64) + GAMMA)) → "
                         "z + (base.astype(m.uint64) + GAMMA)",
        "the first place without a step": "base.astype(m.uint64) + GAMMA → base.astype(m.uint64)",
        "no scale": "mask * (1.0 / (1.0 - p)) if mode == 'upscale_in_train' else mask → mask",
        "always scaled": "mask * (1.0 / (1.0 - p)) if mode == 'upscale_in_train' else mask → "
                         "mask * (1.0 / (1.0 - p))",
        "the scale of what is dropped": "1.0 / (1.0 - p) → 1.0 / p",
        "kept with probability p": "draw_mask(shape, p) → draw_mask(shape, 1.0 - p)",
        "axes the other way round": "n if d in drawn else 1 → 1 if d in drawn else n",
        "no axes": "axis is not None → False",
        "nothing special about 1": "p == 1 → False",
    },
)  # fmt: skip


@exercise.mistake("a mask of the piece that a rank has")
def drop(x, p, axis, mode):
    if p == 1:
        return x * 0.0
    shape = getattr(x, "_local_shape", x.spec.shape)
    rows = -(-x.spec.shape[0] // shape[0]) if shape[0] else 1
    mask = draw_mask(shape, p).astype(x.spec.dtype)  # noqa: F821
    mask = paddle.concat([mask] * rows)[: x.spec.shape[0]]
    return x * (mask * (1.0 / (1.0 - p)) if mode == "upscale_in_train" else mask)


ALL = 2**64 - 1


def number(k: int, base: int) -> int:
    """SplitMix64 in Python's own numbers."""
    z = ((k + 1) * 0x9E3779B97F4A7C15 + base) & ALL
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & ALL
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & ALL
    return z ^ (z >> 31)


@exercise.property(
    places=st.lists(st.integers(0, 2**40), max_size=9),
    base=st.integers(-(2**63), 2**63 - 1),
)
def bits_of_places(yours, places, base):
    """The bits of any places of any draw, by whole numbers of Python."""
    index = np.array(places, "int64")
    got = yours.bits(np, index, np.array(base))
    expect(str(got.dtype), "uint64", given={"index": places}, why="dtype")
    expected = [number(k, base) for k in places]
    expect([int(v) for v in got], expected, given={"index": places, "base": base})
    expect([*map(int, index)], places, given={}, why="the places, which stay as they are")


@exercise.example
def places_as_a_rank_has_them(yours):
    """Some hundred places, every other one, backwards, or as a table whose columns were cut."""
    many = np.arange(600)
    for index in (many, many[::2], many[::-3], many.reshape(30, 20)[:, 7:19].T):
        kept = index.copy()
        got = yours.bits(np, index, np.array(-5))
        expect(got.shape, index.shape, given={"index": index.shape}, why="shape")
        expected = [number(k, -5) for k in kept.ravel().tolist()]
        right = got.ravel().tolist() == expected
        expect(right, True, given={"index": index}, why="all bits as they should be")
        expect(index, kept, given={}, why="the places, which stay as they are")


def masks(yours, x, p, axis=None, mode="upscale_in_train", static=False):
    """What dropout leaves in one process, after paddle.seed(3)."""
    paddle.seed(3)
    x = paddle.to_tensor(x)
    call = lambda x: F.dropout(x, p, axis=axis, mode=mode)
    with exercise.plugged(yours):
        return (paddle.jit.to_static(call) if static else call)(x).numpy()


def by_hand(x, p, axis, mode):
    """The same, number by number."""
    shape = [n if axis is None or d in axis else 1 for d, n in enumerate(x.shape)]
    paddle.seed(3)
    with_all = paddle.rand(shape).numpy() >= p
    return np.where(with_all, x / (1 - p) if mode == "upscale_in_train" else x, 0).astype(x.dtype)


def checked(yours, x, p, axis, mode):
    """Dropout of x is what numbers by hand say."""
    given = {"axis": axis, "mode": mode, "dtype": str(x.dtype), "p": p}
    axes = axis and [d % x.ndim for d in axis]
    got, right = masks(yours, x, p, axis, mode), by_hand(x, p, axes, mode)
    expect(got.dtype, x.dtype, given=given, why="dtype")
    expect(got, right, given=given, rtol=1e-12 if x.dtype == "float64" else 1e-5, atol=0)


MODES = ("upscale_in_train", "downscale_in_infer")


@exercise.example
def modes_and_dtypes(yours):
    """Scaled or not, float32 and float64; p = 1; no elements."""
    for dtype in ("float32", "float64"):
        x = np.random.default_rng(0).normal(size=(6, 5, 4)).astype(dtype) * 1e-6
        for mode in MODES:
            checked(yours, x, 0.3, None, mode)
            checked(yours, x, 0.75, None, mode)
            expect(masks(yours, x, 1.0, None, mode), x * 0, given={"p": 1.0, "mode": mode})
        expect(masks(yours, x[:0], 0.5), x[:0], given={"x": "no elements"})


@exercise.example
def axes(yours):
    """Whole rows, columns or blocks are dropped."""
    x = np.random.default_rng(0).normal(size=(6, 5, 4))
    for mode in MODES:
        for axis in ([0], [1], [0, 2], [-1]):
            checked(yours, x, 0.3, axis, mode)
    many = np.ones((1,) * 7 + (40, 3))
    for axes in ([7], [0, 8], [*range(8)]):
        right = by_hand(many, 0.5, axes, "upscale_in_train")
        expect(masks(yours, many, 0.5, axes), right, given={"shape": many.shape, "axis": axes})
    for n in (1, 5000):
        x = paddle.to_tensor(np.ones((n, 3)))
        paddle.seed(3)
        left = yours.drop(x, 0.5, None, "upscale_in_train").numpy()
        expect(x.numpy(), np.ones((n, 3)), given={"rows": n}, why="x, which stays as it is")
        expect(left, by_hand(np.ones((n, 3)), 0.5, None, "upscale_in_train"), given={"rows": n})
    expect(masks(yours, np.array([np.inf]), 1e-9), np.array([np.inf]), given={"x": "inf"})


@exercise.example
def the_mask_of_a_seed(yours):
    """Four places of the first draw of a seed, number by number; captured as well."""
    x = np.ones((3, 4), "float32")
    paddle.seed(3)
    expected = by_hand(x, 0.5, None, "upscale_in_train")
    for static in (False, True):
        got = masks(yours, x, 0.5, static=static)
        expect(got, expected, given={"captured": static})
    expect(len({*got.ravel()}), 2, given={}, why="some are kept, some are not")


def on_rank(x, placement, static):
    mesh = dist.ProcessMesh([*range(dist.get_world_size())])
    paddle.seed(3)
    call = lambda x: F.dropout(x, 0.5)
    call = paddle.jit.to_static(call) if static else call
    y = call(dist.shard_tensor(paddle.to_tensor(x), mesh, [placement]))
    return dist.unshard_dtensor(y).numpy()


@exercise.example
def one_mask_on_any_mesh(yours):
    """2 and 3 ranks, rows, columns or nothing in pieces: what one process drops."""
    x = np.arange(1, 36, dtype="float32").reshape(5, 7)
    expected = by_hand(x, 0.5, None, "upscale_in_train")
    ways = [(2, Shard(1), False), (2, Shard(1), True), (3, Shard(0), True), (2, Replicate(), False)]
    for ranks, placement, static in ways:
        with exercise.plugged(yours):
            args = x, placement, static
            found = dist.spawn(on_rank, args=args, nprocs=ranks, timeout=3.0).results
        given = {"ranks": ranks, "placement": placement, "captured": static}
        for got in found:
            expect(got, expected, given=given)
