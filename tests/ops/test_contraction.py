"""Contractions from letters alone: value, derivatives, shards, compiled product."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle.engine.core.slots import OPS
from minipaddle.engine.executors.compiler import compiler
from minipaddle.engine.executors.native import Executable
from minipaddle.engine.ops.contraction import Contraction, contract, contraction
from minipaddle.engine.sharding.letters import collective_of
from minipaddle.testing import check_grad

LETTERS = ["mk,nk->mn", "k,k->", "m,n->nm", "bmk,bkn->bmn", "mk,bkn->bnm", "abkc,bdck->cadb"]
SIZES = dict(zip("abcdkmn", (2, 3, 1, 4, 5, 3, 2)))


@pytest.fixture(params=LETTERS)
def operator(request):
    """A contraction as somebody would write it, and its letters."""

    @contraction
    def a_contraction(x, y):
        """A product."""
        return request.param

    yield a_contraction, request.param
    del OPS["a_contraction"]


def inputs(letters: str) -> list:
    rng = np.random.default_rng(0)
    parts = letters.partition("->")[0].split(",")
    return [rng.standard_normal([SIZES[c] for c in part]) for part in parts]


def test_value_and_derivatives(operator):
    op, letters = operator
    x, y = inputs(letters)
    np.testing.assert_allclose(
        op(paddle.to_tensor(x), paddle.to_tensor(y)).numpy(), np.einsum(letters, x, y), rtol=1e-12
    )
    check_grad(op, x, y, order=2)


@pytest.mark.skipif(compiler() is None, reason="no C compiler")
def test_a_program_is_compiled(operator):
    """Nothing is left to NumPy, and what follows the product is fused with it."""
    op, letters = operator
    x, y = (paddle.to_tensor(a.astype("float32")) for a in inputs(letters))
    f = paddle.jit.to_static(lambda x, y: paddle.tanh(op(x, y)), backend="native")
    want = np.tanh(np.einsum(letters, x.numpy(), y.numpy()))
    np.testing.assert_allclose(f(x, y).numpy(), want, rtol=1e-5, atol=1e-6)
    assert not Executable(f.main_program).source.hosted


@given(st.data())
def test_any_letters(data):
    """Against einsum: any order of axes, axes of size 1, in both forms of the product."""
    kinds = data.draw(st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("xyz0")))
    letters = [
        "".join(data.draw(st.permutations([c for c, kind in kinds.items() if kind != lacking])))
        for lacking in "yx0"
    ]
    size = {c: data.draw(st.integers(1, 3)) for c in kinds}
    rng, shapes = np.random.default_rng(0), []
    for part in letters[:2]:
        one = data.draw(st.sets(st.sampled_from([*part, ""])))
        shapes.append([1 if c in one and kinds[c] == "z" else size[c] for c in part])
    x, y = (rng.integers(-3, 4, shape).astype("float64") for shape in shapes)
    full = dict.fromkeys(kinds, 1)
    for part, shape in zip(letters, shapes):
        full.update((c, max(n, full[c])) for c, n in zip(part, shape))
    wide = [np.broadcast_to(a, [full[c] for c in part]) for a, part in zip((x, y), letters)]
    text = f"{letters[0]},{letters[1]}->{letters[2]}"
    for product in (None, multiplied):
        np.testing.assert_array_equal(contract(np, x, y, text, product), np.einsum(text, *wide))


def multiplied(x, y, *, x_perm, y_perm, out_perm):
    """What `product` computes."""
    return np.matmul(x.transpose(x_perm), y.transpose(y_perm)).transpose(out_perm)


@pytest.mark.parametrize("letters", ["mk,kn", "mm,mn->n", "mk,n->mn", "mk,kn->mnj"])
def test_letters_that_say_nothing_are_refused(letters):
    with pytest.raises(ValueError, match="must be"):
        contract(np, np.ones([2, 2]), np.ones([2, 2]), letters)


def test_an_error_names_both_axes():
    @contraction
    def a_contraction(x, weight):
        return "mk,nk->mn"

    try:
        with pytest.raises(
            ValueError, match=r"axis 1 of x \(3\) must equal axis 1 of weight \(4\)"
        ):
            a_contraction(paddle.ones([2, 3]), paddle.ones([2, 4]))
        with pytest.raises(ValueError, match=r"weight float32\[4\] must have 2 axes"):
            a_contraction(paddle.ones([2, 3]), paddle.ones([4]))
    finally:
        del OPS["a_contraction"]


def test_what_is_a_contraction():
    kinds = {name for name, op in OPS.items() if isinstance(op, Contraction)}
    assert kinds == {"matmul", "linear", "summed_outer", "product"}


def test_a_reduction_knows_its_collective():
    """From `combine` alone: one that somebody adds is sharded without a further edit."""
    known = {name: collective_of(op) for name, op in OPS.items() if op.kind == "reduction"}
    assert known == {
        "sum": "sum", "max": "max", "min": "min", "prod": "prod", "all": "min", "any": "max",
    }  # fmt: skip
