"""Checks of 12_fusion/joining."""

import random

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.engine.eager.device import NUMPY
from minipaddle.engine.ir.interpreter import Run
from minipaddle.engine.ir.verifier import verify
from minipaddle.engine.passes.fusion import Fusion, fuse
from minipaddle.engine.passes.manager import optimized
from minipaddle.ir.parser import parse
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Joining groups: the group between, and the value that must be stored",
    level="hard",
    minutes=45,
    before=("11_passes",),
    slots={"fusion.outputs": "outputs", "fusion.has_path_through": "has_path_through"},
    hints=(
        "exp, then a matrix product of it, then their sum: what would a kernel of exp and sum have "
        "to wait for? And which records take the exp?",
        "Walk backward from b over the groups that make what it takes; leave a out in the first "
        "step only. Then the same from a.",
        "leads(a, b): todo = the groups before b, without a\n"
        "    take one: is it a? True. Else add the groups before it\n"
        "has_path_through: leads(a, b) or leads(b, a)\n"
        "outputs: in needed, or somebody outside is among its users",
    ),
    wrong={
        "results of the program forgotten": (
            "record in fusion.needed or users - inside → users - inside"
        ),
        "results alone": "record in fusion.needed or users - inside → record in fusion.needed",
        "any record with a user": "users - inside → users",
        "stored only if nobody inside needs it": "users - inside → users and (not users & inside)",
        "stored only if somebody inside needs it too": (
            "users - inside → users & inside and users - inside"
        ),
        "any path at all": (
            "[group for group in _before(fusion, b) if group is not a] → [group for group in "
            "_before(fusion, b)]"
        ),
        "one direction": "_leads(fusion, a, b) or _leads(fusion, b, a) → _leads(fusion, a, b)",
        "the other direction": (
            "_leads(fusion, a, b) or _leads(fusion, b, a) → _leads(fusion, b, a)"
        ),
        "both directions at once": (
            "_leads(fusion, a, b) or _leads(fusion, b, a) → _leads(fusion, a, b) and "
            "_leads(fusion, b, a)"
        ),
        "only one group in between": (
            "todo += _before(fusion, group) → todo += {a} & _before(fusion, group)"
        ),
        "never between": "if group is a: → pass",
        "whenever something stands before b": "group is a → True",
        "the first record of a group is enough": (
            "(fusion.of.get(x) for record in group.records for x in record.inputs) → "
            "(fusion.of.get(x) for record in group.records[:1] for x in record.inputs)"
        ),
        "only first inputs": (
            "(fusion.of.get(x) for record in group.records for x in record.inputs) → "
            "(fusion.of.get(x) for record in group.records for x in record.inputs[:1])"
        ),
    },
)  # fmt: skip

HEAD = "program p(x: float32[2, 2], y: float32[2, 2]) {\n"


def program(*texts, results):
    lines = [f"  v{k} = {text} : float32[2, 2]" for k, text in enumerate(texts, 1)]
    return parse(HEAD + "\n".join(lines) + f"\n  return {results}\n}}")


class Together:
    """A group, in short."""

    def __init__(self, records):
        self.records = records


def grouped(p, *groups):
    """A fusion with the records v1, v2 … in groups: "12" is v1 and v2; and the groups by text."""
    fusion, found = Fusion(p), {}
    for text in groups:
        numbers = [int(k) - 1 for k in text]
        records = [p.records[k] for k in numbers]
        found[text] = group = Together(records)
        for record in records:
            fusion.of[record] = group
    return fusion, found


def named(p, records):
    names = {r: f"v{k}" for k, r in enumerate(p.records, 1)}
    return " ".join(names.get(r, "?") for r in records)


DIAMOND = ("exp(x)", "matmul(v1, v1)", "add(v1, v2)", "tanh(v3)", "multiply(v4, v1)")


@exercise.example
def what_others_need(yours):
    """Results, and what somebody outside takes; not what only the group itself takes."""
    p = program(*DIAMOND, results="v3, v5")
    for group, expected in (
        ("1", "v1"), ("13", "v1 v3"), ("345", "v3 v5"), ("1345", "v1 v3 v5"), ("4", "v4"),
        ("45", "v5"), ("2", "v2"), ("12345", "v3 v5"), ("15", "v1 v5"), ("", ""),
    ):  # fmt: skip
        fusion, _ = grouped(p)
        found = yours.outputs(fusion, [p.records[int(k) - 1] for k in group])
        expect_that(isinstance(found, list), "a list", got=found)
        given = {"program": str(p), "group": " ".join(f"v{k}" for k in group)}
        expect(named(p, found), expected, given=given)
    p = program("exp(x)", "tanh(x)", results="v1")
    expect(named(p, yours.outputs(grouped(p)[0], p.records)), "v1", given=str(p), why="v2 is dead")


@exercise.example
def what_must_run_between(yours):
    """The product takes v1 and makes something for v3: they stay apart, and so do v1 and v4, v5."""
    p = program(*DIAMOND, results="v5")
    for groups, cases in {
        "1 2 3 4 5": {
            "1 3": True,
            "1 2": False,
            "2 3": False,
            "3 4": False,
            "1 5": True,
            "2 4": True,
        },
        "1 2 345": {"1 345": True, "2 345": False},
        "12 3 4 5": {"12 3": False, "12 4": True},
        "12 345": {"12 345": False},
        "1 23 45": {"1 45": True, "23 45": False},
        "1 2 3 45": {"3 45": False},
        "1 2 34 5": {"34 5": False},
    }.items():
        for pair, expected in cases.items():
            asked(yours, p, groups, pair, expected)


