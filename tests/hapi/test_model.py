"""Model: a small classifier trained, measured, saved; what it prints is Paddle's, line by line."""

import functools
import re

import numpy as np
import pytest
import rich.console
import rich.progress

import minipaddle as paddle
from minipaddle import callbacks, hapi
from minipaddle.hapi import progress
from minipaddle.nn.names import guard


def data(n=20, seed=0):
    rng = np.random.RandomState(seed)
    x = rng.randn(n, 4).astype("float32")
    y = (x @ rng.randn(4, 3)).argmax(1)[:, None]
    return paddle.io.TensorDataset([paddle.to_tensor(x), paddle.to_tensor(y)])


def prepared(metrics=None, rate=0.1, **options):
    with guard():
        paddle.seed(3)
        net = paddle.nn.Sequential(paddle.nn.Linear(4, 8), paddle.nn.ReLU(), paddle.nn.Linear(8, 3))
    model = paddle.Model(net, **options)
    optimizer = paddle.optimizer.Momentum(rate, parameters=net.parameters())
    model.prepare(optimizer, paddle.nn.CrossEntropyLoss(), metrics)
    return model


def untimed(text):
    """Printed lines without what depends on the clock and on arithmetic."""
    text = re.sub(r"\d+(s|ms|us)/step", "TIME", text)
    return re.sub(r"\d\.\d{4}(e-\d\d)?", "N", text).splitlines()


NOTE = (
    "The loss value printed in the log is the current step, and the metric is the average value "
    "of previous steps."
)


def test_training_learns():
    model = prepared(paddle.metric.Accuracy())
    model.fit(data(200), batch_size=20, epochs=20, verbose=0)
    seen = model.evaluate(data(200), batch_size=50, verbose=0)
    assert sorted(seen) == ["acc", "loss"]
    assert seen["acc"] > 0.95
    assert seen["loss"][0] < 0.2


def test_what_fit_prints(capsys):
    model = prepared(paddle.metric.Accuracy(topk=(1, 2)))
    model.fit(data(), data(), batch_size=4, epochs=1, verbose=2, log_freq=2)
    values = "loss: N - acc_top1: N - acc_top2: N - TIME"
    assert untimed(capsys.readouterr().out) == [
        NOTE,
        "Epoch 1/1",
        f"step 2/5 - {values}",
        f"step 4/5 - {values}",
        f"step 5/5 - {values}",
        "Eval begin...",
        f"step 2/5 - {values}",
        f"step 4/5 - {values}",
        f"step 5/5 - {values}",
        "Eval samples: 20",
    ]


def test_what_the_bar_leaves_in_a_file(capsys):
    model = prepared()
    model.fit(data(), batch_size=5, epochs=1, verbose=1)
    model.predict(data(), batch_size=8, verbose=1)
    full = "[" + "=" * 30 + "]"
    assert untimed(capsys.readouterr().out) == [
        NOTE,
        "Epoch 1/1",
        f"step 4/4 {full} - loss: N - TIME",
        "Predict begin...",
        f"step 3/3 {full} - TIME",
        "Predict samples: 20",
    ]


def test_the_bar_on_a_terminal(monkeypatch, capsys):
    terminal = functools.partial(rich.console.Console, force_terminal=True, width=100)
    monkeypatch.setattr(rich.console, "Console", terminal)
    prepared().fit(data(), batch_size=5, epochs=1, verbose=1)
    assert "4/4" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("seconds", "text"), [(2.4, "2s/step"), (0.0123, "12ms/step"), (4e-5, "40us/step")]
)
def test_pace(seconds, text):
    assert progress.pace(seconds) == text


def test_values_in_words():
    assert progress.format_value("loss", [0.5, 12.0]) == "- loss: 0.5000 12.0000"
    assert progress.format_value("lr", 1e-5) == "- lr: 1.0000e-05"
    assert progress.format_value("n", 3) == "- n: 3"


