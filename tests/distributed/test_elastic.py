"""Training that goes on when ranks are lost: the losses are those of the uninterrupted run."""

import json
import os
import re
import runpy
import signal
import subprocess
import sys
import threading
import time
from argparse import Namespace
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil
import pytest

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle.distributed import launch
from minipaddle.distributed.checkpoint import saving
from minipaddle.distributed.failures import restarting
from minipaddle.distributed.fleet import elastic
from minipaddle.distributed.fleet.elastic.samples import share
from minipaddle.distributed.fleet.elastic.steps import generator_of
from minipaddle.distributed.fleet.elastic.workers import PARTS, Worker

ROOT = Path(__file__).resolve().parents[2]
TRAIN = ROOT / "deploy" / "train.py"
SMALL = ["--length=16", "--letters=4000", "--width=16", "--layers=2", "--batch=12", "--steps=24",
         "--every=3"]  # fmt: skip
MPIEXEC = Path(sys.executable).parent / "mpiexec"


# ---- which samples -------------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7])
def test_the_ranks_divide_each_batch_and_an_epoch_has_each_sample_once(ranks):
    size, batch, seen = 30, 8, []
    for step in range(3, 6):  # the whole second epoch
        parts = [elastic.own_samples(step, batch, size, 5, r, ranks) for r in range(ranks)]
        assert max(map(len, parts)) - min(map(len, parts)) <= 1
        whole = [k for part in parts for k in part]
        assert whole == elastic.own_samples(step, batch, size, 5, 0, 1)
        seen += whole
    assert len(set(seen)) == len(seen) == 24
    assert set(seen) <= {*range(size)}


def test_epochs_and_seeds_have_orders_of_their_own():
    orders = {(s, e): tuple(elastic.own_samples(e, 9, 9, s)) for s in range(3) for e in range(3)}
    assert len({*orders.values()}) == 9
    assert all(sorted(order) == [*range(9)] for order in orders.values())
    assert share(4, 1, 2, batch=4, size=8) == (2, range(2, 4))


@pytest.mark.parametrize(("given", "message"), [
    ({"batch": 9, "size": 8}, "batches of 9 samples"),
    ({"batch": 0, "size": 8}, "batches of 0 samples"),
    ({"batch": 2, "size": 8, "rank": 2, "ranks": 2}, "samples of rank 2"),
    ({"batch": 2, "size": 8, "rank": 0, "ranks": 3}, "a batch of 2 for 3 ranks"),
])  # fmt: skip
def test_what_makes_no_batch_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        elastic.own_samples(0, **given)


def test_it_is_an_attribute_of_fleet():
    """Without a further import, as README writes it."""
    code = "from minipaddle.distributed import fleet; print(fleet.elastic.steps.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == "steps\n", done.stderr


# ---- steps ---------------------------------------------------------------------------------------

X = np.random.default_rng(0).normal(size=(40, 5)).astype("float32")


class Fault(Exception):
    """What befalls a rank."""


def train(folder, total=12, fault=None, every=3, dropout=0.0):
    """[(step, loss)] of a small net with Adam, a rate that falls, and dropout."""
    paddle.seed(3)
    net = paddle.nn.Sequential(
        paddle.nn.Linear(5, 8), paddle.nn.Tanh(), paddle.nn.Dropout(dropout), paddle.nn.Linear(8, 1)
    )
    rate = paddle.optimizer.lr.StepDecay(0.05, 4)
    adam = paddle.optimizer.Adam(rate, parameters=net.parameters())
    model, found = paddle.DataParallel(net), []
    state = {"net": net, "adam": adam, "rate": rate}
    for step in elastic.steps(total, every, state, folder):
        if step == fault:
            saving.wait_for_save()
            raise Fault
        rows = elastic.own_samples(step, 8, len(X))
        ranks = dist.get_world_size()
        part = model(paddle.to_tensor(X[rows])).square().mean() * (len(rows) / 8)
        (part * ranks).backward()
        adam.step()
        adam.clear_grad()
        rate.step()
        dist.all_reduce(part)
        found.append((step, part.item()))
    return found