def asked(yours, p, groups, pair, expected):
    for first, second in (pair.split(), pair.split()[::-1]):
        fusion, found = grouped(p, *groups.split())
        got = yours.has_path_through(fusion, found[first], found[second])
        given = {"program": str(p), "groups": groups, "a": first, "b": second}
        expect(got, expected, given=given, why="is there a group between?")


@exercise.example
def two_that_have_nothing_to_do_with_each_other(yours):
    """Both read x, neither leads to the other, though both are used by a third."""
    p = program("exp(x)", "tanh(x)", "matmul(v1, v2)", "matmul(v3, y)", results="v4, v1")
    for a, b, expected in (
        ("1", "2", False),
        ("1", "3", False),
        ("1", "4", True),
        ("2", "4", True),
    ):
        fusion, found = grouped(p, *"1234")
        given = {"program": str(p), "a": a, "b": b}
        expect(yours.has_path_through(fusion, found[a], found[b]), expected, given=given)


def closure(p, groups):
    """Which group leads to which, by any path: Warshall's algorithm on their numbers."""
    of = {p.records[int(k) - 1]: n for n, group in enumerate(groups) for k in group}
    n = len(groups)
    leads = np.zeros((n, n), bool)
    for r in p.records:
        for x in r.inputs:
            if x in of and of[x] != of[r]:
                leads[of[x], of[r]] = True
    for k in range(n):
        leads |= leads[:, k : k + 1] & leads[k]
    return leads


def some_program(rng, size):
    known, texts = ["x", "y"], []
    for k in range(1, size + 1):
        op = rng.choice(["exp", "tanh", "add", "multiply", "matmul"])
        given = [rng.choice(known) for _ in range(1 if op in ("exp", "tanh") else 2)]
        texts.append(f"{op}({', '.join(given)})")
        known.append(f"v{k}")
    return program(*texts, results=f"v{size}, {rng.choice(known)}")


@exercise.property(seed=st.integers(0, 10**6), size=st.integers(2, 9), examples=40)
def every_pair(yours, seed, size):
    """Random programs and groups; the oracle computes which group leads to which."""
    rng = random.Random(seed)
    p = some_program(rng, size)
    groups = [str(k) for k in range(1, size + 1)]
    for _ in range(rng.randrange(size)):  # join two, as long as no circle comes of it
        a, b = rng.sample(range(len(groups)), 2) if len(groups) > 1 else (0, 0)
        if a == b:
            continue
        joined = [g for k, g in enumerate(groups) if k not in (a, b)]
        joined.append("".join(sorted(groups[a] + groups[b])))
        if not closure(p, joined).diagonal().any():
            groups = joined
    leads = closure(p, groups)
    fusion, found = grouped(p, *groups)
    for a, first in enumerate(groups):
        for b, second in enumerate(groups):
            if a == b:
                continue
            expected = any((leads[a, k] & leads[k, b]) | (leads[b, k] & leads[k, a])
                           for k in range(len(groups)) if k not in (a, b))  # fmt: skip
            given = {"program": str(p), "groups": groups, "a": first, "b": second}
            expect(
                yours.has_path_through(fusion, found[first], found[second]),
                bool(expected),
                given=given,
            )


@exercise.property(seed=st.integers(0, 10**6), size=st.integers(2, 9), examples=30)
def programs_of_groups(yours, seed, size):
    """The pass with your two: well formed, the same numbers, and nothing stored for nobody."""
    p = some_program(random.Random(seed), size)
    with exercise.plugged(yours):
        after = fuse(p)
    verify(after)
    arrays = [np.array([[0.1, -0.2], [0.3, 0.4]], "f4"), np.array([[0.5, 0.1], [-0.3, 0.2]], "f4")]
    with np.errstate(all="ignore"):
        expected, got = Run(NUMPY)(p, list(arrays)), Run(NUMPY)(after, list(arrays))
    says = {"program": str(p), "groups": str(after)}
    expect(got, expected, given=says, rtol=1e-5, atol=1e-6)
    taken = {x for r in after.records for x in r.inputs} | set(after.results)
    stored = [r for r in after.records if r.op.name == "item" and r not in taken]
    expect_that(not stored, "what is stored is needed", given=says, got=stored)


@exercise.example
def a_training_step(yours):
    """LayerNorm, GELU, softmax and Adam: as many groups as there must be, and the same results."""
    paddle.seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3))
    adam = paddle.optimizer.Adam(0.01, parameters=net.parameters())

    @paddle.jit.to_static
    def step(x, y):
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        adam.step()
        adam.clear_grad()
        return loss

    step(paddle.randn([16, 4]), paddle.zeros([16, 1], "int64"))
    program = step.main_program
    with exercise.plugged(yours):
        done = optimized(program)
    before, after = (done.snapshots[k].before if k < 1 else done.after("fusion") for k in (0, 1))
    kernels = [r for r in after.records if r.op.name not in ("item", "reshape")]
    expect_that(
        len(kernels) < 40, "fewer than 40 kernels", given=str(program)[:300], got=len(kernels)
    )
    arrays = [np.linspace(0.1, 0.9, r.spec.size).astype(r.dtype).reshape(r.shape)
              for r in program.given]  # fmt: skip
    expected, got = (Run(NUMPY)(p, [a.copy() for a in arrays]) for p in (before, after))
    for a, b in zip(expected, got, strict=True):
        expect(np.array(b), np.array(a), given=str(after)[:400], rtol=1e-3, atol=1e-5)
