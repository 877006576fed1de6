"""Training curves and event files."""

import io
import sys
from types import SimpleNamespace

import pytest

import minipaddle as paddle
from minipaddle import viz
from minipaddle.viz import curves as curves_module
from minipaddle.viz import event_files


def descent(**options):
    found = viz.Curves(live=False, **options)
    for step in range(10):
        found.log(step, loss=10.0 - step, accuracy=step / 10)
    return found


def test_text_tells_the_last_value_and_the_way_there():
    assert str(descent()) == "step 9  loss 1 █▇▆▅▄▄▃▂▁▁  accuracy 0.9 ▁▁▂▃▄▄▅▆▇█"
    assert str(viz.Curves()) == "no curves yet"


def test_several_runs_are_several_lines():
    found = viz.Curves(live=False)
    for run in ("adam", "sgd"):
        for step in range(3):
            found.log(step, run=run, loss=step)
    found.log(7, run="sgd", extra=1.0)
    assert str(found) == "adam: step 2  loss 2 ▁▄█\nsgd: step 7  loss 2 ▁▄█  extra 1 ▁"
    fig = found.picture().figure
    assert [a.get_title() for a in fig.axes] == ["loss", "extra"]
    lines = fig.axes[0].get_lines()
    assert [line.get_label() for line in lines] == ["adam", "sgd"]
    assert (
        len({line.get_color() for line in lines})
        == len({line.get_linestyle() for line in lines})
        == 2
    )
    assert [line.get_label() for line in fig.axes[1].get_lines()] == ["sgd"]


def test_tensors_are_values_and_nan_is_shown():
    found = viz.Curves(live=False)
    found.log(0, loss=paddle.to_tensor(2.0))
    found.log(1, loss=float("nan"))
    found.log(2, loss=1.0)
    assert str(found) == "step 2  loss 1 █!▁"
    lost = viz.Curves(live=False)
    lost.log(0, loss=float("inf"))
    assert str(lost) == "step 0  loss inf !"


def test_many_points_become_few_bars():
    text = curves_module.sparkline(list(range(1000)))
    assert len(text) == 24
    assert text[0] == "▁"
    assert text[-1] == "█"
    assert list(text) == sorted(text)


def test_smoothing_is_a_corrected_moving_average():
    found = descent(smoothing=0.5)
    values = found.smooth([4.0, 2.0, 1.0])
    assert values == pytest.approx([4.0, (2 + 0.5 * 4) / 1.5, (1 + 0.5 * 2 + 0.25 * 4) / 1.75])
    assert viz.Curves().smooth([4.0, 2.0]) == [4.0, 2.0]
    raw, smooth = found.picture().figure.axes[0].get_lines()
    assert raw.get_alpha() == 0.25
    assert list(raw.get_ydata()) == [10.0 - s for s in range(10)]
    assert list(smooth.get_ydata()) == pytest.approx(found.smooth([10.0 - s for s in range(10)]))
    with pytest.raises(ValueError, match=r"smoothing must be in \[0, 1\), not 1"):
        viz.Curves(1)


def test_a_figure_without_points_is_empty():
    fig = viz.Curves().picture().figure
    assert [len(a.get_lines()) for a in fig.axes] == [0]


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_a_picture_is_saved_the_same_every_time(tmp_path, kind):
    picture = descent().picture()
    one = picture.save_as(tmp_path / f"one.{kind}").read_bytes()
    assert b"Date" not in one or kind == "png"
    assert len(one) > 1000


def test_a_notebook_gets_png_and_text():
    found = descent()
    bundle = found._repr_mimebundle_()
    assert bundle["image/png"].startswith(b"\x89PNG")
    assert bundle["text/plain"] == str(found) == repr(found.picture())


def test_elsewhere_lines_are_printed_now_and_then(monkeypatch):
    clock = iter([0.0, 0.0, 0.5, 1.2, 1.2, 9.0])
    monkeypatch.setattr(curves_module.time, "monotonic", lambda: next(clock))
    out = io.StringIO()
    with viz.Curves(every=1.0, file=out) as found:
        for step in range(3):
            found.log(step, loss=step)
    assert out.getvalue().split("\n") == [
        "step 0  loss 0 ▁",
        "step 2  loss 2 ▁▄█",
        "step 2  loss 2 ▁▄█",
        "",
    ]


def test_it_prints_to_standard_output(capsys):
    found = viz.Curves()
    found.log(3, loss=1)
    assert capsys.readouterr().out == "step 3  loss 1 ▁\n"
    with viz.Curves(live=False) as quiet:
        quiet.log(3, loss=1)
    assert capsys.readouterr().out == ""


def test_in_a_notebook_one_picture_is_updated(monkeypatch):
    IPython = pytest.importorskip("IPython")
    shown, updates = [], []
    handle = SimpleNamespace(update=updates.append)

    def display(picture, display_id):
        shown.append(picture)
        return handle

    monkeypatch.setattr(IPython, "get_ipython", lambda: SimpleNamespace(kernel=1))
    monkeypatch.setattr("IPython.display.display", display)
    assert curves_module.in_notebook()
    with viz.Curves(every=0.0) as found:
        found.log(0, loss=1)
        found.log(1, loss=2)
    assert len(shown) == 1
    assert [str(p) for p in updates] == ["step 1  loss 2 ▁█"] * 2


