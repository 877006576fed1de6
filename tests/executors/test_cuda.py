"""The CUDA executor on a GPU that the CPU plays: graphs, states, decisions, backends."""

from typing import ClassVar

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.engine.core.record import Spec
from minipaddle.engine.executors.executable_cache import backend_named
from minipaddle.engine.executors.native import CannotCompile
from minipaddle.executors.gpu import cuda
from minipaddle.executors.gpu import device as gpu
from minipaddle.executors.gpu.cublas import Cublas
from minipaddle.executors.gpu.cuda import CudaExecutable
from tests.codegen.cuda_on_cpu import Cpu, needs_gxx
from tests.passes.programs import cases, program_of, results

pytestmark = [pytest.mark.sweep(one_in=3), needs_gxx]
MODELS = [
    "models_vision.LeNet, step", "models_vision.MobileNet, step", "models_sequence.GPT, step",
    "models_training.recurrent", "models_dynamic.EarlyExit, step", "models_dynamic.VAE, step",
]  # fmt: skip


def made(program, strategy=None) -> cuda.CudaExecutable:
    return cuda.CudaExecutable(program, strategy, device=Cpu())


@pytest.mark.parametrize("name", MODELS)
def test_models(name):
    for case in cases(name):
        found = made(case.program)(case.program, [np.array(a) for a in case.arrays])
        for a, b in zip(case.results, found, strict=True):
            np.testing.assert_allclose(b.astype("float64"), a.astype("float64"), 1e-4, 1e-4)


# ---- graphs ----------------------------------------------------------------------------------


def counter(size: int = 2):
    """A program that adds its input to a state, and the state's first value."""
    total = paddle.zeros([size])

    def step(x):
        total.add_(x)
        return total * 2.0

    return program_of(step, [size]), np.zeros(size, "float32")


def test_nothing_is_captured_where_the_strategy_says_so():
    program, total = counter()
    executable = made(program, {"allow_cuda_graph_capture": False})
    for k in (1, 2, 3):
        executable(program, [np.array([1, 2], "float32"), total])
        assert total.tolist() == [k, 2 * k]
    assert "captured" not in executable.device.calls


def test_the_second_run_is_captured_and_the_others_replay_it():
    program, total = counter()
    executable, x = made(program), np.array([1, 2], "float32")
    calls = executable.device.calls
    for k, wanted in enumerate([["launch"], ["captured", "graph"], ["graph"]], 1):
        calls.clear()
        (doubled, same) = executable(program, [x, total])
        assert [c for c in calls if c != "launch"] == [c for c in wanted if c != "launch"]
        assert same is total
        assert total.tolist() == [k, 2 * k]
        assert doubled.tolist() == [2 * k, 4 * k]


def test_what_can_not_be_captured_is_launched_step_by_step(monkeypatch):
    """A warning says so, once; nothing is done twice."""

    def refused(self, steps):
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(Cpu, "record_graph", refused)
    program, total = counter()
    executable, x = made(program), np.array([1, 2], "float32")
    executable(program, [x, total])
    with pytest.warns(UserWarning, match="one by one: operation not permitted"):
        executable(program, [x, total])
    executable(program, [x, total])
    assert total.tolist() == [3, 6]


def test_results_stay_what_they_were():
    program, total = counter()
    executable, x = made(program), np.ones(2, "float32")
    kept = [executable(program, [x, total])[0] for _ in range(4)]
    assert [y[0] for y in kept] == [2, 4, 6, 8]


@pytest.mark.parametrize("size", [2, 5000])
def test_states_that_moved_are_found_again(size):
    program, total = counter(size)
    executable, x = made(program), np.ones(size, "float32")
    for _ in range(3):
        executable(program, [x, total])
    for k in range(1, 5):
        other = np.full(size, 10 * k, "float32")
        doubled, same = executable(program, [x, other])
        assert same is other
        assert set(other) == {10 * k + 1}
        assert set(doubled) == {20 * k + 2}
    assert set(total) == {3}
    assert executable.device.calls.count("captured") == (2 if size == 2 else 1)


