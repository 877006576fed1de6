"""The loss of a classifier, and its derivative p - y.

Two functions on arrays; `m` is the array module, NumPy or CuPy: the same lines run on a GPU.

- `x`, of shape [..., classes], holds scores of any size (1000 must do no harm, nor -inf);
- `label`, of shape [...], holds whole numbers: a class from 0 to classes - 1, or `ignore_index`,
  which means that this row has no label and no part in the loss.

`cross_entropy(m, x, label, *, ignore_index, mean)` gives one loss for each row, of label's shape:

    loss = log Σ_k e^x_k - x_label, and 0 in an ignored row

if `mean` is None. Otherwise it gives one number: the sum of all these, divided by how many rows
count. `mean="valid"` counts the rows that are not ignored (but at least 1, so that nothing is
divided by 0), `mean="all"` counts every row.

`softmax_minus_label(m, x, label, *, ignore_index, mean)` gives the derivative with respect to x, in
x's shape: p - y in each row, where p_k = e^x_k / Σ_j e^x_j and y is 1 at the label and 0 elsewhere;
0 in an ignored row; and with a `mean` all of it divided by the same count.

    x = [[0, log 3]], label = [0]:   Σ e^x = 4,   loss = [log 4],   p - y = [[0.25 - 1, 0.75]]

Return results of x's dtype, and write into none of the arrays given.
Source: Bridle, "Probabilistic interpretation of feedforward classification network outputs" (1990);
Paddle API `paddle.nn.functional.cross_entropy`.
"""


def cross_entropy(m, x, label, *, ignore_index, mean=None):
    """-log of the probability of the label: one for each row, or their mean."""
    raise NotImplementedError


def softmax_minus_label(m, x, label, *, ignore_index, mean):
    """The derivative of `cross_entropy` with respect to x."""
    raise NotImplementedError
