"""`Model`: a network with its optimizer, loss and metrics, trained by one call."""

import inspect
import math
from itertools import islice

import numpy

from .. import nn
from ..amp.configs import as_mixed_precision
from ..core.prelude import Recording, Tensor, runtime_error, value_error
from ..engine.core.rank import among
from ..io import DataLoader, Dataset, load, save
from ..io.dataloader import length_of
from ..metric import Metric
from .callbacks import Callbacks, LRScheduler, ModelCheckpoint, ProgBarLogger
from .summary import summary

__all__ = ["Model"]


def make_list(x) -> list:
    """`x` as a list; nothing for None."""
    if x is None:
        return []
    return list(x) if isinstance(x, list | tuple) else [x]


def tensors(x) -> list[Tensor]:
    """Tensors from tensors, arrays or lists."""
    return [v if isinstance(v, Tensor) else Tensor(v) for v in make_list(x)]


class Model:
    """Train, evaluate and use a network without writing the loop.

    A batch is a list: first what `network.forward` takes, then the labels. `inputs` and `labels`
    (specs or example tensors) say how many of each, where the signature of forward does not.

    >>> net = paddle.nn.Linear(2, 1)
    >>> model = paddle.Model(net)
    >>> model.prepare(paddle.optimizer.SGD(0.1, parameters=net.parameters()), paddle.nn.MSELoss())
    >>> data = paddle.io.TensorDataset([paddle.ones([8, 2]), paddle.zeros([8, 1])])
    >>> model.fit(data, batch_size=4, epochs=20, verbose=0)
    >>> model.evaluate(data, batch_size=8, verbose=0)["loss"][0] < 1e-3
    True
    """

    def __init__(self, network, inputs=None, labels=None):
        if not isinstance(network, nn.Layer):
            raise TypeError(f"Model takes a Layer, not {type(network).__name__}")
        self.network = network
        self.mode = "train"
        self.stop_training = False
        self._inputs, self._labels = make_list(inputs), make_list(labels)
        self._optimizer = self._loss = None
        self._amp, self._scaler = as_mixed_precision(network, None, None)
        self._metrics: list[Metric] = []

    def prepare(self, optimizer=None, loss=None, metrics=None, amp_configs=None) -> None:
        """Set the optimizer and the loss for training, and the metrics.

        `loss` is a layer or a function of the outputs and the labels. `amp_configs` is a level of
        mixed precision, "O1" or "O2", or a dict: {"level": ..., and arguments of
        `paddle.amp.auto_cast` and of `paddle.amp.GradScaler`}.
        """
        if loss is not None and not callable(loss):
            raise TypeError(f"loss must be a layer or a function, not {loss!r}")
        for metric in make_list(metrics):
            if not isinstance(metric, Metric):
                raise TypeError(f"metrics must be paddle.metric.Metric, not {metric!r}")
        self._optimizer, self._loss, self._metrics = optimizer, loss, make_list(metrics)
        self._amp, self._scaler = as_mixed_precision(self.network, optimizer, amp_configs)

    # ---- one batch ---------------------------------------------------------------------------

    def train_batch(self, inputs, labels=None, update: bool = True):
        """One step: the loss as a list of arrays, with metrics a tuple (losses, metrics).

        Without `update` the gradients are kept for the next step.
        """
        if self._optimizer is None or self._loss is None:
            raise runtime_error(
                "this Model has no optimizer or no loss", hint="model.prepare(...) first"
            )
        self.network.train()
        self.mode = "train"
        with self._amp():
            outputs, labels = make_list(self.network(*tensors(inputs))), tensors(labels)
            losses = make_list(self._loss(*outputs, *labels))
        self._scaler.scale(sum(losses[1:], losses[0])).backward()
        if update:
            self._scaler.step(self._optimizer)
            self._scaler.update()
            self._optimizer.clear_grad()
        return self._measure(losses, outputs, labels)

    def eval_batch(self, inputs, labels=None):
        """The loss and the metrics of one batch, without learning from it."""
        self.network.eval()
        self.mode = "eval"
        with Recording(False), self._amp():
            outputs, labels = make_list(self.network(*tensors(inputs))), tensors(labels)
            losses = make_list(self._loss(*outputs, *labels)) if self._loss else []
        return self._measure(losses, outputs, labels)

    def predict_batch(self, inputs) -> list:
        """The outputs for one batch, as arrays."""
        self.network.eval()
        self.mode = "test"
        with Recording(False), self._amp():
            return [y.numpy() for y in make_list(self.network(*tensors(inputs)))]

    def _measure(self, losses, outputs, labels):
        values = [
            metric.update(*make_list(metric.compute(*outputs, *labels))) for metric in self._metrics
        ]
        losses = [loss.numpy() for loss in losses]
        return (losses, values) if self._metrics else losses

    # ---- many batches ------------------------------------------------------------------------

    def fit(
        self, train_data=None, eval_data=None, batch_size=1, epochs=1, eval_freq=1, log_freq=10,
        save_dir=None, save_freq=1, verbose=2, drop_last=False, shuffle=True, num_workers=0,
        callbacks=None, accumulate_grad_batches=1, num_iters=None,
    ) -> None:  # fmt: skip
        """Train for `epochs` passes over `train_data`, evaluating after every `eval_freq`-th.

        Data is a Dataset or a DataLoader; `batch_size` may be a pair, for training and evaluation.
        Training ends after `num_iters` steps. verbose: 0 silent, 1 a bar, 2 lines.
        """
        if train_data is None:
            raise ValueError("fit needs train_data")
        for_train, for_eval = (
            batch_size if isinstance(batch_size, list | tuple) else [batch_size] * 2
        )
        loader = make_loader(train_data, for_train, num_workers, shuffle, drop_last)
        evaluation = eval_data and make_loader(eval_data, for_eval, num_workers)
        steps = length_of(loader)
        if num_iters is not None:
            epochs = math.ceil(num_iters / steps) if steps else 1
            steps = min(steps or num_iters, num_iters)
        calls = self._callbacks(
            callbacks, log_freq, verbose, save_freq, save_dir, batch_size=for_train, epochs=epochs,
            steps=steps,
        )  # fmt: skip
        self.stop_training, logs, left = False, {}, num_iters
        calls.on_train_begin()
        for epoch in range(epochs):
            calls.on_epoch_begin(epoch)
            logs = self._pass(loader, calls, "train", left, accumulate_grad_batches)
            calls.on_epoch_end(epoch, logs)
            left = None if left is None else left - logs["step"] - 1
            if evaluation and epoch % eval_freq == 0:
                self._evaluate(evaluation, calls, None)
            if self.stop_training or left == 0:
                break
        calls.on_train_end(logs)

    def evaluate(
        self, eval_data, batch_size=1, log_freq=10, verbose=2, num_workers=0, callbacks=None,
        num_iters=None,
    ) -> dict:  # fmt: skip
        """The loss of the last batch and the metrics over all of `eval_data`, by name."""
        loader = make_loader(eval_data, batch_size, num_workers)
        calls = self._callbacks(callbacks, log_freq, verbose, batch_size=batch_size)
        logs = self._evaluate(loader, calls, num_iters)
        return {name: logs[name] for name in self._names() if name in logs}

    def _evaluate(self, loader, calls, num_iters):
        steps = length_of(loader)
        steps = steps if num_iters is None else min(steps or num_iters, num_iters)
        calls.on_eval_begin({"steps": steps, "metrics": self._names()})
        logs = self._pass(loader, calls, "eval", num_iters)
        calls.on_eval_end(logs)
        return logs

    def predict(
        self, test_data, batch_size=1, num_workers=0, stack_outputs=False, verbose=1, callbacks=None
    ) -> list:
        """For each output of the network, a list of arrays, one for each batch.

        With `stack_outputs` each is one array. Labels in the data are left aside.
        """
        loader = make_loader(test_data, batch_size, num_workers)
        calls = self._callbacks(callbacks, 1, verbose, batch_size=batch_size)
        batches: list[list] = []
        calls.on_predict_begin({"steps": length_of(loader)})
        logs: dict = {}
        for step, batch in enumerate(loader):
            inputs, _ = self._split(batch, labelled=False)
            calls.on_predict_batch_begin(step, logs)
            batches.append(self.predict_batch(inputs))
            logs = {"step": step, "batch_size": len(inputs[0])}
            calls.on_predict_batch_end(step, logs)
        calls.on_predict_end(logs)
        outputs = [list(column) for column in zip(*batches)]
        return [numpy.concatenate(column) for column in outputs] if stack_outputs else outputs

    def _pass(self, loader, calls, mode: str, num_iters, accumulate: int = 1) -> dict:
        """One pass over the data in `mode` "train" or "eval"; returns the last logs."""
        for metric in self._metrics:
            metric.reset()
        steps, logs = length_of(loader), {}
        for step, batch in enumerate(islice(loader, num_iters)):
            getattr(calls, f"on_{mode}_batch_begin")(step, logs)
            inputs, labels = self._split(batch)
            if mode == "train":
                due = (step + 1) % accumulate == 0 or step + 1 in (steps, num_iters)
                results = self.train_batch(inputs, labels, update=due)
            else:
                results = self.eval_batch(inputs, labels)
            logs = self._logs(results, step, len(inputs[0]))
            getattr(calls, f"on_{mode}_batch_end")(step, logs)
        if not logs:
            raise ValueError("the data has no batch: check its length and drop_last")
        return logs

    def _logs(self, results, step: int, batch_size: int) -> dict:
        losses = results[0] if self._metrics else results
        logs = {"loss": [float(x) for x in losses]} if losses else {}
        for metric in self._metrics:
            logs.update(zip(make_list(metric.name()), make_list(metric.accumulate())))
        return {**logs, "step": step, "batch_size": batch_size}

    def _names(self) -> list[str]:
        names = [name for metric in self._metrics for name in make_list(metric.name())]
        return ["loss", *names] if self._loss else names

    def _split(self, batch, labelled: bool = True) -> tuple[list, list]:
        """A batch as (inputs, labels)."""
        batch = make_list(batch)
        if self._inputs:
            count = len(self._inputs)
        else:
            parameters = inspect.signature(self.network.forward).parameters.values()
            open_ended = any(p.kind is p.VAR_POSITIONAL for p in parameters)
            needed = sum(
                p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
                for p in parameters
            )
            count = len(batch) - labelled if open_ended else max(needed, 1)
        if len(batch) < count:
            raise value_error(
                f"the network takes {count} inputs, a batch of the data has {len(batch)}",
                hint="the data set must give a tuple: inputs first, then labels",
            )
        return batch[:count], batch[count:]

    def _callbacks(
        self, given, log_freq, verbose, save_freq=1, save_dir=None, epochs=None, steps=None, **more
    ):
        """The given callbacks, and the default ones of the kinds that are not among them."""
        callbacks = make_list(given)
        for usual in (
            ProgBarLogger(log_freq, verbose=verbose),
            LRScheduler(),
            ModelCheckpoint(save_freq, save_dir),
        ):
            if not any(isinstance(callback, type(usual)) for callback in callbacks):
                callbacks.append(usual)
        params = {"verbose": verbose, "epochs": epochs, "steps": steps, "metrics": self._names(),
                  "save_dir": save_dir, **more}  # fmt: skip
        return Callbacks(callbacks, self, params)

    # ---- saving, looking ---------------------------------------------------------------------

    def save(self, path: str, training: bool = True) -> None:
        """Write `path`.pdparams, and `path`.pdopt if there is an optimizer; of several ranks the
        first does.
        """
        if not training:
            raise NotImplementedError("Model.save(training=False): use paddle.jit.save")
        if among.now[0] > 0:
            return
        save(self.network.state_dict(), f"{path}.pdparams")
        if self._optimizer is not None:
            save(self._optimizer.state_dict(), f"{path}.pdopt")

    def load(self, path: str, skip_mismatch: bool = False, reset_optimizer: bool = False) -> None:
        """Read what `save` wrote; with `skip_mismatch`, leave out parameters that do not fit."""
        state, own = load(f"{path}.pdparams"), self.network.state_dict()
        unfit = [k for k, v in own.items() if k not in state or state[k].shape != v.shape]
        if unfit and not skip_mismatch:
            raise value_error(
                f"{path}.pdparams does not fit the network: {', '.join(unfit[:5])}",
                hint="skip_mismatch=True loads the rest",
            )
        self.network.set_state_dict({**own, **{k: state[k] for k in own if k not in unfit}})
        if self._optimizer is not None and not reset_optimizer:
            self._optimizer.set_state_dict(load(f"{path}.pdopt"))

    def parameters(self, *args, **kwargs) -> list:
        """The parameters of the network."""
        return self.network.parameters(*args, **kwargs)

    def summary(self, input_size=None, dtype=None) -> dict:
        """Print the table of layers; the shapes come from `inputs` if none are given."""
        return summary(self.network, input_size or self._inputs or None, dtype)


def make_loader(data, batch_size, num_workers, shuffle=False, drop_last=False):
    """A DataLoader of a data set; anything else that can be iterated is taken as it is."""
    if not isinstance(data, Dataset):
        return data
    return DataLoader(
        data, batch_size=batch_size, shuffle=shuffle, drop_last=drop_last, num_workers=num_workers
    )