class WatchedArray(np.ndarray):
    """An array that writes down the bytes of what is copied to it or from it."""

    log: ClassVar[list[int]] = []

    def __setitem__(self, key, value):
        self.log.append(getattr(value, "nbytes", 0))
        super().__setitem__(key, value)

    def copy(self):
        self.log.append(self.nbytes)
        return super().copy()


class WatchedCpu(Cpu):
    """A device whose arrays are watched."""

    def empty(self, size, dtype):
        return super().empty(size, dtype).view(WatchedArray)

    def to_device(self, array):
        return np.asarray(array).view(WatchedArray)

    def write(self, array, values):
        self.calls.append("write")
        np.copyto(array, values)


def watch_copies(executable, program, arrays) -> list[int]:
    """The bytes of the copies of a call."""
    WatchedArray.log.clear()
    executable(program, arrays)
    return sorted(WatchedArray.log)


def test_a_step_copies_neither_inputs_nor_outputs_nor_states():
    """Statistics of a norm are updated before the loss picks its labels, which are checked first;
    so are tokens, and positions that the program counts need no check.
    """
    words, norm = nn.Embedding(9, 4), nn.BatchNorm1D(4)
    head = nn.Linear(4, 5)
    layers = nn.LayerList([words, norm, head])
    optimizer = paddle.optimizer.Adam(0.01, parameters=layers.parameters())

    def step(tokens, labels):
        x = words(tokens) + words(paddle.arange(6))
        loss = F.cross_entropy(head(norm(x)), labels.reshape([-1]))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    program = program_of(step, Spec((6,), np.dtype("int64")), Spec((6, 1), np.dtype("int64")))
    executable = CudaExecutable(program, device=WatchedCpu())
    assert executable.states_at_risk == []
    states = [np.array(s.storage.read()) for s in program.states]
    states = [a.view(WatchedArray) for a in states]
    good, bad = np.arange(6) % 5, np.arange(6)
    for _ in range(3):
        copies = watch_copies(executable, program, [good, good[:, None], *states])
    assert copies == [32]  # what the checks say
    before = [a.tolist() for a in states]
    with pytest.raises(IndexError, match="5 is no number from 0 to 4"):
        executable(program, [good, bad[:, None], *states])
    assert [a.tolist() for a in states] == before


def test_a_small_state_that_lies_still_again_is_not_copied():
    program, total = counter()
    executable = CudaExecutable(program, device=WatchedCpu())
    x, other = np.ones(2, "float32"), np.zeros(2, "float32").view(WatchedArray)
    total = total.view(WatchedArray)
    copies = [len(watch_copies(executable, program, [x, total])) for _ in range(3)]
    assert copies == [0, 0, 0]
    copies = [len(watch_copies(executable, program, [x, other])) for _ in range(2 * cuda.STILL)]
    assert copies == [2] * cuda.STILL + [0] * cuda.STILL
    assert (total.tolist(), other.tolist()) == ([3, 3], [2 * cuda.STILL] * 2)
    copies = [len(watch_copies(executable, program, [x, total])) for _ in range(3 * cuda.STILL)]
    assert copies == [2] * 2 * cuda.STILL + [0] * cuda.STILL
    assert total.tolist() == [3 + 3 * cuda.STILL] * 2


