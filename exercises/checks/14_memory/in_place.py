"""Checks of 14_memory/in_place."""

import random
from types import SimpleNamespace

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.engine.codegen.nest_kernel import emit_nest
from minipaddle.engine.core.record import Spec
from minipaddle.engine.eager.device import NUMPY
from minipaddle.engine.eager.tracer import trace
from minipaddle.engine.ir.control import fused
from minipaddle.engine.ir.interpreter import Run
from minipaddle.engine.ir.program import NUMBER
from minipaddle.engine.passes.manager import optimized
from minipaddle.engine.passes.memory import elementwise_inplace, no_workspace, planner
from minipaddle.engine.passes.nest import Nest
from minipaddle.executors.interpreted.arena_interpreter import ArenaRun, OverwrittenError
from minipaddle.ir.parser import parse
from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.testing import run_c

exercise = Exercise(
    title="May a result be written over its input?",
    level="hard",
    minutes=45,
    before=("14_memory/liveness",),
    slots={
        "nest.in_place": "in_place",
        "memory.may_replace": "may_replace",
        "memory.writes_over": "writes_over",
    },
    hints=(
        "y = x + x reversed, written over x from the front. Which element of x is read after its "
        "place was written?",
        "Collect the reads of each input first. Moments in a row can be compared as pairs: "
        "(stage, is it inside the row?). What is stored has such a moment, and so has each read.",
        "in_place: reads[input] = [(stage, not row, load), …]\n"
        "    written = (node.stage, not once a row)\n"
        "    sizes agree, and for all: index == flat, no guard, moment <= written → (k, input)\n"
        "may_replace: nbytes equal; last < start, or last == start and self.writes_over(new, old)\n"
        "writes_over: places j where self.value(input) == old; some, and all (k, j) allowed",
    ),
    wrong={
        "any size": (
            "x.spec.size != record.spec.size or x.dtype.itemsize != record.dtype.itemsize → "
            "x.dtype.itemsize != record.dtype.itemsize"
        ),
        "elements of any width": (
            "x.spec.size != record.spec.size or x.dtype.itemsize != record.dtype.itemsize → "
            "x.spec.size != record.spec.size"
        ),
        "wherever it is read": (
            "load.index == flat and (not load.guard) and ((stage, inside) <= written) → not "
            "load.guard and (stage, inside) <= written"
        ),
        "conditions do not matter": (
            "load.index == flat and (not load.guard) and ((stage, inside) <= written) → "
            "load.index == flat and (stage, inside) <= written"
        ),
        "whenever it is read": (
            "load.index == flat and (not load.guard) and ((stage, inside) <= written) → "
            "load.index == flat and (not load.guard)"
        ),
        "one good read is enough": "all → any",
        "what is stored once a row comes last": "not self.once_a_row(node, flat) → True",
        "never once it was folded": "(node.stage, not self.once_a_row(node, flat)) → (0, True)",
        "only the first output": "self.outputs → self.outputs[:1]",
        "other bytes in the plan": (
            "self.lives[new].nbytes != self.lives[old].nbytes or last > start → last > start"
        ),
        "later readers forgotten": (
            (
                "self.lives[new].nbytes != self.lives[old].nbytes or last > start → "
                "self.lives[new].nbytes != self.lives[old].nbytes"
            ),
            "last < start → last != start",
        ),
        "only when the reader has run": "last < start or self.writes_over(new, old) → last < start",
        "the kernel is not asked": "last < start or self.writes_over(new, old) → True",
        "one of its places is enough": (
            "{(k, j) for j in places} <= set(self.inplace(record)) → {(k, j) for j in places} "
            "& set(self.inplace(record))"
        ),
        "any result of the kernel": (
            "{(k, j) for j in places} <= set(self.inplace(record)) → set(places) <= {j for _, "
            "j in self.inplace(record)}"
        ),
        "what is no input": (
            "bool(places) and {(k, j) for j in places} <= set(self.inplace(record)) → {(k, j) "
            "for j in places} <= set(self.inplace(record))"
        ),
        "what is never read stays": "GIVEN → 10 ** 9",
    },
    unkillable={
        "written = (node.stage, not self.once_a_row(node, flat)) → "
        "written = (node.stage, not self.once_a_row(flat, node))": "it asks both for their loops",
    },
)

F32 = np.dtype("float32")


def nest_of(function, *shapes):
    """The first group of a function, and the C of it."""
    specs = [s if isinstance(s, Spec) else Spec(s, F32) for s in shapes]
    program = optimized(trace(function, specs, names="xyzw").program).program
    record = program.records[0]
    if record.op is fused:
        return record.attrs["region"], emit_nest(record, "k").source
    given = [x for x in record.inputs if x.op is not NUMBER]
    region = SimpleNamespace(inputs=given, records=[record], outputs=[record])
    return region, emit_nest(record, "k").source


def claims(yours, region):
    nest = Nest(region.records, region.outputs)
    found = yours.in_place(nest)
    expect([k for k, _ in found], sorted(k for k, _ in found), why="in the order of the outputs")
    return sorted((k, region.inputs.index(x)) for k, x in found)


