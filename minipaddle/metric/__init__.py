"""Metrics: numbers that say how good predictions are, gathered over batches.

`compute` runs on tensors and may be part of a step; `update` gathers its results on the CPU.
"""

import numpy

from ..core.prelude import Tensor, value_error
from ..eager.hosting import run_on_host

__all__ = ["Accuracy", "Auc", "Metric", "Precision", "Recall", "accuracy"]


def as_numpy(name: str, value) -> numpy.ndarray:
    """A tensor or array as an array; raises TypeError for anything else."""
    if isinstance(value, Tensor):
        return value.numpy()
    if isinstance(value, numpy.ndarray):
        return value
    raise TypeError(f"{name} must be a tensor or a NumPy array, not {type(value).__name__}")


class Metric:
    """The base: define `reset`, `update`, `accumulate` and `name`.

    `update` receives what `compute(outputs…, labels…)` returned, which by default is all of it.
    """

    def __init_subclass__(cls, **kwargs):
        """In a captured step a metric gathers after the program, on the numbers it gave."""
        super().__init_subclass__(**kwargs)
        for name in {"reset", "update"} & vars(cls).keys():
            setattr(cls, name, run_on_host(getattr(cls, name)))

    def reset(self) -> None:
        """Begin again."""
        raise NotImplementedError(f"{type(self).__name__} defines no reset()")

    def update(self, *args):
        """Take in one batch."""
        raise NotImplementedError(f"{type(self).__name__} defines no update(...)")

    def accumulate(self):
        """The value over all batches since `reset`."""
        raise NotImplementedError(f"{type(self).__name__} defines no accumulate()")

    def name(self):
        """A name, or a list of one for each value."""
        raise NotImplementedError(f"{type(self).__name__} defines no name()")

    def compute(self, *args):
        """The values for `update`, from the outputs and labels of a batch."""
        return args


def best(scores, k: int):
    """The places of the k largest scores along the last axis, best first."""
    if not 0 < k <= scores.shape[-1]:
        raise value_error(
            f"the best {k} of {scores.shape[-1]} classes were asked for", f"1 to {scores.shape[-1]}"
        )
    return scores.topk(k)[1]


class Accuracy(Metric):
    """The share of samples whose label is among the k best scores, for each k of `topk`.

    Scores are [N, …, C]; labels are numbers [N, …] or [N, …, 1], or one-hot [N, …, C].

    >>> acc = paddle.metric.Accuracy()
    >>> scores = paddle.to_tensor([[0.1, 0.9], [0.8, 0.2]])
    >>> acc.update(acc.compute(scores, paddle.to_tensor([[1], [1]])))
    0.5
    """

    def __init__(self, topk=(1,), name=None, *args, **kwargs):
        super().__init__()
        self.topk = (topk,) if isinstance(topk, int) else tuple(topk)
        base = name or "acc"
        self._name = [base] if len(self.topk) == 1 else [f"{base}_top{k}" for k in self.topk]
        self.reset()

    def compute(self, pred, label, *args):
        """[N, …, max(topk)]: 1.0 where the label is the k-th best score."""
        places = best(pred, max(self.topk))
        if label.ndim == 1 or label.ndim < pred.ndim:
            label = label.unsqueeze(-1)
        elif label.shape[-1] != 1:
            label = label.argmax(axis=-1, keepdim=True)
        return (places == label.astype(places.dtype)).astype("float32")

    def update(self, correct, *args):
        """Add the result of `compute`; return the accuracy of this batch."""
        correct = as_numpy("correct", correct)
        samples = correct[..., 0].size
        right = [float(correct[..., :k].sum()) for k in self.topk]
        self.total = [a + b for a, b in zip(self.total, right)]
        self.count = [n + samples for n in self.count]
        return single([r / samples if samples else 0.0 for r in right])

    def reset(self):
        self.total = [0.0] * len(self.topk)
        self.count = [0] * len(self.topk)

    def accumulate(self):
        return single([t / n if n else 0.0 for t, n in zip(self.total, self.count)])

    def name(self):
        return self._name


def single(values: list):
    """The value, if there is only one."""
    return values[0] if len(values) == 1 else values


