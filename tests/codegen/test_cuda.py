"""CUDA kernels: NVRTC compiles them for three chips, and a CPU that plays the GPU runs them."""

import re
from dataclasses import replace
from functools import cache, partial
from math import prod

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle.codegen.cuda.calls import Gemm, Launch
from minipaddle.codegen.cuda.horizontal import LOWERED
from minipaddle.codegen.cuda.program import CudaKernels
from minipaddle.codegen.cuda.teams import BUSY, Teams, teams_of
from minipaddle.engine.core.record import Spec
from minipaddle.engine.ir.control import fused
from minipaddle.engine.passes.manager import optimized
from minipaddle.executors.gpu.cuda import CudaExecutable
from minipaddle.executors.gpu.gpu_program import GPU_PASSES
from minipaddle.ops.products import product, wide_product
from tests.benchmarks.models import step_of
from tests.benchmarks.workloads import WORKLOADS, gpt
from tests.codegen import nvrtc
from tests.codegen.cuda_on_cpu import Cpu, needs_gxx
from tests.gpu.launches import call_bytes
from tests.passes.programs import cases, program_of, results

pytestmark = pytest.mark.sweep(one_in=4)

CHIPS = (75, 80, 90)
needs_nvrtc = pytest.mark.skipif(
    nvrtc.library() is None, reason="needs NVRTC: pip install nvidia-cuda-nvrtc-cu12"
)


