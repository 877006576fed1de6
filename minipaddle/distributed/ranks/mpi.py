"""Ranks that are processes, on one machine or on many: MPI, through mpi4py.

    mpiexec -n 4 python -m mpi4py train.py
    python -m minipaddle.distributed.launch --nproc 4 train.py

When a rank is killed, the first command ends all others within milliseconds, often before they
know why; a witness process names the rank that died first (see `witness.py`). The second command
gives the others time to raise `PeerFailed` and to react (see `keeper.py`). With both, all ranks
learn of an error that one rank raises, of a rank that is late, and of one that is stopped (SIGSTOP)
where the others end. With the first command they wait for ever for a rank that fails or is stopped
before all ranks are connected: nobody watches them yet.

MPI compares neither shapes nor dtypes and would add up arrays that do not belong together: each
collective sends a few more bytes that check that all ranks make the same call (see `Agreement`).
MPI has no time-outs and does not report ranks that die: this module starts a collective without
waiting and polls it until it is done, while the watch (see `watch.py`) listens to the witness. MPI
makes progress only in a poll: a thread polls the collectives that `wait=False` started.

Source: MPI: A Message-Passing Interface Standard 4.0; mpi4py's manual.
"""

from __future__ import annotations

import atexit
import importlib
import os
import signal
import sys
import threading
import time

from ...engine.core.errors import runtime_error, type_error
from ...engine.core.rank import cause
from ...engine.distributed.collectives import CollectiveCall, common_signature, why
from ...engine.distributed.process_group import TIMEOUT, Done, PeerFailed, ProcessGroup, Work
from ...engine.eager.device import NUMPY, module_of
from ..collectives.exchange_parts import bytes_per_row
from ..failures.keeper import stay_local
from ..failures.watch import connect
from .votes import Agreement, vote, weight_of

SPIN = 1000
"""How often a rank polls before it pauses; short collectives are done by then."""

NEVER = sys.maxsize
"""The number of a message: larger than the number of any collective."""

PATIENCE = 5.0
"""The seconds after which a waiting rank reports it: messages of ranks that wait as long have
arrived by then.
"""

TAGS = 1 << 15
"""The least number of tags for messages."""

PAUSE = 2e-5, 1e-3
"""The seconds of the first pause, and of the longest."""


def mpi():
    """Return the module `mpi4py.MPI`; raise RuntimeError if it is not installed."""
    try:
        return importlib.import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:
        raise runtime_error(
            f"no MPI: {error}", hint='pip install "minipaddle[mpi]" (mpi4py and MPICH)'
        ) from None


