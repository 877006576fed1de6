"""Convolutions on a GPU without columns in memory: values beside torch's, and their kernels."""

import ctypes
import mmap
import re
from math import prod

import numpy as np
import pytest
import torch

import minipaddle as paddle
from minipaddle.codegen.cuda import convolution
from minipaddle.codegen.cuda.calls import Gemm, Launch
from minipaddle.codegen.cuda.program import CudaKernels
from minipaddle.codegen.cuda.teams import BUSY
from minipaddle.engine.core.op import OPS
from minipaddle.engine.core.record import Spec
from minipaddle.engine.passes.manager import optimized
from minipaddle.executors.gpu.cuda import CudaExecutable
from tests.codegen import nvrtc
from tests.codegen.cuda_on_cpu import Cpu, needs_gxx
from tests.codegen.test_cuda import CHIPS, needs_nvrtc
from tests.passes.programs import program_of

pytestmark = pytest.mark.sweep(one_in=4)

NEAR = {"float32": 1e-5, "float64": 1e-13, "float16": 2e-3, "bfloat16": 2e-2}


def describe(size, kernel, channels, outs, groups=1, stride=1, padding=None, dilation=1, images=2):
    """Shapes of an image and of weights, and the attributes of a convolution."""
    each = lambda n: n if isinstance(n, tuple) else (n,) * len(size)
    pads = padding or ((0, 0),) * len(size)
    how = {"stride": each(stride), "padding": pads, "dilation": each(dilation), "groups": groups}
    return (images, *size, channels), (*kernel, channels // groups, outs), how


def convolve_all(how, size, kernel):
    """A convolution, and both of its adjoints of the same values."""

    def function(x, w, g):
        return (
            OPS["conv_last"](x, w, **how),
            OPS["conv_last_input_grad"](g, w, size=size, **how),
            OPS["conv_last_weight_grad"](x, g, kernel=kernel, **how),
        )

    return function


def spec_of_outputs(x, w, how) -> Spec:
    return OPS["conv_last"].infer(x, w, **how)


def of_torch(x, w, g, how):
    """The same in float64 by torch, whose channels are first, and whose padding is of equal sides.
    It refuses convolutions of nothing: those are zero.
    """
    if not (x.size and g.size):
        return [np.zeros(a.shape) for a in (g, x, w)]
    n = x.ndim - 2
    image = torch.tensor(np.moveaxis(x, -1, 1).copy(), requires_grad=True)
    weights = torch.tensor(w.transpose(n + 1, n, *range(n)).copy(), requires_grad=True)
    padded = torch.nn.functional.pad(image, [n for pad in how["padding"][::-1] for n in pad])
    more = {name: how[name] for name in ("stride", "dilation", "groups")}
    y = getattr(torch.nn.functional, f"conv{n}d")(padded, weights, **more)
    adjoints = torch.autograd.grad(y, [image, weights], torch.tensor(np.moveaxis(g, -1, 1).copy()))
    y, image, weights = (a.detach().numpy() for a in (y, *adjoints))
    last = [np.moveaxis(a, 1, -1) for a in (y, image)]
    return [*last, weights.transpose(*range(2, n + 2), 1, 0)]


class Guarded(Cpu):
    """Inputs end where memory ends: to read beyond them ends the process."""

    def as_input(self, array, spec):
        size = -(-array.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
        memory = mmap.mmap(-1, size + mmap.PAGESIZE)
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        assert not ctypes.CDLL(None).mprotect(ctypes.c_void_p(address + size), mmap.PAGESIZE, 0)
        first = (size - array.nbytes) // 16 * 16
        copy = np.frombuffer(memory, array.dtype, array.size, first).reshape(array.shape)
        copy[...] = array
        return copy


def compare(shapes, dtype="float32", near=None, device=None) -> CudaExecutable:
    """The emulated GPU computes what torch does; returns the executable."""
    x_shape, w_shape, how = shapes
    numbers = np.random.default_rng(0)
    made = lambda shape: paddle.to_tensor(numbers.standard_normal(shape)).astype(dtype)
    x, w = made(x_shape), made(w_shape)
    g = made(spec_of_outputs(x.spec, w.spec, how).shape)
    function = convolve_all(how, x_shape[1:-1], w_shape[:-2])
    program = program_of(function, x.spec, w.spec, g.spec)
    executable = CudaExecutable(program, device=device or Cpu())
    arrays = [a.numpy() for a in (x, w, g)]
    results = executable(program, [a.copy() for a in arrays])
    wide = [np.asarray(a.astype("float64").numpy()) for a in (x, w, g)]
    for result, expected in zip(results, of_torch(*wide, how), strict=True):
        result = np.asarray(result, "float64")
        assert result.shape == expected.shape
        limit = np.abs(expected).max(initial=0) * (near or NEAR[dtype])
        assert np.abs(result - expected).max(initial=0) <= limit
    return executable


CASES = {
    "plain": describe((6, 7), (3, 3), 8, 70),
    "strides, padding, dilation": describe(
        (9, 11), (3, 2), 8, 12, stride=(2, 3), padding=((1, 2), (0, 1)), dilation=(2, 1)
    ),
    "strides and dilation with a common factor": describe(
        (11, 9), (3, 3), 6, 8, stride=(4, 2), padding=((2, 2), (3, 1)), dilation=(2, 2)
    ),
    "strides beyond the window": describe((9, 8), (1, 2), 8, 8, stride=(2, 3)),
    "strides beyond the image": describe((2, 9), (2, 1), 8, 5, stride=(3, 2), images=3),
    "groups": describe((5, 6), (3, 3), 24, 16, groups=2, padding=((1, 1), (1, 1))),
    "each channel alone": describe(
        (7, 6), (3, 3), 12, 12, groups=12, stride=2, padding=((1, 1), (1, 1))
    ),
    "a channel gives several": describe((5, 6), (3, 2), 6, 18, groups=6, dilation=(1, 2)),
    "three channels": describe((9, 8), (5, 4), 3, 33, stride=2, padding=((2, 2), (1, 2))),
    "one output": describe((6, 5), (3, 3), 40, 1, images=3),
    "a line": describe((40,), (5,), 6, 10, stride=2, padding=((2, 1),)),
    "a space": describe(
        (4, 5, 6), (2, 3, 2), 8, 10, stride=(1, 2, 2), padding=((1, 0), (1, 1), (0, 1))
    ),
    "padding beyond the window": describe((3, 4), (2, 2), 8, 8, padding=((3, 2), (2, 4))),
    "one pixel with a stride": describe((7, 8), (1, 1), 16, 40, stride=2),
    "one pixel": describe((4, 5), (1, 1), 16, 20),
}


@needs_gxx
@pytest.mark.parametrize("dtype", NEAR)
@pytest.mark.parametrize("name", CASES)
def test_convolutions_are_those_of_torch(name, dtype):
    executable = compare(CASES[name], dtype)
    calls = [call for _, call in executable.kernels.calls()]
    assert any(isinstance(call, Gemm) for call in calls) == (name == "one pixel")


@needs_gxx
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("busy", [1, 8])
def test_sums_in_parts_and_large_tiles(busy, dtype, monkeypatch):
    """All three in large tiles; in parts; parts of sums of each element."""
    monkeypatch.setattr(convolution, "BUSY", busy)
    monkeypatch.setattr(convolution, "FEWEST_PANELS", 1)
    large, parts = [], []
    for channels, outs, groups in [(40, 72, 1), (80, 66, 2), (6, 6, 6)]:
        shapes = describe((9, 10), (3, 3), channels, outs, groups, padding=((1, 1), (0, 1)))
        calls = [call for _, call in compare(shapes, dtype).kernels.calls()]
        large += [call for call in calls if "WIDE = 16" in call.source]
        parts += [call for call in calls if call.blocks[1] > 1]
    if busy == 1:
        assert len(large) >= 3
    else:
        assert len(parts) >= 6


@needs_gxx
@pytest.mark.parametrize("name", ["plain", "three channels", "groups", "one output"])
def test_nothing_beyond_the_inputs_is_read(name):
    compare(CASES[name], device=Guarded())
    compare(CASES[name], "float16", device=Guarded())


@needs_gxx
@pytest.mark.parametrize("name", ["strides, padding, dilation", "each channel alone"])
def test_places_of_64_bits(name, monkeypatch):
    monkeypatch.setattr(convolution, "narrow_type", lambda highest: "int64_t")
    executable = compare(CASES[name])
    assert "typedef int64_t Index" in executable.kernels.body


@needs_gxx
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_on_chips_without_tensor_cores_for_them(dtype, monkeypatch):
    lacking = lambda self, tf32=False: f"#undef TENSOR_CORES\n{self.body}"
    monkeypatch.setattr(CudaKernels, "file", lacking)
    compare(CASES["plain"], dtype)
    compare(CASES["three channels"], dtype)


@needs_gxx
def test_factors_are_rounded_to_tf32_as_long_as_the_flag_is_set():
    flag = "FLAGS_enable_cublas_tensor_op_math"
    for name in ("plain", "three channels", "strides, padding, dilation"):
        paddle.set_flags({flag: True})
        try:
            compare(CASES[name], near=2e-3)
            with pytest.raises(AssertionError):
                compare(CASES[name])
            compare(CASES[name], "float64")
        finally:
            paddle.set_flags({flag: False})
        compare(CASES[name])


@needs_gxx
@pytest.mark.parametrize("shape", [(0, 5, 5, 4), (2, 5, 5, 0), (2, 5, 5, 4)])
def test_convolutions_of_nothing(shape):
    outs = 0 if shape[0] and shape[-1] else 6
    how = describe((5, 5), (3, 3), 4, 6)[2]
    compare((shape, (3, 3, shape[-1], outs), how))


# ---- what NVRTC says -------------------------------------------------------------------------


def kernels_of(dtype, shapes) -> CudaKernels:
    """The kernels of the three convolutions."""
    x_shape, w_shape, how = shapes
    of = lambda shape: Spec(shape, paddle.empty([0], dtype).spec.dtype)
    function = convolve_all(how, x_shape[1:-1], w_shape[:-2])
    x, w = of(x_shape), of(w_shape)
    program = program_of(function, x, w, of(spec_of_outputs(x, w, how).shape))
    return CudaKernels(optimized(program).program)


SAME = ((1, 1), (1, 1))
LAYERS = {  # of ResNet-18, for 32 images of 64 x 64
    "stem": describe((64, 64), (7, 7), 3, 64, stride=2, padding=((3, 3), (3, 3)), images=32),
    "1": describe((16, 16), (3, 3), 64, 64, padding=SAME, images=32),
    "2, first": describe((16, 16), (3, 3), 64, 128, stride=2, padding=SAME, images=32),
    "2, shortcut": describe((16, 16), (1, 1), 64, 128, stride=2, images=32),
    "2": describe((8, 8), (3, 3), 128, 128, padding=SAME, images=32),
    "3, first": describe((8, 8), (3, 3), 128, 256, stride=2, padding=SAME, images=32),
    "3": describe((4, 4), (3, 3), 256, 256, padding=SAME, images=32),
    "4": describe((2, 2), (3, 3), 512, 512, padding=SAME, images=32),
}
HUGE = describe((224, 224), (3, 3), 64, 64, padding=SAME, images=512)


@pytest.mark.parametrize("name", LAYERS)
def test_layers_of_resnet_fill_a_gpu_and_need_little_memory(name):
    kernels = kernels_of("float32", LAYERS[name])
    calls = [call for _, call in kernels.calls() if not call.name.endswith("_joined")]
    fewest = BUSY // 2 if "shortcut" in name else BUSY  # which has sums of 64 terms: no parts
    assert all(isinstance(call, Launch) for call in calls)
    assert [call.name for call in calls if prod(call.blocks) < fewest] == []
    assert max(work.workspace for work in kernels.of.values()) <= 10 << 20


@needs_nvrtc
@pytest.mark.parametrize("dtype", NEAR)
def test_kernels_load_packs_and_use_tensor_cores(dtype):
    """From memory and from shared memory in packs; nothing but registers holds sums."""
    kernels = kernels_of(dtype, LAYERS["2"])
    for chip in CHIPS:
        text = nvrtc.ptx(kernels.file(), chip)
        tiles = [part for part in text.split(".entry") if "bar.sync" in part]
        halves = dtype.endswith("16") and chip >= 80
        assert len(tiles) == 3
        assert all(("mma.sync" in part) == halves for part in tiles)
        word = "v2" if dtype == "float64" else "v4"
        for part in tiles:
            loads = re.findall(r"ld\.global(?:\.nc)?\.(v\d)?", part)
            assert {*loads} == {word}
            assert ".local" not in part
    if dtype == "float32":
        text = nvrtc.ptx(kernels.file(tf32=True), 80)
        assert text.count("tf32.tf32") > 3 * 8
        assert nvrtc.compile_error(kernels.file(tf32=True), 75) == ""


@needs_nvrtc
@pytest.mark.parametrize("shapes", [LAYERS["stem"], LAYERS["2, first"], HUGE])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_kernels_of_all_sizes_compile(shapes, dtype):
    """Of any channels, of strides, and of more elements than 32 bits count."""
    kernels = kernels_of(dtype, shapes)
    for chip in CHIPS:
        for tf32 in (False, True):
            assert not nvrtc.compile_error(kernels.file(tf32), chip)
