"""`paddle.tune` as a user meets it, its files, and its cost model."""

import importlib
import json
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import plugged, viz
from minipaddle.codegen.products.microkernel import usual_height
from minipaddle.engine.codegen.kernel import Kernel
from minipaddle.engine.executors import compiler, native
from minipaddle.engine.executors.native import Executable
from minipaddle.executors.native import trials
from minipaddle.executors.native.trials import Trial, Trials
from minipaddle.tuning import proof
from minipaddle.tuning.cost_model import Sample, cost_model, ranking_loss
from minipaddle.tuning.measure import Bench, same
from minipaddle.tuning.search import NAME, Search
from minipaddle.tuning.target import targets_of
from tests.codegen.compiling import record_of

needs_cc = pytest.mark.skipif(compiler.compiler() is None, reason="no C compiler")
TRIAL = Trial("k", "m", {"tile": 4}, 1.0, 2.0)


@pytest.fixture(autouse=True)
def own_files(monkeypatch, tmp_path):
    """Files of trials of its own for each test, and tuned choices are used."""
    monkeypatch.setenv("MINIPADDLE_TUNED", "1")
    folder = tmp_path / "minipaddle/native"
    folder.mkdir(parents=True)
    for module in (trials, native):
        monkeypatch.setattr(module, "cache_folder", lambda: folder)


def step_and_data():
    """A step of training, its data, and the layer it changes."""
    paddle.seed(0)
    net = paddle.nn.Linear(32, 40)
    sgd = paddle.optimizer.SGD(0.1, parameters=net.parameters())

    def step(x):
        loss = paddle.tanh(net(x)).mean()
        loss.backward()
        sgd.step()
        sgd.clear_grad()
        return loss

    return paddle.jit.to_static(step, backend="native"), (paddle.randn([100, 32]),), net


# ---- the whole -------------------------------------------------------------------------------


@needs_cc
def test_tune_changes_nothing_but_how_kernels_are_written():
    step, batch, net = step_and_data()
    before, random = [p.numpy() for p in net.parameters()], paddle.get_rng_state()
    with plugged("tuning.accepted", lambda default, other: True):
        tuned = paddle.tune(step, *batch, trials=4, progress=False)
    assert tuned.trials == 4 == sum(map(len, tuned.curves.values()))
    assert tuned.after <= tuned.before
    assert len([*trials.all_trials()]) == sum(
        t < float("inf") for c in tuned.curves.values() for t in c
    )
    for old, p in zip(before, net.parameters(), strict=True):
        np.testing.assert_array_equal(old, p.numpy())
    assert repr(random) == repr(paddle.get_rng_state())
    for kernel in tuned.curves:
        best = tuned.best_so_far(kernel)
        assert best == sorted(best, reverse=True)
        assert best[0] == 1
        assert best[-1] == min([1, *tuned.curves[kernel]])
    assert all(row.kernel in str(tuned) for row in tuned.rows)
    assert "part of the default's time" in str(viz.tuning(tuned))
    plain, other, _ = step_and_data()
    for _ in range(3):
        np.testing.assert_allclose(step(*batch).numpy(), plain(*other).numpy(), rtol=1e-5)
    again = paddle.tune(step, trials=2, progress=False)  # it was called: inputs may be left out
    assert again.trials == 2


@needs_cc
def test_what_was_chosen_is_used_and_reported_unless_switched_off(monkeypatch):
    step, batch, _ = step_and_data()
    step(*batch)
    (made,) = step.executables
    assert "tuned kernels: none" in made.report()
    default = made.source.text
    record = next(
        r for r, k in made.kernels.of.items() if k and f"rows{usual_height()}_" in k.source
    )
    signature = made.kernels.signatures[record]
    here = trials.machine(proof.threads())
    trials.read_accepted_trials().add(Trial(signature, here, {"tall": 4, "across": 1}, 1.0, 2.0))
    program = step.main_program
    again = Executable(program)
    assert (
        again.find_tuned_kernels()
        == [
            again.kernels.of[r].name
            for r in again.kernels.of
            if again.kernels.signatures.get(r) == signature
        ][:1]
    )
    assert f"tuned kernels: {again.find_tuned_kernels()[0]}" in again.report()
    assert "rows4_float_4_1_1(" in again.source.own
    assert Executable(program, {"tuned": False}).source.text == default
    monkeypatch.setenv("MINIPADDLE_TUNED", "0")
    assert Executable(program).source.text == default
    monkeypatch.setenv("MINIPADDLE_TUNED", "1")
    for choices in ({}, {"tall": "/* no */", "across": 99}):  # no choices, and no options
        trials.read_accepted_trials().add(Trial(signature, here, choices, 1.0, 2.0))
        assert Executable(program).source.text == default


