"""From whole numbers to vectors: embedding, one-hot."""

from ...core.prelude import current, dt, refuse_unsupported, type_error, whole
from ...ops import labels
from ...ops.row_gradient import takes_rows

__all__ = ["embedding", "one_hot"]


def one_hot(x, num_classes=-1, name=None):
    """1 at the class number, 0 elsewhere, along a new last axis of size `num_classes`.

    With -1 the largest number present decides.

    >>> paddle.nn.functional.one_hot(paddle.to_tensor([2, 0]), 3).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    if x.spec.dtype.kind not in "iu":
        raise type_error(f"one_hot was given {x.spec}", "whole numbers")
    classes = whole(num_classes)
    if classes == -1:
        classes = whole(x.max()) + 1 if x.spec.size else 0
    attrs = {"classes": classes, "dtype": dt.default()}
    return current.top.apply(labels.one_hot, (x,), attrs)


def embedding(
    x, weight, padding_idx=None, max_norm=None, norm_type=2.0, sparse=False,
    scale_grad_by_freq=False, name=None,
):  # fmt: skip
    """Row x of `weight`: ids of shape [...] and a table [rows, size] give [..., size].

    Ids equal to `padding_idx` give zeros and no gradient. With `sparse` the gradient of
    the table is kept as the rows that were looked up, where it can be (`ops/row_gradient.py`);
    `max_norm` and `scale_grad_by_freq` are refused.

    >>> table = paddle.to_tensor([[1.0], [2.0]])
    >>> paddle.nn.functional.embedding(paddle.to_tensor([1, 0, 1]), table).tolist()
    [[2.0], [1.0], [2.0]]
    """
    if max_norm or scale_grad_by_freq:
        refuse_unsupported("embedding", max_norm=max_norm, scale_grad_by_freq=scale_grad_by_freq)
    if padding_idx is not None and padding_idx < 0:
        padding_idx += weight.spec.shape[0]
    op = labels.sparse_embedding if sparse and takes_rows(weight) else labels.embedding
    return current.top.apply(op, (x, weight), {"padding_idx": padding_idx})
