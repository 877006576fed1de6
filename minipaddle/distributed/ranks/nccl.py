"""Ranks that compute on a GPU each: NCCL, through CuPy.

The ranks connect in a group of another kind (threads or MPI), which carries NCCL's first message
and watches for failures. Then each collective runs on a stream of its own: it waits for the work
before it, the GPU computes on, and `wait` makes later work wait for it.

Source: NCCL User Guide, "Operations" and "Point to point communication"; CuPy's `cupy.cuda.nccl`.
"""

from __future__ import annotations

import time

from ...engine.core.errors import runtime_error, type_error
from ...engine.core.rank import cause
from ...engine.distributed.collectives import CollectiveCall
from ...engine.distributed.process_group import Done, MappedWork, PeerFailed, ProcessGroup, Work
from ...engine.eager.device import CPU, NUMPY, current_place, module_of
from ..collectives.exchange_parts import bytes_per_row

NAMES = {
    "bool": "UINT8", "uint8": "UINT8", "int8": "INT8", "int32": "INT32", "int64": "INT64",
    "float16": "FLOAT16", "bfloat16": "BFLOAT16", "float32": "FLOAT32", "float64": "FLOAT64",
}  # fmt: skip
"""NCCL's names of dtypes. Collectives that only copy send bytes."""

PAUSE = 2e-4


class StreamWork(Work):
    """A collective on a stream: `event` is at its end."""

    def __init__(self, group: NCCLGroup, event, result, what: CollectiveCall, number: int, kept=()):
        self.group, self.event, self.result = group, event, result
        self.what, self.number, self.kept = what, number, kept  # `kept`: memory that NCCL reads

    def is_completed(self) -> bool:
        return self.event.done

    def wait(self, timeout: float | None = None):
        timeout = self.group.timeout if timeout is None else timeout
        base, deadline = self.group.base, time.monotonic() + timeout
        base.note_wait(self.number)
        while not self.event.done:
            try:
                base.check()
                if time.monotonic() > deadline:
                    raise base.report_timeout(self.number, self.what, timeout)
            except PeerFailed:
                self.group.communicator.abort()
                raise
            time.sleep(PAUSE)
        self.kept = ()
        return self.result