@pytest.mark.parametrize(("before", "after"), [(4, 3), (3, 4), (1, 2), (2, 1)])
def test_the_curve_goes_on_with_other_ranks(tmp_path, before, after, capsys):
    expected = train(tmp_path / "alone")
    with pytest.raises(Fault):
        dist.spawn(train, args=(tmp_path / "run", 12, 8), nprocs=before)
    found = dist.spawn(train, args=(tmp_path / "run",), nprocs=after).results
    assert found == [found[0]] * after
    assert [step for step, _ in found[0]] == [*range(6, 12)]
    np.testing.assert_allclose(found[0], expected[6:], rtol=1e-6)
    said = f"elastic: goes on from step 6 of 12; ranks: {after} now, {before} when it was saved in "
    assert said in capsys.readouterr().err


R = dist.Replicate()


def train_in_pieces(folder, shape, way, fault=None):
    """[(step, loss)] of a net in pieces, or of one whose states are; all ranks take the batch."""
    paddle.seed(3)
    net = paddle.nn.Sequential(paddle.nn.Linear(5, 8), paddle.nn.Tanh(), paddle.nn.Linear(8, 4))
    adam, found = paddle.optimizer.Adam(0.05, parameters=net.parameters()), []
    lie = lambda x: x
    if shape:
        mesh = dist.ProcessMesh(np.arange(np.prod(shape)).reshape(shape), ["data", "model"])
        lie = lambda x: dist.shard_tensor(x, mesh, [dist.Shard(0), R])
        if way == "tensor":
            for p, cut in zip(net.parameters(), (dist.Shard(1), dist.Shard(0), dist.Shard(0), R)):
                dist.shard_tensor(p, mesh, [R, cut])
        else:
            dist.shard_layer(net, mesh)
            adam = dist.shard_optimizer(adam, dist.ShardingStage1("data"))
    for step in elastic.steps(6, 2, {"net": net, "adam": adam}, folder):
        if step == fault:
            saving.wait_for_save()
            raise Fault
        x = X[elastic.own_samples(step, 8, len(X), rank=0, ranks=1)]
        loss = net(lie(paddle.to_tensor(x))).square().mean()
        loss.backward()
        adam.step()
        adam.clear_grad()
        found.append((step, float(loss)))
    return found


@pytest.mark.parametrize(("before", "after", "way"), [
    ((2, 2), None, "tensor"), ((1, 2), (2, 1), "tensor"), ((2, 1), (3, 1), "ZeRO-1"),
])  # fmt: skip
def test_a_model_in_pieces_goes_on_in_others(tmp_path, before, after, way):
    run = lambda folder, shape, *more: dist.spawn(
        train_in_pieces, args=(tmp_path / folder, shape, way, *more), nprocs=np.prod(shape or (1,))
    ).results[0]
    expected = run("alone", None)
    with pytest.raises(Fault):
        run("run", before, 5)
    np.testing.assert_allclose(run("run", after), expected[4:], rtol=1e-6)


@pytest.mark.parametrize("ranks", [1, 3])
def test_as_many_ranks_draw_the_same_numbers(tmp_path, ranks):
    """Bit for bit, dropout and all."""
    run = lambda *args: dist.spawn(train, args=args, nprocs=ranks).results
    expected = run(tmp_path / "whole", 12, None, 3, 0.4)
    with pytest.raises(Fault):
        run(tmp_path / "run", 12, 7, 3, 0.4)
    assert run(tmp_path / "run", 12, None, 3, 0.4) == [each[6:] for each in expected]


def test_a_rank_that_is_new_draws_numbers_of_its_own():
    assert [generator_of(r, [[3, 7], [3, 7]]) for r in (0, 1, 5)] == [(3, 7)] * 3
    found = [generator_of(r, [[3, 7], [4, 7]]) for r in range(4)]
    assert found[:2] == [(3, 7), (4, 7)]
    assert len({*found}) == 4


def test_a_finished_run_is_not_trained_again(tmp_path):
    run = lambda total: dist.spawn(train, args=(tmp_path, total), nprocs=1).results[0]
    assert [step for total in (4, 4, 6) for step, _ in run(total)] == [*range(6)]
    assert run(3) == []


