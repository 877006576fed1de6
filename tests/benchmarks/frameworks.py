"""The frameworks that are measured: how each makes a step of a workload, runs it to its end, keeps
to so many threads and says how much memory it took. Used in the worker, where only one is loaded.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import subprocess
import tempfile
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np

from . import models
from .workloads.workload import Workload

EXECUTORS = ("interpreter", "native")
NUMPY = 389047
"""The domain in which NumPy reports to tracemalloc (`np.lib.tracemalloc_domain`)."""


@dataclass
class Step:
    """`run` does one step and waits until it is done; `memory` gives the most bytes that a step
    needs above what outlives it; `program` is what ours runs.
    """

    run: Callable
    memory: Callable | None
    """None for ours: counting slows it down, so `traced_bytes` does it in another process."""
    program: Callable = lambda: None
    remarks: Callable = list
    """Why it is not what its name says, after the first steps: programs that are interpreted."""
    settle: Callable = lambda: None
    """Brings it to where it would be after many steps."""


# ---- MiniPaddle ------------------------------------------------------------------------------


def wait_for_kernels(call, programs: bool = True) -> None:
    """Let eager mode be compiled from now on, and call until all is that the call uses; of walks
    back and steps of optimizers their operators, or `programs`.
    """
    import minipaddle as paddle
    from minipaddle.executors.hot import EagerKernel

    paddle.set_flags({"FLAGS_eager_kernels": True, "FLAGS_eager_programs": programs})
    with mock.patch.multiple(EagerKernel, start=1, serve=1):
        for _ in range(6):  # the operators in a derivative are compiled before it
            call()


def minipaddle(workload: Workload, weights, executor: str | None = None) -> Step:
    import minipaddle as paddle

    if executor is None:
        run = models.step_of(paddle, workload, weights=weights)
        return Step(run, None, settle=partial(wait_for_kernels, run))
    statics = []

    def whole(step):
        statics.append(paddle.jit.to_static(step, backend=executor))
        return statics[0]

    run = models.step_of(paddle, workload, weights=weights, whole=whole)
    last = lambda: statics[0].concrete_program
    remarks = lambda: [*last().executables.reasons.values()]
    return Step(run, None, program=lambda: last().program, remarks=remarks)


def traced_bytes(make: Callable[[], Step]) -> dict:
    """`step`: the most that is held during a step above what is held before it, as allocators of
    NumPy and Python report it; `arrays`: what NumPy's arrays hold between steps.

    Asked of a process that has made no array yet.
    """
    tracemalloc.start(1)
    run = make().run
    for _ in range(3):
        run()
    gc.collect()
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    run()
    _, peak = tracemalloc.get_traced_memory()
    arrays = tracemalloc.take_snapshot().filter_traces([tracemalloc.DomainFilter(True, NUMPY)])
    return {"step": peak - before, "arrays": sum(trace.size for trace in arrays.traces)}


# ---- PyTorch ---------------------------------------------------------------------------------


def torch(workload: Workload, weights, compiled: bool = False) -> Step:
    import torch

    if not compiled:
        run = models.step_of(torch, workload, weights=weights)
    else:
        compile = partial(torch.compile, dynamic=False)
        apply = workload.torch_compile
        run = models.step_of(torch, workload, weights=weights, apply=apply, convert=compile)
    return Step(run, partial(profiled_bytes, torch, run))


def profiled_bytes(torch, run) -> int:
    """The highest sum of what PyTorch's allocator gave and took during a step, as its profiler
    saw it.
    """
    run()
    with torch.profiler.profile(profile_memory=True) as profile:
        run()
    held = peak = 0
    events = profile.profiler.kineto_results.events()
    changes = [e for e in events if e.name() == "[memory]"]
    for event in sorted(changes, key=lambda e: e.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak


# ---- JAX -------------------------------------------------------------------------------------


def jax(workload: Workload, weights) -> Step:
    """The whole step is one jitted function; weights and moments are donated."""
    import jax

    batch = [jax.numpy.asarray(a) for a in workload.batch()]
    weights = {k: jax.numpy.array(a) for k, a in weights.items()}
    make = {"train": jax_trained, "gradient": jax_gradient, "predict": jax_predicted}
    run, lowered = make[workload.kind](jax, workload, weights, batch)

    def memory():
        found = lowered().compile().memory_analysis()
        return found.temp_size_in_bytes + found.output_size_in_bytes - found.alias_size_in_bytes

    return Step(run, memory)


def jax_trained(jax, workload, weights, batch):
    """A function that steps and waits; and one that lowers the step, to look at."""
    rule, state = {"SGD": jax_sgd, "Adam": jax_adam}[workload.optimizer[0]](jax, workload, weights)
    apply = workload.jax(jax)

    def step(weights, state, *batch):
        (loss, buffers), grads = jax.value_and_grad(apply, has_aux=True)(weights, *batch)
        weights, state = rule(weights, grads, state)
        return loss, weights | buffers, state

    step = jax.jit(step, donate_argnums=(0, 1))

    def run():
        nonlocal weights, state
        loss, weights, state = jax.block_until_ready(step(weights, state, *batch))
        return loss

    return run, lambda: step.lower(weights, state, *batch)


def jax_gradient(jax, workload, weights, batch):
    call = jax.jit(jax.value_and_grad(workload.jax(jax)))

    def run():
        loss, grads = jax.block_until_ready(call(weights, *batch))
        return loss, *(grads[name] for name in weights)

    return run, lambda: call.lower(weights, *batch)


def jax_predicted(jax, workload, weights, batch):
    if workload.states:
        return jax_stateful(jax, workload, weights, batch)
    call = jax.jit(workload.jax(jax))
    run = lambda: jax.block_until_ready(call(weights, *batch))
    return run, lambda: call.lower(weights, *batch)


def jax_stateful(jax, workload, weights, batch):
    """The states are donated: a step may write where they lie."""
    states, first = [*map(jax.numpy.array, workload.states())], 1 + len(batch)
    call = jax.jit(workload.jax(jax), donate_argnums=range(first, first + len(states)))

    def run():
        nonlocal states
        result, *states = jax.block_until_ready(call(weights, *batch, *states))
        return result

    return run, lambda: call.lower(weights, *batch, *states)


def jax_sgd(jax, workload, weights):
    rate = workload.optimizer[1]
    return lambda w, g, state: ({k: w[k] - rate * g[k] for k in w}, state), ()


def jax_adam(jax, workload, weights):
    """Kingma and Ba 2015, with the usual 0.9, 0.999 and 1e-8."""
    jnp, rate = jax.numpy, workload.optimizer[1]

    def rule(w, g, state):
        t, m, v = state
        t = t + 1
        m = {k: 0.9 * m[k] + 0.1 * g[k] for k in w}
        v = {k: 0.999 * v[k] + 0.001 * g[k] * g[k] for k in w}
        size, scale = rate / (1 - 0.9**t), jax.lax.rsqrt(1 - 0.999**t)
        w = {k: w[k] - size * m[k] / (jnp.sqrt(v[k]) * scale + 1e-8) for k in w}
        return w, (t, m, v)

    zeros = [{k: jnp.zeros_like(a) for k, a in weights.items()} for _ in range(2)]
    return rule, (jnp.float32(0), *zeros)


# ---- Paddle ----------------------------------------------------------------------------------


def paddle(workload: Workload, weights, static: bool = False) -> Step:
    """Its `to_static` takes the function that computes the loss: it has no backward inside."""
    import paddle

    convert = partial(paddle.jit.to_static, full_graph=True) if static else None
    run = models.step_of(paddle, workload, weights=weights, convert=convert)

    def memory():
        core = paddle.base.core
        before = core.host_memory_stat_current_value("Allocated", 0)
        core.host_memory_stat_reset_peak_value("Allocated", 0)
        run()
        return core.host_memory_stat_peak_value("Allocated", 0) - before

    return Step(run, memory)


# ---- C, by hand --------------------------------------------------------------------------------


def by_hand(workload: Workload, weights) -> Step:
    """A C function that somebody wrote for this step; its pointers are prepared once.

    It takes the weights in the order of their names, the batch, and where the result goes.
    """
    if workload.by_hand is None:
        raise NotImplementedError("nobody wrote this workload in C")
    text, shape = workload.by_hand
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "step.so")
        flags = ["-O3", "-march=native", "-fopenmp-simd", "-shared", "-fPIC"]
        source = Path(__file__).parent / "workloads" / text
        subprocess.run(["gcc", *flags, str(source), "-o", str(library), "-lm"], check=True)
        c = ctypes.CDLL(str(library))
    arrays = [weights[name].copy() for name in sorted(weights)]
    arrays += [*workload.batch(), np.zeros(shape, "float32")]
    table = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
    pointers, call = ctypes.byref(table), c.step

    def run():
        call(pointers)
        return arrays[-1]

    return Step(run, lambda: ctypes.c_long.in_dll(c, "workspace").value)


# ---- all -------------------------------------------------------------------------------------

MAKE = {
    "minipaddle": minipaddle,
    **{f"to_static {name}": partial(minipaddle, executor=name) for name in EXECUTORS},
    "torch": torch,
    "torch.compile": partial(torch, compiled=True),
    "jax": jax,
    "paddle": paddle,
    "paddle.to_static": partial(paddle, static=True),
    "c": by_hand,
}
PEERS = ("torch", "torch.compile", "jax", "paddle", "paddle.to_static", "c")


def library(name: str) -> str:
    """The package that must be installed for this column."""
    ours = "minipaddle" if name.startswith("to_static") else name.split(".")[0]
    return "ctypes" if name == "c" else ours


def keep_to(name: str, threads: int) -> None:
    """Threads that no environment variable governs."""
    from threadpoolctl import threadpool_limits

    module = importlib.import_module(library(name))
    if library(name) == "torch":
        module.set_num_threads(threads)
        module.set_num_interop_threads(1)
    if library(name) == "minipaddle":
        import scipy.linalg  # noqa: F401  its OpenBLAS is another than NumPy's

        threadpool_limits(threads)
