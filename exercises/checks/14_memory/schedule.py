"""Checks of 14_memory/schedule."""

import random
import time
from types import SimpleNamespace

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.engine.eager.device import NUMPY
from minipaddle.engine.ir.interpreter import Run
from minipaddle.engine.ir.verifier import verify
from minipaddle.engine.passes.list_scheduling import schedule
from minipaddle.engine.passes.memory import live
from minipaddle.ir.parser import parse
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="A schedule: the same records in an order that needs less memory",
    level="hard",
    minutes=45,
    before=("14_memory/liveness",),
    slots={"schedule.order": "order"},
    hints=(
        "Two long arrays wait to be summed, and a third could be made. Which of the three records "
        "leaves the fewest bytes behind?",
        "Keep how many readers each value has left, and how many records each record still waits "
        "for. A record frees those values whose last reader it is.",
        "left = readers of each value; waits = how many in before; ready = those with 0\n"
        "growth(k) = sizes it makes - sizes of values it reads with left == 1\n"
        "take min(ready, by (growth, k)); lower left of what it reads, waits of work.after[k]",
    ),
    wrong={
        "the order that is given": "min(ready, key=lambda k: (growth(k), k)) → min(ready)",
        "the most bytes first": "growth(k) → -growth(k)",
        "whatever makes least": (
            "sum((work.sizes[v] for v in work.makes[k])) - dying → sum((work.sizes[v] for v in "
            "work.makes[k]))"
        ),
        "every reader frees": (
            "(work.sizes[v] for v in work.reads[k] if left[v] == 1) → (work.sizes[v] for v in "
            "work.reads[k])"
        ),
        "readers are not counted down": "left[v] -= 1 → pass",
        "nobody is waited for": (
            "{k for k, n in enumerate(waits) if n == 0} → set(range(len(waits)))",
            "if waits[j] == 0: → pass",
        ),
        "one of those before is enough": "waits[j] == 0 → waits[j] == len(work.before[j]) - 1",
        "the last of equals": "(growth(k), k) → (growth(k), -k)",
        "what a record reads is enough": (
            "[len(before) for before in work.before] → [len(r) for r in work.reads]",
            "work.after[k] → [j for v in work.makes[k] for j in work.readers[v]]",
        ),
    },
)


def work_of(makes, reads, before=None):
    """Work from plain lists: the sizes of what each record makes, and whose values it reads."""
    found = SimpleNamespace(records=[*range(len(makes))], sizes=[], makes=[], reads=[], readers=[])
    made_by = []
    for k, sizes in enumerate(makes):
        found.makes.append([*range(len(found.sizes), len(found.sizes) + len(sizes))])
        found.sizes += sizes
        made_by += [k] * len(sizes)
    found.readers = [[] for _ in found.sizes]
    found.before = [set(more) for more in before or [()] * len(makes)]
    for k, values in enumerate(reads):
        found.reads.append([*values])
        for v in values:
            found.readers[v].append(k)
            found.before[k].add(made_by[v])
    found.after = [[j for j, b in enumerate(found.before) if k in b] for k in found.records]
    return found


def peak(work, order):
    """The most bytes at one time."""
    done, alive, most = set(), set(), 0
    for k in order:
        done.add(k)
        alive |= set(work.makes[k])
        most = max(most, sum(work.sizes[v] for v in alive))
        alive = {v for v in alive if not work.readers[v] or not set(work.readers[v]) <= done}
    return most


def by_the_rule(work):
    """The rule of the task, done anew at each step."""
    found, alive = [], set()

    def then(k):
        now = alive | set(work.makes[k])
        done = {*found, k}
        return {v for v in now if not work.readers[v] or not set(work.readers[v]) <= done}

    while len(found) < len(work.records):
        free = [k for k in work.records if k not in found and work.before[k] <= set(found)]
        k = min(free, key=lambda k: (sum(work.sizes[v] for v in then(k)), k))
        alive = then(k)
        found.append(k)
    return found


def checked(yours, work, given):
    """The peak of the reader's order, which must be one."""
    found = yours.order(work)
    expect_that(isinstance(found, list) and sorted(found) == work.records,
                "a list of all numbers, each once", given=given, got=found)  # fmt: skip
    at = {k: t for t, k in enumerate(found)}
    for k, before in enumerate(work.before):
        for j in before:
            expect_that(at[j] < at[k], f"{j} before {k}", given=given, got=found)
    return peak(work, found)


