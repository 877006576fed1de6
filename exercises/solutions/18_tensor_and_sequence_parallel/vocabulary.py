"""Cross entropy of scores in pieces along the classes, without overflow.

The scores of a GPT are its widest tensor: a row for each token, a column for each word. Where ranks
hold columns of them, a loss needs three numbers of a row from all ranks: its maximum, a sum, and
the score at the label. So write the loss and its slope in operators that leave terms: maxima and
sums of pieces are joined where they are used. Write two functions, rules that replace the operators
`cross_entropy` and `softmax_minus_label` wherever scores lie in pieces, and in compiled programs.

- x are scores [..., classes], `label` class numbers, x without its last axis. Both are tensors that
  know their shape, `x.spec.shape`, and their `x.spec.ndim`, `x.spec.size`, `x.spec.dtype`. Compute
  with operators alone: the values are not there yet.
- `reduction.max(x, axis=(k,), keepdim=True)`, `reduction.sum(...)` reduce (write k ≥ 0); `exp`,
  `log`, `where(condition, a, b)` and `+ - * / == !=` are elementwise.
- `labels.pick(x, label, ignore_index=...)` is the element of each row at its label: 0 where the
  label is ignored.
- `record.attrs["ignore_index"]` is a label that counts for nothing: loss and slope are 0 there.

`cross_entropy(record, x, label)` is -log softmax(x) at the label. Scores of ±1e4 must not overflow.
`record.attrs["mean"]` says what becomes of the losses, one for each label:

- None: they stay; "all": the mean over all labels, 0 of none;
- anything else: `sum_all(loss * shares(label, ignore_index, x.spec.dtype, mean))`, which weighs
  each label.

`softmax_minus_label(record, x, label)` is its slope by x: (softmax(x) - [class = label]), times the
label's share: `as_column(shares(label, ignore_index, x.spec.dtype, mean))`, for any `mean`.
`as_column` turns a value for each row into a column beside the rows; `creation.arange(size=n,
dtype=...)` are the numbers of the classes, and `.astype(dtype)` makes numbers of a comparison.

    scores [1, 3], [2, 4] in two ranks, label 3
        ->  4 + log(e⁻³ + e⁻¹ + e⁻² + e⁰) - 4

Source: `ParallelCrossEntropy` of Paddle, `vocab_parallel_cross_entropy` of Megatron-LM.
"""

from minipaddle.engine.ops import creation, reduction
from minipaddle.engine.ops.elementwise import exp, log, where
from minipaddle.ops import labels
from minipaddle.passes.decompose_losses import as_column, shares, sum_all


def cross_entropy(record, x, label):
    """-log softmax(x) at the label."""
    ignore, mean = record.attrs["ignore_index"], record.attrs["mean"]
    last = (x.spec.ndim - 1,)
    z = x - reduction.max(x, axis=last, keepdim=True)
    total = reduction.sum(exp(z), axis=last, keepdim=False)
    loss = where(label != ignore, log(total) - labels.pick(z, label, ignore_index=ignore), 0.0)
    if mean is None:
        return loss
    if mean == "all":
        return sum_all(loss) / float(max(label.spec.size, 1))
    return sum_all(loss * shares(label, ignore, x.spec.dtype, mean))


def softmax_minus_label(record, x, label):
    """(softmax(x) - [class = label]) · share; 0 where the label is ignored."""
    ignore, mean = record.attrs["ignore_index"], record.attrs["mean"]
    last = (x.spec.ndim - 1,)
    e = exp(x - reduction.max(x, axis=last, keepdim=True))
    p = e / reduction.sum(e, axis=last, keepdim=True)
    classes = creation.arange(size=x.spec.shape[-1], dtype=label.spec.dtype)
    hit = (classes == as_column(label)).astype(x.spec.dtype)
    slope = (p - hit) * as_column(shares(label, ignore, x.spec.dtype, mean))
    return where(as_column(label != ignore), slope, 0.0)
