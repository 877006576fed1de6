"""The backward of attention in strips, in C: against the interpreter, float64 and torch."""

from math import inf
from random import Random
from unittest import mock

import numpy as np
import pytest
import torch

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle.codegen.products import strip_products
from minipaddle.engine.core.record import Spec
from minipaddle.engine.core.slots import plugged
from minipaddle.engine.executors import compiler as c
from minipaddle.engine.executors.native import Executable
from minipaddle.passes import strip_products as passes
from minipaddle.passes.strip_products import is_strips
from tests.executors.schedules import Drawn, low_thresholds
from tests.executors.test_back_to_back_gemm import run
from tests.passes.programs import draw_arrays, program_of, results
from tests.passes.test_strip_products import FORMS, LONG, causal, gradients, masked, strips

pytestmark = pytest.mark.skipif(c.compiler() is None, reason="no C compiler: install gcc or clang")


def compiled(program) -> Executable:
    made = Executable(program)
    assert strips(made.program) == 1
    assert "by the host: nothing" in made.report()
    return made


def same(wanted, found) -> None:
    """Equal but for rounding, which is measured by the largest element: gradients are sums."""
    for a, b in zip(wanted, found, strict=True):
        a = np.asarray(a)
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5 * max(1, np.abs(a).max()))


@pytest.mark.parametrize("form", FORMS)
def test_as_the_interpreter_has_it(form):
    function, specs = FORMS[form]
    program = program_of(gradients(function), *specs)
    arrays = draw_arrays(program)
    same(results(program, arrays), run(compiled(program), program, arrays))


@pytest.mark.parametrize("shape", [(1, 70, 2, 33), (3, 129, 5, 16), (2, 8, 1, 3), (1, 96, 3, 2)])
def test_as_torch_has_it(shape):
    """Also where rows are no whole strips, and columns no whole vectors."""
    program = program_of(gradients(causal), *[shape] * 3)
    arrays = draw_arrays(program)
    with plugged("strip_products.profitable", lambda r: r.spec.shape[-2:] == shape[1:2] * 2):
        made = compiled(program)
    q, k, v = (torch.tensor(a, requires_grad=True) for a in arrays)
    heads = [x.transpose(1, 2) for x in (q, k, v)]
    y = torch.nn.functional.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2)
    (y * y).sum().backward()
    wanted = [y.detach(), q.grad, k.grad, v.grad]
    same(wanted, run(made, program, arrays))


def test_hidden_columns_are_skipped():
    """NaN in hidden keys and values reaches no gradient but of what is not hidden."""
    shape = (1, 640, 1, 8)
    program = program_of(gradients(masked), *[shape] * 3, (640, 640))
    made, arrays = compiled(program), draw_arrays(program)
    arrays[3] = np.where(np.arange(640) < 500, 0.0, -np.inf).astype("float32") + 0 * arrays[3]
    wanted = [np.array(y) for y in results(program, arrays)]
    same(wanted, run(made, program, arrays))
    _, _, dk, dv = run(made, program, arrays)
    assert not dk[:, 500:].any()
    assert not dv[:, 500:].any()


def test_a_causal_backward_looks_for_hidden_columns():
    """Its formulas read the mask several times; in the group it is one."""
    program = compiled(program_of(gradients(causal), *[LONG] * 3)).program
    (group,) = filter(is_strips, program.records)
    assert len(strip_products.StripProducts(group).masks) == 1


def test_strips_that_are_too_long_for_the_stack():
    """They lie in the workspace."""
    program = program_of(gradients(causal), *[(1, 40, 2, 4)] * 3)
    with (
        plugged("strip_products.profitable", lambda r: r.spec.shape[-2:] == (40, 40)),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(strip_products, "STRIP", 64)
        made = compiled(program)
    arrays = draw_arrays(program)
    same(results(program, arrays), run(made, program, arrays))


@pytest.mark.parametrize("threads", [1, 2])
def test_error_against_float64(threads, monkeypatch):
    """At most twice the interpreter's."""
    monkeypatch.setenv("OMP_NUM_THREADS", str(threads))
    shape = (1, 600, 2, 16)
    program = program_of(gradients(causal), *[shape] * 3)
    exact = program_of(gradients(causal), *[Spec(shape, np.dtype("float64"))] * 3)
    arrays = draw_arrays(program)
    wanted = results(exact, [a.astype("float64") for a in arrays])
    ours, theirs = run(compiled(program), program, arrays), results(program, arrays)
    for x, a, b in zip(wanted, ours, theirs, strict=True):
        assert np.abs(a - x).max() <= 2 * np.abs(b - x).max() + 1e-7


def scores_to_weights(kind: str, random: Random):
    """A formula between two products, of a kind that the pass treats in a way of its own."""
    mask = lambda p: paddle.tril(paddle.ones(p.shape[-2:], "bool"), random.choice((0, 1)))
    low = lambda p: paddle.full([], -inf, p.dtype)
    return {
        "softmax": lambda p: F.softmax(p),
        "where": lambda p: F.softmax(paddle.where(mask(p), p, low(p))),
        "add": lambda p: F.softmax(p + paddle.where(mask(p), paddle.zeros([], p.dtype), low(p))),
        "dropout": lambda p: F.dropout(F.softmax(p), 0.3),
        "gelu": lambda p: F.gelu(p),
        "rows": lambda p: F.tanh(p) - p.sum(-1, keepdim=True) * 0.1,
    }[kind]


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", ["softmax", "where", "add", "dropout", "gelu", "rows"])
def test_random_sizes_and_schedules(kind, seed):
    random = Random(f"{kind} {seed}")
    lead = random.choice(((), (2,), (2, 3), (1, 2), (3, 1)))
    queries, keys = random.choice((2, 3, 8, 17, 70)), random.choice((2, 8, 17, 33, 100))
    width, last = random.choice((1, 2, 8, 33)), random.choice((2, 5, 8, 33))
    dtype = random.choice(("float32", "float64"))
    shapes = [(queries, width), (keys, width), (keys, last)]
    between = scores_to_weights(kind, random)
    attend = lambda q, k, v: between(paddle.matmul(q, k, transpose_y=True) * 0.3) @ v
    specs = [Spec((*lead, *shape), np.dtype(dtype)) for shape in shapes]
    program = program_of(gradients(attend), *specs)
    arrays = draw_arrays(program, seed)
    with low_thresholds(random), mock.patch.multiple(passes, FROM=0, LARGER=0.01):
        made = Executable(program, tuned=Drawn(seed) if random.random() < 0.5 else None)
    same(results(program, arrays), run(made, program, arrays))


def test_two_products_before_a_nest_and_one_after_it():
    mixed = lambda q, k, v: F.softmax((q @ k.T) * F.sigmoid(v @ k.T), -1) @ v
    program = program_of(mixed, *[(600, 8)] * 3)
    arrays = draw_arrays(program)
    same(results(program, arrays), run(compiled(program), program, arrays))
