"""Twenty sizes in turn: a program with open sizes, beside one program for each of the sizes.

For each model: the processor time of all first calls, with what the C compiler takes, how many C
files these compiled, and the time of a later call, by that of a program of this one size.
"""

from __future__ import annotations

import os
import resource
import statistics
import tempfile
import time
from functools import partial

import numpy as np

ROUNDS, SECONDS = 7, 0.02


def models() -> dict:
    """{name: (what makes a layer, the shape of its input with None, an input, the sizes)}."""
    from minipaddle import nn
    from minipaddle.text import GPT

    def pictures():
        return nn.Sequential(
            nn.Conv2D(3, 16, 3, padding=1), nn.BatchNorm2D(16), nn.ReLU(), nn.MaxPool2D(2, 2),
            nn.Conv2D(16, 32, 3, padding=1), nn.BatchNorm2D(32), nn.ReLU(),
            nn.Conv2D(32, 32, 3, stride=2, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Linear(32, 10),
        )  # fmt: skip

    def letters(rng, n):
        return rng.integers(0, 65, (8, n))

    def images(rng, n):
        return rng.standard_normal((2, 3, n, n + 8), "float32")

    gpt = partial(GPT, 65, 64, 2, 4, 512)
    return {
        "GPT, short texts": (gpt, [8, None], letters, range(33, 53)),
        "GPT, longer texts": (gpt, [8, None], letters, range(64, 264, 10)),
        "pictures": (pictures, [2, 3, None, None], images, range(64, 164, 5)),
    }


def cpu() -> float:
    """The processor time of this process, and of its compilers that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def measure(function, x) -> float:
    """The median processor time of a call."""
    count, times = 1, []
    for _ in range(ROUNDS + 1):
        began = time.process_time()
        for _ in range(count):
            function(x)
        times.append((time.process_time() - began) / count)
        count = max(int(SECONDS / times[0]), 1)
    return statistics.median(times[1:])


def run(threads: int, arguments=()) -> None:
    import minipaddle as paddle

    rng, spec = np.random.default_rng(0), paddle.static.InputSpec
    for name, (make, shape, draw, sizes) in models().items():
        with tempfile.TemporaryDirectory() as folder, paddle.no_grad():
            os.environ["MINIPADDLE_CACHE"] = folder
            inputs = [paddle.to_tensor(draw(rng, n)) for n in sizes]
            dtype, layers = inputs[0].dtype, {}
            for way in ("open", *sizes):
                layers[way] = make()
                layers[way].eval()
            seconds, calls = {}, {}
            kinds = {"open": [("open", shape)] * len(inputs)}
            kinds["fixed"] = [(n, x.shape) for n, x in zip(sizes, inputs)]
            for kind, rows in kinds.items():
                began, calls[kind], known = cpu(), [], {}
                for (way, of), x in zip(rows, inputs):
                    if way not in known:
                        known[way] = paddle.jit.to_static(
                            layers[way].forward, input_spec=[spec(of, dtype)], backend="native"
                        )
                    known[way](x)
                    calls[kind].append(known[way])
                seconds[kind] = cpu() - began
            captured = next(iter(calls["open"][0].cache.entries.values()))[0]
            texts = {e.source.text for e in captured.executables.compiled.values()}
            pairs = [
                (measure(a, x), measure(b, x))
                for x, a, b in zip(inputs, calls["open"], calls["fixed"])
            ]
            ratio = statistics.geometric_mean(a / b for a, b in pairs)
            worst = max(a / b for a, b in pairs)
        print(
            f"{name}, {len(inputs)} sizes from {sizes[0]} to {sizes[-1]}: first calls "
            f"{seconds['open']:.1f} s, {len(texts)} compiled; of fixed sizes "
            f"{seconds['fixed']:.1f} s; a later call {ratio:.2f} of a fixed one (most {worst:.2f})"
        )
