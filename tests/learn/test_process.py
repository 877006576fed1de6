"""A fresh process for each verdict: whatever the reader's code does, there is one."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from minipaddle.learn import process
from minipaddle.learn.process import Usage, judge_file, usage

NAME = "01_first/double"
ROOT = Path(__file__).resolve().parents[2]
posix = pytest.mark.skipif(os.name != "posix", reason="about processes as POSIX has them")


@pytest.fixture
def verdict(solved):
    """A function: the body of `double`, and what stands before it -> the verdict."""

    def found(body, before="", seconds=20.0):
        solved(text=f"import os, sys\n{before}\ndef double(x):\n    {body}\n")
        return judge_file(NAME, seconds=seconds)

    return found


def test_a_solution_passes_and_the_time_is_told(solved):
    solved()
    found = judge_file(NAME)
    assert found.passed
    assert found.seconds > 0


def test_another_file_can_be_judged(course, tmp_path):
    file = tmp_path / "elsewhere.py"
    file.write_text("def double(x):\n    return x\n")
    assert judge_file(NAME, file).looks_like == "doing nothing"


def test_a_file_that_is_not_there_is_not_started(course):
    found = judge_file(NAME)
    assert found.state == "not started"
    assert found.why == "double in exercises/01_first/double.py"


def test_what_is_not_text_is_an_error(course, solved):
    solved().write_bytes(b"\xff\xfe\x00")
    assert "cannot be read" in judge_file(NAME).why
    (course / f"{NAME}.py").unlink()
    (course / f"{NAME}.py").mkdir()
    assert judge_file(NAME).state == "error"


@posix
@pytest.mark.slow
def test_a_loop_that_does_not_end_is_stopped_at_its_line(verdict):
    found = verdict("while True: pass", seconds=4)
    assert (found.state, found.line) == ("error", "double.py:4: while True: pass")
    assert "still running after 4 s of processor time" in found.why


@posix
@pytest.mark.slow
def test_waiting_is_told_from_a_loop(verdict):
    found = verdict(
        "import threading; threading.Lock().acquire(); threading.Event().wait()", seconds=6
    )
    assert "it did nothing for 6 s" in found.why
    assert found.line.startswith("double.py:4")


class Child:
    """A process that has used, each time it is asked, what the next pair says."""

    def __init__(self, pairs):
        self.pairs, self.clock = iter(pairs), 0.0

    def wait(self, seconds):
        self.clock += 1.0
        raise subprocess.TimeoutExpired("child", seconds)


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda t: (t / 40, 1 << 20), "the machine is too busy: in 301 s your code got 8 s"),
        (lambda t: (t, 1 << 20), "still running after 10 s of processor time: a loop"),
        (lambda t: (t, 3 << 30), "processor time, and held 3 GB of memory: a loop"),
        (lambda t: (t / 40, int(t) << 30), "it held more than 4 GB of memory: a list"),
        (lambda t: (min(t, 2), 1 << 20), "it did nothing for 10 s"),
    ],
)
def test_a_child_is_stopped_for_what_it_uses(monkeypatch, use, words):
    """By its processor time and memory: what the clock says alone is the machine's fault."""
    child = Child([])
    monkeypatch.setattr(process.time, "monotonic", lambda: child.clock)
    monkeypatch.setattr(process, "usage", lambda child: Usage(*use(child.clock)))
    assert words in process.ChildWatch(child, 10.0).wait()


def test_a_busy_machine_is_named(monkeypatch):
    child = Child([])
    monkeypatch.setattr(process.time, "monotonic", lambda: child.clock)
    run = process.ChildWatch(child, 10.0)
    child.clock, run.used = 60.0, Usage(4.0, 0)
    assert run.busy() == "it took 60 s, 4 s of them on a processor"
    run.used = Usage(50.0, 0)
    assert run.busy() == ""


def test_what_a_process_uses_is_known():
    words = "import time\nx = bytearray(80 << 20)\nwhile time.process_time() < 2.2: pass\n"
    words += "print(flush=True)\ninput()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", words], **pipes) as child:
        child.stdout.readline()
        used = usage(child)
        child.kill()
    assert 2 <= used.seconds < 30
    assert 80 << 20 <= used.memory < 2 << 30


@pytest.mark.sweep(one_in=2)
@pytest.mark.parametrize("body", ["os._exit(0)", "os._exit(3)"])
def test_a_process_that_ends_itself_has_not_passed(verdict, body):
    found = verdict(body)
    assert found.state == "error"
    assert "ended its process" in found.why


