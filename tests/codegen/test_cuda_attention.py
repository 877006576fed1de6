"""Attention on a GPU in tiles, forward and backward, against float64; a CPU plays the GPU."""

from __future__ import annotations

import re

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle.codegen.cuda import attention
from minipaddle.codegen.cuda.attention_parts import WIDEST
from minipaddle.codegen.cuda.calls import Gemm
from minipaddle.codegen.cuda.program import CudaKernels
from minipaddle.engine.ir.control import fused
from minipaddle.executors.gpu.cuda import CudaExecutable
from minipaddle.executors.gpu.nvrtc import ptx
from tests.codegen import nvrtc
from tests.codegen.cuda_on_cpu import Cpu, needs_gxx
from tests.passes.programs import program_of

pytestmark = pytest.mark.sweep(one_in=4)
needs_nvrtc = pytest.mark.skipif(
    nvrtc.library() is None, reason="needs NVRTC: pip install nvidia-cuda-nvrtc-cu12"
)


def attend(q, k, v, mask=None, causal=False, keep=None):
    """Attention written out, on [batch, length, heads, size]; `keep` weighs the probabilities."""
    q, k, v = (x.transpose([0, 2, 1, 3]) for x in (q, k, v))
    scores = q @ k.transpose([0, 1, 3, 2]) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores + mask
    if causal:
        rows, columns = scores.shape[-2:]
        seen = paddle.arange(rows).unsqueeze(-1) >= paddle.arange(columns)
        scores = paddle.where(seen, scores, paddle.full([], -np.inf, scores.dtype))
    weights = F.softmax(scores, -1)
    weights = weights if keep is None else weights * keep
    return (weights @ v).transpose([0, 2, 1, 3])


def in_float64(q, k, v, g, mask=None, causal=False, keep=None):
    """Attention and its gradients by their definition, with NumPy."""
    q, k, v, g = (x.astype("float64").transpose(0, 2, 1, 3) for x in (q, k, v, g))
    scale = q.shape[-1] ** -0.5
    scores = q @ k.swapaxes(2, 3) * scale + (0 if mask is None else mask)
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    with np.errstate(invalid="ignore"):
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        p = powers / powers.sum(-1, keepdims=True)
        weights = p if keep is None else p * keep
        dp = g @ v.swapaxes(2, 3) * (1 if keep is None else keep)
        ds = p * (dp - (p * dp).sum(-1, keepdims=True)) * scale
        found = weights @ v, ds @ k, ds.swapaxes(2, 3) @ q, weights.swapaxes(2, 3) @ g
    return [x.transpose(0, 2, 1, 3) for x in found]


def compiled(function, arrays) -> CudaExecutable:
    specs = [paddle.to_tensor(a).spec for a in arrays]
    return CudaExecutable(program_of(function, *specs), device=Cpu())


def in_tiles(executable) -> int:
    """The groups that are computed in tiles; all of their products are in them."""
    kernels = executable.kernels
    assert not kernels.hosted
    groups = {r for r, c in kernels.calls() if r.op is fused and "Tiles::multiply" in c.source}
    products = [c for _, c in kernels.calls() if isinstance(c, Gemm)]
    assert not (groups and products)
    return len(groups)


def gradients(function, q, k, v, g, *more):
    """A result and the gradients of q, k, v."""
    given = [x.detach() for x in (q, k, v)]
    for x in given:
        x.stop_gradient = False
    y = function(*given, *more)
    return [y.detach(), *paddle.grad((y * g).sum(), given)]


