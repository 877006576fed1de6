"""Checks of 13_code_generation/statements."""

import random
import re

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle.codegen.cuda.nest import emit_nest as emit_cuda
from minipaddle.engine.codegen.nest_kernel import emit_nest
from minipaddle.engine.codegen.scalar import C, ScalarText, formula, literal
from minipaddle.engine.core.op import OPS
from minipaddle.engine.core.record import Spec
from minipaddle.engine.eager.tracer import trace
from minipaddle.engine.passes.manager import optimized
from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.testing import run_c

exercise = Exercise(
    title="A formula as lines of C: what is used twice is computed once",
    level="medium",
    minutes=45,
    before=("12_fusion",),
    slots={"codegen.statements": "statements"},
    hints=(
        "How often is a value needed, and how do you know before you write the first line?",
        "Two passes: count the needs of each value (by `id`), going into its arguments only when "
        "you meet it first; then write from the leaves up, with a dict of what has a text already.",
        "count: needs[id] += 1; if it was the first: count each argument, once for each hole\n"
        "expression(v): known? → it. text = the template filled with expression(a)\n"
        "    needs > 1 or text too long, and it may have a line → line, text = its name\n"
        "    remember text",
    ),
    wrong={
        "a name for every value": "named and (needs[id(value)] > 1 or len(text) > LONG) → named",
        "no names at all": "named and (needs[id(value)] > 1 or len(text) > LONG) → False",
        "computing again what has a text": "said[id(value)] = text → pass",
        "a hole that occurs twice counted once": "max(1, value.template.count(f'{{{k}}}')) → 1",
        "holes without numbers not counted": (
            "max(1, value.template.count(f'{{{k}}}')) → value.template.count(f'{{{k}}}')"
        ),
        "needs counted along every path": "if needs[id(value)] > 1: → pass",
        "roots not apart": "1 + apart → 1",
        "what is read has no line": "value.args or (apart and '[' in text) → value.args",
        "whatever is read has a line": "apart and '[' in text → '[' in text",
        "long lines stay long": "needs[id(value)] > 1 or len(text) > LONG → needs[id(value)] > 1",
        "parentheses around the line": "bare(text) → text",
        "everything is a float": (
            "f'const {C_NAMES[value.dtype]} {name} = {bare(text)};' → f'const float {name} = "
            "{bare(text)};'"
        ),
        "leaves filled as templates": "if value.args: → if True:",
    },
)

F64, I64 = np.dtype("float64"), np.dtype("int64")


def leaf(text, dtype=F64):
    return ScalarText(text, (), dtype)


def written(yours, roots, **how):
    names = iter(["t", *(f"t{k}" for k in range(1, 99))])
    found = yours.statements(roots, lambda: next(names), **how)
    expect_that(isinstance(found, tuple) and len(found) == 2, "a pair of lists", got=found)
    lines, values = found
    return [*lines], [*values]


@exercise.example
def used_twice(yours):
    """x[i] * x[i] is needed twice, x[i] reads memory and has no line of its own."""
    x = leaf("x[i]")
    v = x * x
    got = written(yours, [v + C.exp(v)])
    expect(got, (["const double t = x[i] * x[i];"], ["(t + exp(t))"]), given="v + exp(v), v = x·x")
    got = written(yours, [C.exp(x)])
    expect(got, ([], ["exp(x[i])"]), given="exp(x)", why="what is needed once has no line")
    got = written(yours, [x, x])
    expect(got, ([], ["x[i]", "x[i]"]), given="two roots, both x[i]")
    got = written(yours, [v + float(k) for k in range(8)])
    expected = [f"(t + {k}.0)" for k in range(8)]
    expect(got, (["const double t = x[i] * x[i];"], expected), given="v + 0.0 to v + 7.0")


@exercise.example
def equal_is_not_the_same(yours):
    """Two products that look alike are two values: only `is` counts."""
    x = leaf("x[i]")
    got = written(yours, [(x * x) + (x * x)])
    expect(got, ([], ["((x[i] * x[i]) + (x[i] * x[i]))"]), given="(x·x) + (x·x), two objects")


@exercise.example
def a_hole_that_occurs_twice(yours):
    """abs of an integer is ({0} < 0 ? -{0} : {0}): its argument is needed three times."""
    i = leaf("i", I64)
    got = written(yours, [C.abs(i + 1)])
    expect(got, (["const int64_t t = i + 1;"], ["(t < 0 ? -t : t)"]), given="abs(i + 1)")
    got = written(yours, [C.abs(leaf("x[i]", I64))])
    expect(got, ([], ["(x[i] < 0 ? -x[i] : x[i])"]), given="abs(x[i])")


@exercise.example
def inner_values_are_counted_once(yours):
    """w is needed by v alone; that v is needed twice does not make w needed twice."""
    x = leaf("x[i]")
    w = C.sin(x)
    v = w + 1.0
    got = written(yours, [v * v])
    expect(got, (["const double t = sin(x[i]) + 1.0;"], ["(t * t)"]), given="v·v, v = sin(x) + 1")
    u = w * v
    got = written(yours, [u - v])
    lines = ["const double t = sin(x[i]);", "const double t1 = t + 1.0;"]
    expect(got, (lines, ["((t * t1) - t1)"]), given="w·v - v, v = w + 1, w = sin(x)")


