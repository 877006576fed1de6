"""The functions of a GPU that an executor needs, through CuPy: memory, kernels, cuBLAS, graphs.

All work runs on one stream of ours. Graphs are captured on another stream, which is used for
nothing else: so work of other threads does not enter a graph. The default stream cannot be
captured.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from functools import cache

from ...codegen.cuda.calls import Gemm
from ...codegen.cuda.packs import NBYTES
from ...eager.gpu import gpu
from ...engine.eager.device import ArrayModule
from .cublas import Cublas

OPTIONS = ("--std=c++17",)
"""Further options of NVRTC. Without fast math NaN and Inf keep their meaning."""

DEVICE_TO_DEVICE = 3

WORKSPACE = 32 * 2**20
"""Bytes of workspace for cuBLAS, which must not allocate memory during a capture."""

LEGACY = (0, 1)
"""The handles of the default stream. It and our stream wait for each other automatically."""


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
        """Within the block, array operations also run on our stream: after the earlier work of the
        caller's stream, and before its later work.
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
        """The current stream: ours, or the one that is being captured."""
        return self.module.cuda.get_current_stream().ptr

    # ---- memory ------------------------------------------------------------------------------

    def empty(self, size: int, dtype):
        return self.module.empty(size, dtype)

    def to_device(self, array):
        """An array on this GPU; the same array if it is already there."""
        return self.module.asarray(array)

    def as_input(self, array, spec):
        """An array as kernels read it: on this GPU, row-major, with the program's dtype, from an
        address on that packs of 16 bytes can begin.
        """
        if array.shape != spec.shape:
            raise ValueError(
                f"an array of shape {list(array.shape)} where {list(spec.shape)} is needed"
            )
        array = self.to_device(array)
        if array.dtype == spec.dtype and array.flags.c_contiguous:
            return array.copy() if self.address(array) % NBYTES else array
        return self.module.ascontiguousarray(array, spec.dtype).reshape(spec.shape)

    def write(self, array, values) -> None:
        """Write values of the host, a few of them, into an array."""
        array.set(values, self.stream)

    @staticmethod
    def address(array) -> int:
        return array.data.ptr

    @staticmethod
    def to_host(array):
        """The array on the host; waits for all earlier work."""
        return array.get()

    # ---- work --------------------------------------------------------------------------------

    def compile(self, text: str, names) -> dict:
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

    def copy(self, to: int, source: int, nbytes: int) -> None:
        if nbytes:
            copy = self.module.cuda.runtime.memcpyAsync
            copy(to, source, nbytes, DEVICE_TO_DEVICE, self.now)

    def record_graph(self, steps):
        """Capture steps, which have run before, as a graph; return a function that launches it."""
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
    """A GPU by its number, the same for all threads, or why programs cannot be compiled for it."""
    with MAKING:
        return open_gpu(index)


@cache
def open_gpu(index: int) -> Gpu | str:
    module = gpu()
    if isinstance(module, str):
        return f"no usable GPU: {module}"
    try:
        return Gpu(module, index)
    except (OSError, RuntimeError) as error:
        return f"cuBLAS cannot be used: {error}"