def on_both(function, *arrays, near=1e-5) -> CudaExecutable:
    """A function's results on the emulated GPU are those of the interpreter."""
    arrays = [np.asarray(a) for a in arrays]
    program = program_of(function, *(paddle.to_tensor(a).spec for a in arrays))
    executable = CudaExecutable(program, device=Cpu())
    found = executable(program, [a.copy() for a in arrays])
    for a, b in zip(results(program, arrays), found, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(b, a, near, near)
    return executable


def random(*shape, dtype="float32"):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def launches(executable) -> list[Launch]:
    works = [w for w in executable.kernels.of.values() if w is not None]
    return [c for w in works for c in w.calls if isinstance(c, Launch)]


# ---- loop nests ------------------------------------------------------------------------------


@needs_gxx
@pytest.mark.parametrize("shape", [(1,), (300,), (3, 5, 7), (3, 1, 2)])
def test_elements(shape):
    on_both(lambda x: (x * 2.0).exp().transpose([*range(len(shape))][::-1]), random(*shape))


PACKED = {
    "all of one shape": (lambda x, y, b: x.tanh() * y + x, True),
    "a row for all": (lambda x, y, b: (x + b).exp() * 0.5, True),
    "two dtypes": (lambda x, y, b: ((x > 0), x.astype("float64") + y), True),
    "halves": (lambda x, y, b: x.astype("bfloat16") * 2.0, True),
    "from a whole pack on": (lambda x, y, b: x[:, 4:] * y[:, :-4], True),
    "from within a pack": (lambda x, y, b: x[:, 2:-2] * y[:, 4:], True),
    "padded": (lambda x, y, b: F.pad(x, [0, 0, 2, 2], value=1.0) * 2.0, True),
    "counted": (lambda x, y, b: paddle.arange(600, dtype="float32") * x, True),
    "transposed": (lambda x, y, b: x.t() + 1.0, False),
    "rows of 6 bytes": (lambda x, y, b: x[:, :-1] * 2.0, False),
}


@needs_gxx
@pytest.mark.parametrize("name", PACKED)
def test_neighbours_are_loaded_in_packs(name):
    function, packed = PACKED[name]
    arrays = random(500, 600), random(500, 600)[::-1], random(600)
    made = on_both(function, *arrays, near=2e-2 if name == "halves" else 1e-5)
    assert any("Pack<" in call.source for call in launches(made)) == packed


ROWS_OF_PACKS = {
    "softmax": lambda x, w: F.softmax(x, -1),
    "layer_norm": lambda x, w: F.layer_norm(x, [x.shape[-1]], w, w),
    "sum": lambda x, w: ((x * w).sum(-1), x.max(-1)),
    "several stages": lambda x, w: normalize(x, 1),
}


@needs_gxx
@pytest.mark.parametrize("name", ROWS_OF_PACKS)
@pytest.mark.parametrize("shape", [(520, 1024), (600, 516), (128, 2100)])
def test_teams_load_packs_of_rows(name, shape):
    """Of whole ones, and of rows that end within the last turn of the team."""
    made = on_both(ROWS_OF_PACKS[name], random(*shape), random(shape[1]), near=1e-4)
    assert all("Pack<" in call.source for call in launches(made))


@needs_gxx
def test_a_sum_of_what_is_counted_loads_nothing():
    on_both(lambda x: x + paddle.arange(1 << 18, dtype="float64").sum(), random(1), near=1e-6)


@needs_nvrtc
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_packs_are_one_instruction(dtype):
    """16 bytes: four floats, two doubles, four pairs of halves."""
    word = "v2" if dtype == "float64" else "v4"
    function = lambda x, y: (x * y + x).tanh()
    specs = [Spec((1024, 1024), paddle.empty([0], dtype).spec.dtype)] * 2
    kernels = CudaKernels(optimized(program_of(function, *specs)).program)
    for chip in CHIPS[1:]:
        text = nvrtc.ptx(kernels.text, chip)
        found = re.findall(r"(ld|st)\.global\.(v\d)", text)
        assert found == [("ld", word), ("ld", word), ("st", word)]
        assert "local" not in text  # registers hold them


ROWS = [(3, 2), (130, 4), (5, 9), (6, 1000), (3, 2000), (2, 9000), (1, 7)]


@needs_gxx
@pytest.mark.parametrize("shape", ROWS)
def test_rows(shape):
    def function(x):
        y = paddle.nn.functional.softmax(x, -1)
        return y, x.max(-1), (x - x.mean(-1, keepdim=True)).abs().sum(-1)

    on_both(function, random(*shape), near=1e-4)


@needs_gxx
@pytest.mark.parametrize("shape", [(3, 2), (200, 33), (700, 5), (40, 64), (7, 3, 40)])
def test_columns(shape):
    def function(x):
        y = x - x.mean(0, keepdim=True)
        return y / (y * y).mean(0, keepdim=True), x.min(0), (x > 0).any(0), (x > 9).all(0)

    on_both(function, random(*shape), near=1e-4)


@needs_gxx
@pytest.mark.parametrize("axis", [0, 1])
def test_a_value_of_a_row_is_spread_over_it(axis):
    def function(x):
        total = (x * 2.0).sum(axis, keepdim=True)
        return total.expand([40, 50]) + 1.0, x - total

    on_both(function, random(40, 50))


@needs_gxx
@pytest.mark.parametrize("function", [
    lambda x: (x.sum(), x.max() * 2.0),
    lambda x: (x.sum(-1), x.min(-1)),
    lambda x: (x.sum(0), (x * x).mean(0)),
])  # fmt: skip
@pytest.mark.parametrize("shape", [(9000, 5), (5, 9000)])
def test_few_long_rows_are_split(function, shape):
    made = on_both(function, random(*shape, dtype="float64"))
    if any(c.name.endswith("_joined") for c in launches(made)):
        assert any(c.blocks[1] > 1 for c in launches(made))
    else:
        assert min(shape) == 5


@needs_gxx
def test_what_is_split_is_joined_with_the_formula_around_it():
    made = on_both(lambda x: (x.sum() / 3.0).sqrt(), random(50, 1000) ** 2, near=1e-4)
    first, second = launches(made)
    assert first.blocks[1] > 1
    assert "sqrtf" in second.source


def normalize(x, axis):
    """Two reductions of a row, results of its elements after each stage, and one of the row."""
    y = x - x.mean(axis, keepdim=True)
    return y, y / (y * y).mean(axis, keepdim=True).sqrt(), (y * y).mean(axis) * 3.0


def gate(x, axis):
    """A result of each element, and what is reduced of it: a gradient and its sum."""
    y = paddle.where(x > 0, x * 2.0, x * 0.0)
    return y, y.sum(axis), x.max(axis)


@needs_gxx
@pytest.mark.parametrize("function", [normalize, gate])
@pytest.mark.parametrize(
    ("shape", "axis"), [((4099, 9), 0), ((7, 5001), 1), ((19, 140, 65), (0, 1))]
)
def test_results_of_elements_of_split_rows(function, shape, axis):
    """Each stage is a kernel on many blocks, and the results of rows are another."""
    made = on_both(lambda x: function(x, axis), random(*shape), near=1e-4)
    *walks, rows = launches(made)
    assert len(walks) == (3 if function is normalize else 1)
    assert all(prod(walk.blocks) >= BUSY for walk in walks)
    assert rows.name.endswith("_joined")


@needs_gxx
def test_states_are_updated_where_they_are_after_all_parts_are_read():
    """The weight of a norm, which a result of elements needs too, and running statistics."""
    mean, weight = paddle.zeros([6]), paddle.ones([6])

    def step(x):
        now = x.mean(0)
        y = (x - now) * weight
        mean.set_value(mean * 0.9 + now * 0.1)
        weight.set_value(weight - (y * x).sum(0) * 0.001)
        return y

    program = program_of(step, [6000, 6])
    x, executable = random(6000, 6), CudaExecutable(program, device=Cpu())
    states = [np.full(6, k, "float32") for k in (0.5, 2)]
    for _ in range(3):
        wanted = results(program, [x, *map(np.copy, states)])
        found = executable(program, [x, *states])
        for a, b in zip(wanted, found, strict=True):
            np.testing.assert_allclose(b, a, 1e-4, 1e-4)
    assert max(prod(c.blocks) for c in launches(executable)) >= BUSY


STEPS = {"gpt": {"net": partial(gpt.net, layers=1)}, "resnet": {}}
"""Steps whose reductions are large; of GPT's layers one is enough."""


@cache
def kernels_of_step(name: str, **options) -> CudaKernels:
    """The kernels of a training step; `options` are of passes."""
    statics = []
    workload = replace(WORKLOADS[name], **STEPS[name])
    whole = lambda step: statics.append(paddle.jit.to_static(step)) or statics[0]
    step_of(paddle, workload, whole=whole)()
    program = statics[0].concrete_program.program
    return CudaKernels(optimized(program, **GPU_PASSES | options).program)


@pytest.mark.parametrize("name", STEPS)
def test_no_kernel_over_a_megabyte_has_few_blocks(name):
    """Names, blocks, threads and bytes of all kernels of nests of a training step."""
    kernels = kernels_of_step(name)
    nests = lambda record: record.op in (fused, LOWERED) or record.op.kind == "reduction"
    calls = [(r, c) for r, c in kernels.calls() if isinstance(c, Launch) and nests(r)]
    calls = [(r, c) for r, c in calls if "_conv_" not in c.name]  # products, which have tiles
    rows = [(c.name, prod(c.blocks), c.threads, call_bytes(r, c)) for r, c in calls]
    assert len(rows) > 30
    assert any(nbytes > 1 << 20 for *_, nbytes in rows)
    assert [row for row in rows if row[3] > 1 << 20 and row[1] < BUSY] == []


def test_products_of_attention_are_one_call_each():
    """Of views of [batch, length, 3, heads, size], batch and heads do not join."""
    kernels = kernels_of_step("gpt", strip_products=False)
    products = [c for _, c in kernels.calls() if isinstance(c, Gemm)]
    counts = [c.count for c in products if c.starts]
    assert counts == [len(c.starts) for c in products if c.starts]
    assert (counts, len(products)) == ([32] * 6, 22)


@needs_gxx
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(300, 8), (20, 1100), (70, 70)])
def test_a_maximum_keeps_nan(axis, shape):
    x = random(*shape)
    x[5, 6] = np.nan
    on_both(lambda x: (x.max(axis), x.min(axis)), x)


