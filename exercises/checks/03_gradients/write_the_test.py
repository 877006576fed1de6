"""Checks of 03_gradients/write_the_test."""

from itertools import count

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle import testing
from minipaddle.engine.core.grad import TupleCotangent
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Write the test that catches these wrong engines",
    level="hard",
    minutes=60,
    before=("03_gradients/central_differences",),
    slots={"testing.check_engine": "check_engine"},
    hints=(
        "Take the wrong engines one by one: what is the smallest program whose gradient is wrong "
        "on it, and which shapes does it need so that the mistake shows?",
        "check_grad(program, inputs…) sees every wrong value of a derivative, and with order=2 "
        "what was lost on the way. A hook is seen by what it does to the gradient: register two "
        "that do not commute, and compare x.grad with the value by hand.",
        "each of + - * / by check_grad, a matrix with a row\n"
        "x @ x.t(); tanh and exp with order=2\n"
        "relu, sum, mean, a transpose of three axes, x[[0, 0]], x·exp(tanh x),\n"
        "tanh x + (x + exp x)\n"
        "two hooks that do not commute, called by backward: x.grad against the value by hand\n"
        "a PyLayer with a rule of your own: x.grad against it",
    ),
    wrong={
        "a test that says yes to everything": (
            "cube, row = (draw(2, 2, 2), draw(4)) → return; cube, row = (draw(2, 2, 2), draw(4))"
        ),
        "a test without second derivatives": (
            "check_grad(function, row, order=2) → check_grad(function, row)"
        ),
        "a test without broadcasting": "(matrix, row) → (row, row)",
        "a test of one number only": (
            "matrix = paddle.reshape(cube, [2, -1]) → cube, row = (draw(1, 1, 1), draw(1)); "
            "matrix = paddle.reshape(cube, [1, 1])"
        ),
        "a test without hooks": "_check_hooks(draw(), draw(), draw()) → pass",
        "a test that tries one hook": (
            "y.register_hook(lambda g: g * second) → pass",
            "(second + first) * second → second + first",
        ),
        "a test without PyLayer": "_check_own_rule(draw(), draw()) → pass",
        "a test that uses no value twice": (
            (
                "for function in (F.relu, paddle.sum, paddle.mean, _turned, _same_row_twice, "
                "_detour, _shared): → for function in (F.relu, paddle.sum, paddle.mean, "
                "_turned): check_grad(function, cube)"
            ),
            "check_grad(_product, matrix) → pass",
        ),
        "a test of positive numbers only": (
            "check_grad(function, cube) → check_grad(function, cube.abs())"
        ),
        "a test that fails on the right engine": (
            "(second + first) * second * (1 - y * y) → second + first * second * (1 - y * y)"
        ),
        "looking at what is plugged in": (
            "cube, row = (draw(2, 2, 2), draw(4)) → from minipaddle.engine.core.slots import "
            "yours; assert set(yours()) <= {'testing.check_engine'}; return; cube, row = "
            "(draw(2, 2, 2), draw(4))"
        ),
    },
    unkillable={
        "check_grad(function, row, order=2) → check_grad(function, row, order=3)": (
            "the third derivative is looked at besides"
        ),
        "return x * paddle.exp(paddle.tanh(x)) → return x / paddle.exp(paddle.tanh(x))": (
            "another detour, as good as this one"
        ),
        "assert paddle.allclose(x.grad, right) → assert paddle.allclose(right, x.grad)": (
            "the two are compared either way"
        ),
        "assert paddle.allclose(x.grad, factor) → assert paddle.allclose(factor, x.grad)": (
            "the two are compared either way"
        ),
    },
)


def drawing(seed):
    """The `draw` the reader's test is given: other numbers for every seed and every call."""
    calls = count(seed * 1000)

    def draw(*shape):
        random = np.random.default_rng(next(calls))
        size = random.uniform(0.5, 1.5, shape)
        sign = np.where(random.permutation(size.size).reshape(shape) % 2, 1.0, -1.0)
        return paddle.to_tensor(np.asarray(size * sign), dtype="float64")

    return draw


