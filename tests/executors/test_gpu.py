"""What is asked of CuPy and of cuBLAS, written down by a CuPy that does nothing."""

import ctypes
import importlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

from minipaddle.engine.core.record import Spec
from minipaddle.executors.gpu import cublas
from minipaddle.executors.gpu import device as gpu


class Array(np.ndarray):
    """An array with an address, as CuPy's have one; it keeps what was written, and by whom."""

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data)

    def set(self, values, stream):
        self.written = values, stream


class Stream:
    """A stream that writes down what happens on it. `with` makes it the current one."""

    def __init__(self, cuda, ptr: int):
        self.cuda, self.ptr, self.log = cuda, ptr, cuda.log

    def __enter__(self):
        self.cuda.streams.append(self)

    def __exit__(self, *_):
        self.cuda.streams.pop()

    def record(self):
        return f"told {self.ptr}"

    def wait_event(self, event):
        self.log.append(f"{self.ptr} waits for what was {event}")

    def begin_capture(self):
        self.log.append(f"begin {self.ptr}")

    def end_capture(self):
        self.log.append(f"end {self.ptr}")
        return SimpleNamespace(launch=lambda stream: self.log.append(f"launch {stream.ptr}"))


DEFAULT, OURS, RECORDER, OTHER = 0, 77, 78, 79


class Cuda:
    """`cupy.cuda`: it does nothing, and writes that down."""

    def __init__(self, log):
        self.log, self.streams, self.devices = log, [], []
        self.streams.append(Stream(self, DEFAULT))
        self.runtime = SimpleNamespace(
            memcpyAsync=self.asked("memcpy"), memsetAsync=self.asked("memset")
        )

    def asked(self, name):
        return lambda *args: self.log.append((name, *args))

    def Stream(self, non_blocking=False):
        return Stream(self, RECORDER if non_blocking else OURS)

    def get_current_stream(self):
        return self.streams[-1]

    @contextmanager
    def Device(self, index):
        self.devices.append(index)
        yield
        self.devices.pop()


@pytest.fixture
def made(monkeypatch):
    """(a Gpu, what it has asked for)."""
    log = []

    def module_of(**given):
        log.append(given)
        return SimpleNamespace(get_function=lambda name: f"function {name}")

    module = SimpleNamespace(
        cuda=Cuda(log), RawModule=module_of, name="cupy",
        empty=lambda size, dtype: np.zeros(size, dtype).view(Array),
        asarray=lambda a: np.asarray(a).view(Array),
        ascontiguousarray=lambda a, dtype: np.ascontiguousarray(a, dtype).view(Array),
    )  # fmt: skip

    def blas(stream, room, nbytes):
        log.append((stream, nbytes))
        return SimpleNamespace(gemm=lambda *given: log.append((stream, *given)))

    monkeypatch.setattr(gpu, "Cublas", blas)
    return gpu.Gpu(module, 1), log


def test_a_gpu_has_two_streams_and_cublas_works_on_both(made):
    device, log = made
    assert log == [(OURS, gpu.WORKSPACE), (RECORDER, gpu.WORKSPACE)]
    with device.working():
        assert device.now == OURS
        assert device.module.cuda.devices == [1]
    assert (device.now, device.module.cuda.devices) == (DEFAULT, [])


def test_work_comes_after_that_of_the_stream_before_and_before_what_it_does_next(made):
    """The default stream sees to that itself."""
    device, log = made
    log.clear()
    with device.working(), device.working():
        log.append("work")
    assert log == ["work"]
    log.clear()
    with Stream(device.module.cuda, OTHER), pytest.raises(KeyError), device.working():
        raise KeyError
    assert log == ["77 waits for what was told 79", "79 waits for what was told 77"]


def test_memory(made):
    device, log = made
    a, b = device.empty(6, "float32"), device.to_device(np.ones(6, "float32"))
    log.clear()
    with device.working():
        device.copy(a.data.ptr, b.data.ptr, 24)
        device.clear(device.address(a), 24)
    address = a.data.ptr
    assert log == [("memcpy", address, b.data.ptr, 24, 3, 77), ("memset", address, 0, 24, 77)]
    device.copy(a.data.ptr, b.data.ptr, 0)
    assert len(log) == 2  # nothing to copy
    device.write(a, "values")
    assert a.written == ("values", device.stream)  # it does not wait


def test_states_are_given_as_kernels_read_them(made):
    device, _ = made
    spec, right = Spec((2, 3), np.dtype("float32")), device.empty((2, 3), "float32")
    assert device.address(device.as_input(right, spec)) == device.address(right)
    turned = device.as_input(np.arange(6.0).reshape(3, 2).T, spec)
    assert (turned.dtype, turned.flags.c_contiguous) == (np.float32, True)
    assert turned.tolist() == [[0, 2, 4], [1, 3, 5]]
    with pytest.raises(ValueError, match=r"shape \[3\] where \[2, 3\]"):
        device.as_input(np.zeros(3), spec)


