"""The launcher. Nothing here reaches for the network or touches the real .venv."""

import ast
import os
import re
import subprocess
import sys
import threading
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from urllib.error import URLError

import pytest

RUN = Path(__file__).resolve().parents[2] / "run"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """The launcher as a module, its .venv in a temporary folder."""
    monkeypatch.setenv("MINIPADDLE_VENV", str(tmp_path / "venv"))
    loader = SourceFileLoader("launcher", str(RUN))
    module = module_from_spec(spec_from_loader("launcher", loader))
    loader.exec_module(module)
    return module


@pytest.fixture
def venv(run):
    """A folder with an interpreter in it, as the launcher sees things."""
    run.PYTHON.parent.mkdir(parents=True)
    run.PYTHON.touch()
    return run.VENV


@pytest.fixture
def started(run, monkeypatch):
    """What the launcher would start, in order; each start succeeds."""
    commands = []
    for name in ("setup", "peers"):
        monkeypatch.setattr(run, name, lambda *names, name=name: commands.append([name, *names]))
    monkeypatch.setattr(run, "call", lambda args, **_: commands.append(args) or 0)
    monkeypatch.setattr(run, "become", lambda args: commands.append(args))
    return commands


def shell(*args, **env):
    command = [sys.executable, str(RUN), *args]
    env = {**os.environ, "PYTHONIOENCODING": "utf-8", **env}
    return subprocess.run(command, env=env, capture_output=True, encoding="utf-8", timeout=60)


# The command line


def test_an_unknown_command_names_the_nearest():
    result = shell("tets")
    assert result.returncode == 1
    assert "no command `tets`" in result.stderr
    assert "`./run test`" in result.stderr


def test_a_strange_command_lists_them_all():
    result = shell("qqq")
    assert result.returncode == 1
    assert "learn, draw, export, run, serve, site, test, bench, doctor" in result.stderr


@pytest.mark.parametrize("asked", ["help", "-h", "--help"])
def test_help_tells_every_command(asked, run, capsys):
    run.main([asked])
    page = capsys.readouterr().out
    for command in [*run.COMMANDS, "help"]:
        assert f"./run {command}" in page


def test_a_console_without_our_signs_does_not_stop_it():
    result = shell("help", PYTHONIOENCODING="ascii")
    assert result.returncode == 0
    assert "?" in result.stdout


def test_ctrl_c_says_that_nothing_is_lost(run, monkeypatch):
    def interrupted(args):
        raise KeyboardInterrupt

    monkeypatch.setitem(run.COMMANDS, "read", interrupted)
    with pytest.raises(SystemExit, match="takes it up again"):
        run.main([])


def test_a_reader_that_leaves_ends_it_without_a_word(tmp_path):
    command = [sys.executable, str(RUN), "doctor"]
    env = {**os.environ, "MINIPADDLE_VENV": str(tmp_path / "venv"), "PYTHONIOENCODING": "utf-8"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=env, **pipes) as doctor:
        doctor.stdout.close()
        assert not doctor.stderr.read()
    assert doctor.returncode == 1


# What the commands start


def test_read_trusts_the_chapters_and_passes_arguments_on(run, started, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "ROOT", tmp_path)
    chapter = tmp_path / "book" / "00.ipynb"
    chapter.parent.mkdir()
    chapter.touch()
    copy = chapter.parent / ".ipynb_checkpoints" / "00-checkpoint.ipynb"  # JupyterLab makes those
    copy.parent.mkdir()
    copy.touch()
    run.main(["read", "--no-browser"])
    assert started[0] == ["setup"]
    assert "write_stubs()" in started[1][1]
    assert started[2] == ["-m", "jupyter", "trust", str(chapter)]
    assert started[3][:2] == ["-m", "jupyterlab"]
    assert "--LabApp.default_url=/lab/tree/book/00.ipynb" in started[3]
    assert started[3][-1] == "--no-browser"


def test_learn_hands_its_arguments_to_the_package(run, started):
    run.main(["learn", "check", "accumulate"])
    assert started == [["setup"], ["-m", "minipaddle", "learn", "check", "accumulate"]]


