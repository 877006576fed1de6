"""The table of operators and executors: it has no hole, its words are explained, and it is true."""

import re

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.engine.core.op import OPS
from minipaddle.engine.core.record import Spec
from minipaddle.engine.eager.tensor import Tensor
from minipaddle.engine.eager.tracer import trace
from minipaddle.engine.executors.native import CannotCompile, Executable
from minipaddle.executors.support import MARKS, OF_FLOATS, REFUSED, rows
from minipaddle.viz.target import executable_of
from tests.executors.test_native_operators import fits, program_of
from tests.ops.test_operators import ALL, CASES, drawn, listed, run


def test_the_table_of_executors_has_no_hole():
    holes = [row.op.name for row in rows() if not (row.c and row.cuda and row.body)]
    assert holes == []


def test_the_table_tells_why():
    told = {row.op.name: row.c for row in rows() if row.c.startswith(("no", "Python"))}
    assert told["unique"] == "no: the size of its result depends on values"
    assert told["show"] == "Python: it has an effect outside of the program"
    assert set(told) == set(REFUSED) | {n for n, op in OPS.items() if op.effect and n != "check"}
    of_gpu = {row.op.name: row.cuda for row in rows()}
    assert of_gpu["sort"] == "CuPy: it sorts, with Thrust"
    assert {how.split(": ")[0] for how in of_gpu.values() if ": " in how} == {
        "CuPy",
        "Python",
        "no",
    }
    assert not {"CuPy", "Python", "no"} & set(of_gpu.values())


def test_the_table_explains_its_words():
    parts = {how.split(": ")[0] for row in rows() for how in row[1:]}
    words = {word for part in parts for word in re.split(", | or ", part)}
    assert words == MARKS.keys()


def of_whole_numbers(name: str, k: int) -> set:
    """Whether C leaves a case to the host, or refuses it, if its floats are whole numbers."""
    is_float = lambda x: isinstance(x, np.ndarray) and x.dtype.kind == "f"
    given = [
        np.asarray(np.nan_to_num(x, posinf=9, neginf=-9), "int32") if is_float(x) else x
        for x in drawn(name, k)
    ]
    specs = [Spec(x.shape, x.dtype) for x in given if isinstance(x, np.ndarray)]

    def function(*tensors):
        left = iter(tensors)
        args = [next(left) if isinstance(x, np.ndarray) else x for x in given]
        ys = listed(OPS[name](*args, **CASES[name][k].attrs))
        return [y for y in ys if isinstance(y, Tensor)]

    try:
        run(name, k, given)
        made = Executable(trace(function, specs).program, load=False)
    except CannotCompile:
        return set()
    except (TypeError, ValueError, OverflowError):  # of the operator, or of those that replace it
        return {"refused"}
    hosted = {"host" for record in made.source.hosted if made.kernels.of[record] is None}
    return hosted or {"C"}


@pytest.mark.sweep
def test_whole_numbers_are_left_to_the_host_where_the_table_says_so():
    """No other operator is the host's; each of these has a case that is, or that is refused."""
    found: dict[str, set] = {}
    for name, k in ALL:
        if name in OPS and not OPS[name].effect and OPS[name].kind != "control":
            found.setdefault(name, set()).update(of_whole_numbers(name, k))
    assert {n for n, how in found.items() if "host" in how} <= {*OF_FLOATS.split()}
    assert {n for n in OF_FLOATS.split() if not found[n] & {"host", "refused"}} == set()


@pytest.mark.parametrize("name", ["max_pool2d", "avg_pool2d", "conv2d", "softmax", "layer_norm"])
def test_functions_refuse_whole_numbers(name):
    given = {"conv2d": [paddle.ones([2, 3, 1, 1], "int32")], "softmax": []}.get(name, [2])
    with pytest.raises(TypeError, match="float32"):
        getattr(paddle.nn.functional, name)(paddle.ones([1, 3, 4, 2], "int32"), *given)


@pytest.mark.parametrize("name", ["silu", "gelu", "softplus", "leaky_relu", "hardswish", "selu"])
def test_activations_of_whole_numbers_are_floats(name):
    function = getattr(paddle.nn.functional, name)
    for backend in ("interpreter", "native"):
        found = paddle.jit.to_static(function, backend=backend)(paddle.to_tensor([-1, 1, 2]))
        wanted = function(paddle.to_tensor([-1.0, 1.0, 2.0]))
        assert found.dtype == paddle.float32
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-6)


def test_draws_by_weights_of_another_dtype_are_computed_in_c():
    weights = paddle.to_tensor([[0.0, 1.0, 2.0, 1.0]])

    def draw(weights, count, sorted):
        return (
            paddle.multinomial(weights, 2),
            paddle.multinomial(weights, 3, replacement=True),
            paddle.binomial(count, weights / 4),
            paddle.poisson(weights),
            paddle.searchsorted(sorted, weights.astype("float64")),
        )

    found = []
    for backend in ("interpreter", "native"):
        paddle.seed(3)
        program = paddle.jit.to_static(draw, backend=backend)
        given = weights, paddle.to_tensor([[4, 5, 6, 7]]), paddle.to_tensor([0.0, 1.5])
        found.append([y.numpy() for y in program(*given)])
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)
    assert "by the host: nothing" in executable_of(program).report()


@pytest.mark.sweep
def test_no_case_of_an_operator_is_left_to_the_host():
    """In float16; test_native_operators runs the other dtypes, and sees to it there."""
    cases = [(n, k) for n, k in ALL if n in OPS and n not in REFUSED and fits(n, k, "float16")]
    made = Executable(program_of(cases, "float16")[0], load=False)
    assert "by the host: nothing" in made.report().replace("\n", " ")
