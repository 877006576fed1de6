"""Checks of 12_fusion/profitable."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.engine.core.record import Spec
from minipaddle.engine.eager.device import NUMPY
from minipaddle.engine.eager.tracer import trace
from minipaddle.engine.ir.interpreter import Run
from minipaddle.engine.passes.fusion import Fusion, fuse
from minipaddle.engine.passes.manager import optimized
from minipaddle.engine.passes.nest import NotOneNest
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="What fusion saves: bytes before, and bytes after",
    level="medium",
    minutes=35,
    before=("12_fusion/joining",),
    slots={"fusion.profitable": "profitable"},
    hints=(
        "What do two kernels move that one would not? And what does one kernel with three stages "
        "read three times, if a row is longer than the cache?",
        "In traffic collect the stages of each input in a dict of sets. In profitable the groups "
        "are a set, since many records are in the same one.",
        "stages = {input: set of stages} over nest.reading()\n"
        "row = length of a row · itemsizes of the inputs; long = row > CACHE\n"
        "traffic = inputs (times their stages if long) + outputs\n"
        "profitable: try: traffic(together) <= sum of traffic(each group now); no nest: False",
    ),
    wrong={
        "whatever is a nest": "together <= apart → True",
        "never": "together <= apart → together < 0",
        "only what saves much": "together <= apart → together < apart * 0.9",
        "the more bytes the better": "together <= apart → together >= apart",
        "results cost nothing": "read + sum((x.spec.nbytes for x in outputs)) → read",
        "inputs cost nothing": (
            "read + sum((x.spec.nbytes for x in outputs)) → sum((x.spec.nbytes for x in outputs))"
        ),
        "elements instead of bytes": (
            "(x.spec.nbytes for x in outputs) → (x.spec.size for x in outputs)"
        ),
        "every stage reads again": "len(at) if row > CACHE else 1 → len(at)",
        "everything stays in the cache": "len(at) if row > CACHE else 1 → 1",
        "short rows read again": "len(at) if row > CACHE else 1 → 1 if row > CACHE else len(at)",
        "one input in the cache": (
            "sum((x.dtype.itemsize for x in stages)) → max((x.dtype.itemsize for x in stages))"
        ),
        "elements in the cache": "sum((x.dtype.itemsize for x in stages)) → len(stages)",
        "the whole array in the cache": "nest.size // nest.rows → nest.size",
        "only the last stage counts": (
            "stages.setdefault(nest.loaded_input(load), set()).add(stage) → "
            "stages[nest.loaded_input(load)] = {stage}"
        ),
        "a group for each record": (
            "{fusion.of[record] for record in records} → [fusion.of[record] for record in "
            "records]"
        ),
        "what is no nest pays off": "profitable(): return False → return True",
    },
)  # fmt: skip

F32 = np.dtype("float32")
LONG = 1 << 21
"""Elements of a row that the cache has no room for: 8 MB."""


def program_of(function, *shapes, dtype="float32"):
    specs = [Spec(tuple(shape), np.dtype(dtype)) for shape in shapes]
    return trace(lambda *xs: flat(function(*xs)), specs, names=[*"xyzu"][: len(specs)]).program


def flat(y):
    return [*y] if isinstance(y, tuple) else [y]


def softmax(x):
    e = (x - x.max(axis=1, keepdim=True)).exp()
    return e / e.sum(axis=1, keepdim=True)


def weighted(x, y, z):
    t = x * y * z
    return t * t.sum(axis=1, keepdim=True)


@exercise.example
def bytes_of_a_kernel(yours):
    """Inputs and outputs once; in long rows an input once for each stage that reads it."""
    n, row = 4 * 64 * 4, 4 * 4  # bytes of float32[4, 64], and of one number for each of 4 rows
    big = 2 * LONG * 4
    for text, function, shapes, expected in (
        ("e^x", lambda x: x.exp(), [(4, 64)], 2 * n),
        ("x·x", lambda x: x * x, [(4, 64)], 2 * n),
        ("x + y", lambda x, y: x + y, [(4, 64), (4, 64)], 3 * n),
        ("x + 1", lambda x: x + 1.0, [(4, 64)], 2 * n),
        ("x + a row", lambda x, y: x + y, [(4, 64), (64,)], 2 * n + 64 * 4),
        ("the sum of each row", lambda x: x.sum(axis=1), [(4, 64)], n + row),
        ("softmax", softmax, [(4, 64)], 2 * n),
        ("e^x, long", lambda x: x.exp(), [(2, LONG)], 2 * big),
        ("the sum of long rows", lambda x: x.sum(axis=1), [(2, LONG)], big + 8),
        ("softmax, long", softmax, [(2, LONG)], 4 * big),
        ("softmax, a row of 4 MB", softmax, [(2, LONG // 2)], big),
        ("softmax, one more", softmax, [(2, LONG // 2 + 1)], 4 * (big // 2 + 8)),
        ("t = xyz, t·Σt", weighted, [(4, 64)] * 3, 4 * n),
        ("t = xyz, t·Σt, long", weighted, [(2, LONG // 2)] * 3, 7 * big // 2),
        ("rows shorter, but three", weighted, [(6, LONG // 6)] * 3, 4 * 6 * (LONG // 6) * 4),
        (
            "rows of three, too long",
            weighted,
            [(6, LONG // 6 + 9)] * 3,
            7 * 6 * (LONG // 6 + 9) * 4,
        ),
    ):
        p = program_of(function, *shapes)
        got = yours.traffic(p.records, p.outputs)
        expect(got, expected, given={"kernel": text, "program": str(p)}, why="bytes")
    p = program_of(lambda x: (x.exp(), x.exp().tanh()), (4, 64))
    expect(yours.traffic(p.records, p.outputs), 3 * n, given=str(p), why="two outputs")
    half = program_of(lambda x: x * x, (4, 64), dtype="float64")
    expect(yours.traffic(half.records, half.outputs), 4 * n, given=str(half), why="bytes")


@exercise.example
def what_is_no_nest(yours):
    """A value that is needed at two places: traffic raises, and it does not pay off."""
    p = program_of(lambda x: x.exp() + x.exp().t(), (8, 8))
    p = optimized(p, until="cse").program
    try:
        yours.traffic(p.records, p.outputs)
    except NotOneNest:
        pass
    else:
        expect_that(False, "NotOneNest goes through", given=str(p))
    found = yours.profitable(Fusion(p), p.records)
    expect_that(found is False, "it does not pay off", given=str(p), got=found)


class Together:
    """A group, in short."""

    def __init__(self, records):
        self.records = records


def joined(p, *groups):
    """A fusion with records in groups, by their numbers from 1."""
    fusion = Fusion(p)
    for numbers in groups:
        records = [p.records[k - 1] for k in numbers]
        fusion.of |= dict.fromkeys(records, Together(records))
    return fusion


@exercise.example
def what_pays(yours):
    """Short rows: all. Long ones: not if the second stage must read three arrays again."""
    short, long = ([(4, 64)] * 3, True), ([(2, LONG)] * 3, False)
    for shapes, expected in (short, long):
        p = program_of(weighted, *shapes)
        fusion = joined(p, (1, 2, 3))
        given = {"program": str(p), "groups": "v1 v2 v3 and v4", "together": "v1 v2 v3 v4"}
        got = yours.profitable(fusion, p.records)
        expect(got, expected, given=given, why="does it pay off?")
    p = program_of(softmax, (2, LONG))
    fusion = joined(p, (1, 2, 3), (4, 5))
    got = yours.profitable(fusion, p.records)
    given = {"program": str(p), "groups": "v1 v2 v3 and v4 v5", "together": "all"}
    expect(got, True, given=given, why="4 arrays together, 5 apart: does it pay off?")
    p = program_of(lambda x, y: (x + 1.0, y * 2.0), (4, 64), (4, 64))
    got = yours.profitable(Fusion(p), p.records)
    expect(got, True, given=str(p), why="as many bytes as before: does it pay off?")


@exercise.property(rows=st.sampled_from((2, 16)), length=st.sampled_from((8, LONG // 64, LONG)),
                   inputs=st.integers(1, 3), examples=12)  # fmt: skip
def as_the_formula_says(yours, rows, length, inputs):
    """A product of up to three arrays, and that times its sum along each row."""
    p = program_of(lambda *xs: scaled(xs), *[(rows, length)] * inputs)
    whole = rows * length * 4
    read = 2 if length * 4 * inputs > yours.CACHE else 1
    expected = whole * (inputs * read + 1)
    given = {"rows": rows, "length": length, "inputs": inputs, "program": str(p)}
    expect(yours.traffic(p.records, p.outputs), expected, given=given)


def scaled(xs):
    t = xs[0]
    for x in xs[1:]:
        t = t * x
    return t * t.sum(axis=1, keepdim=True)


@exercise.example
def small_steps_count(yours):
    """A layer norm is one kernel: its square root saves nothing, and opens the way."""
    p = program_of(lambda x: F.layer_norm(x, 64), (32, 64))
    with exercise.plugged(yours):
        done = optimized(p, until="fusion").program
    kernels = [r for r in done.records if r.op.name not in ("item", "reshape")]
    expect(len(kernels), 1, given=str(done), why="kernels of a layer norm")


@exercise.example
def a_training_step(yours):
    """The passes with your rule: as few kernels as before, and the same results."""
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
    before = optimized(step.main_program, until="recompute").program
    reference = fuse(before)
    with exercise.plugged(yours):
        after = fuse(before)
    counts = [sum(r.op.name == "fused" for r in p.records) for p in (after, reference)]
    expect_that(counts[0] <= counts[1], "no more groups", given=str(before)[:300], got=counts)
    arrays = [np.linspace(0.1, 0.9, r.spec.size).astype(r.dtype).reshape(r.shape)
              for r in before.given]  # fmt: skip
    expected, got = (Run(NUMPY)(p, [a.copy() for a in arrays]) for p in (before, after))
    for a, b in zip(expected, got, strict=True):
        expect(np.array(b), np.array(a), given=str(after)[:400], rtol=1e-3, atol=1e-5)
