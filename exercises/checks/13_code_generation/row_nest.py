"""Checks of 13_code_generation/row_nest."""

import re

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.engine.codegen.nest_kernel import emit_nest
from minipaddle.engine.core.record import Spec
from minipaddle.engine.eager.tracer import trace
from minipaddle.engine.executors.compiler import compiler
from minipaddle.engine.passes.manager import optimized
from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.testing import run_c

exercise = Exercise(
    title="The row nest: one walk along the row for each fold",
    level="hard",
    minutes=50,
    before=("13_code_generation/statements",),
    slots={"codegen.row_nest": "row_nest"},
    hints=(
        "A softmax needs the largest element, then a sum, then divides. After which line is the "
        "largest element known, and what must stand before that loop?",
        "`with w.each_row(rows):` around `for stage in range(w.stages):`; in it what is stored "
        "once a row, declarations, `with w.loop(along):`, and at last `w.known`.",
        "rows, along = loops in w.parallel, and the others\n"
        "each row: for stage: once a row → w.assign(w.stores(…, {}))\n"
        "    folds = [Accumulator(…)]; declare each\n"
        "    loop along: w.assign(stores inside + (name, combined, dtype) of folds)\n"
        "    w.known[node] = ScalarText(name, (), dtype) for each fold",
    ),
    wrong={
        "every fold begins at 0": (
            "f'{fold.type} {fold.name} = {fold.identity};' → f'{fold.type} {fold.name} = 0;'"
        ),
        "every fold is a float": (
            "f'{fold.type} {fold.name} = {fold.identity};' → f'float {fold.name} = "
            "{fold.identity};'"
        ),
        "what is known once a row forgotten": "if (once := w.outputs(stage, True)): → pass",
        "stored once a row before it is known": (
            "w.outputs(stage, True) → w.outputs(stage + 1, True)"
        ),
        "results inside the row forgotten": "w.stores(inside, memo) → []",
        "the last stage left out": "w.stages → w.stages - 1",
        "a loop for every stage": "folds or inside → True",
        "loops only where something is folded": "folds or inside → folds",
        "no fold is ever complete": (
            "w.known[fold.node] = ScalarText(fold.name, (), fold.dtype) → pass"
        ),
        "the term in the place of the sum": "fold.combine(term, fold.name) → term",
        "written one by one": (
            "targets = w.stores(inside, memo) → targets = []; w.assign(w.stores(inside, memo))"
        ),
        "rows and their inner loops exchanged": (
            (
                "rows = [loop for loop in w.nest.loops if loop in w.parallel] → rows = [loop for "
                "loop in w.nest.loops if loop not in w.parallel]"
            ),
            (
                "along = [loop for loop in w.nest.loops if loop not in w.parallel] → along = [loop "
                "for loop in w.nest.loops if loop in w.parallel]"
            ),
        ),
    },
    unkillable={
        "term = w.text(fold.node.args[0], memo) → term = w.text(fold.node.args[-1], memo)": (
            "a fold has one argument"
        ),
    },
)

F32 = np.dtype("float32")


def kernel(yours, function, *shapes, dtype=F32):
    """The C of a function that is one row nest, and how many loops go along the row."""
    with exercise.plugged(yours):
        program = trace(function, [Spec(s, dtype) for s in shapes], names="xyz").program
        found = optimized(program).program
        return emit_nest(found.records[0], "k").source


def result(source, arrays, *sizes, dtype=F32):
    outs = [np.full(n, 777, dtype) for n in sizes]
    run_c(source, *(a.reshape(-1).copy() for a in arrays), *outs)
    return outs


RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 5)).astype(F32)


@exercise.example
def a_sum_of_each_row(yours):
    """One loop along the row, then what is stored once."""
    source = kernel(yours, lambda x: [x.sum(1)], (4, 5))
    expect(result(source, [X], 4)[0], X.sum(1), given=source, rtol=1e-5)
    expect(source.count("for ("), 2, given=source, why="how many loops there are")
    source = kernel(yours, lambda x: [paddle.sqrt((x * x).sum(1) + 1.0)], (4, 5))
    expect(result(source, [X], 4)[0], np.sqrt((X * X).sum(1) + 1), given=source, rtol=1e-5)
    stores = [line for line in source.splitlines() if "sqrtf(" in line]
    expect(len(stores), 1, given=source, why="the root is taken once a row")


@exercise.example
def divided_by_its_sum(yours):
    """Two loops along the row: fold, then store."""
    source = kernel(yours, lambda x: [x / x.sum(1, keepdim=True)], (4, 5))
    expect(result(source, [X], 20)[0].reshape(4, 5), X / X.sum(1, keepdims=True), given=source,
           rtol=1e-4)  # fmt: skip
    expect(source.count("for ("), 3, given=source, why="how many loops there are")


