"""Chains of products in C: against torch and the interpreter, and the memory they need."""

import numpy as np
import pytest
import torch

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle.engine.core.record import Spec
from minipaddle.engine.executors import compiler as c
from minipaddle.engine.executors.native import Executable
from tests.passes.programs import program_of, results
from tests.passes.test_back_to_back_gemm import FORMS, HEADS, attention, chains

pytestmark = pytest.mark.skipif(c.compiler() is None, reason="no C compiler: install gcc or clang")


def arrays_for(program, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(r.shape).astype(r.dtype) for r in program.inputs]


def run(made: Executable, program, arrays) -> list:
    return [np.array(y) for y in made(program, [a.copy() for a in arrays])]


@pytest.mark.parametrize("form", FORMS)
def test_as_the_interpreter_has_it(form):
    program = program_of(FORMS[form][0], *FORMS[form][1])
    made, arrays = Executable(program), arrays_for(program)
    assert chains(made.program) == 1
    for a, b in zip(results(program, arrays), run(made, program, arrays), strict=True):
        np.testing.assert_allclose(b, a, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape", [(1, 2, 70, 33), (3, 5, 129, 16), (2, 1, 8, 3)])
def test_as_torch_has_it(shape, causal):
    """Also where rows are no whole strips, and columns no whole vectors."""
    batch, heads, tokens, width = shape
    spec = batch, tokens, heads, width
    program = program_of(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal), *[spec] * 3
    )
    made, arrays = Executable(program), arrays_for(program)
    assert chains(made.program) == 1
    q, k, v = (torch.tensor(a).transpose(1, 2) for a in arrays)
    wanted = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    (found,) = run(made, program, arrays)
    np.testing.assert_allclose(found, wanted.transpose(1, 2), rtol=2e-5, atol=2e-5)


def test_rows_without_any_column_are_nan_and_others_are_not():
    """As the formula has it: softmax of nothing but -inf."""

    def masked(q, k, v, mask):
        return F.softmax(q @ k.transpose([0, 1, 3, 2]) + mask, -1) @ v

    program = program_of(masked, *[HEADS] * 3, (20, 20))
    made, arrays = Executable(program), arrays_for(program)
    assert chains(made.program) == 1
    arrays[3][:] = np.where(np.tri(20, k=-1), 0, -np.inf)
    arrays[2][0, 0, 3, 0] = np.nan  # in every row: nothing times NaN is NaN
    (found,), (wanted,) = run(made, program, arrays), results(program, arrays)
    assert np.isnan(found[:, :, 0]).all()
    assert np.isnan(found[0, 0, :, 0]).all()
    assert not np.isnan(found[1, :, 1:]).any()
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)


def causal(keys: int, dtype="bool"):
    """Which keys the last query rows see: each one more."""
    seen = np.tri(ROWS, keys, keys - ROWS, dtype=bool)
    return seen if dtype == "bool" else np.where(seen, 0, -np.inf).astype(dtype)


ROWS = 41
INF = float("inf")
MASKED = {
    "a boolean mask": (lambda s, m: paddle.where(m, s, -INF), causal(150)),
    "an added mask": (lambda s, m: s + m, causal(130, "float32")),
    "texts of several lengths": (
        lambda s, m: paddle.where(m, -INF, s),
        np.arange(200) >= np.array([7, 160, 200]).reshape(3, 1, 1, 1),
    ),
    "a row without any column": (
        lambda s, m: paddle.where(m, s, -INF),
        causal(140) & (np.arange(ROWS) != 33)[:, None],
    ),
    "long rows": (lambda s, m: s + m, causal(4300, "float32")),
    "a mask as large as the scores": (
        lambda s, m: s + m,
        np.tile(causal(70, "float32"), (1, 2, 1, 1)),
    ),
}


@pytest.mark.parametrize("form", MASKED)
def test_masks(form):
    """What a mask hides is left out; what remains is as the formula has it."""
    hide, mask = MASKED[form]
    batch, keys = mask.shape[0] if mask.ndim == 4 else 1, mask.shape[-1]

    def masked(q, k, v, m):
        return F.softmax(hide(q @ k.transpose([0, 1, 3, 2]), m), -1) @ v

    left, right = (batch, 2, ROWS, 8), (batch, 2, keys, 8)
    program = program_of(masked, left, right, right, Spec(mask.shape, mask.dtype))
    arrays = [*arrays_for(program)[:3], mask]
    made = Executable(program)
    assert "columns" in made.source.own
    (found,), (wanted,) = run(made, program, arrays), results(program, arrays)
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)


def test_what_is_hidden_is_not_looked_at():
    """Not even whether it is a number: values times a weight of 0, scores that -inf is added to."""
    program = program_of(
        lambda q, k, v, m: F.softmax(q @ k.T + m) @ v, (9, 4), (160, 4), (160, 4), (160,)
    )
    q, k, v, m = arrays = arrays_for(program)
    k[130], v[150], m[:] = np.nan, np.inf, np.where(np.arange(160) < 100, m, -np.inf)
    (found,) = run(Executable(program), program, arrays)
    (wanted,) = results(program, [q, np.nan_to_num(k), np.nan_to_num(v), m])
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)


def test_long_rows_and_strips_of_few():
    """A sum of more than one go, and what a thread keeps on its stack has an end."""

    def weighted(q, k, v):
        weights = F.sigmoid(q @ k.T)
        return weights / weights.sum(-1, keepdim=True) @ v

    program = program_of(weighted, (21, 4), (5000, 4), (5000, 6))
    made, arrays = Executable(program), arrays_for(program)
    assert "strip_0[40000]" in made.source.own
    (found,), (wanted,) = run(made, program, arrays), results(program, arrays)
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("tokens", [256, 1024])
def test_memory_grows_with_the_tokens_not_with_their_square(tokens):
    program = program_of(attention, *[(1, 4, tokens, 32)] * 3)
    how = {"recompute": False, "strip_products": False}
    chain, apart = (Executable(program, how | {"back_to_back_gemm": on}) for on in (True, False))
    assert apart.plan.size >= 4 * tokens**2 * 4
    assert chain.plan.size <= 3 * (4 * tokens * 32) * 4
    assert "back_to_back_gemm" in chain.report()


def test_the_c_is_read_from_above():
    """Product, rows, product: in one loop over strips."""
    own = Executable(program_of(attention, *[(1, 2, 64, 16)] * 3)).source.own
    order = ["strip_0[4096]", "strip_0, 64, 0, 0,", "expf", "strip_0, 64, 1, 0,"]
    assert sorted(order, key=own.index) == order


def test_a_network_of_the_user():
    paddle.seed(1)
    layer = paddle.nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0)
    layer.eval()
    f = paddle.jit.to_static(lambda x: layer(x), backend="native")
    x = paddle.to_tensor(np.random.default_rng(0).standard_normal((2, 24, 16)).astype("float32"))
    with paddle.no_grad():
        wanted, found = layer(x).numpy(), f(x).numpy()
    (made,) = f.executables
    assert chains(made.program) == 2
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)
