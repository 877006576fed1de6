"""Checks of 27_all_together/coordinates."""

from math import prod

import numpy as np
from hypothesis import strategies as st

import minipaddle.distributed as dist
from minipaddle.distributed import fleet
from minipaddle.distributed.planner import Layout
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Rank layout: where each rank stands in the grid",
    level="easy",
    minutes=15,
    slots={"planner.coordinates": "coordinates"},
    hints=(
        "How do you get the hours, minutes and seconds of a number of seconds?",
        "Go through the axes from the last one. The remainder is the place along that axis, the "
        "quotient the number of the line: for the axes before it, that is the rank.",
        "for each n of sizes, the last one first:\n    the place along it is rank % n\n"
        "    go on with rank // n\nwhat is left must be 0; the places are in reversed order",
    ),
    wrong={
        "the first axis varies fastest": ("reversed(sizes) → sizes", "reversed(place) → place"),
        "sizes from the first on": "reversed(sizes) → sizes",
        "places from the last on": "reversed(place) → place",
        "the quotient for the place": "place.append(rest % n) → place.append(rest // n)",
        "the rank stays": "rest //= n → pass",
        "any rank is taken": "rest != 0 → False",
        "ranks below 0": "rest != 0 → rest > 0",
        "ranks above": "rest != 0 → rest < 0",
        "a place too far": "place.append(rest % n) → place.append(rest % n + 1)",
    },
)


@exercise.mistake("rank 0 is refused")
def coordinates(rank, sizes):
    place, rest = [], rank
    for n in reversed(sizes):
        place.append(rest % n)
        rest //= n
    if rest or not rank:
        raise ValueError
    return tuple(reversed(place))


@exercise.example
def grids(yours):
    """A row, a grid of 2 by 3, axes of one rank, none, five axes, and twelve."""
    for sizes in ((4,), (2, 3), (1, 2, 1, 2), (), (8, 12, 2, 1, 8), (2, 1) * 6):
        for rank in {0, 1, prod(sizes) // 2, prod(sizes) - 1}:
            if rank < prod(sizes):
                wanted = tuple(map(int, np.unravel_index(rank, sizes))) if sizes else ()
                expect(yours.coordinates(rank, sizes), wanted, given=(rank, sizes))


@exercise.example
def no_such_rank(yours):
    """Ranks below 0, and from the number of all on."""
    for rank, sizes in ((6, (2, 3)), (-1, (2, 3)), (1, ()), (7, (1, 1, 7)), (-6, (2, 3))):
        try:
            got = yours.coordinates(rank, sizes)
        except ValueError:
            continue
        expect_that(False, "a ValueError", given=(rank, sizes), got=got)


@exercise.property(sizes=st.lists(st.integers(1, 4), min_size=1, max_size=5))
def each_place_once(yours, sizes):
    """All ranks of a grid, in the order of NumPy."""
    sizes = tuple(sizes)
    found = [yours.coordinates(rank, sizes) for rank in range(prod(sizes))]
    expect(found, [*np.ndindex(sizes)], given=sizes)


@exercise.example
def ranks_of_a_job(yours):
    """Real ranks stand where you say: `fleet`'s numbers of stage and tensor parallel."""

    def work():
        strategy = fleet.DistributedStrategy()
        strategy.hybrid_configs = {"pp_degree": 2, "mp_degree": 2, "dp_degree": 2}
        fleet.init(is_collective=True, strategy=strategy)
        hcg = fleet.get_hybrid_communicate_group()
        return (
            hcg.get_data_parallel_rank(), hcg.get_stage_id(), 0, 0, hcg.get_model_parallel_rank()
        )  # fmt: skip

    found = dist.spawn(work, nprocs=8, timeout=20.0).results
    sizes = Layout(data=2, pipe=2, model=2).sizes
    expect(found, [yours.coordinates(rank, sizes) for rank in range(8)], given=sizes)
    with exercise.plugged(yours):
        shares = [Layout(data=2, pipe=2, model=2).locate_samples(rank) for rank in range(8)]
    expect(shares, [(rank // 4, 2) for rank in range(8)], given="the share of a batch")