def test_training_goes_on_while_a_checkpoint_is_written(tmp_path, monkeypatch):
    """The one before stays until then; only whole ones are read, and only the last is left."""
    gate, write, there = threading.Event(), saving.write, []

    def slow(target, arrays):
        assert gate.wait(10) or not arrays
        return write(target, arrays)

    done = {"w": paddle.zeros([2])}
    for step in elastic.steps(6, 2, {"done": done}, tmp_path):
        if step == 2:
            saving.wait_for_save()
            monkeypatch.setattr(saving, "write", slow)
        if step == 5:  # the step after the one that was to be saved
            there = sorted(p.name for p in tmp_path.glob("*.metadata"))
            (tmp_path / "0_4.0123456789abcdef.safetensors").write_bytes(b"half")
            gate.set()
        done["w"] += 1
    assert there == ["2.metadata"]
    assert sorted(p.name for p in tmp_path.glob("*.metadata")) == ["6.metadata"]
    assert len([*tmp_path.iterdir()]) == 2
    (tmp_path / "0_8.0123456789abcdef.safetensors").write_bytes(b"a write that was interrupted")
    done = {"w": paddle.zeros([2])}
    assert [*elastic.steps(6, 2, {"done": done}, tmp_path)] == []
    assert done["w"].tolist() == [6.0, 6.0]


def test_what_cannot_be_saved_is_refused_before_the_first_step(tmp_path):
    with pytest.raises(ValueError, match="a checkpoint every 0 steps"):
        next(elastic.steps(3, 0, {}, tmp_path))
    train(tmp_path, 1)
    with pytest.raises(TypeError, match=r"state\['net'\] is a int"):
        next(elastic.steps(3, 1, {"net": 3}, tmp_path))
    with pytest.raises(ValueError, match=r"is not in .*metadata"):
        next(elastic.steps(3, 1, {"other": paddle.nn.Linear(2, 2)}, tmp_path))


# ---- launch --------------------------------------------------------------------------------------

SAY = "import os, sys; print({text!r}, file=sys.stderr); sys.exit({code})"


def worlds(capfd, ends, level=2, restarts=2, ranks=4, machines=1, least=1, gone=()):
    """(exit code, sizes of the worlds, what launch says) where worlds end so: (text, code)."""
    sizes, ends = [], iter(ends)

    def start(places, program):
        if program == ["true"]:
            return ["false" if {*places} & {*gone} else "true"]
        sizes.append(len(places))
        text, code = next(ends)
        return [sys.executable, "-ISc", SAY.format(text=text, code=code)]

    given = Namespace(max_restart=restarts, elastic_level=level, elastic_timeout=0.5, least=least,
                      nnodes=f"{least}:{machines}")  # fmt: skip
    places = [f"m{k * machines // ranks}" for k in range(ranks)]
    code = restarting.run(given, places, [], start)
    said = [s for s in capfd.readouterr().err.splitlines() if s.startswith("launch: ")]
    return code, sizes, said


KILLED = "noise\nrank {} was killed by SIGKILL\nmore"
FAULTED = KILLED.replace("SIGKILL", "SIGSEGV")
STEPPED = f"a line{restarting.STEP.decode()} that is torn"
"""What a job prints in which a step was made."""


def test_a_job_goes_on_with_the_ranks_that_are_left(capfd):
    ends = [(KILLED.format(2), 9), (KILLED.format(0), 9), ("", 0)]
    code, sizes, said = worlds(capfd, ends)
    assert (code, sizes) == (0, [4, 3, 2])
    assert said[0] == (
        "launch: rank 2 of 4 was killed by SIGKILL; starting again with 3 ranks (restart 1 of 2)"
    )
    assert worlds(capfd, ends, level=1)[1] == [4, 4, 4]


def test_the_line_of_a_keeper_may_have_been_begun_by_another_rank(capfd):
    """A rank that fails prints its error in pieces, and the keeper of the one that died between."""
    torn = '  File "train.py", line ' + KILLED.format(2).removeprefix("noise\n")
    _, sizes, said = worlds(capfd, [(torn, 9), ("", 0)])
    assert sizes == [4, 3]
    assert said[0].startswith("launch: rank 2 of 4 was killed by SIGKILL; starting again with 3")


def test_restarts_are_used_up(capfd):
    code, sizes, said = worlds(capfd, [(STEPPED, 7)] * 3)
    assert (code, sizes) == (7, [4, 4, 4])
    assert "failed with exit code 7; starting again with 4 ranks" in said[0]
    assert said[-1].endswith("and --max_restart 2 is used up: the job has failed")


def test_a_restart_that_was_asked_for_does_not_count(capfd):
    ends = [("", elastic.ELASTIC_EXIT_CODE)] * 4 + [("", 0)]
    code, sizes, said = worlds(capfd, ends, restarts=1)
    assert (code, sizes) == (0, [4] * 5)
    assert said[0].endswith("exit code 101; starting again with 4 ranks (as it asked)")


