"""Places out of range: every executor raises what eager mode does, and names the same line."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle.engine.eager.device import NUMPY, QUIET
from minipaddle.engine.executors.compiler import compiler
from minipaddle.engine.executors.native import Executable
from minipaddle.engine.ir.interpreter import Run
from minipaddle.executors.gpu import cuda
from minipaddle.executors.interpreted.executable import Interpreted
from tests.codegen.cuda_on_cpu import Cpu, needs_gxx
from tests.passes.programs import program_of

IGNORED = -3
CASES = {
    "gather": (lambda x, i: paddle.gather(x, i), (4, 3)),
    "of no columns": (lambda x, i: paddle.gather(x, i), (4, 0)),
    "of no rows": (lambda x, i: paddle.index_select(x, i, axis=1), (0, 4)),
    "x[i, 0]": (lambda x, i: x[i, 0], (4, 3)),
    "x[0, i]": (lambda x, i: x[0, i], (4, 3)),
    "gather_nd": (lambda x, i: paddle.gather_nd(x, i.unsqueeze(1)), (4, 0)),
    "take_along_axis": (lambda x, i: paddle.take_along_axis(x, i.unsqueeze(1), 0), (4, 3)),
    "embedding": (lambda x, i: F.embedding(i, x), (4, 3)),
    "embedding in nothing": (lambda x, i: F.embedding(i, x), (4, 0)),
    "one_hot": (lambda x, i: F.one_hot(i, 3), (1,)),
    "cross_entropy": (lambda x, i: F.cross_entropy(x, i, ignore_index=IGNORED), (2, 3)),
    "index_fill": (lambda x, i: paddle.index_fill(x, i, 0, 2.0), (4, 3)),
    "index_fill of no columns": (lambda x, i: paddle.index_fill(x, i, 0, 2.0), (4, 0)),
    "index_put": (lambda x, i: paddle.index_put(x, [i], paddle.ones([3])), (4, 3)),
    "index_add": (lambda x, i: paddle.index_add(x, i, 0, x[:2]), (4, 3)),
    "index_add of no rows": (lambda x, i: paddle.index_add(x, i, 1, x[:, :2]), (0, 4)),
    "put_along_axis": (
        lambda x, i: paddle.put_along_axis(x, i.unsqueeze(1), 1.0, 0, reduce="amax"), (4, 3)
    ),
}  # fmt: skip

FROM_THE_FRONT = ("embedding", "embedding in nothing", "one_hot", "cross_entropy")
"""Where negative numbers are refused."""


def error_of(run, *given) -> tuple:
    """(type, what is wrong, the user's line) of an error; nothing without one."""
    try:
        QUIET.copy().run(run, *given)
    except Exception as error:
        message, _, line = str(error).partition("\n")
        return type(error), message.rpartition("): ")[2], line
    return ()


def whole():
    """The program of all cases, and arrays for it, with valid places."""

    def function(*given):
        return [f(*given[2 * k : 2 * k + 2]) for k, (f, _) in enumerate(CASES.values())]

    arrays = []
    for _, shape in CASES.values():
        arrays += [np.ones(shape, "float32"), np.zeros(2, "int64")]
    return program_of(function, *(paddle.to_tensor(a).spec for a in arrays)), arrays


RUNS = {
    "the interpreter": lambda program: Run(NUMPY),
    "groups in blocks": Interpreted,
    "native": pytest.param(
        Executable, marks=pytest.mark.skipif(compiler() is None, reason="no C compiler")
    ),
    "cuda": pytest.param(
        lambda program: cuda.CudaExecutable(program, device=Cpu()), marks=needs_gxx
    ),
}


@pytest.mark.parametrize("make", RUNS.values(), ids=RUNS)
def test_all_executors_raise_what_eager_mode_does(make):
    program, arrays = whole()
    run = make(program)
    arrays += [np.array(s.storage.read()) for s in program.states]
    assert error_of(run, program, arrays) == ()
    for bad in ([0, 7], [-9, 0], [-1, 2], [0, IGNORED]):
        for k, (name, (f, _)) in enumerate(CASES.items()):
            x, i = (paddle.to_tensor(a) for a in (arrays[2 * k], np.array(bad)))
            given = [np.array(a) for a in arrays]
            given[2 * k + 1] = np.array(bad)
            wanted = error_of(f, x, i)
            refused = name in FROM_THE_FRONT and (name, bad) != ("cross_entropy", [0, IGNORED])
            assert bool(wanted) is (7 in bad or -9 in bad or refused)
            assert not wanted or wanted[0] is IndexError
            assert error_of(run, program, given) == wanted, name
    assert error_of(run, program, arrays) == ()


@needs_gxx
@pytest.mark.parametrize("strategy", [None, {"allow_cuda_graph_capture": False}])
@pytest.mark.parametrize("computed", [False, True])
def test_a_wrong_place_leaves_the_states_as_they_were(strategy, computed):
    """Also in the midst of graphs: if the places are computed, a state is updated before they are
    looked at, and one after; places that are given are looked at first.
    """
    early, late = paddle.zeros([2]), paddle.zeros([3])

    def step(x, i):
        early.add_(x)
        i = paddle.clip(i, -9, 9) if computed else i
        place = paddle.gather(early, i).sum()
        y = F.embedding(i, x.reshape([2, 1]))
        late.add_((place + y.sum()) * paddle.ones([3]))
        return y

    program = program_of(step, [2], paddle.to_tensor([0]).spec)
    made = cuda.CudaExecutable(program, strategy, device=Cpu())
    x, states = np.array([1, 2], "float32"), [np.zeros(2, "float32"), np.zeros(3, "float32")]
    for k in range(1, 5):
        for bad in (2, -3, -1):  # the last: right for one of the two
            kept = [a.copy() for a in states]
            assert error_of(made, program, [x, np.array([bad]), *states])[0] is IndexError
            np.testing.assert_equal(states, kept)
        assert ("captured" in made.device.calls) is (k > 1 and strategy is None)  # all ran once
        found, *_ = made(program, [x, np.array([1]), *states])
        assert (found.tolist(), states[0].tolist()) == ([[2]], [k, 2 * k])
        assert states[1].tolist() == [k * (k + 1) + 2 * k] * 3
    graphs = made.device.calls.count("captured")
    assert graphs == (2 if strategy is None else 0)
    assert len(made.states_at_risk) == computed


@needs_gxx
def test_places_in_a_loop_are_looked_at_in_every_round():
    """A wrong one might never let it end."""

    def function(x, i):
        k = paddle.zeros([], "int64")
        while k < 4:
            k = k + paddle.gather(x, i + k).astype("int64").sum()
        return k

    static = paddle.jit.to_static(function)
    x, right = np.array([1, 1, 2, 1], "float32"), np.array([0])
    static(paddle.to_tensor(x), paddle.to_tensor(right))
    program = static.main_program
    made = cuda.CudaExecutable(program, device=Cpu())
    for i in (right, right + 2):
        wanted = error_of(Run(NUMPY), program, [x, i])
        assert error_of(made, program, [x, i]) == wanted
    assert wanted[0] is IndexError


@pytest.mark.skipif(compiler() is None, reason="no C compiler")
def test_threads_hear_of_their_own_wrong_places_only():
    """A place may be found wrong while another run, on the same executable, looks at its own."""
    x, right = np.ones((50, 4), "float32"), np.zeros(100_000, "int64")
    wrong = right.copy()
    wrong[0] = 70
    program = program_of(lambda x, i: paddle.gather(x, i), x.shape, paddle.to_tensor(right).spec)
    run = Executable(program)

    def errors(i):
        return sum(bool(error_of(run, program, [x, i])) for _ in range(100))

    with ThreadPoolExecutor(3) as pool:
        assert [*pool.map(errors, (right, wrong, wrong))] == [0, 100, 100]
