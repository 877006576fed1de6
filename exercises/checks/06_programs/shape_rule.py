"""Checks of 06_programs/shape_rule."""

from functools import partial

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.engine.core import dim as dims
from minipaddle.engine.core.record import Spec
from minipaddle.learn import Exercise, expect, expect_that

_LEFT = "left = x.shape if x.ndim > 1 else (1, *x.shape)"
_RIGHT = "right = y.shape if y.ndim > 1 else (*y.shape, 1)"
exercise = Exercise(
    title="What a result will look like, before there is one",
    level="medium",
    minutes=35,
    before=("01_arrays/broadcast_shapes",),
    slots={"ops.matmul.infer": "matmul_spec", "ops.concat.infer": "concat_spec"},
    hints=(
        "Which sizes of x and y must agree, which of them are gone afterwards, and for which do "
        "you already have a rule?",
        "Make a matrix of a vector first: (1, k) on the left, (k, 1) on the right. Take the axis "
        "that was added out of the result at the end.",
        "left = x's shape, with a 1 in front if it is a vector\n"
        "right = y's shape, with a 1 after it if it is a vector\n"
        "left's last and right's second to last must be equal\n"
        "what is before the last two broadcasts\n"
        "then come left's second to last (not for a vector) and right's last (not for a vector)\n"
        "concat: add up the sizes along the axis; every other size must be the first one's",
    ),
    wrong={
        "a vector leaves its extra axis in the result": "if x.ndim > 1: → if True:",
        "a vector on the right taken for a row": "(*y.shape, 1) → (1, *y.shape)",
        "the inner sizes are not compared": "left[-1] != right[-2] → False",
        "the axes in front are those of x alone": (
            "broadcast_shapes(left[:-2], right[:-2]) → left[:-2]"
        ),
        "asking an open size for its number": "x.shape[axis] → int(x.shape[axis])",
        "concat takes the first input's size along the axis": (
            "total + x.shape[axis] → first.shape[axis]"
        ),
        "concat compares the first two axes only": "range(first.ndim) → range(min(2, first.ndim))",
        "concat compares the joined axis too": (
            "d == axis or x.shape[d] == first.shape[d] → x.shape[d] == first.shape[d]"
        ),
        "concat does not count axes": "x.ndim == first.ndim → True",
        "the shape of the transposed product": (
            "shape = (*shape, left[-2]) → shape = (*shape, *right[-1:])",
            "shape = (*shape, right[-1]) → shape = (*shape, left[-2])",
        ),
        "always float32": "Spec(shape, x.dtype) → Spec(shape, Spec((), 'float32').dtype)",
    },
    unkillable={
        f"{_LEFT} → {_LEFT.replace('ndim > 1', 'ndim >= 1')}": "only its last size is asked",
        f"{_LEFT} → {_LEFT.replace('ndim > 1', 'ndim > 0')}": "only its last size is asked",
        f"{_LEFT} → {_LEFT.replace('(1, ', '(2, ')}": "the added axis is dropped again",
        f"{_LEFT} → {_LEFT.replace('(1, ', '(0, ')}": "the added axis is dropped again",
        f"{_RIGHT} → {_RIGHT.replace(', 1)', ', 0)')}": "the added axis is dropped again",
        f"{_RIGHT} → {_RIGHT.replace(', 1)', ', 2)')}": "the added axis is dropped again",
        "first = xs[0] → first = xs[-1]": "all of them must be alike",
        "concat_spec: right only for positive axes": "the task counts them from 0",
    },
)

F32, F64 = np.dtype("float32"), np.dtype("float64")


def open_(name, hint=4):
    return dims.symbol(name, hint)


def spec(*shape, dtype=F32):
    return Spec(shape, dtype)


def asked(rule, *specs, **attrs):
    """What a rule says, as text; what it relies on; ValueError is a refusal."""
    notes = []
    given = {"inputs": [str(s) for s in specs], **attrs}
    try:
        with dims.assuming(note=lambda *n: notes.append(" ".join(map(str, n)))):
            found = dims.match_sizes(partial(rule, **attrs), *specs)
    except ValueError:
        return "refused with ValueError", notes
    expect_that(isinstance(found, Spec), "a Spec", given=given, got=found)
    expect_that(type(found.shape) is tuple, "a shape is a tuple", given=given, got=found.shape)
    return str(found), notes