def test_machines_that_are_gone_are_left_out(capfd):
    ends, gone = [("", 255), ("", 0)], {"m1"}
    code, sizes, said = worlds(capfd, ends, machines=2, gone=gone)
    assert (code, sizes) == (0, [4, 2])
    assert "; machine m1 does not answer; starting again with 2 ranks" in said[0]
    code, sizes, said = worlds(capfd, ends, machines=2, gone=gone, least=2)
    assert (code, sizes) == (255, [4])
    assert "1 machine is left: --nnodes 2:2" in said[0]


@pytest.mark.parametrize(("ends", "ranks"), [
    (STEPPED + FAULTED.format(0), 1), ("\n".join(KILLED.format(k) for k in range(4)), 4),
])  # fmt: skip
def test_after_the_last_rank_there_is_none_to_go_on(capfd, ends, ranks):
    """The machine is still there."""
    code, sizes, said = worlds(capfd, [(ends, 9)], ranks=ranks)
    assert (code, sizes) == (9, [ranks])
    assert "was killed by" in said[0]
    assert said[0].endswith("and no rank is left to go on: the job has failed")


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize(("text", "code", "why"), [
    ("Traceback", 1, "the job failed with exit code 1"),
    (FAULTED.format(1), 11, "rank 1 of 4 was killed by SIGSEGV"),
])  # fmt: skip
def test_an_error_of_the_script_before_its_first_step_is_not_repeated(
    capfd, level, text, code, why
):
    """But one after a step is no reason to give up, nor one of which the machine is the cause."""
    found, sizes, said = worlds(capfd, [(text, code)] * 8, level, restarts=7)
    assert (found, sizes) == (code, [4])
    said = "".join(said)
    assert f"{why} before its first step, by an error of the script itself: the job has" in said
    stepped = [(STEPPED + "\n" + text, code), (text, code)]
    assert len(worlds(capfd, stepped, level, restarts=7)[1]) == 2
    gone = worlds(capfd, [(text, code), ("", 0)], level, machines=2, gone={"m1"})
    assert len(gone[1]) == 2


def test_a_mark_of_a_step_is_not_shown(capfd):
    script = "import os; os.write(2, b'before\\x1e\\xe2\\x9c\\x93after\\n')"
    end = restarting.run_once([sys.executable, "-ISc", script])
    assert (end.code, end.stepped) == (0, True)
    assert capfd.readouterr().err == "before✓after\n"


SCRIPT = """
import os, sys
from minipaddle.distributed import fleet
how, folder = sys.argv[1:]
first = not os.path.exists(folder + "/started")
print("start", flush=True)
open(folder + "/started", "w").close()
if how == "raise":
    raise ValueError("at once")
if how == "segv":
    os.kill(os.getpid(), 11)
for step in fleet.elastic.steps(4, 1, {"done": {}}, folder):
    if step == 2 and first:
        raise ValueError("after two steps")
"""


@pytest.mark.sweep(one_in=3)
@pytest.mark.slow
@pytest.mark.skipif(not MPIEXEC.exists(), reason="no mpiexec beside this Python: the extra mpi")
@pytest.mark.parametrize(("how", "starts"), [("raise", 1), ("segv", 1), ("later", 2)])
def test_how_often_a_script_with_an_error_is_started(tmp_path, how, starts):
    (tmp_path / "script.py").write_text(SCRIPT)
    call = [sys.executable, "-m", "minipaddle.distributed.launch", "--nproc", "1", "--max_restart",
            "7", "--elastic_level", "2", tmp_path / "script.py", how, tmp_path]  # fmt: skip
    around = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(call, env=around, capture_output=True, text=True, timeout=100)
    assert done.stdout.count("start") == starts, done.stderr
    assert (done.returncode == 0) == (how == "later"), done.stderr
    assert ("by an error of the script itself" in done.stderr) == (how != "later")
    assert "machines are left" not in done.stderr


def test_who_stops_launch_stops_the_job():
    program = f"import os, time; os.kill({os.getpid()}, {int(signal.SIGTERM)}); time.sleep(60)"
    began = time.monotonic()
    end = restarting.run_once([sys.executable, "-ISc", program])
    assert end == (-signal.SIGTERM, {}, False, True)
    assert time.monotonic() - began < 30


def test_a_signal_while_the_job_starts_stops_it(monkeypatch):
    class Interrupted(subprocess.Popen):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        end = restarting.run_once([sys.executable, "-ISc", "import time; time.sleep(60)"])
    finally:
        signal.signal(signal.SIGTERM, before)
    assert end == (-signal.SIGTERM, {}, False, True)


