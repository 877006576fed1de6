"""Checks of 01_arrays/promotion."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle.engine.core.dtype import NAMES
from minipaddle.engine.core.record import Spec
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="The dtype of x + y",
    level="medium",
    minutes=35,
    slots={"spec.promote": "promote"},
    hints=(
        "There are three sorts of input: tensors with axes, 0-D tensors, Python numbers. Which "
        "sort may decide, and when does it leave the decision to the next?",
        "Keep the dtypes of the three sorts in three sets. The highest category is a max over all "
        "of them; functools.reduce(wider, dtypes) folds several dtypes into one.",
        "refuse tensors with axes of several dtypes, unless all of these are in FLOATS\n"
        "highest = the highest category of any input\n"
        "for the dtypes with axes, then those of 0-D tensors, then those of numbers:\n"
        "    keep those of the highest category\n"
        "    if there are any, they decide: return the widest of them",
    ),
    wrong={
        "NumPy's rule, under which everything mixes": (
            "len(with_axes) > 1 and (not with_axes <= FLOATS) → False"
        ),
        "refusing two floating dtypes": (
            "len(with_axes) > 1 and (not with_axes <= FLOATS) → len(with_axes) > 1"
        ),
        "letting a 0-D tensor widen the others": (
            "[with_axes, without_axes, numbers] → [with_axes | without_axes, numbers]"
        ),
        "letting a Python number widen a tensor": (
            "[with_axes, without_axes, numbers] → [with_axes | numbers, without_axes]"
        ),
        "keeping whole numbers whole beside a float": (
            "[dtype for dtype in tier if category(dtype) == highest] → [dtype for dtype in tier]"
        ),
        "asking numbers before 0-D tensors": (
            "[with_axes, without_axes, numbers] → [with_axes, numbers, without_axes]"
        ),
        "taking the first dtype instead of the widest": (
            "reduce(wider, leading) → sorted(leading, key=str)[0]"
        ),
        "forgetting the default dtype": "default() if dtype in FLOATS else dtype → dtype",
        "taking bfloat16 for a whole number": "category(): dtype in FLOATS → dtype.kind == 'f'",
    },
)  # fmt: skip

ORDER = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
         "float64"]  # fmt: skip
CODES = ["b", "u8", "i8", "i16", "i32", "i64", "f16", "bf", "f32", "f64"]
SHORT = dict(zip(CODES, ORDER, strict=True))


def table(text):
    """A table of short names as {(row, column): name}; `.` is a refusal."""
    rows = [line.split() for line in text.strip().splitlines()]
    return {
        (a, b): SHORT.get(cell, "refused with TypeError")
        for a, row in zip(ORDER, rows, strict=True)
        for b, cell in zip(ORDER, row, strict=True)
    }


# Paddle 3.3.1, measured: x + y for every pair of dtypes, rows x, columns y.
BOTH_WITH_AXES = table("""
    b   .   .   .   .   .   .   .   .   .
    .   u8  .   .   .   .   .   .   .   .
    .   .   i8  .   .   .   .   .   .   .
    .   .   .   i16 .   .   .   .   .   .
    .   .   .   .   i32 .   .   .   .   .
    .   .   .   .   .   i64 .   .   .   .
    .   .   .   .   .   .   f16 f32 f32 f64
    .   .   .   .   .   .   f32 bf  f32 f64
    .   .   .   .   .   .   f32 f32 f32 f64
    .   .   .   .   .   .   f64 f64 f64 f64
""")
WITH_AXES_AND_0D = table("""
    b   u8  i8  i16 i32 i64 f16 bf  f32 f64
    u8  u8  u8  u8  u8  u8  f16 bf  f32 f64
    i8  i8  i8  i8  i8  i8  f16 bf  f32 f64
    i16 i16 i16 i16 i16 i16 f16 bf  f32 f64
    i32 i32 i32 i32 i32 i32 f16 bf  f32 f64
    i64 i64 i64 i64 i64 i64 f16 bf  f32 f64
    f16 f16 f16 f16 f16 f16 f16 f16 f16 f16
    bf  bf  bf  bf  bf  bf  bf  bf  bf  bf
    f32 f32 f32 f32 f32 f32 f32 f32 f32 f32
    f64 f64 f64 f64 f64 f64 f64 f64 f64 f64
""")
BOTH_0D = table("""
    b   u8  i8  i16 i32 i64 f16 bf  f32 f64
    u8  u8  i16 i16 i32 i64 f16 bf  f32 f64
    i8  i16 i8  i16 i32 i64 f16 bf  f32 f64
    i16 i16 i16 i16 i32 i64 f16 bf  f32 f64
    i32 i32 i32 i32 i32 i64 f16 bf  f32 f64
    i64 i64 i64 i64 i64 i64 f16 bf  f32 f64
    f16 f16 f16 f16 f16 f16 f16 f32 f32 f64
    bf  bf  bf  bf  bf  bf  f32 bf  f32 f64
    f32 f32 f32 f32 f32 f32 f32 f32 f32 f64
    f64 f64 f64 f64 f64 f64 f64 f64 f64 f64