def random(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("float32")


def scores_mask(seen):
    """A mask to add to scores."""
    return np.where(seen, 0, -np.inf).astype("float32")


def hidden(*shape):
    """A mask of 0 and -inf that hides no row completely."""
    return scores_mask(random(*shape) < 0.5)


CASES = {  # batch, rows, columns, heads, size; what is done besides
    "whole tiles": ((2, 128, 64, 2, 16), {}),
    "odd lengths": ((2, 70, 150, 1, 13), {}),
    "few rows": ((1, 33, 65, 3, 32), {}),
    "causal": ((1, 200, 200, 2, 24), {"causal": True}),
    "wide heads": ((1, 140, 130, 1, 128), {"causal": True}),
    "heads of 65": ((1, 66, 66, 2, 65), {}),
    "a bias for all": ((2, 70, 100, 2, 8), {"mask": random(70, 100)}),
    "a mask for each": ((2, 80, 100, 2, 8), {"mask": hidden(2, 1, 80, 100)}),
    "last columns hidden": ((1, 64, 256, 1, 8), {"mask": scores_mask(np.arange(256) < 80)}),
    "weights kept": ((2, 70, 80, 2, 8), {"keep": (random(2, 2, 70, 80) > 0) * np.float32(2)}),
}  # fmt: skip


@needs_gxx
@pytest.mark.parametrize(
    ("name", "height"),
    [*((name, 16) for name in CASES), ("odd lengths", 32), ("causal", 64), ("wide heads", 64)],
)
def test_attention_and_its_gradients(name, height, monkeypatch):
    """With tiles of any height: a batch decides on it."""
    monkeypatch.setattr(attention, "HEIGHTS", (height,))
    (batch, rows, columns, heads, size), how = CASES[name]
    how = dict(how)
    arrays = {key: how.pop(key) for key in ("mask", "keep") if key in how}
    q, g = random(batch, rows, heads, size), random(batch, rows, heads, size + 1)[..., 1:]
    k, v = random(batch, columns, heads, size), random(batch, columns, heads, size + 2)[..., 2:]
    wanted = in_float64(q, k, v, g, **arrays, **how)

    def run(q, k, v, *more):
        return attend(q, k, v, **dict(zip(arrays, more, strict=True)), **how)

    forward = compiled(run, [q, k, v, *arrays.values()])
    both = compiled(lambda *a: gradients(run, *a), [q, k, v, g, *arrays.values()])
    assert in_tiles(forward) == 1
    assert in_tiles(both)
    found = forward(forward.program, [q, k, v, *arrays.values()])
    found += both(both.program, [q, k, v, g, *arrays.values()])
    for a, b in zip([wanted[0], *wanted], found, strict=True):
        assert b.dtype == np.float32
        np.testing.assert_allclose(b, a, 1e-4, 1e-5 * np.abs(a).max())


HALF_CASES = [
    ("bfloat16", (1, 80, 100, 2, 24), 16, {"causal": True}),
    ("float16", (2, 70, 80, 1, 13), 32, {}),
    ("bfloat16", (1, 70, 130, 1, 64), 64, {"mask": hidden(70, 130)}),
]


@needs_gxx
@pytest.mark.parametrize("cores", [True, False])
@pytest.mark.parametrize(("dtype", "sizes", "height", "how"), HALF_CASES)
def test_halves_are_multiplied_by_tensor_cores(dtype, sizes, height, how, cores, monkeypatch):
    """With float32 sums; the weights are halves, as they are elsewhere. On old chips, too."""
    if not cores:
        lacking = lambda self, tf32=False: f"#undef TENSOR_CORES\n{self.body}"
        monkeypatch.setattr(CudaKernels, "file", lacking)
    monkeypatch.setattr(attention, "HEIGHTS", (height,))
    batch, rows, columns, heads, size = sizes
    lengths = rows, columns, columns, rows
    arrays = [random(batch, n, heads, size + k)[..., k:] for k, n in enumerate(lengths)]
    q, k, v, g = (paddle.to_tensor(a).astype(dtype).numpy() for a in arrays)
    how = dict(how)
    mask = [paddle.to_tensor(how["mask"]).astype(dtype).numpy()] if "mask" in how else []
    wanted = in_float64(q, k, v, g, **how)
    how.pop("mask", None)

    def run(q, k, v, *mask):
        with paddle.amp.auto_cast(level="O1", dtype=dtype):
            return attend(q, k, v, *mask, **how)

    made = compiled(lambda *a: gradients(run, *a), [q, k, v, g, *mask])
    assert in_tiles(made)
    assert "HalfTiles<" in made.kernels.body
    near = 2e-2 if dtype == "bfloat16" else 3e-3
    for a, b in zip(wanted, made(made.program, [q, k, v, g, *mask]), strict=True):
        assert b.dtype == q.dtype
        np.testing.assert_allclose(b.astype("float64"), a, near, near * np.abs(a).max())


@needs_gxx
def test_a_row_that_a_mask_hides_is_nan_as_elsewhere():
    """Also where all other rows of its tile are hidden, so that the tile could be left out."""
    q, k, v, g = (random(1, n, 1, 8) for n in (66, 130, 130, 66))
    mask = np.zeros((66, 130), "float32")
    mask[:64, 64:] = mask[5] = -np.inf
    wanted = in_float64(q, k, v, g, mask)
    made = compiled(lambda *a: gradients(attend, *a), [q, k, v, g, mask])
    assert in_tiles(made)
    for a, b in zip(wanted, made(made.program, [q, k, v, g, mask]), strict=True):
        assert np.isnan(a).any()
        np.testing.assert_allclose(b, a, 1e-4, 1e-5)


def trained(x, w):
    """A loss of attention that only its result leads to, and the gradients of q, k and v."""
    q, k, v = (x[:, :, i].detach() for i in range(3))
    for t in (q, k, v):
        t.stop_gradient = False
    y = attend(q, k, v, causal=True)
    return [y.detach(), *paddle.grad((y * y * w).sum(), [q, k, v])]


@needs_gxx
def test_a_training_step_walks_once_forward_and_twice_backward():
    """Σ p dp is Σ g y along the shorter rows, so dq grows with the softmax: seven products."""
    x, w = random(1, 80, 3, 2, 16), random(1, 80, 2, 16)
    made = compiled(trained, [x, w])
    assert in_tiles(made) == 2
    texts = {c.name: c.source for _, c in made.kernels.calls()}
    walks = [text.count("int start = 0") for text in texts.values() if "Tiles::" in text]
    products = [text.count("Tiles::multiply") for text in texts.values() if "Tiles::" in text]
    assert (walks, products) == ([1, 1, 1], [2, 3, 4])
    q, k, v = (x[:, :, i] for i in range(3))
    y = in_float64(q, k, v, w, causal=True)[0]
    wanted = in_float64(q, k, v, 2 * y * w, causal=True)
    for a, b in zip(wanted, made(made.program, [x, w]), strict=True):
        np.testing.assert_allclose(b, a, 1e-4, 1e-5 * np.abs(a).max())


@needs_gxx
def test_views_are_read_where_they_lie():
    """q, k, v of [batch, length, 3, heads, size]: nothing is copied."""
    x = random(2, 96, 3, 2, 16)
    made = compiled(lambda x: attend(*(x[:, :, i] for i in range(3))), [x])
    assert in_tiles(made) == 1
    (wanted, *_) = in_float64(*(x[:, :, i] for i in (0, 1, 2, 2)))
    np.testing.assert_allclose(made(made.program, [x])[0], wanted, 1e-4, 1e-5)


@needs_gxx
def test_formulas_of_other_kinds_take_further_walks():
    """A result that is no multiple of the softmax, and a sum of it that later rows need."""

    def function(q, k, v):
        p = F.softmax(q @ k.transpose([0, 2, 1]), -1)
        p = p * p
        return (p / p.sum(-1, keepdim=True)) @ v

    q, k, v = random(2, 70, 12), random(2, 90, 12), random(2, 90, 9)
    made = compiled(function, [q, k, v])
    assert in_tiles(made) == 1
    scores = q.astype("float64") @ k.swapaxes(1, 2)
    p = np.exp(2 * (scores - scores.max(-1, keepdims=True)))
    wanted = p / p.sum(-1, keepdims=True) @ v
    np.testing.assert_allclose(made(made.program, [q, k, v])[0], wanted, 1e-4, 1e-5)


@pytest.mark.parametrize(("dtype", "size"), [("float64", 16), ("float32", WIDEST + 1)])
def test_other_attention_is_not_in_tiles(dtype, size):
    x = np.zeros((1, 256, 1, size), dtype)
    assert in_tiles(compiled(attend, [x, x, x])) == 0


def test_shared_memory_holds_two_strips():
    def function(q, k, v):
        p = F.softmax(q @ k.transpose([0, 2, 1]), -1)
        return p @ v, (p * 2.0) @ v, (p * p) @ v

    x = np.zeros((2, 64, 16), "float32")
    assert in_tiles(compiled(function, [x, x, x])) == 0


@needs_nvrtc
@pytest.mark.parametrize(
    ("dtype", "size"), [("float32", 64), ("float32", 128), ("float16", 64), ("bfloat16", 128)]
)
def test_registers_hold_scores_and_results(dtype, size):
    """In the PTX no array is in local memory. No block needs more than 48 KB of shared memory."""
    x = paddle.zeros([8, 256, 6, size], dtype).numpy()
    made = compiled(lambda *a: gradients(lambda *b: attend(*b, causal=True), *a), [x, x, x, x])
    assert in_tiles(made)
    assert not nvrtc.compile_error(made.kernels.text, 75)
    text = ptx(made.kernels.text, 80 if size == 64 else 90)
    assert "local" not in text
    assert ("mma.sync" in text) == (dtype != "float32")
    sizes = [re.findall(r"\.shared .*\[(\d+)\]", kernel) for kernel in text.split(".entry")]
    assert 0 < max(sum(map(int, kernel)) for kernel in sizes) <= 48 << 10