def agree(rule, expected, *specs, **attrs):
    given = {"inputs": [str(s) for s in specs], **attrs}
    why = f"another answer for {', '.join(given['inputs'])}"
    expect(asked(rule, *specs, **attrs)[0], expected, given=given, why=why)


@exercise.example
def two_matrices(yours):
    """[2, 3] @ [3, 4] is [2, 4]; 3 and 5 do not meet."""
    agree(yours.matmul_spec, "float32[2, 4]", spec(2, 3), spec(3, 4))
    agree(yours.matmul_spec, "refused with ValueError", spec(2, 3), spec(5, 4))
    agree(yours.matmul_spec, "refused with ValueError", spec(2, 3), spec(2, 3))
    agree(yours.matmul_spec, "float64[1, 1]", spec(1, 1, dtype=F64), spec(1, 1, dtype=F64))


@exercise.example
def vectors_are_rows_and_columns(yours):
    """[3] @ [3, 4] is [4], [2, 3] @ [3] is [2], [3] @ [3] is a number."""
    agree(yours.matmul_spec, "float32[4]", spec(3), spec(3, 4))
    agree(yours.matmul_spec, "float32[2]", spec(2, 3), spec(3))
    agree(yours.matmul_spec, "float32[]", spec(3), spec(3))
    agree(yours.matmul_spec, "float32[5, 4]", spec(3), spec(5, 3, 4))
    stacks = spec(2, 1, 3, 1, 2, 1, 4, 5), spec(1, 3, 1, 1, 3, 5, 6)
    agree(yours.matmul_spec, "float32[2, 1, 3, 1, 2, 3, 4, 6]", *stacks)
    agree(yours.matmul_spec, "refused with ValueError", spec(), spec(3))
    agree(yours.matmul_spec, "refused with ValueError", spec(3), spec())


@exercise.example
def one_after_the_other(yours):
    """[2, 3] and [5, 3] make [7, 3] along axis 0; along axis 1 they do not go together."""
    agree(yours.concat_spec, "float32[7, 3]", spec(2, 3), spec(5, 3), axis=0)
    agree(yours.concat_spec, "refused with ValueError", spec(2, 3), spec(5, 3), axis=1)
    agree(yours.concat_spec, "float64[4]", spec(4, dtype=F64), axis=0)
    agree(yours.concat_spec, "float32[1, 9, 2]", *[spec(1, 3, 2)] * 3, axis=1)
    agree(yours.concat_spec, "float32[1, 27, 2]", *[spec(1, 3, 2)] * 9, axis=1)
    for several in ((spec(), spec()), (spec(2, 3), spec(2)), (spec(2), spec(2, 3))):
        agree(yours.concat_spec, "refused with ValueError", *several, axis=0)
    agree(yours.concat_spec, "refused with ValueError", spec(2, 3, 4), spec(2, 3, 5), axis=0)


@exercise.example
def a_refusal_says_what_differs(yours):
    """Sizes that do not meet are named."""
    for rule, specs, attrs in (
        (yours.matmul_spec, (spec(2, 13), spec(17, 4)), {}),
        (yours.concat_spec, (spec(1, 13), spec(1, 17)), {"axis": 0}),
    ):
        try:
            rule(*specs, **attrs)
        except ValueError as error:
            message = str(error)
            expect_that(
                "13" in message and "17" in message, "the message names 13 and 17", got=message
            )


@exercise.example
def open_sizes_go_through(yours):
    """[n, 3] @ [3, 4] is [n, 4], whatever n is; [n, 3] and [2, 3] are [n + 2, 3]."""
    n, k = open_("n"), open_("k", 3)
    agree(yours.matmul_spec, "float32[n, 4]", spec(n, 3), spec(3, 4))
    agree(yours.matmul_spec, "float32[n]", spec(n, 3), spec(3))
    agree(yours.matmul_spec, "float32[n, 2, k]", spec(n, 2, 5), spec(5, k))
    agree(yours.concat_spec, "float32[n + 2, 3]", spec(n, 3), spec(2, 3), axis=0)
    agree(yours.concat_spec, "float32[2*n, k]", spec(n, k), spec(n, k), axis=0)
    for rule, specs, attrs in (
        (yours.matmul_spec, (spec(n, k), spec(k, n)), {}),
        (yours.concat_spec, (spec(n, k), spec(2, k)), {"axis": 0}),
    ):
        notes = asked(rule, *specs, **attrs)[1]
        expect(notes, [], why="nothing needs to be assumed here",
               given=[str(s) for s in specs])  # fmt: skip


