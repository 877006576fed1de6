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
    raise NotImplementedError


def for_y(g, x, y_spec):
    """The cotangent of y in x @ y: of shape `y_spec.shape`."""
    raise NotImplementedError
