"""Checks of 10_training_programs/cut."""

import random

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.engine.core.slots import plugged
from minipaddle.engine.ir.interpreter import Run
from minipaddle.engine.ir.verifier import verify
from minipaddle.ir.parser import parse
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="The cut: what the forward keeps for the backward",
    level="medium",
    minutes=40,
    before=("06_programs/last_uses",),
    slots={
        "ir.depending": "depending",
        "ir.residuals_of": "residuals_of",
        "ir.cut": "cut",
    },
    hints=(
        "Colour all that must wait for the cotangents. Which values have an arrow from a white "
        "record to a coloured one? And what if a late output is not coloured?",
        "One pass over program.records is enough for `depending`, since inputs stand before uses. "
        "A late output that does not wait is a residual and nothing else.",
        "waiting = depending(…); wanted = records of the late outputs; own = the other outputs\n"
        "late, residuals = again(the records that wait, program, wanted, own and given)\n"
        "residuals without late inputs\n"
        "first: the other inputs, states, the other records, own + residuals, guards; pruned\n"
        "second: residuals + late inputs, no states, late, wanted",
    ),
    wrong={
        "only what takes a late input itself waits": (
            "not found.isdisjoint(record.inputs) → set(inputs) & set(record.inputs)"
        ),
        "the inputs depend on themselves": "found - set(inputs) → found",
        "keeping every value of the forward": (
            "[value for value in [*program.given, *program.records] if value in needed] → [v "
            "for v in [*program.given, *program.records] if v not in late]"
        ),
        "late outputs that do not wait forgotten": (
            "{*wanted, *(value for record in late for value in record.inputs)} → {*(value for "
            "record in late for value in record.inputs)}"
        ),
        "what late records make kept too": (
            "{*wanted, *(value for record in late for value in record.inputs)} - {*late} → "
            "{*wanted, *(value for record in late for value in record.inputs)}"
        ),
        "inputs and states need not be handed over": (
            "[value for value in [*program.given, *program.records] if value in needed] → "
            "[value for value in program.records if value in needed]"
        ),
        "late inputs kept as residuals": (
            "residuals = [value for value in residuals if value not in late_inputs] → pass"
        ),
        "nothing made again": (
            "late, residuals = again(late, program, wanted, {*own, *program.given}) → "
            "residuals = residuals_of(late, program, wanted)"
        ),
        "everything costs room": "{*own, *program.given} → set()",
        "records that nobody needs left in": "pruned(first) → first",
        "the residuals before the outputs": "[*own, *residuals] → [*residuals, *own]",
        "the late inputs first": "[*residuals, *late_inputs] → [*late_inputs, *residuals]",
        "the late outputs in the order of the program": (
            "[program.outputs[k] for k in late_outputs] → [program.outputs[k] for k in "
            "sorted(late_outputs)]"
        ),
        "the states forgotten": "program.states → []",
        "the guards forgotten": (
            "Program(program.name, [value for value in program.inputs if value not in "
            "late_inputs], program.states, [record for record in program.records if record not "
            "in waiting], [*own, *residuals], program.guards) → Program(program.name, [value "
            "for value in program.inputs if value not in late_inputs], program.states, [record "
            "for record in program.records if record not in waiting], [*own, *residuals])"
        ),
    },
)

F32 = np.dtype("float32")
SMALL = """program p(x: float32[2], w: float32[2], g: float32[2]) {
  v1 = matmul(x, w) : float32[]
  v2 = multiply(x, v1) : float32[2]
  v3 = tanh(v2) : float32[2]
  v4 = matmul(v3, g) : float32[]
  v5 = multiply(g, v3) : float32[2]
  v6 = add(v5, v4) : float32[2]
  v7 = exp(v1) : float32[]
  return v3, v6, v7
}"""


def named(program, *texts):
    """Records of the text SMALL by name."""
    known = {r.attrs["name"]: r for r in program.inputs}
    known |= {f"v{k}": r for k, r in enumerate(program.records, 1)}
    return [known[text] for text in texts]


def names(program, records):
    known = {r: r.attrs["name"] for r in program.given}
    known |= {r: f"v{k}" for k, r in enumerate(program.records, 1)}
    return [known.get(r, "?") for r in records]


