"""Offsets: nothing overlaps in time and space, no method is below the bound or far above it."""

import itertools
import random
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle.engine.passes.arena import (
    FAST,
    GOOD,
    Buffer,
    bound,
    height,
    offsets,
    placed,
    sort_by,
)
from minipaddle.engine.passes.lifetimes import ALIGNMENT
from minipaddle.engine.passes.memory import plan
from minipaddle.ir.parser import parse
from minipaddle.passes import arena_tree
from minipaddle.passes.arena_search import by_climbing, by_exhaustion, overlap
from minipaddle.passes.arena_tree import place_by_tree

METHODS = FAST | {"exhaustion": by_exhaustion, "climbing": by_climbing}

sizes = st.integers(1, 40).map(lambda n: n * ALIGNMENT)
buffers = st.builds(
    lambda start, length, nbytes: Buffer(start, start + length, nbytes),
    st.integers(0, 20),
    st.integers(1, 20),
    sizes,
)
few = st.lists(buffers, max_size=6)
many = st.lists(buffers, max_size=40)
methods = pytest.mark.parametrize("method", METHODS)


def check(found, places) -> None:
    """The rules that any plan keeps."""
    assert len(found) == len(places)
    assert all(p >= 0 and p % ALIGNMENT == 0 for p in places)
    for (a, p), (b, q) in itertools.combinations(zip(found, places, strict=True), 2):
        if overlap(a, b):
            assert p + a.nbytes <= q or q + b.nbytes <= p, (a, b)
    assert bound(found) <= height(found, places) <= sum(b.nbytes for b in found)


@methods
@settings(max_examples=40, derandomize=True, deadline=None)
@given(many)
def test_nothing_overlaps(method, found):
    check(found, METHODS[method](found))


@settings(max_examples=100, derandomize=True, deadline=None)
@given(many)
def test_the_choice_is_no_worse_than_any_fast_method(found):
    places = offsets(found)
    check(found, places)
    for method in FAST.values():
        assert height(found, places) <= height(found, method(found)) * GOOD


def by_trying_all(found) -> int:
    """The smallest arena, over all orders of dropping the buffers."""
    best = sum(b.nbytes for b in found)
    for order in itertools.permutations(range(len(found))):
        tops = {}
        for k in order:
            under = [tops[j] for j in tops if overlap(found[j], found[k])]
            tops[k] = max(under, default=0) + found[k].nbytes
        best = min(best, max(tops.values(), default=0))
    return best


@pytest.mark.sweep
@settings(max_examples=150, derandomize=True, deadline=None)
@given(few)
def test_exhaustion_finds_the_smallest_arena(found):
    assert height(found, by_exhaustion(found)) == by_trying_all(found)


def hard(count: int = 60):
    """Buffers for which the greedy orders are far from the bound."""
    dice, worst = random.Random(1), None
    for _ in range(40):
        found = []
        for _ in range(count):
            start = dice.randrange(60)
            found.append(Buffer(start, start + dice.randrange(1, 20), 64 * dice.randrange(1, 64)))
        least = min(height(found, m(found)) for m in FAST.values()) / bound(found)
        worst = max(worst or (0, []), (least, found))
    return worst


def test_search_improves_on_the_greedy_orders():
    ratio, found = hard()
    places = by_climbing(found, steps=1500)
    check(found, places)
    assert height(found, places) / bound(found) < ratio - 0.1


def test_the_bound_is_the_fullest_time():
    found = [Buffer(0, 2, 64), Buffer(1, 3, 128), Buffer(2, 4, 64)]
    assert bound(found) == 192
    assert bound([]) == 0
    assert height(found, offsets(found)) == 192


def test_offsets_are_a_slot():
    def apart(found):
        return list(itertools.accumulate((b.nbytes for b in found), initial=0))[:-1]

    with paddle.plugged("memory.offsets", apart):
        text = "program p(x: float32[16]) {\n v1 = tanh(x) : float32[16]\n" + "".join(
            f" v{k} = cumsum(v{k - 1}, axis=0, reverse=False) : float32[16]\n" for k in range(2, 6)
        )
        found = plan(parse(text + " return v5\n}"))
    assert found.size == 4 * 64
    assert found.live == 2 * 64


@settings(max_examples=200, derandomize=True, deadline=None)
@given(many, st.randoms(use_true_random=False))
def test_the_tree_places_as_the_list_does(found, dice):
    order = [*range(len(found))]
    dice.shuffle(order)
    with patch.object(arena_tree, "MANY", 0):
        assert place_by_tree(found, order) == placed(found, order)


@pytest.mark.sweep
def test_the_tree_places_many_buffers_as_the_list_does():
    dice, found = random.Random(0), []
    for k in range(400):  # a forward and its backward
        for start, end in ((k, 801 - k), (k, k + 2), (800 - k, 803 - k)):
            found.append(Buffer(start, end, 64 * dice.choice([1, 32, 33, 512])))
    assert len(found) > arena_tree.MANY
    for order in (lambda b: (-b.nbytes, b.start), lambda b: (b.start, b.end), lambda b: (b.end,)):
        numbers = sort_by(found, order)
        assert place_by_tree(found, numbers) == placed(found, numbers)


@pytest.mark.sweep
@pytest.mark.timeout(60)
def test_three_thousand_buffers_in_a_moment():
    """A forward and its backward: what is made first is needed last."""
    dice, found = random.Random(0), []
    for k in range(1500):
        nbytes = 64 * dice.randrange(1, 4096)
        found += [Buffer(k, 3000 - k, nbytes), Buffer(3000 - k, 3003 - k, nbytes)]
    places = offsets(found)
    assert height(found, places) <= 1.05 * bound(found)
