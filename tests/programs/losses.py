"""Losses built in and by hand, and scores."""

import numpy as np

from tests.programs.common import wave


def cross_entropies(paddle):
    """Hard, soft, weighted, smoothed, ignored."""
    nn, F = paddle.nn, paddle.nn.functional
    logits = paddle.to_tensor(wave(4, 3, scale=2.0), stop_gradient=False)
    labels = paddle.to_tensor([0, 2, 1, -100])
    soft = F.softmax(paddle.to_tensor(wave(4, 3, phase=1.0)))
    found = {
        "mean": F.cross_entropy(logits, labels),
        "none": F.cross_entropy(logits, labels, reduction="none"),
        "sum": F.cross_entropy(logits, paddle.to_tensor([[0], [2], [1], [1]]), reduction="sum"),
        "weighted": F.cross_entropy(logits, labels, weight=paddle.to_tensor([1.0, 2.0, 0.5])),
        "ignored": F.cross_entropy(logits, paddle.to_tensor([0, 2, 1, 1]), ignore_index=1),
        "soft": F.cross_entropy(logits, soft, soft_label=True),
        "smooth": nn.CrossEntropyLoss(label_smoothing=0.1)(logits, paddle.to_tensor([0, 2, 1, 1])),
        "nll": F.nll_loss(F.log_softmax(logits), paddle.to_tensor([0, 2, 1, 1])),
        "layer": nn.CrossEntropyLoss(reduction="sum")(logits, labels),
    }
    pair, probabilities = F.softmax_with_cross_entropy(
        logits, paddle.to_tensor([[0], [2], [1], [1]]), return_softmax=True
    )
    sum(v.sum() for v in found.values()).backward()
    return found | {"old": [pair, probabilities], "grad": logits.grad}


def regression_losses(paddle):
    """Distances between numbers."""
    nn, F = paddle.nn, paddle.nn.functional
    x = paddle.to_tensor(wave(3, 4, scale=2.0), stop_gradient=False)
    y = paddle.to_tensor(wave(3, 4, phase=1.0, scale=2.0))
    p = paddle.nn.functional.sigmoid(x)
    bits = (y > 0).astype("float32")
    found = {
        "mse": [nn.MSELoss()(x, y), F.mse_loss(x, y, reduction="none")],
        "l1": [nn.L1Loss(reduction="sum")(x, y), F.l1_loss(x, y)],
        "smooth": [F.smooth_l1_loss(x, y), F.smooth_l1_loss(x, y, delta=0.5, reduction="none")],
        "bce": [F.binary_cross_entropy(p, bits), nn.BCELoss()(p, bits)],
        "logits": F.binary_cross_entropy_with_logits(
            x, bits, pos_weight=paddle.to_tensor([1.0, 2.0, 3.0, 4.0])
        ),
        "kl": F.kl_div(F.log_softmax(x), F.softmax(y), reduction="batchmean"),
        "cosine": (1 - F.cosine_similarity(x, y)).mean(),
        "squared": F.square_error_cost(x, y).mean(),
    }
    flat = [v for value in found.values() for v in (value if isinstance(value, list) else [value])]
    paddle.add_n([v.mean() for v in flat]).backward()
    return found | {"grad": x.grad}


def focal_loss(paddle):
    """Lin et al. by hand: easy examples count less."""
    F = paddle.nn.functional
    logits = paddle.to_tensor(wave(6, phase=0.1, scale=3.0), stop_gradient=False)
    targets = paddle.to_tensor([1.0, 0, 1, 0, 1, 0])
    p = F.sigmoid(logits)
    ce = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
    pt = p * targets + (1 - p) * (1 - targets)
    alpha = 0.25 * targets + 0.75 * (1 - targets)
    loss = (alpha * (1 - pt) ** 2.0 * ce).sum()
    loss.backward()
    return loss, logits.grad


def label_smoothing(paddle):
    """By hand, the same as the argument."""
    F = paddle.nn.functional
    logits, labels = paddle.to_tensor(wave(5, 4)), paddle.to_tensor([0, 1, 2, 3, 0])
    smooth = F.one_hot(labels, 4) * 0.9 + 0.1 / 4
    by_hand = -(smooth * F.log_softmax(logits, axis=-1)).sum(axis=-1).mean()
    built_in = F.cross_entropy(logits, labels, label_smoothing=0.1)
    return by_hand, paddle.allclose(by_hand, built_in), F.label_smooth(F.one_hot(labels, 4))


