"""Small kernels that are one launch: the same numbers as one by one, and no race."""

from itertools import permutations

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.codegen.cuda import horizontal
from minipaddle.codegen.cuda.calls import Launch
from minipaddle.codegen.cuda.program import CudaKernels, work_of
from minipaddle.codegen.cuda.teams import MANY
from minipaddle.engine.codegen.kernel import buffers, results
from minipaddle.engine.core.record import Spec
from minipaddle.engine.passes.manager import optimized
from minipaddle.executors.gpu.cuda import CudaExecutable
from minipaddle.executors.gpu.gpu_program import GPU_PASSES, GpuProgram
from tests.codegen import nvrtc
from tests.codegen.cuda_on_cpu import Cpu, needs_gxx
from tests.passes.programs import cases, program_of
from tests.passes.programs import results as interpreted

CHIPS = (75, 80, 90)
SIZES = (2, 31, 300, 300, 1024, 5)


def apart(program, monkeypatch) -> CudaExecutable:
    """The program with a launch for each kernel."""
    with monkeypatch.context() as patch:
        patch.setattr(horizontal, "joinable", lambda call: False)
        return CudaExecutable(program, device=Cpu())


def run_both(program, arrays, monkeypatch, runs=3, near=1e-5) -> tuple[list, list]:
    """The launches of a program, joined and apart. Both give the same bits in each run, from other
    addresses each time, and what the interpreter gives.
    """
    both = CudaExecutable(program, device=Cpu()), apart(program, monkeypatch)
    for _ in range(runs):
        wanted = interpreted(program, arrays)
        found, other = (made(program, [np.array(a) for a in arrays]) for made in both)
        for a, b, c in zip(wanted, found, other, strict=True):
            np.testing.assert_array_equal(b, c)
            np.testing.assert_allclose(b, a, near, near)
        states = [s.record for s in program.states if s.update is not None]
        now = dict(zip(states, found[len(program.outputs) :], strict=True))
        arrays = [now.get(r, a) for r, a in zip(program.given, arrays, strict=True)]
    return tuple([c for _, c in made.kernels.calls()] for made in both)


def arrays_of(program) -> list:
    rng = np.random.default_rng(0)
    return [rng.normal(size=r.shape).astype(r.dtype) for r in program.given]


def vectors(gradient):
    """A step that updates vectors of several lengths, each with a moment, and a power for each."""
    weights, moments = ([paddle.ones([n]) for n in SIZES] for _ in range(2))
    powers = [paddle.ones([]) for _ in SIZES]

    def step(*inputs):
        for x, w, m, p in zip(inputs, weights, moments, powers, strict=True):
            new = m * 0.9 + gradient(x) * p
            m.set_value(new)
            w.set_value(w - new * p)
            p.set_value(p * 0.5)
        return inputs[0].tanh()

    return step


@needs_gxx
def test_updates_of_vectors_are_one_launch(monkeypatch):
    """The powers, which these read, are the next one, in which equal kernels are written once."""
    program = program_of(vectors(lambda x: x * 2.0), *[[n] for n in SIZES])
    joined, alone = run_both(program, arrays_of(program), monkeypatch)
    assert [len(call.parts) for call in joined] == [len(SIZES), len(SIZES)]
    assert [call.blocks for call in joined] == [(11, 1), (6, 1)]
    assert [call.source.count("if (block <") for call in joined] == [len(SIZES), 1]
    assert len(alone) == 2 * len(SIZES)


@needs_gxx
def test_ends_of_long_reductions_are_one_launch(monkeypatch):
    """Gradients are sums of columns: parts of sums, and what joins them and updates a vector. Two
    are short, one kernel each: their powers need not wait.
    """
    program = program_of(vectors(lambda x: x.sum(0)), *[[2000, n] for n in SIZES])
    joined, alone = run_both(program, arrays_of(program), monkeypatch, near=2e-3)
    split = sum(2000 * n >= MANY for n in SIZES)
    assert split == 4
    assert [len(call.parts) for call in joined] == [0] * len(SIZES) + [len(SIZES), split]
    assert len(alone) == split + 2 * len(SIZES)


@needs_gxx
def test_what_a_record_needs_is_launched_before_it(monkeypatch):
    def function(x, y, z):
        a, b = x.exp(), y.t() * 2.0
        return a @ b, z.tanh(), (a @ b + x) * 3.0

    program = program_of(function, [20, 20], [20, 20], [7])
    joined, _ = run_both(program, arrays_of(program), monkeypatch)
    assert [len(c.parts) if isinstance(c, Launch) else "product" for c in joined] == [
        2,
        "product",
        2,
    ]


