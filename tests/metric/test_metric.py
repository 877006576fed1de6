"""Metrics: numbers measured with Paddle 3.3, and scikit-learn as the oracle for the area."""

import numpy as np
import pytest
from sklearn.metrics import precision_score, recall_score, roc_auc_score

import minipaddle as paddle
from minipaddle import metric as M

X = paddle.to_tensor([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.3, 0.4, 0.3]])
Y = paddle.to_tensor([[2], [1], [1], [0]])


@pytest.mark.parametrize(("k", "expected"), [(1, 0.5), (2, 1.0), (3, 1.0)])
def test_accuracy_of_a_batch(k, expected):
    value = M.accuracy(X, Y, k=k)
    assert value.item() == expected
    assert value.shape == []
    assert value.dtype == "float32"


@pytest.mark.parametrize(
    "labels", [Y, Y.flatten(), paddle.nn.functional.one_hot(Y.flatten(), 3)], ids=str
)
def test_labels_as_column_row_or_one_hot(labels):
    acc = M.Accuracy()
    assert acc.compute(X, labels).tolist() == [[1.0], [0.0], [1.0], [0.0]]


def test_accuracy_over_batches():
    acc = M.Accuracy()
    assert acc.update(acc.compute(X, Y)) == 0.5
    assert acc.update(acc.compute(X, paddle.to_tensor([[2], [0], [1], [1]]))) == 1.0
    assert acc.accumulate() == 0.75
    acc.reset()
    assert acc.accumulate() == 0.0
    assert acc.update(np.array([[1.0], [0.0]])) == 0.5


def test_several_k():
    acc = M.Accuracy(topk=(1, 2))
    assert acc.update(acc.compute(X, Y)) == [0.5, 1.0]
    assert acc.accumulate() == [0.5, 1.0]
    assert acc.name() == ["acc_top1", "acc_top2"]
    assert M.Accuracy(topk=(1, 3), name="my").name() == ["my_top1", "my_top3"]
    assert M.Accuracy(name="my").name() == ["my"]
    assert M.Accuracy(topk=2).topk == (2,)


def test_pictures_full_of_labels():
    scores = paddle.to_tensor(np.random.RandomState(0).rand(2, 3, 4, 5).astype("float32"))
    labels = scores.argmax(axis=-1)
    acc = M.Accuracy()
    assert acc.update(acc.compute(scores, labels)) == 1.0
    assert acc.count == [24]


def test_precision_recall_and_area():
    rng = np.random.RandomState(0)
    precision, recall, auc = M.Precision(), M.Recall(), M.Auc(num_thresholds=100_000)
    preds, labels = [], []
    for _ in range(3):
        p, y = rng.rand(50), rng.randint(0, 2, 50)
        precision.update(p, y)
        recall.update(paddle.to_tensor(p[:, None]), paddle.to_tensor(y[:, None]))
        auc.update(np.stack([1 - p, p], 1), y[:, None])
        preds, labels = [*preds, *p], [*labels, *y]
    yes = np.array(preds) >= 0.5
    assert precision.accumulate() == precision_score(labels, yes)
    assert recall.accumulate() == recall_score(labels, yes)
    assert auc.accumulate() == pytest.approx(roc_auc_score(labels, preds), abs=1e-3)
    assert (precision.name(), recall.name(), auc.name()) == ("precision", "recall", "auc")
    for metric in (precision, recall, auc):
        metric.reset()
        assert metric.accumulate() == 0.0


def test_the_area_is_paddles():
    auc = M.Auc()
    preds = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.3, 0.7]])
    auc.update(preds, np.array([[0], [1], [1], [0]]))
    assert auc.accumulate() == 0.75


def test_a_metric_of_ones_own_receives_everything():
    assert M.Metric().compute(1, 2) == (1, 2)
    for call in ("reset", "update", "accumulate", "name"):
        with pytest.raises(NotImplementedError, match=call):
            getattr(M.Metric(), call)()


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: M.accuracy(X, Y, k=5), ValueError, "1 to 3"),
        (lambda: M.accuracy(X, Y.flatten()), ValueError, r"\[N, 1\]"),
        (lambda: M.accuracy(X, Y, correct=Y), NotImplementedError, "correct"),
        (lambda: M.Precision().update([0.1], [1]), TypeError, "not list"),
        (lambda: M.Auc("PR"), NotImplementedError, "PR"),
        (lambda: M.Auc().update(np.array([0.2]), np.array([0])), ValueError, r"\[N, 2\]"),
    ],
)
def test_what_is_refused_is_explained(make, error, says):
    with pytest.raises(error, match=says):
        make()
