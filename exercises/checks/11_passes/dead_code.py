"""Checks of 11_passes/dead_code."""

import contextlib
import io
import random
from types import SimpleNamespace

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.engine.eager.device import NUMPY
from minipaddle.engine.ir.interpreter import Run
from minipaddle.engine.ir.program import Program
from minipaddle.engine.passes.manager import optimized
from minipaddle.ir.parser import parse
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Dead code: what nobody needs is not computed",
    level="easy",
    minutes=25,
    before=("06_programs/last_uses",),
    slots={"ir.needed": "needed", "ir.has_effect": "has_effect"},
    hints=(
        "Of the last record of a program you can say at once whether it is needed. And of the one "
        "before it, if you know that of the last?",
        "Go backward with a set of what is needed. `has_effect` calls itself for the records of "
        "each region.",
        "live = results and binders\n"
        "for record, last to first:\n"
        "    if it is live, or has an effect: it stays, and its inputs are live\n"
        "return what stays in the order of the program",
    ),
    wrong={
        "the last first": "kept.insert(0, record) → kept.append(record)",
        "forgetting what others take": "live |= {*record.inputs} → pass",
        "only the first input is needed": "live |= {*record.inputs} → live |= {*record.inputs[:1]}",
        "going forward": (
            "kept.insert(0, record) → kept.append(record)",
            "reversed(program.records) → program.records",
        ),
        "new values of states forgotten": "program.results → program.outputs",
        "effects forgotten": "record in live or has_effect(record) → record in live",
        "effects in regions forgotten": (
            "any((has_effect(inner) for inner in region.records)) → False"
        ),
        "effects at one depth only": "has_effect(inner) → inner.op.effect",
        "sizes that others refer to forgotten": (
            "{*program.results, *binders(program)} → {*program.results}"
        ),
        "what has an effect needs nothing": (
            "live |= {*record.inputs} → live |= {*record.inputs} if record in live else set()"
        ),
        "every record that somebody takes": (
            "{*program.results, *binders(program)} → {x for r in program.records for x in "
            "r.inputs} | {*program.results, *binders(program)}"
        ),
        "one region only": "regions(record).values() → [*regions(record).values()][:1]",
    },
)  # fmt: skip

TEXT = """program p(x: float32[2], y: float32[2], b: bool[]) {
  state w: float32[2]
  v1 = exp(x) : float32[2]
  v2 = tanh(y) : float32[2]
  v3 = add(v1, 1.0) : float32[2]
  v4 = multiply(v2, w) : float32[2]
  v5 = add(v4, v1) : float32[2]
  v6 = multiply(w, 0.5) : float32[2]
UPDATE  return RESULTS
}"""


def program(results, update=""):
    return parse(TEXT.replace("RESULTS", results).replace("UPDATE", update))


def kept(yours, p):
    names = {r: f"v{k}" for k, r in enumerate(p.records, 1)}
    return " ".join(names.get(r, "?") for r in yours.needed(p))


@exercise.example
def what_leads_to_a_result(yours):
    """v4 takes v2; nobody takes v3. Of a result everything it is made of is needed."""
    for results, update, expected in (
        ("v2", "", "v2"),
        ("v3", "", "v1 v3"),
        ("v4", "", "v2 v4"),
        ("v5", "", "v1 v2 v4 v5"),
        ("x", "", ""),
        ("v2, v2, y", "", "v2"),
        ("v3, v2", "", "v1 v2 v3"),
        ("x", "  update w = v6\n", "v6"),
        ("v1", "  update w = v4\n", "v1 v2 v4"),
    ):
        p = program(results, update)
        expect(kept(yours, p), expected, given=str(p), why="what stays")


@exercise.example
def a_list_of_records(yours):
    """The very records of the program; the program itself stays as it was."""
    p = program("v4")
    before = list(p.records)
    found = yours.needed(p)
    expect_that(isinstance(found, list), "a list", got=found)
    expect_that(p.records == before, "the program is not changed", given=str(p), got=p.records)


def traced(function, *shapes):
    static = paddle.jit.to_static(function)
    static(*(paddle.ones(list(s)) for s in shapes))
    return static.main_program


@exercise.example
def effects_stay(yours):
    """A print and an assert are computed, with all they take; what stands beside them is not."""

    def shown(x):
        y, z = x * 2, x * 3
        print(y.sum())
        assert (z + 1).max() > 0
        x.exp()
        return x.tanh()

    with contextlib.redirect_stdout(io.StringIO()):
        p = traced(shown, (2,))
    found = [r.op.name for r in yours.needed(p)]
    expect_that("show" in found, "the print stays", given=str(p), got=found)
    expect_that("check" in found, "the assert stays", given=str(p), got=found)
    expect(found.count("multiply"), 2, given=str(p), why="what print and assert take")
    expect_that("exp" not in found, "exp is dead", given=str(p), got=found)