# ---- wrong engines -------------------------------------------------------------------------------


def forgets(cotangents, record, g):
    cotangents[record] = g


def keeps_the_first(cotangents, record, g):
    cotangents.setdefault(record, g)


def averages(cotangents, record, g):
    before = cotangents.get(record)
    cotangents[record] = (
        g if before is None else (before + g) * (1 if type(g) is TupleCotangent else 0.5)
    )


def adds_in_place(cotangents, record, g):
    before = cotangents.get(record)
    if before is None or type(g) is TupleCotangent or before.spec.shape != g.spec.shape:
        cotangents[record] = g if before is None else before + g
    else:
        before.array[...] += g.array


def discovered(roots):
    """As they are found from the results on: a short path is gone before a long one."""
    found = list(roots)
    for record in found:
        found += [e for e in record.inputs if e is not None and e not in found]
    return found[::-1]


def in_depth(roots):
    """A depth-first walk that notes a record before what it was computed from."""
    found, stack = [], list(roots)
    while stack:
        record = stack.pop(0)
        if record not in found:
            found.append(record)
            stack = [e for e in record.inputs if e is not None] + stack
    return found[::-1]


def takes_the_first(g, shape):
    while len(g.spec.shape) > len(shape):
        g = g[0]
    return g


def takes_the_mean(g, shape):
    while len(g.spec.shape) > len(shape):
        g = g.mean(0)
    return g


def twice(hooks, g):
    return once(hooks, once(hooks, g))


def once(hooks, g):
    for hook in hooks:
        changed = hook(g)
        g = g if changed is None else changed
    return g


def looks_only(hooks, g):
    for hook in hooks:
        hook(g)
    return g


def backwards(hooks, g):
    return once(list(hooks)[::-1], g)


def on_the_tape(layer, args, kwargs):
    return layer.forward(paddle.autograd.PyLayerContext(), *args, **kwargs)


def relu_at_one(g, out):
    return paddle.where(out > 0, g, g * 0.5)


SHOWN = {
    "forgets to accumulate": ("autograd.accumulate", forgets),
    "walks in the order of discovery": ("autograd.history", discovered),
    "takes the first of what broadcasting repeated": ("autograd.sum_to", takes_the_first),
    "has the rule g (1 - out) for tanh": ("ops.tanh.vjp", lambda g, out: g * (1 - out)),
    "calls hooks twice": ("autograd.apply_hooks", twice),
    "has the wrong sign in x @ y, for y": ("ops.matmul.vjp.y", lambda g, x: -(x.t() @ g)),
}
HIDDEN = {
    "counts only the first use of a value": ("autograd.accumulate", keeps_the_first),
    "averages over the uses of a value": ("autograd.accumulate", averages),
    "accumulates in place, in memory that is shared": ("autograd.accumulate", adds_in_place),
    "walks in depth": ("autograd.history", in_depth),
    "takes the mean of what broadcasting repeated": ("autograd.sum_to", takes_the_mean),
    "ignores what a hook returns": ("autograd.apply_hooks", looks_only),
    "calls the last hook first": ("autograd.apply_hooks", backwards),
    "has the wrong factor in x * y, for y": ("ops.multiply.vjp.y", lambda g, y: g * y),
    "has the wrong factor in x * y, for x": ("ops.multiply.vjp.x", lambda g, x: g * x),
    "has the wrong sign in x - y, for y": ("ops.subtract.vjp.y", lambda g: g),
    "forgets y in x + y": ("ops.add.vjp.y", lambda g: g * 0),
    "doubles x in x + y": ("ops.add.vjp.x", lambda g: g + g),
    "has no square in x / y, for y": ("ops.divide.vjp.y", lambda g, out: -g * out),
    "multiplies in x / y, for x": ("ops.divide.vjp.x", lambda g, y: g * y),
    "halves x in x @ y": ("ops.matmul.vjp.x", lambda g, y: (g @ y.t()) * 0.5),
    "has the gradient 1 for exp": ("ops.exp.vjp", lambda g: g),
    "loses the past of exp": ("ops.exp.vjp", lambda g, out: g * out.detach()),
    "loses the past of tanh": ("ops.tanh.vjp", lambda g, out: g * (1 - out.detach() ** 2)),
    "lets everything pass relu": ("ops.relu.vjp", lambda g: g),
    "lets nothing pass relu": ("ops.relu.vjp", lambda g: g * 0),
    "lets half pass relu where it is 0": ("ops.relu.vjp", relu_at_one),
    "divides in sum": (
        "ops.sum.vjp",
        lambda g, x_spec: (g / x_spec.size).broadcast_to(x_spec.shape),
    ),
    "forgets to divide in mean": ("ops.mean.vjp", lambda g, x_spec: g.broadcast_to(x_spec.shape)),
    "transposes the same way back": (
        "ops.transpose.vjp",
        lambda g, perm: paddle.transpose(g, list(perm)),
    ),
    "counts a place that is taken twice once": (
        "ops.take.vjp.x",
        lambda g, x_spec, index, axis: paddle.zeros(x_spec.shape, x_spec.dtype).put_along_axis(
            index.reshape([-1, *[1] * (g.ndim - 1)]).broadcast_to(g.shape), g, axis
        ),
    ),
    "ignores a PyLayer's backward": ("pylayer.apply", on_the_tape),
}


