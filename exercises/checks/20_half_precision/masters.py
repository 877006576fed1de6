"""Checks of 20_half_precision/masters."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle.engine.core import dtype as dt
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Master weights: what a rule computes on",
    level="easy",
    minutes=10,
    before=("20_half_precision/rounding",),
    slots={"optimizer.upcast": "upcast"},
    hints=(
        "The parameter says 1.0, its master 0.9985. The next step takes 0.001 away: from which of "
        "the two, if in the end both are to be right?",
        "`is None` asks whether there is a master. Two things may have to be cast, but not the "
        "master, which is in the right dtype.",
        "weights: the master, or else the parameter in `dtype`\ngradient: in `dtype`",
    ),
    wrong={
        "the master forgotten": (
            "weights.astype(dtype) if master is None else master → weights.astype(dtype)"
        ),
        "weights in half precision": "weights.astype(dtype) → weights",
        "a gradient in half precision": "g.astype(dtype) → g",
        "always float32": (
            "weights.astype(dtype) → weights.astype('float32')",
            "g.astype(dtype) → g.astype('float32')",
        ),
        "the two exchanged": "return (weights, g.astype(dtype)) → return g.astype(dtype), weights",
        "a master rounded": (
            "weights.astype(dtype) if master is None else master → weights.astype(dtype) if master "
            "is None else master.astype(weights.dtype).astype(dtype)"
        ),
        "the mean of both": (
            "weights.astype(dtype) if master is None else master → weights.astype(dtype) if master "
            "is None else (weights.astype(dtype) + master) / 2"
        ),
        "a gradient rounded": "g.astype(dtype) → g.astype(weights.dtype).astype('bfloat16')",
    },
)


@exercise.mistake("a master that is zero is none")
def upcast(weights, master, g, dtype):
    weights = master if master is not None and bool((master != 0).any()) else weights.astype(dtype)
    return weights, g.astype(dtype)


def ask(yours, half, weights, master, g, g_dtype="float32", dtype="float32"):
    wide = dt.resolve(dtype)
    given = {"weights": weights, "master": master, "g": g, "dtype": dtype}
    p = paddle.to_tensor(weights, dtype=half)
    g = paddle.to_tensor(g, dtype=g_dtype)
    m = None if master is None else paddle.to_tensor(master, dtype=dtype)
    before = [None if t is None else t.numpy() for t in (p, m, g)]
    got = yours.upcast(p, m, g, wide)
    for x, what in zip(got, ("weights", "gradient"), strict=True):
        expect(x.dtype.name, dtype, given=given, why=f"the dtype of the {what}")
    for t, was in zip((p, m, g), before, strict=True):
        same = t is None or np.array_equal(t.numpy(), was, equal_nan=True)
        expect_that(same, "what was given was written into", given=given, got=t)
    right = p.astype(dtype) if m is None else m
    for x, y in zip(got, (right, g), strict=True):
        expect(x.numpy(), y.astype(dtype).numpy(), given=given, rtol=0, atol=0)


@exercise.example
def the_example(yours):
    """The master if there is one, else the parameter."""
    ask(yours, "bfloat16", [1.0], [0.9985], [0.25])
    ask(yours, "bfloat16", [1.0], None, [0.25])


numbers = st.lists(st.sampled_from([0.0, 1 / 3, -2.5, 1e-9, np.inf, np.nan]), max_size=6)


@exercise.property(
    values=numbers,
    half=st.sampled_from(["bfloat16", "float16"]),
    kept=st.booleans(),
    g_dtype=st.sampled_from(["bfloat16", "float16", "float32"]),
    dtype=st.sampled_from(["float32", "float64"]),
)
def any_weights(yours, values, half, kept, g_dtype, dtype):
    """Both formats, with and without a master, also one of zeros; any number, and none."""
    master = [v * 1.001 for v in values] if kept else None
    with np.errstate(all="ignore"):
        ask(yours, half, values, master, values[::-1], g_dtype, dtype)


@exercise.example
def large_arrays(yours):
    """Many weights, with and without masters."""
    x = np.random.default_rng(0).normal(size=(20, 30))
    ask(yours, "bfloat16", x, None, x)
    ask(yours, "bfloat16", x, x, x)


def after(yours, half, master, steps=300, static=True):
    """Two weights, 1.0 and 0.0, after many steps of 0.001."""
    net = paddle.nn.Linear(1, 2, bias_attr=False)
    net.weight.set_value([[1.0, 0.0]])
    sgd = paddle.optimizer.SGD(0.001, parameters=net.parameters())
    net, sgd = paddle.amp.decorate(net, sgd, "O2", half, master_weight=master)

    def step(x):
        net(x).sum().backward()
        sgd.step()
        sgd.clear_grad()

    step, x = paddle.jit.to_static(step) if static else step, paddle.ones([1, 1], half)
    with exercise.plugged(yours):
        for _ in range(steps):
            step(x)
    return net.weight.numpy().astype("float32")[0]


@exercise.example
def in_the_engine(yours):
    """300 steps of 0.001 in a captured step, and a few without capture."""
    given = {"weights": [1.0, 0.0], "steps of": 0.001, "how many": 300}
    got = after(yours, "bfloat16", True)
    expect(got, np.array([0.7, -0.3], "f"), given=given, rtol=5e-3)
    got = after(yours, "bfloat16", False)
    expect(float(got[0]), 1.0, given=given, why="without a master the first one stalls")
    got = after(yours, "float16", True, steps=4, static=False)
    expect(got, np.array([0.996, -0.004], "f"), given=given | {"how many": 4}, rtol=1e-3)