@exercise.example
def effects_inside(yours):
    """A branch with a print in one of its sides, at any depth, has an effect; one without, none."""
    inner = parse("program p(x: float32[2]) {\n  v1 = exp(x) : float32[2]\n  return v1\n}")
    quiet = inner.records[0]
    loud = Made(effect=True)
    for expected, record in (
        (False, quiet),
        (True, loud),
        (True, Made(a=[loud])),
        (False, Made(a=[quiet], b=[quiet])),
        (True, Made(a=[quiet], b=[quiet, loud])),
        (True, Made(a=[loud], b=[])),
        (True, Made(a=[quiet], b=[Made(c=[quiet], d=[quiet, Made(e=[loud])])])),
        (False, Made(a=[], b=[Made(c=[quiet])])),
    ):
        expect(yours.has_effect(record), expected, given=repr(record), why="has_effect")


class Made:
    """A record, in short: its regions by name."""

    def __init__(self, effect=False, **regions):
        self.op, self.inputs, self.spoken = SimpleNamespace(effect=effect), [], effect
        self.attrs = {k: Program(k, records=v) for k, v in regions.items()}

    def __repr__(self):
        inside = "; ".join(f"{k}: {v.records}" for k, v in self.attrs.items())
        return f"{'show' if self.spoken else 'record'}({inside})"


@exercise.example
def sizes_stay(yours):
    """How many are positive? nonzero says so; the sum refers to that size, so nonzero stays."""

    def positive(x):
        places = paddle.nonzero(x > 0)
        return paddle.zeros([places.shape[0]]) + 1.0

    p = traced(positive, (3,))
    found = [r.op.name for r in yours.needed(p)]
    expect_that("nonzero" in found, "nonzero stays", given=str(p), got=found)
    with exercise.plugged(yours):
        after = optimized(p, until="dead_code").program
    got = Run(NUMPY)(after, [np.array([1.0, -2.0, 3.0], "float32")])[0]
    expect(got, [1.0, 1.0], given="two of [1, -2, 3] are positive")


@exercise.property(seed=st.integers(0, 10**6), size=st.integers(1, 12))
def as_a_walk_from_the_results(yours, seed, size):
    """Random programs; the oracle walks from each result to what it is made of."""
    random.seed(seed)
    known = ["x", "y", "w"]
    lines = []
    for k in range(1, size + 1):
        op = random.choice(["add", "multiply", "subtract"])
        lines.append(f"  v{k} = {op}({random.choice(known)}, {random.choice(known)}) : float32[2]")
        known.append(f"v{k}")
    results = random.sample(known, random.randint(1, 2))
    text = "program p(x: float32[2], y: float32[2]) {\n  state w: float32[2]\n"
    p = parse(text + "\n".join(lines) + f"\n  return {', '.join(results)}\n}}")
    todo, found = list(p.outputs), set()
    while todo:
        record = todo.pop()
        found.add(record)
        todo += record.inputs
    expected = " ".join(f"v{k}" for k, r in enumerate(p.records, 1) if r in found)
    expect(kept(yours, p), expected, given=str(p))


@exercise.example
def a_network_trains(yours):
    """A captured training step: the same losses, and no dead record left by the passes."""

    def losses():
        paddle.seed(0)
        net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1D(8), nn.GELU(), nn.Linear(8, 1))
        adam = paddle.optimizer.Adam(0.01, parameters=net.parameters())

        @paddle.jit.to_static
        def step(x, y):
            net(x).exp()
            loss = F.mse_loss(net(x), y)
            loss.backward()
            adam.step()
            adam.clear_grad()
            return loss

        x = paddle.randn([16, 4])
        return [step(x, x[:, :1]).item() for _ in range(4)], step.main_program

    expected, _ = losses()
    with exercise.plugged(yours):
        got, p = losses()
        after = optimized(p, until="dead_code").program
    expect(got, expected, given="four steps of Adam", why="the losses")
    needs = {r for record in after.records for r in record.inputs} | set(after.results)
    dead = [r.op.name for r in after.records if r not in needs and not r.op.effect]
    expect_that(not dead, "all that is left is needed", given=str(p)[:400], got=dead)
    arrays = [NUMPY.full(r.shape, 0.5).astype(r.dtype) for r in after.given]
    for a, b in zip(Run(NUMPY)(p, arrays), Run(NUMPY)(after, arrays), strict=True):
        expect(np.array(b), np.array(a), given="the step before and after", rtol=1e-5, atol=1e-6)