def contrastive(paddle):
    """InfoNCE over a batch of pairs, as in SimCLR and CLIP."""
    F = paddle.nn.functional
    a = paddle.to_tensor(wave(4, 6), stop_gradient=False)
    b = paddle.to_tensor(wave(4, 6, phase=0.2), stop_gradient=False)
    za, zb = F.normalize(a, axis=1), F.normalize(b, axis=1)
    logits = paddle.matmul(za, zb, transpose_y=True) / 0.2
    target = paddle.arange(4)
    loss = (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2
    loss.backward()
    return loss, a.grad, b.grad, (logits.argmax(axis=1) == target).astype("float32").mean()


def triplet(paddle):
    """Metric learning: the hardest negative in the batch."""
    F = paddle.nn.functional
    x = paddle.to_tensor(wave(6, 3), stop_gradient=False)
    labels = paddle.to_tensor([0, 0, 1, 1, 2, 2])
    squares = (x * x).sum(axis=1, keepdim=True)
    distance = squares + squares.T - 2 * paddle.mm(x, x.T)
    distance = paddle.clip(distance, min=1e-12).sqrt()
    same = labels.unsqueeze(0) == labels.unsqueeze(1)
    positive = paddle.where(same, distance, paddle.zeros_like(distance)).max(axis=1)
    negative = paddle.where(same, paddle.full_like(distance, 1e9), distance).min(axis=1)
    loss = F.relu(positive - negative + 0.3).mean()
    loss.backward()
    return distance, loss, x.grad


def distillation(paddle):
    """A student that follows softened answers of a teacher."""
    F = paddle.nn.functional
    teacher = paddle.to_tensor(wave(4, 3, scale=3.0))
    student = paddle.to_tensor(wave(4, 3, phase=1.0), stop_gradient=False)
    labels, t = paddle.to_tensor([0, 1, 2, 0]), 4.0
    soft = F.kl_div(F.log_softmax(student / t), F.softmax(teacher / t), reduction="batchmean") * (
        t * t
    )
    loss = 0.7 * soft + 0.3 * F.cross_entropy(student, labels)
    loss.backward()
    return soft, loss, student.grad


def segmentation_scores(paddle):
    """Dice and intersection over union of masks; boxes that overlap."""
    predicted = paddle.to_tensor((wave(2, 4, 4) > 0).astype("float32"))
    truth = paddle.to_tensor((wave(2, 4, 4, phase=0.7) > 0).astype("float32"))
    both = (predicted * truth).sum(axis=[1, 2])
    dice = 2 * both / (predicted.sum(axis=[1, 2]) + truth.sum(axis=[1, 2]))
    boxes = paddle.to_tensor([[0.0, 0, 2, 2], [1, 1, 3, 3], [5, 5, 6, 6]])
    low = paddle.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = paddle.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    overlap = paddle.clip(high - low, min=0).prod(axis=-1)
    area = (boxes[:, 2:] - boxes[:, :2]).prod(axis=-1)
    iou = overlap / (area.unsqueeze(0) + area.unsqueeze(1) - overlap)
    return dice, iou


def metrics(paddle):
    """Accuracy as a function and as a running metric."""
    scores = paddle.to_tensor(wave(6, 4))
    labels = paddle.to_tensor([[0], [1], [2], [3], [0], [1]])
    running = paddle.metric.Accuracy(topk=(1, 2))
    for k in range(0, 6, 3):
        running.update(running.compute(scores[k : k + 3], labels[k : k + 3]))
    precision, recall = paddle.metric.Precision(), paddle.metric.Recall()
    guesses, truth = np.array([0.1, 0.9, 0.8, 0.3]), np.array([0, 1, 0, 1])
    precision.update(guesses, truth)
    recall.update(guesses, truth)
    return {
        "accuracy": paddle.metric.accuracy(scores, labels, k=2),
        "running": [float(v) for v in running.accumulate()],
        "names": running.name(),
        "precision": float(precision.accumulate()),
        "recall": float(recall.accumulate()),
    }
