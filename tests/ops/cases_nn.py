"""Cases of affine maps, softmax, cross-entropy, embeddings."""

import numpy as np
import torch
import torch.nn.functional as F

from tests.ops.cases import Case, fixed, normal, together, whole


def labels(*values):
    return fixed(np.array(values))


def loss(x, label, ignore_index):
    """Cross-entropy with the classes on the last axis."""
    flat = F.cross_entropy(
        x.reshape(-1, x.shape[-1]), label.reshape(-1), ignore_index=ignore_index, reduction="none"
    )
    return flat.reshape(label.shape)


def slope(x, label, ignore_index):
    """Its derivative, written out."""
    valid = label != ignore_index
    hot = F.one_hot(torch.where(valid, label, 0), x.shape[-1]).to(x.dtype)
    return (x.softmax(-1) - hot) * valid.unsqueeze(-1)


def picked(x, label, ignore_index):
    valid = label != ignore_index
    found = x.gather(-1, torch.where(valid, label, 0).unsqueeze(-1)).squeeze(-1)
    return torch.where(valid, found, torch.zeros_like(found))


def placed(x, label, classes, ignore_index):
    valid = label != ignore_index
    hot = F.one_hot(torch.where(valid, label, 0), classes).to(x.dtype)
    return x.unsqueeze(-1) * hot * valid.unsqueeze(-1)


def share(label, ignore_index, mean):
    valid = (label != ignore_index).astype("float64")
    return valid / {None: 1, "valid": max(valid.sum(), 1), "all": valid.size}[mean]


EXTREME = fixed(np.array([[1e4, -1e4, 0.0]]))
SOME_IGNORED = labels(1, -100, 3, 0)

CASES = {
    "linear": [
        Case(normal((4, 3), (3, 5)), torch.matmul, {"transpose": False}),
        Case(normal((2, 4, 3), (3, 5)), torch.matmul, {"transpose": False}),
        Case(normal((3,), (3, 5)), torch.matmul, {"transpose": False}),
        Case(normal((2, 4, 3), (5, 3)), lambda x, w: x @ w.T, {"transpose": True}),
    ],
    "summed_outer": [
        Case(normal((4, 3), (4, 5)), lambda x, y: x.T @ y),
        Case(normal((2, 4, 3), (2, 4, 5)), lambda x, y: torch.einsum("abi,abj->ij", x, y)),
    ],
    "affine": [
        Case(normal((4, 3), (3, 5), (5,)), lambda x, w, b: x @ w + b),
        Case(normal((2, 4, 3), (3, 5), (5,)), lambda x, w, b: x @ w + b),
        Case(normal((0, 3), (3, 5), (5,)), lambda x, w, b: x @ w + b, order=1),
    ],
    "softmax": [
        Case(normal(4, 5), lambda x: x.softmax(-1), {"axis": 1}),
        Case(normal(2, 3, 4), lambda x: x.softmax(1), {"axis": 1}),
        Case(EXTREME, lambda x: x.softmax(-1), {"axis": 1}, order=1),
        Case(normal(3, 0), lambda x: x.softmax(-1), {"axis": 1}, order=1),
    ],
    "log_softmax": [
        Case(normal(4, 5), lambda x: x.log_softmax(-1), {"axis": 1}),
        Case(normal(2, 3, 4), lambda x: x.log_softmax(0), {"axis": 0}),
        Case(EXTREME, lambda x: x.log_softmax(-1), {"axis": 1}, order=1),
        Case(normal(3, 0), lambda x: x.log_softmax(-1), {"axis": 1}, order=1),
    ],
    "cross_entropy": [
        Case(
            together(normal(4, 5), SOME_IGNORED),
            lambda x, i: loss(x, i, -100),
            {"ignore_index": -100},
        ),
        Case(
            together(normal(2, 3, 4), whole(0, 4, 2, 3)),
            lambda x, i: loss(x, i, 2),
            {"ignore_index": 2},
        ),
        Case(
            together(normal(4, 5), SOME_IGNORED),
            lambda x, i: loss(x, i, -100).mean(),
            {"ignore_index": -100, "mean": "all"},
        ),
        Case(
            together(normal(2, 3, 4), whole(0, 4, 2, 3)),
            lambda x, i: loss(x, i, 2).sum() / (i != 2).sum(),
            {"ignore_index": 2, "mean": "valid"},
        ),
    ],
    "softmax_minus_label": [
        Case(
            together(normal(4, 5), SOME_IGNORED),
            lambda x, i: slope(x, i, -100),
            {"ignore_index": -100, "mean": None},
        ),
        Case(
            together(normal(2, 3, 4), whole(0, 4, 2, 3)),
            lambda x, i: slope(x, i, 2) / (i != 2).sum(),
            {"ignore_index": 2, "mean": "valid"},
        ),
        Case(
            together(normal(4, 5), labels(1, 2, 3, 0)),
            lambda x, i: slope(x, i, -100) / 4,
            {"ignore_index": -100, "mean": "all"},
        ),
    ],
    "share": [
        Case(SOME_IGNORED, attrs={"ignore_index": k, "dtype": np.dtype("float64"), "mean": mean},
             numpy=lambda i, k=k, mean=mean: share(i, k, mean), order=0)
        for k in (-100, 3)
        for mean in (None, "valid", "all")
    ],
    "mean_of_valid": Case(
        together(normal(4), SOME_IGNORED),
        lambda x, i: x[i != -100].mean(),
        {"ignore_index": -100},
    ),
    "pick": [
        Case(
            together(normal(4, 5), SOME_IGNORED),
            lambda x, i: picked(x, i, -100),
            {"ignore_index": -100},
        ),
        Case(
            together(normal(2, 3, 4), whole(0, 4, 2, 3)),
            lambda x, i: picked(x, i, 2),
            {"ignore_index": 2},
        ),
    ],
    "place": Case(
        together(normal(4), SOME_IGNORED),
        lambda x, i: placed(x, i, 5, -100),
        {"classes": 5, "ignore_index": -100},
    ),
    "embedding": [
        Case(together(whole(0, 6, 2, 3), normal(6, 4)), F.embedding, {"padding_idx": None}),
        Case(
            together(labels(1, 0, 1, 5), normal(6, 4)),
            lambda i, w: F.embedding(i, w) * (i != 1).unsqueeze(-1),
            {"padding_idx": 1},
        ),
    ],
    "one_hot": Case(
        whole(0, 4, 2, 3),
        lambda i: F.one_hot(i, 4).double(),
        {"classes": 4, "dtype": np.dtype("float64")},
    ),
}  # fmt: skip
CASES["sparse_embedding"] = CASES["embedding"]