@needs_gxx
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int32", "int8", "bool"])
def test_dtypes(dtype):
    x = paddle.to_tensor(random(40, 50)).astype(dtype).numpy()
    near = 1e-2 if dtype.endswith("16") else 1e-6
    on_both(lambda x: (x.astype("float32").sum(0), paddle.where(x > 0, x, x)), x)
    if dtype != "bool":
        on_both(lambda x: (x * x + x, x.max(1)), x, near=near)


@needs_gxx
def test_random_numbers_are_the_interpreters():
    def function(state):
        paddle.seed(3)
        return [paddle.rand([40]), paddle.randint(0, 9, [50])]

    program = program_of(function, [1])
    arrays = [np.zeros(1, "float32"), *(s.storage.read() for s in program.states)]
    found = CudaExecutable(program, device=Cpu())(program, [np.array(a) for a in arrays])
    for a, b in zip(results(program, arrays), found, strict=True):
        np.testing.assert_array_equal(a, b)


def test_neighbouring_threads_read_neighbouring_memory():
    class Shape:
        def __init__(self, parallel, reduction, loops):
            self.parallel_loops, self.reduction_loops, self.loops = parallel, reduction, loops

    class Loop:
        def __init__(self, extent):
            self.extent = extent

    i, j = Loop(64), Loop(500)
    assert teams_of(Shape([i], [j], [i, j])) == Teams(32, 4, False)
    assert teams_of(Shape([j], [i], [i, j])) == Teams(8, 32, True)
    assert teams_of(Shape([i], [j], [j, i])) == Teams(16, 32, True)
    assert Teams(32, 4, False).threads == (32, 4)
    assert Teams(8, 32, True).threads == (32, 8)