@needs_cc
def test_a_later_process_uses_what_was_chosen(tmp_path, monkeypatch):
    monkeypatch.setattr(proof, "step_seconds", lambda *a: [[2.0], [1.0]])
    (tmp_path / "shared_function.py").write_text(
        "import minipaddle as paddle\n"
        "f = paddle.jit.to_static(lambda x: paddle.tanh(x) * 2, backend='native')\n"
        "x = paddle.ones([40, 70])\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    shared = importlib.import_module("shared_function")
    with plugged("tuning.accepted", lambda default, other: True):
        paddle.tune(shared.f, shared.x, trials=4, progress=False)
    (made,) = shared.f.executables
    if made.find_tuned_kernels() == []:  # nothing was faster: then something that is not
        (signature,) = made.kernels.signatures.values()
        trials.read_accepted_trials().add(TRIAL._replace(kernel=signature, choices={"lanes": 4},
                                           machine=trials.machine(proof.threads())))  # fmt: skip
    code = "from shared_function import *\nf(x)\nprint(f.executables[-1].report())"
    path = os.pathsep.join([os.getcwd(), str(tmp_path)])
    env = os.environ | {"MINIPADDLE_CACHE": str(tmp_path), "PYTHONPATH": path}
    words = [sys.executable, "-c", code]
    output = subprocess.run(words, env=env, check=True, capture_output=True, text=True).stdout
    assert "tuned kernels: k0_" in output


@needs_cc
def test_an_interrupted_search_keeps_what_it_found():
    step, batch, _ = step_and_data()
    calls = []

    def interrupted(samples):
        calls.append(len(samples))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return lambda asked: [0.0] * len(asked)

    with plugged("tuning.cost_model", interrupted):
        tuned = paddle.tune(step, *batch, trials=12, progress=False)
    assert tuned.stopped
    assert "(stopped)" in str(tuned)
    assert 0 < tuned.trials < 12
    assert len([*trials.all_trials()]) > 0
    with plugged(
        "tuning.cost_model", lambda samples: calls.append(len(samples)) or interrupted([])
    ):
        paddle.tune(step, *batch, trials=1, progress=False)
    assert calls[2] >= len([*trials.all_trials()]) - 1  # a later search begins with those


@pytest.mark.parametrize(("after", "kept"), [(1.5, {}), (0.5, {"k": TRIAL})])
def test_a_slower_whole_is_not_kept(monkeypatch, after, kept):
    monkeypatch.setattr(proof, "faster", lambda *a: {"k": TRIAL})
    monkeypatch.setattr(proof, "step_seconds", lambda *a: [[1.0, 1.0], [after] * 2])
    target = SimpleNamespace(compile=lambda choices: None)
    default = SimpleNamespace(kernels=SimpleNamespace(signatures={None: "k"}))
    assert proof.prove([target], [default], {"k": {}}) == (kept, 1.0, min(after, 1.0))


@needs_cc
def test_forward_and_backward_of_a_layer_are_tuned():
    paddle.seed(0)
    layer = paddle.jit.to_static(paddle.nn.Linear(48, 64), backend="native")
    x = paddle.randn([90, 48])
    tuned = paddle.tune(layer, x, trials=2, progress=False)
    assert tuned.function is layer.forward
    assert len({row.kernel for row in tuned.rows}) == len(tuned.rows) > 1
    y = layer(x)
    y.sum().backward()
    np.testing.assert_allclose(y.numpy(), x.numpy() @ layer.weight.numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(layer.weight.grad.numpy()[:, 0], x.numpy().sum(0), rtol=1e-4,
                               atol=1e-4)  # fmt: skip


@needs_cc
def test_what_is_tuned_is_what_runs_at_inference():
    """Weights are frozen there: transposed, and transformed for Winograd, before the run."""
    paddle.seed(0)
    net = paddle.nn.Sequential(paddle.nn.Conv2D(16, 16, 3, padding=1), paddle.nn.Tanh())
    f, x = paddle.jit.to_static(lambda x: net(x), backend="native"), paddle.randn([1, 16, 12, 12])
    with paddle.no_grad():
        wanted = f(x).numpy()
        (made,) = f.executables
        search = Search(targets_of(f, ()), np.random.default_rng(0))
        (default,) = search.defaults
        assert default.kernels.texts == made.kernels.texts
        assert [*default.kernels.signatures.values()] == [*made.kernels.signatures.values()]
        (task,) = [t for t in search.tasks if t.space.kernel({}).prepack]
        (run,) = [r for r, name in made.kernels.signatures.items() if name == task.signature]
        source = task.space.kernel({}).source
        assert source.replace(NAME, made.kernels.of[run].name) == made.kernels.of[run].source
        points = [{"algorithm": "winograd", "tile_rows": 1}, {"algorithm": "direct"}]
        assert None not in [seconds for seconds, _ in task.measure(points)]
        paddle.tune(f, trials=2, progress=False)
        np.testing.assert_allclose(f(x).numpy(), wanted, rtol=1e-4, atol=1e-5)


@needs_cc
def test_a_loaded_model_is_tuned_as_it_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("MINIPADDLE_BACKEND", "native")
    net = paddle.nn.Sequential(paddle.nn.Conv2D(16, 16, 3), paddle.nn.BatchNorm2D(16))
    spec = paddle.static.InputSpec([None, 16, 12, 12], name="x")
    paddle.jit.save(net.eval(), str(tmp_path / "net"), input_spec=[spec])
    loaded, x = paddle.jit.load(str(tmp_path / "net")), paddle.randn([1, 16, 12, 12])
    with paddle.no_grad():
        loaded(x)
        (target,) = targets_of(loaded, (x,))
    (made,) = loaded._at_once.executables.compiled.values()
    found = target.compile({}).kernels.signatures.values()
    assert set(found) == set(made.kernels.signatures.values())


def test_what_does_not_stand_any_more_is_undone():
    mine = TRIAL._replace(machine=trials.machine(proof.threads()))
    proof.keep({"k": mine}, ["k", "other"])
    assert trials.read_choices(proof.threads()) == {"k": {"tile": 4}}
    proof.keep({}, ["k", "other"])
    assert trials.read_choices(proof.threads()) == {"k": {}}
    assert len([*trials.read_accepted_trials()]) == 2


def test_what_has_no_native_program_is_refused():
    f = paddle.jit.to_static(lambda x: x + 1, backend="interpreter")
    with pytest.raises(ValueError, match=r"no native program to tune.*interpreter"):
        paddle.tune(f, paddle.ones([3]), trials=1)
    with pytest.raises(TypeError):
        paddle.tune(paddle.jit.to_static(lambda x: x + 1, backend="native"), trials=1)


# ---- measuring -------------------------------------------------------------------------------


@needs_cc
def test_a_kernel_that_computes_something_else_is_found_out():
    x = np.linspace(-1, 1, 1000, dtype="float32")
    text = ("static void {}(const float *in, float *out)\n"
            "{{\n    for (int i = 0; i < 1000; i++) out[i] = {};\n}}\n")  # fmt: skip
    sources = ["expf(in[i])", "expf(in[i]) * 1.00001f", "expf(in[i]) * 1.01f",
               "i < 999 ? expf(in[i]) : NAN"]  # fmt: skip
    kernels = [Kernel(f"k{k}", text.format(f"k{k}", s)) for k, s in enumerate(sources)]
    found = Bench(record_of("exp", [x]), [x]).measure(kernels)
    assert [seconds is not None for seconds in found] == [True, True, False, False]
    assert all(1e-8 < seconds < 1e-3 for seconds in found if seconds)


def test_results_are_the_same_but_for_the_order_of_sums():
    x = np.array([1.0, 1000.0, np.nan, np.inf], "float32")
    assert same(x, x)
    assert same(x + np.float32(0.01), x)
    assert not same(x + np.float32(1), x)
    assert not same(np.nan_to_num(x), x)
    assert not same(-x, x)
    assert same(np.arange(3), np.arange(3))
    assert not same(np.arange(3) + 1, np.arange(3))


@pytest.mark.parametrize(("factor", "noise", "answer"), [
    (0.9, 0.02, True), (0.9, 0.0, True), (0.99, 0.0, False), (1.0, 0.05, False), (1.1, 0.02, False),
])  # fmt: skip
def test_only_what_is_faster_beyond_noise_is_accepted(factor, noise, answer):
    rng = np.random.default_rng(0)
    default, other = (rng.normal(1, noise, 25) for _ in range(2))
    default, other = default.tolist(), (factor * other).tolist()
    assert proof.is_faster(default, other) is answer


# ---- the model -------------------------------------------------------------------------------


def seconds_of(choices: dict) -> float:
    """A made-up kernel: one way is twice as slow, tiles of 8 are best."""
    return (2.0 if choices["way"] == "dots" else 1.0) * (1 + abs(np.log2(choices["tile"]) - 3))


def samples(count: int, rng, kernel="k") -> list[Sample]:
    found = []
    for _ in range(count):
        way, tile = rng.choice(["rows", "dots", "panels"]), rng.choice([1, 2, 4, 8, 16, 32])
        choices = {"way": str(way), "tile": int(tile), "idle": bool(rng.integers(2))}
        found.append(Sample(kernel, (1.0, 0.5), choices, seconds_of(choices)))
    return found


@pytest.mark.parametrize("recording", [True, False])
def test_the_model_ranks_what_it_has_not_seen(recording):
    """Also where inference is tuned, within `no_grad`."""
    rng = np.random.default_rng(0)
    with paddle.set_grad_enabled(recording):
        score, new = cost_model(samples(30, rng)), samples(60, rng)
    scores = np.array(score([s._replace(seconds=float("nan")) for s in new]))
    times = np.array([s.seconds for s in new])
    pairs = [(i, j) for i in range(60) for j in range(60) if times[i] < times[j]]
    assert np.mean([scores[i] > scores[j] for i, j in pairs]) > 0.85
    assert score([]) == []


def test_times_of_different_kernels_are_not_compared():
    rng = np.random.default_rng(0)
    fast, slow = samples(1, rng, "a"), samples(1, rng, "b")
    random = paddle.get_rng_state()
    assert cost_model(fast + slow)(fast + slow) == [0.0, 0.0]
    assert cost_model([])(fast) == [0.0]
    assert repr(random) == repr(paddle.get_rng_state())


def test_the_loss_is_low_where_the_faster_one_scores_higher():
    slower = paddle.to_tensor([[0.0, 1.0], [0.0, 0.0]])
    loss = lambda *scores: float(ranking_loss(paddle.to_tensor(scores), slower))
    assert loss(0.0, 0.0) == pytest.approx(np.log(2))
    assert loss(3.0, 1.0) == pytest.approx(np.log1p(np.exp(-2.0)))
    assert loss(1.0, 3.0) == pytest.approx(np.log1p(np.exp(2.0)))


# ---- the files -------------------------------------------------------------------------------


def test_broken_lines_are_left_out_with_a_warning(tmp_path):
    path = tmp_path / "t.jsonl"
    file = Trials(path)
    assert [*file] == []
    file.add(TRIAL, TRIAL._replace(seconds=3.0))
    good = path.read_text()
    bad = ["{", "[]", "null", '{"kernel": "k"}', good.split("\n")[1][:-9],
           json.dumps(TRIAL._replace(seconds=-1)._asdict()),
           json.dumps(TRIAL._replace(choices={"tile": [1]})._asdict()),
           json.dumps(TRIAL._replace(default="x")._asdict()),
           json.dumps(TRIAL._replace(kernel=1)._asdict())]  # fmt: skip
    path.write_text("\n".join(bad) + "\n" + good + '{"kernel": "cut sho')
    file.add(TRIAL)
    with pytest.warns(UserWarning, match=r"broken lines are left out: 1, 2, 3, 4, 5, …"):
        assert [t.seconds for t in file] == [1.0, 3.0, 1.0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_two_processes_may_write_at_once(tmp_path):
    path, children = tmp_path / "t.jsonl", []
    for name in "ab":
        if not (child := os.fork()):
            status = 1  # no error may reach pytest, which would go on in two processes
            try:
                for k in range(300):
                    Trials(path).add(Trial(name * 50, "m", {"k": k}, 1.0, 2.0))
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    assert all(os.waitpid(child, 0)[1] == 0 for child in children)
    found = [(t.kernel[0], t.choices["k"]) for t in Trials(path)]
    assert sorted(found) == [(name, k) for name in "ab" for k in range(300)]


def test_choices_of_another_machine_do_not_count():
    here = trials.machine(1)
    trials.read_accepted_trials().add(TRIAL._replace(machine=here), TRIAL._replace(kernel="other"))
    trials.read_accepted_trials().add(TRIAL._replace(machine=here, choices={"tile": 8}))
    assert trials.read_choices(1) == {"k": {"tile": 8}}
    assert trials.read_choices(2) == {}
