"""What is asked of CuPy and of cuBLAS, written down by a CuPy that does nothing."""

import ctypes
import importlib
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from minipaddle.core.record import Spec
from minipaddle.executors import cublas, gpu


class Array(np.ndarray):
    """An array with an address, as CuPy's have one."""

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data)


class Stream:
    """A stream that writes down what happens on it."""

    ptr = 77

    def __init__(self, log):
        self.log = log

    def begin_capture(self):
        self.log.append("begin")

    def end_capture(self):
        self.log.append("end")
        return SimpleNamespace(launch=lambda stream: self.log.append(("launch", stream is self)))


@pytest.fixture
def made(monkeypatch):
    """(a Gpu, what it has asked for)."""
    log = []

    def device(index):
        context = nullcontext()
        context.use = lambda: log.append(("use", index))
        return context

    def called(name):
        return lambda *args: log.append((name, *args))

    def module_of(**given):
        log.append(given)
        return SimpleNamespace(get_function=lambda name: f"function {name}")

    runtime = SimpleNamespace(memcpyAsync=called("memcpy"), memsetAsync=called("memset"))
    cuda = SimpleNamespace(Device=device, Stream=lambda: Stream(log), runtime=runtime)
    module = SimpleNamespace(
        cuda=cuda, RawModule=module_of, name="cupy",
        empty=lambda size, dtype: np.zeros(size, dtype).view(Array),
        asarray=lambda a: np.asarray(a).view(Array),
        ascontiguousarray=lambda a, dtype: np.ascontiguousarray(a, dtype).view(Array),
    )  # fmt: skip
    monkeypatch.setattr(gpu, "Cublas", lambda *given: log.append(given[::2]))
    return gpu.Gpu(module, 1), log


def test_a_gpu_has_a_stream_and_cublas_works_on_it(made):
    device, log = made
    assert log == [(77, gpu.WORKSPACE)]
    assert device.working() is device.stream
    assert log[-1] == ("use", 1)


def test_memory(made):
    device, log = made
    a, b = device.empty(6, "float32"), device.moved(np.ones(6, "float32"))
    device.copy(a, b)
    device.clear(device.address(a), 24)
    address = a.data.ptr
    assert log[1:] == [("memcpy", address, b.data.ptr, 24, 3, 77), ("memset", address, 0, 24, 77)]
    device.copy(a[:0], b[:0])
    assert len(log) == 3  # nothing to copy


def test_states_are_given_as_kernels_read_them(made):
    device, _ = made
    spec, right = Spec((2, 3), np.dtype("float32")), device.empty((2, 3), "float32")
    assert device.address(device.whole(right, spec)) == device.address(right)
    turned = device.whole(np.arange(6.0).reshape(3, 2).T, spec)
    assert (turned.dtype, turned.flags.c_contiguous) == (np.float32, True)
    assert turned.tolist() == [[0, 2, 4], [1, 3, 5]]
    with pytest.raises(ValueError, match=r"shape \[3\] where \[2, 3\]"):
        device.whole(np.zeros(3), spec)


def test_kernels(made):
    device, log = made
    assert device.compiled("", []) == {}
    assert device.compiled("text", ["f", "g"]) == {"f": "function f", "g": "function g"}
    assert log[-1] == {"code": "text", "options": gpu.OPTIONS, "backend": "nvrtc"}
    device.launch(lambda *given: log.append(given), (3, 1), (32, 4), [5, 6])
    assert log[-1] == ((3, 1), (32, 4), (5, 6))


def test_what_is_captured_runs_between_begin_and_end(made):
    device, log = made
    log.clear()
    graph = device.captured([lambda: log.append("step 1"), lambda: log.append("step 2")])
    graph(), graph()
    assert log == ["begin", "step 1", "step 2", "end", ("launch", True), ("launch", True)]


def test_a_capture_that_fails_is_ended(made):
    device, log = made

    def fails():
        raise RuntimeError("not allowed while capturing")

    with pytest.raises(RuntimeError, match="not allowed"):
        device.captured([fails])
    assert log[-1] == "end"


def test_products_are_cublas_own(made):
    device, log = made
    device.blas = SimpleNamespace(gemm=lambda *given: log.append(given))
    device.gemm("call", 1, 2, 3)
    assert log[-1] == ("call", 1, 2, 3)


def test_without_cublas_the_reason_is_kept(monkeypatch):
    def missing(module, index):
        raise OSError("libcublas.so.12 not found")

    monkeypatch.setattr(gpu, "gpu", lambda: SimpleNamespace(name="cupy"))
    monkeypatch.setattr(gpu, "Gpu", missing)
    gpu.gpu_of.cache_clear()
    assert gpu.gpu_of(0) == "cuBLAS is missing: libcublas.so.12 not found"
    gpu.gpu_of.cache_clear()


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