@exercise.example
def who_waits(yours):
    """v4 and v5 take g; v6 takes what they make; x has to do with nearly all."""
    p = parse(SMALL)
    for inputs, expected in (("g", "v4 v5 v6"), ("w", "v1 v2 v3 v4 v5 v6 v7"), ("", "")):
        found = yours.depending(p, named(p, *inputs.split()))
        expect_that(isinstance(found, set), "a set", got=found)
        got = sorted(names(p, found))
        expect(got, expected.split(), given={"program": SMALL, "inputs": inputs})
    got = sorted(names(p, yours.depending(p, set(named(p, "v2", "g")))))
    expect(got, ["v3", "v4", "v5", "v6"], given={"program": SMALL, "inputs": "v2 and g"})


@exercise.example
def what_must_be_there(yours):
    """v4 and v6 are late: v3, g and v5 must be there. Wanted values too, late ones not."""
    p = parse(SMALL)
    for late, wanted, expected in (
        ("v4 v6", "", "g v3 v5"),
        ("v4 v5 v6", "v6", "g v3"),
        ("v4 v5 v6", "v7 x v6", "x g v3 v7"),
        ("v2 v3", "", "x v1"),
        ("", "v7 w", "w v7"),
        ("v1", "v1", "x w"),
    ):
        got = yours.residuals_of(named(p, *late.split()), p, named(p, *wanted.split()))
        given = {"program": SMALL, "late": late, "wanted": wanted}
        expect(names(p, got), expected.split(), given=given)
    p = parse("program p(x: float32[2]) {\n  v1 = multiply(x, 2.0) : float32[2]\n  return v1\n}")
    got = yours.residuals_of(p.records, p, [])
    expect(names(p, got), ["x"], given="v1 = multiply(x, 2.0)", why="a number is no residual")


@exercise.example
def a_small_program(yours):
    """x, w → v3 at once; g comes later, and v6 with it. v3 is kept anyway."""
    p = parse(SMALL)
    with exercise.plugged(yours):
        first, second = yours.cut(p, named(p, "g"), [1])
    says = {"program": SMALL, "late": "g, output 1", "first": str(first), "second": str(second)}
    expect((first.name, second.name), ("p", "p_backward"), given=says)
    expect(names(p, first.inputs), ["x", "w"], given=says)
    expect(names(p, first.records), ["v1", "v2", "v3", "v7"], given=says)
    expect(names(p, first.outputs), ["v3", "v7", "v3"], given=says)
    expect(names(p, second.inputs), ["v3", "g"], given=says)
    expect(names(p, second.records), ["v4", "v5", "v6"], given=says)
    expect(names(p, second.outputs), ["v6"], given=says)


@exercise.example
def late_outputs_in_their_order(yours):
    """Outputs 2 and 1 are late; 2 does not wait for g at all; v1 is for nobody."""
    p = parse(SMALL)
    with exercise.plugged(yours):
        first, second = yours.cut(p, named(p, "g"), [2, 1])
        verify(first)
        verify(second)
    says = {"program": SMALL, "late": "g, outputs 2 and 1", "first": str(first)}
    expect(names(p, second.outputs), ["v7", "v6"], given=says)
    expect(names(p, first.outputs[:1]), ["v3"], given=says)
    expect(names(p, second.inputs)[-1], "g", given=says | {"second": str(second)})
    text = SMALL.replace("return v3, v6, v7", "return v3, v6")
    p = parse(text)
    with exercise.plugged(yours):
        first, _ = yours.cut(p, named(p, "g"), [1])
    expect(names(p, first.records), ["v1", "v2", "v3"], given=text, why="v7 is for nobody")


@exercise.example
def states_and_guards(yours):
    """Both belong to the first; the state's new value is computed there."""
    text = """program p(x: float32[n], y: float32[m], g: float32[n]) {
  state w: float32[]
  assume n == m
  v1 = matmul(x, y) : float32[]
  v2 = add(w, v1) : float32[]
  v3 = multiply(x, w) : float32[n]
  v4 = multiply(g, w) : float32[n]
  update w = v2
  return v3, v4
}"""
    p = parse(text)
    with exercise.plugged(yours):
        first, second = yours.cut(p, [p.inputs[2]], [1])
    says = {"program": text, "first": str(first), "second": str(second)}
    expect_that(first.states == p.states and not second.states, "states in the first", given=says)
    expect_that(first.guards == p.guards and not second.guards, "guards in the first", given=says)
    x, w = np.array([1, 2], F32), np.array(3, F32)
    out, w_kept, now = Run(np)(first, [x, x, w])
    expect((out, w_kept, now), (3 * x, w, w + 5), given=says)
    expect(Run(np)(second, [w_kept, x]), [3 * x], given=says)