@needs_gxx
def test_equal_kernels_are_written_once():
    def function(x, y):
        return paddle.matmul(x, x).exp(), paddle.matmul(y, y).exp(), paddle.matmul(y, x)

    made = on_both(function, random(140, 140) / 12, random(140, 140) / 12, near=1e-4)
    assert len(launches(made)) == 2
    assert len(made.compile()) == 1


@needs_gxx
@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("find", [paddle.argmax, paddle.argmin])
def test_places_of_extremes(find, axis):
    x = random(70, 90).round(1)  # many are equal
    made = on_both(lambda x: find(x, axis), x)
    x[3, 5] = x[60, 80] = np.nan
    on_both(lambda x: find(x, axis), x)
    assert not made.kernels.hosted


@needs_gxx
def test_a_race_shows():
    """Every thread reads what another writes, and does not wait for it."""
    text = """extern "C" __global__ void __launch_bounds__(64) race(float *x, float *y)
{
    x[threadIdx.x] = threadIdx.x;
    WAIT
    y[blockIdx.x * 64 + threadIdx.x] = x[threadIdx.x ^ 1];
}
"""
    for wait, right in (("", False), ("__syncthreads();", True)):
        device, x, y = Cpu(), np.zeros(64, "float32"), np.zeros((2, 64), "float32")
        (race,) = device.compile(text.replace("WAIT", wait), ["race"]).values()
        device.launch(race, (2, 1), (64, 1), [x.ctypes.data, y.ctypes.data])
        assert (y == np.arange(64) ^ 1).all() == right


# ---- products --------------------------------------------------------------------------------

PERMS = [
    ((5, 6), (6, 7), (0, 1), (0, 1), (0, 1)),
    ((6, 5), (7, 6), (1, 0), (1, 0), (1, 0)),
    ((3, 5, 6), (3, 6, 7), (0, 1, 2), (0, 1, 2), (0, 1, 2)),
    ((5, 3, 6), (6, 3, 7), (1, 0, 2), (1, 0, 2), (1, 0, 2)),
    ((2, 5, 3, 6), (2, 7, 3, 6), (0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3)),
    ((1, 5, 6), (3, 6, 7), (0, 1, 2), (0, 1, 2), (1, 0, 2)),
    ((4, 1), (1, 9), (0, 1), (0, 1), (0, 1)),
    ((1, 6), (6, 1), (0, 1), (0, 1), (0, 1)),
    ((20, 40), (40, 33), (0, 1), (0, 1), (0, 1)),
]
TILED = [
    ((5, 6, 3), (6, 7, 3), (2, 0, 1), (2, 0, 1), (1, 2, 0)),
    ((20, 3, 2), (2, 20, 18), (2, 1, 0), (0, 1, 2), (0, 1, 2)),
    ((40, 2, 36), (36, 2, 18), (1, 0, 2), (1, 0, 2), (1, 2, 0)),
]


@needs_gxx
@pytest.mark.parametrize(("x", "y", "x_perm", "y_perm", "out_perm"), PERMS + TILED)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_products(x, y, x_perm, y_perm, out_perm, dtype):
    a, b = random(*x).round(1) * 10, random(*y).round(1) * 10
    how = {"x_perm": x_perm, "y_perm": y_perm, "out_perm": out_perm}
    made = on_both(lambda x, y: product(x, y, **how), a.astype(dtype), b.astype(dtype), near=1e-3)
    (call,) = [c for w in made.kernels.of.values() for c in w.calls]
    assert isinstance(call, Gemm) == (
        dtype != "int32" and (x, y, x_perm, y_perm, out_perm) in PERMS
    )