@exercise.example
def long_text(yours):
    """A text of 71 characters has a line, also if it is needed once; one of 70 has not."""
    for more, lines in ((35, 0), (36, 1)):
        text = f"({'x' * 30} + {'y' * more})"
        root = ScalarText("({} + {})", [leaf("x" * 30), leaf("y" * more)], F64)
        expected = ([f"const double t = {text[1:-1]};"], ["t"]) if lines else ([], [text])
        expect(written(yours, [root]), expected, given=f"a text of {len(text)} characters")
    got = written(yours, [leaf("z" * 99)])
    expect(got, ([], ["z" * 99]), given="without arguments, of 99")


@exercise.example
def roots_apart(yours):
    """With `apart` all is read before anything is written; a plain variable needs no line."""
    x, s = leaf("x[i]"), leaf("s")
    got = written(yours, [x, x + 1.0, s, s * 2.0], apart=True)
    lines = ["const double t = x[i];", "const double t1 = t + 1.0;", "const double t2 = s * 2.0;"]
    expect(got, (lines, ["t", "t1", "s", "t2"]), given="x[i], x[i] + 1, s, s·2; apart")
    got = written(yours, [x + s], apart=True)
    expect(got, (["const double t = x[i] + s;"], ["t"]), given="x[i] + s; apart",
           why="x[i] is needed once, by the sum")  # fmt: skip
    braces = leaf("((T){0, 1})[i]")
    got = written(yours, [braces])
    expect(got, ([], ["((T){0, 1})[i]"]), given="a leaf with braces")


@exercise.property(seed=st.integers(0, 9999), examples=40)
def any_graph(yours, seed):
    """A random graph of sums and products: run as Python it gives what the graph gives."""
    draw = random.Random(seed)
    known = {f"x[{k}]": draw.randint(-9, 9) for k in range(3)}
    nodes = [(leaf(name, I64), value) for name, value in known.items()]
    for _ in range(draw.randint(1, 9)):
        (a, av), (b, bv) = draw.choice(nodes), draw.choice(nodes)
        sign = draw.choice("+-*")
        nodes.append(
            (
                ScalarText(f"({{}} {sign} {{}})", [a, b], I64),
                {"+": av + bv, "-": av - bv, "*": av * bv}[sign],
            )
        )
    roots = [draw.choice(nodes) for _ in range(draw.randint(1, 3))]
    apart = draw.random() < 0.5
    lines, values = written(yours, [r for r, _ in roots], apart=apart)
    given = {"lines": lines, "expressions": values, "apart": apart}
    space = {"x": [*known.values()]}
    for line in lines:
        name, _, text = line.removeprefix("const int64_t ").rstrip(";").partition(" = ")
        expect_that(name not in space and text, "a new name, and a value", given=given, got=line)
        space[name] = eval(text, {}, space)
    expect([eval(v, {}, space) for v in values], [v for _, v in roots], given=given)
    seen, todo = set(), [r for r, _ in roots]
    while todo:
        x = todo.pop()
        if id(x) not in seen:
            seen.add(id(x))
            todo += x.args
    operators = sum(bool(x.args) for x, _ in nodes if id(x) in seen)
    text = " ".join([*lines, *values])
    count = len(re.findall(r" [-+*] ", text))
    expect(count, operators, given=given, why="every operator is written once")


@exercise.example
def kernels_of_the_engine(yours):
    """Two results share tanh and exp: each is computed once a place, in C and in CUDA."""
    with exercise.plugged(yours):
        x = ScalarText("x[i]", (), F64)
        y = formula(OPS["tanh"], [x], {}, F64)
        lines, _ = written(yours, [literal(1.0, F64) - y * y])
        expect(lines, ["const double t = tanh(x[i]);"], given="1 - tanh(x)²")
        specs = [Spec((2, 3), np.dtype("float32"))] * 2

        def both(x, g):
            t = paddle.tanh(x)
            return [t * paddle.exp(x), g * (1.0 - t * t) * paddle.exp(x)]

        program = optimized(trace(both, specs, names="xg").program).program
        source = emit_nest(program.records[0], "k").source
        cuda = emit_cuda(program.records[0], "k").calls[0].source
    for text in (source, cuda):
        counts = text.count("tanhf("), text.count("expf(")
        expect(counts, (1, 1), given=text, why="how often tanh and exp are computed")
    a, b = np.linspace(-1, 1, 6, dtype="float32"), np.linspace(1, 3, 6, dtype="float32")
    u, v = np.zeros(6, "float32"), np.zeros(6, "float32")
    run_c(source, a, b, u, v)
    t = np.tanh(a.astype(float))
    expect(u, t * np.exp(a), given=source, rtol=1e-5)
    expect(v, b * (1 - t * t) * np.exp(a), given=source, rtol=1e-5)
