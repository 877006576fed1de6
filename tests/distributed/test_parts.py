"""Parts of what carries ranks that are processes, each by itself: no MPI is needed."""

import os
import signal
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from minipaddle.distributed import CollectiveTimeout, PeerFailed, launch
from minipaddle.distributed.failures import keeper
from minipaddle.distributed.ranks import mpi


class Refused(Exception):
    """What MPI raises."""


class Watch:
    """One that hears what it is log, and counts the questions."""

    def __init__(self, *heard):
        self.heard, self.asked, self.failure = list(heard), 0, None

    def check(self):
        self.asked += 1
        if self.heard and self.asked >= self.heard[0]:
            raise PeerFailed(self.heard[1])

    def check_ended(self, *what):
        """Nobody has."""

    def report_timeout(self, key, number, ranks, what, timeout):
        return CollectiveTimeout(f"{what} waited {timeout} s")


def asked(*answers, watch=None):
    """A collective that MPI answers so, again and again the last; an error is raised."""
    left = list(answers)

    def test():
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    group = SimpleNamespace(
        watch=watch or Watch(), key="0", timeout=5.0, MPI=SimpleNamespace(Exception=Refused),
        note_wait=lambda number, ranks: None,
    )  # fmt: skip
    return mpi.MPIWork(group, SimpleNamespace(Test=test), "sum", "all_reduce number 7", 7, [0, 1])


# ---- a collective under way ------------------------------------------------------------------


def test_it_is_asked_for_until_it_is_done():
    work = asked(*[False] * (mpi.SPIN + 20), True)
    assert not work.is_completed()
    assert work.wait() == "sum"
    assert work.group.watch.asked > 5  # with an eye on the others


def test_what_mpi_refuses_is_an_error():
    with pytest.raises(RuntimeError, match="all_reduce number 7: truncated"):
        asked(False, Refused("truncated")).wait()


def test_if_another_is_gone_that_is_why():
    with pytest.raises(PeerFailed, match="rank 1 died"):
        asked(False, Refused("no answer"), watch=Watch(1, "rank 1 died")).wait()
    with pytest.raises(PeerFailed, match="rank 1 died"):
        asked(False, watch=Watch(3, "rank 1 died")).wait()


def test_what_has_come_meanwhile_counts():
    """The others are done, and gone, when the result is here at last."""
    assert asked(*[False] * (mpi.SPIN + 1), True, watch=Watch(1, "rank 1 ended")).wait() == "sum"


def test_it_is_late():
    with pytest.raises(CollectiveTimeout, match=r"all_reduce number 7 waited 0\.01 s"):
        asked(False).wait(0.01)


def test_an_array_on_a_gpu_is_refused(monkeypatch):
    monkeypatch.setattr(mpi, "module_of", lambda array: "cupy")
    with pytest.raises(TypeError, match="broadcast by MPI of an array on a GPU"):
        mpi.MPIGroup.start(SimpleNamespace(), "broadcast", np.ones(1))


def test_without_mpi_it_is_said_what_to_install(monkeypatch):
    def missing(name):
        raise ImportError("libmpi.so not found")

    monkeypatch.setattr(mpi.importlib, "import_module", missing)
    with pytest.raises(RuntimeError, match=r"libmpi\.so not found(?s:.*)minipaddle\[mpi\]"):
        mpi.mpi()


# ---- a process -------------------------------------------------------------------------------


