"""The profile: its numbers add up, and its trace is one that viewers open."""

import json
import re
import sys
import threading
from types import SimpleNamespace

import pytest

import minipaddle as paddle
from minipaddle import viz
from minipaddle.engine.core.dispatch import Interpreter, current, interpreter
from minipaddle.engine.ops import conv as ops
from minipaddle.viz.profile import fit_name, list_spans

nn = paddle.nn


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(8, 16), nn.Linear(16, 2)

    def forward(self, x):
        return self.fc2(paddle.tanh(self.fc1(x)))


@pytest.fixture
def profiled():
    net, x = Net(), paddle.ones([4, 8])
    with viz.profile() as p:
        for _ in range(2):
            net(x).sum().backward()
        with paddle.no_grad():
            net(x)
    return p


def test_calls_are_counted_by_operator():
    x = paddle.ones([4])
    with viz.profile() as p:
        for _ in range(5):
            y = paddle.exp(x)
        y + y
    assert {row.name: row.calls for row in p.rows()} == {"exp": 5, "add": 1}
    assert [row.phases.keys() for row in p.rows()] == [{"forward"}] * 2


@pytest.mark.parametrize("backend", ["interpreter", "native"])
def test_a_program_is_one_event(backend):
    @paddle.jit.to_static(backend=backend)
    def wave(x):
        return paddle.tanh(x) * x

    x = paddle.ones([4, 8])
    x.stop_gradient = False
    wave(x)
    with viz.profile() as p:
        wave(x).backward(paddle.ones([4, 8]))
    rows = {row.name: row for row in p.rows()}
    assert rows["wave"].phases.keys() == {"forward"}
    assert 0 < rows["wave"].inside < rows["wave"].own
    assert rows["wave"].outputs >= 4 * 8 * 4
    (backward,) = [name for name in rows if rows[name].phases.keys() == {"backward"}]
    assert backward.startswith("wave")


def test_totals_are_consistent(profiled):
    p = profiled
    for by in ("operator", "layer"):
        rows = p.rows(by)
        assert sum(row.own for row in rows) == pytest.approx(p.busy)
        assert sum(row.share for row in rows) == pytest.approx(1)
        assert sum(row.calls for row in rows) == len(p.events)
        assert [row.own for row in rows] == sorted((row.own for row in rows), reverse=True)
        for row in rows:
            assert row.own == pytest.approx(sum(row.phases.values()))
            assert row.own == pytest.approx(row.inside + row.overhead)
            assert 0 < row.inside < row.own
    assert 0 < p.busy < p.wall
    starts = [e.start for e in p.events]
    assert starts == sorted(starts)
    assert all(p.start <= e.start <= e.end <= p.end for e in p.events)


def test_phases_are_told_apart(profiled):
    rows = {row.name: row for row in profiled.rows()}
    assert rows["tanh"].phases.keys() == {"forward", "no grad"}
    assert rows["tanh"].calls == 3
    assert any(row.phases.keys() == {"backward"} for row in rows.values())
    backward = [e for e in profiled.events if e.phase == "backward"]
    assert not any(e.name == "tanh" for e in backward)
    assert backward


def test_backward_time_belongs_to_the_layer_it_is_the_backward_of(profiled):
    rows = {row.name: row for row in profiled.rows("layer")}
    assert {"Net", "Net.fc1", "Net.fc2", "(no layer)"} <= rows.keys()
    for name in ("Net.fc1", "Net.fc2"):
        assert rows[name].phases.keys() == {"forward", "backward", "no grad"}


def test_bytes_are_those_of_the_results():
    x = paddle.ones([4, 8])
    with viz.profile() as p:
        y = paddle.exp(x)
        z = paddle.reshape(y, [8, 4])
        paddle.split(z, 2)
    rows = {row.name: row for row in p.rows()}
    assert (rows["exp"].outputs, rows["exp"].allocated) == (128, 128)
    assert (rows["reshape"].outputs, rows["reshape"].allocated) == (128, 0)
    assert (rows["split"].outputs, rows["split"].allocated) == (128, 0)
    assert str(p.events[0].outputs[0]) == "float32[4, 8]"


