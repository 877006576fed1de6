"""A stand-in for the parts of CuPy that compiled programs run on: streams, graphs, kernels, cuBLAS.

What is submitted to a stream runs at once or, during a capture, whenever its graph is launched. As
on a GPU the default stream cannot be captured, and who captures may neither look at an array nor
write to one by array operations. Kernels run through g++ (tests/codegen/cuda_on_cpu.py).
"""

from __future__ import annotations

import ctypes
import threading
import time
from types import SimpleNamespace

import numpy as np

from minipaddle.executors.gpu import device as gpu
from tests.codegen.cuda_on_cpu import Cpu
from tests.gpu.fake_cupy import KERNELS, Array, Device, asarray, show

CHIP = Cpu()


class Current(threading.local):
    """The streams that `with` has made current in a thread, the innermost last."""

    def __init__(self, null):
        self.streams = [null]


class Stream:
    """A stream; it is its own event."""

    def __init__(self, cuda, ptr: int):
        self.cuda, self.ptr, self.captured = cuda, ptr, None

    def __enter__(self):
        self.cuda.current.streams.append(self)

    def __exit__(self, *_):
        self.cuda.current.streams.pop()

    def submit(self, do) -> None:
        """Do it now, or when the graph is launched."""
        assert self is self.cuda.get_current_stream()
        if self.captured is None:
            do()
        else:
            self.captured.append(do)

    def synchronize(self):
        assert self.captured is None

    def begin_capture(self, mode=None):
        assert self.ptr > 2, "cannot capture on the default (legacy) stream"
        assert self.captured is None
        self.captured = []

    def end_capture(self):
        steps, self.captured = self.captured, None
        return Graph(steps)


class Graph:
    """What was captured."""

    def __init__(self, steps):
        self.steps = steps

    def launch(self, stream=None):
        for do in self.steps:
            stream.submit(do)


class Event:
    """A moment of the current stream."""

    def record(self, stream=None):
        self.seconds = time.perf_counter()


class Cuda:
    """`cupy.cuda`."""

    Device, Event = Device, Event

    def __init__(self):
        self.streams = {0: Stream(self, 0)}
        self.current = Current(self.streams[0])
        self.runtime = SimpleNamespace(
            getDeviceCount=lambda: 1, memcpyAsync=self.memcpy, memsetAsync=self.memset
        )

    def Stream(self, null=False, non_blocking=False):
        ptr = 2 + len(self.streams)
        self.streams[ptr] = Stream(self, ptr)
        return self.streams[ptr]

    def get_current_stream(self):
        return self.current.streams[-1]

    def get_elapsed_time(self, first, last):
        return (last.seconds - first.seconds) * 1e3

    def memcpy(self, dst, src, size, kind, stream):
        assert kind == gpu.DEVICE_TO_DEVICE
        self.streams[stream].submit(lambda: ctypes.memmove(dst, src, size))

    def memset(self, ptr, value, size, stream):
        self.streams[stream].submit(lambda: ctypes.memset(ptr, value, size))

    def RawModule(self, *, code, options, backend):
        assert (options, backend) == (gpu.OPTIONS, "nvrtc")
        return SimpleNamespace(get_function=lambda name: self.kernel(code, name))

    def kernel(self, code: str, name: str):
        function = CHIP.compile(code, [name])[name]

        def call(grid, block, args):
            assert type(args) is tuple
            KERNELS["ours"] += 1
            self.get_current_stream().submit(lambda: CHIP.launch(function, grid, block, args))

        return call

    def Cublas(self, stream: int, workspace: int, nbytes: int):
        """A handle on one stream."""
        do = lambda *arguments: self.streams[stream].submit(lambda: CHIP.gemm(*arguments))
        return SimpleNamespace(gemm=do)

    def empty(self, size, dtype):
        """Memory that holds nothing sensible."""
        memory = np.empty(size, dtype)
        memory.reshape(-1).view("uint8")[...] = 0xCB
        return Array(memory)

    def fill(self, array, value):
        self.get_current_stream().submit(lambda: array.a.fill(show(value)))

    def waiting(self, operation):
        """An array operation that no graph can hold."""

        def do(*arguments):
            if self.get_current_stream().captured is not None:
                raise RuntimeError("operation not permitted when stream is capturing")
            return operation(*arguments)

        return do


def install(module, monkeypatch) -> gpu.Gpu:
    """The GPU of an array module that stands in for CuPy."""
    cuda = Cuda()
    for name in ("RawModule", "empty"):
        monkeypatch.setattr(module, name, getattr(cuda, name), raising=False)
    convert = lambda a, dtype=None: (
        a if isinstance(a, Array) and dtype is None else asarray(a, dtype)
    )
    monkeypatch.setattr(module, "asarray", convert, raising=False)
    monkeypatch.setattr(module, "cuda", cuda, raising=False)
    monkeypatch.setattr(gpu, "Cublas", cuda.Cublas)
    place = property(lambda array: SimpleNamespace(ptr=array.a.ctypes.data))
    monkeypatch.setattr(Array, "data", place, raising=False)
    monkeypatch.setattr(Array, "fill", lambda array, value: cuda.fill(array, value), raising=False)
    for name in ("get", "set", "__bool__", "__int__", "__setitem__"):
        monkeypatch.setattr(Array, name, cuda.waiting(getattr(Array, name)))
    return gpu.Gpu(module, 0)
