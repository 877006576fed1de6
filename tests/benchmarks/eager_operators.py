"""A hundred operators in eager mode beside PyTorch's, at two sizes, with and without derivatives.

`NumPy` is ours before anything is hot, `C` with kernels for all operators that are (`hot`): the
processor time of the calling thread, in turn. `--only relu sum` measures operators whose
expressions hold one of these words.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from statistics import geometric_mean

import numpy as np

import minipaddle
from minipaddle.nn import functional as ours
from tests.benchmarks.eager import backward_of, by_numpy, forward_of
from tests.benchmarks.frameworks import wait_for_kernels
from tests.benchmarks.timing import in_units, interleaved

EXPRESSIONS = """
    f.abs(x) f.cos(x) f.erf(x) f.exp(x) f.expm1(x) f.floor(x) f.isnan(x) f.log(p) f.log1p(p)
    f.neg(x) f.pow(p,2.5) f.reciprocal(p) f.round(x) f.rsqrt(p) f.sigmoid(x) f.sign(x) f.sin(x)
    f.sqrt(p) f.square(x) f.tan(x) f.tanh(x) f.trunc(x) f.clip(x,-1,1) f.lerp(x,y,0.3) f.tril(x)
    F.celu(x) F.elu(x) F.gelu(x) F.hardshrink(x) F.hardsigmoid(x) F.hardswish(x) F.hardtanh(x)
    F.leaky_relu(x) F.log_sigmoid(x) F.mish(x) F.relu(x) F.relu6(x) F.selu(x) F.silu(x)
    F.softplus(x) F.softshrink(x) F.softsign(x) F.tanhshrink(x) F.glu(x) F.dropout(x,0.5)
    x+y x/y x*y x-y x+row x*row f.maximum(x,y) f.minimum(x,y) f.where(x>0,x,y)
    x.sum() x.sum(0) x.sum(1) x.mean() x.mean(1) f.prod(x) f.amax(x,1) f.amin(x,1) f.argmax(x,1)
    f.norm(x) f.std(x) f.logsumexp(x,1) f.cumsum(x,1) f.cumprod(x,1) f.sort(x,1) f.topk(x,5)[0]
    F.softmax(x,1) F.log_softmax(x,1) F.layer_norm(x,[m],row,row) F.group_norm(image,2)
    F.batch_norm(image,f.zeros([c]),f.ones([c]),row[:c],row[:c],training=True)
    F.normalize(x) F.cosine_similarity(x,y) F.mse_loss(x,y) F.l1_loss(x,y) F.smooth_l1_loss(x,y)
    F.kl_div(x,q) F.cross_entropy(x,label) F.binary_cross_entropy(r,q)
    F.binary_cross_entropy_with_logits(x,q) f.matmul(x,w) F.linear(x,w)
    f.matmul(x,y.T) f.einsum('ij,kj->ik',x,y) f.outer(row,row)
    f.cdist(x,y) F.scaled_dot_product_attention(heads,heads,heads)
    F.conv2d(image,kernel,None,1,1) F.conv2d(image,deep,None,1,1,1,c) F.max_pool2d(image,2)
    F.avg_pool2d(image,2) F.adaptive_avg_pool2d(image,2) F.embedding(label,x)
    f.index_select(x,label) f.gather(x,label) f.reshape(x,[-1]) f.transpose(x,[1,0])*2 f.flip(x,[1])
    f.roll(x,3,1) f.concat([x,y],1) f.stack([x,y]) x[1:,::2]*2 f.tile(x,[2,1]) F.pad(x,[1,1,1,1])
"""
"""Words of Python for both: `f` is the framework, `F` its functional; `arrays_of` has the rest."""

SIZES = {"32 × 64": (32, 64, (2, 4, 16, 16)), "512 × 512": (512, 512, (8, 32, 32, 32))}
UNLIKE = 1.5
"""A ratio to PyTorch from which an operator is listed."""


class Adapted:
    """A module of PyTorch where some functions have the names and arguments of Paddle's."""

    def __init__(self, module, **functions):
        vars(self).update(functions, module=module)

    def __getattr__(self, name):
        return getattr(self.module, name)


