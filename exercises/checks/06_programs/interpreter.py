"""Checks of 06_programs/interpreter."""

import tracemalloc

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.engine.core import dim as dims
from minipaddle.engine.core.record import Spec
from minipaddle.engine.eager.tracer import trace
from minipaddle.engine.ir import interpreter
from minipaddle.engine.ir.interpreter import Run
from minipaddle.ir.parser import parse
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Run the records in order",
    level="medium",
    minutes=25,
    slots={"ir.run": "run"},
    hints=(
        "What do you need to know when a record's turn comes, and where does its value go?",
        "Keep a dict: record -> value. It begins with what is given. Numbers are not in it: they "
        "bring their value along.",
        "begin; values = dict of the given records and arrays\n"
        "for k, record in the order of the program:\n"
        "    values[record] = compute(the values of its inputs)\n"
        "    forget the values that end at k\n"
        "the values of the results",
    ),
    wrong={
        "keeping every value to the end": "values.pop(ended, None) → pass",
        "forgetting the new values of states": (
            "[self.number(r.attrs['value']) if r.op is NUMBER else values[r] for r in "
            "program.results] → [self.number(r.attrs['value']) if r.op is NUMBER else "
            "values[r] for r in program.outputs]"
        ),
        "not looking at open sizes": "self.begin(program, arrays) → pass",
        "the states before the inputs": (
            "zip(program.given, arrays, strict=True) → zip([*(s.record for s in "
            "program.states), *program.inputs], arrays)"
        ),
        "newest first": "enumerate(program.records) → reversed([*enumerate(program.records)])",
        "values by the name of the operator": (
            (
                "values[e] if e in values else e.attrs['value'] → values[e.op] if e.op in "
                "values else values[e] if e in values else e.attrs['value']"
            ),
            (
                "values[record] = self.compute(program, record, given) → values[record.op] = "
                "values[record] = self.compute(program, record, given)"
            ),
        ),
        "numbers among the results forgotten": (
            "self.number(r.attrs['value']) if r.op is NUMBER else values[r] → values[r]"
        ),
        "the values of the first run remembered": (
            "self.begin(program, arrays) → arrays = vars(program).setdefault('first', arrays); "
            "self.begin(program, arrays)"
        ),
    },
    unkillable={
        "values = dict(zip(program.given, arrays, strict=True)) → values = "
        "dict(zip(program.given, arrays, strict=False))": "begin has counted them",
    },
)  # fmt: skip


@exercise.mistake("letting go before the record has run")
def run(self, program, arrays):
    self.begin(program, arrays)
    values = dict(zip(program.given, arrays, strict=True))
    last = interpreter.last_uses(program)
    for k, record in enumerate(program.records):
        for ended in last.get(k, ()):
            values.pop(ended, None)
        given = [values[e] if e in values else e.attrs["value"] for e in record.inputs]
        values[record] = self.compute(program, record, given)
    return [r.attrs.get("value", values.get(r)) for r in program.results]


F32 = np.dtype("float32")


def traced(function, *shapes):
    specs = [Spec(tuple(dims.symbol(n, 4) if isinstance(n, str) else n for n in shape), F32)
             for shape in shapes]  # fmt: skip
    return trace(lambda *xs: [function(*xs)], specs).program


def ran(yours, program, arrays):
    with exercise.plugged(yours):
        return Run(np)(program, arrays)


@exercise.example
def a_formula(yours):
    """tanh(x) · 2 + x, traced for two numbers, run for [0, 1]."""
    x = np.array([0, 1], F32)
    program = traced(lambda x: x.tanh() * 2 + x, (2,))
    got = ran(yours, program, [x])
    expect_that(type(got) is list, "a list of results", got=got)
    expect(got, [np.tanh(x) * 2 + x], given={"program": str(program), "x": x})


@exercise.example
def results_in_their_order(yours):
    """Two results, one of them used by the other; an input; a number; nothing."""
    program = parse(
        "program p(x: float32[2], y: float32[2]) {\n"
        "  v1 = add(x, 1.0) : float32[2]\n"
        "  v2 = multiply(v1, y) : float32[2]\n"
        "  return v2, v1, y, 2.5, v2\n}"
    )
    x, y = np.array([1, 2], F32), np.array([10, 100], F32)
    got = ran(yours, program, [x, y])
    expect(got, [(x + 1) * y, x + 1, y, np.float64(2.5), (x + 1) * y], given=str(program))
    empty = parse("program p(x: float32[2]) {\n  return\n}")
    expect(ran(yours, empty, [x]), [], given=str(empty))


@exercise.example
def states_are_read_and_updated(yours):
    """An input x and two states; the new value of the second one is a result."""
    program = parse(
        "program p(x: float32[2]) {\n"
        "  state w: float32[2]\n"
        "  state b: float32[]\n"
        "  v1 = multiply(x, w) : float32[2]\n"
        "  v2 = add(b, 1.0) : float32[]\n"
        "  update b = v2\n"
        "  return v1\n}"
    )
    arrays = [np.array([1, 2], F32), np.array([3, 4], F32), np.array(7, F32)]
    before = [*arrays]
    expect(ran(yours, program, arrays), [arrays[0] * arrays[1], np.array(8, F32)],
           given=str(program))  # fmt: skip
    same = all(a is b for a, b in zip(arrays, before, strict=True))
    expect_that(len(arrays) == 3 and same, "the list of arrays stays what it was", got=arrays)


