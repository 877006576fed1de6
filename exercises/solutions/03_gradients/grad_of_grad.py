"""A Hessian times a vector, without the Hessian.

y is one number computed from the tensors `xs`. The Hessian H holds all second derivatives,
∂²y / ∂xᵢ ∂xⱼ: for a million numbers in `xs` it has a million million entries. Write

    hessian_vector(y, xs, vectors)

which returns the product H v as a list: for every tensor of `xs` one of its shape. `vectors` holds
the parts of v, again one for every tensor of `xs`.

The idea (Pearlmutter, 1994): the gradient of y is a function of `xs` too. Multiply it with v, add
up, and you have one number Σ vᵢ ∂y/∂xᵢ. Its gradient, with v held fixed, is H v.

- `paddle.grad(y, xs, create_graph=True)` is a list of gradients that can be differentiated again.
  With `allow_unused=True` it says None for a tensor that y was not computed from.
- A tensor that nothing leads to gets zeros in the product; so does a gradient that is constant.
- The product must be differentiable again, for third derivatives.
- Two gradients will do. The full Hessian would take one for every number in `xs`.

    y = x³ at x = 2:        hessian_vector(y, [x], [v])     ->  [12 v]
    y = a·b (two tensors):  hessian_vector(y, [a, b], [1, 0])  ->  [0, 1]

`paddle.autograd.hessian`, which a Newton step uses, is made of your products.
Source: Pearlmutter, "Fast exact multiplication by the Hessian", Neural Computation 6 (1994).
"""

import minipaddle as paddle


def hessian_vector(y, xs, vectors):
    """The Hessian of the number y for the tensors `xs`, times `vectors`: a list like `xs`."""
    slopes = paddle.grad(y, xs, create_graph=True, allow_unused=True)
    along = [
        (slope * v).sum()  # v is given: it is no part of what is differentiated
        for slope, v in zip(slopes, vectors, strict=True)
        if slope is not None  # y was not computed from that one
    ]
    if not along:
        return [paddle.zeros_like(x) for x in xs]
    number = sum(along[1:], along[0])
    products = paddle.grad(number, xs, create_graph=True, allow_unused=True)
    return [paddle.zeros_like(x) if p is None else p for x, p in zip(xs, products, strict=True)]
