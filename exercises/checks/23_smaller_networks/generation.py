"""Checks of 23_smaller_networks/generation."""

from collections import Counter
from copy import deepcopy

import numpy as np

from minipaddle.engine.codegen.kernel_schedule import pick
from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.tuning import evolution
from minipaddle.tuning.space import Space

exercise = Exercise(
    title="A generation: children and mutants of the best so far",
    level="medium",
    minutes=20,
    before=("15_tuning/generation",),
    slots={"tuning.generation": "generation"},
    hints=(
        "If every new point were a child of the best one alone, where would the search "
        "be after ten "
        "generations, and what could it no longer find?",
        "Sort the pairs by their number and keep the first few. For each new point draw up to five "
        "times: whether it is at random, the mother, whether there is a father, who, and what "
        "`mutate` draws.",
        "best ← the PARENTS first of the sorted pairs\n"
        "count times: no best, or 1 of 10: a sample; else a mother; 1 of 2: her child "
        "with a father; "
        "mutate either",
    ),
    wrong={
        "the worst": "pair[1] → -pair[1]",
        "in the order of measuring": (
            "sorted(times, key=lambda pair: pair[1])[:PARENTS] → times[:PARENTS]"
        ),
        "all are parents": (
            "sorted(times, key=lambda pair: pair[1])[:PARENTS] → "
            "sorted(times, key=lambda pair: pair[1])"
        ),
        "the best alone": "PARENTS → 1",
        "no parents are an error": "not best or rng.random() < 0.1 → rng.random() < 0.1",
        "never at random": "not best or rng.random() < 0.1 → not best",
        "half at random": "rng.random() < 0.1 → rng.random() < 0.5",
        "always a father": "if rng.random() < 0.5: → if True:",
        "never a father": "if rng.random() < 0.5: → if False:",
        "children are not changed": (
            "points.append(mutate(space, point, rng)) → points.append(point)"
        ),
        "changed twice": (
            "points.append(mutate(space, point, rng)) → "
            "points.append(mutate(space, mutate(space, point, rng), rng))"
        ),
        "one father for all": "father = best[rng.integers(len(best))][0] → father = best[0][0]",
        "the sample and a child": "continue → pass",
        "one too few": "range(count) → range(count - 1)",
        "the first options instead of a sample": (
            "points.append(space.sample(rng)) → points.append(space.point())"
        ),
        "the list that was given is sorted": (
            "best = sorted(times, key=lambda pair: pair[1])[:PARENTS] → "
            "times.sort(key=lambda pair: pair[1]); best = times[:PARENTS]"
        ),
        "pairs, not points": (
            "points.append(mutate(space, point, rng)) → "
            "points.append((mutate(space, point, rng), 0.0))"
        ),
    },
    unkillable={
        "if rng.random() < 0.5: → if rng.random() > 0.5:": "both are a half",
        "if rng.random() < 0.5: → if rng.random() <= 0.5:": "a number is never exactly a half",
        "if rng.random() < 0.5: → if not rng.random() < 0.5:": "both are a half",
        "point = crossover(space, point, father, rng) → "
        "point = crossover(space, father, point, rng)": "mother and father are alike",
        "if not best or rng.random() < 0.1: → if not best or rng.random() <= 0.1:": (
            "a number is never exactly a tenth"
        ),
    },
)

NAMES = [f"k{k}" for k in range(24)]
SPACE = Space(lambda: [pick(name, 0, range(12)) for name in NAMES])


def all_of(answer):
    """The point with one answer to everything."""
    return dict.fromkeys(NAMES, answer)


def born(yours, times, count):
    """New points, each as how often each answer stands in it; `times` must be as before."""
    kept, rng = deepcopy(times), np.random.default_rng(0)
    points = yours.generation(SPACE, times, count, rng)
    expect(times, kept, given="what was measured, afterwards")
    expect(len(points), count, given={"count": count}, why="so many points")
    for point in points:
        complete = isinstance(point, dict) and set(point) == set(NAMES)
        expect_that(complete, "this is no point", given={"count": count}, got=point)
    return [Counter(point.values()) for point in points]


COUNT = 900
TIMES = [(all_of(answer), seconds) for answer, seconds in
         ((9, 7.0), (2, 1.2), (8, 6.5), (0, 1.0), (5, 1.5), (7, 6.0), (3, 1.3), (1, 1.1), (4, 1.4),
          (6, 9.0))]  # fmt: skip
"""The six best have the answers 0 … 5."""
GIVEN = {"parents": "six, each with one answer to all of 24 questions"}


@exercise.example
def kinds_of_points(yours):
    """How many are at random, have a mother alone, or a father of other answers as well."""
    found = born(yours, TIMES, COUNT)
    at_random = [c for c in found if len(c) > 3]
    alone = [c for c in found if c.most_common(1)[0][1] == 23 and len(c) == 2]
    crossed = [c for c in found if len(c) <= 3 and c.most_common(1)[0][1] < 23]
    given = {**GIVEN, "count": COUNT}
    expect(len(at_random) / COUNT, 0.1, given=given, atol=0.035, why="the share at random")
    expect(
        len(alone) / COUNT,
        0.525,
        given=given,
        atol=0.06,
        why="the share with one answer to all but one question",
    )
    expect(len(at_random + alone + crossed), COUNT, given=given, why="all others have two parents")
    mothers = Counter(c.most_common(1)[0][0] for c in alone)
    pairs = Counter(k for c in crossed for k, n in c.most_common(2) if n > 1)
    for answer in range(6):
        told = {**given, "parent": answer}
        expect(mothers[answer] / len(alone), 1 / 6, given=told, atol=0.06, why="mothers alone")
        expect(pairs[answer] / len(crossed), 2 / 6, given=told, atol=0.09, why="of two parents")
    expect(set(mothers) | set(pairs) <= set(range(6)), True, given=given, why="the slow have none")
    changed = np.mean([len(c) == 3 for c in crossed])
    expect(changed, 10 / 11, given=given, atol=0.06, why="children with an answer of nobody")
    answers = {k for c in at_random for k in c}
    expect(answers, set(range(12)), given=given, why="answers of points at random")


@exercise.example
def few_and_none(yours):
    """Nothing measured: all at random. One point: it is the only parent. No points asked for."""
    found = born(yours, [], 30)
    expect(all(len(c) > 3 for c in found), True, given="nothing measured", why="all at random")
    found = [c for c in born(yours, TIMES[:1], 60) if len(c) <= 3]
    expect(len(found) > 40, True, given="one point measured", why="most are mutants")
    expect({(len(c), c[9]) for c in found}, {(2, 23)}, given="one point measured", why="mutants")
    expect(born(yours, TIMES, 0), [], given={"count": 0})


@exercise.example
def the_engine_searches(yours):
    """The engine's search on your generation: a sum of distances falls to nothing."""
    space = Space(lambda: [pick(f"k{k}", 0, range(5)) for k in range(5)])
    loss = lambda point: float(sum(abs(x - 3) for x in point.values()))
    found = []
    with exercise.plugged(yours):
        for seed in range(2):
            rng, times = np.random.default_rng(seed), [(space.default, loss(space.default))]
            for _ in range(12):
                score = lambda points: [-loss(p) for p in points]
                for point in evolution.proposals(space, times, score, 8, rng):
                    times.append((point, loss(point)))
            found.append(min(x for _, x in times))
    expect(
        found, [0.0, 0.0], given="Σ |answer - 3| of five answers", why="the least that was found"
    )