@needs_gxx
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_products_of_halves_are_summed_and_kept_in_float32(dtype):
    """Of two casts, also before a view; not of one. So in `affine`: its body is of float32."""
    x, w, b = (
        paddle.to_tensor(random(*s)).astype(dtype).numpy() for s in [(2, 30, 40), (40, 50), (50,)]
    )

    def function(x, w, b, z):
        wide = x.astype("float32").reshape([60, 40]) @ w.astype("float32")
        y = F.linear(x, w, b)
        return wide, y, x.astype("float32") @ z, F.linear(y, w.t())

    made = on_both(function, x, w, b, random(40, 3), near=2e-2)
    calls = [c for work in made.kernels.of.values() for c in work.calls if isinstance(c, Gemm)]
    assert [(c.dtype.name, c.result.name) for c in calls].count((dtype, "float32")) == 2
    assert len(calls) == 3  # that of the casts is `linear`'s, too


@needs_gxx
@pytest.mark.parametrize(("x", "y", "x_perm", "y_perm", "out_perm"), PERMS[3:5] + TILED)
def test_wide_products_of_any_order(x, y, x_perm, y_perm, out_perm):
    how = {"x_perm": x_perm, "y_perm": y_perm, "out_perm": out_perm}
    a, b = (paddle.to_tensor(random(*s)).astype("bfloat16").numpy() for s in (x, y))
    made = on_both(lambda x, y: product(x.astype("float32"), y.astype("float32"), **how), a, b)
    assert [r.op for r in made.program.records] == [wide_product]


@needs_gxx
def test_a_product_of_nothing_is_zero():
    on_both(
        lambda x, y: paddle.matmul(x, y), np.zeros((3, 0), "float32"), np.zeros((0, 2), "float32")
    )


# ---- what NVRTC says -------------------------------------------------------------------------

MODELS = [
    "models_vision.Mlp, step", "models_vision.LeNet, step", "models_vision.ResNet, step",
    "models_sequence.GPT, step", "models_training.recurrent",
]  # fmt: skip


@needs_nvrtc
@pytest.mark.parametrize("name", MODELS)
def test_kernels_compile(name):
    for case in cases(name)[-1:]:
        kernels = CudaKernels(optimized(case.program, **GPU_PASSES).program)
        assert kernels.written
        for chip in CHIPS:
            assert not nvrtc.compile_error(kernels.text, chip)


@needs_nvrtc
def test_what_does_not_compile_is_noticed():
    assert "undefined" in nvrtc.compile_error('extern "C" __global__ void k() { what(); }', 80)


# ---- large -----------------------------------------------------------------------------------


def test_what_32_bits_can_not_count_is_counted_otherwise():
    """cuBLAS takes ints: such a product is the host's. Numbers of blocks are unsigned ints."""

    def kernels(function, *shapes):
        return CudaKernels(optimized(program_of(function, *shapes), **GPU_PASSES).program)

    for n, hosted in ((2**31 - 1, []), (2**31, ["product"])):
        found = kernels(lambda x, y: x @ y, [n, 4], [4, 4])
        assert [r.op.name for r in found.hosted] == hosted
    for n, number in ((2**20, "= blockIdx.x"), (2**33, "= (int64_t)blockIdx.x")):
        assert number in kernels(lambda x: x.sum(-1), [n, 30]).body


def test_updates_of_vectors_have_no_launch_of_their_own():
    """In a GPT step they go with small kernels that others need, and the last ones together: all 36
    powers of beta, and what joins parts of sums and updates biases and norms.
    """
    kernels = kernels_of_step("gpt")
    launches = [c for _, c in kernels.calls() if isinstance(c, Launch)]
    names = [s.record.attrs["name"] for s in kernels.program.states if s.update is not None]
    assert sum("_pow_" in name for name in names) == 36
    assert not any(call.name.endswith("_joined") for call in launches)
    assert [len(call.parts) for call in launches if call.parts] == [2, 3, 2, 3, 2, 32, 8]
    assert len(launches) == 65
