"""One factor for all gradients.

Write `clip_by_global_norm(grads, limit)`. `grads` is a list of tensors of any shapes, the gradients
of all parameters; `limit` is a number above 0. Take their global norm, the length of all their
elements together: the square root of the sum of all squares. If it is at most `limit`, the
gradients stay as they are. If it is more, multiply every one by the same factor limit / norm, so
that the global norm becomes `limit` and the direction stays.

Return a list of as many tensors, of the same shapes and in the same order, and write into none of
those given. Zeros are fine: they are not longer than any limit.

    grads = [[2.0, 3.0], [6.0]], limit = 3.5:  norm 7, factor 0.5  ->  [[1.0, 1.5], [3.0]]
    grads = [[2.0, 3.0], [6.0]], limit = 10:   they stay

Decide with tensors (`x.clip(min=...)` keeps x from going below a number), not with `if`: on a GPU
an `if` would have to wait for the number.
Source: Pascanu, Mikolov and Bengio, "On the difficulty of training recurrent neural networks"
(2013).
"""

import minipaddle as paddle


def clip_by_global_norm(grads, limit):
    """The gradients, shortened by one factor if all together they are longer than `limit`."""
    norm = paddle.sqrt(sum((g * g).sum() for g in grads))
    # The larger of the two: below the limit the factor is exactly 1, and it never divides by 0.
    factor = limit / norm.clip(min=limit)
    return [g * factor for g in grads]