def test_a_result_that_is_a_view_of_fresh_memory_is_new():
    g, x = paddle.ones([1, 4, 3, 3]), paddle.ones([1, 2, 3, 3])
    with viz.profile() as p:
        w = ops.conv_weight_grad(
            x, g, kernel=(1, 1), stride=(1, 1), padding=((0, 0), (0, 0)), dilation=(1, 1), groups=1
        )
    assert w.array.base is not None
    (row,) = p.rows()
    assert row.allocated == row.outputs == 4 * 2 * 4


def test_long_names_stand_in_lines():
    assert fit_name("conv_weight_grad", 0.2) == "conv_weight_grad"
    assert fit_name("conv_weight_grad", 0.06) == "conv\nweight\ngrad"
    assert fit_name("conv_weight_grad", 0.01) == ""


def test_off_means_off():
    before = current.top
    run = before.quietly
    with viz.profile() as p:
        assert current.top is not before
        assert current.top.recording
        with paddle.no_grad():
            assert not before.recording
        paddle.exp(paddle.ones([2]))
    assert current.top is before
    assert before.quietly is run
    seen = len(p.events)
    paddle.exp(paddle.ones([2]))
    assert len(p.events) == seen


def test_an_error_leaves_everything_as_it_was():
    before = current.top
    with pytest.raises(ValueError, match="add"), viz.profile() as p:
        paddle.ones([2]) + paddle.ones([3])
    assert current.top is before
    assert before.passing is None
    assert [e.name for e in p.events if e.name == "add"] == []


def test_gradients_are_the_same_under_a_profile():
    def gradient():
        paddle.seed(1)
        net = Net()
        (net(paddle.ones([4, 8])) ** 2).sum().backward()
        return net.fc1.weight.grad.numpy()

    plain = gradient()
    with viz.profile():
        assert (gradient() == plain).all()


def test_random_numbers_and_second_derivatives_pass_through():
    with viz.profile() as p:
        x = paddle.rand([3])
        x.stop_gradient = False
        (g,) = paddle.grad((x**3).sum(), x, create_graph=True)
        (h,) = paddle.grad(g.sum(), x)
    assert h.numpy() == pytest.approx(6 * x.numpy(), rel=1e-5)
    assert {e.phase for e in p.events} >= {"forward", "backward"}


def test_a_profile_is_of_its_own_thread():
    with viz.profile() as p:
        other = threading.Thread(target=lambda: paddle.exp(paddle.ones([2])))
        other.start()
        other.join()
    assert p.events == []


def test_an_interpreter_that_runs_no_bodies_can_be_profiled():
    class Fixed(Interpreter):
        def apply(self, op, inputs, attrs):
            return inputs[0]

    x = paddle.ones([2])
    with interpreter(Fixed()), viz.profile() as p:
        paddle.exp(x)
    (event,) = p.events
    assert (event.name, event.inside, event.allocated) == ("exp", 0, 0)


def test_on_a_gpu_each_operator_is_waited_for(monkeypatch):
    module, waits = sys.modules["minipaddle.viz.profile"], []
    monkeypatch.setattr(module, "current_place", lambda: SimpleNamespace(kind="gpu"))
    monkeypatch.setattr(module, "synchronize", lambda: waits.append(1))
    x = paddle.ones([2])
    with viz.profile() as p:
        paddle.exp(x)
        paddle.seed(3)
        paddle.nn.functional.dropout(x, 0.5)
    assert len(waits) >= len(p.events) > 1


# ---- to look at ------------------------------------------------------------------------------