def test_inputs_and_outputs_lie_elsewhere_in_each_call():
    """One graph serves all calls. What cuBLAS reads or writes lies in the context, and what is no
    kernel's: the first result, and the third.
    """

    def function(x, y, z):
        product = x @ y
        return product + 1.0, (z * 2.0).reshape([4, 100]), y, product.sum(1)

    program = program_of(function, [20, 30], [30, 20], [20, 20])
    executable = CudaExecutable(program, device=WatchedCpu())
    assert [*executable.slots] == [("input", 2), ("output", 1), ("output", 3)]
    kept, wanted = [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        arrays = [rng.standard_normal(r.shape).astype("float32") for r in program.inputs]
        wanted += results(program, arrays)
        kept += executable(program, [a[::-1][::-1] for a in arrays])
    for a, b in zip(wanted, kept, strict=True):
        np.testing.assert_allclose(b, a, 1e-4, 1e-4)
    assert len({b.ctypes.data for b in kept}) == len(kept)
    assert executable.device.calls.count("captured") == 1


def test_an_input_that_shares_memory_with_a_state_is_read_as_it_was():
    program, total = counter(400)
    executable = made(program)
    for _ in range(4):
        doubled, _ = executable(program, [total[:], total])  # of which each call adds itself
        assert set(total) == {0}
        total += 1
        doubled, _ = executable(program, [total[:], total])
        assert (set(doubled), set(total)) == ({4}, {2})
        total[...] = 0


def test_two_runs_at_a_time_have_memory_of_their_own():
    program, total = counter()
    executable = made(program)
    executable(program, [np.ones(2, "float32"), total])
    (first,) = executable.contexts
    executable.contexts.clear()  # as if it were running
    executable(program, [np.ones(2, "float32"), total])
    assert executable.contexts != [first]
    assert total.tolist() == [2, 2]


def test_a_state_of_another_shape_is_refused():
    program, _ = counter()
    with pytest.raises(ValueError, match=r"shape \[3\] where \[2\]"):
        gpu.Gpu.as_input(Cpu(), np.zeros(3, "float32"), program.given[0].spec)


# ---- what the host decides -------------------------------------------------------------------


def test_branches_and_loops_are_decided_by_the_host():
    def function(x):
        def double():
            return x * 2.0

        def negative():
            return -x

        y = paddle.static.nn.cond(x.sum() > 0, double, negative)
        k, y = paddle.static.nn.while_loop(
            lambda k, y: k < 5, lambda k, y: [k + 1, y * 2.0 + x], [paddle.to_tensor(0), y]
        )
        return k, y

    program = program_of(function, [3])
    executable = made(program)
    for x in ([1, 2, 3], [-1, -2, -3], [1, 1, 1]):
        arrays = [np.array(x, "float32"), *(np.array(s.storage.read()) for s in program.states)]
        for a, b in zip(results(program, arrays), executable(program, arrays), strict=True):
            np.testing.assert_allclose(b, a)
    assert "captured" not in executable.device.calls


def test_what_has_no_kernel_is_computed_by_array_operations():
    program = program_of(lambda x: [paddle.sort(x * 2.0), paddle.linalg.inv(x) + 1.0], [3, 3])
    executable = made(program)
    assert {r.op.name for r in executable.kernels.hosted} == {"sort", "inverse"}
    x = np.random.default_rng(0).standard_normal((3, 3)).astype("float32")
    for _ in range(3):
        for a, b in zip(results(program, [x]), executable(program, [x]), strict=True):
            np.testing.assert_allclose(b, a, 1e-5)
    assert "captured" not in executable.device.calls


def test_a_run_that_fails_leaves_the_states_as_they_were():
    total = paddle.to_tensor([1.0])

    def step(x):
        total.add_(total)
        return paddle.linalg.inv(x)

    program = program_of(step, [2, 2])
    executable, state = made(program), np.ones(1, "float32")
    with pytest.raises(ValueError, match="Singular matrix"):
        executable(program, [np.zeros((2, 2), "float32"), state])
    assert state.tolist() == [1]
    executable(program, [np.eye(2, dtype="float32"), state])
    assert state.tolist() == [2]


def test_sizes_that_values_say_are_left_to_the_interpreter():
    program = program_of(lambda x: paddle.nonzero(x), [3])
    with pytest.raises(CannotCompile, match="sizes that depend on values"):
        made(program)


# ---- backends --------------------------------------------------------------------------------


def trained(static):
    """Losses of a small network under `to_static`."""
    paddle.seed(1)
    net = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 3))
    optimizer = paddle.optimizer.AdamW(0.05, parameters=net.parameters())

    @static
    def step(x, y):
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    rng = np.random.default_rng(0)
    x = paddle.to_tensor(rng.standard_normal((6, 4)).astype("float32"))
    y = paddle.to_tensor(rng.integers(0, 3, 6))
    return [float(step(x, y)) for _ in range(5)], step


def test_without_a_gpu_the_reason_is_said():
    losses, step = trained(lambda f: paddle.jit.to_static(f, backend="cuda"))
    (reason,) = set(step.concrete_program.executables.reasons.values())
    assert "the place is the CPU" in reason
    assert losses[-1] < losses[0]


