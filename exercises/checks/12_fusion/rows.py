"""Checks of 12_fusion/rows."""

from types import SimpleNamespace

import numpy as np
from hypothesis import strategies as st
from scipy import special

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle.engine.codegen.nest_kernel import emit_nest, nest_writer
from minipaddle.engine.core.record import Spec
from minipaddle.engine.eager.tracer import trace
from minipaddle.engine.executors.compiler import compiler
from minipaddle.engine.passes.manager import optimized
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Reduce, use, reduce: the stages of a row",
    level="hard",
    minutes=45,
    before=("12_fusion/joining",),
    slots={"nest.stage_of": "stage_of", "codegen.needed_later": "needed_later"},
    hints=(
        "How often must you have been along the row to compute exp(x - max)? And to compute its "
        "sum?",
        "stage_of is one line. For needed_later walk from what each stage asks for to what that is "
        "made of, with a list as a stack, and do not walk on from what you have put into the dict.",
        "for each stage: asked = what is folded + what is stored\n"
        "    take one: load or row value? next\n"
        "    of an earlier stage, and in memory or (keeps and expensive)? into the dict\n"
        "    else ask for its args",
    ),
    wrong={
        "every value a stage later": "latest + 1 if kind == 'reduce' else latest → latest + 1",
        "a reduction costs nothing": "latest + 1 if kind == 'reduce' else latest → latest",
        "the stage of the last argument": "max(latest, arg.stage) → arg.stage",
        "the earliest argument": "max → min",
        "stages added up": "latest = max(latest, arg.stage) → latest += arg.stage",
        "nothing kept": "node in in_memory or (keeps and expensive(node)) → node in in_memory",
        "everything kept": "node in in_memory or (keeps and expensive(node)) → True",
        "kept though there is no room": "keeps and expensive(node) → expensive(node)",
        "what lies in memory computed again": (
            "node in in_memory or (keeps and expensive(node)) → keeps and expensive(node)"
        ),
        "kept within one stage": (
            "node.stage < stage and (node in in_memory or (keeps and expensive(node))) → node in "
            "in_memory or (keeps and expensive(node))"
        ),
        "rows kept": "node.kind == 'load' or nest.is_row(node) → node.kind == 'load'",
        "what is folded forgotten": "[fold.args[0] for fold in writer.folds(stage)] → []",
        "what is stored forgotten": (
            "asked += [node for _, _, node, _ in writer.outputs(stage, False)] → asked += "
            "[node for _, _, node, _ in []]"
        ),
        "what is cheap, and all it is made of, given up": (
            "asked.extend(node.args) → if node.stage == stage: asked.extend(node.args)"
        ),
    },
)  # fmt: skip

F32 = np.dtype("float32")


@exercise.example
def stages(yours):
    """The latest argument decides; a fold is there one stage later."""
    made = lambda *stages: [SimpleNamespace(stage=s) for s in stages]
    for kind, args, expected in (
        ("load", (), 0), ("number", (), 0), ("apply", (0,), 0), ("apply", (0, 1), 1),
        ("apply", (2, 1, 0), 2), ("apply", (3, 3), 3), ("reduce", (0,), 1), ("reduce", (2,), 3),
        ("select", (1, 0), 1), ("reduce", (), 1), ("apply", (0, 0, 0, 0, 2, 1, 0, 0), 2),
    ):  # fmt: skip
        got = yours.stage_of(kind, made(*args))
        expect(got, expected, given={"kind": kind, "stages of its args": args})


def nests(yours, function, *shapes):
    """The C of each group of a function, and the writers, with your two in the engine."""
    specs = [Spec(shape, F32) for shape in shapes]
    with exercise.plugged(yours):
        program = trace(lambda *xs: flat(function(*xs)), specs, names=[*"xyz"][: len(specs)])
        records = [r for r in optimized(program.program).program.records if r.op.name == "fused"]
        texts = [emit_nest(r, "k").source for r in records]
        writers = [nest_writer(r)[0] for r in records]
    return texts, writers


def flat(y):
    return [*y] if isinstance(y, tuple) else [y]


def names(found):
    return sorted(node.of.op.name for node in found)