@exercise.example
def softmax(yours):
    """Three loops along the row; the largest element begins at minus infinity."""
    source = kernel(yours, lambda x: [F.softmax(x - 9.0, -1)], (4, 5))
    e = np.exp(X.astype(float))
    expect(result(source, [X], 20)[0].reshape(4, 5), e / e.sum(1, keepdims=True), given=source,
           rtol=1e-5)  # fmt: skip
    expect(source.count("for ("), 4, given=source, why="how many loops there are")


@exercise.example
def two_folds_of_one_stage(yours):
    """The sum and the largest element share a loop; the result is stored in the next one."""
    source = kernel(yours, lambda x: [x.sum(1), x.max(1), x - x.max(1, keepdim=True)], (4, 5))
    a, b, c = result(source, [X], 4, 4, 20)
    expect(a, X.sum(1), given=source, rtol=1e-5)
    expect(b, X.max(1), given=source)
    expect(c.reshape(4, 5), X - X.max(1, keepdims=True), given=source, rtol=1e-5)
    expect(source.count("for ("), 3, given=source, why="how many loops there are")


@exercise.example
def over_the_input(yours):
    """A result lies where its input was, and a fold wants the input: all is read first."""
    source = kernel(yours, lambda x: [x * 2.0, x.sum(1)], (4, 5))
    x, s = X.reshape(-1).copy(), np.zeros(4, F32)
    run_c(source, x, x, s)
    expect(x.reshape(4, 5), 2 * X, given=source)
    expect(s, X.sum(1), given=source, rtol=1e-5, why="the sum of what was there before")


@exercise.example
def other_numbers_and_shapes(yours):
    """Integers, doubles, several loops over rows or along them, and no row at all."""
    n = np.arange(-6, 14).reshape(4, 5)
    for dtype in ("int64", "int32"):
        source = kernel(yours, lambda x: [x.max(1)], (4, 5), dtype=np.dtype(dtype))
        got = result(source, [-n.astype(dtype)], 4, dtype=np.dtype(dtype))
        expect(got[0], -n.min(1), given=source)
        expect_that(f"{dtype}_t max =" in source, f"an accumulator of {dtype}", given=source)
    y = RNG.normal(size=(2, 3, 4, 5))
    for axes in ((1, 3), (3,), (2, 3), (0, 1, 2, 3), (0, 3)):
        f = lambda y, a=axes: [paddle.mean(y, axis=list(a), keepdim=True)]
        source = kernel(yours, f, y.shape, dtype=np.dtype("float64"))
        want = y.mean(axes)
        got = result(source, [y], want.size, dtype=np.dtype("float64"))[0]
        expect(got.reshape(want.shape), want, given={"axes": axes, "source": source})


@exercise.property(
    rows=st.integers(1, 5), columns=st.integers(1, 6), seed=st.integers(0, 99), examples=12
)
def layer_norm(yours, rows, columns, seed):
    """Two folds one after the other, and a value that is known once a row between them."""
    x, w = np.random.default_rng(seed).normal(size=(2, rows, columns)).astype(F32)
    f = lambda x, w: [F.layer_norm(x, columns) * w]
    source = kernel(yours, f, (rows, columns), (rows, columns))
    mean, var = x.mean(1, keepdims=True), x.var(1, keepdims=True)
    want = (x - mean) / np.sqrt(var + 1e-5) * w
    (got,) = result(source, [x, w], rows * columns)
    expect(got.reshape(rows, columns), want, given=source, rtol=1e-3, atol=1e-4)


@exercise.example
def threads_share_rows(yours):
    """A large nest says how threads share its rows, or runs alone: nothing inside a row."""
    source = kernel(yours, lambda x: [F.softmax(x, -1)], (512, 128))
    inside = re.findall(r"\n {8,}#pragma omp parallel", source)
    expect_that(not inside, "threads share rows, not places of a row", given=source, got=inside)


@exercise.example
def a_network_learns_with_it(yours):
    """Layer norm and cross entropy on your loops: compiled if there is a compiler."""
    if compiler() is None:
        return
    with exercise.plugged(yours):
        paddle.seed(0)
        net = nn.Sequential(nn.Linear(2, 16), nn.LayerNorm(16), nn.Tanh(), nn.Linear(16, 2))
        adam = paddle.optimizer.Adam(learning_rate=0.05, parameters=net.parameters())
        x = paddle.randn([64, 2])
        y = (x[:, 0] * x[:, 1] > 0).astype("int64")

        def step(x, y):
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            adam.step()
            adam.clear_grad()
            return loss

        step = paddle.jit.to_static(step, backend="native")
        losses = [step(x, y).item() for _ in range(40)]
    expect_that(losses[-1] < 0.5 * losses[0], "a smaller loss after 40 steps", got=losses[::10])
