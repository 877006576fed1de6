"""Checks of 15_tuning/generation."""

from collections import Counter
from copy import deepcopy

import numpy as np
from hypothesis import strategies as st

from minipaddle.engine.codegen.kernel_schedule import pick
from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.tuning import evolution
from minipaddle.tuning.space import Space, key_of

exercise = Exercise(
    title="One generation of evolution: mutants, children, and the choice of what is measured",
    level="medium",
    minutes=35,
    slots={
        "tuning.mutate": "mutate",
        "tuning.crossover": "crossover",
        "tuning.choose": "choose",
    },
    hints=(
        "A mutant answers one question differently. May it keep the parent's other answers as they "
        "are, if the new one is 'dots', which has no tile?",
        "`space.point` puts a dict of answers right: give it all you have, it drops and adds. For "
        "`choose`, sort the places by score once, and take from the front, or from anywhere.",
        "mutate: a name of knobs, an option that is not the parent's, space.point of both\n"
        "crossover: for each name of both: the parents that have it, one of them at random\n"
        "choose: while there are some left and too few chosen: place 0, or with epsilon any",
    ),
    wrong={
        "the same answer again": (
            "[x for x in knobs[name].options if x != parent[name]] → [x for x in "
            "knobs[name].options if True]"
        ),
        "answers that do not count stay": (
            "space.point({**parent, name: answer}) → {**parent, name: answer}"
        ),
        "writing into the parent": (
            "return space.point({**parent, name: answer}) → parent[name] = answer; return "
            "space.point(parent)"
        ),
        "forgetting the other answers": "{**parent, name: answer} → {name: answer}",
        "always the first question": "rng.integers(len(knobs)) → 0",
        "always the next option": "rng.integers(len(others)) → 0",
        "no question is an error": "if not knobs: → pass",
        "a child of the mother": "rng.integers(len(owners)) → 0",
        "only what both have": "{**mother, **father} → mother.keys() & father.keys()",
        "only the mother's questions": "{**mother, **father} → mother",
        "a whole parent": "child = {} → return (mother, father)[rng.integers(2)]; child = {}",
        "the slowest first": (
            "sorted(range(len(points)), key=lambda k: scores[k], reverse=True) → "
            "sorted(range(len(points)), key=lambda k: scores[k])"
        ),
        "never at random": "rng.random() < epsilon → False",
        "always at random": "rng.random() < epsilon → True",
        "the same point twice": "left.pop(place) → left[place]",
        "too many": "len(chosen) < count → len(chosen) <= count",
    },
    unkillable={
        "at_random = rng.random() < epsilon → at_random = rng.random() <= epsilon": "a random "
                                                                                    "number is "
                                                                                    "never exactly "
                                                                                    "epsilon",
    },
)  # fmt: skip


def write():
    """Asks for a tile only where there is one."""
    way = pick("way", "rows", ("rows", "dots", "panels"))
    tile = pick("tile", 8, (2, 4, 8, 16)) if way != "dots" else 0
    lanes = pick("lanes", 4, (4, 8)) if tile == 16 else 0
    return way, tile, lanes, pick("unroll", 1, (1, 2)), pick("fixed", 3, (3,))


SPACE = Space(write)
ROWS = {"way": "rows", "tile": 8, "unroll": 1, "fixed": 3}
DOTS = {"way": "dots", "unroll": 2, "fixed": 3}


def many(function, *given, count=400):
    """What comes out, how often, by the generators of many seeds."""
    kept, rng = deepcopy(given), np.random.default_rng(0)
    found = Counter(key_of(function(SPACE, *given, rng)) for _ in range(count))
    expect(list(given), list(kept), given="the parents afterwards: nobody may write into them")
    return {point: n / count for point, n in found.items()}


def shares(got, expected, given):
    """Are these the outcomes, about so often?"""
    names = lambda points: sorted(str(dict(p)) for p in points)
    expect(names(got), names(expected), given=given, why="which points come up")
    for point, share in expected.items():
        expect(got[point], share, given={**given, "point": dict(point)}, atol=0.08)


def at(**answers):
    return key_of(SPACE.point(answers))


@exercise.example
def mutants(yours):
    """Each question is equally likely, and each other option of it."""
    shares(many(yours.mutate, ROWS), {
        at(way="dots"): 1 / 6, at(way="panels"): 1 / 6,
        at(tile=2): 1 / 9, at(tile=4): 1 / 9, at(tile=16): 1 / 9, at(unroll=2): 1 / 3,
    }, {"parent": ROWS})  # fmt: skip
    shares(many(yours.mutate, DOTS), {
        at(way="rows", unroll=2): 1 / 4, at(way="panels", unroll=2): 1 / 4, at(way="dots"): 1 / 2,
    }, {"parent": DOTS})  # fmt: skip


