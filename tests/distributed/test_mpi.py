"""Ranks that are processes. A start costs each rank a second, so each does a lot.

`FAULTS=all` tries every fault at every collective.
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import nbclient
import nbformat
import numpy as np
import psutil
import pytest

from minipaddle.distributed import launch
from minipaddle.distributed.failures import keeper
from tests.distributed import faulty, train, train_in_pieces

pytest.importorskip("mpi4py", reason="the extra mpi is not installed")
ROOT = Path(__file__).resolve().parents[2]
MPIEXEC = Path(sys.executable).parent / "mpiexec"
if not MPIEXEC.exists():
    pytest.skip("no mpiexec beside this Python: the extra mpi", allow_module_level=True)


def started(command, **environment) -> subprocess.CompletedProcess:
    """A command from the root of the repository; it may take a minute."""
    around = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"} | environment
    return subprocess.run(
        list(map(str, command)), env=around, cwd=ROOT, timeout=60, text=True, capture_output=True
    )


def mpiexec(ranks: int, *program, **environment):
    command = [MPIEXEC, "-n", ranks, sys.executable, "-m", "mpi4py", *program]
    return started(command, **environment)


@pytest.mark.parametrize("ranks", [1, 4])
def test_conformance(ranks):
    names = "conforming", "playing", "talking", "merging", "private"
    done = mpiexec(ranks, "-m", "tests.distributed.in_mpi", *names)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in names:
        line = f"{name}: {40 if name == 'playing' else ranks}"
        assert done.stdout.count(line) == ranks


def test_ranks_that_disagree_are_told_what_each_asked_for():
    done = mpiexec(3, "-m", "tests.distributed.in_mpi", "disagreeing")
    assert done.stdout.count("disagreeing: (6, 'named', 'named')") == 3, done.stdout + done.stderr


# ---- faults ----------------------------------------------------------------------------------

PAIRS = [
    ("raising", "recv"),
    ("hung", "all_gather"),
    ("hung", "two by two"),
    ("killed", "ZeRO-3"),
]
CALLS = [*faulty.CALLS, *faulty.MADE]
EVERY = os.environ.get("FAULTS") == "all"
if EVERY:
    PAIRS = [(f, c) for f in ("raising", "killed", "hung", "stopped") for c in CALLS]
SAID = {
    "raising": r"rank 1 failed: ValueError: .*a fault of rank 1",
    "killed": r"rank 1 died",
    "hung": r"s: rank 1 did not come \(it was last in ",
    "stopped": r"rank 1 did not come \(it does not answer: stopped, or in code that is not Python",
}


@pytest.mark.sweep(one_in=2)
@pytest.mark.parametrize(("fault", "name"), PAIRS)
def test_a_fault_is_named_to_all(fault, name):
    """All others hear of it within seconds, the job ends, and no process is left."""
    script = [ROOT / "tests" / "distributed" / "faulty.py", fault, name]
    ranks = faulty.RANKS.get(name, 3)
    call = [sys.executable, "-m", "minipaddle.distributed.launch", "--nproc", ranks, *script]
    done = started(call, TOKEN=(token := str(time.time_ns())))
    assert done.returncode != 0
    heard = re.findall(
        r"^rank (\d) after ([\d.]+) s: (.*?)(?=^rank \d after|\Z)", done.stdout, re.M | re.S
    )
    assert {int(rank) for rank, _, _ in heard} == {*range(ranks)} - {1}, done.stdout + done.stderr
    for _, seconds, message in heard:
        assert re.search(SAID[fault], message, re.S)
        assert float(seconds) < 5
    assert not running(token)


@pytest.mark.parametrize("name", CALLS if EVERY else ["broadcast"])
def test_plain_mpiexec_ends_all_and_a_witness_names_who_died(name):
    """The others may hear of it or not, as fast as they are killed; no process is left."""
    script = [ROOT / "tests" / "distributed" / "faulty.py", "killed", name]
    done = mpiexec(4, *script, TOKEN=(token := str(time.time_ns())))
    assert done.returncode != 0
    assert re.findall(r"rank \d of 4 died", done.stderr) == ["rank 1 of 4 died"]
    assert not running(token)


def test_what_a_rank_raises_under_plain_mpiexec_is_named_to_all():
    done = mpiexec(3, ROOT / "tests" / "distributed" / "faulty.py", "raising", "all_gather")
    assert done.returncode != 0
    assert len(re.findall(SAID["raising"], done.stdout)) == 2
    assert " of 3 died" not in done.stderr  # it said itself what happened


def test_a_rank_that_fails_before_the_ranks_have_met_ends_the_job():
    """`mpiexec` would let the others wait for it for ever."""
    script = [ROOT / "tests" / "distributed" / "faulty.py", "early", "barrier"]
    done = started([sys.executable, "-m", "minipaddle.distributed.launch", "--nproc", 2, *script])
    assert done.returncode != 0
    assert "ValueError: a fault before the ranks have met" in done.stderr


SERVER = ["--server_num", 1, "--trainer_num", 2]


@pytest.mark.sweep(one_in=2)
@pytest.mark.slow
@pytest.mark.parametrize(("how", "options", "named"), [
    ("early", ["--nproc", 2], "rank 1 was killed by SIGKILL: it was stopped for 3 s"),
    ("late", ["--nproc", 2], "rank 1 was killed by SIGKILL: it was stopped for 3 s"),
    ("async", SERVER, "rank 2 was killed by SIGKILL|worker 1 asked server 0 for nothing"),
    ("async hung", SERVER, "worker 1 asked server 0 for nothing for 3 s"),
    ("sync", SERVER, "rank 2 was killed|worker 1 asked server 0|worker 1 did not come"),
])  # fmt: skip
def test_a_rank_that_stops_is_named_and_the_job_ends(how, options, named):
    """Before the ranks have met, after their last collective, and where none is called."""
    launched = [sys.executable, "-m", "minipaddle.distributed.launch", "--timeout", 3, *options]
    token = str(time.time_ns())
    done = started([*launched, ROOT / "tests/distributed/stopping.py", how], TOKEN=token)
    assert done.returncode != 0
    assert re.search(named, done.stderr), done.stderr
    assert not running(token)


@pytest.mark.slow
def test_plain_mpiexec_ends_a_rank_that_stops_after_its_last_collective():
    """The others have ended, and wait for it; the witness asks it in vain."""
    command = [MPIEXEC, "-n", 3, sys.executable, ROOT / "tests/distributed/stopping.py", "late"]
    done = started(command, PADDLE_PG_TIMEOUT="1000", TOKEN=(token := str(time.time_ns())))
    assert done.returncode != 0
    assert re.findall(r"^rank \d has not answered", done.stderr, re.M) == [
        "rank 1 has not answered"
    ]
    assert not running(token)


@pytest.mark.parametrize(("seconds", "goes_on", "expected"), [
    (0.3, False, (-signal.SIGKILL, ": it was stopped for 0.3 s")), (60.0, True, (3, "")),
])  # fmt: skip
def test_a_keeper_waits_for_a_stopped_rank(seconds, goes_on, expected):
    """It kills the rank when it has been stopped for long; one that is continued goes on."""
    script = "import os, signal, sys; os.kill(os.getpid(), signal.SIGSTOP); sys.exit(3)"
    program = [sys.executable, "-ISc", script]
    rank = os.posix_spawn(sys.executable, program, os.environ)

    def go_on():
        while psutil.Process(rank).status() != psutil.STATUS_STOPPED:
            time.sleep(0.01)
        time.sleep(3 * keeper.LOOK)
        os.kill(rank, signal.SIGCONT)

    if goes_on:
        threading.Thread(target=go_on, daemon=True).start()
    assert keeper.wait(rank, seconds) == expected


def running(token: str) -> list[str]:
    """The processes of an environment with a token, a little after the job has ended."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        found = [p for p in Path("/proc").glob("[0-9]*/environ") if token in told_to(p)]
        if not found:
            return []
        time.sleep(0.05)
    return found