@exercise.example
def sums_one_after_the_other(yours):
    """Arrays of 100 bytes, each summed: one at a time is there, or all of them."""
    n = 4
    makes = [[100]] * n + [[1]] * n + [[1]]
    reads = [[]] * n + [[k] for k in range(n)] + [[*range(n, 2 * n)]]
    got = checked(yours, work_of(makes, reads), {"makes": makes, "reads": reads})
    expect_that(
        got <= 104, "a peak of at most 104 bytes", given={"makes": makes, "reads": reads}, got=got
    )


@exercise.example
def who_reads_last_frees(yours):
    """Value 0 has two readers: only the second of them frees it."""
    makes, reads = [[50], [10], [60], [5], [1]], [[], [0], [], [0], [2]]
    work = work_of(makes, reads)
    got = checked(yours, work, {"makes": makes, "reads": reads})
    expect_that(got <= peak(work, by_the_rule(work)), "what the rule reaches, or less",
                given={"makes": makes, "reads": reads}, got=got)  # fmt: skip


@exercise.example
def other_things_to_wait_for(yours):
    """Record 0 would be the best, but must come after 2: an effect, say."""
    work = work_of([[1], [100], [100], [1]], [[], [], [], [1, 2]], [{2}, (), (), ()])
    checked(yours, work, {"before": work.before})


@exercise.property(seed=st.integers(0, 9999), examples=40)
def any_order_is_one(yours, seed):
    """Random programs: every record once, after what it waits for."""
    work = drawn(random.Random(seed), 9)
    checked(yours, work, {"makes": work.makes, "reads": work.reads, "before": work.before})


def drawn(draw, most):
    n = draw.randint(1, most)
    makes, reads, before, values = [], [], [], 0
    for k in range(n):
        reads.append(draw.sample(range(values), min(values, draw.choice((0, 1, 1, 2)))))
        makes.append([draw.choice((1, 2, 4, 8, 16)) for _ in range(draw.choice((1, 1, 1, 2)))])
        before.append({draw.randrange(k)} if k and draw.random() < 0.15 else set())
        values += len(makes[-1])
    return work_of(makes, reads, before)


@exercise.example
def as_good_as_the_rule(yours):
    """Over 150 random programs your peaks are no higher than the rule's, all added up."""
    draw, mine, rule = random.Random(5), 0, 0
    for _ in range(150):
        work = drawn(draw, 14)
        mine += checked(yours, work, {"makes": work.makes, "reads": work.reads})
        rule += peak(work, by_the_rule(work))
    expect_that(mine <= rule, f"{rule} bytes, the peaks of the rule added up", got=mine)


@exercise.example
def in_the_engine(yours):
    """The order of the docstring; and gradients that are used as soon as they are there."""
    text = """program p(x: float32[64]) {
  v1 = tanh(x) : float32[64]
  v2 = exp(x) : float32[64]
  v3 = sum(v1, axis=(0,), keepdim=False) : float32[]
  v4 = sum(v2, axis=(0,), keepdim=False) : float32[]
  v5 = add(v3, v4) : float32[]
  return v5
}"""
    program = parse(text)
    with exercise.plugged(yours):
        other = schedule(program)
    names = [r.op.name for r in other.records]
    expect_that(live(other) < live(program), "a lower peak", given=text, got=names)


@exercise.example
def a_training_step(yours):
    """A network's step in your order: the same results, a peak no higher, and in time."""
    paddle.seed(0)
    net = nn.Sequential(*(nn.Linear(16, 16) for _ in range(6)))
    adam = paddle.optimizer.Adam(learning_rate=0.01, parameters=net.parameters())

    @paddle.jit.to_static
    def step(x):
        loss = F.tanh(net(x)).square().mean() + net(x[::-1]).exp().mean()
        loss.backward()
        adam.step()
        adam.clear_grad()
        return loss

    x = paddle.randn([32, 16])
    step(x)
    program = step.concrete_program.program
    with exercise.plugged(yours):
        other = schedule(program)
    verify(other)
    expect_that(live(other) <= live(program), "a peak that is no higher", got=live(other))
    arrays = [x.numpy(), *(s.storage.read() for s in program.states)]
    runs = [Run(NUMPY)(p, [a.copy() for a in arrays]) for p in (program, other)]
    for a, b in zip(*runs, strict=True):
        expect(np.asarray(b), np.asarray(a), rtol=1e-5)
    n = 600
    work = work_of([[8]] * n + [[1]] * n, [[]] * n + [[k] for k in range(n)])
    began = time.process_time()
    checked(yours, work, "1200 records")
    seconds = time.process_time() - began
    expect_that(seconds < 5, "1200 records in a few seconds", got=f"{seconds:.1f} seconds")
