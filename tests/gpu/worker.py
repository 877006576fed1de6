"""The measurements of `report.py`: a process that prints a row of JSON whenever it knows one.

python -m tests.gpu.worker steps minipaddle captured 60     framework, mode, seconds
python -m tests.gpu.worker kernels 60
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from math import prod

import numpy as np
import pytest

from minipaddle.codegen.cuda.calls import Gemm, Launch
from minipaddle.eager import gpu as gpus
from minipaddle.executors.gpu import cuda, gpu_program
from minipaddle.executors.interpreted.plan_steps import PlanMemory, do
from tests.benchmarks.models import step_of, weights_of
from tests.benchmarks.workloads import WORKLOADS, gpt, resnet
from tests.benchmarks.workloads.workload import Workload, is_torch
from tests.gpu.launches import call_bytes

STEPS = (
    "tiny", "mlp", "lenet", "chain", "gpt-inference", "resnet-inference", "mlp-1024", "resnet",
    "gpt", "mlp-2048",
)  # fmt: skip
LARGE = {
    "gpt-384": replace(
        gpt.GPT,
        title="GPT step, 6 layers of 384, 8 × 256 tokens, Adam",
        batch=partial(gpt.texts, 8, 256),
        net=partial(gpt.net, layers=6, tokens=256, width=384, heads=6),
    ),
    "resnet-18": replace(
        resnet.RESNET,
        title="ResNet-18 step, 32 images of 32×32",
        net=partial(resnet.net, widths=(64, 64, 128, 128, 256, 256, 512, 512)),
    ),
}
"""Workloads that fill a GPU; the stand-ins leave them out."""

PRECISIONS = ("float32", "bfloat16", "TF32")
"""TF32 is last: it stays on."""

TF32 = "FLAGS_enable_cublas_tensor_op_math"
RUNS, SECONDS = 30, 0.5
"""Most calls, and most seconds of calls, of which the median is taken."""

BUSY, LARGE_BYTES = 128, 1 << 20
"""A kernel over so many bytes should have so many blocks."""


PROGRAMS = {
    "chain of {}: tanh(2x + 1) · x": lambda f, x: f.tanh(2 * x + 1) * x,
    "softmax of rows of {}": lambda f, x: f.nn.functional.softmax(x, -1),
    "layer norm of rows of {}": lambda f, x: f.nn.functional.layer_norm(x, list(x.shape[1:])),
    "sum of columns of {}": lambda f, x: x.sum(0),
    "sum of rows of {}": lambda f, x: x.sum(1),
    "transpose of {}, plus 1": lambda f, x: x.T + 1,
    "product of {}": lambda f, x: x @ x,
}
"""Title → function of a framework and a square matrix: one kernel, or one product."""


def programs(n: int) -> list[Workload]:
    """`PROGRAMS` as workloads on n × n numbers."""
    square = np.random.default_rng(0).normal(size=(n, n)).astype("float32")
    return [
        Workload(
            title=title.format(f"{n}×{n}"),
            target=None,
            batch=lambda: [square],
            net=lambda framework: None,
            apply=lambda framework, f=f: lambda net, x: f(framework, x),
            jax=None,
            kind="predict",
        )
        for title, f in PROGRAMS.items()
    ]


def main(order: str, *arguments: str) -> None:
    end = time.monotonic() + float(arguments[-1])
    with gpu_or_stand_in() as real:
        chosen = [WORKLOADS[name] for name in STEPS]
        chosen += [*LARGE.values(), *programs(4096)] * real
        rows = {"steps": measure_steps, "kernels": profile_kernels}[order]
        for row in rows(chosen, *arguments[:-1], end=end):
            print(json.dumps(row), flush=True)


@contextmanager
def gpu_or_stand_in() -> Iterator[bool]:
    """The GPU is the device within the block; yields whether it is one."""
    import minipaddle as paddle
    from tests.gpu import fake_cuda, fake_cupy

    real = not isinstance(gpus.gpu(), str)
    with pytest.MonkeyPatch.context() as patch:
        if not real:
            module = gpus.CuPy(fake_cupy.cupy)
            module.special, module.errstate = fake_cupy.special, fake_cupy.errstate
            patch.setattr(gpus, "gpu", lambda: module)
            emulated = fake_cuda.install(module, patch)
            patch.setattr(gpu_program, "gpu_of", lambda index: emulated)
        before, flags = paddle.get_device(), paddle.get_flags([TF32])
        paddle.set_device("gpu")
        try:
            yield real
        finally:
            paddle.set_flags(flags)
            paddle.set_device(before)


# ---- steps -----------------------------------------------------------------------------------


def measure_steps(workloads, framework: str, mode: str, *, end: float) -> Iterator[dict]:
    """A row for each workload and precision: milliseconds of a step, seconds of the first call,
    and one number that comes out; or why there is none.
    """
    module = import_module(framework)
    if framework == "torch":
        module.set_default_device("cuda")
    for precision in PRECISIONS:
        for workload in workloads:
            row = {"workload": workload.title, "precision": precision}
            if time.monotonic() > end - 2:
                return
            try:
                step, statics = build(module, workload, precision, mode)
                yield row | measure(step, wait_of(module)) | explain(statics)
            except Exception as error:
                yield row | {"why": f"{type(error).__name__}: {str(error)[:200]}"}


def build(framework, workload: Workload, precision: str, mode: str) -> tuple[Callable, list]:
    """A step of a workload, and the functions that were captured (ours)."""
    statics: list = []
    torch, captured = is_torch(framework), mode == "captured"
    apply = (captured and torch and workload.torch_compile) or workload.apply
    how: dict = {"apply": apply}
    if precision == "bfloat16":
        how["apply"] = lambda framework: in_bfloat16(framework, apply(framework))
    elif precision == "TF32":
        allow_tf32(framework)
    if captured and torch:
        how["convert"] = framework.compile
    elif captured:
        how["whole"] = lambda step: statics.append(capture(framework, step)) or statics[-1]
    return step_of(framework, workload, weights=weights_of(workload), **how), statics


def explain(statics: list) -> dict:
    """Why a captured step of ours is no CUDA program, if it is none."""
    reasons = statics[0].concrete_program.executables.reasons if statics else {}
    return {"why": "; ".join(reasons.values())} if reasons else {}


def capture(paddle, step):
    return paddle.jit.to_static(step, backend="cuda")


def in_bfloat16(framework, compute):
    """The same function in mixed precision."""
    if is_torch(framework):
        return framework.autocast("cuda", framework.bfloat16)(compute)

    def cast(net, *batch):
        with framework.amp.auto_cast(level="O1", dtype="bfloat16"):
            return compute(net, *batch)

    return cast


def allow_tf32(framework) -> None:
    """Let products of float32 round their factors to TF32, from now on."""
    if not is_torch(framework):
        framework.set_flags({TF32: True})
        return
    framework.set_float32_matmul_precision("high")
    framework.backends.cudnn.allow_tf32 = True


def wait_of(framework) -> Callable:
    """A function that waits until the GPU is done."""
    return framework.cuda.synchronize if is_torch(framework) else framework.device.synchronize


def measure(step: Callable, wait: Callable) -> dict:
    """The median of calls after four, each until the GPU is done."""

    def call() -> float:
        began = time.perf_counter()
        results.append(step())
        wait()
        return time.perf_counter() - began

    results: list = []
    first = call()
    for _ in range(3):
        call()
    value, times = mean_of(results[-1]), []
    while len(times) < RUNS and sum(times) < SECONDS:
        results.clear()
        times.append(call())
    return {"ms": 1e3 * statistics.median(times), "first": first, "value": value}


def mean_of(result) -> float:
    """The mean size of the numbers of the first result."""
    while isinstance(result, tuple | list):
        result = result[0]
    host = result.detach().cpu()
    return float(abs(np.asarray(host.float() if hasattr(host, "float") else host.numpy())).mean())


# ---- kernels ---------------------------------------------------------------------------------


def profile_kernels(workloads, *, end: float) -> Iterator[dict]:
    """A row for each captured step: the times of its kernels, largest first."""
    import minipaddle as paddle

    large = [w for w in workloads if w in LARGE.values()]
    for workload in [*large, *(w for w in workloads if w not in large)]:
        for precision in ("float32", "bfloat16"):
            title = f"{workload.title}, {precision}"
            if time.monotonic() > end - 2:
                return
            try:
                step, statics = build(paddle, workload, precision, "captured")
                for _ in range(3):
                    step()
                (executable,) = statics[0].concrete_program.executables.compiled.values()
                yield {"title": title} | profile(executable)
            except Exception as error:
                says = f"FAILED: {type(error).__name__}: {str(error)[:200]}"
                yield {"title": title, "says": says}


def profile(executable: cuda.CudaExecutable, runs: int = 5) -> dict:
    """The kernels of an executable by time, each between two events, and what it launches."""
    device, context, calls = executable.device, executable.contexts[0], []
    events = device.module.cuda

    class TimedSteps(cuda.GpuSteps):
        """Steps with an event before and after each call."""

        def call(self, record, call) -> Callable:
            step, ends = super().call(record, call), (events.Event(), events.Event())
            calls.append((record, call, ends, []))

            def timed():
                ends[0].record()
                step()
                ends[1].record()

            return timed

    moves = [*executable.plan.before, *executable.plan.copies]
    with device.working():
        inputs = [device.empty(r.spec.size, r.dtype) for r in executable.program.inputs]
        for array in inputs:
            array.fill(0)
        context.place_arrays(inputs)  # it holds them, and what is written
        states = [a.reshape(-1) for a in context.states]
        memory = PlanMemory(context.arena, context.inputs, states, context.outputs)
        steps = TimedSteps(context, executable.plan, memory).steps()
        speed = measure_copy(device)
        for _ in range(runs):
            do(steps)
            device.stream.synchronize()
            for _, _, ends, times in calls:
                times.append(events.get_elapsed_time(*ends) * 1e-3)
    row = summarize(calls, speed, len(moves))
    outside = {
        "of inputs": sum(own is not None for own in context.inputs),
        "of results": sum(own is not None for own in context.outputs),
        "of small states": len(context.own), "in case of an error": len(executable.states_at_risk),
    }  # fmt: skip
    copies = ", ".join(f"{count} {of}" for of, count in outside.items())
    return row | {"says": f"{row['says']}; copies outside the graph: {copies}"}


def measure_copy(device) -> float:
    """Bytes a second that a large copy reads and writes."""
    real = not hasattr(device.module.cuda, "streams")
    size = 2**28 if real else 2**20
    one, two = (device.empty(size, "uint8") for _ in range(2))
    first, last = (device.module.cuda.Event() for _ in range(2))
    for _ in range(2):
        first.record()
        device.copy(device.address(one), device.address(two), size)
        last.record()
        device.stream.synchronize()
    return 2 * size / max(device.module.cuda.get_elapsed_time(first, last) * 1e-3, 1e-9)


def summarize(calls, speed: float, copies: int, most: int = 16) -> dict:
    """What a step launches, and its kernels: those of equal names and sizes are one line."""
    lines: dict[tuple, list] = {}
    for record, call, _, times in calls:
        nbytes, flops = call_bytes(record, call), 0
        key = name_of(call), *size_of(call)
        if isinstance(call, Gemm):
            flops = 2 * call.m * call.n * call.k * call.count
        lines.setdefault(key, []).append((nbytes, flops, statistics.median(times)))
    kernels = []
    for key, group in lines.items():
        nbytes, flops, seconds = map(sum, zip(*group, strict=True))
        kernels.append((seconds, len(group), nbytes, flops, key))
    kernels.sort(reverse=True, key=lambda kernel: kernel[0])
    kinds = [type(call).__name__ for _, call, _, _ in calls]
    idle = [
        key[0]
        for _, count, nbytes, _, key in kernels
        if key[1] and prod(key[1]) < BUSY and nbytes / count > LARGE_BYTES
    ]
    total = sum(kernel[0] for kernel in kernels)
    counts = ", ".join(f"{kinds.count(kind)} of {kind}" for kind in ("Launch", "Gemm", "Clear"))
    says = f"{counts}, {copies} copies; {total * 1e3:.3f} ms; a copy moves {speed / 1e9:.0f} GB/s"
    says += f"; over 1 MB with fewer than {BUSY} blocks: {', '.join(idle) or 'none'}"
    rows = [show_kernel(kernel, speed) for kernel in kernels[:most]]
    return {"says": says, "kernels": rows}


def show_kernel(kernel, speed: float) -> list:
    """A line of the table: of all calls the time and the bytes."""
    seconds, count, nbytes, flops, (name, blocks, threads) = kernel
    rate = nbytes / max(seconds, 1e-9)
    name += f" ({flops / max(seconds, 1e-9) / 1e12:.3g} TFLOP/s)" if flops else ""
    sizes = ["x".join(map(str, size)) if size else "-" for size in (blocks, threads)]
    figures = [f"{nbytes / 1e6:.2f}", f"{seconds * 1e6:.1f}", f"{rate / 1e9:.0f}"]
    return [name, count, *sizes, *figures, f"{rate / speed:.0%}"]


def name_of(call) -> str:
    if isinstance(call, Gemm):
        return f"cuBLAS {call.dtype.name} {call.m}x{call.n}x{call.k}, {call.count}"
    return call.name if isinstance(call, Launch) else "clear"


def size_of(call) -> tuple:
    """Blocks and threads of a kernel of ours."""
    return (call.blocks, call.threads) if isinstance(call, Launch) else (None, None)


if __name__ == "__main__":
    main(*sys.argv[1:])