@exercise.example
def cheap_values_are_made_again(yours):
    """The derivative of a GELU takes many small steps: two arrays cross, not eleven."""
    with exercise.plugged(yours):
        paddle.seed(0)
        net = paddle.jit.to_static(nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)))
        net(paddle.ones([2, 8]))
        captured = net.forward.concrete_program
    first, second = captured.program, captured.backward
    n = captured.residuals
    states = {s.record for s in first.states}
    kept = [r for r in first.outputs[n:] if r not in states and r not in first.inputs]
    expect_that(len(kept) <= 2, "at most two residuals besides x and weights",
                given={"forward": str(first), "backward": str(second)}, got=len(kept))  # fmt: skip
    text = """program p(x: float32[2], y: float32[2], g: float32[2]) {
  v1 = add(x, y) : float32[2]
  v2 = multiply(v1, g) : float32[2]
  return x, v2
}"""
    p = parse(text)
    with exercise.plugged(yours):
        first, second = yours.cut(p, [p.inputs[2]], [1])
    expect(names(p, second.inputs), ["x", "y", "g"], given=text,
           why="x and y cost nothing, v1 is made of them")  # fmt: skip


@exercise.property(seed=st.integers(0, 9999), examples=30)
def cut_anywhere(yours, seed):
    """A random program and random late inputs: both halves one after the other give the whole."""
    draw = random.Random(seed)
    lines, values = [], ["x", "y", "g", "h"]
    for k in range(1, draw.randint(2, 9)):
        op = draw.choice(("add", "multiply", "maximum", "tanh", "matmul"))
        a, b = draw.choice(values), draw.choice(values)
        args = a if op == "tanh" else f"{a}, {b}"
        lines.append(f"  v{k} = {op}({args}) : float32[2, 2]")
        values.append(f"v{k}")
    outputs = [draw.choice(values) for _ in range(draw.randint(1, 4))]
    head = ", ".join(f"{v}: float32[2, 2]" for v in ("x", "y", "g", "h"))
    text = "\n".join([f"program p({head}) {{", *lines, f"  return {', '.join(outputs)}", "}"])
    p = parse(text)
    late = [p.inputs[k] for k in sorted(draw.sample(range(4), draw.randint(0, 2)), reverse=True)]
    taints = {r: {r} & set(late) for r in p.inputs}
    for r in p.records:
        taints[r] = set().union(*(taints[e] for e in r.inputs))
    must = [k for k, r in enumerate(p.outputs) if taints[r]]
    more = [k for k in range(len(p.outputs)) if k not in must and draw.random() < 0.3]
    late_outputs = draw.sample([*must, *more], len(must) + len(more))
    given = {"program": text, "late inputs": names(p, late), "late outputs": late_outputs}
    with exercise.plugged(yours), plugged("ir.remade", lambda *_: None):
        first, second = yours.cut(p, late, late_outputs)
        verify(first)
        verify(second)
    rng = np.random.default_rng(seed)
    arrays = {r: rng.normal(size=(2, 2)).astype(F32) for r in p.inputs}
    whole = Run(np)(p, [arrays[r] for r in p.inputs])
    own = [k for k in range(len(p.outputs)) if k not in late_outputs]
    found = Run(np)(first, [arrays[r] for r in p.inputs if r not in late])
    expect(found[: len(own)], [whole[k] for k in own], given=given, why="outputs of the first")
    kept = found[len(own) :]
    got = Run(np)(second, [*kept, *(arrays[r] for r in late)])
    expect(got, [whole[k] for k in late_outputs], given=given, why="outputs of the second")
    waits = [r for r in p.records if taints[r]]
    needed = {e for r in waits for e in r.inputs} | {p.outputs[k] for k in late_outputs}
    fewest = [r for r in needed if not taints[r]]
    expect(len(kept), len(fewest), given=given, why="how many residuals there are")
    for r in first.records:
        expect_that(not taints[r], "no record of the first waits for what is late", given=given)


@exercise.example
def a_network_learns_with_it(yours):
    """The loss is computed outside: the backward program waits for its cotangent."""
    with exercise.plugged(yours):
        paddle.seed(0)
        net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.BatchNorm1D(16), nn.Linear(16, 1))
        adam = paddle.optimizer.Adam(learning_rate=0.05, parameters=net.parameters())
        forward = paddle.jit.to_static(net.forward)
        x = paddle.randn([64, 2])
        y, losses = x[:, :1] * x[:, 1:], []
        for _ in range(30):
            loss = F.mse_loss(forward(x), y)
            loss.backward()
            adam.step()
            adam.clear_grad()
            losses.append(loss.item())
    expect_that(losses[-1] < 0.4 * losses[0], "a smaller loss after 30 steps", got=losses[::10])