class NCCLGroup(ProcessGroup):
    """A group whose ranks have a GPU each; `base` is the group that connected them.

    The base carries messages from one to one, through the CPU: two ranks that send to each other
    first would wait forever on NCCL's stream.
    """

    backend = "nccl"
    widens = False  # NCCL adds up halves itself

    def __init__(self, base: ProcessGroup, communicator):
        super().__init__(base.id, base.ranks, base.rank, base.timeout)
        self.base, self.communicator = base, communicator
        self.m, self.nccl = current_place().module, nccl()
        self.stream = self.m.cuda.Stream(non_blocking=True)

    @property
    def host(self) -> ProcessGroup:
        return self.base

    @classmethod
    def of(cls, base: ProcessGroup) -> NCCLGroup:
        """Connect the ranks of `base` on their GPUs."""
        letter = NUMPY.zeros(128, "int8")
        if base.rank == 0:
            letter[:] = NUMPY.frombuffer(nccl().get_unique_id(), "int8")
        base.broadcast(letter, 0)
        communicator = nccl().NcclCommunicator(base.size, letter.tobytes(), base.rank)
        return cls(base, communicator)

    def start(self, name: str, array, **options) -> Work:
        if name == "barrier":
            return Done(self.base.barrier())
        if module_of(options.get("out", array)) is NUMPY:
            raise type_error(f"{name} by NCCL of an array on the CPU", hint='x.to("gpu") first')
        self.base.check()
        number, now = self.base.count_call(name), self.m.cuda.get_current_stream()
        self.stream.wait_event(now.record())
        with self.stream:
            result = getattr(self, f"begin_{name}")(array, **options)
            event = self.stream.record()
        what = CollectiveCall(name, number, cause.now)
        return StreamWork(self, event, result, what, number, (array, now))

    # ---- each gives its result -----------------------------------------------------------------

    def begin_all_reduce(self, array, op):
        address, n, dtype = self.numbers(array)
        self.communicator.allReduce(address, address, n, dtype, self.op(op), self.stream.ptr)
        return array

    def begin_reduce(self, array, op, root):
        address, n, dtype = self.numbers(array)
        self.communicator.reduce(address, address, n, dtype, self.op(op), root, self.stream.ptr)
        return array

    def begin_reduce_scatter(self, array, op):
        part = self.m.empty((array.shape[0] // self.size, *array.shape[1:]), array.dtype)
        address, n, dtype = self.numbers(part)
        ask = self.communicator.reduceScatter
        ask(self.numbers(array)[0], address, n, dtype, self.op(op), self.stream.ptr)
        return part

    def begin_broadcast(self, array, root):
        address, octets = array.data.ptr, self.nccl.NCCL_UINT8
        self.communicator.broadcast(address, address, array.nbytes, octets, root, self.stream.ptr)
        return array

    def begin_all_gather(self, array):
        result = self.m.empty((self.size * array.shape[0], *array.shape[1:]), array.dtype)
        addresses, octets = (array.data.ptr, result.data.ptr), self.nccl.NCCL_UINT8
        self.communicator.allGather(*addresses, array.nbytes, octets, self.stream.ptr)
        return result

    def begin_gather(self, array, root):
        if self.rank != root:
            return self.exchange(array, {root: (0, array.nbytes)}, None, {})
        result = self.m.empty((self.size * array.shape[0], *array.shape[1:]), array.dtype)
        n = array.nbytes
        places = {r: (r * n, n) for r in range(self.size)}
        return self.exchange(array, {root: (0, n)}, result, places)

    def begin_scatter(self, array, root, out):
        n = out.nbytes
        places = {r: (r * n, n) for r in range(self.size)} if self.rank == root else {}
        return self.exchange(array, places, out, {root: (0, n)})

    def begin_all_to_all(self, array, sent, received):
        row = bytes_per_row(array)
        result = self.m.empty((sum(received), *array.shape[1:]), array.dtype)
        return self.exchange(array, spans(sent, row), result, spans(received, row))

    def exchange(self, array, sent: dict, result, received: dict):
        """Send and receive bytes of all ranks at once: rank -> (first, number)."""
        octets, stream = self.nccl.NCCL_UINT8, self.stream.ptr
        self.nccl.groupStart()
        for rank, (begin, n) in sent.items():
            self.communicator.send(array.data.ptr + begin, n, octets, rank, stream)
        for rank, (begin, n) in received.items():
            self.communicator.recv(result.data.ptr + begin, n, octets, rank, stream)
        self.nccl.groupEnd()
        return result

    def numbers(self, array) -> tuple[int, int, int]:
        """The address of an array, the number of its elements, and NCCL's number of its dtype."""
        name = NAMES.get(array.dtype.name)
        if name is None:
            raise type_error(f"NCCL cannot add up {array.dtype}", expected=", ".join(NAMES))
        return array.data.ptr, array.size, getattr(self.nccl, f"NCCL_{name}")

    def op(self, name: str) -> int:
        return getattr(self.nccl, f"NCCL_{name.upper()}")

    # ---- through the base ----------------------------------------------------------------------

    def post(self, array, dst: int, tag: int) -> Work:
        return self.base.post(CPU.move(array), dst, tag)

    def take(self, array, src: int, tag: int) -> Work:
        on_cpu = NUMPY.empty(array.shape, array.dtype)

        def fill(received):
            array[...] = self.m.asarray(received)
            return array

        return MappedWork(self.base.take(on_cpu, src, tag), fill)

    def subgroup(self, id: int, ranks, timeout: float) -> NCCLGroup | None:
        base = self.base.subgroup(id, ranks, timeout)
        return None if base is None else NCCLGroup.of(base)

    def check(self) -> None:
        self.base.check()

    def count_call(self, what: str) -> int:
        return self.base.count_call(what)

    def note_wait(self, number: int) -> None:
        self.base.note_wait(number)

    def report_timeout(self, number: int, what: str, timeout: float) -> PeerFailed:
        return self.base.report_timeout(number, what, timeout)

    def close(self) -> None:
        self.communicator.destroy()
        self.base.close()


def spans(rows, row: int) -> dict:
    """rank -> (first byte, number of bytes), from the number of rows of each."""
    return {k: (sum(rows[:k]) * row, n * row) for k, n in enumerate(rows) if n}


def nccl():
    """The module `cupy.cuda.nccl`; RuntimeError if NCCL is not there."""
    module = getattr(current_place().module.cuda, "nccl", None)
    if module is None or not module.available:
        raise runtime_error("no NCCL", hint='pip install "minipaddle[cuda12]" brings CuPy and NCCL')
    return module