X, Y = Spec((4, 4), F32), Spec((4, 4), F32)
CASES = {
    "x + 1": (lambda x: [paddle.tanh(x) + 1.0], [X], [(0, 0)]),
    "x + y": (lambda x, y: [paddle.tanh(x) + y], [X, Y], [(0, 0), (0, 1)]),
    "x + its transpose": (lambda x: [x.tanh() + x.transpose([1, 0])], [X], []),
    "the transpose": (lambda x: [x.transpose([1, 0]).tanh() + 1.0], [X], []),
    "reversed": (lambda x: [x[::-1].tanh() + 1.0], [X], []),
    "x + a row of y": (lambda x, y: [x.tanh() + y], [X, (4,)], [(0, 0)]),
    "softmax": (lambda x: [F.softmax(x, -1)], [X], [(0, 0)]),
    "softmax, and what it was made of": (lambda x: [F.softmax(x, -1), x * 2.0], [X],
                                         [(0, 0)]),
    "the sum of each row": (lambda x: [(x * x).sum(1)], [X], []),
    "sums of rows with y for each": (lambda x, y: [(x * x).sum(1) + y], [X, (4,)], [(0, 1)]),
    "sums, and what was summed": (lambda x, y: [(x * y).sum(1), x * y], [X, (4, 1)],
                                  [(0, 0), (1, 1)]),
    "sums, and what they divide": (
        lambda x, y: [(x * y).sum(1), x * y / (x * y).sum(1, keepdim=True)], [X, (4, 1)], [(1, 0)]),
    "two results of two inputs": (lambda x, y: [x.tanh() * y, x.tanh() + y], [X, Y],
                                  [(0, 0), (0, 1), (1, 0), (1, 1)]),
    "a wider result": (lambda x: [(x.tanh() + 1.0).astype("float64")], [X], []),
    "an int of the same width": (lambda x: [(x.tanh() * 3.0).astype("int32")], [X], [(0, 0)]),
    "divided by the root of squares": (
        lambda x: [x / (x * x).sum(1, keepdim=True).sqrt()], [X], [(0, 0)]),
}  # fmt: skip


@exercise.example
def kernels_one_by_one(yours):
    """Each group, and which (result, input) may share memory."""
    for name, (function, specs, expected) in CASES.items():
        region, source = nest_of(function, *specs)
        given = {"group": name, "its C": source}
        expect(claims(yours, region), expected, given=given, why="(result, input) pairs")


@exercise.example
def joined_and_padded(yours):
    """What is read under a condition only is not read at every place before that is written."""
    for function, specs in (
        (lambda x: [F.pad(x[1:], [1, 0, 0, 0]).tanh() + 1.0], [X]),
        (lambda x, y: [paddle.concat([x[:2], y[2:]]).tanh() + 1.0], [X, Y]),
    ):
        region, source = nest_of(function, *specs)
        expect(claims(yours, region), [], given=source)
    region, source = nest_of(lambda x: [paddle.tril(x).tanh() + 1.0], X)
    expect(claims(yours, region), [], given=source, why="x is read in a triangle only")


STEPS = (
    lambda u, x, y: u + y,
    lambda u, x, y: u * x.transpose([1, 0]),
    lambda u, x, y: u * 2.0 - y,
    lambda u, x, y: u - u.sum(1, keepdim=True),
    lambda u, x, y: u + x.max(1, keepdim=True),
    lambda u, x, y: u[::-1] + x,
    lambda u, x, y: u * y.mean(1, keepdim=True),
    lambda u, x, y: u.tanh(),
)


@exercise.property(seed=st.integers(0, 9999), examples=15)
def the_kernel_gives_the_same(yours, seed):
    """A random group: where you say yes, its C gives the same on the input's own memory."""
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    steps = [draw.randrange(8) for _ in range(draw.randint(1, 4))]
    many = draw.random() < 0.5

    def function(x, y):
        found = [x]
        for step in steps:
            found.append(STEPS[step](found[-1], x, y))
        return found[-2:] if many else found[-1:]

    region, source = nest_of(function, (3, 3), (3, 3))
    arrays = [rng.normal(size=x.shape).astype(F32).reshape(-1) for x in region.inputs]
    sizes = [r.spec.size for r in region.outputs]
    apart = [np.zeros(n, F32) for n in sizes]
    run_c(source, *[a.copy() for a in arrays], *apart)
    found = claims(yours, region)
    for k, j in found:
        ins, outs = [a.copy() for a in arrays], [np.zeros(n, F32) for n in sizes]
        outs[k] = ins[j]
        run_c(source, *ins, *outs)
        given = {"its C": source, "result": k, "written over input": j}
        expect(outs, apart, given=given, rtol=1e-5, atol=1e-6)


