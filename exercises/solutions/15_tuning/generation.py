"""One generation of evolution: mutants, children, and the choice of what is measured.

A space knows what may be asked of a kernel. A *point* is a dict of answers: {"way": "rows",
"tile": 8}. Which questions there are depends on the answers (after the answer "dots" no tile is
asked for), so a dict of answers becomes a point only by asking:

- `space.knobs(point)`: the questions at a point that have more than one answer, as a dict; each
  has `.options`, all its answers;
- `space.point(answers)`: the point where all questions are asked: an answer to a question that
  does not come up is dropped, a question without an answer gets its default.

Randomness comes from `rng`, a generator of NumPy: `rng.integers(n)` is 0 … n - 1, `rng.random()` a
number in [0, 1).

Write three functions; none may change what it is given.

- `mutate(space, parent, rng)`: a point with one of the parent's answers made differently: a
  question at random (each equally likely), another of its options at random (likewise). A parent
  without questions is returned.
- `crossover(space, mother, father, rng)`: a point whose answers are each the mother's or the
  father's, at random (1/2); where only one of them has an answer, it is that one's.
- `choose(points, scores, count, rng, epsilon=0.2)`: a list of `count` different ones of the points
  (all, if there are fewer). One after the other: with probability `epsilon` any of those left,
  otherwise the one of those left with the highest score.

    choose([a, b, c], [1, 3, 2], 2, rng, epsilon=0)  ->  [b, c]

`paddle.tune` searches with your generation. Sources: Chen and others, "Learning to Optimize
Tensor Programs" (2018); Zheng and others, "Ansor" (2020).
"""


def mutate(space, parent, rng):
    """A point with one answer made differently."""
    knobs = space.knobs(parent)
    if not knobs:
        return parent
    name = [*knobs][rng.integers(len(knobs))]
    others = [x for x in knobs[name].options if x != parent[name]]
    answer = others[rng.integers(len(others))]
    return space.point({**parent, name: answer})  # drops and adds what the new answer changes


def crossover(space, mother, father, rng):
    """A point whose answers are each one parent's."""
    child = {}
    for name in {**mother, **father}:
        owners = [parent for parent in (mother, father) if name in parent]
        child[name] = owners[rng.integers(len(owners))][name]
    return space.point(child)


def choose(points, scores, count, rng, epsilon=0.2):
    """The points to measure: the best scores, and some at random."""
    left = sorted(range(len(points)), key=lambda k: scores[k], reverse=True)
    chosen = []
    while left and len(chosen) < count:
        at_random = rng.random() < epsilon
        place = rng.integers(len(left)) if at_random else 0
        chosen.append(points[left.pop(place)])
    return chosen
