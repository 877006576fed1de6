"""States that slices and places change where they lie: no copies, and the interpreter's values."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.engine.core.op import OPS
from minipaddle.engine.executors.compiler import compiler
from minipaddle.engine.executors.native import Executable
from minipaddle.executors.support import REFUSED, rows
from minipaddle.viz.target import executable_of
from tests.executors.test_native_operators import fits, program_of
from tests.ops.test_operators import ALL

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler: install gcc or clang")


class Cache(paddle.nn.Layer):
    """Keys and values of tokens, as a decoder keeps them."""

    def __init__(self):
        super().__init__()
        self.register_buffer("k", paddle.zeros([2, 3, 16, 4]))
        self.register_buffer("v", paddle.zeros([2, 3, 16, 4]))

    def forward(self, at, x):
        self.k[:, :, at] = x
        self.v[:, :, at] = x * 2
        return (self.k * self.v).sum()


def test_a_cache_is_written_where_it_lies():
    cache = Cache()
    step = paddle.jit.to_static(cache, backend="native")
    for at in range(5):
        step(paddle.to_tensor(at), paddle.full([2, 3, 4], float(at)))
    with pytest.raises(IndexError, match="out of bounds"):
        step(paddle.to_tensor(99), paddle.ones([2, 3, 4]))
    assert cache.k.numpy()[0, 0, :6, 0].tolist() == [0, 1, 2, 3, 4, 0]
    assert cache.v.numpy()[1, 2, :6, 3].tolist() == [0, 2, 4, 6, 8, 0]
    made = executable_of(step)
    assert made.plan.size < cache.k.numpy().nbytes, made.plan
    assert [made.plan.copies, made.plan.before, made.states_at_risk] == [[], [], []]
    assert "by the host: nothing" in made.report()


def test_a_decoding_loop_is_one_c_function():
    """Caches are written where they lie, in a loop whose end the data say."""
    table = np.random.default_rng(0).standard_normal((9, 4)).astype("float32")

    def decode(token, rows):
        cache, told = paddle.zeros([2, 8, 4]), paddle.zeros([2, 8], dtype="int64")
        at = paddle.to_tensor(0)
        while at < 8:
            cache[:, at] = rows[token]
            scores = paddle.matmul(cache.sum(1), rows, transpose_y=True)
            token = paddle.argmax(scores, -1) if at % 2 == 0 else paddle.argmin(scores, -1)
            told[:, at] = token
            at = at + 1
        return told, cache

    results, made = [], None
    for backend in ("interpreter", "native"):
        program = paddle.jit.to_static(decode, backend=backend)
        found = program(paddle.to_tensor([1, 7]), paddle.to_tensor(table))
        results.append([y.numpy() for y in found])
    made = executable_of(program)
    assert "by the host: nothing" in made.report()
    assert all(copy.value.op.name == "full" for copy in made.plan.copies)
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_random_slices_in_a_row(seed):
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(2, 7, 3))
    moves = [drawn_move(rng, shape) for _ in range(6)]

    def change(state, other, at):
        old = state * 1 if keeps else 0
        for kind, key, value in moves:
            if kind == "slice":
                state[key] = other[key] if value is None else value
            else:
                state[at] = other[at] if value is None else value
        return state + old

    keeps = bool(rng.random() < 0.5)
    x, y = (rng.standard_normal(shape).astype("float32") for _ in range(2))
    at = rng.integers(-shape[0], shape[0], 3)
    results = []
    for backend in ("interpreter", "native"):
        given = [paddle.to_tensor(a.copy()) for a in (x, y, at)]
        program = paddle.jit.to_static(change, backend=backend)
        results.append([program(*given).numpy(), given[0].numpy(), given[1].numpy()])
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)


def drawn_move(rng, shape) -> tuple:
    """(how the state is changed, a key, a number or None for a part of another array)."""
    key = []
    for n in shape:
        start, stop = sorted(int(k) for k in rng.integers(0, n + 1, 2))
        step = int(rng.choice([1, 1, 2]))
        key.append(slice(start, stop, step) if rng.random() < 0.7 else int(rng.integers(-n, n)))
    value = float(rng.integers(9)) if rng.random() < 0.4 else None
    return str(rng.choice(["slice", "slice", "place"])), tuple(key), value


# ---- no operator is left to Python -----------------------------------------------------------


def test_the_table_of_executors_has_no_hole():
    holes = [row.op.name for row in rows() if not (row.c and row.cuda and row.eager)]
    assert holes == []


def test_the_table_tells_why():
    told = {row.op.name: row.c for row in rows() if row.c.startswith("no")}
    assert told["unique"] == "no: the size of its result depends on values"
    assert told["show"] == "no: it has an effect outside of the program"
    assert set(told) == set(REFUSED) | {n for n, op in OPS.items() if op.effect and n != "check"}


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
def test_no_case_of_an_operator_is_left_to_the_host(dtype):
    cases = [(n, k) for n, k in ALL if n in OPS and n not in REFUSED and fits(n, k, dtype)]
    program = program_of(cases, dtype)[0]
    made = Executable(program, load=False)
    assert "by the host: nothing" in made.report().replace("\n", " ")