def test_a_plain_process_is_no_notebook(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", None)
    assert not curves_module.in_notebook()


# ---- Model.fit ---------------------------------------------------------------------------------


def test_a_callback_logs_what_fit_reports():
    found = viz.Curves(live=False)
    callback = found.callback(run="adam", prefix="net ")
    assert isinstance(callback, paddle.callbacks.Callback)
    for _ in range(2):  # batches are numbered anew in each epoch
        for step in range(2):
            logs = {"loss": [0.5], "acc": 0.25, "batch_size": 8, "step": step, "note": "x"}
            callback.on_train_batch_end(step, logs)
        callback.on_eval_end({"acc": 0.75})
    callback.on_train_batch_end(2)
    callback.on_train_end()
    assert dict(found.points) == {
        ("net loss", "adam"): [(s, 0.5) for s in (1, 2, 3, 4)],
        ("net acc", "adam"): [(s, 0.25) for s in (1, 2, 3, 4)],
        ("net eval acc", "adam"): [(2, 0.75), (4, 0.75)],
    }
    shown = io.StringIO()
    live = viz.Curves(every=1e9, file=shown)
    live.callback().on_train_end()
    assert shown.getvalue() == "no curves yet\n"


def test_fit_draws_curves():
    xs, ys = paddle.ones([8, 2]), paddle.zeros([8, 1])
    data = paddle.io.TensorDataset([xs, ys])
    net = paddle.nn.Linear(2, 1)
    model = paddle.Model(net)
    sgd = paddle.optimizer.SGD(0.1, parameters=net.parameters())
    model.prepare(sgd, paddle.nn.MSELoss())
    found = viz.Curves(live=False)
    model.fit(data, batch_size=4, epochs=3, verbose=0, callbacks=[found.callback()])
    (points,) = (p for (name, _), p in found.points.items() if name == "loss")
    assert [step for step, _ in points] == [1, 2, 3, 4, 5, 6]
    assert points[-1][1] < points[0][1]


# ---- event files -----------------------------------------------------------------------------


def test_events_can_be_read_back(tmp_path):
    pytest.importorskip("tensorboardX")
    from tensorboardX.proto.event_pb2 import Event
    from tensorboardX.record_writer import masked_crc32c

    with viz.LogWriter(tmp_path, "tensorboard") as log:
        for step in range(3):
            log.add_scalar("loss", paddle.to_tensor(0.5) * step, step)
        log.add_histogram("w", paddle.ones([4]), global_step=1)
        log.add_text("note", "hello")
        assert log.logdir == str(tmp_path)
    (path,) = tmp_path.iterdir()
    data, found = path.read_bytes(), []
    while data:  # TFRecord: length, its checksum, the event, its checksum
        length = int.from_bytes(data[:8], "little")
        body = data[12 : 12 + length]
        assert int.from_bytes(data[12 + length : 16 + length], "little") == masked_crc32c(body)
        found.append(Event.FromString(body))
        data = data[16 + length :]
    values = [(e.step, v.tag, v) for e in found for v in e.summary.value]
    assert [(s, v.simple_value) for s, tag, v in values if tag == "loss"] == [
        (0, 0),
        (1, 0.5),
        (2, 1),
    ]
    assert [(s, v.histo.num) for s, tag, v in values if tag == "w"] == [(1, 4)]
    assert any(tag.startswith("note") for _, tag, _ in values)


def test_missing_methods_and_viewers_are_named(tmp_path):
    pytest.importorskip("tensorboardX")
    with viz.LogWriter(tmp_path) as log:
        with pytest.raises(AttributeError, match="add_scaler"):
            log.add_scaler("loss", 1, 1)
        with pytest.raises(AttributeError, match="_x"):
            log._x  # noqa: B018
    with pytest.raises(
        ValueError, match="no viewer 'wandb'\n  expected: 'tensorboard' or 'visualdl'"
    ):
        viz.LogWriter(tmp_path, "wandb")


@pytest.mark.parametrize(
    ("viewer", "hint"),
    [
        (None, r"(?s)no library to write event files\n.*try: pip install 'minipaddle\[book\]'"),
        ("tensorboard", "(?s)event files for tensorboard\n.*try: pip install"),
        ("visualdl", "pip install visualdl; or viewer="),
    ],
)
def test_a_missing_library_is_named_with_the_fix(monkeypatch, tmp_path, viewer, hint):
    for library, _ in event_files.LIBRARIES.values():
        monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=hint):
        viz.LogWriter(tmp_path, viewer)


def test_visualdls_own_writer_is_used_where_it_is_there(monkeypatch, tmp_path):
    calls = []

    class LogWriter:
        def __init__(self, logdir, **options):
            calls.append((logdir, options))

        def add_scalar(self, **named):
            calls.append(named)

        def close(self):
            calls.append("closed")

    monkeypatch.setitem(sys.modules, "visualdl", SimpleNamespace(LogWriter=LogWriter))
    with viz.LogWriter(tmp_path, "visualdl", display_name="first") as log:
        log.add_scalar(tag="loss", value=paddle.to_tensor([2.5]), step=1)
    assert calls == [
        (str(tmp_path), {"display_name": "first"}),
        {"tag": "loss", "value": 2.5, "step": 1},
        "closed",
    ]
