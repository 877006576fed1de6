"""Transposes travel, cancel, and end in what products read and write."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle.engine.passes.decompose import decompose
from minipaddle.engine.passes.manager import optimized
from minipaddle.passes.canonicalize_matmul import canonicalize_matmul
from minipaddle.passes.permuted_views import PermutedView, reshape_view
from minipaddle.passes.sinking import sinking
from tests.passes.programs import body, cases, program_of, same_results


def after(f, *shapes):
    """The program of f after the two passes, which give the same as before."""
    program = program_of(f, *shapes)
    found = sinking(canonicalize_matmul(decompose(program)))
    same_results(program, found)
    return found


def names(program):
    return [r.op.name for r in program.records]


def test_a_product_reads_and_writes_in_any_order():
    found = after(lambda x, y: paddle.matmul(x.t(), y.t()).t(), (3, 2), (4, 3))
    assert body(found) == (
        "v1 = product(x, y, x_perm=(1, 0,), y_perm=(1, 0,), out_perm=(1, 0,)) : float32[4, 2]\n"
        "return v1"
    )


def test_attention_needs_no_transpose():
    def attention(x, w):
        q, k, v = (
            t.reshape([2, 5, 3, 4]).transpose([0, 2, 1, 3]) for t in paddle.matmul(x, w).split(3, 2)
        )
        p = F.softmax(q @ k.transpose([0, 1, 3, 2]) * 0.5)
        return (p @ v).transpose([0, 2, 1, 3]).reshape([2, 5, 12])

    found = after(attention, (2, 5, 6), (6, 36))
    assert "transpose" not in names(found)
    scores = next(r for r in found.records if r.shape == (2, 3, 5, 5))
    assert scores.attrs == {
        "x_perm": (0, 2, 1, 3), "y_perm": (0, 2, 3, 1), "out_perm": (0, 1, 2, 3),
    }  # fmt: skip


def test_a_weight_shared_with_the_embedding():
    def step(x, table, ids):
        table.stop_gradient = False
        y = F.embedding(ids.astype("int64").abs(), table) * x
        loss = paddle.matmul(y, table, transpose_y=True).sum()
        return paddle.grad([loss], [table])

    found = after(step, (4, 5), (7, 5), (4,))
    assert "transpose" not in names(found)


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize("model", ["models_sequence.GPT", "models_sequence.Translator"])
def test_transformers_need_no_transpose(model):
    for case in cases(f"{model}, step"):
        assert "transpose" in names(case.program)
        assert "transpose" not in names(optimized(case.program, until="sinking").program)


PAIR = ([0, 2, 3, 1], [0, 3, 1, 2])
CHAINS = {
    "elementwise": lambda x: (x.exp() * 2.0 + x).tanh(),
    "a bias": lambda x: x + paddle.arange(6, dtype="float32"),
    "a bias of the last two axes": lambda x: x * paddle.arange(30, dtype="float32").reshape([5, 6]),
    "reductions": lambda x: x - x.mean(axis=[1, 2], keepdim=True) / x.max(axis=3, keepdim=True),
    "another value, seen alike": lambda x: x + x.exp(),
    "slices": lambda x: x[:, 1:3] * x[:, 2:4],
    "slices that drop an axis": lambda x: x[:, 1].reshape([2, 1, 5, 6]) + x,
    "padding": lambda x: F.pad(x, [1, 2, 0, 1, 1, 0, 0, 0], mode="constant", value=1.5),
    "concat": lambda x: paddle.concat([x, x.exp()], axis=1)[:, :4],
    "split": lambda x: paddle.add(*paddle.split(x, 2, axis=1)),
    "unstack": lambda x: paddle.unstack(x, axis=3)[2].reshape([2, 4, 5, 1]),
    "broadcast": lambda x: x.mean(axis=[2, 3], keepdim=True).expand([2, 4, 5, 6]),
    "broadcast of a view": lambda x: (
        x.reshape([2, 4, 1, 5, 6]).expand([2, 4, 3, 5, 6]).exp().sum(axis=2)
    ),
    "reshapes that cut axes": lambda x: x.reshape([1, 2, 2, 2, 5, 2, 3]).reshape([2, 4, 5, 6]),
    "casts": lambda x: x.astype("float64").astype("float32"),
    "copies": lambda x: x.clone(),
    "constants": lambda x: paddle.where(x > 0, x, paddle.full([2, 4, 5, 6], 3.0)),
}


@pytest.mark.parametrize("name", CHAINS)
def test_two_transposes_cancel_around(name):
    f = CHAINS[name]
    last = [0, 2, 3, 1]

    def whole(x):
        y = f(x.transpose([0, 3, 1, 2]))
        return y.transpose(last if y.ndim == 4 else range(y.ndim))

    found = after(whole, (2, 5, 6, 4))
    moved = [r for r in found.records if r.op.name == "transpose" and r.spec.size > 30]
    assert not moved, str(found)


def test_gradients_of_slices_and_pieces():
    def f(x):
        x.stop_gradient = False
        y = x.transpose([0, 3, 1, 2])
        a, b = paddle.split(y, 2, axis=1)
        loss = (a * b.exp())[:, :, 1:3].sum() + y[:, 1].sum()
        return paddle.grad([loss], [x])

    assert names(after(f, (2, 5, 6, 4))).count("transpose") <= 2


@pytest.mark.parametrize(
    "index", [np.s_[:, 1:3], np.s_[:, 2], np.s_[1], np.s_[:, None, 1:2]], ids=str
)
def test_the_adjoint_of_a_slice_of_a_view(index):
    def f(x, w):
        x.stop_gradient = False
        y = x[index]
        y = y.transpose([*range(y.ndim)][::-1])
        return paddle.grad([(y * w.exp()).sum()], [x])[0].exp().transpose([0, 2, 3, 1])

    shape = np.zeros((2, 4, 5, 6))[index].T.shape
    after(f, (2, 4, 5, 6), shape)


def test_moments_of_an_optimizer_stay_in_order():
    """The gradient is transposed, not the three states it meets."""

    w, m = paddle.ones([3, 4]), paddle.ones([3, 4])

    def f(x):
        g = x.transpose([1, 0])
        m.set_value(m * 0.9 + g * 0.1)
        w.set_value(w - m * 0.01)
        return w.sum()

    found = after(f, (4, 3))
    assert names(found).count("transpose") == 1


def test_axes_of_size_one_are_reshaped():
    found = after(lambda x: x.transpose([0, 2, 3, 1]), (5, 4, 1, 1))
    assert names(found) == ["reshape"]


def test_a_reshape_that_mixes_axes_needs_the_order():
    found = after(lambda x: x.t().reshape([6]).exp(), (2, 3))
    assert names(found) == ["transpose", "reshape", "exp"]


def test_in_a_branch():
    def f(x):
        return paddle.static.nn.cond(x.sum() > 0, lambda: x.t().exp().t(), lambda: x * 2.0)

    assert "transpose" not in str(after(f, (2, 3)))


perms = st.permutations(range(4))
steps = st.lists(
    st.one_of(
        st.tuples(st.just("transpose"), perms),
        st.tuples(st.just("reshape"), st.permutations([2, 3, 4, 1, 2])),
        st.tuples(st.just("exp"), st.none()),
        st.tuples(st.just("sum"), st.integers(0, 3)),
        st.tuples(st.just("twice"), perms),
    ),
    max_size=7,
)


@pytest.mark.sweep
@settings(derandomize=True, max_examples=120, deadline=None)
@given(steps)
def test_any_chain(chain):
    def f(x):
        for what, how in chain:
            if what == "transpose":
                x = x.transpose([*[d for d in how if d < x.ndim], *range(4, x.ndim)])
            elif what == "reshape" and x.size == 48:
                x = x.reshape(how)
            elif what == "exp":
                x = (x * 0.25).exp()
            elif what == "sum" and x.ndim > how:
                x = x - x.sum(axis=how, keepdim=True) * 0.1
            elif what == "twice":
                y = x.transpose([*[d for d in how if d < x.ndim], *range(4, x.ndim)])
                x = x + y if x.shape == y.shape else y
        return x, x.reshape([48])

    program = program_of(f, (2, 4, 3, 2))
    same_results(program, sinking(program), rtol=1e-4)


@pytest.mark.sweep
@settings(derandomize=True, max_examples=200, deadline=None)
@given(perms, st.permutations([2, 3, 2, 2, 1, 1]))
def test_a_reshape_of_a_view(perm, shape):
    """Where `reshape_view` has an answer it is the right one."""
    base = np.arange(24).reshape(4, 1, 3, 2)
    record = program_of(lambda x: x, base.shape).inputs[0]
    found = reshape_view(PermutedView(record, tuple(perm)), tuple(shape))
    if found is not None:
        new, order = found
        expected = base.transpose(perm).reshape(shape)
        np.testing.assert_array_equal(base.reshape(new).transpose(order), expected)


def test_open_sizes_are_left_alone():
    from minipaddle.engine.core.dim import symbol
    from minipaddle.engine.core.record import Spec

    n = symbol("n", 5)
    program = program_of(lambda x: x.t().exp().t(), Spec((n, 3), np.dtype("f4")))
    assert sinking(program) is program