def test_site_hands_its_arguments_to_the_builder(run, started):
    run.main(["site", "--no-open"])
    assert started == [["setup"], ["book/site/build.py", "--no-open"]]
    assert (RUN.parent / started[1][0]).is_file()


PYTEST = ["-m", "pytest", "-n", "auto", "--dist", "worksteal"]


@pytest.mark.parametrize(("words", "how"), [([], "--brief"), (["--all"], "--cov")])
def test_the_whole_suite_goes_through_every_gate(words, how, run, started):
    run.main(["test", *words])
    assert started == [
        ["setup"],
        ["peers", "dp_accounting", "onnxruntime", "torch"],
        ["-m", "ruff", "check", "--quiet", "."],
        ["-m", "ruff", "format", "--check", "--quiet", "."],
        [*PYTEST, how],
    ]


def test_named_tests_run_alone_with_the_peers_that_they_import(run, started):
    run.main(["test", "tests/onnx/test_export.py", "-k", "y"])
    words = "tests/onnx/test_export.py", "-k", "y"
    assert started == [["setup"], ["peers", "onnxruntime"], [*PYTEST, *words]]


def test_the_tests_of_a_module(run, started):
    run.main(["test", "--of", "minipaddle/io/worker.py", "-x"])
    assert started == [["setup"], ["peers"], [*PYTEST, "tests/io/test_worker.py", "-x"]]
    with pytest.raises(SystemExit, match="minipaddle has no such module"):
        run.main(["test", "--of"])


@pytest.mark.parametrize("words", [["--processor", "x86-64-v2"], ["--processor=x86-64-v2"]])
def test_tests_run_as_on_another_processor(words, run, started, monkeypatch):
    monkeypatch.setattr(run, "pretend", lambda name: started.append(name))
    run.main(["test", "-x", *words, "tests/io"])
    assert started == [["setup"], "x86-64-v2", ["peers"], [*PYTEST, "-x", "tests/io"]]
    started.clear()
    run.main(["test", *words])  # the whole suite: behind the gates
    assert started[1] == "x86-64-v2"
    assert ["-m", "ruff", "check", "--quiet", "."] in started
    assert started[-1][-1] == "--brief"


def test_the_processor_goes_into_the_environment(run, monkeypatch):
    monkeypatch.setattr(run, "PYTHON", Path(sys.executable))
    monkeypatch.setenv("MINIPADDLE_PROCESSOR", "z80")  # is not asked
    run.pretend("native")
    assert run.environment()["MINIPADDLE_PROCESSOR"] == "native"


@pytest.mark.parametrize("name", ["z80", ""])
def test_a_processor_that_there_is_not_ends_it(name, run, monkeypatch, capfd):
    monkeypatch.setattr(run, "PYTHON", Path(sys.executable))
    with pytest.raises(SystemExit) as leave:
        run.pretend(name)
    assert leave.value.code == 1
    assert f"there is no {name!r}; expected: native, x86-64-v2" in capfd.readouterr().err


def test_no_test_runs_while_ruff_objects(run, started, monkeypatch):
    monkeypatch.setattr(run, "call", lambda args, **_: 1)
    with pytest.raises(SystemExit, match="ruff objects"):
        run.main(["test"])
    assert started == [["setup"], ["peers", "dp_accounting", "onnxruntime", "torch"]]


def test_bench_has_the_peers(run, started):
    run.main(["bench", "add"])
    assert started[1] == ["peers", "torch", "paddlepaddle", "jax", "onnxruntime"]
    assert started[2] == ["-m", "tests.benchmarks", "add"]


# Where things are


def test_windows_keeps_the_interpreter_elsewhere(run):
    assert run.python_in(Path("v"), windows=True) == Path("v/Scripts/python.exe")
    assert run.python_in(Path("v"), windows=False) == Path("v/bin/python")


def test_programs_start_as_in_an_activated_environment(run, monkeypatch):
    monkeypatch.setenv("PYTHONHOME", "elsewhere")
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    env = run.environment()
    assert env.get("PYTHONPYCACHEPREFIX") == os.environ.get("PYTHONPYCACHEPREFIX")
    assert env["PATH"].split(os.pathsep)[0] == str(run.PYTHON.parent)
    assert env["VIRTUAL_ENV"] == env["UV_PROJECT_ENVIRONMENT"] == str(run.VENV)
    assert "PYTHONHOME" not in env


