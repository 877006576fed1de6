"""Checks of 12_fusion/online_softmax."""

from math import exp, inf, nan

import numpy as np
from hypothesis import strategies as st
from scipy import special

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle.engine.executors.compiler import compiler
from minipaddle.learn import Exercise, expect

exercise = Exercise(
    title="The online softmax: a row, block by block",
    level="medium",
    minutes=30,
    before=("12_fusion/rows",),
    slots={"online_softmax.fold": "fold", "online_softmax.add": "add"},
    hints=(
        "A sum of exp(x - 1) is to become a sum of exp(x - 3). By what is each term multiplied?",
        "exp(score - before) · exp(before - shift) = exp(score - shift). If before is -inf and the "
        "shift is a number, exp gives the 0 that is wanted.",
        "largest = the maximum of both\n"
        "shift = 0 where largest is -inf, else largest\n"
        "factor = exp(before - shift)\n"
        "add: total times factor, and the part",
    ),
    wrong={
        "the largest of the block": "m.maximum(before, block) → block",
        "the largest so far": "m.maximum(before, block) → before",
        "the smallest": "m.maximum(before, block) → m.minimum(before, block)",
        "minus infinity subtracted": "m.where(largest == -inf, 0.0, largest) → largest",
        "measured from zero": (
            "m.where(largest == -inf, 0.0, largest) → m.where(True, 0.0, largest)"
        ),
        "measured from the block": (
            "m.where(largest == -inf, 0.0, largest) → m.where(block == -inf, 0.0, block)"
        ),
        "sums that never shrink": "m.exp(before - shift) → m.exp(shift - shift)",
        "sums that grow": "m.exp(before - shift) → m.exp(shift - before)",
        "a factor of the block": "m.exp(before - shift) → m.exp(block - shift)",
        "the earlier blocks forgotten": "total * factor + part → part",
        "no factor": "total * factor + part → total + part",
        "a factor of the part": "total * factor + part → total + factor * part",
        "the part shrunk, too": "total * factor + part → (total + part) * factor",
    },
)  # fmt: skip


@exercise.example
def two_blocks(yours):
    """A larger score, a smaller one, blocks of which all is hidden, and what is no number."""
    for before, block, expected in (
        (1.0, 3.0, (3.0, 3.0, exp(-2))), (3.0, 1.0, (3.0, 3.0, 1.0)), (2.0, 2.0, (2.0, 2.0, 1.0)),
        (-inf, 2.0, (2.0, 2.0, 0.0)), (2.0, -inf, (2.0, 2.0, 1.0)), (-inf, -inf, (-inf, 0.0, 0.0)),
        (-900.0, 900.0, (900.0, 900.0, 0.0)), (nan, 1.0, (nan, nan, nan)),
        (1.0, nan, (nan, nan, nan)),
    ):  # fmt: skip
        with np.errstate(all="ignore"):
            got = yours.fold(np, np.float64(before), np.float64(block))
        given = {"before": before, "block": block}
        for a, b, why in zip(got, expected, ("largest", "shift", "factor"), strict=True):
            expect(a, b, given=given, rtol=1e-12, why=why)


@exercise.example
def sums(yours):
    """The old sum times the factor, and the part."""
    for total, factor, part, expected in ((2.0, 0.5, 3.0, 4.0), (7.0, 0.0, 3.0, 3.0)):
        got = yours.add(total, factor, part)
        expect(got, expected, given={"total": total, "factor": factor, "part": part})


@exercise.example
def arrays(yours):
    """Many rows, none, every other one; in float32, which stays; and what is given stays, too."""
    many = np.random.default_rng(1).normal(size=(3, 300)).astype("f4")
    for x, y, z in (many, many[:, :0], many[:, 9::-2], many[:, ::7]):
        given = {"before": x, "block": y}
        kept = x.copy(), y.copy(), z.copy()
        largest = np.maximum(x, y)
        found = {"largest, shift, factor": (largest, largest, np.exp(x - largest)),
                 "a sum": (x * y + z,)}  # fmt: skip
        for what, got in zip(found, (yours.fold(np, x, y), (yours.add(x, y, z),)), strict=True):
            for a, b in zip(got, found[what], strict=True):
                expect(np.asarray(a).dtype, np.dtype("f4"), given=given, why=f"dtype of {what}")
                expect(a, b, given=given, rtol=1e-5, why=what)
        expect(np.array([x, y, z]), np.array(kept), given=given, why="what was given")
    got = yours.add(np.array([inf, 1.0]), np.array([1.0, 2.0]), np.array([1.0, -inf]))
    expect(got, np.array([inf, -inf]), given="infinite sums")
    got = yours.fold(np, np.array([-inf, 1.0]), np.array([2.0, inf]))
    expect(np.array(got[0]), np.array([2.0, inf]), given="infinite scores", why="the largest")


def attended(yours, scores, values, width):
    """Rows of softmax(scores) @ values, `width` columns at a time."""
    top, total = np.full(len(scores), -inf), np.zeros(len(scores))
    result = np.zeros((len(scores), values.shape[1]))
    for k in range(0, len(values), width):
        block = scores[:, k : k + width]
        top, shift, factor = yours.fold(np, top, block.max(axis=1))
        weights = np.exp(block - shift[:, None])
        total = yours.add(total, factor, weights.sum(axis=1))
        result = yours.add(result, factor[:, None], weights @ values[k : k + width])
    return result / total[:, None]


@exercise.property(rows=st.integers(1, 4), columns=st.integers(1, 20), width=st.integers(1, 8),
                   hidden=st.sampled_from((0.0, 0.7)), seed=st.integers(0, 99))  # fmt: skip
def as_scipy_says(yours, rows, columns, width, hidden, seed):
    """Rows in blocks, against SciPy's softmax of whole rows; large scores, hidden columns."""
    rng = np.random.default_rng(seed)
    scores, values = rng.normal(size=(rows, columns)) * 300, rng.normal(size=(columns, 3))
    scores[rng.random(scores.shape) < hidden] = -inf
    scores[:, -1] = 1.0  # no row is hidden as a whole
    with np.errstate(all="ignore"):
        got = attended(yours, scores, values, width)
    given = {"scores": scores, "values": values, "columns of a block": width}
    expect(got, special.softmax(scores, axis=1) @ values, given=given, rtol=1e-9, atol=1e-12)


@exercise.example
def in_the_kernel(yours):
    """Attention compiled with your formulas: two blocks of columns, and half of them hidden."""
    if compiler() is None:
        return
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal(s).astype("f4") for s in ((16, 4), (900, 4), (900, 4)))
    mask = np.where(np.arange(900) < np.arange(16)[:, None] * 50, -inf, 0).astype("f4")

    def attention(q, k, v, mask):
        return F.softmax(paddle.matmul(q * 9.0, k, transpose_y=True) + mask) @ v

    with exercise.plugged(yours):
        made = paddle.jit.to_static(attention, backend="native")
        got = made(*map(paddle.to_tensor, (q, k, v, mask))).numpy()
    expected = special.softmax((q * 9) @ k.T + mask, axis=1) @ v
    expect(got, expected, given={"q, k, v": "float32[16, 4], [900, 4], [900, 4]"},
           rtol=1e-3, atol=1e-4)  # fmt: skip