# ---- right engines, written otherwise ------------------------------------------------------------


def adds(cotangents, record, g):
    cotangents[record] = g if record not in cotangents else g + cotangents[record]


def finished_first(roots):
    """Depth-first, each record noted after everything it was computed from."""
    order, seen, stack = [], set(), [(root, False) for root in roots]
    while stack:
        record, finished = stack.pop()
        if finished:
            order.append(record)
        elif record not in seen:
            seen.add(record)
            stack.append((record, True))
            stack += [(e, False) for e in record.inputs if e is not None]
    return order


RIGHT = {
    "autograd.accumulate": adds,
    "autograd.history": finished_first,
    "autograd.apply_hooks": once,
    "ops.tanh.vjp": lambda g, out: g - g * out * out,
    "ops.exp.vjp": lambda g, x: g * paddle.exp(x),
    "ops.multiply.vjp.y": lambda g, x: x * g,
}


def verdict(yours, engine, seed=0):
    """What the reader's test says of an engine: "right", or what it raised."""
    with exercise.plugged(yours), paddle.plugged(engine):
        try:
            testing.check_engine(drawing(seed))
        except Exception as error:
            return f"{type(error).__name__}: {error}".split("\n")[0]
    return "right"


@exercise.example
def the_right_engine_passes(yours):
    """Before a test may catch anything it must leave what is right alone."""
    expect(verdict(yours, {}), "right", given={"the engine": "as it is"})


@exercise.property(seed=st.integers(0, 999), examples=3)
def it_passes_with_any_numbers(yours, seed):
    """Whatever draw gives, the right engine is right."""
    expect(verdict(yours, {}, seed), "right", given={"draw": f"seed {seed}"})


@exercise.example
def another_right_engine_passes(yours):
    """Another order of the walk, another sum, another formula for the same derivative."""
    for slot, rule in RIGHT.items():
        expect(verdict(yours, {slot: rule}), "right", given={"rewritten, but right": slot})


def must_notice(yours, engines):
    for what, (slot, rule) in engines.items():
        answer = verdict(yours, {slot: rule})
        expect_that(answer != "right", f"a test that notices an engine that {what}", got=answer)


@exercise.example
def it_catches_the_engines_you_know(yours):
    """The engines of the task, one after the other."""
    must_notice(yours, SHOWN)


@exercise.example
def it_catches_engines_you_were_not_told(yours):
    """Mistakes of the kinds that the task's last line names."""
    must_notice(yours, HIDDEN)


@exercise.example
def it_leaves_nothing_behind(yours):
    """After the test the engine is as it was: a tape is kept, and a gradient is right."""
    verdict(yours, {})
    x = paddle.to_tensor(2.0, stop_gradient=False)
    (x * x).backward()
    expect(x.grad.item(), 4.0, given={"y": "x²", "x": 2.0})
