"""Checks of 26_pipelines/cost."""

from itertools import combinations, pairwise

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle.distributed import fleet
from minipaddle.distributed.fleet.meta_parallel import LayerDesc, PipelineLayer
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Cut by cost: the slowest part decides",
    level="medium",
    minutes=30,
    slots={"pipeline.cut_by_cost": "cut_by_cost"},
    hints=(
        "The last part is some layers at the end. Whatever it is, what is left is the same "
        "question again: fewer layers, one part less. Which answers do you need more than once?",
        "best[k]: the least cost of the slowest part, for the first k layers in so many parts. "
        "With one part it is the sum of the costs. For one part more, try every layer j at which "
        "the last part may begin.",
        "sums[k]: the cost of the first k layers\n"
        "one part: best[k] = sums[k]\n"
        "a part more: best[k] = the least over j of max(best[j], sums[k] - sums[j]),\n"
        "    where each part before j still gets a layer; keep the bounds beside it",
    ),
    wrong={
        "the sum instead of the slowest": (
            "max(best[j][0], sums[k] - sums[j]) → best[j][0] + sums[k] - sums[j]"
        ),
        "the last part alone": "max(best[j][0], sums[k] - sums[j]) → sums[k] - sums[j]",
        "the parts before alone": "max(best[j][0], sums[k] - sums[j]) → best[j][0]",
        "the most for the slowest": (
            "min(ways, default=(float('inf'), [])) → max(ways, default=(float('inf'), []))"
        ),
        "empty parts": "range(part, k) → range(k + 1)",
        "a part too few": "range(1, parts) → range(2, parts)",
        "a part too many": "range(1, parts) → range(parts)",
        "no last bound": "[*best[n][1], n] → best[n][1]",
        "layers count, costs do not": "sums[-1] + cost → sums[-1] + 1",
        "without the last layer": "best[n][1] → best[n - 1][1]",
    },
)  # fmt: skip


@exercise.mistake("as many layers in each part")
def cut_by_cost(costs, parts):
    return [k * len(costs) // parts for k in range(parts + 1)]


@exercise.mistake("a part ends as soon as it has its share")
def cut_by_cost(costs, parts):  # noqa: F811
    share, bounds, total = sum(costs) / parts, [0], 0
    for k, cost in enumerate(costs):
        total += cost
        if total >= share and len(bounds) < parts and len(costs) - k - 1 >= parts - len(bounds):
            bounds.append(k + 1)
            total = 0
    while len(bounds) < parts:
        bounds.append(bounds[-1] + 1)
    return [*bounds, len(costs)]


def slowest(costs, bounds):
    return max(sum(costs[a:b]) for a, b in pairwise(bounds))


def judge(costs, parts, bounds) -> None:
    """Well-formed, and as good as the best of all cuts."""
    given, n = {"costs": costs, "parts": parts}, len(costs)
    expect_that(
        len(bounds) == parts + 1 and bounds[0] == 0 and bounds[-1] == n,
        f"{parts + 1} bounds from 0 to {n}", given=given, got=bounds,
    )  # fmt: skip
    expect_that(all(a < b for a, b in pairwise(bounds)), "a layer in each part",
                given=given, got=bounds)  # fmt: skip
    ways = ([0, *inner, n] for inner in combinations(range(1, n), parts - 1))
    best = min(slowest(costs, each) for each in ways)
    expect(slowest(costs, bounds), best, given=given | {"bounds": bounds}, rtol=1e-9,
           why="the cost of the slowest part")  # fmt: skip


@exercise.example
def rows_of_layers(yours):
    """A heavy first and last layer, zeros, one part, a part for each layer."""
    for costs, parts in (
        ([4, 1, 1, 1, 1, 4], 3),
        ([1, 1, 1, 9], 2),
        ([9, 1, 1, 1], 2),
        ([1, 9, 1, 1, 9, 1], 4),
        ([0, 0, 5, 0, 0], 3),
        ([1, 2, 3, 4, 5, 6, 7], 1),
        ([3, 1, 2], 3),
        ([0.5, 0.25, 0.25, 1.0, 2.0, 0.125], 4),
    ):
        before = [*costs]
        judge(costs, parts, yours.cut_by_cost(costs, parts))
        expect(costs, before, given={"parts": parts}, why="the list of costs, unchanged")


@exercise.property(
    costs=st.lists(st.integers(0, 9), min_size=1, max_size=9), seed=st.integers(0, 9)
)
def any_row(yours, costs, seed):
    """As good as the best of all cuts."""
    parts = 1 + seed % len(costs)
    judge(costs, parts, yours.cut_by_cost(costs, parts))


@exercise.example
def many_layers(yours):
    """60 layers in 12 parts: trying all cuts would take years."""
    costs = np.random.default_rng(0).integers(1, 100, 60).tolist()
    bounds = yours.cut_by_cost(costs, 12)
    low, high = max(costs), sum(costs)
    while low < high:  # the least limit for which parts that are filled up are enough
        limit, used, total = (low + high) // 2, 1, 0
        for cost in costs:
            used, total = (used, total + cost) if total + cost <= limit else (used + 1, cost)
        low, high = (low, limit) if used <= 12 else (limit + 1, high)
    expect(slowest(costs, bounds), low, given="60 layers in 12 parts")


@exercise.example
def a_pipeline_is_cut(yours):
    """The engine's: three stages build the layers of your parts."""

    def work():
        strategy = fleet.DistributedStrategy()
        strategy.hybrid_configs = {"pp_degree": 3}
        fleet.init(is_collective=True, strategy=strategy)
        layers = [LayerDesc(paddle.nn.Linear, 2, 2) for _ in range(6)]
        net = PipelineLayer(layers, seg_method=[4, 1, 1, 1, 1, 4])
        return [name for name, _ in net.named_children()]

    with exercise.plugged(yours):
        found = dist.spawn(work, nprocs=3, timeout=20.0).results
    expect(found, [["0"], ["1", "2", "3", "4"], ["5"]], given="costs 4 1 1 1 1 4, three stages")
