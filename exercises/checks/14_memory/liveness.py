"""Checks of 14_memory/liveness."""

import random

from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.engine.eager.device import NUMPY
from minipaddle.engine.ir.interpreter import Run
from minipaddle.engine.ir.program import NUMBER
from minipaddle.engine.passes import memory
from minipaddle.executors.interpreted.arena_interpreter import ArenaRun
from minipaddle.ir.parser import parse
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="From when to when a value is needed, where several names mean one memory",
    level="medium",
    minutes=40,
    before=("06_programs/last_uses",),
    slots={"memory.roots": "roots", "memory.lifetimes": "lifetimes"},
    hints=(
        "v2 = reshape(v1), and long after the last reader of v1 somebody reads v2. What happens if "
        "the memory of v1 has been given away?",
        "Inputs stand before uses: one pass over the records is enough for both. A view's root is "
        "the root of what it looks into, which you know already.",
        "roots: given and numbers → (r, 0); a record: below = value_of_view(record)\n"
        "    none → (record, 0); else found.get(below[0], below)\n"
        "lifetimes: start of given: GIVEN; of (record, k): t. last[root[r]] = t for each input\n"
        "    results: last = len(records)\n"
        "    Life(start, last (or start) + 1, bytes)",
    ),
    wrong={
        "a view has memory of its own": "value_of_view(record) or (record, 0) → (record, 0)",
        "a view of a view ends half way": "found.get(below[0], below) → below",
        "which result does not matter": (
            "found.get(below[0], below) → found.get(below[0], (below[0], 0))"
        ),
        "given values start at 0": "GIVEN → 0",
        "one result each": "len(specs_of(record)) → 1",
        "only the record itself is read": "(root[r], t) → ((r, 0), t)",
        "the first reader ends it": (
            "last.update(((root[r], t) for r in record.inputs if r.dtype is not None)) → "
            "[last.setdefault(root[r], t) for r in record.inputs if r.dtype is not None]"
        ),
        "what is handed out forgotten": (
            "last.update(((root[r], len(program.records)) for r in program.results)) → pass"
        ),
        "only outputs are handed out": (
            "((root[r], len(program.records)) for r in program.results) → ((root[r], "
            "len(program.records)) for r in program.outputs)"
        ),
        "it ends with its last reader": "last.get(value, begun) + 1 → last.get(value, begun)",
        "what nobody reads lives to the end": (
            "last.get(value, begun) → last.get(value, len(program.records))"
        ),
        "looks count as reads": "if is_view(record, root): → pass",
        "the bytes of the first result": "specs_of(record)[k] → specs_of(record)[0]",
        "numbers forgotten": ("found.update(((number, (number, 0)) for number in numbers)) → pass"),
    },
)


def text_of(lines, results, head="x: float32[4]", states=""):
    return "\n".join(
        [f"program p({head}) {{", *states.splitlines(), *lines, f"  return {results}", "}"]
    )


VIEWS = text_of(
    ["  v1 = exp(x) : float32[4]",
     "  v2 = reshape(v1, shape=(2, 2,)) : float32[2, 2]",
     "  v3 = tanh(x) : float32[4]",
     "  v4 = reshape(v2, shape=(4,)) : float32[4]",
     "  v5 = sqrt(v3) : float32[4]",
     "  v6 = add(v4, v3) : float32[4]",
     "  v7 = reshape(x, shape=(2, 2,)) : float32[2, 2]",
     "  v8 = multiply(v7, 2.0) : float32[2, 2]"],
    "v6",
)  # fmt: skip
SEVERAL = text_of(
    ["  v1 = eigh(x, lower=True) : (float32[2], float32[2, 2])",
     "  v2 = item(v1, k=1) : float32[2, 2]",
     "  v3 = reshape(v2, shape=(4,)) : float32[4]",
     "  v4 = item(v1, k=0) : float32[2]",
     "  v5 = tanh(v3) : float32[4]",
     "  v6 = multiply(w, 0.5) : float32[2]",
     "  update w = v6"],
    "v5, v4, u, 3.0",
    "x: float32[2, 2], y: float32[2]", "  state w: float32[2]\n  state u: float32[2]",
)  # fmt: skip


def called(program):
    """A name for each record."""
    found = {r: r.attrs["name"] for r in program.given}
    found |= {r: f"v{k}" for k, r in enumerate(program.records, 1)}
    return lambda r: str(r.attrs["value"]) if r.op is NUMBER else found[r]


def said_roots(yours, text):
    program = parse(text)
    name = called(program)
    found = yours.roots(program)
    return {name(r): f"{name(v[0])}.{v[1]}" for r, v in found.items()}


def said_lives(yours, text):
    program = parse(text)
    name = called(program)
    found = yours.lifetimes(program, memory.roots(program))
    return {f"{name(r)}.{k}": tuple(life) for (r, k), life in found.items()}


