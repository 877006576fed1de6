"""A stand-in for `cupy.cuda.nccl` and CuPy's streams: ranks are threads, pointers lead to memory.

It has the names of `tests/data/nccl_names.txt`, which are those of CuPy's module, and NCCL's rules:
every rank of a communicator makes the same calls, in the same order, with the same counts.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace

import ml_dtypes
import numpy as np

NAMES = (Path(__file__).parents[1] / "data" / "nccl_names.txt").read_text().split()
TYPES = {
    "INT8": "int8", "UINT8": "uint8", "INT32": "int32", "INT64": "int64", "FLOAT16": "float16",
    "FLOAT32": "float32", "FLOAT64": "float64", "BFLOAT16": ml_dtypes.bfloat16,
}  # fmt: skip
DTYPES = [np.dtype(t) for t in TYPES.values()]
FOLDS = [np.add, np.multiply, np.maximum, np.minimum]
SECONDS = 20


def memory(pointer: int, count: int, kind: int) -> np.ndarray:
    """The array at an address."""
    nbytes = count * DTYPES[kind].itemsize
    return np.frombuffer((ctypes.c_char * nbytes).from_address(pointer), DTYPES[kind])


class Job:
    """The ranks of one communicator."""

    def __init__(self, size: int):
        self.barrier, self.calls = threading.Barrier(size, timeout=SECONDS), [None] * size
        self.boxes = {pair: SimpleQueue() for pair in itertools.product(range(size), repeat=2)}


jobs: dict[tuple, Job] = {}
lock, numbers, group = threading.Lock(), itertools.count(1), threading.local()


class NcclCommunicator:
    def __init__(self, ndev: int, commId: bytes, rank: int):
        assert isinstance(commId, bytes)
        assert len(commId) == 128
        with lock:
            self.job = jobs.setdefault(commId, Job(ndev))
        self.ndev, self.rank, self.alive = ndev, rank, True
        self.job.barrier.wait()

    def meet(self, *call) -> list:
        """What all ranks have called, after checking that it is the same."""
        assert self.alive
        self.job.calls[self.rank] = call
        self.job.barrier.wait()
        calls = list(self.job.calls)
        self.job.barrier.wait()
        assert len({call[1:] for call in calls}) == 1, "NCCL would hang or give nonsense"
        return [array for array, *_ in calls]

    def _fold(self, arrays, op: int):
        wide = [a.astype("float32") if a.dtype in (DTYPES[4], DTYPES[7]) else a for a in arrays]
        return FOLDS[op].reduce(wide).astype(arrays[0].dtype)

    def allReduce(self, sendbuf, recvbuf, count, datatype, op, stream):
        own = memory(sendbuf, count, datatype).copy()
        whole = self._fold(self.meet(_Once(own), "allReduce", count, datatype, op), op)
        memory(recvbuf, count, datatype)[...] = whole

    def reduce(self, sendbuf, recvbuf, count, datatype, op, root, stream):
        own = memory(sendbuf, count, datatype).copy()
        whole = self._fold(self.meet(_Once(own), "reduce", count, datatype, op, root), op)
        if self.rank == root:
            memory(recvbuf, count, datatype)[...] = whole

    def broadcast(self, sendbuff, recvbuff, count, datatype, root, stream):
        own = memory(sendbuff, count, datatype).copy()
        all_ = self.meet(_Once(own), "broadcast", count, datatype, root)
        memory(recvbuff, count, datatype)[...] = all_[root]

    def allGather(self, sendbuf, recvbuf, count, datatype, stream):
        own = memory(sendbuf, count, datatype).copy()
        whole = np.concatenate(self.meet(_Once(own), "allGather", count, datatype))
        memory(recvbuf, count * self.ndev, datatype)[...] = whole

    def reduceScatter(self, sendbuf, recvbuf, recvcount, datatype, op, stream):
        own = memory(sendbuf, recvcount * self.ndev, datatype).copy()
        whole = self._fold(self.meet(_Once(own), "reduceScatter", recvcount, datatype, op), op)
        part = whole[self.rank * recvcount : (self.rank + 1) * recvcount]
        memory(recvbuf, recvcount, datatype)[...] = part

    def send(self, sendbuf, count, datatype, peer, stream):
        message = memory(sendbuf, count, datatype).copy()
        group.calls.insert(0, lambda: self.job.boxes[self.rank, peer].put(message))

    def recv(self, recvbuf, count, datatype, peer, stream):
        def take():
            memory(recvbuf, count, datatype)[...] = self.job.boxes[peer, self.rank].get(
                timeout=SECONDS
            )

        group.calls.append(take)

    def abort(self):
        self.alive = False
        self.job.barrier.abort()

    def destroy(self):
        self.alive = False


class _Once(np.ndarray):
    """An array among the arguments of a call."""

    def __new__(cls, array):
        return array.view(cls)


def groupStart():
    group.calls = []


def groupEnd():
    for call in group.calls:
        call()


def get_unique_id() -> bytes:
    """128 bytes, as CuPy 14 gives them: some are no digits."""
    return b"\x97\x00" + str(next(numbers)).zfill(126).encode()


nccl = SimpleNamespace(
    available=True,
    NcclCommunicator=NcclCommunicator,
    get_unique_id=get_unique_id,
    groupStart=groupStart,
    groupEnd=groupEnd,
    **{f"NCCL_{name}": k for k, name in enumerate(TYPES)},
    **{f"NCCL_{name}": k for k, name in enumerate(("SUM", "PROD", "MAX", "MIN"))},
)


class Event:
    """The end of a stream's work; the streams of the stand-in finish at once."""

    done = True


class Stream:
    ptr = 7

    def __init__(self, *, non_blocking: bool = False):
        self.waited = []

    def record(self) -> Event:
        return Event()

    def wait_event(self, event: Event) -> None:
        self.waited.append(event)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


def install(cuda, Array, monkeypatch, gpus: int) -> None:
    """Give the stand-in for CuPy streams, NCCL, and `gpus` GPUs."""
    place = property(lambda array: SimpleNamespace(ptr=array.a.ctypes.data))
    monkeypatch.setattr(Array, "data", place, raising=False)
    monkeypatch.setattr(cuda, "nccl", nccl, raising=False)
    monkeypatch.setattr(cuda, "Stream", Stream, raising=False)
    monkeypatch.setattr(cuda, "get_current_stream", Stream, raising=False)
    monkeypatch.setattr(cuda.runtime, "getDeviceCount", lambda: gpus)
