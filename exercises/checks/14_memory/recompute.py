"""Checks of 14_memory/recompute."""

import random
from itertools import pairwise
from math import inf
from typing import NamedTuple

from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.engine.eager.device import NUMPY
from minipaddle.engine.ir.interpreter import Run
from minipaddle.engine.ir.verifier import verify
from minipaddle.engine.passes.memory import live
from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.passes.recompute import recompute

exercise = Exercise(
    title="A recomputation policy: what to let go and make again",
    level="medium",
    minutes=30,
    before=("14_memory/liveness",),
    slots={"recompute.chosen": "chosen"},
    hints=(
        "a is made again from x, b from a. Can both go?",
        "`sorted` by score; two sets grow on the way: what is gone, and what those taken are made "
        "from. A plan fits if it meets neither on the wrong side.",
        "found, saved, gone, needed = [], 0, set(), set()\n"
        "for plan by score:\n"
        "    saved >= excess, or score > price → stop\n"
        "    plan.value in needed, or gone & plan.sources → pass over\n"
        "    take it; all four grow",
    ),
    wrong={
        "all that can be saved": "saved >= excess or plan.score > price → plan.score > price",
        "never mind the price": "saved >= excess or plan.score > price → saved >= excess",
        "strictly below the price": "plan.score > price → plan.score >= price",
        "one too many": "saved >= excess → saved > excess",
        "in the order they come": "sorted(plans, key=lambda plan: plan.score) → plans",
        "the largest first": "lambda plan: plan.score → lambda plan: -plan.nbytes",
        "the fastest first": "lambda plan: plan.score → lambda plan: plan.seconds",
        "made from what is gone": (
            "plan.value not in needed and (not gone & plan.sources) → plan.value not in needed"
        ),
        "what others are made from let go": (
            "plan.value not in needed and (not gone & plan.sources) → not gone & plan.sources"
        ),
        "only the last one's sources are needed": "needed |= plan.sources → needed = plan.sources",
        "the sources of what was passed over count": (
            "if plan.value not in needed and (not gone & plan.sources): → needed |= plan.sources; "
            "if plan.value not in needed and (not gone & plan.sources):"
        ),
        "a plan that does not fit ends it": (
            "if plan.value not in needed and (not gone & plan.sources): → "
            "if plan.value in needed or gone & plan.sources: return found; "
            "if plan.value not in needed and (not gone & plan.sources):"
        ),
        "what was passed over is saved too": (
            "saved += plan.nbytes → pass",
            "if plan.value not in needed and (not gone & plan.sources): → saved += plan.nbytes; "
            "if plan.value not in needed and (not gone & plan.sources):",
        ),
    },
)


class Plan(NamedTuple):
    value: str
    nbytes: int
    seconds: float
    sources: frozenset

    @property
    def score(self):
        return self.seconds / self.nbytes


def plan(value, nbytes, seconds, *sources):
    return Plan(value, nbytes, seconds, frozenset(sources))


def picked(yours, plans, excess, price=inf):
    found = yours.chosen([*plans], excess, price)
    expect_that(isinstance(found, list) and all(p in plans for p in found), "a list of plans",
                given=plans, got=found)  # fmt: skip
    return " ".join(p.value for p in found)


A, B, C = plan("a", 64, 1.0, "x"), plan("b", 64, 2.0, "a"), plan("c", 64, 3.0, "x")


@exercise.example
def cheapest_first(yours):
    """Until enough is saved: 64 bytes are enough for 64, and not for 65."""
    D = plan("d", 640, 5.0, "x")
    for excess, expected in (
        (1, "d"),
        (640, "d"),
        (641, "d a"),
        (704, "d a"),
        (705, "d a c"),
        (9e9, "d a c"),
    ):
        given = {"plans": [tuple(p) for p in (A, C, D)], "excess": excess}
        expect(picked(yours, [C, A, D], excess), expected, given=given)
    expect(picked(yours, [A, B, C], 0), "", given="nothing to save")
    expect(picked(yours, [], 100), "", given="no plans")


@exercise.example
def not_at_any_price(yours):
    """A plan may cost just the price for each byte, and no more."""
    given = {"plans": [tuple(p) for p in (A, C)], "scores": [A.score, C.score]}
    expect(picked(yours, [A, C], 1000, C.score), "a c", given=given)
    expect(picked(yours, [A, C], 1000, 0.99 * C.score), "a", given=given)
    expect(picked(yours, [A, C], 1000, 0.001), "", given=given)