def arrays_of(n: int, m: int, shape) -> dict:
    """The arrays that the expressions name."""
    rng, (b, c, h, w) = np.random.default_rng(0), shape
    shapes = {
        "x": (n, m), "y": (n, m), "row": (m,), "w": (m, m), "image": shape, "heads": (b, h, c, w),
        "kernel": (c, c, 3, 3), "deep": (c, 1, 3, 3),
    }  # fmt: skip
    arrays = {name: rng.standard_normal(s).astype("float32") for name, s in shapes.items()}
    arrays["p"] = abs(arrays["x"]) + np.float32(0.5)
    arrays["q"], arrays["r"] = 1 / (1 + np.exp([arrays["x"], arrays["y"]], dtype="float32"))
    return arrays | {"label": rng.integers(0, min(n, m), n)}


def functions_of(expression: str, names: list, size: dict):
    """A function of a framework and the arrays with these names."""
    import torch

    code, T = compile(expression, expression, "eval"), torch.nn.functional
    select = lambda x, k: torch.index_select(x, 0, k)
    adapted = Adapted(torch, transpose=torch.permute, gather=select, index_select=select)
    adapted.sort = lambda x, axis: torch.sort(x, axis)[0]
    functional = Adapted(T, linear=lambda x, w: T.linear(x, w.T), log_sigmoid=T.logsigmoid)
    swap = lambda x: x.transpose(1, 2)
    functional.scaled_dot_product_attention = lambda *qkv: swap(
        T.scaled_dot_product_attention(*map(swap, qkv))
    )
    spaces = {"torch": (adapted, functional), "minipaddle": (minipaddle, ours)}

    def function(framework, *tensors):
        f, F = spaces[framework.__name__]
        return eval(code, {"f": f, "F": F} | size | dict(zip(names, tensors, strict=True)))

    return function


def times_of(expression: str, size: str, with_derivative: bool) -> dict[str, float]:
    """Seconds a call of each candidate."""
    import torch

    n, m, shape = SIZES[size]
    arrays, words = arrays_of(n, m, shape), compile(expression, expression, "eval").co_names
    names = [name for name in arrays if name in words]
    function = functions_of(expression, names, {"m": m, "c": shape[1]})
    make = backward_of if with_derivative else forward_of
    a, b = (make(f, function, [arrays[k] for k in names]) for f in (minipaddle, torch))
    count = max(1, 1 << 17 >> (n * m).bit_length())  # calls for which a flag is set once
    repeat = lambda call: [call() for _ in range(count)]
    calls = {"C": partial(repeat, a), "torch": partial(repeat, b)}
    wait_for_kernels(a, programs=False)
    calls = {"NumPy": by_numpy(partial(repeat, a)), **calls}
    times = interleaved(calls, title=expression, rounds=7, seconds=0.01, clock=time.thread_time)
    return {name: t / count for name, t in times.items()}


def run(threads: int, arguments=()) -> None:
    import torch

    parser = argparse.ArgumentParser(prog="./run bench eager_operators", description=__doc__)
    parser.add_argument("--only", nargs="*", default=[""], metavar="WORD")
    words = parser.parse_args(arguments).only
    torch.set_num_threads(threads)
    chosen = [e for e in EXPRESSIONS.split() if any(word in e for word in words)]
    for size in SIZES:
        for derivative in (False, True):
            measure(chosen, size, derivative)


def measure(chosen: list[str], size: str, derivative: bool) -> None:
    """Print the operators that are behind at a size, and the geometric means of all."""
    ratios = {}
    for expression in chosen:
        try:
            times = times_of(expression, size, derivative)
        except RuntimeError:  # nothing to differentiate
            continue
        ratios[expression] = [times[ours] / times["torch"] for ours in ("NumPy", "C")]
        if max(ratios[expression]) > UNLIKE:
            shown = "".join(f"{in_units(t):>12}" for t in times.values())
            print(f"{expression:>52}{shown}" + "".join(f"{r:8.2f}" for r in ratios[expression]))
    for name, column in zip(("NumPy", "C"), zip(*ratios.values(), strict=True), strict=True):
        print(
            f"{size}{', and derivative' * derivative}: {name} / torch {geometric_mean(column):.2f}"
            f" in the mean of {len(column)}, {sum(r > UNLIKE for r in column)} above {UNLIKE}",
            flush=True,
        )