def test_a_judge_that_does_not_start_is_not_the_readers_fault(verdict, tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text("raise SystemExit('broken')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = verdict("return 2 * x")
    assert found.why == "the judge itself did not start: this is not your code's fault"
    assert "broken" in found.printed


def test_sys_exit_names_the_line(verdict):
    found = verdict("sys.exit(0)")
    assert (found.state, found.line) == ("error", "double.py:4: sys.exit(0)")


@posix
def test_a_crash_is_told(verdict):
    found = verdict("import ctypes; ctypes.string_at(0)")
    assert (found.state, "SIGSEGV" in found.why) == ("error", True)
    assert found.line == "double.py:4: import ctypes; ctypes.string_at(0)"


@posix
def test_a_killed_process_may_have_eaten_memory(verdict):
    assert "out of memory?" in verdict("os.kill(os.getpid(), 9)").why


@pytest.mark.skipif(not os.path.exists("/proc/self/limits"), reason="Linux limits what data takes")
def test_memory_is_limited(verdict):
    found = verdict("import numpy; return numpy.ones(10**11)")
    assert found.state == "error"
    assert "Memory" in found.why


def test_what_is_printed_is_shown_from_its_beginning(verdict):
    found = verdict("print('hello', x); return 2 * x")
    assert found.passed
    assert found.printed.startswith("hello 2\nhello 0\n")


def test_a_flood_is_cut(verdict):
    found = verdict("print('x' * 10**7); sys.stderr.write('y' * 10**6); return 2 * x")
    assert found.passed
    assert len(found.printed) == process.PRINTED + 1


def test_closed_streams_do_not_matter(verdict):
    assert verdict("return 2 * x", before="os.close(1); os.close(2); sys.stdout = None").passed


def test_a_question_is_answered_by_nobody(verdict):
    assert "EOFError" in verdict("return input('x?')").why


def test_a_thread_left_behind_holds_nothing(verdict):
    thread = "import threading, time\nthreading.Thread(target=time.sleep, args=(10**6,)).start()"
    assert verdict("return 2 * x", before=thread).passed


@posix
def test_a_child_left_behind_is_ended(verdict):
    before = "import subprocess\nchild = subprocess.Popen(['sleep', '1000'])"
    found = verdict("print(child.pid); return 2 * x", before=before)
    assert found.passed
    time.sleep(0.2)
    assert not runs(int(found.printed.split()[0]))


def runs(pid):
    """Whether a process exists, and is not a zombie."""
    stat = Path(f"/proc/{pid}/stat")
    try:
        os.kill(pid, 0)
        return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except ProcessLookupError:
        return False


LEFT = """
import os, subprocess
sleeping = subprocess.Popen(["sleep", "1000"])
with open({to!r} + ".new", "w") as file:
    file.write(f"{{os.getpid()}} {{sleeping.pid}}")
os.rename({to!r} + ".new", {to!r})
{body}
def accumulate(): pass
"""


@pytest.mark.sweep(one_in=2)
@posix
@pytest.mark.slow
@pytest.mark.parametrize("body", ["while True: pass", "10 ** 10 ** 9"], ids=["Python", "no thread"])
def test_a_check_ends_when_its_parent_is_killed(tmp_path, body):
    """With the processes that it started; also where the reader's code lets no thread run."""
    pids, file = tmp_path / "pids", tmp_path / "accumulate.py"
    file.write_text(LEFT.format(to=str(pids), body=body))
    code = (
        "import sys; from minipaddle.learn import judge_file; judge_file(sys.argv[1], sys.argv[2])"
    )
    call = [sys.executable, "-c", code, "02_autograd/accumulate", file]
    with subprocess.Popen(call, cwd=ROOT) as parent:
        try:
            wait_until(pids.exists, 60)
        finally:
            parent.kill()
    started = [int(pid) for pid in pids.read_text().split()]
    wait_until(lambda: not any(map(runs, started)), 20)


def wait_until(is_so, seconds):
    """Wait for something that happens soon; AssertionError if it does not."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@posix
@pytest.mark.parametrize("without", ["", "fork", "fork killpg"])
def test_a_process_ends_when_its_input_is_closed(without):
    """Also where the system can copy no process, or has no groups of them."""
    code = f"import os, sys, time\nfor name in {without.split()}: delattr(os, name)\n"
    code += "from minipaddle.learn.process import end_with_parent\nend_with_parent()\n"
    code += "print(repr(sys.stdin.read()), flush=True)\ntime.sleep(1000)"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    call = [sys.executable, "-c", code]
    with subprocess.Popen(call, cwd=ROOT, start_new_session=True, **pipes) as child:
        assert child.stdout.readline() == "''\n"  # the input that it sees is empty
        assert child.poll() is None
        child.stdin.close()
        assert child.wait(20) == (1 if "killpg" in without else -9)


@posix
def test_a_forked_copy_does_not_speak_for_the_reader(verdict):
    assert verdict("return 0 if os.fork() else 2 * x").state == "wrong"


def test_files_are_left_in_a_folder_that_vanishes(verdict, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert verdict("open('litter', 'w').close(); return 2 * x").passed
    assert not list(tmp_path.rglob("litter"))


def test_only_the_readers_file_is_loaded(course, verdict, solved):
    """Neither the folder it stands in nor the one the command was given in is searched."""
    solved()
    (course / "01_first/helper.py").write_text("")
    assert "ModuleNotFoundError" in verdict("import helper").why


def test_one_lazy_name_is_no_excuse(verdict):
    assert verdict("return 2 * x", before="from nowhere_at_all import *").state == "error"


def test_all_are_judged(course, solved):
    solved()
    solved("02_second/slope", "def slope(g, out):\n    return g\n")
    heard = []
    found = process.judge_all(["01_first/double", "02_second/slope"], heard.append)
    assert [verdict.state for verdict in found] == ["passed", "wrong"]
    assert len(heard) == 2
