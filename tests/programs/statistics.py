"""Sums, means and other summaries along axes."""

import numpy as np

from tests.programs.common import wave


def reductions(paddle):
    """One number from many, with and without the axes kept."""
    x = paddle.to_tensor(wave(2, 3, 4))
    return {
        "sum": [paddle.sum(x), x.sum(axis=1), x.sum(axis=[0, 2], keepdim=True)],
        "mean": [paddle.mean(x), x.mean(axis=-1)],
        "max": [paddle.max(x), x.max(axis=1)],
        "min": [paddle.min(x), x.min(axis=[0, 1])],
        "prod": paddle.prod(x, axis=2),
        "logsumexp": paddle.logsumexp(x, axis=[1, 2]),
        "norm": [paddle.norm(x), x.norm(p=1, axis=1), paddle.norm(x, p=np.inf, axis=2)],
        "all": (x > -1).all(axis=0),
        "cumsum": paddle.cumsum(x, axis=1),
        "cumprod": paddle.cumprod(x, dim=2),
        "flat": paddle.cumsum(paddle.to_tensor([[1, 2], [3, 4]])),
        "count": paddle.count_nonzero(x > 0, axis=2),
        "empty": paddle.sum(paddle.zeros([0, 3]), axis=0),
    }


def spread(paddle):
    """Variance, quantiles, histograms."""
    x = paddle.to_tensor(wave(4, 5))
    marks = paddle.to_tensor([1, 2, 1, 4, 1])
    return {
        "var": [paddle.var(x), x.var(axis=0, unbiased=False)],
        "std": [paddle.std(x, axis=1), x.std()],
        "median": [paddle.median(x), paddle.median(x, axis=1)],
        "quantile": paddle.quantile(x, q=[0.25, 0.75], axis=1),
        "histogram": paddle.histogram(x, bins=4, min=-1, max=1),
        "bincount": [
            paddle.bincount(marks),
            paddle.bincount(marks, weights=paddle.to_tensor([0.5, 1.0, 0.25, 2.0, 0.25])),
        ],
        "renorm": paddle.renorm(x, p=2.0, axis=0, max_norm=1.0),
        "dist": [paddle.dist(x[0], x[1], p=2), paddle.dist(x[0], x[1], p=1)],
    }


def standardize(paddle):
    """A table of measurements, each column to mean 0 and variance 1."""
    table = paddle.to_tensor(wave(8, 3, scale=4.0) + np.array([1, -2, 10], "float32"))
    mean, std = table.mean(axis=0), table.std(axis=0)
    z = (table - mean) / std
    low, high = table.min(axis=0, keepdim=True), table.max(axis=0, keepdim=True)
    correlation = paddle.matmul(z, z, transpose_x=True) / (len(z) - 1)
    return {
        "mean": z.mean(axis=0).abs().max() < 1e-5,
        "std": z.std(axis=0),
        "ranged": ((table - low) / (high - low)).max(axis=0),
        "correlation": correlation,
    }


def confusion_matrix(paddle):
    """Counts of (label, prediction), and the scores made from them."""
    labels = paddle.to_tensor([0, 1, 2, 2, 1, 0, 2])
    predicted = paddle.to_tensor([0, 2, 2, 2, 1, 1, 0])
    cells = paddle.bincount(labels * 3 + predicted, minlength=9).reshape([3, 3])
    hits = paddle.diagonal(cells).astype("float32")
    precision = hits / cells.sum(axis=0).astype("float32")
    recall = hits / cells.sum(axis=1).astype("float32")
    return {
        "cells": cells,
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / (precision + recall),
        "accuracy": paddle.trace(cells).item() / len(labels),
    }


def moving_average(paddle):
    """Windows over a series, by running sums and by `unfold`."""
    series = paddle.to_tensor(wave(12))
    total = paddle.concat([paddle.zeros([1]), paddle.cumsum(series)])
    quick = (total[3:] - total[:-3]) / 3
    windows = paddle.stack([series[k : k + 3] for k in range(10)])
    smooth, level = [], series[0]
    for value in series:
        level = 0.8 * level + 0.2 * value
        smooth.append(level)
    return quick, windows.mean(axis=1), paddle.stack(smooth)