PLAN = """program p(x: float32[16], y: float32[16]) {
  v1 = tanh(x) : float32[16]
  v2 = exp(v1) : float32[16]
  v3 = matmul(v1, v2) : float32[]
  v4 = multiply(v2, v3) : float32[16]
  v5 = multiply(v4, v4) : float32[16]
  v6 = cumsum(v5, axis=0, reverse=False) : float32[16]
  v7 = add(v6, y) : float32[16]
  v8 = sum(v7, axis=(0,), keepdim=True) : float32[1]
  return v8
}"""


@exercise.example
def asked_by_a_plan(yours):
    """Which value may be made where another lies, in a small program."""
    program = parse(PLAN)
    found = planner(program, no_workspace, elementwise_inplace)
    value = {f"v{k}": (r, 0) for k, r in enumerate(program.records, 1)}
    value |= {r.attrs["name"]: (r, 0) for r in program.inputs}
    with exercise.plugged(yours):
        for new, old, expected, why in (
            ("v2", "v1", False, "v3 reads v1 after that"),
            ("v4", "v2", True, "v4 is the last that reads v2, place by place"),
            ("v4", "v1", True, "v1 was read for the last time before"),
            ("v3", "v1", False, "another size"),
            ("v8", "v4", False, "another size, though v4 is needed no more"),
            ("v5", "v4", True, "both inputs are v4, and both may be written over"),
            ("v6", "v5", False, "a running sum does not allow it"),
            ("v6", "v4", True, "v4 is needed no more"),
            ("v7", "y", True, "y is read there for the last time"),
            ("v4", "v7", False, "v7 is read later"),
        ):
            got = yours.may_replace(found, value[new], value[old])
            expect(bool(got), expected, given={"program": PLAN, "new": new, "old": old}, why=why)
        for new, old, expected in (
            ("v2", "v1", True), ("v4", "v2", True), ("v4", "v3", False), ("v5", "v4", True),
            ("v6", "v5", False), ("v4", "v1", False), ("v7", "v6", True), ("v7", "y", True),
        ):  # fmt: skip
            got = yours.writes_over(found, value[new], value[old])
            expect(bool(got), expected, given={"program": PLAN, "new": new, "old": old},
                   why="writes_over")  # fmt: skip
        text = PLAN.replace("return v8", "return v8, v1").replace(
            "v7 = add(v6, y)", "v7 = add(v6, v6)"
        )
        program = parse(text)
        found = planner(program, no_workspace, elementwise_inplace)
        y = program.inputs[1]
        got = yours.may_replace(found, (program.records[3], 0), (y, 0))
        expect(bool(got), True, given=text, why="nobody reads y")


@exercise.example
def some_inputs_only(yours):
    """A kernel that may write result 0 over its second input, where its first is the same value."""
    text = """program p(x: float32[16], y: float32[16]) {
  v1 = tanh(x) : float32[16]
  v2 = add(v1, v1) : float32[16]
  v3 = exp(y) : float32[16]
  v4 = add(v3, v2) : float32[16]
  return v4
}"""
    program = parse(text)
    v1, v2, v3, v4 = program.records
    for allowed, new, old, expected in (
        ([(0, 1)], v2, v1, False), ([(0, 0)], v2, v1, False), ([(0, 0), (0, 1)], v2, v1, True),
        ([(0, 1)], v4, v2, True), ([(0, 1)], v4, v3, False), ([(1, 1), (1, 0)], v4, v2, False),
        ([], v4, v2, False),
    ):  # fmt: skip
        found = planner(program, no_workspace, lambda r, allowed=allowed: allowed)
        got = yours.writes_over(found, (new, 0), (old, 0))
        given = {"program": text, "new": str(new), "old": str(old), "(result, input)": allowed}
        expect(bool(got), expected, given=given)


@exercise.example
def a_training_step_in_its_memory(yours):
    """The step of a network: less memory than without, and nothing is overwritten too early."""
    paddle.seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2))
    adam = paddle.optimizer.Adam(learning_rate=0.01, parameters=net.parameters())

    @paddle.jit.to_static
    def step(x, y):
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        adam.step()
        adam.clear_grad()
        return loss

    x, y = paddle.randn([6, 4]), paddle.to_tensor([0, 1, 1, 0, 0, 1])
    step(x, y)
    program = step.concrete_program.program
    arrays = [x.numpy(), y.numpy(), *(s.storage.read() for s in program.states)]
    want = Run(NUMPY)(program, [a.copy() for a in arrays])
    with exercise.plugged(yours):
        run = ArenaRun(NUMPY, check=True)
        try:
            found = run(program, [a.copy() for a in arrays])
        except OverwrittenError as error:
            expect_that(False, "no value is overwritten before it is read", got=str(error))
    for a, b in zip(found, want, strict=True):
        expect(a, b, rtol=1e-4, atol=1e-5, why="what the step gives, in the arena")
    plan = run.plans[program]
    kinds = [plan.location(s.update).kind for s in program.states if s.update is not None]
    expect_that(kinds.count("state") == len(kinds), "every update is written into its state",
                got=kinds)  # fmt: skip