@needs_gxx
def test_a_result_lies_over_no_input_of_another_kernel(monkeypatch):
    """Two kernels read a product, which one of them could overwrite."""

    def function(x):
        y = x @ x
        return (y * 2.0) @ (paddle.concat([y, y], 1) + 1.0)

    program = program_of(function, [20, 20])
    joined, alone = run_both(program, arrays_of(program), monkeypatch)
    assert len(alone) == 1 + len(joined)
    fusion = horizontal.HorizontalFusion(optimized(program, **GPU_PASSES).program, work_of)
    (pair,) = (r for r in fusion.program.records if r.op is horizontal.LOWERED)
    assert horizontal.in_place(pair) == []


@needs_gxx
def test_branches_and_loops(monkeypatch):
    def function(x, y):
        k = paddle.zeros([])
        while k < 3.0:
            x, y, k = x * 0.5 + k, y.tanh() - 1.0, k + 1.0
        return x, y

    step = paddle.jit.to_static(function)
    step(paddle.ones([30]), paddle.ones([40]))
    program = step.concrete_program.program
    arrays = [np.linspace(-1, 1, n, dtype="float32") for n in (30, 40)]
    arrays += arrays_of(program)[2:]
    joined, alone = run_both(program, arrays, monkeypatch)
    assert len(joined) < len(alone)


def test_large_kernels_and_indices_stay_alone():
    def function(x, y, i):
        return x * 2.0, x + 1.0, y * 2.0, paddle.gather(y, i + 1), i * 2

    program = program_of(function, [200, 200], [9], Spec((3,), np.dtype("int64")))
    kernels = CudaKernels(optimized(program, **GPU_PASSES).program)
    assert not any(c.parts for _, c in kernels.calls())


def ranges(gpu: GpuProgram, record, part: Launch) -> dict[str, list[tuple]]:
    """The memory that a kernel reads, and that it writes: (place, first byte, end)."""
    found: dict[str, list[tuple]] = {"in": [], "out": []}
    specs = {"in": [x.spec for x in buffers(record)], "out": results(record)}
    for o in part.given:
        kind, k, start = gpu.locate(record, o)
        nbytes = specs[o.kind][o.k].nbytes - o.offset
        found[o.kind].append(((kind, k), start, start + nbytes))
    return found


def overlap(a, b) -> bool:
    return a[0] == b[0] and a[1] < b[2] and b[1] < a[2]


MODELS = ["models_vision.ResNet, step", "models_sequence.GPT, step", "models_vision.LeNet, step"]


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize("name", MODELS)
def test_kernels_of_a_launch_do_not_disturb_each_other(name):
    """No kernel writes what another one of its launch reads or writes."""
    count = 0
    for case in cases(name)[-1:]:
        gpu = GpuProgram(case.program, device=Cpu())
        for record, call in gpu.kernels.calls():
            own = [ranges(gpu, record, part) for part in getattr(call, "parts", ())]
            for a, b in permutations(own, 2):
                assert not any(overlap(x, y) for x in a["out"] for y in (*b["in"], *b["out"]))
            count += len(own)
    assert count > 5


@needs_gxx
@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize("name", MODELS)
def test_steps_give_the_same_bits(name, monkeypatch):
    case = cases(name)[-1]
    joined, alone = run_both(case.program, case.arrays, monkeypatch, 1, 1e-3)
    assert len(joined) < len(alone)


@pytest.mark.skipif(
    nvrtc.library() is None, reason="needs NVRTC: pip install nvidia-cuda-nvrtc-cu12"
)
def test_joined_kernels_compile():
    """Elements, ends of reductions of columns and of rows, halves, all in one kernel."""

    def function(x, y, z):
        half = z.astype("bfloat16") * 2.0
        return x.sum(0), x.t().sum(1) * 2.0, y.sum(-1).sqrt(), z.tanh(), half, z > 0

    program = program_of(function, [4000, 9], [5, 40_000], [77])
    kernels = CudaKernels(optimized(program, **GPU_PASSES).program)
    last = [c for _, c in kernels.calls()][-1]
    assert len(last.parts) == 3
    assert len({part.threads for part in last.parts}) == 2
    for chip in CHIPS:
        assert not nvrtc.compile_error(kernels.text, chip)