def test_a_gpu_that_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(gpu, "gpu", lambda: "CuPy finds no CUDA device")
    gpu.open_gpu.cache_clear()
    with pytest.raises(CannotCompile, match="no usable GPU: CuPy finds no CUDA device"):
        cuda.CudaExecutable(counter()[0])
    gpu.open_gpu.cache_clear()


def test_backends_have_names():
    assert backend_named("cuda") == "cuda"
    with pytest.raises(ValueError, match="cuda"):
        backend_named("opencl")


def test_products_are_rounded_to_tf32_as_long_as_the_flag_is_set():
    program = program_of(lambda x: x @ x, [4, 4])
    executable, x, asked = made(program), np.eye(4, dtype="float32"), []
    executable.device.gemm = lambda call, *addresses: asked.append(call.tf32)
    for flag in (False, True, False):
        paddle.set_flags({"FLAGS_enable_cublas_tensor_op_math": flag})
        for _ in range(3):
            executable(program, [x])
    assert asked == [False] * 3 + [True] * 3 + [False] * 3
    assert [c for c in executable.device.calls if c != "graph"] == ["captured"] * 3


class Library:
    """A cuBLAS that writes down how it was called."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        def call(*args):
            values = [getattr(getattr(a, "_obj", a), "value", a) for a in args]
            self.calls.append((name, values))
            return 13 if "Gemm" in name and self.fails else 0

        return call

    fails = False


def test_cublas_is_asked_for_the_transposed_product(monkeypatch):
    library = Library()
    monkeypatch.setattr("minipaddle.executors.gpu.cublas.library", lambda: library)
    blas = Cublas(7, 4096, 32)
    program = program_of(lambda x, y: paddle.matmul(x, y, transpose_y=True), [2, 3, 4], [2, 5, 4])
    (work,) = [w for w in made(program).kernels.of.values() if w.calls]
    blas.gemm(work.calls[0], 100, 200, 300)
    name, args = library.calls[-1]
    assert name == "cublasGemmStridedBatchedEx"
    assert args[1:6] == [1, 0, 5, 3, 4]  # yᵀ turned back, x as it is; n, m, k
    assert args[7:11] == [200, 0, 4, 20]
    assert args[11:15] == [100, 0, 4, 12]
    assert args[16:] == [300, 0, 5, 15, 2, 68, -1]
    blas.gemm(work.calls[0]._replace(starts=((0, 0, 0), (40, 90, 60))), 100, 200, 300)
    name, args = library.calls[-1]
    assert name == "cublasGemmBatchedEx"  # of arrays of addresses: no steps
    assert args[7:13] == [200, 0, 4, 100, 0, 4]
    assert args[14:] == [300, 0, 5, 2, 68, -1]
    assert (args[6], args[13]) == (1, 0)
    half = work.calls[0]._replace(dtype=np.dtype("float16"))
    blas.gemm(half, 100, 200, 300)
    _, args = library.calls[-1]
    assert (args[8], args[12], args[17], args[21]) == (2, 2, 0, 68)  # halves, summed in float32
    blas.gemm(half._replace(tf32=True), 100, 200, 300)
    assert library.calls[-1][1][21] == 68
    blas.gemm(work.calls[0]._replace(tf32=True), 100, 200, 300)
    assert library.calls[-1][1][21] == 77
    library.fails = True
    with pytest.raises(RuntimeError, match="cublasGemmStridedBatchedEx answered 13"):
        blas.gemm(work.calls[0], 100, 200, 300)


def test_arrays_may_begin_anywhere():
    """Kernels load packs of 16 bytes: what begins elsewhere is copied, a state, too."""
    size = 1 << 18
    program, _ = counter(size)
    executable = made(program)
    x, total = (np.full(size + 1, k, "float32")[1:] for k in (1, 2))
    assert all(a.ctypes.data % 16 for a in (x, total))
    doubled, new = executable(program, [x, total])
    assert (set(doubled), set(new), set(total)) == ({6}, {3}, {2})
    assert any("Pack<" in text for text in executable.kernels.texts.values())