def test_the_table_as_text(profiled):
    lines = str(profiled).split("\n")
    assert re.search(r"[\d.]+ ms in operators, of [\d.]+ ms", lines[0])
    head = next(line for line in lines if "operator" in line and "calls" in line).split()
    assert " ".join(head) == (
        "operator calls self ms share inside overhead forward backward no grad output new"
    )
    assert next(line for line in lines if line.strip().startswith("tanh")).split()[1] == "3"
    assert profiled.table("layer").row_count == len(profiled.rows("layer"))
    with pytest.raises(ValueError, match="not by 'colour'"):
        profiled.table("colour")


def test_a_notebook_gets_html(profiled):
    bundle = profiled._repr_mimebundle_()
    assert "<pre" in bundle["text/html"]
    assert "tanh" in bundle["text/html"]
    assert bundle["text/plain"] == str(profiled)
    assert "\x1b" not in str(profiled)


def test_layers_nest_in_time(profiled):
    spans = list_spans(profiled.events)
    assert sum(s.kind != "layer" for s in spans) == len(profiled.events)
    layers = [s for s in spans if s.kind == "layer"]
    assert {s.name for s in layers} == {"Net", "fc1", "fc2"}
    for a in spans:
        outer = [b for b in layers if b.level < a.level and b.start <= a.start and a.end <= b.end]
        assert len(outer) == a.level
    for a, b in ((a, b) for a in spans for b in spans if a is not b and a.level == b.level):
        assert a.end <= b.start or b.end <= a.start


def test_the_flame_chart(profiled, tmp_path):
    picture = profiled.flame()
    assert str(picture).startswith(f"flame chart: {len(profiled.events)} operators in ")
    (axes,) = picture.figure.axes
    drawn = len(axes.patches)
    assert drawn == len(list_spans(profiled.events))
    assert [t.get_text() for t in picture.figure.legends[0].get_texts()] == [
        "layer",
        "forward",
        "backward",
        "no grad",
    ]
    assert picture.save_as(tmp_path / "flame.svg").read_text().count("<svg") == 1
    with viz.profile() as empty:
        pass
    assert str(empty.flame()).startswith("flame chart: 0 operators")
    assert empty.rows() == []


def test_the_chrome_trace_is_valid(profiled, tmp_path):
    path = profiled.chrome_trace(tmp_path / "trace.json")
    trace = json.loads(path.read_text())
    events = trace["traceEvents"]
    assert trace["displayTimeUnit"] == "ms"
    for e in events:  # what "Trace Event Format" asks of each event
        assert {"name", "ph", "ts", "pid", "tid", "args"} <= e.keys()
        assert e["ph"] in "XM"
        if e["ph"] == "X":
            assert isinstance(e["ts"], float)
            assert e["ts"] >= 0
            assert e["dur"] >= 0
            assert isinstance(e["cat"], str)
    complete = [e for e in events if e["ph"] == "X"]
    operators = [e for e in complete if e["cat"] != "layer"]
    assert len(operators) == len(profiled.events)
    assert sum(e["dur"] for e in operators) / 1e3 == pytest.approx(profiled.busy)
    tanh = next(e for e in operators if e["name"] == "tanh")
    assert tanh["args"]["layer"] == "Net"
    assert tanh["args"]["output"] == "float32[4, 16]"
    stack = []  # on one thread events must nest
    for e in sorted(complete, key=lambda e: (e["ts"], -e["dur"])):
        while stack and stack[-1] <= e["ts"] + 1e-6:
            stack.pop()
        assert not stack or e["ts"] + e["dur"] <= stack[-1] + 1e-3
        stack.append(e["ts"] + e["dur"])


def test_the_first_step_of_an_optimizer():
    """It makes the states, and asks the interpreter where they are."""
    w = paddle.create_parameter([2], "float32")
    (w * w).sum().backward()
    with viz.profile() as p:
        paddle.optimizer.Momentum(0.1, parameters=[w]).step()
    assert "descend" in repr(p)
