"""Checks of 11_passes/cse."""

import contextlib
import io
import random

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.engine.eager.device import NUMPY
from minipaddle.engine.ir.interpreter import Run
from minipaddle.engine.ir.verifier import verify
from minipaddle.engine.passes.manager import optimized
from minipaddle.ir.parser import parse
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Common subexpressions: the same is computed once",
    level="medium",
    minutes=45,
    before=("06_programs",),
    slots={"passes.cse": "cse", "cse.exact": "exact"},
    hints=(
        "v1 = exp(x), v2 = exp(x), v3 = add(v1, 1.0), v4 = add(v2, 1.0): how can you see that v3 "
        "and v4 are equal?",
        "A dict from keys to records that have stayed; replace inputs before you make the key. "
        "Which records never get a key?",
        "for each record: new = with_inputs(record, replaced inputs, its regions by cse)\n"
        "    key = op, dtype, shape, inputs (numbers by exact), attributes (names sorted, exact)\n"
        "    an earlier one? then now[record] = it, unless both are results\n"
        "    else it stays; now[record] = new if new is another record",
    ),
    wrong={
        "what is printed twice is printed once": (
            "inside or old in stays or has_effect(old) → inside or old in stays"
        ),
        "two results share their memory": (
            "earlier is not record and (not {old, earlier} <= results) → earlier is not record"
        ),
        "results are never replaced": "not {old, earlier} <= results → old not in results",
        "0.0 is -0.0": "repr(value) → value",
        "1 is True": "(type(value), value) → value",
        "tuples compared as Python does": "(exact(part) for part in value) → value",
        "the inputs as they were": "[now.get(x, x) for x in old.inputs] → list(old.inputs)",
        "the order of inputs does not matter": "tuple(inputs) → frozenset(inputs)",
        "attributes forgotten": (
            "(record.op, record.dtype, record.shape, tuple(inputs), tuple(attrs)) → "
            "(record.op, record.dtype, record.shape, tuple(inputs))"
        ),
        "attributes in the order they were written": (
            "[(name, exact(value)) for name, value in sorted(record.attrs.items())] → [(name, "
            "exact(value)) for name, value in record.attrs.items()]"
        ),
        "numbers are never equal": "exact(x.attrs['value']) if x.op is NUMBER else x → x",
        "numbers are all equal": "exact(x.attrs['value']) → None",
        "regions left as they are": "cse(region) → region",
        "the last one stands for the others": (
            "earlier = seen.setdefault(_key(record), record) → k = _key(record); earlier = "
            "seen.get(k, record); seen[k] = record"
        ),
        "the operator is enough": (
            "(record.op, record.dtype, record.shape, tuple(inputs), tuple(attrs)) → "
            "(record.op, tuple(inputs)[:1])"
        ),
        "what stands for a result forgotten": "results.add(earlier) → pass",
        "a replaced record is no result": "results.add(record) → pass",
    },
)  # fmt: skip

HEAD = "program p(x: float32[2], y: float32[2], b: bool[]) {\n  state w: float32[2]\n"


def program(*lines, results, update=""):
    lines = [f"  v{k} = {line}" for k, line in enumerate(lines, 1)]
    update = f"  update w = {update}\n" if update else ""
    return parse(HEAD + "\n".join(lines) + f"\n{update}  return {results}\n}}")


def left(yours, p):
    """The body of what the pass leaves; its records must be well formed."""
    with exercise.plugged(yours):
        after = yours.cse(p)
    verify(after)
    return "\n".join(line.strip() for line in str(after).splitlines()[1:-1] if "state" not in line)


def lines(*texts, results, update=""):
    found = [f"v{k} = {text}" for k, text in enumerate(texts, 1)]
    return "\n".join([*found, *([f"update w = {update}"] if update else []), f"return {results}"])


F32 = "float32[2]"


@exercise.example
def equal_records(yours):
    """Two times the same; then what takes them is the same, too. The order of inputs counts."""
    p = program(f"exp(x) : {F32}", f"exp(x) : {F32}", f"add(v1, 1.0) : {F32}",
                f"add(v2, 1.0) : {F32}", f"subtract(v3, v4) : {F32}", results="v5")  # fmt: skip
    expected = lines(f"exp(x) : {F32}", f"add(v1, 1.0) : {F32}", f"subtract(v2, v2) : {F32}",
                     results="v3")  # fmt: skip
    expect(left(yours, p), expected, given=str(p))
    p = program(f"subtract(x, y) : {F32}", f"subtract(y, x) : {F32}", f"exp(x) : {F32}",
                f"exp(y) : {F32}", f"tanh(x) : {F32}", f"add(v1, v2) : {F32}",
                f"multiply(v3, v4) : {F32}", results="v5, v6, v7")  # fmt: skip
    expect_that(yours.cse(p) is p, "the very same program", given=str(p))


