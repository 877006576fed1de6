"""What every kind of process group can do: one interface, whatever carries the bytes.

A *rank* is one of several workers that run the same program on data of their own. A group numbers
its ranks from 0; a *collective* is an operation that all of them take part in, in the same order.

| collective     | each rank gives | each rank gets                                 |
|----------------|-----------------|------------------------------------------------|
| all_reduce     | x               | the sum (max, …) of all x                      |
| reduce         | x               | that sum, the rank `dst`; the others keep x    |
| broadcast      | x               | the x of the rank `src`                        |
| all_gather     | x               | all x, one after the other along axis 0        |
| gather         | x               | that, the rank `dst`; the others None          |
| reduce_scatter | size parts      | its part of the sum                            |
| scatter        | size parts      | its part of what the rank `src` gave           |
| all_to_all     | size parts      | part number `rank` of every rank               |

Arrays are NumPy's, or CuPy's under NCCL, contiguous, and the same shape in all ranks where they are
not split: ranks that do not ask for the same get a ValueError that says what each asked for. What
is reduced or received into is written where it stands. With `wait=False` a collective is only
started: what it was given may be touched again after `Work.wait()`.

One NaN of one rank is NaN in all after a reduction. With the environment variable
MINIPADDLE_CHECK_NAN=1, or `group.check_nan = True` in all ranks, a reduction asks first, and names
the ranks that bring it; each then waits for all, so it is slower.

Source: MPI: A Message-Passing Interface Standard 4.0, chapter 6; NCCL User Guide.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import prod

from ..core.dtype import FLOATS, HALVES, float32
from ..core.errors import type_error, value_error
from ..core.slots import slot
from ..eager.device import module_of

OPS = ("sum", "max", "min", "prod", "avg")
"""How values of several ranks become one."""

TIMEOUT = 1800.0
"""The seconds a rank waits for the others unless it is told otherwise (Paddle's half hour)."""


class PeerFailed(RuntimeError):
    """Another rank has ended, failed or died: what it was and why, in all ranks that are left.

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
    """Some rank did not come to a collective in time: a `PeerFailed` that names it.

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
    """A collective under way."""

    @abstractmethod
    def wait(self, timeout: float | None = None):
        """The result, once it is there; raises PeerFailed if another rank is gone, and
        CollectiveTimeout after `timeout` seconds (None: those of the group).
        """

    @abstractmethod
    def is_completed(self) -> bool:
        """Is the result there?"""

    @abstractmethod
    def unwatched(self) -> None:
        """The one who began it computes on: see to it that it goes on alone."""


class Done(Work):
    """A collective that is over."""

    def __init__(self, result=None):
        self.result = result

    def wait(self, timeout: float | None = None):
        return self.result

    def is_completed(self) -> bool:
        return True

    def unwatched(self) -> None:
        """It is over."""


class Then(Work):
    """A collective with something to be done to its result, once."""

    def __init__(self, work: Work, function):
        self.work, self.function = work, function

    def wait(self, timeout: float | None = None):
        if self.function is not None:
            function, result = self.function, self.work.wait(timeout)
            self.function, self.work = None, Done(function(result))
        return self.work.wait(timeout)

    def is_completed(self) -> bool:
        return self.work.is_completed()

    def unwatched(self) -> None:
        self.work.unwatched()


class ProcessGroup(ABC):
    """Ranks that talk to each other. `ranks` are their numbers among all, `rank` is one's own here.

    Kinds of groups implement the abstract methods; all else is written here once.
    """

    backend = ""
    widens = True  # are halves added in float32 here?

    def __init__(self, id: int, ranks: Sequence[int], rank: int, timeout: float = TIMEOUT):
        self.id, self.ranks, self.rank, self.timeout = id, list(ranks), rank, timeout
        self.local_rank = rank  # its number among those on this machine
        self.check_nan = os.environ.get("MINIPADDLE_CHECK_NAN") == "1"

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return len(self.ranks)

    nranks = world_size = size

    @property
    def host(self) -> ProcessGroup:
        """The group of the same ranks that carries NumPy's arrays."""
        return self

    def __repr__(self) -> str:
        return f"<{self.backend} group {self.id}: rank {self.rank} of {self.size}, {self.ranks}>"

    # ---- what a kind of group implements -----------------------------------------------------

    @abstractmethod
    def start(self, name: str, array, **how) -> Work:
        """Begin the collective `name`; its result is what the table above says.

        `how` has `op` ("sum", "max", "min" or "prod"), `root`, `out` (where a part goes), and for
        all_to_all `sent` and `received`, the rows for each rank and from each.
        """

    @abstractmethod
    def post(self, array, dst: int, tag: int) -> Work:
        """Begin to send."""

    @abstractmethod
    def take(self, array, src: int, tag: int) -> Work:
        """Begin to receive into `array`."""

    @abstractmethod
    def subgroup(self, id: int, ranks: Sequence[int], timeout: float) -> ProcessGroup | None:
        """The group of some of these ranks (numbers among all); None if this one is not of them."""

    @abstractmethod
    def check(self) -> None:
        """Raise PeerFailed if another rank is known to be gone."""

    @abstractmethod
    def came_to(self, what: str) -> int:
        """This rank comes to a collective of this group; its number."""

    @abstractmethod
    def late(self, number: int, what: str, timeout: float) -> PeerFailed:
        """The error of all ranks when one has waited too long: it names who did not come."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what carries the bytes. All ranks do, when nothing is under way."""

    # ---- reductions --------------------------------------------------------------------------

    def all_reduce(self, array, op: str = "sum", *, wait: bool = True):
        """Every rank's `array` becomes the sum (maximum, …) over all: the same bits in each."""
        return finished(self.reduced("all_reduce", array, op), wait)

    def reduce(self, array, dst: int = 0, op: str = "sum", *, wait: bool = True):
        """`all_reduce`, for the rank `dst` alone; the arrays of the others stay."""
        return finished(self.reduced("reduce", array, op, root=self.known(dst)), wait)

    def reduce_scatter(self, array, op: str = "sum", *, wait: bool = True):
        """Part number `rank` of the sum; `array` is cut along axis 0 into as many as are ranks."""
        self.parts(array)
        return finished(self.reduced("reduce_scatter", array, op), wait)

    def reduced(self, name: str, array, op: str, **how) -> Work:
        """Begin a reduction: "avg" is a sum divided, halves are added in float32."""
        if op not in OPS:
            raise value_error(f"{name} with op={op!r}", expected=f"one of {', '.join(OPS)}")
        if op == "avg" and array.dtype not in FLOATS:
            raise type_error(
                f"the average of {array.dtype}", expected="a floating dtype", hint='op="sum"'
            )
        if array.dtype.kind == "b" and op in ("sum", "avg", "prod"):
            raise type_error(f"{name} of bool with op={op!r}", hint='"max" is or, "min" is and')
        if self.check_nan and array.dtype in FLOATS:
            self.name_nan(name, array)
        half = self.widens and array.dtype in HALVES
        wide = array.astype(float32.numpy) if half else array
        plain = "sum" if op == "avg" else op
        if name == "all_reduce":
            work = all_reduce(self, wide, plain)
            work = work if isinstance(work, Work) else Done(wide)
        else:
            work = self.start(name, wide, op=plain, **how)
        if wide is array and op != "avg":
            return work
        alone = name == "reduce" and self.rank != how["root"]

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

        return Then(work, finish)

    def name_nan(self, name: str, array) -> None:
        """Raise ValueError in all ranks that names those whose array has NaN."""
        m = module_of(array)
        flags = self.start("all_gather", m.asarray([m.isnan(array).any()])).wait().tolist()
        if any(flags):
            who = ", ".join(str(r) for r, flag in zip(self.ranks, flags, strict=True) if flag)
            said = f"{name} of {array.dtype}{list(array.shape)}: NaN comes from rank {who}"
            raise value_error(said, hint="look at its data and its loss, before the backward")

    # ---- copies ------------------------------------------------------------------------------

    def broadcast(self, array, src: int = 0, *, wait: bool = True):
        """Every rank's `array` becomes that of the rank `src`."""
        return finished(self.start("broadcast", array, root=self.known(src)), wait)

    def all_gather(self, array, *, wait: bool = True):
        """The arrays of all ranks, one after the other along axis 0."""
        return finished(self.start("all_gather", array), wait)

    def gather(self, array, dst: int = 0, *, wait: bool = True):
        """`all_gather`, for the rank `dst` alone; the others get None."""
        return finished(self.start("gather", array, root=self.known(dst)), wait)

    def scatter(self, out, array=None, src: int = 0, *, wait: bool = True):
        """`out` becomes part number `rank` of the `array` of the rank `src`."""
        if self.known(src) == self.rank:
            if array is None:
                raise value_error(f"scatter from rank {src}, which gives nothing")
            self.parts(array)
        return finished(self.start("scatter", array, out=out, root=src), wait)

    def all_to_all(self, array, sent=None, received=None, *, wait: bool = True):
        """Part number `rank` of every rank's `array`, one after the other along axis 0.

        `sent` and `received` are the rows for each rank and from each, where they differ.
        """
        rows = None if sent is not None else self.parts(array)
        sent = list(sent) if sent is not None else [rows] * self.size
        received = list(received) if received is not None else sent
        for what, counts in (("sent", sent), ("received", received)):
            if len(counts) != self.size:
                raise value_error(f"{len(counts)} counts of rows {what}", expected=self.size)
        if sum(sent) != array.shape[0]:
            raise value_error(f"all_to_all of {array.shape[0]} rows sends {sum(sent)}")
        return finished(self.start("all_to_all", array, sent=sent, received=received), wait)

    def barrier(self) -> None:
        """Wait until every rank is here."""
        self.start("barrier", None).wait()

    # ---- from one to one ---------------------------------------------------------------------

    def send(self, array, dst: int, tag: int = 0, *, wait: bool = True):
        """Send to the rank `dst`, which calls `recv`. Messages of a tag arrive in their order."""
        return finished(self.post(array, self.known(dst), tag), wait)

    def recv(self, array, src: int, tag: int = 0, *, wait: bool = True):
        """Receive into `array` what the rank `src` sends."""
        return finished(self.take(array, self.known(src), tag), wait)

    # ---- groups and numbers ------------------------------------------------------------------

    def get_group_rank(self, rank: int) -> int:
        """The number here of the rank that is `rank` among all; -1 if it is not of the group."""
        return self.ranks.index(rank) if rank in self.ranks else -1

    def is_member(self) -> bool:
        """Is this rank of the group, and are there others?"""
        return self.rank >= 0 and self.size > 1

    @property
    def name(self) -> str:
        return f"_default_pg{self.id}"

    @property
    def process_group(self) -> ProcessGroup:
        return self

    def known(self, rank: int) -> int:
        """`rank`, if the group has it."""
        if not 0 <= rank < self.size:
            raise value_error(f"rank {rank}", expected=f"0 to {self.size - 1} in {self}")
        return rank

    def parts(self, array) -> int:
        """The rows of each part of `array`."""
        rows = array.shape[0] if array.ndim else 0
        if not array.ndim or rows % self.size:
            raise value_error(
                f"an array of shape {list(array.shape)} for {self.size} ranks",
                expected=f"a first axis that {self.size} divides",
            )
        return rows // self.size


@slot("distributed.all_reduce")
def all_reduce(group: ProcessGroup, array, op: str) -> Work | None:
    """Begin to make every rank's `array` the sum (or "max", "min", "prod") over the ranks.

    One that is done when it returns may return None.
    """
    return group.start("all_reduce", array, op=op)


def row_of(array) -> int:
    """The bytes of one row of an array that is cut along axis 0."""
    return prod(array.shape[1:]) * array.itemsize


def finished(work: Work, wait: bool):
    """The result of a collective, or the work itself."""
    if wait:
        return work.wait()
    work.unwatched()
    return work
