"""A generation: new networks from the best so far.

The search for a small network in a supernet, and the search for a fast kernel of chapter 15, are
the same evolution. A *point* is a dict of answers: how wide each layer is, say. Write
`generation(space, times, count, rng)`, which returns a list of `count` new points:

- `times` is a list of pairs (point, number) of what was measured so far, in any order. Less is
  better (seconds; here, minus the accuracy). The *parents* are the `PARENTS` best of them, or all
  if there are fewer.
- Each new point is, with probability 1/10, `space.sample(rng)`, a point at random, so that nothing
  is out of reach. If there are no parents, all are.
- Otherwise it has a mother, any of the parents (all equally likely). With probability 1/2 she has a
  child with a father, again any of the parents: `crossover(space, mother, father, rng)`. With
  probability 1/2 it is the mother alone. Either is then changed in one answer:
  `mutate(space, point, rng)`.
- `rng` is NumPy's: `rng.random()` is a number in [0, 1), `rng.integers(n)` one of 0 … n - 1.
  `times` stays as it is. A point may come twice; who measures looks to that.

Sources: Real et al., "Regularized evolution for image classifier architecture search", 2019; Cai et
al., "Once-for-all", 2020; Zheng et al., "Ansor", 2020.
"""

from minipaddle.tuning.evolution import PARENTS, crossover, mutate


def generation(space, times, count, rng):
    """`count` new points: mutants and children of the best, and some at random."""
    best = sorted(times, key=lambda pair: pair[1])[:PARENTS]
    points = []
    for _ in range(count):
        if not best or rng.random() < 0.1:
            points.append(space.sample(rng))
            continue
        point = best[rng.integers(len(best))][0]
        if rng.random() < 0.5:
            father = best[rng.integers(len(best))][0]
            point = crossover(space, point, father, rng)
        points.append(mutate(space, point, rng))
    return points