@exercise.example
def numbers(yours):
    """2.0 and 2.0 are equal; 0.0 and -0.0 are not, nor are 1 and 1.0 and True."""
    p = program(*(f"add(x, {n}) : {F32}" for n in ("0.0", "-0.0", "2.0", "0.0", "2.0", "-0.0")),
                *(f"multiply(v{k}, v{k + 3}) : {F32}" for k in (1, 2, 3)),
                results="v7, v8, v9")  # fmt: skip
    expected = lines(*(f"add(x, {n}) : {F32}" for n in ("0.0", "-0.0", "2.0")),
                     f"multiply(v1, v1) : {F32}", f"multiply(v2, v3) : {F32}",
                     f"multiply(v3, v2) : {F32}", results="v4, v5, v6")  # fmt: skip
    expect(left(yours, p), expected, given=str(p))


@exercise.example
def keys(yours):
    """What an operator can tell apart has different keys, what it cannot has equal ones."""
    nan = float("nan")
    for a, b, equal in (
        (1, 1, True), (1, 1.0, False), (1, True, False), (0.0, -0.0, False), (nan, -nan, True),
        (2.5, 2.5, True), ("a", "a", True), ((1, 2), (1, 2), True), ((1, 2), (2, 1), False),
        ((1, 0.0), (1, -0.0), False), ((1,), (True,), False), (((1,), nan), ((1,), nan), True),
        (((1, 2),), ((1, 2.0),), False), ((), (), True), (None, False, False), ((1,), 1, False),
        (np.dtype("float32"), np.dtype("float32"), True), (0, False, False), ("1", 1, False),
        ((*range(8),), (*range(8),), True), ((*range(8),), (*range(7), 8), False),
        (1e-30, 2e-30, False), (2.0, 2.0 - 2.0**-52, False), (2.0 - 2.0**-52, 2 - 2.0**-51, False),
    ):  # fmt: skip
        found = yours.exact(a) == yours.exact(b)
        expect(found, equal, given={"a": a, "b": b}, why="are the keys equal?")
        hash(yours.exact(a))


@exercise.example
def attributes(yours):
    """A sum along another axis is another sum, whatever else is the same."""
    p = parse("""program p(x: float32[2, 2]) {
  v1 = sum(x, axis=(0,), keepdim=False) : float32[2]
  v2 = sum(x, axis=(1,), keepdim=False) : float32[2]
  v3 = sum(x, keepdim=False, axis=(0,)) : float32[2]
  v4 = add(v1, v2) : float32[2]
  v5 = add(v4, v3) : float32[2]
  return v5
}""")
    swapped = p.records[2]
    swapped.attrs = dict(sorted(swapped.attrs.items(), reverse=True))
    expected = "v3 = add(v1, v2) : float32[2]\nv4 = add(v3, v1) : float32[2]\nreturn v4"
    expect("\n".join(left(yours, p).splitlines()[2:]), expected, given=str(p))


@exercise.example
def results_have_memory_of_their_own(yours):
    """Two results stay two; a result and an inner value become one, and that is a result then."""
    p = program(f"exp(x) : {F32}", f"exp(x) : {F32}", results="v1, v2")
    expect_that(yours.cse(p) is p, "the very same program", given=str(p))
    p = program(f"exp(x) : {F32}", f"tanh(v1) : {F32}", f"exp(x) : {F32}", results="v2, v3")
    expected = lines(f"exp(x) : {F32}", f"tanh(v1) : {F32}", results="v2, v1")
    expect(left(yours, p), expected, given=str(p))
    p = program(*[f"exp(x) : {F32}"] * 3, f"tanh(v1) : {F32}", results="v2, v3, v4")
    expected = lines(*[f"exp(x) : {F32}"] * 2, f"tanh(v1) : {F32}", results="v1, v2, v3")
    expect(left(yours, p), expected, given=str(p))
    p = program(*[f"exp(x) : {F32}"] * 2, *(f"tanh(v{k}) : {F32}" for k in (1, 2)),
                f"tanh(v2) : {F32}", results="v4, v5")  # fmt: skip
    expected = lines(f"exp(x) : {F32}", *[f"tanh(v1) : {F32}"] * 2, results="v2, v3")
    expect(left(yours, p), expected, given=str(p))
    p = program(f"exp(w) : {F32}", f"exp(w) : {F32}", results="v1", update="v2")
    expect_that(yours.cse(p) is p, "a new value of a state is a result", given=str(p))
    p = program(*[f"exp(x) : {F32}"] * 2, f"add(v2, y) : {F32}", f"add(v1, y) : {F32}",
                results="v3, v4")  # fmt: skip
    expected = lines(f"exp(x) : {F32}", *[f"add(v1, y) : {F32}"] * 2, results="v2, v3")
    expect(left(yours, p), expected, given=str(p), why="both are results, though both are new")


