"""Checks of 14_memory/arena."""

import random
import time

from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.engine.passes.arena import Buffer
from minipaddle.engine.passes.memory import plan
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="The arena: a map of memory, scored against the bound",
    level="medium",
    minutes=25,
    before=("14_memory/liveness",),
    slots={"memory.offsets": "offsets"},
    hints=(
        "Large values are hard to place, small ones fit into any gap. Which would you place first?",
        "For one buffer after the other: only those that are placed already and overlap it in time "
        "are in its way. Sort their (offset, top) and walk up to the first gap that will do.",
        "found = {}; for k by size, the largest first:\n"
        "    beside = sorted (offset, top) of placed ones whose time overlaps\n"
        "    top = 0; for low, high: gap low - top large enough? stop; top = max(top, high)\n"
        "    found[k] = top",
    ),
    wrong={
        "no place is used twice": (
            "((at, at + buffers[j].nbytes) for j, at in found.items() if buffers[j].start < "
            "own.end and own.start < buffers[j].end) → ((at, at + buffers[j].nbytes) for j, at "
            "in found.items())"
        ),
        "all at 0": "found[k] = top → found[k] = 0",
        "one that ends is in the way of one that starts": (
            "((at, at + buffers[j].nbytes) for j, at in found.items() if buffers[j].start < "
            "own.end and own.start < buffers[j].end) → ((at, at + buffers[j].nbytes) for j, at "
            "in found.items() if buffers[j].start <= own.end and own.start <= buffers[j].end)"
        ),
        "only what starts before is in the way": (
            "((at, at + buffers[j].nbytes) for j, at in found.items() if buffers[j].start < "
            "own.end and own.start < buffers[j].end) → ((at, at + buffers[j].nbytes) for j, at "
            "in found.items() if buffers[j].start <= own.start < buffers[j].end)"
        ),
        "the smallest first": "-buffers[k].nbytes → buffers[k].nbytes",
        "in the order of time": "-buffers[k].nbytes → buffers[k].start",
        "always on top": "if low - top >= own.nbytes: → pass",
        "a gap of any size will do": "low - top >= own.nbytes → low > top",
        "the top of the last one": "max(top, high) → high",
        "in the order of placement": "[found[k] for k in range(len(buffers))] → [*found.values()]",
    },
)


def checked(yours, buffers, given=None):
    """The arena of the reader's offsets, which must not overlap."""
    given = given or {"buffers": [tuple(b) for b in buffers]}
    found = yours.offsets([*buffers])
    expect_that(isinstance(found, list) and len(found) == len(buffers), "a list, an offset each",
                given=given, got=found)  # fmt: skip
    expect_that(all(type(o) is int and o >= 0 and o % 64 == 0 for o in found),
                "whole numbers, aligned as the sizes are", given=given, got=found)  # fmt: skip
    for k, (a, at) in enumerate(zip(buffers, found, strict=True)):
        for b, other in zip(buffers[:k], found, strict=False):
            apart = at + a.nbytes <= other or other + b.nbytes <= at
            expect_that(apart or a.end <= b.start or b.end <= a.start,
                        f"{tuple(a)} and {tuple(b)} are needed at one time, and share no byte",
                        given=given, got=found)  # fmt: skip
    return max((o + b.nbytes for o, b in zip(found, buffers, strict=True)), default=0)


def bound(buffers):
    """The most bytes at one time, counted at each time."""
    times = {t for b in buffers for t in (b.start, b.end)}
    return max((sum(b.nbytes for b in buffers if b.start <= t < b.end) for t in times), default=0)


