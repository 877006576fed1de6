"""Checks of 20_half_precision/rounding."""

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle.engine.core import dtype as dt
from minipaddle.learn import Exercise, expect, expect_that

BFLOAT16 = dt.bfloat16.numpy

exercise = Exercise(
    title="Where bfloat16 stalls: round to it",
    level="medium",
    minutes=30,
    before=("01_arrays",),
    slots={"ops.cast.body": "cast"},
    hints=(
        "If the lower sixteen bits are simply cut off, where does 1.0 - 0.001 go? And which number "
        "can you add to the bits first, so that cutting them off rounds?",
        "Half of a last place is 0x8000. Adding 0x7fff carries into the upper half for all that is "
        "more than half; what is exactly half must carry where the last bit is 1, and only there.",
        "anything else, or another array: x\n"
        "bits of x as uint32; last = bit 16\n"
        "(bits + 0x7fff + last), with the lower sixteen bits zero, as float32\n"
        "where x is NaN: x",
    ),
    wrong={
        "cut off": "(bits + 0x7FFF + last) & 0xFFFF0000 → bits & 0xFFFF0000",
        "halves always up": "bits + 0x7FFF + last → bits + 0x8000",
        "halves always down": "bits + 0x7FFF + last → bits + 0x7FFF",
        "halves to odd": "bits + 0x7FFF + last → bits + 0x8000 - last",
        "NaN that becomes a number": "np.isnan(x) → np.isnan(x) & False",
        "the lower bits stay": "(bits + 0x7FFF + last) & 0xFFFF0000 → bits + 0x7FFF + last",
        "a mantissa of 8 bits": (
            "bits >> 16 & 1 → bits >> 15 & 1",
            "(bits + 0x7FFF + last) & 0xFFFF0000 → (bits + 0x3FFF + last) & 0xFFFF8000",
        ),
        "every cast rounds": "dtype != BFLOAT16 → dtype == 'no such'",
        "writing into the weights": (
            "return np.where(np.isnan(x), x, up.view('float32')) → "
            "x[...] = up.view('float32'); return x"
        ),
        "a type of bfloat16": (
            "return np.where(np.isnan(x), x, up.view('float32')) → "
            "return np.where(np.isnan(x), x, up.view('float32')).astype(BFLOAT16)"
        ),
    },
)


@exercise.mistake("by its precision alone: no infinities, no subnormal numbers")
def cast(m, x, *, dtype):
    if dtype != BFLOAT16 or not isinstance(x, np.ndarray) or x.dtype != "float32":
        return x
    fraction, exponent = np.frexp(x)
    return np.ldexp(np.round(fraction * 256), exponent - 8).astype("float32")


def reference(x):
    """As the library ml_dtypes rounds, in float32."""
    with np.errstate(all="ignore"):
        return x.astype(ml_dtypes.bfloat16).astype("float32")


def check(yours, x, why=""):
    """The function itself, bit for bit, and without a trace in x."""
    before = x.copy()
    got = yours.cast(np, x, dtype=BFLOAT16)
    expect_that(isinstance(got, np.ndarray | np.generic), "an array of NumPy", got=got)
    expect(str(got.dtype), "float32", given={"x": before}, why="the dtype of what is returned")
    expect(got.shape, before.shape, given={"x": before}, why="the shape of what is returned")
    right = reference(before)
    same = (got == right) & (np.signbit(got) == np.signbit(right)) | np.isnan(got) & np.isnan(right)
    expect_that(np.array_equal(x, before, equal_nan=True), "x was written into", got=x)
    if not same.all():
        k = np.unravel_index(np.argmin(same), same.shape) if same.shape else ()
        expect(float(got[k]), float(right[k]), given={"x": float(before[k])}, why=why, atol=0)
        expect_that(False, "another sign of zero", given={"x": float(before[k])}, got=got[k])


@exercise.example
def the_example(yours):
    """Halfway between two neighbours: the one whose last bit is 0."""
    check(yours, np.array([1 + 1 / 256, 1 + 3 / 256, -1 - 1 / 256], "float32"))


@exercise.example
def a_weight_that_stalls(yours):
    """1.0 under steps of 0.001 and of 0.004: the first is lost, the second arrives."""
    x = np.array([1 - 0.001, 1 - 0.004, 1 + 0.001, 1 + 0.004, 1 + 0.0039], "float32")
    check(yours, x)


@exercise.example
def the_ends_of_the_line(yours):
    """Infinities, NaN, both zeros, the largest and the least numbers."""
    top = np.finfo("float32").max
    x = np.array([np.inf, -np.inf, 0.0, -0.0, top, -top, 3.3895e38, 1e-45, 9.2e-41, -1.4e-40])
    check(yours, x.astype("float32"))
    odd = np.array([0x7F800001, 0xFFFFFFFF, 0x7FC00000, 0x7FFF8000], "uint32").view("float32")
    check(yours, odd, "NaN stays NaN")


@exercise.example
def every_shape(yours):
    """Numbers without axes, empty arrays, large ones, ones that lie backwards or with gaps."""
    x = np.random.default_rng(0).normal(size=(40, 50)).astype("float32")
    for each in (x, x[:, ::-1], x.T, x[::3, 1::2], x[:0], x[0, 0:1].reshape(()), x[0]):
        check(yours, each)


@exercise.example
def all_else_stays(yours):
    """Another dtype to store, another one that is given, and what is no array."""
    x = np.array([1 / 3], "float32")
    for dtype in (np.dtype("float16"), np.dtype("float64"), np.dtype("int64")):
        expect_that(yours.cast(np, x, dtype=dtype) is x, f"x itself, to be stored in {dtype}")
    for other in (np.array([1 / 3]), np.array([7]), "text"):
        expect_that(yours.cast(np, other, dtype=BFLOAT16) is other, "x itself", given={"x": other})


@exercise.property(bits=st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=8))
def any_bits(yours, bits):
    """Any pattern of bits, and its neighbours halfway between two bfloat16."""
    x = np.array(bits, "uint32")
    check(yours, np.concatenate([x, x & 0xFFFF8000 | 0x8000]).view("float32"))


@exercise.example
def in_the_engine(yours):
    """A captured step of an optimizer on a weight of bfloat16, without a master, then with one."""
    for master, expected in ((False, [1.0, 1.0]), (True, [1.0, 0.9921875])):
        net = paddle.nn.Linear(1, 1, bias_attr=False)
        net.weight.set_value([[1.0]])
        sgd = paddle.optimizer.SGD(0.0015, parameters=net.parameters())
        net, sgd = paddle.amp.decorate(net, sgd, "O2", "bfloat16", master_weight=master)

        def step(x, net=net, sgd=sgd):
            net(x).sum().backward()
            sgd.step()
            sgd.clear_grad()

        step, x = paddle.jit.to_static(step), paddle.ones([1, 1], "bfloat16")
        with exercise.plugged(yours):
            found = []
            for _ in range(4):
                step(x)
                found.append(net.weight.item())
        given = {"weight": 1.0, "steps of": 0.0015, "master": master}
        expect([found[0], found[3]], expected, given=given, why="after one step, after four")