@exercise.example
def views_and_their_roots(yours):
    """v4 looks into v2, which looks into v1: one memory with three names."""
    expected = {"x": "x.0", "v1": "v1.0", "v2": "v1.0", "v3": "v3.0", "v4": "v1.0", "v5": "v5.0",
                "v6": "v6.0", "v7": "x.0", "2.0": "2.0.0", "v8": "v8.0"}  # fmt: skip
    expect(said_roots(yours, VIEWS), expected, given=VIEWS)


@exercise.example
def several_results(yours):
    """v3 looks through v2 into result 1 of v1; v1 as a whole has no memory."""
    expected = {"x": "x.0", "y": "y.0", "w": "w.0", "u": "u.0", "v2": "v1.1", "v3": "v1.1",
                "v4": "v1.0", "v5": "v5.0", "0.5": "0.5.0", "v6": "v6.0",
                "3.0": "3.0.0"}  # fmt: skip
    expect(said_roots(yours, SEVERAL), expected, given=SEVERAL)


@exercise.example
def when_it_ends(yours):
    """The last reader of v4 reads v1; v5 and v8 are for nobody, and lie somewhere while made."""
    expected = {"x.0": (-1, 8, 16), "v1.0": (0, 6, 16), "v3.0": (2, 6, 16), "v5.0": (4, 5, 16),
                "v6.0": (5, 9, 16), "v8.0": (7, 8, 16)}  # fmt: skip
    expect(said_lives(yours, VIEWS), expected, given=VIEWS, why="the lifetimes")


@exercise.example
def states_and_results(yours):
    """What is handed out lives to the end: outputs, and new values of states. y is not read."""
    expected = {"x.0": (-1, 1, 16), "y.0": (-1, 0, 8), "w.0": (-1, 6, 8), "u.0": (-1, 7, 8),
                "v1.0": (0, 7, 8), "v1.1": (0, 5, 16), "v5.0": (4, 7, 16),
                "v6.0": (5, 7, 8)}  # fmt: skip
    expect(said_lives(yours, SEVERAL), expected, given=SEVERAL, why="the lifetimes")


@exercise.property(seed=st.integers(0, 9999), examples=40)
def any_program(yours, seed):
    """At each time the values that are alive are those that somebody reads from here on."""
    draw = random.Random(seed)
    lines, values, look = [], {"x": "x", "y": "y"}, {}
    for k in range(1, draw.randint(2, 10)):
        a, b = draw.choice([*values]), draw.choice([*values])
        op = draw.choice(("add", "multiply", "tanh", "reshape", "reshape"))
        args = {"tanh": a, "reshape": f"{a}, shape=(4,)"}.get(op, f"{a}, {b}")
        lines.append(f"  v{k} = {op}({args}) : float32[4]")
        values[f"v{k}"] = values[a] if op == "reshape" else f"v{k}"
        look[f"v{k}"] = (op, {a} if op in ("tanh", "reshape") else {a, b})
    results = [draw.choice([*values]) for _ in range(draw.randint(1, 2))]
    text = text_of(lines, ", ".join(results), "x: float32[4], y: float32[4]")
    lives = said_lives(yours, text)
    given = {"program": text, "lifetimes": lives}
    expect(sorted(lives), sorted(f"{v}.0" for v in set(values.values())), given=given)
    for t in range(len(lines) + 1):
        needed = {values[r] for r in results}
        for k, (op, reads) in enumerate(look.values()):
            if k >= t and op != "reshape":
                needed |= {values[r] for r in reads}
            if k == t and op != "reshape":
                needed.add(f"v{k + 1}")
        made = {"x", "y", *(f"v{k + 1}" for k in range(t + 1))}
        alive = {v[:-2] for v, (start, end, _) in lives.items() if start <= t < end}
        expect(
            sorted(alive),
            sorted(needed & made),
            given=given | {"time": t},
            why="alive values",
        )


@exercise.example
def a_training_step_in_its_memory(yours):
    """The step of a network in the arena of your plan: nothing is overwritten too early."""
    paddle.seed(0)
    net = nn.Sequential(nn.Conv2D(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 4), nn.GELU(),
                        nn.LayerNorm(4), nn.Linear(4, 2))  # fmt: skip
    adam = paddle.optimizer.Adam(learning_rate=0.01, parameters=net.parameters())

    @paddle.jit.to_static
    def step(x, y):
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        adam.step()
        adam.clear_grad()
        return loss

    x, y = paddle.randn([3, 1, 4, 4]), paddle.to_tensor([0, 1, 1])
    step(x, y)
    program = step.concrete_program.program
    arrays = [x.numpy(), y.numpy(), *(s.storage.read() for s in program.states)]
    want = Run(NUMPY)(program, [a.copy() for a in arrays])
    with exercise.plugged(yours):
        run = ArenaRun(NUMPY, check=True)
        found = run(program, [a.copy() for a in arrays])
    for a, b in zip(found, want, strict=True):
        expect(a, b, rtol=1e-4, atol=1e-5, why="what the step gives, in the arena")
    plan = run.plans[program]
    expect_that(
        plan.size < 0.5 * plan.total, "half of the memory saved", got=plan.size / plan.total
    )
