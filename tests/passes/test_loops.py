"""Loops of which the number of iterations is known: compiled, and their derivatives made cheap."""

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle.codegen.indices.index_checks import find_checked
from minipaddle.engine.core.op import OPS
from minipaddle.engine.eager.device import NUMPY
from minipaddle.engine.executors.compiler import compiler
from minipaddle.engine.executors.native import Executable
from minipaddle.engine.ir.interpreter import Run
from minipaddle.engine.ir.program import everywhere
from minipaddle.engine.passes.dead_code import dead_code
from minipaddle.engine.passes.manager import optimized
from minipaddle.executors.interpreted.arena_interpreter import ArenaRun
from minipaddle.ir.parser import parse
from minipaddle.nn.layer import rnn
from minipaddle.passes.loop_invariants import loop_invariants
from minipaddle.passes.loop_residuals import loop_residuals
from minipaddle.passes.scatter_adds import scatter_adds
from minipaddle.passes.unread_iterations import unread_iterations
from tests.passes.programs import program_of, same_results

needs_cc = pytest.mark.skipif(compiler() is None, reason="no C compiler")


@pytest.fixture
def loops(monkeypatch):
    """Sequences of any length are loops in programs."""
    monkeypatch.setattr(rnn, "LONG", 0)


NETS = {
    "LSTM": lambda: paddle.nn.LSTM(3, 4),
    "two layers, both directions": lambda: paddle.nn.LSTM(3, 4, 2, direction="bidirect"),
    "GRU": lambda: paddle.nn.GRU(3, 4),
    "SimpleRNN": lambda: paddle.nn.SimpleRNN(3, 4, time_major=True),  # of two steps
    "projected": lambda: paddle.nn.LSTM(3, 4, proj_size=2),
}


def gradients(net, create_graph=False):
    """A function of x: the loss of a network, and its gradients by x and the weights."""

    def step(x):
        y, _ = net(x)
        loss = (y * y).sum()
        found = paddle.grad(loss, [x, *net.parameters()], create_graph=create_graph)
        if not create_graph:
            return [loss, *found]
        return paddle.grad((found[0] ** 2).sum(), [x, *net.parameters()], allow_unused=True)

    return step


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("backend", ["interpreter", pytest.param("native", marks=needs_cc)])
def test_a_loop_gives_what_unrolled_steps_give(name, second, backend, loops):
    paddle.seed(0)
    step = gradients(NETS[name](), create_graph=second)
    x = paddle.to_tensor(np.random.default_rng(0).normal(size=(2, 5, 3)).astype("float32"))
    x.stop_gradient = False
    wanted = step(x)  # eager mode unrolls
    static = paddle.jit.to_static(step, backend=backend)
    for found, value in zip(static(x), wanted, strict=True):
        np.testing.assert_allclose(found.numpy(), value.numpy(), rtol=2e-4, atol=1e-5)
    records = everywhere(static.main_program)
    assert {r.attrs["trip_count"] for r in records if r.op.name == "while_loop"} <= {2, 5}


@pytest.mark.parametrize("steps", [1, 2, 5])
@pytest.mark.parametrize("backend", ["interpreter", pytest.param("native", marks=needs_cc)])
def test_ctc_is_a_loop_over_the_steps(steps, backend):
    labels, letters = paddle.to_tensor([[1, 1], [2, 3], [1, 0]]), paddle.to_tensor([1, 2, 0])
    lengths = paddle.to_tensor([steps, max(steps - 1, 1), steps])

    def step(x):
        loss = F.ctc_loss(x, labels, lengths, letters, reduction="none", zero_infinity=True)
        return [loss, *paddle.grad(loss.sum(), [x])]

    x = paddle.randn([steps, 3, 4])
    x.stop_gradient = False
    static = paddle.jit.to_static(step, backend=backend)
    for found, value in zip(static(x), step(x), strict=True):
        np.testing.assert_allclose(found.numpy(), value.numpy(), rtol=2e-4, atol=1e-5)
    trips = [r.attrs["trip_count"] for r in loops_of(static.main_program)]
    assert {*trips} == {steps - 1}