def told_to(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def test_a_group_has_a_time_out_of_its_own():
    done = mpiexec(2, "-m", "tests.distributed.in_mpi", "impatient")
    assert done.stdout.count("impatient: told") == 2, done.stdout + done.stderr


def test_what_goes_well_ends_well():
    script = [ROOT / "tests" / "distributed" / "sequences.py", 3]
    done = started([sys.executable, "-m", "minipaddle.distributed.launch", "--nproc", 2, *script])
    assert (done.returncode, done.stdout) == (0, "3 sequences on 2 ranks\n"), done.stderr
    assert done.stderr == ""


# ---- one script ------------------------------------------------------------------------------


TRAIN, IN_PIECES = (ROOT / f"tests/distributed/train{which}.py" for which in ("", "_in_pieces"))
READER = ROOT / "tests/distributed/train_reader.py"


def in_a_notebook(*scripts: Path) -> list[str]:
    """What a notebook prints that runs scripts, one after the other."""
    cells = [nbformat.v4.new_code_cell(f"%run {script} 4") for script in scripts]
    notebook = nbformat.v4.new_notebook(cells=cells)
    client = nbclient.NotebookClient(notebook, timeout=60, resources={"metadata": {"path": ROOT}})
    client.execute()
    streams = [[out for out in cell.outputs if out.output_type == "stream"] for cell in cells]
    return ["".join(out.text for out in each) for each in streams]


def test_one_script_in_a_notebook_and_under_mpiexec(monkeypatch):
    """The same curves on four threads, on four processes, and on one rank alone."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    trained, trained_in_pieces = in_a_notebook(TRAIN, IN_PIECES)
    check_curve(trained, mpiexec(4, TRAIN).stdout)
    check_curves_in_pieces(trained_in_pieces, mpiexec(4, IN_PIECES).stdout)


def test_a_reader_of_lines_learns_on_two_processes_what_it_learns_on_one():
    """Chapter 29's: the losses of one rank, and the same weights on both."""
    alone, two = (mpiexec(n, READER, n).stdout for n in (1, 2))
    one, both = (json.loads(text.splitlines()[-1]) for text in (alone, two))
    assert one["backend"] == both["backend"] == "MPI"
    assert [len(said["sums"]) for said in (one, both)] == [1, 2]
    np.testing.assert_allclose(both["losses"], one["losses"], rtol=1e-4)
    assert both["sums"][0] == both["sums"][1]
    np.testing.assert_allclose(both["sums"], one["sums"] * 2, rtol=1e-5)
    assert one["losses"][-1] < one["losses"][0]


def by_backend(texts, key: str) -> dict:
    """What each text says under a key, in its one line of JSON."""
    found = {}
    for text in texts:
        (line,) = [json.loads(s) for s in text.splitlines() if s.startswith("{")]
        found[line["backend"]] = line[key]
    assert found.keys() == {"THREADS", "MPI"}
    return found


def check_curve(*texts: str) -> None:
    alone = train.main(1)
    for losses in [alone, *by_backend(texts, "losses").values()]:
        assert len(losses) == 30
        assert np.mean(losses[-5:]) < 0.75 * np.mean(losses[:5])
        np.testing.assert_allclose(losses, alone, rtol=1e-4)


def check_curves_in_pieces(*texts: str) -> None:
    """Data, tensor parallel, ZeRO-3, in three worlds: one curve, up to rounding; and one in
    stages.
    """
    found = by_backend(texts, "curves")
    found["alone"] = train_in_pieces.main(1)
    alone = found["alone"]["data"], found["alone"]["stages"]
    assert all(losses[-1] < 0.7 * losses[0] for losses in alone)
    for curves in found.values():
        assert curves.keys() == {"data", "tensor", "zero3", "stages"}
        for way, losses in curves.items():
            np.testing.assert_allclose(losses, alone[way == "stages"], rtol=2e-6, err_msg=way)


# ---- launch ----------------------------------------------------------------------------------


def test_what_launch_becomes(monkeypatch, tmp_path):
    called = {}
    monkeypatch.setattr(os, "execv", lambda path, call: called.update(path=path, call=call))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delitem(sys.modules, "paddle", raising=False)  # another test may run scripts
    monkeypatch.setenv("PADDLE_PG_TIMEOUT", "0")
    launch.main(["--devices", "0,3", "--ips", "a,b", "--timeout", "2", "train.py", "--lr", "1"])
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "0,3"
    assert os.environ["PADDLE_PG_TIMEOUT"] == "2000.0"
    assert called["path"] == str(MPIEXEC)
    call = " ".join(called["call"][1:])
    assert call.startswith("-hosts a:2,b:2 -n 4 ")
    assert call.endswith("keeper.py train.py --lr 1")
    options = launch.parse(["--nproc", "3", "train.py"])
    assert launch.build_call("mpiexec", launch.places_of(options), [])[1:] == ["-n", "3"]
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match=r"minipaddle\[mpi\]"):
        launch.find_mpiexec()