@exercise.example
def what_must_be_equal_is_noted(yours):
    """[2, k] @ [3, 4]: k must be 3. It is taken to be, and the program notes it."""
    k = open_("k", 3)
    given = {"inputs": ["float32[2, k]", "float32[3, 4]"], "k was": 3}
    found, notes = asked(yours.matmul_spec, spec(2, k), spec(3, 4))
    expect(found, "float32[2, 4]", given=given)
    expect_that(len(notes) == 1 and "==" in notes[0], "one note: k == 3", given=given, got=notes)
    found, notes = asked(yours.concat_spec, spec(2, k), spec(2, 3), axis=0)
    expect_that(len(notes) == 1 and "==" in notes[0], "one note: k == 3", given=given, got=notes)
    agree(yours.matmul_spec, "refused with ValueError", spec(2, open_("k", 9)), spec(3, 4))


sizes = st.lists(st.sampled_from([0, 1, 2, 2, 3]), max_size=4).map(tuple)


def by_numpy(function, dtype, *args):
    """What NumPy says of arrays of these shapes."""
    try:
        y = function(*args)
    except ValueError:
        return "refused with ValueError"
    return f"{dtype}{list(y.shape)}"


@exercise.property(a=sizes, b=sizes, examples=150)
def as_numpy_multiplies(yours, a, b):
    """NumPy's own product of arrays of these shapes."""
    expected = by_numpy(np.matmul, "float32", np.zeros(a), np.zeros(b))
    agree(yours.matmul_spec, expected, spec(*a), spec(*b))


@exercise.property(
    shape=st.lists(st.integers(0, 3), min_size=1, max_size=3).map(tuple),
    others=st.lists(st.lists(st.integers(0, 2), min_size=3, max_size=3), max_size=3),
    axis=st.integers(0, 2),
    examples=60,
)
def as_numpy_joins(yours, shape, others, axis):
    """NumPy's own concatenation; most of the shapes go together."""
    axis %= len(shape)
    rows = [shape]
    for grow, where, change in others:
        other = list(shape)
        other[axis] += grow
        if change == 2:
            other[where % len(shape)] += 1
        rows.append(tuple(other))
    expected = by_numpy(np.concatenate, "float32", [np.zeros(s) for s in rows], axis)
    agree(yours.concat_spec, expected, *(spec(*s) for s in rows), axis=axis)


class Shortcut(nn.Layer):
    """A network whose last layer sees the input again, beside what was made of it."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(3, 8), nn.Linear(11, 2)

    def forward(self, x):
        return self.last(paddle.concat([self.first(x).tanh(), x], axis=1))


@exercise.example
def a_program_for_every_batch(yours):
    """A traced network whose batch is open, verified with your rules and run for three sizes."""
    paddle.seed(0)
    net = Shortcut()
    with exercise.plugged(yours):
        batch = paddle.static.InputSpec([None, 3], "float32", "x")
        traced = paddle.jit.to_static(net.forward, input_spec=[batch])
        for n in (1, 5, 32):
            x = paddle.randn([n, 3])
            expect(traced(x), net(x), given={"batch": n}, rtol=1e-5, atol=1e-6)
        got = str(traced.main_program)
        expect_that("float32[batch, 11]" in got, "a record of float32[batch, 11]", got=got)


@exercise.example
def attention_learns_with_it(yours):
    """Stacks of products, and a whole training step as a program."""
    with exercise.plugged(yours):
        paddle.seed(0)
        attend = nn.MultiHeadAttention(8, 2)
        adam = paddle.optimizer.Adam(learning_rate=0.02, parameters=attend.parameters())
        x = paddle.randn([4, 5, 8])

        @paddle.jit.to_static
        def step(x):
            loss = F.mse_loss(attend(x), x * 0 + x[:, :1])
            loss.backward()
            adam.step()
            adam.clear_grad()
            return loss

        losses = [step(x).item() for _ in range(30)]
    expect_that(losses[-1] < 0.5 * losses[0], "half the loss after 30 steps", got=losses[::10])
