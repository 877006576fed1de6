"""Kernels in C beside OpenBLAS and PyTorch: `./run bench kernels`. GFLOP/s, one thread.

Each kernel and its peer run in turn, the fastest of several runs counts: other work on the machine
only ever makes them slower. The peak is what a loop of independent multiply-adds reaches.
"""

from __future__ import annotations

import ctypes
import time

import numpy as np

from tests.benchmarks import operators
from tests.codegen.compiling import Guarded, call, compiled, file_of
from tests.codegen.test_convolution import EVEN, NONE, ONE, calls_of, three

PRODUCTS = [
    (32, 64, 32), (32, 32, 64), (32, 256, 64), (32, 64, 256), (64, 16, 64), (128, 256, 784),
    (128, 256, 256), (128, 10, 256), (784, 256, 128), (512, 384, 128), (512, 512, 128),
    (512, 128, 512), (512, 256, 128), (128, 512, 512), (1024, 256, 64), (64, 256, 1024),
    (1, 512, 512), (512, 1, 512), (512, 1024, 1024), (1024, 1024, 1024),
]  # fmt: skip
"""(rows, columns, terms), as the workloads have them, and a few large ones."""

ORDERS = {
    "x y": {"x_perm": (0, 1), "y_perm": (0, 1), "out_perm": (0, 1)},
    "x yᵀ": {"x_perm": (0, 1), "y_perm": (1, 0), "out_perm": (0, 1)},
    "xᵀ y": {"x_perm": (1, 0), "y_perm": (0, 1), "out_perm": (0, 1)},
}
CONVOLUTIONS = {
    "3→16, 32×32": three((32, 32), (3, 3), ONE, EVEN, ONE, batch=32, channels=3, outs=16),
    "16→16, 32×32": three((32, 32), (3, 3), ONE, EVEN, ONE, batch=32, channels=16, outs=16),
    "16→32, 32×32 / 2": three((32, 32), (3, 3), (2, 2), EVEN, ONE, batch=32, channels=16, outs=32),
    "32→32, 16×16": three((16, 16), (3, 3), ONE, EVEN, ONE, batch=32, channels=32, outs=32),
    "64→64, 8×8": three((8, 8), (3, 3), ONE, EVEN, ONE, batch=32, channels=64, outs=64),
    "1×1, 16→32 / 2": three((32, 32), (1, 1), (2, 2), NONE, ONE, batch=32, channels=16, outs=32),
    "5×5, 1→6, 28×28": three((28, 28), (5, 5), ONE, ((2, 2),) * 2, ONE, batch=64, channels=1,
                             outs=6),
    "5×5, 6→16, 14×14": three((14, 14), (5, 5), ONE, NONE, ONE, batch=64, channels=6, outs=16),
    "64→64, 8×8, batch 1": three((8, 8), (3, 3), ONE, EVEN, ONE, batch=1, channels=64, outs=64),
    "depthwise 64, 32×32": three((32, 32), (3, 3), ONE, EVEN, ONE, batch=8, groups=64, channels=1,
                                 outs=1),
}  # fmt: skip
PEAK = """
#if defined __AVX512F__
#define WIDE 64
#elif defined __AVX__
#define WIDE 32
#else
#define WIDE 16
#endif
typedef float v __attribute__((vector_size(WIDE)));
#define EACH(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11)
#define START(j) v a##j = {0};
#define STEP(j) a##j = a##j * b + b; __asm__("" : "+KIND"(a##j));
#define END(j) out[j] = a##j[0];
long peak(long rounds, float *out)
{
    const v b = (v){0} + out[0];
    EACH(START)
    for (long i = 0; i < rounds; i++) { EACH(STEP) }
    EACH(END)
    return rounds * 12 * (WIDE / 4) * 2;
}
"""


def fastest(*functions, seconds: float = 0.1) -> list[float]:
    """The shortest time of each, run in turn for so long in all."""
    best, ends = [np.inf] * len(functions), time.perf_counter() + seconds * len(functions)
    for f in functions:
        f()
    rounds = 0
    while rounds < 5 or time.perf_counter() < ends:
        rounds += 1
        for k, f in enumerate(functions):
            start = time.perf_counter()
            f()
            best[k] = min(best[k], time.perf_counter() - start)
    return best