def standardized(x):
    y = x - x.mean(axis=1, keepdim=True)
    return y / (y * y).mean(axis=1, keepdim=True).sqrt()


def scores(x):
    y = F.softmax(x, axis=-1)
    return y, (y * x).sum(axis=-1)


def shifted(x):
    y = x - x.max(axis=1, keepdim=True)
    return y, y.exp().sum(axis=1)


def gelus(x):
    y = F.gelu(x)
    return y - y.mean(axis=1, keepdim=True)


def both(x):
    y = F.gelu(x)
    return y, y - y.mean(axis=1, keepdim=True)


def spreads(x):
    y = F.gelu(x)
    y = y - y.mean(axis=1, keepdim=True)
    return (y * y).mean(axis=1)


def cheap_of_stored(x):
    y = x - x.max(axis=1, keepdim=True)
    z = y * 2
    return y, z - z.sum(axis=1, keepdim=True)


@exercise.example
def what_is_kept(yours):
    """Of each nest: how many stages, and which values a later stage finds."""
    for function, count, kept, without_room in (
        (F.softmax, 3, ["exp"], []),
        (F.log_softmax, 3, [], []),
        (standardized, 3, [], []),
        (gelus, 2, ["gelu"], []),
        (scores, 4, ["exp"], []),
        (shifted, 3, [], []),
        (both, 2, ["gelu"], ["gelu"]),
        (spreads, 3, ["gelu"], []),
        (cheap_of_stored, 3, ["subtract"], ["subtract"]),
        (lambda x: x.exp().sum(axis=1), 2, [], []),
        (lambda x: (x.exp(), x.exp().sum(axis=1)), 2, [], []),
    ):
        texts, writers = nests(yours, function, (8, 16))
        expect(len(writers), 1, given={"C": texts}, why="kernels")
        (writer,) = writers
        expect(writer.stages, count, given={"C": texts[0]}, why="stages")
        for keeps, expected in ((True, kept), (False, without_room)):
            found = yours.needed_later(writer, keeps)
            expect_that(isinstance(found, dict), "a dict", got=found)
            got = names(found)
            expect(got, sorted(expected), given={"keeps": keeps, "C": texts[0]}, why="what is kept")
            expect_that(set(found.values()) <= {None}, "its values are None", got=found)


@exercise.example
def functions_are_called_once(yours):
    """In the C of softmax there is one expf and there are three loops along the row."""
    (text,), _ = nests(yours, F.softmax, (8, 16))
    expect(text.count("expf("), 1, given={"C": text}, why="calls of exp")
    expect(text.count("for ("), 4, given={"C": text}, why="loops: the rows, and three along one")
    expect_that("row[16]" in text, "a buffer for a row", got=text)
    (text,), _ = nests(yours, F.log_softmax, (8, 16))
    expect_that("row[" not in text, "no buffer: x - max is cheap", got=text)
    (text,), _ = nests(yours, F.softmax, (2, 1 << 14))
    expect_that("row[" not in text, "no buffer for so long a row", got=text)
    expect(text.count("expf("), 2, given={"C": text}, why="so exp is computed twice")


@exercise.property(rows=st.integers(1, 3), length=st.sampled_from((1, 16)), examples=2)
def as_scipy_says(yours, rows, length):
    """Compiled: softmax, log_softmax and a standardized row, against SciPy and NumPy."""
    if compiler() is None:
        return
    x = np.random.default_rng(rows * length).standard_normal((rows, length)).astype("f4")
    y = x - x.mean(axis=1, keepdims=True)
    spread = np.sqrt((y * y).mean(axis=1, keepdims=True) + 0.5)

    def together(x):
        z = x - x.mean(axis=1, keepdim=True)
        z = z / ((z * z).mean(axis=1, keepdim=True) + 0.5).sqrt()
        return F.softmax(x, axis=1), F.log_softmax(x, axis=1), z

    with exercise.plugged(yours):
        got = paddle.jit.to_static(together, backend="native")(paddle.to_tensor(x))
    expected = special.softmax(x, axis=1), special.log_softmax(x, axis=1), y / spread
    for a, b in zip(got, expected, strict=True):
        expect(a.numpy(), b, given={"x": x}, rtol=1e-4, atol=1e-5)
