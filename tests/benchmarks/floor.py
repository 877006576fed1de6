"""Below what no step can go: the arithmetic of its matrix products and convolutions at the speed of
the machine's best product, and the bytes it must read and write once at the speed of memory.
"""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np


def of(program) -> dict:
    """`flops` of products and convolutions, `elements` that elementwise formulas and reductions
    make or take (one each), `bytes` of inputs, states and outputs, each read or written once.

    Loops whose length a tensor decides count as one turn.
    """
    records = list(everything(program))
    flops = sum(multiply_adds(r) * 2 for r in records)
    elements = sum(r.spec.size for r in records if r.op.kind in ("elementwise", "reduction"))
    states = sum(s.record.spec.nbytes for s in program.states)
    states += sum(s.update.spec.nbytes for s in program.states if s.update is not None)
    ends = [*program.inputs, *program.outputs]
    moved = sum(r.spec.nbytes for r in ends if r.dtype is not None)
    return {"flops": int(flops), "elements": int(elements), "bytes": int(states + moved)}


def everything(program):
    """The records of a program and of its regions."""
    for record in program.records:
        yield record
        for value in record.attrs.values():
            for region in value if isinstance(value, tuple) else (value,):
                if hasattr(region, "records"):
                    yield from everything(region)


def multiply_adds(record) -> int:
    """How many a product or a convolution has; 0 for other operators."""
    shapes = [r.spec.shape for r in record.inputs if r.dtype is not None]
    name = record.op.name
    if name in ("matmul", "linear", "affine"):
        return record.spec.size * shapes[0][-1]
    if name == "product":
        return record.spec.size * shapes[0][record.attrs["x_perm"][-1]]
    if name == "summed_outer":  # x[…, a], y[…, b] → [a, b], summed over the rest
        return math.prod(shapes[0]) * shapes[1][-1]
    if name == "conv":
        return record.spec.size * math.prod(shapes[1][1:])
    if name == "conv_input_grad":  # of g [n, c, …] and the kernel: as many as the convolution has
        return math.prod(shapes[0]) * math.prod(shapes[1][1:])
    if name == "conv_weight_grad":  # of x and g
        return math.prod(shapes[1]) * math.prod(record.spec.shape[1:])
    return 0


def machine(threads: int) -> dict:
    """The best matrix product in flops/s and the best copy in bytes/s (read and written)."""
    return {"flops_per_second": best_product(), "bytes_per_second": best_copy(threads)}


def best_product() -> float:
    """NumPy's or, if there is a compiler, our own: OpenBLAS takes kernels of half the width for
    some processors.
    """
    from minipaddle.engine.executors.compiler import compiler  # other frameworks' processes lack it

    return max(speed(1024, by_numpy), speed(384, by_us) if compiler() else 0.0)


def speed(n: int, product) -> float:
    """The flops/s of a product of n by n numbers."""
    a, b = np.random.default_rng(0).normal(size=(2, n, n)).astype("float32")
    return 2 * n**3 / fastest(product(a, b))


def by_numpy(a, b):
    out = np.empty_like(a)
    return lambda: np.matmul(a, b, out=out)


def by_us(a, b):
    import minipaddle as paddle

    function = paddle.jit.to_static(paddle.matmul, backend="native")
    x, y = paddle.to_tensor(a), paddle.to_tensor(b)
    return lambda: function(x, y)


def best_copy(threads: int, size: int = 1 << 26) -> float:
    """Of memory far larger than the caches (a copy, because STREAM's triad needs a compiler)."""
    a, b = np.ones(size // 4, "float32"), np.empty(size // 4, "float32")
    parts = list(zip(np.array_split(b, threads), np.array_split(a, threads), strict=True))
    with ThreadPoolExecutor(threads) as pool:
        return 2 * size / fastest(lambda: list(pool.map(lambda pair: np.copyto(*pair), parts)))


def fastest(function, times: int = 9) -> float:
    found = []
    for _ in range(times):
        began = time.perf_counter()
        function()
        found.append(time.perf_counter() - began)
    return min(found)