def peak() -> float:
    """GFLOP/s of multiply-adds that wait for nothing."""
    import platform

    kind = "w" if platform.machine() in ("arm64", "aarch64") else "v"
    library = compiled(PEAK.replace("KIND", kind))
    library.peak.restype = ctypes.c_long
    out = np.zeros(12, "float32")
    pointer, rounds = out.ctypes.data_as(ctypes.c_void_p), ctypes.c_long(200_000)
    (seconds,) = fastest(lambda: library.peak(rounds, pointer))
    return library.peak(rounds, pointer) / seconds / 1e9


def runner(library, one):
    """A function that runs a kernel on its arrays."""
    kernel, record = one.kernel, one.record
    buffers = [Guarded(a) for a in one.inputs]
    buffers += [Guarded(np.zeros(record.shape, record.dtype))]
    buffers += [Guarded(np.zeros(kernel.workspace, np.uint8))] if kernel.workspace else []
    function, pointers = getattr(library, f"run_{kernel.name}"), [b.pointer for b in buffers]

    def go(_keep=buffers):
        function(*pointers)

    return go


def in_torch(torch, one):
    """The same convolution in PyTorch, with its channels first."""
    name, at = one.record.op.name, one.record.attrs
    image = lambda a: torch.from_numpy(np.ascontiguousarray(np.moveaxis(a, -1, 1)))
    kernel = lambda a: torch.from_numpy(np.ascontiguousarray(a.transpose(3, 2, 0, 1)))
    low = tuple(p for p, _ in at["padding"])
    how = at["stride"], low, at["dilation"]
    x, y = one.inputs
    if name == "conv_last":
        a, w = image(x), kernel(y)
        return lambda: torch.nn.functional.conv2d(a, w, None, *how, at["groups"])
    backward = torch.ops.aten.convolution_backward
    shape = one.record.shape
    if name == "conv_last_input_grad":
        g, w, a = image(x), kernel(y), torch.zeros((shape[0], shape[-1], *at["size"]))
        mask = (True, False, False)
    else:
        a, g, w = image(x), image(y), torch.zeros((shape[-1], shape[-2], *at["kernel"]))
        mask = (False, True, False)
    return lambda: backward(g, a, w, None, *how, False, (0, 0), at["groups"], mask)


def products() -> None:
    rng = np.random.default_rng(0)
    print(f"\n{'product':>18}" + "".join(f"{order:>16} OpenBLAS  time" for order in ORDERS))
    calls, peers = [], []
    for m, n, k in PRODUCTS:
        for order, attrs in ORDERS.items():
            x = rng.standard_normal((k, m) if order == "xᵀ y" else (m, k)).astype("float32")
            y = rng.standard_normal((n, k) if order == "x yᵀ" else (k, n)).astype("float32")
            calls.append(call("product", [x, y], attrs))
            a, b = x.transpose(attrs["x_perm"]), y.transpose(attrs["y_perm"])
            out = np.empty((m, n), "float32")
            peers.append(lambda a=a, b=b, out=out: np.dot(a, b, out=out))
    library = compiled(file_of([one.kernel for one in calls]))
    pairs = iter(zip(calls, peers))
    for m, n, k in PRODUCTS:
        line = f"{f'{m}×{k}×{n}':>18}"
        for _ in ORDERS:
            one, peer = next(pairs)
            ours, theirs = fastest(runner(library, one), peer)
            work = 2e-9 * m * n * k
            line += f"{work / ours:16.1f} {work / theirs:8.1f} {ours / theirs:5.2f}"
        print(line, flush=True)


def convolutions() -> None:
    try:
        import torch
    except ImportError:
        print("\nconvolutions: no PyTorch to compare with")
        return
    torch.set_num_threads(1)
    parts = ("forward", "image's gradient", "weight's gradient")
    print(f"\n{'convolution':>22}" + "".join(f"{part:>18}  PyTorch  time" for part in parts))
    calls = {name: list(calls_of(part, "float32")) for name, part in CONVOLUTIONS.items()}
    library = compiled(file_of([one.kernel for part in calls.values() for one in part]))
    for name, part in calls.items():
        (_, (_, w), _), line = CONVOLUTIONS[name][0], f"{name:>22}"
        work = 2e-9 * part[0].record.spec.size * w[0] * w[1] * w[2]
        for one in part:
            ours, theirs = fastest(runner(library, one), in_torch(torch, one))
            line += f"{work / ours:18.1f} {work / theirs:8.1f} {ours / theirs:5.2f}"
        print(line, flush=True)


def run(threads: int, arguments=()) -> None:
    print(f"GFLOP/s, one thread; the peak of this processor: {peak():.0f}")
    products()
    convolutions()
    operators.compare(arguments)
