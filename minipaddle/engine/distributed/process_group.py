"""The interface of every kind of process group, whatever carries the bytes.

A *rank* is one of several workers that run the same program on data of their own. A group numbers
its ranks from 0; a *collective* is an operation that all of them take part in, in the same order.

| collective     | each rank gives | each rank gets                                 |
|----------------|-----------------|------------------------------------------------|
| all_reduce     | x               | the sum (max, …) of all x                      |
| broadcast      | x               | the x of the rank `src`                        |
| all_gather     | x               | all x, one after the other along axis 0        |

`minipaddle.distributed.collectives` adds others, and messages. Arrays are NumPy's, or CuPy's under
NCCL, contiguous, and the same shape in all ranks where they are not split. Ranks whose calls differ
get a ValueError that lists the calls. Reductions and receives write their array in place.
With `wait=False` a collective is only started: its arrays may be touched again after `Work.wait()`.

Source: MPI: A Message-Passing Interface Standard 4.0, chapter 6; NCCL User Guide.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from ..core.dtype import FLOATS, HALVES, float32
from ..core.errors import type_error, value_error
from ..core.slots import slot
from ..eager.device import module_of

OPS = ("sum", "max", "min", "prod", "avg")
"""The operations that combine values of several ranks."""

TIMEOUT = 1800.0
"""The seconds for which a rank waits for the others by default (Paddle's half hour)."""


class PeerFailed(RuntimeError):
    """Another rank has ended, failed or died. All remaining ranks raise it; it says which and why.

    >>> import minipaddle.distributed as dist
    >>> heard = []
    >>> def work():
    ...     if dist.get_rank() == 1:
    ...         raise ValueError("no data")
    ...     try:
    ...         dist.barrier()
    ...     except dist.PeerFailed as error:
    ...         heard.append(str(error))
    >>> try:
    ...     dist.spawn(work, nprocs=2)
    ... except ValueError as error:
    ...     print(error, heard)
    no data ['rank 1 failed: ValueError: no data']
    """


class CollectiveTimeout(PeerFailed):
    """A rank did not come to a collective in time: a `PeerFailed` that names it.

    >>> import minipaddle.distributed as dist
    >>> import time
    >>> def work():
    ...     time.sleep(0.5 * dist.get_rank())
    ...     dist.barrier()
    >>> try:
    ...     dist.spawn(work, nprocs=2, timeout=0.1)
    ... except dist.CollectiveTimeout as error:
    ...     print(str(error)[:50])
    barrier number 1 waited 0.1 s: rank 1 did not come
    """


class Work(ABC):
    """A collective that has been started."""

    @abstractmethod
    def wait(self, timeout: float | None = None):
        """Wait for the result. Raise PeerFailed if another rank is gone, and CollectiveTimeout
        after `timeout` seconds (None: the group's).
        """

    @abstractmethod
    def is_completed(self) -> bool:
        """Return True once the result is there."""

    def run_in_background(self) -> None:  # noqa: B027
        """Let the collective go on while the rank that started it computes, if it does not yet."""


class Done(Work):
    """A collective that has completed."""

    def __init__(self, result=None):
        self.result = result

    def wait(self, timeout: float | None = None):
        return self.result

    def is_completed(self) -> bool:
        return True


class MappedWork(Work):
    """A collective, and a function that its result passes through once."""

    def __init__(self, work: Work, function):
        self.work, self.function = work, function

    def wait(self, timeout: float | None = None):
        if self.function is not None:
            function, result = self.function, self.work.wait(timeout)
            self.function, self.work = None, Done(function(result))
        return self.work.wait(timeout)

    def is_completed(self) -> bool:
        return self.work.is_completed()

    def run_in_background(self) -> None:
        self.work.run_in_background()


class ProcessGroup(ABC):
    """Ranks that talk to each other. `ranks` are their numbers among all, `rank` is one's own here.

    Each kind of group implements the abstract methods; all others are written once, for all.
    """

    backend = ""
    checks = ()  # functions (group, name of the reduction, array) that may refuse it
    widens = True  # whether float16 and bfloat16 are added in float32 here

    def __init__(self, id: int, ranks: Sequence[int], rank: int, timeout: float = TIMEOUT):
        self.id, self.ranks, self.rank, self.timeout = id, list(ranks), rank, timeout
        self.local_rank = rank  # its number among the ranks on this machine

    @property
    def size(self) -> int:
        """The number of ranks."""
        return len(self.ranks)

    @property
    def host(self) -> ProcessGroup:
        """The group of the same ranks that carries NumPy's arrays."""
        return self

    def __repr__(self) -> str:
        return f"<{self.backend} group {self.id}: rank {self.rank} of {self.size}, {self.ranks}>"

    # ---- methods that a kind of group implements ---------------------------------------------

    @abstractmethod
    def start(self, name: str, array, **options) -> Work:
        """Start the collective `name`, whose result the table above gives.

        `options` are `op` ("sum", "max", "min" or "prod"), `root`, `out` (it receives a part), and
        for all_to_all `sent` and `received`, the rows for each rank and from each.
        """

    @abstractmethod
    def subgroup(self, id: int, ranks: Sequence[int], timeout: float) -> ProcessGroup | None:
        """The group of some of these ranks (numbers among all); None if this rank is not in it."""

    @abstractmethod
    def check(self) -> None:
        """Raise PeerFailed if another rank is known to be gone."""

    def close(self) -> None:  # noqa: B027
        """Release the connection. All ranks call it, when no collective is under way."""

    # ---- reductions --------------------------------------------------------------------------

    def all_reduce(self, array, op: str = "sum", *, wait: bool = True):
        """Every rank's `array` becomes the sum (maximum, …) over all: the same bits in each."""
        return result_or_work(self.start_reduction("all_reduce", array, op), wait)

    def start_reduction(self, name: str, array, op: str, **options) -> Work:
        """Start a reduction: "avg" is a sum divided by the size; halves are added in float32."""
        if op not in OPS:
            raise value_error(f"{name} with op={op!r}", expected=f"one of {', '.join(OPS)}")
        if op == "avg" and array.dtype not in FLOATS:
            raise type_error(
                f"the average of {array.dtype}", expected="a floating dtype", hint='op="sum"'
            )
        if array.dtype.kind == "b" and op in ("sum", "avg", "prod"):
            raise type_error(f"{name} of bool with op={op!r}", hint='"max" is or, "min" is and')
        for check in self.checks:
            check(self, name, array)
        half = self.widens and array.dtype in HALVES
        wide = array.astype(float32.numpy) if half else array
        plain = "sum" if op == "avg" else op
        if name == "all_reduce":
            work = all_reduce(self, wide, plain)
            work = work if isinstance(work, Work) else Done(wide)
        else:
            work = self.start(name, wide, op=plain, **options)
        if wide is array and op != "avg":
            return work
        alone = name == "reduce" and self.rank != options["root"]

        def finish(result):
            if alone:
                return array
            if op == "avg":
                module_of(result).divide(result, self.size, out=result)
            if name == "reduce_scatter":
                return result.astype(array.dtype, copy=False)
            if wide is not array:
                array[...] = result
            return array

        return MappedWork(work, finish)

    # ---- copies ------------------------------------------------------------------------------

    def broadcast(self, array, src: int = 0, *, wait: bool = True):
        """Every rank's `array` becomes the array of the rank `src`."""
        return result_or_work(self.start("broadcast", array, root=self.check_rank(src)), wait)

    def all_gather(self, array, *, wait: bool = True):
        """The arrays of all ranks, one after the other along axis 0."""
        return result_or_work(self.start("all_gather", array), wait)

    def barrier(self) -> None:
        """Wait until every rank is here."""
        self.start("barrier", None).wait()

    def check_rank(self, rank: int) -> int:
        """Return `rank`; raise ValueError if the group does not have it."""
        if not 0 <= rank < self.size:
            raise value_error(f"rank {rank}", expected=f"0 to {self.size - 1} in {self}")
        return rank


@slot("distributed.all_reduce")
def all_reduce(group: ProcessGroup, array, op: str) -> Work | None:
    """Start to replace every rank's `array` by the sum (or "max", "min", "prod") over the ranks.

    An implementation that completes before it returns may return None.
    """
    return group.start("all_reduce", array, op=op)


def result_or_work(work: Work, wait: bool):
    """The result of a collective, or with `wait=False` the started work."""
    if wait:
        return work.wait()
    work.run_in_background()
    return work