def is_started_by_mpi() -> bool:
    """Return True if `mpiexec` started this process as one of several."""
    sizes = (os.environ.get(name, "") for name in ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE"))
    return any(size.isdigit() for size in sizes)


class Progress:
    """The thread that polls collectives for which no rank waits."""

    def __init__(self):
        self.works: list[MPIWork] = []
        self.changed = threading.Condition()
        threading.Thread(target=self.run, name="communication", daemon=True).start()

    def add(self, work: MPIWork) -> None:
        with self.changed:
            self.works.append(work)
            self.changed.notify()

    def run(self) -> None:
        pause = PAUSE[0]
        while True:
            with self.changed:
                if not self.works:
                    pause = PAUSE[0]
                    self.changed.wait_for(lambda: self.works)
                works = list(self.works)
            over = [work for work in works if work.is_completed()]
            if over:
                pause = PAUSE[0]
                with self.changed:
                    self.works = [work for work in self.works if work not in over]
            else:
                time.sleep(pause)
                pause = min(2 * pause, PAUSE[1])

    def drain(self, seconds: float) -> None:
        """Wait until all messages have left, at most `seconds`."""
        deadline = time.monotonic() + seconds
        while self.works and time.monotonic() < deadline:
            time.sleep(PAUSE[1])


class MPIWork(Work):
    """A collective that MPI has started, or a message."""

    def __init__(self, group: MPIGroup, request, result, what: str, number: int, ranks, kept=()):
        self.group, self.request, self.result = group, request, result
        self.what, self.number, self.ranks = what, number, ranks
        self.kept = kept  # memory that MPI reads
        self.agreement: Agreement | None = None
        self.ended, self.error = False, None
        self.told = False  # whether the witness knows that this rank waits for it
        self.lock = threading.Lock()  # only one thread may poll at a time

    def is_completed(self) -> bool:
        with self.lock:
            try:
                if not self.ended and (self.agreement is None or self.agreement.is_reached()):
                    self.ended = self.request.Test()
            except ValueError as error:
                self.ended, self.error = True, error
                self.group.stuck.append(self)  # MPI may still write to its memory
            except self.group.MPI.Exception as error:
                self.ended, self.error = True, error
        return self.ended

    def run_in_background(self) -> None:
        self.group.job.progress.add(self)

    def wait(self, timeout: float | None = None):
        timeout = self.group.timeout if timeout is None else timeout
        tries, pause, deadline = 0, PAUSE[0], time.monotonic() + timeout
        while not self.is_completed():
            tries += 1
            if tries > SPIN:
                try:
                    self.check_others(timeout, deadline)
                except PeerFailed:
                    if not self.is_completed():  # it may have completed in the meantime
                        raise
                time.sleep(pause)
                pause = min(2 * pause, PAUSE[1])
            elif tries > SPIN // 10:
                time.sleep(0)  # let another rank run where ranks share a core
        self.group.watch.waiting = None
        if self.told:
            self.told = self.group.watch.say(kind="working")
        if isinstance(self.error, ValueError):
            raise self.error
        if self.error is not None:
            self.group.watch.check()
            raise RuntimeError(f"{self.what}: {self.error}") from self.error
        return self.result

    def check_others(self, timeout: float, deadline: float) -> None:
        """Raise if another rank has failed or ended, or on a time-out."""
        watch, key = self.group.watch, self.group.key
        self.group.note_wait(self.number, self.ranks)
        watch.check()
        watch.check_ended(key, self.number, self.ranks, self.what)
        late = time.monotonic() - deadline
        if late + timeout > PATIENCE and not self.told and is_main_thread():
            self.told = True
            watch.report_waiting(key, self.number, self.ranks, self.what)
        if late > 0:
            raise watch.report_timeout(key, self.number, self.ranks, self.what, timeout)


def is_main_thread() -> bool:
    """Whether the running thread is the rank's main thread."""
    return threading.current_thread() is threading.main_thread()


class MPIJob:
    """The state that the groups of one process share."""

    def __init__(self, world, timeout: float):
        near = world.Split_type(mpi().COMM_TYPE_SHARED)
        self.local_rank = near.rank
        self.watch, self.witness = connect(world, timeout, alone=near.size == world.size)
        near.Free()
        self._progress: Progress | None = None
        if is_main_thread():
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # Hydra sends it when a rank dies
        before = sys.excepthook

        def excepthook(error_class, error, traceback):
            self.watch.report_failure(error)
            before(error_class, error, traceback)

        sys.excepthook = excepthook
        atexit.register(self.end)

    @property
    def progress(self) -> Progress:
        if self._progress is None:
            self._progress = Progress()
        return self._progress

    def end(self) -> None:
        """End the process; after a failure, end all processes."""
        if self._progress is not None and self.watch.failure is None:
            self._progress.drain(5)
        self.watch.leave()
        if self.watch.failure is not None:
            sys.stdout.flush()
            sys.stderr.flush()
            mpi().COMM_WORLD.Abort(1)


class MPIGroup(ProcessGroup):
    """A group whose ranks are MPI processes."""

    backend = "mpi"

    def __init__(self, communicator, job: MPIJob, id: int, ranks, timeout: float = TIMEOUT):
        super().__init__(id, ranks, communicator.rank, timeout)
        self.local_rank = job.local_rank
        self.MPI, self.communicator, self.job = mpi(), communicator, job
        self.watch, self.key = job.watch, f"{id}:{','.join(map(str, self.ranks))}"
        communicator.Set_errhandler(self.MPI.ERRORS_RETURN)
        self.aside, self.votes, self.stuck = communicator.Dup(), {}, []
        self.weight = weight_of(self.rank, self.size)
        self.ops = {name: getattr(self.MPI, name.upper()) for name in ("sum", "max", "min", "prod")}

    @classmethod
    def world(cls, timeout: float = TIMEOUT) -> MPIGroup:
        """The group of all processes of the job."""
        stay_local()
        communicator = mpi().COMM_WORLD.Dup()
        return cls(
            communicator, MPIJob(communicator, timeout), 0, range(communicator.size), timeout
        )

    def start(self, name: str, array, **options) -> Work:
        if array is not None and module_of(array) is not NUMPY:
            raise type_error(
                f"{name} by MPI of an array on a GPU", hint="x.cpu(), or NCCL: set_device"
            )
        number = self.count_call(name)
        what = CollectiveCall(name, number, cause.now)
        agreement = Agreement(self, name, array, options | {"cause": cause.now}, what)
        request, result = getattr(self, f"begin_{name}")(array, **options)
        work = MPIWork(self, request, result, what, number, self.ranks, array)
        work.agreement = agreement
        return work

    def vote(self, name: str, array, options: dict) -> int:
        """This rank's vote for a collective."""
        key = common_signature(name, array, options)
        key += (*options["sent"], None, *options["received"]) if name == "all_to_all" else ()
        if key not in self.votes:
            self.votes[key] = vote(self.rank, self.size, name, array, options)
        return self.votes[key]

    # Each of these returns (request, result). MPI gets bytes where it only copies.

    def begin_all_reduce(self, array, op):
        flat = numbers(array)
        return self.communicator.Iallreduce(self.MPI.IN_PLACE, flat, self.ops[op]), array

    def begin_reduce(self, array, op, root):
        flat = numbers(array)
        sides = (self.MPI.IN_PLACE, flat) if root == self.rank else (flat, None)
        return self.communicator.Ireduce(*sides, self.ops[op], root), array

    def begin_reduce_scatter(self, array, op):
        part = NUMPY.empty((array.shape[0] // self.size, *array.shape[1:]), array.dtype)
        ask = self.communicator.Ireduce_scatter_block
        return ask(numbers(array), numbers(part), self.ops[op]), part

    def begin_broadcast(self, array, root):
        return self.communicator.Ibcast(octets(array), root), array

    def begin_all_gather(self, array):
        result = empty_for_all(array, self.size)
        return self.communicator.Iallgather(octets(array), octets(result)), result

    def begin_gather(self, array, root):
        result = empty_for_all(array, self.size) if root == self.rank else None
        into = None if result is None else octets(result)
        return self.communicator.Igather(octets(array), into, root), result

    def begin_scatter(self, array, root, out):
        parts = octets(array) if root == self.rank else None
        return self.communicator.Iscatter(parts, octets(out), root), out

    def begin_all_to_all(self, array, sent, received):
        result = NUMPY.empty((sum(received), *array.shape[1:]), array.dtype)
        row = bytes_per_row(array)
        sides = [
            (octets(x), [n * row for n in counts])
            for x, counts in ((array, sent), (result, received))
        ]
        return self.communicator.Ialltoallv(*sides), result

    def begin_barrier(self, array):
        return self.communicator.Ibarrier(), None

    # ---- from one to one ---------------------------------------------------------------------

    def post(self, array, dst: int, tag: int) -> Work:
        self.watch.check()
        copy = array.copy()  # so that two ranks that send to each other first do not block
        request = self.communicator.Isend(octets(copy), dst, tag)
        work = MPIWork(self, request, None, f"send to rank {dst}", NEVER, [self.ranks[dst]], copy)
        if not work.is_completed():
            self.job.progress.add(work)
        return Done()

    def take(self, array, src: int, tag: int) -> Work:
        self.watch.check()
        request = self.communicator.Irecv(octets(array), src, tag)
        what = f"recv from rank {src}{why(cause.now)}"
        return MPIWork(self, request, array, what, NEVER, [self.ranks[src]])

    def subgroup(self, id: int, ranks, timeout: float) -> MPIGroup | None:
        ranks = list(ranks)
        if self.ranks[self.rank] not in ranks:
            return None
        members = self.communicator.group.Incl(ranks)
        communicator = self.communicator.Create_group(members, abs(id) % TAGS)
        return MPIGroup(communicator, self.job, id, ranks, timeout)

    def check(self) -> None:
        self.watch.check()

    def count_call(self, what: str) -> int:
        return self.watch.count_call(self.key, what)

    def note_wait(self, number: int, ranks=None) -> None:
        """Note that this rank waits for others in a collective, or a message."""
        self.watch.waiting = self.key, number, list(self.ranks if ranks is None else ranks)

    def report_timeout(self, number: int, what: str, timeout: float) -> PeerFailed:
        return self.watch.report_timeout(self.key, number, self.ranks, what, timeout)


def numbers(array):
    """Flatten an array for a sum by MPI, bool as whole numbers."""
    flat = array.reshape(-1)
    return flat.view("uint8") if array.dtype.kind == "b" else flat


def octets(array):
    """View an array as bytes, for MPI to copy."""
    return array.reshape(-1).view("uint8")


def empty_for_all(array, size: int):
    """An empty array for the arrays of all ranks."""
    return NUMPY.empty((size * array.shape[0], *array.shape[1:]), array.dtype)