def test_kernels(made):
    device, log = made
    assert device.compile("", []) == {}
    assert device.compile("text", ["f", "g"]) == {"f": "function f", "g": "function g"}
    assert log[-1] == {"code": "text", "options": gpu.OPTIONS, "backend": "nvrtc"}
    device.launch(lambda *given: log.append(given), (3, 1), (32, 4), [5, 6])
    assert log[-1] == ((3, 1), (32, 4), (5, 6))


def test_what_is_captured_goes_to_a_stream_of_its_own(made):
    """What other threads tell ours meanwhile is no part of the graph."""
    device, log = made
    log.clear()
    steps = [lambda: device.clear(5, 6), lambda: device.gemm("call", 1, 2, 3)]
    with device.working():
        graph = device.record_graph(steps)
        graph(), graph()
    between = [("memset", 5, 0, 6, RECORDER), (RECORDER, "call", 1, 2, 3)]
    assert log == ["begin 78", *between, "end 78", "launch 77", "launch 77"]


def test_a_capture_that_fails_is_ended(made):
    device, log = made

    def fails():
        raise RuntimeError("not allowed while capturing")

    with pytest.raises(RuntimeError, match="not allowed"):
        device.record_graph([fails])
    assert log[-1] == "end 78"
    assert (device.now, device.lock.locked()) == (DEFAULT, False)


def test_products_are_cublas_own(made):
    device, log = made
    with device.working():
        device.gemm("call", 1, 2, 3)
    assert log[-1] == (OURS, "call", 1, 2, 3)


def test_without_cublas_the_reason_is_kept(monkeypatch):
    def missing(module, index):
        raise OSError("libcublas.so.12 not found")

    monkeypatch.setattr(gpu, "gpu", lambda: SimpleNamespace(name="cupy"))
    monkeypatch.setattr(gpu, "Gpu", missing)
    gpu.open_gpu.cache_clear()
    assert gpu.gpu_of(0) == "cuBLAS cannot be used: libcublas.so.12 not found"
    gpu.open_gpu.cache_clear()


def test_threads_that_ask_at_the_same_time_get_one_gpu(monkeypatch):
    """Two would have two streams, and nothing would order what is done on them."""
    arrived = threading.Barrier(4)

    def slow(module, index):
        time.sleep(0.05)
        return object()

    def ask(_):
        arrived.wait(5)
        return gpu.gpu_of(0)

    monkeypatch.setattr(gpu, "gpu", lambda: SimpleNamespace(name="cupy"))
    monkeypatch.setattr(gpu, "Gpu", slow)
    gpu.open_gpu.cache_clear()
    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(ask, range(4)))) == 1
    gpu.open_gpu.cache_clear()


# ---- where cuBLAS is -------------------------------------------------------------------------


def test_cublas_is_found_where_cupy_finds_it(monkeypatch):
    found = SimpleNamespace(load_nvidia_dynamic_lib=lambda name: SimpleNamespace(abs_path=name))
    monkeypatch.setattr(importlib, "import_module", lambda name: found)
    monkeypatch.setattr(ctypes, "CDLL", lambda path: f"library {path}")
    assert cublas.library() == "library cublas"


@pytest.mark.parametrize("there", ["libcublas.so.12", None])
def test_without_pathfinder_the_system_is_asked(monkeypatch, there):
    def no_module(name):
        raise ImportError(f"no module {name}")

    def load(path):
        if path == there:
            return f"library {path}"
        raise OSError(path)

    monkeypatch.setattr(importlib, "import_module", no_module)
    monkeypatch.setattr(ctypes, "CDLL", load)
    if there:
        assert cublas.library() == f"library {there}"
    else:
        with pytest.raises(OSError, match=r"no module cuda\.pathfinder"):
            cublas.library()


def test_cupy_has_what_is_asked_of_it():
    """Names and the order of arguments, where CuPy is installed; it needs no GPU for that."""
    cupy = pytest.importorskip("cupy")
    cuda, runtime = cupy.cuda, cupy.cuda.runtime
    head = lambda function: function.__doc__.partition("\n")[0]
    assert "non_blocking=False" in head(cuda.Stream.__init__)
    assert "launch(self, stream=None)" in head(cuda.Graph.launch)
    assert "(self, event)" in head(cuda.Stream.wait_event)
    for name in ("begin_capture", "end_capture", "record", "__enter__"):
        assert callable(getattr(cuda.Stream, name))
    for name in ("code", "options", "backend='nvrtc'"):
        assert name in head(cupy.RawModule)
    assert "(self, grid, block, args," in head(cupy.RawKernel.__call__)
    assert "(intptr_t dst, intptr_t src, size_t size, int kind, int" in head(runtime.memcpyAsync)
    assert "(intptr_t ptr, int value, size_t size, int" in head(runtime.memsetAsync)
    assert "set(self, arr, stream=None)" in head(cupy.ndarray.set)
    assert runtime.memcpyDeviceToDevice == gpu.DEVICE_TO_DEVICE
    assert cuda.Stream.null.ptr in gpu.LEGACY
    assert cuda.Stream.ptds.ptr not in gpu.LEGACY