def test_whether_a_machine_answers(tmp_path):
    assert restarting.probe(["true"], 5.0)
    assert not restarting.probe(["false"], 0.2)
    assert not restarting.probe(["false"], 999.0, again=False)
    assert not restarting.probe(["sleep", "9"], 0.2)
    script = f"test -e {tmp_path}/up || (touch {tmp_path}/up; false)"  # up at the second try
    assert restarting.probe(["sh", "-c", script], 5.0)


@pytest.mark.parametrize(("given", "places"), [
    (["--nproc", "2", "--ips", "a,b,c"], "aabbcc"),
    (["--nproc", "2", "--ips", "a,b,c", "--nnodes", "1:2"], "aabb"),
    (["--nproc", "1", "--ips", "a,b,c", "--nnodes", "2"], "ab"),
])  # fmt: skip
def test_where_ranks_are_placed(given, places):
    options = launch.parse([*given, "train.py"])
    assert "".join(launch.places_of(options)) == places
    call = launch.build_call("mpiexec", [*"aab"], launch.program_of(options))
    assert call[:5] == ["mpiexec", "-hosts", "a:2,b:1", "-n", "3"]


@pytest.mark.parametrize("nnodes", ["2", "0", "2:1", "x", "1:2:3"])
def test_machines_that_are_not_there(nnodes, capsys):
    with pytest.raises(SystemExit):
        launch.parse(["--nnodes", nnodes, "train.py"])
    assert f"--nnodes {nnodes}" in capsys.readouterr().err


# ---- real ranks, killed --------------------------------------------------------------------------


def alone(folder, capfd, *more) -> dict[int, float]:
    """{step: loss} of the script in this process."""
    arguments, sys.argv = sys.argv, [str(TRAIN), str(folder), *SMALL, *more]
    try:
        dist.spawn(lambda: runpy.run_path(str(TRAIN), run_name="__main__") and None, nprocs=1)
    finally:
        sys.argv = arguments
    lines = map(json.loads, capfd.readouterr().out.splitlines())
    return {each["step"]: each["loss"] for each in lines}


class Job:
    """A command that trains. `curve` has (loss, ranks) of each step, the last time it was made."""

    def __init__(self, *command, **environment):
        self.curve: dict[int, tuple] = {}
        self.told: list[str] = []
        around = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"} | environment
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen(
            [sys.executable, *map(str, command)], env=around, cwd=ROOT, text=True, **pipes
        )
        self.listener = threading.Thread(target=lambda: self.told.extend(self.process.stderr))
        self.listener.start()

    def steps(self):
        """Its steps, as it prints them; Ray prints in between."""
        for each in map(json.loads, filter(lambda s: s.startswith("{"), self.process.stdout)):
            self.curve[each["step"]] = each["loss"], each["ranks"]
            yield each

    def end(self) -> tuple[int, str]:
        """Its exit code, and what it said."""
        with self.process:
            for _ in self.steps():
                pass
            code = self.process.wait(timeout=60)
            self.listener.join()
        return code, "".join(self.told)


def process_of(token: str, rank: int) -> int:
    """The number of the process of a rank: the child of its keeper. What a rank has started (the
    witness, a compiler) has its environment, and until it is another program its command.
    """
    wanted = {"TOKEN": token, "PMI_RANK": str(rank)}
    for each in psutil.process_iter():
        with suppress(psutil.Error):  # it has ended, or is another user's
            is_rank = wanted.items() <= each.environ().items() and "mpi4py" in each.cmdline()
            if is_rank and any(word.endswith("keeper.py") for word in each.parent().cmdline()):
                return each.pid
    raise AssertionError(f"no process of rank {rank}")