def test_who_wants_no_bytecode_beside_sources_has_it_in_the_environment(run, monkeypatch):
    """Without any, a process that imports the package takes twice as long to start."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    env = run.environment()
    assert "PYTHONDONTWRITEBYTECODE" not in env
    assert run.VENV in Path(env["PYTHONPYCACHEPREFIX"]).parents


# Set-up


def test_an_old_python_can_read_the_launcher_and_is_told(run, monkeypatch):
    ast.parse(RUN.read_text(encoding="utf-8"), feature_version=(3, 7))
    monkeypatch.setattr(run, "NEEDS", (99, 0))
    with pytest.raises(SystemExit, match=r"needs Python 3\.11 or newer"):
        run.setup()
    assert not run.VENV.exists()


def test_a_python_without_venv_is_told_what_to_install(run, monkeypatch):
    monkeypatch.setattr(run, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="apt install python3-venv"):
        run.make_venv()


def test_a_folder_that_is_something_else_is_left_alone(run):
    run.VENV.mkdir()
    letter = run.VENV / "letter.txt"
    letter.write_text("dear")
    with pytest.raises(SystemExit, match="in the way"):
        run.make_venv()
    assert letter.read_text() == "dear"


def test_a_place_that_cannot_be_written_is_explained(run, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setattr(run, "VENV", tmp_path / "file" / "venv")
    with pytest.raises(SystemExit, match="MINIPADDLE_VENV"):
        run.once("packages", "key", lambda: None)


def test_work_is_done_once_for_each_key(run, venv):
    done = []
    for key in ("one", "one", "two", "two"):
        run.once("packages", key, lambda key=key: done.append(key))
    assert done == ["one", "two"]


def test_work_cut_short_is_done_again(run, venv):
    def cut_short():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run.once("packages", "key", cut_short)
    done = []
    run.once("packages", "key", lambda: done.append("again"))
    assert done == ["again"]


def test_a_stamp_without_its_interpreter_counts_for_nothing(run, venv):
    run.once("packages", "key", lambda: None)
    run.PYTHON.unlink()
    done = []
    run.once("packages", "key", lambda: done.append("again"))
    assert done == ["again"]


def test_two_at_a_time_do_the_work_once(run, venv, monkeypatch):
    done, begun, waiting = [], threading.Event(), threading.Event()
    monkeypatch.setattr(run, "say", lambda words: waiting.set())

    def work():
        begun.set()
        assert waiting.wait(30), "the second one should have said that it waits"
        done.append("work")

    threads = [threading.Thread(target=run.once, args=("packages", "k", work)) for _ in "ab"]
    threads[0].start()
    assert begun.wait(30)
    threads[1].start()
    for thread in threads:
        thread.join(30)
    assert done == ["work"]


def test_a_changed_lock_is_installed_anew(run, tmp_path, monkeypatch):
    keys = []
    monkeypatch.setattr(run, "ROOT", tmp_path)
    monkeypatch.setattr(run, "once", lambda name, key, work: keys.append(key))
    for pyproject, lock in [("a", "b"), ("a", "b"), ("a", "c"), ("d", "c")]:
        (tmp_path / "pyproject.toml").write_text(pyproject)
        (tmp_path / "uv.lock").write_text(lock)
        run.setup()
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3


def test_peers_are_pinned_in_one_place(run, venv, monkeypatch):
    commands = []
    monkeypatch.setattr(run, "step", lambda what, command: commands.append(command[-1]))
    run.peers("torch")
    run.peers("torch", "paddlepaddle")
    assert [re.sub("==.*", "", pin) for pin in commands] == ["torch", "paddlepaddle"]


def test_pip_stands_in_where_uv_fails(run, monkeypatch):
    tried = []
    monkeypatch.setattr(run, "make_venv", lambda: None)
    monkeypatch.setattr(run, "step", lambda *args, **_: tried.append(args[1]) or len(tried) != 2)
    run.install()
    assert "sync" in tried[1]
    assert tried[2][-2:] == ["--editable", f"{run.ROOT}[test]"]


def test_a_failing_step_shows_its_words_and_the_way_out(run, monkeypatch, capfd):
    def no_network(*args, **options):
        raise URLError("no route")

    monkeypatch.setattr(run.urllib.request, "urlopen", no_network)
    with pytest.raises(SystemExit, match=r"(?s)no way to https://pypi.org.*HTTPS_PROXY"):
        run.step("nothing", [sys.executable, "-c", "import sys; sys.exit('its own words')"])
    assert "its own words" in capfd.readouterr().err


def test_a_step_that_can_fail_lets_the_next_one_try(run, capfd):
    assert not run.step("no", [sys.executable, "-c", "raise SystemExit(3)"], needed=False)
    assert run.step("yes", [sys.executable, "-c", ""])
    assert re.search(r"✗ no +\d+\.\d s\n\s+✓ yes +\d+\.\d s\n", capfd.readouterr().err)


def test_a_set_up_does_not_end_with_its_reader(run, venv, monkeypatch, capfd):
    """`./run learn list | head` closes stdout; all that the set-up says goes to stderr."""
    step = run.step
    monkeypatch.setattr(run, "make_venv", lambda: None)
    monkeypatch.setattr(run, "step", lambda what, *_, **__: step(what, [sys.executable, "-c", ""]))
    read, write = os.pipe()
    os.close(read)
    with open(write, "w") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        run.install()
    assert re.search(r"Setting up.*\n.*uv.*\n.*uv\.lock", capfd.readouterr().err)


# The doctor


def test_the_doctor_works_before_the_set_up(run):
    result = shell("doctor")
    assert result.returncode == 0, result.stdout + result.stderr
    for what, *_ in run.CHECKS:
        assert re.search(rf"^[✓–] {what} ", result.stdout, re.MULTILINE), result.stdout
    assert not run.VENV.exists()


def test_the_doctor_fails_when_something_needed_is_missing(run, monkeypatch, capsys):
    monkeypatch.setattr(run, "NEEDS", (99, 0))
    with pytest.raises(SystemExit) as leave:
        run.doctor([])
    assert leave.value.code == 1
    assert re.search(r"✗ Python .*\n +→ MiniPaddle needs", capsys.readouterr().out)


def test_the_doctor_asks_the_environment_once_there_is_one(run, started, monkeypatch, capsys):
    monkeypatch.setattr(run, "works", lambda *_: True)
    monkeypatch.setattr(run, "become", started.append)
    with pytest.raises(SystemExit):
        run.doctor([])
    assert started == [[str(RUN), "doctor", "here"]]


def test_the_compiler_is_the_one_that_programs_are_compiled_with(run, monkeypatch):
    monkeypatch.setattr("minipaddle.engine.executors.compiler.compiler", lambda: None)
    assert run.examine(run.check_compiler) == (
        run.SPARE,
        "none: NumPy computes, large groups in blocks",
    )
    monkeypatch.setattr("minipaddle.engine.executors.compiler.compiler", lambda: "gcc 12")
    assert run.examine(run.check_compiler) == (run.GOOD, "gcc 12")
    monkeypatch.setitem(
        sys.modules, "minipaddle.engine.executors.compiler", None
    )  # before the set-up
    monkeypatch.setattr(run, "first_program", lambda *names: names[0])
    assert run.check_compiler() == "gcc"


def test_a_row_gives_the_reason(run):
    def broken():
        raise ImportError("libcuda is not there\nand more")

    assert run.examine(broken) == (run.SPARE, "ImportError: libcuda is not there")
    assert run.examine(broken, run.BAD)[0] == run.BAD
    assert run.examine(lambda: "H1") == (run.GOOD, "H1")


def test_no_graphics_card_is_no_failure(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setenv("PATH", "")
    mark, found = run.examine(run.check_gpu)
    assert mark == run.SPARE
    assert found.startswith("no nvidia-smi; ModuleNotFoundError")