def test_one_batch_is_what_paddle_does():
    """The same numbers as a loop written by hand."""
    x, y = data()[:]
    model, twin = prepared(), prepared().network
    optimizer = paddle.optimizer.Momentum(0.1, parameters=twin.parameters())
    for _ in range(3):
        loss = paddle.nn.functional.cross_entropy(twin(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        (ours,) = model.train_batch([x], [y])
        assert ours == loss.numpy()
    (before,) = model.eval_batch(x, y)
    assert before == paddle.nn.functional.cross_entropy(twin(x), y).numpy()
    (out,) = model.predict_batch(x.numpy())
    np.testing.assert_array_equal(out, twin(x).numpy())


def test_accumulated_gradients():
    """Two batches of ten are one of twenty, but for the mean's 1/2."""
    x, y = data()[:]
    model, twin = prepared(rate=0.1), prepared(rate=0.2)
    model.train_batch(x[:10], y[:10], update=False)
    model.train_batch(x[10:], y[10:])
    twin.train_batch(x, y)
    for a, b in zip(model.parameters(), twin.parameters()):
        np.testing.assert_allclose(a.numpy(), b.numpy(), atol=1e-6)
    steps = Steps()
    model.fit(data(), batch_size=4, accumulate_grad_batches=2, verbose=0, callbacks=steps)
    assert steps.train == 5


class Steps(callbacks.Callback):
    """Notes every call."""

    def __init__(self):
        super().__init__()
        self.calls = []
        self.train = 0

    def __getattribute__(self, name):
        if name.startswith("on_"):
            return lambda *args: self.note(name, args)
        return object.__getattribute__(self, name)

    def note(self, name, args):
        self.calls.append(name)
        self.train += name == "on_train_batch_end"
        if name.endswith("batch_end"):
            self.logs = args[1]


def test_the_order_of_callbacks():
    steps = Steps()
    model = prepared(paddle.metric.Accuracy())
    model.fit(data(), data(), batch_size=10, epochs=1, verbose=0, callbacks=[steps])
    batch = ["on_train_batch_begin", "on_train_batch_end"]
    evaluated = [b.replace("train", "eval") for b in batch]
    assert steps.calls == [
        "on_train_begin", "on_epoch_begin", *batch, *batch, "on_epoch_end",
        "on_eval_begin", *evaluated, *evaluated, "on_eval_end", "on_train_end",
    ]  # fmt: skip
    assert steps.params["epochs"] == 1
    assert steps.params["steps"] == 2
    assert steps.params["metrics"] == ["loss", "acc"]
    assert sorted(steps.logs) == ["acc", "batch_size", "loss", "step"]
    steps.calls.clear()
    model.predict(data(), batch_size=10, verbose=0, callbacks=[steps])
    assert steps.calls == [
        "on_predict_begin",
        *["on_predict_batch_begin", "on_predict_batch_end"] * 2,
        "on_predict_end",
    ]


def test_a_number_of_steps():
    for iterations, epochs in ((3, 1), (7, 2), (10, 2)):
        steps = Steps()
        prepared().fit(
            data(), batch_size=4, epochs=9, verbose=0, callbacks=steps, num_iters=iterations
        )
        assert steps.train == iterations
        assert steps.calls.count("on_epoch_begin") == epochs


def test_evaluation_now_and_then():
    steps = Steps()
    prepared().fit(data(), data(), batch_size=(5, 20), epochs=5, eval_freq=2, verbose=0,
                   callbacks=steps)  # fmt: skip
    assert steps.calls.count("on_eval_begin") == 3
    assert steps.calls.count("on_eval_batch_end") == 3
    steps.calls.clear()
    prepared().evaluate(data(), batch_size=5, verbose=0, callbacks=steps, num_iters=2)
    assert steps.calls.count("on_eval_batch_end") == 2


def test_predictions():
    model = prepared()
    x, _ = data()[:]
    (batches,) = model.predict(data(), batch_size=8, verbose=0)
    assert [b.shape for b in batches] == [(8, 3), (8, 3), (4, 3)]
    (stacked,) = model.predict([[x]], stack_outputs=True, verbose=0)
    np.testing.assert_allclose(stacked, np.concatenate(batches), rtol=1e-6)


def test_a_schedule_steps_after_every_batch_or_epoch():
    for callback, expected in (
        (None, 10),
        (callbacks.LRScheduler(by_step=False, by_epoch=True), 2),
        (callbacks.LRScheduler(by_step=False), 0),
    ):
        model = prepared()
        schedule = paddle.optimizer.lr.StepDecay(0.1, 1000)
        model._optimizer.set_lr_scheduler(schedule)
        model.fit(data(), batch_size=4, epochs=2, verbose=0, callbacks=callback)
        assert schedule.last_epoch == expected
    with pytest.raises(ValueError, match="not both"):
        callbacks.LRScheduler(by_step=True, by_epoch=True)


def test_checkpoints(tmp_path, capsys):
    model = prepared()
    model.fit(data(), batch_size=10, epochs=3, verbose=0, save_dir=tmp_path, save_freq=2)
    names = sorted(p.name for p in tmp_path.iterdir())
    assert names == [f"{a}.{b}" for a in ("0", "2", "final") for b in ("pdopt", "pdparams")]
    assert f"save checkpoint at {tmp_path / 'final'}" in capsys.readouterr().out
    other = prepared()
    other.load(str(tmp_path / "final"))
    x, y = data()[:]
    assert other.train_batch(x, y) == model.train_batch(x, y)
    for a, b in zip(other.parameters(), model.parameters()):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_loading_what_does_not_fit(tmp_path):
    model = prepared()
    model.save(str(tmp_path / "m"))
    other = paddle.Model(paddle.nn.Sequential(paddle.nn.Linear(4, 9), paddle.nn.Linear(9, 3)))
    with pytest.raises(ValueError, match=r"does not fit the network: 0\.weight"):
        other.load(str(tmp_path / "m"))
    other.load(str(tmp_path / "m"), skip_mismatch=True)
    other = prepared()
    other.load(str(tmp_path / "m"), reset_optimizer=True)
    np.testing.assert_array_equal(other.parameters()[0].numpy(), model.parameters()[0].numpy())
    with pytest.raises(NotImplementedError, match=r"paddle\.jit\.save"):
        model.save("x", training=False)


# ---- early stopping ------------------------------------------------------------------------------


def stopped(values, **options):
    """After how many evaluations EarlyStopping says stop, if they give `values`."""
    stopping = callbacks.EarlyStopping(verbose=0, **options)
    model = prepared()
    stopping.set_model(model)
    stopping.on_train_begin()
    for k, value in enumerate(values):
        stopping.on_epoch_begin(k)
        stopping.on_eval_end({stopping.monitor: [value]})
        if model.stop_training:
            return k + 1
    return None


@pytest.mark.parametrize(
    ("values", "options", "expected"),
    [
        ([3, 2, 1, 0], {}, None),
        ([3, 2, 2.5], {}, 3),
        ([3, 2, 2.5, 2.5, 2.5], {"patience": 2}, 4),
        ([3, 2.9, 2.8], {"patience": 1, "min_delta": 1}, 2),
        ([0.1, 0.2, 0.1], {"monitor": "acc"}, 3),
        ([0.1, 0.2, 0.3], {"mode": "max"}, None),
        ([0.3, 0.2], {"monitor": "acc", "mode": "min"}, None),
        ([3], {"baseline": 2.0}, 1),
    ],
)
def test_early_stopping(values, options, expected):
    assert stopped(values, **options) == expected


def test_early_stopping_in_fit(tmp_path, capsys):
    stopping = callbacks.EarlyStopping(patience=1, min_delta=100.0)
    prepared().fit(data(), data(), batch_size=20, epochs=9, verbose=0, callbacks=stopping,
                   save_dir=str(tmp_path))  # fmt: skip
    assert "Epoch 2: Early stopping." in capsys.readouterr().out
    assert (tmp_path / "best_model.pdparams").exists()
    with pytest.raises(ValueError, match="mode must be"):
        callbacks.EarlyStopping(mode="up")


def test_watching_what_is_not_there():
    stopping = callbacks.EarlyStopping("f1")
    stopping.on_train_begin()
    with pytest.warns(UserWarning, match="'f1', which the evaluation does not give"):
        stopping.on_eval_end({"loss": 1.0})


# ---- inputs and labels ---------------------------------------------------------------------------


class Two(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.fc = paddle.nn.Linear(2, 2)

    def forward(self, a, b, scale=1.0):
        return self.fc(a) * scale, self.fc(b)


def test_several_inputs_outputs_and_losses():
    net = Two()
    model = paddle.Model(net)
    model.prepare(
        paddle.optimizer.SGD(0.1, parameters=net.parameters()),
        lambda p, q, y, z: [((p - y) ** 2).mean(), ((q - z) ** 2).mean()],
    )
    rows = [paddle.ones([4, 2]) * k for k in (1.0, 2.0, 3.0, 4.0)]
    steps = Steps()
    model.fit(paddle.io.TensorDataset(rows), batch_size=2, verbose=0, callbacks=steps)
    assert len(steps.logs["loss"]) == 2
    outputs = model.predict(paddle.io.TensorDataset(rows[:2]), batch_size=4, verbose=0)
    assert [len(column) for column in outputs] == [1, 1]
    with pytest.raises(ValueError, match="takes 2 inputs, a batch of the data has 1"):
        model.predict(paddle.io.TensorDataset(rows[:1]), verbose=0)


def test_inputs_given():
    """A spec for each input decides where the labels begin."""

    class All(paddle.nn.Layer):
        def forward(self, *parts):
            return sum(parts[1:], parts[0])

    rows = [[paddle.ones([2]), paddle.ones([2]) * 2]]
    assert paddle.Model(All(), inputs=[rows[0][0]]).predict(rows, verbose=0)[0][0].tolist() == [
        1,
        1,
    ]
    assert paddle.Model(All()).predict(rows, verbose=0)[0][0].tolist() == [3, 3]


def test_streams_have_no_length(capsys):
    class Stream(paddle.io.IterableDataset):
        def __iter__(self):
            whole = data()
            return (whole[k] for k in range(6))

    prepared().fit(Stream(), batch_size=2, verbose=2, log_freq=2, shuffle=False)
    assert untimed(capsys.readouterr().out)[2:] == [
        "step 2/Unknown - loss: N - TIME",
        "step 3/Unknown - loss: N - TIME",
    ]


def test_without_a_loss():
    model = paddle.Model(paddle.nn.Linear(4, 3))
    model.prepare(metrics=paddle.metric.Accuracy())
    assert list(model.evaluate(data(), batch_size=20, verbose=0)) == ["acc"]


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: paddle.Model(3), TypeError, "Layer"),
        (lambda: prepared().fit(), ValueError, "train_data"),
        (lambda: prepared().fit([], verbose=0), ValueError, "no batch"),
        (lambda: paddle.Model(Two()).train_batch([1], [2]), RuntimeError, "model.prepare"),
        (lambda: prepared().prepare(loss=3), TypeError, "loss must be"),
        (lambda: prepared().prepare(metrics=3), TypeError, "paddle.metric.Metric"),
        (lambda: prepared().prepare(amp_configs="O3"), ValueError, "level='O3'"),
        (lambda: prepared().prepare(amp_configs={"scale": 1}), ValueError, "with 'scale'"),
    ],
)
def test_what_is_refused_is_explained(make, error, says):
    with pytest.raises(error, match=says):
        make()


def test_the_summary_of_a_model(capsys):
    assert prepared(inputs=paddle.ones([1, 4])).summary() == prepared().summary((1, 4))
    assert capsys.readouterr().out.count("Total params: 67") == 2
    assert hapi.Model is paddle.Model


@pytest.mark.parametrize("configs", ["O1", {"level": "O2", "init_loss_scaling": 8.0}])
def test_mixed_precision(configs):
    """It learns in half precision, and leaves out a step that overflows."""
    model = prepared()
    model.prepare(model._optimizer, model._loss, amp_configs=configs)
    x, label = paddle.randn([8, 4]), paddle.randint(0, 3, [8, 1])
    losses = [model.train_batch([x], [label])[0].item() for _ in range(20)]
    assert losses[-1] < losses[0]
    weight, scale = model.network[0].weight, model._scaler.get_loss_scaling().item()
    before = weight.tolist()
    model.train_batch([x * 1e6], [label])
    assert (weight.tolist(), model._scaler.get_loss_scaling().item()) == (before, scale / 2)
    assert weight.dtype == ("float32" if configs == "O1" else "float16")
    assert model.predict_batch([x])[0].dtype == "float16"