@pytest.fixture
def job(monkeypatch):
    """A process of a job, and what its end was log."""
    log = []
    near = SimpleNamespace(rank=0, size=2, Free=lambda: None)
    world = SimpleNamespace(Split_type=lambda kind: near, size=2, rank=0)
    watch = Watch()
    watch.report_failure = lambda error: log.append(error)
    watch.leave = lambda: log.append("left")
    monkeypatch.setattr(mpi, "connect", lambda world, timeout, alone: (watch, None))
    abort = SimpleNamespace(Abort=lambda code: log.append(f"abort {code}"))
    fake = SimpleNamespace(COMM_TYPE_SHARED=1, COMM_WORLD=abort)
    monkeypatch.setattr(mpi, "mpi", lambda: fake)
    monkeypatch.setattr(mpi.atexit, "register", lambda function: None)
    monkeypatch.setattr(sys, "excepthook", lambda *error: log.append("traceback"))
    before = signal.getsignal(signal.SIGUSR1)
    yield mpi.MPIJob(world, 5.0), log
    signal.signal(signal.SIGUSR1, before)


def test_a_process_that_ends_well_says_goodbye(job):
    job, log = job
    job.end()
    assert log == ["left"]


def test_a_process_that_fails_tells_and_ends_all(job):
    job, log = job
    error = ValueError("boom")
    sys.excepthook(ValueError, error, None)
    job.watch.failure = PeerFailed("rank 0 failed")  # the witness repeats it
    job.end()
    assert log == [error, "traceback", "left", "abort 1"]


def test_what_was_sent_leaves_before_the_process_does(job):
    job, log = job
    work = asked(*[False] * 5, True)
    work.group.job = job
    work.run_in_background()
    job.end()
    assert work.ended
    assert log[0] == "left"


# ---- the keeper ------------------------------------------------------------------------------


class Over(BaseException):
    """The process would have ended."""


def kept(monkeypatch, status: int) -> list:
    """What the keeper does when its rank ends so."""
    done = []
    monkeypatch.setenv("PADDLE_PG_TIMEOUT", "1e6")
    monkeypatch.setattr(os, "fork", lambda: 42)
    monkeypatch.setattr(os, "waitpid", lambda pid, flags: (pid, status))
    monkeypatch.setattr(os, "kill", lambda *call: done.append(call))
    monkeypatch.setattr(os, "_exit", lambda code: done.append(code))
    monkeypatch.setattr(keeper.time, "sleep", done.append)
    before = signal.getsignal(signal.SIGUSR1)
    keeper.main()
    signal.signal(signal.SIGUSR1, before)
    return done


def test_a_keeper_ends_with_its_rank(monkeypatch):
    assert kept(monkeypatch, 0) == [0]


@pytest.mark.parametrize("status", [signal.SIGKILL, 1 << 8])
def test_a_keeper_gives_the_others_time_and_ends_the_job(status, monkeypatch):
    me = (os.getpid(), signal.SIGKILL)
    assert kept(monkeypatch, status)[:2] == [keeper.GRACE, me]


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_a_rank_dies_with_its_keeper(platform, monkeypatch):
    done = []
    libc = SimpleNamespace(prctl=lambda *call: done.append(call))
    monkeypatch.setattr(keeper.ctypes, "CDLL", lambda name: libc)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(sys, "argv", ["keeper.py", "train.py", "--lr", "1"])
    monkeypatch.setattr(os, "fork", lambda: 0)

    def execv(path, call):
        done.append(call[1:])
        raise Over

    monkeypatch.setattr(os, "execv", execv)
    with pytest.raises(Over):
        keeper.main()
    dies = [(keeper.DIE_WITH_PARENT, signal.SIGKILL)] if platform == "linux" else []
    assert done == [*dies, ["-m", "mpi4py", "train.py", "--lr", "1"]]


# ---- launch ----------------------------------------------------------------------------------


def test_launch_leaves_what_it_was_not_told(monkeypatch):
    monkeypatch.setattr(os, "execv", lambda path, call: None)
    monkeypatch.setattr(launch, "find_mpiexec", lambda: "mpiexec")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PADDLE_PG_TIMEOUT", "9000")
    launch.main(["train.py"])
    assert "CUDA_VISIBLE_DEVICES" not in os.environ
    assert float(os.environ["PADDLE_PG_TIMEOUT"]) == 9000