@exercise.example
def made_from_one_another(yours):
    """b is made from a: whichever is taken first, the other stays. Later plans may still fit."""
    given = {"plans": [tuple(p) for p in (A, B, C)]}
    expect(picked(yours, [A, B, C], 100), "a c", given=given)
    cheap = plan("b", 64, 0.5, "a")
    expect(picked(yours, [A, cheap, C], 100), "b c", given="b costs 0.5 now, and needs a")
    far = plan("e", 64, 4.0, "c"), plan("f", 64, 5.0, "b", "x"), plan("g", 64, 6.0, "x")
    got = picked(yours, [A, B, C, *far], 1000)
    expect(got, "a c f g", given="e from c, f from b and x, g from x: c is gone, b is not")
    got = picked(yours, [plan("e", 64, 0.1, "b"), B, plan("h", 64, 0.2, "y"), A], 1000)
    expect(got, "e h a", given="e is made from b: b must stay, and a can go")
    got = picked(yours, [A, plan("b", 512, 9.0, "a"), plan("g", 64, 6.0, "x")], 128)
    expect(got, "a g", given="what was passed over saves nothing")


@exercise.property(seed=st.integers(0, 9999), examples=60)
def any_plans(yours, seed):
    """Random plans: what is taken fits together, and at each step it is the cheapest that fits."""
    draw = random.Random(seed)
    names = "abcdefgh"[: draw.randint(1, 8)]
    plans = [
        plan(
            n,
            64 * draw.randint(1, 9),
            draw.random(),
            *draw.sample(names.replace(n, "") + "xyz", draw.randint(1, 3)),
        )
        for n in names
    ]
    draw.shuffle(plans)
    excess, price = draw.randint(1, 2000), draw.choice((inf, 0.005, 0.002))
    given = {
        "plans": [(*p[:3], sorted(p.sources)) for p in plans],
        "excess": excess,
        "price": price,
    }
    found = yours.chosen([*plans], excess, price)
    left = {p.value: p for p in plans}
    for k in range(len(plans) + 1):
        saved = sum(p.nbytes for p in found[:k])
        here = [
            p for p in left.values()
            if p.score <= price
            and all(p.value not in q.sources and q.value not in p.sources for q in found[:k])
        ]  # fmt: skip
        best = min(here, key=lambda p: p.score, default=None) if saved < excess else None
        took = found[k] if k < len(found) else None
        expect(took and took.value, best and best.value, given=given | {"taken before": k})
        if took is None:
            return
        left.pop(took.value)


@exercise.example
def a_network_in_less_memory(yours):
    """The step of a network in 65 % of its memory: the results stay the same."""
    paddle.seed(0)
    wide = [nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 16), nn.GELU()]
    net = nn.Sequential(*wide, nn.Linear(16, 4))
    sgd = paddle.optimizer.SGD(learning_rate=0.1, parameters=net.parameters())

    @paddle.jit.to_static
    def step(x, y):
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        sgd.step()
        sgd.clear_grad()
        return loss

    x, y = paddle.randn([256, 8]), paddle.randint(0, 4, [256])
    step(x, y)
    program = step.concrete_program.program
    arrays = [x.numpy(), y.numpy(), *(s.storage.read() for s in program.states)]
    want = Run(NUMPY)(program, [a.copy() for a in arrays])
    needs = [live(program)]
    with exercise.plugged(yours):
        for share in (0.9, 0.8, 0.65):
            other = recompute(program, budget=share)
            verify(other)
            needs.append(live(other))
            for a, b in zip(Run(NUMPY)(other, [a.copy() for a in arrays]), want, strict=True):
                expect(a, b, given={"budget": share}, rtol=1e-4, atol=1e-6)
        same = recompute(program, budget=0.6, price=0.0)
    expect(len(same.records), len(program.records), given="price 0", why="how many records")
    shares = [n / needs[0] for n in needs]
    for share, most in zip(shares, (1, 0.9, 0.8, 0.65), strict=True):
        expect_that(share <= most, f"at most {most:.0%} of the memory", got=f"{share:.1%}")
    expect_that(all(a > b for a, b in pairwise(needs)), "less each time", got=needs)
