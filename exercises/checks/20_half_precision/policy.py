"""Checks of 20_half_precision/policy."""

from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle.engine.core import dtype as dt
from minipaddle.learn import Exercise, expect

SINGLE, HALF, BRAIN = dt.float32.numpy, dt.float16.numpy, dt.bfloat16.numpy
DOUBLE, WHOLE = dt.float64.numpy, dt.int64.numpy

exercise = Exercise(
    title="The cast policy: where an operator computes",
    level="easy",
    minutes=10,
    slots={"amp.computing_dtype": "computing_dtype"},
    hints=(
        "A product in float16 whose result is added to a bias in float32: where should the sum be "
        "computed so that no bit of the bias is lost?",
        "The kind decides for white and black. For the others one question is left: is there a "
        "float32 among `given`, and may it count?",
        "white: low\nblack: SINGLE\nother: SINGLE if promote and SINGLE is given, else low",
    ),
    wrong={
        "black and white exchanged": (
            "kind == 'white' → kind == 'no'", "kind == 'black' → kind == 'white'",
        ),
        "products promote": "kind == 'white' → kind == 'white' and SINGLE not in given",
        "black operators in what they are given": "kind == 'black' → kind == 'no'",
        "always promote": "promote and SINGLE in given → SINGLE in given",
        "never promote": "promote and SINGLE in given → False",
        "only if all are in float32": (
            "SINGLE in given → all(x == SINGLE for x in given)"
        ),
        "anything that is not low promotes": "SINGLE in given → any(x != low for x in given)",
        "others always in float32": "promote and SINGLE in given → promote",
        "always float16": "return low → return dt.float16.numpy",
        "only the first tensor counts": "SINGLE in given → given[:1] == [SINGLE]",
    },
)  # fmt: skip


def ask(yours, kind, given, low=BRAIN, promote=True):
    return yours.computing_dtype(kind, given, low, promote)


def name(dtype):
    return dt.public(dtype).name


@exercise.example
def the_example(yours):
    """An operator in no list computes in float32 if one of its tensors is there."""
    given = {"kind": "other", "given": "bfloat16, float32", "promote": True}
    expect(name(ask(yours, "other", [BRAIN, SINGLE])), "float32", given=given)
    expect(name(ask(yours, "other", [SINGLE, BRAIN])), "float32", given=given)
    given = {"kind": "other", "given": "bfloat16", "promote": True}
    expect(name(ask(yours, "other", [BRAIN])), "bfloat16", given=given)


every = st.sampled_from([SINGLE, HALF, BRAIN, DOUBLE, WHOLE])


@exercise.property(
    kind=st.sampled_from(["white", "black", "other"]),
    given=st.lists(every, max_size=9),
    low=st.sampled_from([HALF, BRAIN]),
    promote=st.booleans(),
    examples=60,
)
def every_case(yours, kind, given, low, promote):
    """All kinds, any tensors, both formats of sixteen bits."""
    wide = kind == "black" or (kind == "other" and promote and given.count(SINGLE) > 0)
    names = ", ".join(map(name, given))
    told = {"kind": kind, "given": names, "low": name(low), "promote": promote}
    got = ask(yours, kind, list(given), low, promote)
    expect(name(got), "float32" if wide else name(low), given=told)


@exercise.example
def in_the_engine(yours):
    """A block of mixed precision: a product, a sum, an addition of both."""
    x, b = paddle.ones([2, 2]), paddle.ones([2])
    with exercise.plugged(yours):
        for level, expected in (
            ("O1", ["float16", "float32", "float32", "float16"]),
            ("O2", ["float16", "float16", "float32", "float16"]),
        ):
            with paddle.amp.auto_cast(dtype="float16", level=level):
                y = x @ x
                found = [y, F.softmax(y), y + b, y + y]
            told = {"level": level, "of": "x @ x, softmax(y), y + b, y + y"}
            expect([name(t.dtype) for t in found], expected, given=told)
        with paddle.amp.auto_cast(dtype="float16", level="O2", use_promote=False):
            y = x @ x + b
        expect(name(y.dtype), "float16", given={"level": "O2", "use_promote": False})
