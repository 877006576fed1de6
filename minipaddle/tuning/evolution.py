"""Evolutionary search: new points from the fastest so far, the model says which to measure.

Sources: Chen and others, Learning to Optimize Tensor Programs (2018); Zheng and others, Ansor:
Generating High-Performance Tensor Programs for Deep Learning (2020).
"""

from ..engine.core.slots import slot
from .space import Space, key_of

PARENTS = 6
"""The fastest points so far that have children."""

CHILDREN = 48
"""Points of a generation, from which the model picks those that are measured."""

EPSILON = 0.2
"""The fraction of them that is picked at random, so that the model learns where it is wrong."""


@slot("tuning.mutate")
def mutate(space: Space, parent: dict, rng) -> dict:
    """A point with one of the parent's choices made differently.

    Choices that lose their meaning are dropped, new ones get their defaults: `space.point` does
    both.
    """
    knobs = space.knobs(parent)
    if not knobs:
        return parent
    name = list(knobs)[rng.integers(len(knobs))]
    others = [option for option in knobs[name].options if option != parent[name]]
    return space.point({**parent, name: others[rng.integers(len(others))]})


@slot("tuning.crossover")
def crossover(space: Space, mother: dict, father: dict, rng) -> dict:
    """A point whose choices come from either parent at random."""
    names = [*mother, *(name for name in father if name not in mother)]
    child = {}
    for name in names:
        first, second = (mother, father) if rng.integers(2) else (father, mother)
        child[name] = first[name] if name in first else second[name]
    return space.point(child)


@slot("tuning.generation")
def generation(space: Space, times: list[tuple[dict, float]], count: int, rng) -> list[dict]:
    """`count` new points from (point, seconds) so far: mutants and children of the fastest."""
    parents = [point for point, _ in sorted(times, key=lambda t: t[1])[:PARENTS]]
    points = []
    for _ in range(count):
        if not parents or rng.random() < 0.1:
            points.append(space.sample(rng))
            continue
        mother = parents[rng.integers(len(parents))]
        if rng.random() < 0.5:
            mother = crossover(space, mother, parents[rng.integers(len(parents))], rng)
        points.append(mutate(space, mother, rng))
    return points


@slot("tuning.choose")
def choose(points: list[dict], scores, count: int, rng, epsilon: float = EPSILON) -> list[dict]:
    """`count` of the points: those of the best scores, but a fraction `epsilon` at random."""
    order = sorted(range(len(points)), key=lambda k: -scores[k])
    chosen = []
    while order and len(chosen) < count:
        at = rng.integers(len(order)) if rng.random() < epsilon else 0
        chosen.append(points[order.pop(at)])
    return chosen


def proposals(space: Space, times, score, count: int, rng) -> list[dict]:
    """The points to measure next: of a generation, without those that were measured."""
    seen = {key_of(point) for point, _ in times}
    fresh = {}
    for point in generation(space, times, CHILDREN, rng):
        if key_of(point) not in seen:
            fresh[key_of(point)] = point
    points = list(fresh.values())
    return choose(points, score(points), count, rng) if points else []