@exercise.example
def the_same_program_again(yours):
    """A second run with other numbers knows nothing of the first."""
    program = traced(lambda x, y: x * y + y, (), ())
    for x, y in ((2, 3), (5, 7), (2, 7)):
        got = ran(yours, program, [np.array(x, F32), np.array(y, F32)])
        expect(got, [np.array(x * y + y, F32)], given={"x": x, "y": y})


@exercise.example
def open_sizes(yours):
    """n rows, flattened to 3 n numbers and cut at n: n is known when the program runs."""
    program = traced(lambda x: x.reshape([-1])[: x.shape[0]] * x.shape[0], ("n", 3))
    for n in (1, 4, 6):
        x = np.arange(3.0 * n, dtype=F32).reshape(n, 3)
        got = ran(yours, program, [x])
        expect(got, [x.reshape(-1)[:n] * n], given={"program": str(program), "n": n})


@exercise.example
def branches_and_loops(yours):
    """Regions are programs too: the engine runs them by your function, in each iteration."""
    program = parse(
        "program p(x: float32[2], b: bool[]) {\n"
        "  v1 = cond(b, x, true=(a: float32[2]) {\n"
        "    v1 = multiply(a, 2.0) : float32[2]\n"
        "    return v1\n  }, false=(a: float32[2]) {\n    return a\n  }) : (float32[2])\n"
        "  v2 = item(v1, k=0) : float32[2]\n"
        "  v3 = while_loop(v2, test=(a: float32[2]) {\n"
        "    v1 = sum(a, axis=(0,), keepdim=False) : float32[]\n"
        "    v2 = less_than(v1, 100.0) : bool[]\n"
        "    return v2\n  }, body=(a: float32[2]) {\n"
        "    v1 = add(a, a) : float32[2]\n"
        "    return v1\n  }, carried=1, keep=False) : (float32[2])\n"
        "  v4 = item(v3, k=0) : float32[2]\n"
        "  return v4\n}"
    )
    for b, expected in ((True, [48, 64]), (False, [48, 64])):
        x = np.array([3, 4], F32)
        got = ran(yours, program, [x, np.array(b)])
        expect(got, [np.array(expected, F32)], given={"program": str(program), "b": b})


@exercise.example
def an_error_comes_through(yours):
    """Arrays that the program is not for: the engine's ValueError, not yours."""
    program = traced(lambda x, y: x + y, (2,), (2,))
    try:
        got = ran(yours, program, [np.ones(2, F32), np.ones(3, F32)])
    except ValueError as error:
        got = str(error)
    expect_that(isinstance(got, str) and "add" in got, "a ValueError that names add", got=got)


@exercise.property(
    rows=st.lists(
        st.tuples(st.sampled_from("+-*"), st.integers(0, 9), st.integers(0, 9)),
        min_size=1,
        max_size=8,
    )
)
def as_python_says(yours, rows):
    """A chain of sums, differences and products of two numbers and a constant."""

    def formula(x, y):
        values = [x, y]
        for sign, a, b in rows:
            a, b = values[a % len(values)], values[b % len(values)]
            values.append(a + b if sign == "+" else a - b if sign == "-" else a * b * 0.5)
        return values[-1]

    program = traced(formula, (), ())
    x, y = np.array(0.5, F32), np.array(-1.5, F32)
    expect(ran(yours, program, [x, y]), [np.asarray(formula(x, y), F32)], rtol=1e-4, atol=1e-5,
           given={"program": str(program)})  # fmt: skip


@exercise.example
def values_are_let_go(yours):
    """x tanh'd forty times, a megabyte each time: two or three are alive, not forty."""
    size = 1 << 18

    def forty(x):
        for _ in range(40):
            x = x.tanh()
        return x

    program, x = traced(forty, (size,)), np.ones(size, F32)
    ran(yours, program, [x])
    tracemalloc.start()
    try:
        ran(yours, program, [x])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    measured = f"{peak / (1 << 20):.1f} MB at most"
    expect_that(peak < 2.5 * (1 << 20), "no more than two arrays of 1 MB at any time", got=measured)


@exercise.example
def a_network_learns_with_it(yours):
    """A captured training step: forward, backward, update, forty times."""
    with exercise.plugged(yours):
        paddle.seed(0)
        net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.BatchNorm1D(16), nn.Linear(16, 1))
        adam = paddle.optimizer.Adam(learning_rate=0.05, parameters=net.parameters())
        x = paddle.randn([64, 2])
        y = x[:, :1] * x[:, 1:]

        @paddle.jit.to_static
        def step(x, y):
            loss = F.mse_loss(net(x), y)
            loss.backward()
            adam.step()
            adam.clear_grad()
            return loss

        losses = [step(x, y).item() for _ in range(40)]
    expect_that(
        losses[-1] < 0.3 * losses[0], "a third of the loss after 40 steps", got=losses[::10]
    )


def of_any_shape(yours, x):
    """3 x by two records, in a program for arrays like x."""
    program = trace(lambda x: [x + x + x], [Spec(x.shape, x.dtype)]).program
    return ran(yours, program, [x])


exercise.holds(
    of_any_shape, lambda x: [3 * x], [(3, 4)], large=[(40, 30)], empty=[(0, 3)], infinite=[np.inf]
)