@needs_cc
@pytest.mark.parametrize("length", [1, 2, 7])
def test_a_length_that_a_run_knows_is_compiled(length):
    net = paddle.nn.GRU(3, 4)
    spec = paddle.static.InputSpec([2, None, 3], stop_gradient=False)
    static = paddle.jit.to_static(gradients(net), backend="native", input_spec=[spec])
    x = paddle.randn([2, length, 3])
    x.stop_gradient = False
    for found, value in zip(static(x), gradients(net)(x), strict=True):
        np.testing.assert_allclose(found.numpy(), value.numpy(), rtol=2e-4, atol=1e-5)
    assert len(static.executables) == 1


def program_of_loops(monkeypatch):
    """The gradients of an LSTM over five steps, after the forms of operators are chosen."""
    monkeypatch.setattr(rnn, "LONG", 0)
    net = paddle.nn.LSTM(3, 8)

    def step(x):
        y, _ = net(x)
        return paddle.grad((y * y).sum(), net.parameters())

    program = program_of(step, (2, 5, 3))
    return optimized(program, until="cse", loop_residuals=False).program


def test_a_planned_loop_stacks_its_iterations(monkeypatch):
    program = program_of_loops(monkeypatch)
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=r.shape).astype(r.dtype) for r in program.given]
    plain = Run(NUMPY)(program, [x.copy() for x in arrays])
    planned = ArenaRun(NUMPY, check=True)(program, [x.copy() for x in arrays])
    for a, b in zip(planned, plain, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def loops_of(program):
    return [r for r in program.records if r.op.name == "while_loop"]


def products_of(loop) -> int:
    return sum(r.op.name == "product" for r in loop.attrs["body"].records)


def test_a_derivative_reads_the_products_of_its_loop(monkeypatch):
    before = program_of_loops(monkeypatch)
    after = dead_code(loop_residuals(before))
    forward, back = loops_of(after)
    assert [products_of(r) for r in loops_of(before)] == [1, 3]  # h W; again, and two gradients
    assert [products_of(forward), products_of(back)] == [1, 1]
    assert forward.attrs["writes"] == (False,) * 5  # four gates, and tanh of the cell
    assert not {"sigmoid", "tanh"} & {r.op.name for r in back.attrs["body"].records}
    same_results(before, after, rtol=1e-5, atol=1e-6)


def test_a_loop_that_another_does_not_repeat_stays():
    program = parse("""program p(n: int64[], x: float32[2, 2]) {
      v1 = while_loop(n, x, test=(k: int64[], y: float32[2, 2]) {
        v2 = less_than(k, 3) : bool[]
        return v2
      }, body=(k: int64[], y: float32[2, 2]) {
        v3 = add(k, 1) : int64[]
        v4 = matmul(y, y) : float32[2, 2]
        return v3, v4
      }, carried=2, keep=True, trip_count=3) : (int64[], float32[2, 2], int64[], int64[3],
                                                float32[3, 2, 2])
      v5 = item(v1, k=4) : float32[3, 2, 2]
      return v5
    }""")
    assert loop_residuals(program) is program


@pytest.mark.parametrize("order", ["backwards", "forwards"])
def test_only_a_loop_that_walks_back_takes_over_products(order, monkeypatch):
    """The products are carried from the last iteration to the first: in no other order."""
    program = program_of_loops(monkeypatch)
    back = loops_of(program)[1]
    if order == "forwards":  # the same products at the same slices, counted otherwise
        index = next(r for r in back.attrs["body"].records if r.op.name == "subtract")
        index.op = OPS["add"]
    assert (loop_residuals(program) is program) == (order == "forwards")


def test_stacks_that_nothing_reads_are_left_out(monkeypatch):
    program = program_of_loops(monkeypatch)
    assert [r.attrs["keep"] for r in loops_of(program)] == [True, False]
    without = parse("""program p(n: int64[], x: float32[2]) {
      v1 = while_loop(n, x, test=(k: int64[], y: float32[2]) {
        v2 = less_than(k, 3) : bool[]
        return v2
      }, body=(k: int64[], y: float32[2]) {
        v3 = add(k, 1) : int64[]
        v4 = add(y, y) : float32[2]
        return v3, v4
      }, carried=2, keep=True, trip_count=3) : (int64[], float32[2], int64[], int64[3],
                                                float32[3, 2])
      v5 = item(v1, k=1) : float32[2]
      return v5
    }""")
    (loop,) = loops_of(unread_iterations(without))
    assert not loop.attrs["keep"]
    assert len(loop.shape) == 2


def test_what_is_the_same_in_each_iteration_is_computed_before():
    program = parse("""program p(n: int64[], x: float32[2, 2], w: float32[2, 2]) {
      v1 = while_loop(n, x, w, test=(k: int64[], y: float32[2, 2], w: float32[2, 2]) {
        v2 = less_than(k, 3) : bool[]
        return v2
      }, body=(k: int64[], y: float32[2, 2], w: float32[2, 2]) {
        v3 = add(k, 1) : int64[]
        v4 = transpose(w, perm=(1, 0,)) : float32[2, 2]
        v5 = exp(v4) : float32[2, 2]
        v6 = add(y, v5) : float32[2, 2]
        return v3, v6
      }, carried=2, keep=False) : (int64[], float32[2, 2])
      v7 = item(v1, k=1) : float32[2, 2]
      return v7
    }""")
    after = loop_invariants(program)
    assert [r.op.name for r in after.records] == ["transpose", "exp", "while_loop", "item"]
    assert [r.op.name for r in after.records[2].attrs["body"].records] == ["add", "add"]
    assert loop_invariants(after) is after


@pytest.mark.parametrize("swapped", [False, True])
def test_a_sum_with_scattered_slices_becomes_one_record(swapped):
    def f(x, at, y):
        at = at.astype("int64") % 9
        sums = paddle.zeros([9, 2]).index_add(at.reshape([1]), 0, y.reshape([1, 2]))
        return sums + x if swapped else x + sums

    program = program_of(f, (9, 2), (), (2,))
    assert "scatter_add" in [r.op.name for r in scatter_adds(program).records]
    same_results(program, scatter_adds(program), rtol=0, atol=0)


@needs_cc
def test_a_table_is_added_to_where_it_is():
    program = parse("""program p(k: int64[2], y: float32[2, 4]) {
      state x: float32[1000, 4]
      v1 = scatter_sum(y, k, shape=(1000, 4,), axis=0) : float32[1000, 4]
      v2 = add(x, v1) : float32[1000, 4]
      update x = v2
      return k
    }""")
    assert Executable(program, load=False).plan.size < 1000


@needs_cc
def test_what_a_loop_counts_needs_no_check(loops):
    """So a run need not work on copies of its states."""
    net = paddle.nn.LSTM(3, 4, direction="bidirect")
    opt = paddle.optimizer.Adam(parameters=net.parameters())

    def step(x):
        loss = net(x)[0].sum()
        loss.backward()
        opt.step()
        opt.clear_grad()
        return loss

    static = paddle.jit.to_static(step, backend="native")
    static(paddle.randn([2, 5, 3]))
    (executable,) = static.executables
    assert executable.source.hosted == []
    assert executable.states_at_risk == []


@pytest.mark.parametrize(
    ("start", "step", "trips", "size", "safe"),
    [(0, 1, 5, 5, True), (0, 1, 6, 5, False), (4, -1, 5, 5, True), (4, -1, 10, 5, True),
     (4, -1, 11, 5, False), (0, 2, 3, 5, True)],
)  # fmt: skip
def test_an_index_is_safe_if_all_numbers_of_its_loop_are(start, step, trips, size, safe):
    program = parse(f"""program p(x: float32[{size}]) {{
      v1 = full(shape=(), value={start}, dtype=int64) : int64[]
      v2 = full(shape=(), value=0.0, dtype=float32) : float32[]
      v3 = while_loop(v1, v2, x, test=(k: int64[], y: float32[], x: float32[{size}]) {{
        v4 = less_than(k, 99) : bool[]
        return v4
      }}, body=(k: int64[], y: float32[], x: float32[{size}]) {{
        v5 = add(k, {step}) : int64[]
        v6 = take(x, k, axis=0) : float32[]
        return v5, v6
      }}, carried=2, keep=False, trip_count={trips}) : (int64[], float32[])
      v7 = item(v3, k=1) : float32[]
      return v7
    }}""")
    body = program.records[2].attrs["body"]
    read = [r for r in body.records if r.op.name == "take"]
    assert [*find_checked(read, program)] == (read if safe else [])
