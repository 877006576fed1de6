"""Rules of algebra, each tried on values that show it when a rule is not exact."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle.engine.core.record import Spec
from minipaddle.engine.core.slots import plugged
from minipaddle.engine.ops.elementwise import cast
from minipaddle.engine.ops.movement import reshape, transpose
from minipaddle.engine.passes.algebra import algebra
from minipaddle.engine.passes.dead_code import dead_code
from minipaddle.engine.passes.patterns import RewriteRule, by_rules
from minipaddle.engine.passes.rewriting import rewritten
from minipaddle.passes.canonicalize_matmul import canonicalize_matmul
from tests.passes.programs import body, program_of, results, same_results

HOSTILE = np.array(
    [[0.0, -0.0, np.inf, -np.inf], [np.nan, 1e-45, 3.4e38, -1.5], [1e-38, 3.0, -7.1, 0.5]], "f4"
)
INTS = Spec((3, 4), np.dtype("int64"))


def shown(f, *specs):
    """What is left of a program: its operators, in order."""
    program = program_of(f, *(specs or [(3, 4)]))
    after = dead_code(algebra(program))
    rng = np.random.default_rng(0)
    arrays = [
        HOSTILE if r.shape == (3, 4) and r.dtype == "f4" else rng.integers(-3, 4, r.shape)
        for r in program.given
    ]
    arrays = [a.astype(r.dtype) for a, r in zip(arrays, program.given)]
    for a, b in zip(results(program, arrays), results(after, arrays), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
        known = ~np.isnan(a.astype("f8"))
        np.testing.assert_array_equal(np.signbit(a[known]), np.signbit(b[known]))
    return " ".join(r.op.name for r in after.records)


GONE = {
    "x * 1": lambda x: x * 1.0,
    "1 * x": lambda x: 1 * x,
    "x / 1": lambda x: x / 1,
    "x - 0": lambda x: x - 0.0,
    "x ** 1": lambda x: x**1,
    "-(-x)": lambda x: paddle.neg(-x),
    "where(c, x, x)": lambda x: paddle.where(x > 0, x, x),
    "max(x, x)": lambda x: paddle.maximum(x, x),
    "transposes": lambda x: x.t().t(),
    "reshapes": lambda x: x.reshape([12]).reshape([2, 6]).reshape([3, 4]),
    "a cast to the same": lambda x: cast(x, dtype=x.spec.dtype),
    "a cast there and back": lambda x: x.astype("float64").astype("float32"),
    "a broadcast to the same": lambda x: x.expand([3, 4]),
    "the whole slice": lambda x: x[:, 0:4],
    "concat of one": lambda x: paddle.concat([x]),
    "many": lambda x: paddle.neg(-(x * 1.0)).t().t() / 1.0,
}


@pytest.mark.parametrize("name", GONE)
def test_nothing_is_left(name):
    assert shown(GONE[name]) in ("", "greater_than")


SHORTER = {
    "x - -y": (lambda x: x - (-x.exp()), "exp add"),
    "x + -y": (lambda x: x + (-x.exp()), "exp subtract"),
    "x * -1": (lambda x: x * -1.0, "neg"),
    "x / 8": (lambda x: x / 8.0, "multiply"),
    "x / -0.25": (lambda x: x / -0.25, "multiply"),
    "x ** 2": (lambda x: x**2, "square"),
    "sums": (lambda x: x.sum(axis=1, keepdim=True).sum(axis=0, keepdim=True), "sum"),
    "sums of what is left": (lambda x: x.sum(axis=0).sum(axis=0), "sum"),
    "transposes": (lambda x: x.reshape([3, 2, 2]).transpose([1, 0, 2]).transpose([2, 0, 1]),
                   "reshape transpose"),
    "broadcasts": (lambda x: x.expand([2, 3, 4]).expand([5, 2, 3, 4]), "broadcast_to"),
    "a broadcast for an operator": (lambda x: x + x[0].expand([3, 4]), "slice add"),
    "an array of one number": (lambda x: x + paddle.full([3, 4], 2.0), "add"),
}  # fmt: skip


@pytest.mark.parametrize("name", SHORTER)
def test_less_is_left(name):
    f, expected = SHORTER[name]
    assert shown(f) == expected


STAY = {
    "x + 0": lambda x: x + 0.0,
    "x * 0": lambda x: x * 0.0,
    "x - x": lambda x: x - x,
    "x - -0.0": lambda x: x - -0.0,
    "x / 3": lambda x: x / 3.0,
    "x / 2^-140": lambda x: x / 2.0**-140,
    "x / 2^130": lambda x: x / 2.0**130,
    "x * 2 * 3": lambda x: x * 2.0 * 3.0,
    "a cast that rounds": lambda x: x.astype("float16").astype("float32"),
    "a slice": lambda x: x[:, 1:],
    "0 - x": lambda x: 0 - x,
    "a broadcast that is the result": lambda x: x[:1].expand([3, 4]) * 2.0,
}


@pytest.mark.parametrize("name", STAY)
def test_what_is_not_the_same_stays(name):
    program = program_of(STAY[name], (3, 4))
    if name == "a broadcast that is the result":
        assert shown(STAY[name]) == "slice broadcast_to multiply"
    else:
        assert algebra(program) is program


def test_whole_numbers_keep_their_dtype():
    assert shown(lambda x: x * 1, INTS) == ""
    assert shown(lambda x: x * 1.0, INTS) == "multiply"
    assert shown(lambda x: x / 1, INTS) == "multiply"
    assert shown(lambda x: x + paddle.full([3, 4], 2, dtype="int64"), INTS) == "add"
    assert shown(lambda x: x.astype("float32").astype("int64"), INTS) == "cast cast"


def test_a_product_whose_transpose_alone_is_used():
    program = canonicalize_matmul(program_of(lambda x, y: paddle.matmul(x, y).t(), (3, 4), (4, 2)))
    after = dead_code(algebra(program))
    assert [r.op.name for r in after.records] == ["product"]
    same_results(program, after)
    both = canonicalize_matmul(
        program_of(lambda x, y: (lambda z: (z.t(), z.exp()))(x @ y), (3, 4), (4, 2))
    )
    assert algebra(both) is both


def test_in_regions():
    def f(x):
        return paddle.static.nn.cond(x.sum() > 0, lambda: (x * 1.0).t().t() + 1.0, lambda: x)

    text = str(dead_code(algebra(program_of(f, (3, 4)))))
    assert "transpose" not in text
    assert "multiply" not in text


def test_a_rule_of_ones_own():
    """A rule is two functions; `alone` asks that nothing else uses what is in between."""
    rule = RewriteRule(
        lambda x, *, p: reshape(transpose(x, perm=p), shape=(12,)),
        lambda x, *, p: reshape(x, shape=(12,)),
        lambda x, p: x.spec.shape == (3, 4),
        alone=True,
    )
    once = program_of(lambda x: x.t().reshape([12]), (3, 4))
    assert "transpose" not in body(dead_code(rewritten(once, by_rules([rule]))))
    twice = program_of(lambda x: (x.t().reshape([12]), x.t().exp()), (3, 4))
    assert "transpose" in body(dead_code(rewritten(twice, by_rules([rule]))))

    def both(x):
        y = x.t()
        return y.reshape([12]), y.exp()

    shared = program_of(both, (3, 4))
    assert rewritten(shared, by_rules([rule])).records == shared.records


def test_a_slot():
    with plugged("passes.algebra", lambda program: program):
        from minipaddle.engine.passes.manager import optimized

        assert len(optimized(program_of(lambda x: x * 1.0, (3, 4))).program.records) == 1


numbers = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 3.0, float("inf")])
steps = st.lists(st.tuples(st.sampled_from("+-*/n^tr"), numbers), min_size=1, max_size=6)


@pytest.mark.sweep
@settings(derandomize=True, max_examples=150, deadline=None)
@given(steps)
def test_any_formula_is_the_same_to_the_last_bit(chain):
    def f(x):
        for sign, c in chain:
            if sign == "n":
                x = -x
            elif sign == "^":
                x = x * x ** (2 if c > 0 else 1)
            elif sign == "t":
                x = x.transpose([1, 0])
            elif sign == "r":
                x = x.reshape([x.shape[1], x.shape[0]])
            else:
                x = {"+": x + c, "-": x - c, "*": x * c, "/": x / c}[sign]
        return x

    shown(f)