@exercise.example
def few(yours):
    """Small sets whose best arena one can see."""
    for buffers, best in (
        ([], 0),
        ([Buffer(0, 1, 64)], 64),
        ([Buffer(0, 2, 64), Buffer(1, 3, 128), Buffer(2, 4, 64)], 192),
        ([Buffer(t, t + 1, 64) for t in range(9)], 64),
        ([Buffer(t, t + 1, 64 * (t + 1)) for t in range(5)], 320),
        ([Buffer(t, t + 1, 64 * (5 - t)) for t in range(5)], 320),
        ([Buffer(0, 9, 64 * k) for k in (1, 2, 3)], 384),
        ([Buffer(0, 2, 128), Buffer(0, 5, 256), Buffer(2, 5, 64), Buffer(3, 5, 64)], 384),
        ([Buffer(0, 4, 64), Buffer(0, 2, 192), Buffer(2, 4, 128), Buffer(2, 4, 64)], 256),
        ([Buffer(0, 9, 640), Buffer(0, 4, 320), Buffer(3, 9, 256), Buffer(4, 6, 320),
          Buffer(6, 9, 128), Buffer(6, 9, 192)], 1216),
    ):  # fmt: skip
        got = checked(yours, buffers)
        expect(got, best, given=[tuple(b) for b in buffers], why="the bytes of the arena")


@exercise.property(seed=st.integers(0, 9999), examples=40)
def no_overlap(yours, seed):
    """Random sets, also crowded ones."""
    draw = random.Random(seed)
    checked(yours, drawn(draw, draw.randint(0, 14), draw.randint(2, 9)))


def drawn(draw, count, times):
    found = []
    for _ in range(count):
        start = draw.randrange(times)
        end = draw.randint(start + 1, min(times, start + draw.choice((2, 4, 9))) + 1)
        found.append(Buffer(start, end, 64 * draw.choice((1, 1, 2, 3, 5, 8, 16))))
    return found


@exercise.example
def the_score_of_random_sets(yours):
    """Over 60 random sets the arena is 1.06 times the bound or less, on average."""
    draw, ratios = random.Random(7), []
    for _ in range(60):
        buffers = drawn(draw, 40, 30)
        ratios.append(checked(yours, buffers, {"buffers": "40 random ones"}) / bound(buffers))
    mean = sum(ratios) / len(ratios)
    expect_that(mean <= 1.06, "1.06 times the bound", got=f"{mean:.3f} times the bound, on average")


class Block(nn.Layer):
    """Attention and two layers after it."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.LayerNorm(32), nn.LayerNorm(32)
        self.q, self.o = nn.Linear(32, 96), nn.Linear(32, 32)
        self.mlp = nn.Sequential(nn.Linear(32, 128), nn.GELU(), nn.Linear(128, 32))

    def forward(self, x):
        q, k, v = self.q(self.a(x)).split(3, axis=-1)
        x = x + self.o(F.softmax(q @ k.transpose([0, 2, 1])) @ v)
        return x + self.mlp(self.b(x))


@exercise.example
def the_score_of_a_network(yours):
    """A step of two blocks of a transformer: 1.1 times the bound, and in a second."""
    paddle.seed(0)
    net = nn.Sequential(Block(), Block(), nn.Linear(32, 8))
    sgd = paddle.optimizer.SGD(learning_rate=0.1, parameters=net.parameters())

    @paddle.jit.to_static
    def step(x):
        loss = net(x).square().mean()
        loss.backward()
        sgd.step()
        sgd.clear_grad()
        return loss

    step(paddle.randn([4, 16, 32]))
    with exercise.plugged(yours):
        found = plan(step.concrete_program.program)
    expect_that(found.size >= found.live, "no arena is smaller than the bound", got=found.size)
    buffers = [p.buffer for p in found.allocations]
    size = checked(yours, buffers, {"buffers": f"the {len(buffers)} of a transformer's step"})
    ratio = size / bound(buffers)
    expect_that(ratio <= 1.1, "1.1 times the bound", got=f"{ratio:.3f} times the bound")
    began = time.process_time()
    yours.offsets(drawn(random.Random(3), 300, 200))
    seconds = time.process_time() - began
    expect_that(seconds < 2, "300 buffers in a second", got=f"{seconds:.1f} seconds")
