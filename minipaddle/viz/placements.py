"""A tensor as a grid for each rank, coloured where the rank has it, before and after moves."""

from fractions import Fraction
from itertools import product
from math import prod

from ..core.prelude import dt, value_error
from ..engine.core import slots
from ..engine.sharding.moves import cost_of_move, steps_between
from ..engine.sharding.placements import Placements, ProcessMesh, piece_of
from .chart import Bar, Panel, Picture, PolyLine, chart
from .style import bytes_text, count

COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#000000"]
"""Of the ranks, in turn (Okabe and Ito's)."""
MOST = 8, 64
"""Ranks, and elements along an axis, that a picture shows."""


def placements(shape, mesh: ProcessMesh, *ways, dtype="float32") -> Picture:
    """A tensor's placements on a mesh: a line of grids for each of `ways`, a grid for each rank.

    shape: of the whole, one or two axes; ways: lists of placements, one for each axis of the mesh

    A rank's elements have its colour; they are hatched where it holds a term of a sum (`Partial`).
    Between two ways stand the collectives of the move from one to the other, and the bytes that
    each rank receives, on average. Raises ValueError for what is too large to be shown.

    >>> import minipaddle.distributed as dist
    >>> from minipaddle import viz
    >>> mesh = dist.ProcessMesh([0, 1], dim_names=["x"])
    >>> print(viz.placements([4, 6], mesh, [dist.Partial()], [dist.Shard(1)], [dist.Replicate()]))
    float32[4, 6] on 2 ranks
    [Partial(reduce_type=SUM)]: terms of [0:4, 0:6] in rank 0, 1
      reduce_scatter along x: 48 B
    [Shard(dim=1)]: [0:4, 0:3] in rank 0; [0:4, 3:6] in rank 1
      all_gather along x: 48 B
    [Replicate()]: [0:4, 0:6] in rank 0, 1
    """
    shape, ranks = tuple(shape), mesh.process_ids
    if not 1 <= len(shape) <= 2 or max(shape) > MOST[1] or len(ranks) > MOST[0]:
        what = f"a picture of {list(shape)} on {count(len(ranks), 'rank')}"
        expected = f"one or two axes of at most {MOST[1]} elements, at most {MOST[0]} ranks"
        raise value_error(what, expected=expected)
    kind = dt.resolve(dtype)
    lines = [f"{kind.name}{list(shape)} on {count(len(ranks), 'rank')}"]
    panels = []
    for k, way in enumerate(ways):
        title = f"{[*way]}"
        if k:
            steps = [*moves(prod(shape) * kind.itemsize, ways[k - 1], way, mesh)]
            lines += [f"  {each}" for each in steps]
            title = f"after {', '.join(steps)}: {title}" if steps else title
        lines.append(f"{[*way]}: {describe(shape, way, mesh)}")
        for n, (rank, coordinate) in enumerate(zip(ranks, product(*map(range, mesh.shape)))):
            above = "" if n else f"{title}\n"
            piece = piece_of(shape, way, mesh.shape, coordinate)
            panels.append(draw_grid(shape, way, piece, rank)._replace(title=f"{above}rank {rank}"))
    size = 1.5 * len(ranks), 1.5 * len(ways)
    return chart(size, panels, "\n".join(lines), columns=len(ranks), layout="none",
                 gridspec_kw={"hspace": 0.6})  # fmt: skip


def moves(nbytes: int, before: Placements, after: Placements, mesh: ProcessMesh):
    """The collectives of a move, one after the other, in words."""
    now = tuple(before)
    _, steps = steps_between(nbytes, now, tuple(after), tuple(mesh.shape), slots.epoch)
    for axis, new in steps:
        size = Fraction(nbytes)
        for other, (placement, parts) in enumerate(zip(now, mesh.shape)):
            if other != axis and placement.is_shard():
                size /= parts
        cost = cost_of_move(size, mesh.shape[axis], now[axis], new)
        name = f"{collective(now[axis], new)} along {mesh.dim_names[axis]}"
        yield f"{name}: {bytes_text(round(cost))}"
        now = (*now[:axis], new, *now[axis + 1 :])


def collective(before, after) -> str:
    """The collective that moves a tensor from one placement on a mesh axis to another."""
    if before.is_replicated():
        return "a slice" if after.is_shard() else "zeros"
    if before.is_partial():
        return "all_reduce" if after.is_replicated() else "reduce_scatter"
    return "all_gather" if after.is_replicated() else "all_to_all"


def describe(shape: tuple, way: Placements, mesh: ProcessMesh) -> str:
    """Which rank has what, in words."""
    held: dict[str, list[str]] = {}
    for rank, coordinate in zip(mesh.process_ids, product(*map(range, mesh.shape))):
        piece = piece_of(shape, way, mesh.shape, coordinate)
        text = ", ".join(f"{start}:{start + n}" for start, n in piece)
        held.setdefault(f"[{text}]", []).append(str(rank))
    terms = "terms of " * any(p.is_partial() for p in way)
    return "; ".join(f"{terms}{what} in rank {', '.join(who)}" for what, who in held.items())


def draw_grid(shape: tuple, way: Placements, piece, rank: int) -> Panel:
    """The grid of a rank."""
    (top, high), (left, wide) = ((0, 1), *piece)[-2:]
    rows, columns = ((1, *shape))[-2:]
    hatch = "///" if any(p.is_partial() for p in way) else None
    look = {"hatch": hatch, "alpha": 0.75, "edgecolor": "black"}
    bar = Bar(left, top, wide, high, COLOURS[rank % len(COLOURS)], look=look)
    lines = [PolyLine((0, columns), (row, row), "#c8c8c8", THIN) for row in range(rows + 1)]
    lines += [PolyLine((k, k), (0, rows), "#c8c8c8", THIN) for k in range(columns + 1)]
    axes = {"xlim": (-0.1, columns + 0.1), "ylim": (rows + 0.1, -0.1), "xticks": []}
    return Panel([bar], "", (), lines, axes | {"aspect": "equal"})


THIN = {"linewidth": 0.5}
