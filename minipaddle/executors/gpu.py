"""What an executor needs of a GPU, by CuPy: memory, kernels, cuBLAS, graphs.

All of it runs on one stream of ours. Graphs are captured on another, which nothing else is told to:
what other threads do meanwhile is no part of them, and on the default stream none could be.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from functools import cache

from ..codegen.cuda.calls import Gemm
from ..engine.eager.device import ArrayModule, gpu
from .cublas import Cublas

OPTIONS = ("--std=c++17",)
"""For NVRTC, beside CuPy's own. No fast math: NaN and Inf are kept."""

DEVICE_TO_DEVICE = 3

WORKSPACE = 32 * 2**20
"""Bytes for cuBLAS, which would otherwise ask for memory while it is captured."""

LEGACY = (0, 1)
"""The default stream by its two numbers: our stream and it wait for each other of themselves."""


class Gpu:
    """A GPU; arrays are CuPy's, addresses are numbers."""

    def __init__(self, module: ArrayModule, index: int):
        self.module, self.index, self.lock = module, index, threading.Lock()
        with module.cuda.Device(index):
            self.stream = module.cuda.Stream()
            self.recorder = module.cuda.Stream(non_blocking=True)
            self.workspace = module.empty(WORKSPACE, "uint8")  # graphs, too, run on our stream
            room = self.workspace.data.ptr, WORKSPACE
            streams = self.stream.ptr, self.recorder.ptr
            self.blas = {stream: Cublas(stream, *room) for stream in streams}

    @contextmanager
    def working(self):
        """A context in which array operations, too, run on our stream: after what the stream of
        before was told to do, and before what it will be.
        """
        with self.module.cuda.Device(self.index):
            before = self.module.cuda.get_current_stream()
            apart = before.ptr not in (*LEGACY, self.stream.ptr)
            if apart:
                self.stream.wait_event(before.record())
            try:
                with self.stream:
                    yield
            finally:
                if apart:
                    before.wait_event(self.stream.record())

    @property
    def now(self) -> int:
        """The stream that is told what to do: ours, or the one that is captured."""
        return self.module.cuda.get_current_stream().ptr

    # ---- memory ------------------------------------------------------------------------------

    def empty(self, size: int, dtype):
        return self.module.empty(size, dtype)

    def moved(self, array):
        """An array on this GPU; itself if it is there."""
        return self.module.asarray(array)

    def whole(self, array, spec):
        """An array as kernels read it: here, row-major, of the dtype the program has."""
        if array.shape != spec.shape:
            raise ValueError(
                f"an array of shape {list(array.shape)} where {list(spec.shape)} is needed"
            )
        array = self.moved(array)
        if array.dtype == spec.dtype and array.flags.c_contiguous:
            return array
        return self.module.ascontiguousarray(array, spec.dtype).reshape(spec.shape)

    @staticmethod
    def address(array) -> int:
        return array.data.ptr

    @staticmethod
    def fetched(array):
        """The array on the host; waits for all that was to be done before."""
        return array.get()

    # ---- work --------------------------------------------------------------------------------

    def compiled(self, text: str, names) -> dict:
        """The kernels of a CUDA file by name."""
        if not names:
            return {}
        file = self.module.RawModule(code=text, options=OPTIONS, backend="nvrtc")
        return {name: file.get_function(name) for name in names}

    def launch(self, function, blocks, threads, addresses) -> None:
        function(blocks, threads, tuple(addresses))

    def gemm(self, call: Gemm, x: int, y: int, c: int) -> None:
        self.blas[self.now].gemm(call, x, y, c)

    def clear(self, address: int, nbytes: int) -> None:
        self.module.cuda.runtime.memsetAsync(address, 0, nbytes, self.now)

    def copy(self, target, source) -> None:
        if target.nbytes:
            self.module.cuda.runtime.memcpyAsync(
                target.data.ptr, source.data.ptr, target.nbytes, DEVICE_TO_DEVICE, self.now
            )

    def captured(self, steps):
        """The steps as one graph: a function that launches it. They ran once before."""
        with self.lock, self.recorder:
            self.recorder.begin_capture()
            try:
                for step in steps:
                    step()
            finally:
                graph = self.recorder.end_capture()
        return lambda: graph.launch(self.stream)


MAKING = threading.Lock()


def gpu_of(index: int) -> Gpu | str:
    """A GPU by its number, the same for all threads, or why programs can not be compiled for it."""
    with MAKING:
        return opened(index)


@cache
def opened(index: int) -> Gpu | str:
    module = gpu()
    if isinstance(module, str):
        return f"no usable GPU: {module}"
    try:
        return Gpu(module, index)
    except (OSError, RuntimeError) as error:
        return f"cuBLAS can not be used: {error}"
