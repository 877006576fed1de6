"""States that slices and places change where they lie: no copies, and the interpreter's values."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.engine.executors.compiler import compiler
from minipaddle.viz.target import executable_of

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


class Pair(paddle.nn.Layer):
    """One cache that a step writes twice."""

    def __init__(self):
        super().__init__()
        self.register_buffer("rows", paddle.zeros([3, 8, 4]))

    def forward(self, at, next, x):
        self.rows[:, at] = x
        self.rows[:, next] = x * 2
        self.rows[1, 2:4] = 9
        return self.rows.sum()


def test_two_writes_need_no_copy_of_a_cache():
    pair = Pair()
    step = paddle.jit.to_static(pair, backend="native")
    calls = [paddle.to_tensor(n) for n in (1, 5, 99)]
    step(*calls[:2], paddle.ones([3, 4]))
    rows = np.zeros((3, 8, 4), "float32")
    rows[:, 1], rows[:, 5], rows[1, 2:4] = 1, 2, 9
    np.testing.assert_array_equal(pair.rows.numpy(), rows)
    made = executable_of(step)
    places = {made.plan.location(r).kind for r in made.program.records if r.shape == (3, 8, 4)}
    assert places == {"state"}
    assert made.plan.size < rows.nbytes
    assert made.states_at_risk == [], "the second index is checked before the first write"
    with pytest.raises(IndexError, match="out of range"):
        step(calls[0], calls[2], paddle.ones([3, 4]) * 7)
    np.testing.assert_array_equal(pair.rows.numpy(), rows)


def test_an_old_value_that_is_needed_keeps_its_place():
    """The first write must not lie in the cache: its old value is read after that."""

    class Both(Pair):
        def forward(self, at, next, x):
            old = self.rows * 1
            self.rows[:, at] = x
            now = (self.rows * old.transpose([0, 2, 1]).transpose([0, 2, 1])).sum()
            self.rows[:, next] = x * 2
            return now + (old * self.rows).sum()

    found = []
    for backend in ("interpreter", "native"):
        both = Both()
        both.rows.set_value(np.arange(96, dtype="float32").reshape(3, 8, 4))
        step = paddle.jit.to_static(both, backend=backend)
        result = step(paddle.to_tensor(1), paddle.to_tensor(5), paddle.ones([3, 4]))
        found.append([result.numpy(), both.rows.numpy()])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


WRITES = 8
"""What `write` does with a cache: each has a number."""


def write(rows, kind: int, at, other, x):
    """One write to a cache of (batch, time, width), or a read between two; returns what it read."""
    if kind == 0:
        rows[:, at] = x
    elif kind == 1:
        rows[:, other] = rows[:, at] * 2  # the value reads the cache
    elif kind == 2:
        rows[:, 2:5] = x[:, None] + 1  # overlaps with any place
    elif kind == 3:
        rows[:, at : at + 1] = rows[:, other : other + 1] + x[:, None]
    elif kind == 4:
        rows[:, :3] = rows[:, 3:6] * 0.5
    elif kind == 5:
        rows[:, -2:] = rows.mean(1, keepdim=True)
    elif kind == 6:
        rows[0, other] = x[0]
    else:
        rows[-1:, at] = rows[:1, other] + x[-1]
    return rows[:, other].sum() if kind % 2 else 0.0


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("seed", range(8))
def test_random_writes_to_one_cache(seed, batch, loops):
    """Two to four writes to a cache in a step, or in a turn of a loop, with reads between them."""
    kinds = [int(k) for k in np.random.default_rng([seed, batch]).integers(0, WRITES, 2 + seed % 3)]

    class Written(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            start = np.random.default_rng(seed).standard_normal((batch, 8, 4)).astype("float32")
            self.register_buffer("rows", paddle.to_tensor(start))

        def forward(self, at, other, x):
            total = paddle.zeros([])
            if loops:
                while at < 6:
                    for kind in kinds:
                        total = total + write(self.rows, kind, at, other, x)
                    at = at + 2
            else:
                for kind in kinds:
                    total = total + write(self.rows, kind, at, other, x)
            return total + self.rows.sum()

    found = []
    for backend in (None, "interpreter", "native"):
        net = Written()
        step = net if backend is None else paddle.jit.to_static(net, backend=backend)
        made = []
        for call in range(3):
            x = paddle.full([batch, 4], 1.0 + call)
            made += [step(*map(paddle.to_tensor, (call, 7 - 3 * call)), x).numpy()]
            made += [net.rows.numpy().copy()]
        found.append(made)
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(0, 8, 4), (3, 8, 0), (1, 1, 1)])
def test_caches_of_no_elements(shape):
    def write(cache, at, x):
        cache = cache * 1
        while at < 8 and cache.sum() < 1e9:
            cache[:, at % shape[1] : at % shape[1] + 1] = x
            at = at + 1
        return cache, at

    texts, _, width = shape
    given = [paddle.ones(shape), paddle.to_tensor(0), paddle.full([texts, 1, width], 2.0)]
    results = [paddle.jit.to_static(write, backend=b)(*given) for b in ("interpreter", "native")]
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    assert results[1][0].shape == list(shape)
    assert results[1][1].item() == 8


@pytest.mark.parametrize("batch", [1, 8])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_best_token_of_equal_and_strange_logits(batch, dtype):
    """The first of equal ones, and NaN before everything: as NumPy has it, in a loop of steps."""
    draw = np.random.default_rng(batch)
    table = draw.integers(-2, 3, (7, batch, 40)).astype(dtype)
    table[draw.random(table.shape) < 0.02] = np.nan
    table[draw.random(table.shape) < 0.02] = np.inf

    def best(table):
        told, at = paddle.zeros([batch, 7], "int64"), paddle.to_tensor(0)
        while at < 7:
            told[:, at : at + 1] = paddle.argmax(table[at], -1, keepdim=True)
            at = at + 1
        return told

    for backend in ("interpreter", "native"):
        found = paddle.jit.to_static(best, backend=backend)(paddle.to_tensor(table))
        np.testing.assert_array_equal(found.numpy(), table.argmax(-1).T)


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