@exercise.example
def nothing_to_change(yours):
    """A kernel that asks nothing, and one whose question has one answer."""
    rng = np.random.default_rng(0)
    for space in (Space(lambda: "text"), Space(lambda: pick("fixed", 3, (3,)))):
        expect(yours.mutate(space, space.default, rng), space.default, given=space.default)


@exercise.example
def children(yours):
    """Of two points with the same questions, and of two with different ones."""
    mother, father = SPACE.point({"tile": 2}), SPACE.point({"way": "panels", "tile": 4})
    shares(many(yours.crossover, mother, father), {
        at(way=way, tile=tile): 1 / 4 for way in ("rows", "panels") for tile in (2, 4)
    }, {"mother": mother, "father": father})  # fmt: skip
    for one, other in ((ROWS, DOTS), (DOTS, ROWS)):
        shares(many(yours.crossover, one, other), {
            at(): 1 / 4, at(unroll=2): 1 / 4, at(way="dots"): 1 / 4,
            at(way="dots", unroll=2): 1 / 4,
        }, {"mother": one, "father": other})  # fmt: skip
    wide = SPACE.point({"tile": 16, "lanes": 8})
    found = many(yours.crossover, DOTS, wide)
    tiles = {dict(point).get("tile") for point in found}
    expect(tiles, {16, None}, given={"mother": DOTS, "father": wide}, why="tiles of the children")


@exercise.example
def eight_questions(yours):
    """A space of eight questions: one answer is made differently; each is some parent's."""
    space = Space(lambda: [pick(f"k{k}", 0, (0, 1, 2)) for k in range(8)])
    mother, father = ({f"k{k}": answer for k in range(8)} for answer in (1, 2))
    rng = np.random.default_rng(0)
    for _ in range(20):
        found = yours.mutate(space, mother, rng)
        expect(sum(found[k] != mother[k] for k in mother), 1, given=mother, why="other answers")
    found = [yours.crossover(space, mother, father, rng) for _ in range(40)]
    for k in mother:
        expect({child[k] for child in found} == {1, 2}, True, given={"answers to": k})


@exercise.example
def the_best_are_picked(yours):
    """Six points, nothing at random: the highest scores first; and no more than there are."""
    points, scores, rng = list("abcdef"), [1, 5, 3, 6, 2, 4], np.random.default_rng(0)
    for count, expected in ((2, "db"), (4, "dbfc"), (6, "dbfcea"), (9, "dbfcea"), (0, "")):
        got = yours.choose(points, scores, count, rng, epsilon=0)
        expect(got, list(expected), given={"scores": scores, "count": count, "epsilon": 0})
    expect((points, scores), (list("abcdef"), [1, 5, 3, 6, 2, 4]), given="what was given, after")


@exercise.property(epsilon=st.sampled_from((0.2, 0.5, 1.0)), examples=3)
def some_at_random(yours, epsilon):
    """How often the best of ten is picked first, and second if the first was random."""
    points, scores, rng = list(range(10)), list(range(10)), np.random.default_rng(1)
    found = [yours.choose(points, scores, 2, rng, epsilon=epsilon) for _ in range(1500)]
    expect_that(all(a != b for a, b in found), "no point twice", got=found[0])
    first = np.mean([a == 9 for a, _ in found])
    expect(first, 1 - epsilon + epsilon / 10, given={"epsilon": epsilon}, atol=0.05,
           why="how often the best is first")  # fmt: skip
    others = Counter(a for a, _ in found if a != 9)
    expect(sorted(others), list(range(9)), given={"epsilon": epsilon}, why="which others are first")
    again = np.mean([b == 9 for a, b in found if a != 9])
    expect(again, 1 - epsilon + epsilon / 9, given={"epsilon": epsilon}, atol=0.09,
           why="how often the best is second, if another was first")  # fmt: skip


@exercise.example
def a_fifth_unless_said(yours):
    """`epsilon` is 0.2 if it is not given."""
    rng = np.random.default_rng(2)
    first = np.mean([yours.choose("abcd", [4, 3, 2, 1], 1, rng) == ["a"] for _ in range(2000)])
    expect(first, 0.85, given="four points", atol=0.04, why="how often the best is picked")


@exercise.example
def the_engine_searches(yours):
    """The engine's search on your generation: the best of 7776 points in 96 trials."""
    space = Space(lambda: [pick(f"k{k}", 0, range(6)) for k in range(5)])
    seconds = lambda point: 1.0 + sum(abs(x - 4) for x in point.values())
    found = []
    with exercise.plugged(yours):
        for seed in range(3):
            rng, times = np.random.default_rng(seed), [(space.default, seconds(space.default))]
            for _ in range(12):
                score = lambda points: [-seconds(p) for p in points]
                for point in evolution.proposals(space, times, score, 8, rng):
                    times.append((point, seconds(point)))
            found.append(min(t for _, t in times))
    expect(found, [1.0, 1.0, 1.0], given="1 + Σ |answer - 4|", why="the least time that was found")
