"""The two derivative rules of a matrix product.

For Z = X @ Y and g = ∂L/∂Z the rules are, for two matrices, ∂L/∂X = g @ Yᵀ and ∂L/∂Y = Xᵀ @ g.
Write them as the engine's `matmul` needs them, for all that it accepts:

- stacks: x of shape [..., n, k] and y of [..., k, m] are multiplied matrix by matrix. The leading
  axes broadcast, so a rule has to sum over the axes along which its input was repeated:
  `t.sum_to(shape)` does that;
- vectors: an x of shape [k] is a row and a y of shape [k] is a column; the axis that was added for
  them is missing in `g`.

Each rule names what it needs, and only that is kept until the backward: of the input whose
cotangent it computes, the shape is enough (`x_spec.shape`, a tuple). Return a tensor of that shape.
A rule is written in tensors, so that it can be differentiated once more.

    x [2, 3] @ y [3, 4], g [2, 4]:              for_x -> g @ yᵀ, [2, 3]
    x [5, 2, 3] @ y [3, 4], g [5, 2, 4]:        for_y -> the sum of five products, [3, 4]

Source: Giles, "Collected Matrix Derivative Results for Forward and Reverse Mode", 2008.
"""

import minipaddle as paddle


def for_x(g, x_spec, y):
    """The cotangent of x in x @ y: of shape `x_spec.shape`."""
    g = _with_axes(g, x_spec.shape, y.shape)
    column = y.unsqueeze(-1) if len(y.shape) == 1 else y
    products = paddle.matmul(g, column.mT)  # mT: the last two axes exchanged, and only they
    # x was repeated for every matrix of y's stack; the axis of a row goes away with that sum
    return products.sum_to(x_spec.shape)


def for_y(g, x, y_spec):
    """The cotangent of y in x @ y: of shape `y_spec.shape`."""
    g = _with_axes(g, x.shape, y_spec.shape)
    row = x.unsqueeze(0) if len(x.shape) == 1 else x
    products = paddle.matmul(row.mT, g)
    if len(y_spec.shape) == 1:
        products = products.squeeze(-1)  # a column is a vector again
    return products.sum_to(y_spec.shape)


def _with_axes(g, x_shape, y_shape):
    # First the column's axis, at the end; then the row's, before it.
    g = g.unsqueeze(-1) if len(y_shape) == 1 else g
    return g.unsqueeze(-2) if len(x_shape) == 1 else g