""")
WITH_NUMBER = {
    True: dict(zip(ORDER, ORDER, strict=True)),
    2: dict(zip(ORDER, ["int64", *ORDER[1:]], strict=True)),
    2.5: dict(zip(ORDER, ["float32"] * 6 + ORDER[6:], strict=True)),
}


def tensor(dtype, *shape):
    """What is known of a tensor before it exists: a shape and a dtype."""
    return Spec(shape, NAMES[dtype].numpy)


def says(yours, *inputs):
    """The dtype's name, or that the inputs are refused."""
    try:
        got = yours.promote("add", list(inputs))
    except TypeError:
        return "refused with TypeError"
    expect_that(isinstance(got, np.dtype), "a NumPy dtype", given={"inputs": inputs}, got=got)
    return got.name


def agree(yours, expected, *inputs):
    listed = ", ".join(map(str, inputs))
    why = f"add({listed}) has another dtype"
    expect(says(yours, *inputs), expected, given={"inputs": listed}, why=why)


@exercise.example
def three_categories(yours):
    """Booleans, whole numbers, floating ones."""
    ranks = ["bool", "uint8", "int64", "float16", "bfloat16", "float64"]
    got = [yours.category(NAMES[name].numpy) for name in ranks]
    expect(got, [0, 1, 1, 2, 2, 2], given={"dtypes": ranks})


@exercise.example
def floats_meet_in_the_wider(yours):
    """float16 holds less than float32; neither half holds the other."""
    agree(yours, "float32", tensor("float16", 2), tensor("float32", 2))
    agree(yours, "float32", tensor("float16", 2), tensor("bfloat16", 2))
    agree(yours, "float64", *(tensor(kind, 2) for kind in ORDER[6:] * 2))


@exercise.example
def a_number_lifts_but_never_widens(yours):
    """A Python number beside a tensor of every dtype, in both orders."""
    for number, row in WITH_NUMBER.items():
        for name, expected in row.items():
            agree(yours, expected, tensor(name, 2), number)
            agree(yours, expected, number, tensor(name))


@exercise.example
def a_refusal_says_what_was_mixed(yours):
    """int64 with float32: Paddle wants you to say which one you meant."""
    inputs = [tensor("int64", 2), tensor("float32", 2)]
    agree(yours, "refused with TypeError", *inputs)
    try:
        yours.promote("hypot", inputs)
    except TypeError as error:
        text = str(error)
        named = all(word in text for word in ("hypot", "int64", "float32"))
        expect_that(named, "the message names the operator and both dtypes", got=text)


@exercise.example
def the_whole_table(yours):
    """Every pair of dtypes, as Paddle itself answers."""
    for (a, b), expected in BOTH_WITH_AXES.items():
        agree(yours, expected, tensor(a, 2), tensor(b, 2, 2))
        agree(yours, WITH_AXES_AND_0D[a, b], tensor(a, 2), tensor(b))
        agree(yours, WITH_AXES_AND_0D[a, b], tensor(b), tensor(a, 1))
        agree(yours, BOTH_0D[a, b], tensor(a), tensor(b))


@exercise.example
def numbers_alone(yours):
    """With no tensor in sight a float is what the user has set."""
    agree(yours, "int64", True, 2)
    agree(yours, "bool", True, False)
    agree(yours, "float32", 2, 2.5)
    before = paddle.get_default_dtype()
    paddle.set_default_dtype("float64")
    try:
        agree(yours, "float64", 2.5, 2)
        agree(yours, "float32", tensor("int64", 2), 2.5)
    finally:
        paddle.set_default_dtype(before)


names = st.sampled_from(ORDER)


@exercise.property(a=names, b=names, c=names, number=st.sampled_from([True, 2, 2.5]), examples=60)
def three_and_a_number(yours, a, b, c, number):
    """Of three tensors and a number, the order in which they are given makes no difference."""
    inputs = [tensor(a, 2), tensor(b), tensor(c), number]
    zero_d = BOTH_0D[b, c]
    expected = WITH_NUMBER[number][WITH_AXES_AND_0D[a, zero_d]]
    agree(yours, expected, *inputs)
    agree(yours, expected, *reversed(inputs))


@exercise.example
def the_engine_computes_with_it(yours):
    """Real tensors: pixels counted in uint8, divided by a number, weighed in float64."""
    with exercise.plugged(yours):
        pixels = paddle.to_tensor([[0, 4], [8, 16]], dtype="uint8")
        bright = pixels / 16.0
        expect(str(bright.dtype), "paddle.float32", given={"x": pixels, "y": 16.0})
        expect(bright, [[0, 0.25], [0.5, 1]])
        weight = paddle.to_tensor([2.0, 4.0], dtype="float64", stop_gradient=False)
        scale = paddle.to_tensor(3.0, dtype="float64", stop_gradient=False)
        y = bright * weight
        expect(str(y.dtype), "paddle.float64", given={"x": bright, "y": weight})
        z = bright * scale
        expect(str(z.dtype), "paddle.float32", given={"x": bright, "y": scale})
        (y.sum() + z.sum()).backward()
    expect(weight.grad, [0.5, 1.25], why="the gradient of the weight")
    expect(scale.grad, 1.75, why="the gradient of the scale")