class Share(Metric):
    """The base of Precision and Recall: the share of the counted samples that are right.

    Predictions are probabilities [N] or [N, 1], yes from 0.5 on; labels are 0 and 1.
    """

    def __init__(self, name: str, *args, **kwargs):
        super().__init__()
        self._name = name
        self.reset()

    def select_samples(self, yes, true):
        """Which samples count."""
        raise NotImplementedError

    def update(self, preds, labels):
        yes = numpy.floor(as_numpy("preds", preds) + 0.5).ravel() == 1
        true = as_numpy("labels", labels).ravel() == 1
        counted = self.select_samples(yes, true)
        self.right += int((yes & true).sum())
        self.all += int(counted.sum())

    def reset(self):
        self.right = self.all = 0

    def accumulate(self) -> float:
        return self.right / self.all if self.all else 0.0

    def name(self) -> str:
        return self._name


class Precision(Share):
    """Of those predicted yes, the share that is yes. Source: Paddle API of the same name.

    >>> precision = paddle.metric.Precision()
    >>> precision.update(paddle.to_tensor([0.9, 0.6, 0.2]), paddle.to_tensor([1, 0, 1]))
    >>> precision.accumulate()
    0.5
    """

    def __init__(self, name="precision", *args, **kwargs):
        super().__init__(name)

    def select_samples(self, yes, true):
        return yes


class Recall(Share):
    """Of those that are yes, the share predicted yes. Source: Paddle API of the same name.

    >>> recall = paddle.metric.Recall()
    >>> recall.update(paddle.to_tensor([0.9, 0.6, 0.2]), paddle.to_tensor([1, 0, 1]))
    >>> recall.accumulate()
    0.5
    """

    def __init__(self, name="recall", *args, **kwargs):
        super().__init__(name)

    def select_samples(self, yes, true):
        return true


class Auc(Metric):
    """Area under the curve of true against false positives, from a histogram of probabilities.

    Predictions are [N, 2] (the second column counts), labels 0 or 1. Only `curve="ROC"`.

    >>> import numpy as np
    >>> auc = paddle.metric.Auc()
    >>> auc.update(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([[0], [1]]))
    >>> auc.accumulate()
    1.0
    """

    def __init__(self, curve="ROC", num_thresholds=4095, name="auc", *args, **kwargs):
        super().__init__()
        if curve != "ROC":
            raise NotImplementedError(f"Auc knows the curve 'ROC', not {curve!r}")
        self._name, self.bins = name, num_thresholds + 1
        self.reset()

    def update(self, preds, labels):
        preds, labels = as_numpy("preds", preds), as_numpy("labels", labels).ravel() == 1
        if preds.ndim != 2 or preds.shape[1] != 2:
            raise value_error(
                f"Auc was given predictions of shape {list(preds.shape)}",
                "[N, 2]: the probabilities of no and of yes",
            )
        places = (preds[:, 1] * (self.bins - 1)).astype("int64")
        self.positive += numpy.bincount(places[labels], minlength=self.bins)
        self.negative += numpy.bincount(places[~labels], minlength=self.bins)

    def reset(self):
        self.positive = numpy.zeros(self.bins, "int64")
        self.negative = numpy.zeros(self.bins, "int64")

    def accumulate(self) -> float:
        """The area, each step of the curve a trapezoid; 0.0 before both classes were seen."""
        true = numpy.concatenate([[0], numpy.cumsum(self.positive[::-1])])
        false = numpy.concatenate([[0], numpy.cumsum(self.negative[::-1])])
        if not true[-1] or not false[-1]:
            return 0.0
        return float(numpy.trapezoid(true, false) / (true[-1] * false[-1]))

    def name(self):
        return self._name


def accuracy(input, label, k=1, correct=None, total=None, name=None):
    """The share of rows of [N, C] whose label ([N, 1]) is among the k largest, as a 0-D tensor.

    `correct` and `total` are outputs of static graphs and must be None.

    >>> scores = paddle.to_tensor([[0.1, 0.9], [0.8, 0.2]])
    >>> paddle.metric.accuracy(scores, paddle.to_tensor([[1], [1]])).item()
    0.5
    """
    if correct is not None or total is not None:
        raise NotImplementedError("accuracy has no outputs `correct` and `total` here")
    if label.ndim != 2 or label.shape[-1] != 1:
        raise value_error(f"accuracy was given labels of shape {label.shape}", "[N, 1]")
    places = best(input, k)
    return (places == label.astype(places.dtype)).astype("float32").sum(-1).mean()