@exercise.example
def what_is_printed_twice(yours):
    """Two prints stay two, and both print; what they print is computed once."""

    def shown(x):
        print(x.exp().sum())
        print(x.exp().sum())
        return x

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        static = paddle.jit.to_static(shown)
        static(paddle.zeros([3]))
        with exercise.plugged(yours):
            after = optimized(static.main_program, until="cse").program
        printed.truncate(0)
        Run(NUMPY)(after, [np.zeros(3, "float32")])
    names = [r.op.name for r in after.records]
    expect(names.count("show"), 2, given=str(static.main_program), why="prints")
    expect(names.count("exp"), 1, given=str(static.main_program), why="what they print")
    expect(printed.getvalue().count("3."), 2, given="print(…) twice", why="what was printed")


@exercise.example
def two_draws(yours):
    """Two random arrays stay two: they read the counter before and after the first draw."""

    def drawn(x):
        return paddle.rand([4]) - paddle.rand([4]) + x

    with exercise.plugged(yours):
        paddle.seed(0)
        static = paddle.jit.to_static(drawn, backend="native" if native() else "interpreter")
        got = static(paddle.zeros([4])).numpy()
        after = optimized(static.main_program, until="dead_code").program
    expect_that(np.all(got != 0), "two draws differ", got=got)
    names = [r.op.name for r in after.records]
    expect(names.count("random_uniform"), 2, given=str(static.main_program))


def native():
    from minipaddle.engine.executors.compiler import compiler

    return compiler() is not None


@exercise.example
def regions_for_themselves(yours):
    """Within a side of a branch; but a branch is not merged with an equal one."""
    side = "(p: float32[2]) {\n    v1 = exp(p) : float32[2]\n    v2 = exp(p) : float32[2]\n"
    side += "    v3 = add(v1, v2) : float32[2]\n    return v3\n  }"
    cond = f"cond(b, x, true={side}, false={side}) : (float32[2])"
    p = program(cond, f"item(v1, k=0) : {F32}", cond, f"item(v3, k=0) : {F32}",
                f"item(v1, k=0) : {F32}", f"add(v2, v4) : {F32}", f"add(v6, v5) : {F32}",
                results="v7")  # fmt: skip
    text = left(yours, p)
    expect(text.count("cond("), 2, given=str(p), why="branches")
    expect(text.count("exp("), 4, given=str(p), why="one exp in each side")
    expect(text.count("item("), 2, given=str(p), why="one result taken out of each branch")


@exercise.property(seed=st.integers(0, 10**6))
def the_same_numbers_and_nothing_twice(yours, seed):
    """Random programs: results as before, and no two records left with the same value's formula."""
    rng = random.Random(seed)
    known, texts = ["x", "y", "w"], []
    for k in range(1, 11):
        op = rng.choice(["add", "subtract", "exp"])
        given = [rng.choice(known) for _ in range(1 if op == "exp" else 2)]
        if rng.random() < 0.3 and op != "exp":
            given[1] = rng.choice(["0.5", "2.0"])
        texts.append(f"{op}({', '.join(given)}) : {F32}")
        known.append(f"v{k}")
    p = program(*texts, results="v9, v10", update="v8")
    after = yours.cse(p)
    verify(after)
    x, y, w = np.array([[0.1, -0.2], [0.3, 0.1], [-0.4, 0.2]], "f4")
    arrays = [x, y, np.True_, w]
    with np.errstate(all="ignore"):
        expected, got = Run(NUMPY)(p, arrays), Run(NUMPY)(after, arrays)
    expect(got, expected, given=str(p), rtol=0, atol=0)
    formulas = {}
    for record in after.records:
        text = (
            f"{record.op.name}({', '.join(formulas.get(x, str(x.attrs)) for x in record.inputs)})"
        )
        twin = next((r for r, t in formulas.items() if t == text), None)
        two_results = {record, twin} <= set(after.results)
        expect_that(
            twin is None or two_results, "nothing is computed twice", given=str(p), got=str(after)
        )
        formulas[record] = text


@exercise.example
def a_network_trains(yours):
    """A captured training step with dropout: the same losses, and fewer records than before."""

    paddle.seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Dropout(0.5), nn.Linear(8, 1))
    adam = paddle.optimizer.Adam(0.01, parameters=net.parameters())

    @paddle.jit.to_static
    def step(x, y):
        h = net(x)
        loss = F.mse_loss(F.gelu(h), y) + 0.1 * F.gelu(h).mean()
        loss.backward()
        adam.step()
        adam.clear_grad()
        return loss

    step(paddle.randn([16, 4]), paddle.randn([16, 1]))
    p = step.main_program
    with exercise.plugged(yours):
        done = optimized(p)
    counts = [
        (len(s.before.records), len(s.after.records)) for s in done.snapshots if s.name == "cse"
    ]
    expect_that(any(a > b for a, b in counts), "fewer records", given=str(p)[:300], got=counts)
    arrays = [np.full(r.shape, 0.5).astype(r.dtype) for r in p.given]
    got = Run(NUMPY)(done.after("cse"), arrays)
    expect([np.array(a) for a in got[:1]], [np.array(a) for a in Run(NUMPY)(p, arrays)[:1]],
           given="the loss of the step, before and after", rtol=1e-4)  # fmt: skip