@pytest.mark.slow
@pytest.mark.skipif(not MPIEXEC.exists(), reason="no mpiexec beside this Python: the extra mpi")
def test_ranks_killed_by_force_and_the_checkpoint_goes_on_alone(tmp_path, capfd):
    """Four ranks, then three, then no restart is left; then one rank, in this process."""
    expected, token = alone(tmp_path / "alone", capfd), str(time.time_ns())
    job = Job("-m", "minipaddle.distributed.launch", "--nproc", 4, "--max_restart", 1,
              "--elastic_level", 2, TRAIN, tmp_path / "run", *SMALL, TOKEN=token)  # fmt: skip
    kills = {(7, 4): 2, (14, 3): 0}
    for each in job.steps():
        rank = kills.pop((each["step"], each["ranks"]), None)
        if rank is not None:
            os.kill(process_of(token, rank), signal.SIGKILL)
    code, said = job.end()
    assert code != 0
    assert not kills
    told = "launch: rank 2 of 4 was killed by SIGKILL; starting again with 3 ranks (restart 1 of 1)"
    assert told in said, said
    assert re.search(
        r"elastic: goes on from step [36] of 24; ranks: 3 now, 4 when it was saved", said
    )
    told = "launch: rank 0 of 3 was killed by SIGKILL, and --max_restart 1 is used up: the job has"
    assert told in said, said
    losses = {step: loss for step, (loss, _) in job.curve.items()}
    assert {ranks for _, ranks in job.curve.values()} == {3, 4}
    rest = alone(tmp_path / "run", capfd)
    assert min(rest) % 3 == 0
    assert 6 < min(rest) <= max(losses) + 1
    losses |= rest
    assert [*losses] == [*expected]
    np.testing.assert_allclose([*losses.values()], [*expected.values()], rtol=1e-6)


PLANNED = ["--width=64", "--length=16", "--batch=8", "--letters=2000", "--steps=12", "--every=3"]


@pytest.mark.slow
@pytest.mark.skipif(not MPIEXEC.exists(), reason="no mpiexec beside this Python: the extra mpi")
def test_a_planned_job_in_stages_survives_a_kill_and_goes_on_alone(tmp_path, capfd):
    """Two machines of two devices with little memory: pipe 2 x tensor 2. A rank is killed, four
    start again; then one process without a limit finishes what four began.
    """
    expected, token = alone(tmp_path / "alone", capfd, *PLANNED), str(time.time_ns())
    small = ["--cluster", "2x2 CPU", "--memory", "7.7e5"]
    job = Job("-m", "minipaddle.distributed.launch", "--nproc", 4, "--max_restart", 1,
              "--elastic_level", 1, TRAIN, tmp_path / "run", *PLANNED, "--steps=9", *small,
              TOKEN=token)  # fmt: skip
    kills = {5: 2}
    for each in job.steps():
        if rank := kills.pop(each["step"], None):
            os.kill(process_of(token, rank), signal.SIGKILL)
    code, said = job.end()
    assert code == 0, said
    assert said.count("plan      pipe 2 × model 2; ") == 2, said
    assert "launch: rank 2 of 4 was killed by SIGKILL; starting again with 4 ranks" in said, said
    assert re.search(r"elastic: goes on from step [36] of 9; ranks: 4 now, 4 when", said), said
    losses = {step: loss for step, (loss, ranks) in job.curve.items() if ranks == 4}
    rest = alone(tmp_path / "run", capfd, *PLANNED)
    assert [*rest] == [9, 10, 11]
    assert {*losses} == {*range(9)}
    for step, loss in (losses | rest).items():
        np.testing.assert_allclose(loss, expected[step], rtol=3e-6)


def test_workers_make_one_step_and_a_new_one_takes_it_over():
    """What the actors of Ray do, in this process: two are one on the whole batch."""
    train = runpy.run_path(str(TRAIN))

    def make():
        with paddle.utils.unique_name.guard():  # as in a process of its own
            return train["Replica"](train["parsed"](["folder", *SMALL]))

    alone, *pair, late = (Worker(make) for _ in range(4))
    for step in range(2):
        expected = alone.update([alone.compute(step, 0, 1)])
        shares = [each.compute(step, rank, 2) for rank, each in enumerate(pair)]
        np.testing.assert_allclose([w.update(shares) for w in pair], [expected] * 2, rtol=1e-6)
    for part in PARTS:
        late.load(part, pair[0].state(part))
    for mine, other in zip(late.compute(2, 0, 1), pair[1].compute(2, 0, 1), strict=True):
        np.testing.assert_array_equal(mine, other)
    shares = [late.compute(2, 0, 1)]
    assert late.update(shares) == pair[1].update(shares)
    for mine, other in zip(late.trained, pair[1].trained, strict=True):
        np.testing.assert_array_equal(mine.numpy(), other.numpy())


def test_without_ray_workers_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(RuntimeError, match=r"(?s)no Ray: .*minipaddle\[ray\]"):
        elastic.Workers(lambda: None, 2)
    with pytest.raises(ValueError, match="0 workers"):
        elastic.Workers(lambda: None, 0)
