"""Matrix products: untuned and tuned kernels beside OpenBLAS, PyTorch and JAX, in GFLOP/s.

    ./run bench products                            every group, one thread
    ./run bench products --only few square --trials 0

All are run in turn, and the fastest of several samples counts, in processor time where one thread
computes. The floor of a product is the longest of two times: of its multiply-adds at the peak of
the processor, and of its operands, read once, at the speed at which a sum reads as many bytes.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from minipaddle.engine.codegen.step import kernel_of
from minipaddle.tuning.evolution import proposals
from minipaddle.tuning.measure import Bench, empty_aligned
from minipaddle.tuning.space import Space
from tests.benchmarks.kernels import ORDERS, peak
from tests.codegen.compiling import record_of

PLAIN, RIGHT, LEFT = ORDERS.values()
BATCHED = {"x_perm": (0, 1, 2), "y_perm": (0, 1, 2), "out_perm": (0, 1, 2)}
KEYS = BATCHED | {"y_perm": (0, 2, 1)}
GROUPS = {
    "few": [(m, n, k, order) for m in (1, 2, 8) for n, k in ((512, 784), (1024, 1024))
            for order in (PLAIN, RIGHT)],
    "square": [(n, n, n, PLAIN) for n in (64, 128, 256, 512, 1024, 2048, 4096)],
    "tall": [(8192, 64, 64, PLAIN), (8192, 256, 128, PLAIN), (4096, 16, 1024, PLAIN)],
    "flat": [(64, 8192, 64, PLAIN), (32, 4096, 1024, PLAIN), (128, 2048, 2048, PLAIN)],
    "transposed": [(n, n, n, order) for n in (256, 1024) for order in (RIGHT, LEFT)]
    + [(1024, 1024, 128, LEFT), (2048, 2048, 128, LEFT), (128, 2048, 2048, RIGHT)],
    "batched": [(32, 128, 128, 64, KEYS), (32, 128, 64, 128, BATCHED), (256, 32, 32, 32, BATCHED)],
}  # fmt: skip
"""([batch,] rows, columns, terms, order)"""


def operands(*sizes, x_perm, y_perm, **_) -> list[np.ndarray]:
    """Random operands of a product, as they lie in memory."""
    *batch, m, n, k = sizes
    rng = np.random.default_rng(0)
    shapes = zip(((*batch, m, k), (*batch, k, n)), (x_perm, y_perm), strict=True)
    return [rng.normal(size=[s[d] for d in perm]).astype("float32") for s, perm in shapes]


def tuned(bench: Bench, space: Space, trials: int) -> dict:
    """The fastest point of the space that `trials` trials of the tuner's search find."""
    rng, times = np.random.default_rng(0), [(space.default, 1.0)]
    while len(times) <= trials:
        points = proposals(space, times, lambda points: [0] * len(points), 8, rng)
        if not points:
            break
        kernels = [named(space.kernel(p), j) for j, p in enumerate((space.default, *points))]
        default, *others = bench.measure(kernels)
        times += [(p, t / default) for p, t in zip(points, others, strict=True) if t]
    return min(times, key=lambda pair: pair[1])[0]


def named(kernel, j: int):
    return kernel._replace(name=f"k{j}", source=kernel.source.replace("product_kernel", f"k{j}"))


def peers(x, y, attrs, threads: int) -> dict:
    """The same product by libraries: functions to call."""
    a, b = x.transpose(attrs["x_perm"]), y.transpose(attrs["y_perm"])
    out = np.matmul(a, b)
    found = {"BLAS": lambda: np.matmul(a, b, out=out)}
    try:
        import torch

        torch.set_num_threads(threads)
        s, t, to = (torch.from_numpy(v) for v in (a, b, out.copy()))
        found["torch"] = lambda: torch.matmul(s, t, out=to)
    except ImportError:
        pass
    try:
        import jax

        f = jax.jit(lambda x, y: x.transpose(attrs["x_perm"]) @ y.transpose(attrs["y_perm"]))
        u, v = jax.numpy.asarray(x), jax.numpy.asarray(y)
        found["JAX"] = lambda: f(u, v).block_until_ready()
    except ImportError:
        pass
    return found


def calls_for(f, clock, seconds: float = 2e-3) -> int:
    """How many calls take so long."""
    least = np.inf
    for _ in range(5):
        start = clock()
        f()
        least = min(least, clock() - start)
    return max(1, round(seconds / least))


def times_in_turn(functions, clock, rounds: int = 15) -> list[float]:
    """The seconds of one call of each: the least of several samples of a millisecond or more."""
    counts, best = [calls_for(f, clock) for f in functions], [np.inf] * len(functions)
    for _ in range(rounds):
        for j, (f, count) in enumerate(zip(functions, counts, strict=True)):
            start = clock()
            for _ in range(count):
                f()
            best[j] = min(best[j], (clock() - start) / count)
    return best


def measure(sizes, attrs, threads: int, trials: int) -> tuple[dict, float]:
    """GFLOP/s by who computes, and the seconds in which a sum reads the operands."""
    x, y = operands(*sizes, **attrs)
    record = record_of("product", [x, y], **attrs)
    bench, space = Bench(record, [x, y]), Space(lambda: kernel_of(record, "product_kernel"))
    points = {"untuned": space.default}
    if trials:
        points["tuned"] = tuned(bench, space, trials)
    calls = bench.compile([named(space.kernel(p), j) for j, p in enumerate(points.values())])
    functions = dict(zip(points, [lambda run=run: run(1) for run in calls], strict=True))
    functions |= peers(x, y, attrs, threads)
    flat = empty_aligned(np.empty(x.size + y.size, "float32"))
    flat[...] = 1
    functions["read"] = lambda: np.dot(flat, flat)
    clock = time.process_time if threads == 1 else time.perf_counter
    *seconds, read = times_in_turn([*functions.values()], clock)
    work = 2e-9 * np.prod(sizes, dtype="float64")
    return {name: work / t for name, t in zip(functions, seconds)}, read


def run(threads: int, arguments=()) -> None:
    parser = argparse.ArgumentParser(prog="./run bench products")
    parser.add_argument("--only", nargs="+", choices=[*GROUPS], default=[*GROUPS])
    parser.add_argument("--trials", type=int, default=32, help="of the tuner for each product")
    options = parser.parse_args(arguments)
    top = peak() * threads
    print(f"GFLOP/s, {threads} threads; the peak of this processor: {top:.0f}")
    for group in options.only:
        for *sizes, attrs in GROUPS[group]:
            rates, read = measure(sizes, attrs, threads, options.trials)
            work = 2e-9 * np.prod(sizes, dtype="float64")
            floor = work / max(work / top, read)
            order = next((o for o, a in ORDERS.items() if a == attrs), "batch")
            line = f"{group:>10} {'×'.join(map(str, sizes)):>16} {order:>5}"
            line += "".join(f"  {name} {rate:6.1f}" for name, rate in rates.items())
            print(f"{line}  floor {floor:6.1f}  of it {rates['untuned'] / floor:.2f}", flush=True)
