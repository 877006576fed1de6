"""Loops that read and write slices of arrays where they lie."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.engine.eager.device import NUMPY
from minipaddle.engine.executors.compiler import compiler
from minipaddle.engine.executors.native import Executable
from minipaddle.engine.ir.interpreter import Run
from minipaddle.engine.ir.program import everywhere
from minipaddle.engine.ir.verifier import VerifyError
from minipaddle.engine.passes.manager import optimized
from minipaddle.executors.interpreted.arena_interpreter import ArenaRun
from minipaddle.ir.parser import ParseError, parse
from minipaddle.nn.layer import rnn
from minipaddle.passes.loop_slices import loop_slices
from tests.passes.programs import program_of

needs_cc = pytest.mark.skipif(compiler() is None, reason="no C compiler")


def native(program, arrays):
    return Executable(program)(program, arrays)


RUNS = {
    "interpreter": lambda program, arrays: Run(NUMPY)(program, arrays),
    "planned": lambda program, arrays: ArenaRun(NUMPY, check=True)(program, arrays),
    "native": native,
}
runs = pytest.mark.parametrize(
    "run", [pytest.param(name, marks=needs_cc if name == "native" else ()) for name in RUNS]
)


def arrays_of(program, seed=0):
    """An array for each input; whole numbers are zero."""
    rng = np.random.default_rng(seed)
    return [
        (rng.normal(size=r.shape) if r.dtype.kind == "f" else np.zeros(r.shape)).astype(r.dtype)
        for r in program.given
    ]


# ---- loops that are given slices, and give some --------------------------------------------------

SLICED = """program p(k: int64[], h: float32[3], x: float32[{trips}, 3], y: float32[{trips}, 3]) {{
  v1 = while_loop(k, h, x, y, test=(k: int64[], h: float32[3], x: float32[{trips}, 3],
                                    y: float32[{trips}, 3]) {{
    v2 = less_than(k, {trips}) : bool[]
    return v2
  }}, body=(k: int64[], h: float32[3], x: float32[3], y: float32[3]) {{
    v3 = add(k, 1) : int64[]
    v4 = multiply(h, x) : float32[3]
    v5 = subtract(v4, y) : float32[3]
    return v3, v5, v5, x, v4
  }}, carried=2, keep={keep}, trip_count={trips}, reads={reads},
     writes=(True, False, {turned},)) : (int64[], float32[3], {stacks}float32[{trips}, 3],
                                         float32[{trips}, 3], float32[{trips}, 3])
  v6 = item(v1, k=1) : float32[3]
  v7 = item(v1, k={first}) : float32[{trips}, 3]
  v8 = item(v1, k={second}) : float32[{trips}, 3]
  v9 = item(v1, k={third}) : float32[{trips}, 3]
  return v6, v7, v8, v9
}}"""


def sliced(trips=4, keep=False, reads="(False, True,)", turned=False):
    """A program whose loop reads x and y, and writes the carried value, what it reads, and more."""
    stacks = f"int64[], int64[{trips}], float32[{trips}, 3], " if keep else ""
    first, second, third = range(5, 8) if keep else range(2, 5)
    return parse(SLICED.format(**locals()))


def compute_sliced(arrays, reads=(False, True), turned=False):
    """What it gives, by plain NumPy."""
    _, h, x, y = arrays
    x, y = (a[::-1] if back else a for a, back in zip((x, y), reads))
    after, products = [], []
    for a, b in zip(x, y):
        products.append(h * a)
        h = products[-1] - b
        after.append(h)
    products = products[::-1] if turned else products
    return h, np.array(after[::-1]), x, np.array(products)


@runs
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("trips", [1, 4])
@pytest.mark.parametrize("reads", [(False, True), (True, False), (False, False)])
def test_an_iteration_reads_and_writes_its_slices(run, keep, trips, reads):
    turned = reads[0]
    program = sliced(trips, keep, f"{reads}".replace(")", ",)"), turned)
    arrays = arrays_of(program)
    results = RUNS[run](program, [x.copy() for x in arrays])
    for result, wanted in zip(results, compute_sliced(arrays, reads, turned), strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-6, atol=1e-6)


def test_a_program_with_slices_is_read_again():
    program = sliced(keep=True)
    assert str(parse(str(program))) == str(program)


@pytest.mark.parametrize(
    ("old", "new"),
    [("reads=(False, True,)", "reads=(False, True, False,)"), ("reads=(False, True,)", "reads=()"),
     ("reads=(False, True,)", "reads=2"), ("reads=(False, True,)", "reads='ab'"),
     ("writes=(True, False, False,)", "writes=(True, False,)"), (", trip_count=4", ""),
     ("trip_count=4", "trip_count=5"), ("trip_count=4", "trip_count=-4")],
)  # fmt: skip
def test_a_loop_has_a_slice_for_each_iteration(old, new):
    text = str(sliced())
    assert old in text
    with pytest.raises((ParseError, VerifyError)):
        parse(text.replace(old, new))


# ---- the pass ------------------------------------------------------------------------------------

INDEXED = """program p(x: float32[5, 2], y: float32[5, 2], n: int64[]) {{
  v1 = full(shape=(), value={start}, dtype=int64) : int64[]
  v2 = full(shape=(2,), value=1.0, dtype=float32) : float32[2]
  v3 = while_loop(v1, v2, y, x, n, test=(k: int64[], h: float32[2], y: float32[5, 2],
                                         x: float32[5, 2], n: int64[]) {{
    v4 = less_than(n, {trips}) : bool[]
    return v4
  }}, body=(k: int64[], h: float32[2], y: float32[5, 2], x: float32[5, 2], n: int64[]) {{
    v5 = {step}(k, 1) : int64[]
    v6 = take(x, {index}, axis={axis}) : float32[2]
    v7 = multiply(h, v6) : float32[2]
    v8 = {write}
    return v5, v7, v8
  }}, carried=3, keep=False, trip_count={trips}) : (int64[], float32[2], float32[5, 2])
  v9 = item(v3, k=1) : float32[2]
  v10 = item(v3, k=2) : float32[5, 2]
  return v9, v10
}}"""
PUT = "put(y, k, v7, axis=0) : float32[5, 2]"
ADDED = "scatter_add(y, k, v7, axis=0) : float32[5, 2]"
BOTH = {"start": 0, "step": "add", "index": "k", "axis": 0, "trips": 5, "write": PUT}


def counted(program):
    """The program with a loop that ends: its test asks what the body does not count."""
    for record in everywhere(program):
        if record.op.name == "while_loop":
            test = record.attrs["test"]
            (go,) = test.outputs
            go.inputs = (test.inputs[0], go.inputs[1])
    return program


@runs
@pytest.mark.parametrize(
    ("changes", "reads", "writes"),
    [({}, (False,), (False,)), ({"write": ADDED}, (False,), (False,)),
     ({"trips": 4}, (), ()), ({"write": PUT.replace("v7", "h")}, (False,), (False,)),
     ({"write": "put(y, k, v6, axis=0) : float32[5, 2]"}, (False,), (False,)),
     ({"write": "put(y, v5, v7, axis=0) : float32[5, 2]", "trips": 4}, (), ()),
     ({"write": "put(y, n, v7, axis=0) : float32[5, 2]"}, (False,), ())],
)  # fmt: skip
def test_slices_at_the_number_of_an_iteration_are_read_and_written(run, changes, reads, writes):
    program = counted(parse(INDEXED.format(**BOTH | changes)))
    after = loop_slices(program)
    loop = next(r for r in after.records if r.op.name == "while_loop")
    assert loop.attrs.get("reads", ()) == reads
    assert loop.attrs.get("writes", ()) == writes
    arrays = arrays_of(program)
    plain = Run(NUMPY)(program, [x.copy() for x in arrays])
    for a, b in zip(RUNS[run](after, [x.copy() for x in arrays]), plain, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


# ---- recurrent networks --------------------------------------------------------------------------


def names_of(loop):
    return {r.op.name for r in loop.attrs["body"].records}


@pytest.mark.parametrize("direction", ["forward", "bidirect"])
def test_a_recurrent_layer_copies_no_slice(direction, monkeypatch):
    monkeypatch.setattr(rnn, "LONG", 0)
    net = paddle.nn.LSTM(3, 4, 2, direction)

    def step(x):
        y, _ = net(x)
        return paddle.grad((y * y).sum(), net.parameters())

    program = optimized(program_of(step, (2, 5, 3))).program
    loops = [r for r in program.records if r.op.name == "while_loop"]
    assert len(loops) == (8 if direction == "bidirect" else 4)
    assert not set().union(*map(names_of, loops)) & {"take", "put", "scatter_add"}


def test_inference_stacks_no_state(monkeypatch):
    monkeypatch.setattr(rnn, "LONG", 0)
    net = paddle.nn.LSTM(3, 4)
    program = optimized(program_of(lambda x: net(x)[0].detach(), (2, 5, 3))).program
    (loop,) = [r for r in program.records if r.op.name == "while_loop"]
    assert not loop.attrs["keep"]
    assert len(loop.attrs["writes"]) == 1
    assert "concat" not in [r.op.name for r in everywhere(program)]


CELLS = [paddle.nn.LSTM, paddle.nn.GRU, paddle.nn.SimpleRNN]


@needs_cc
@pytest.mark.parametrize("seed", range(12))
def test_random_recurrent_programs_agree_with_the_interpreter(seed, monkeypatch):
    """Layers, directions, lengths, reads of the sequence besides, first and second derivatives."""
    monkeypatch.setattr(rnn, "LONG", 0)
    rng = np.random.default_rng(seed)
    paddle.seed(seed)
    kind, length = CELLS[seed % 3], int(rng.integers(1, 7))
    direction = rng.choice(["forward", "bidirect"])
    net = kind(3, 4, int(rng.integers(1, 3)), direction, time_major=bool(rng.integers(2)))
    lengths = paddle.to_tensor(rng.integers(0, length + 1, 2)) if rng.integers(2) else None
    weight, twice = float(rng.normal()), bool(rng.integers(2))
    shape = (length, 2, 3) if net.time_major else (2, length, 3)

    def step(x):
        y, states = net(x, sequence_length=lengths)
        last = states[0] if isinstance(states, tuple) else states
        loss = (y * y).sum() * weight + (y[:, 0] * x.sum()).sum() + (last * last).sum()
        parts = paddle.grad(loss, [x, *net.parameters()], create_graph=twice)
        if twice:
            parts = paddle.grad(sum((g * g).sum() for g in parts), [x, *net.parameters()])
        return [y, loss, *parts]

    x = paddle.to_tensor(rng.normal(size=shape).astype("float32"))
    x.stop_gradient = False
    wanted = paddle.jit.to_static(step, backend="interpreter")(x)
    for result, value in zip(paddle.jit.to_static(step, backend="native")(x), wanted, strict=True):
        scale = 1e-5 * max(1.0, float(np.abs(value.numpy()).max(initial=0)))
        np.testing.assert_allclose(result.numpy(), value.numpy(), rtol=3e-4, atol=scale)
