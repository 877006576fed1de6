"""Derivatives as arrays: Jacobians, Hessians, and a Hessian's product with a vector.

Source: Paddle API `paddle.autograd.jacobian`, `paddle.autograd.hessian`; Pearlmutter, "Fast exact
multiplication by the Hessian", Neural Computation 6 (1994).
"""

from __future__ import annotations

from ..engine.core.dispatch import current
from ..engine.core.errors import not_supported, value_error
from ..engine.core.record import Spec
from ..engine.core.slots import slot
from ..engine.eager.backward import grad
from ..engine.eager.device import device_guard
from ..engine.ops import movement
from ..ops import arrangement


@slot("autograd.hessian_vector")
def hessian_vector(y, xs, vectors) -> list:
    """The Hessian of `y`, one number, times a vector: one tensor for each of `xs`, in its shape.

    The Hessian itself is never made. Row i of it is the gradient of the slope ∂y/∂xᵢ, so its
    product with v is the gradient of the one number Σ vᵢ ∂y/∂xᵢ.

    >>> x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    >>> (hv,) = paddle.autograd.hessian_vector((x**3).sum(), [x], [paddle.ones([2])])
    >>> hv.tolist()
    [6.0, 12.0]
    """
    slopes = grad(y, xs, create_graph=True, allow_unused=True)
    used = [k for k, slope in enumerate(slopes) if slope is not None]
    return pull([slopes[k] for k in used], xs, [vectors[k] for k in used])


def jacobian(ys, xs, batch_axis=None):
    """∂yᵢ/∂xⱼ as a tensor: the shape of `ys`, then the shape of `xs`.

    Of several `ys` or `xs` (lists or tuples) every pair gives one: a tuple for several `xs`, in a
    tuple for several `ys`. All are computed at once and can be differentiated again. Raises
    NotImplementedError for a `batch_axis`.

    >>> x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    >>> paddle.autograd.jacobian(x * x, x).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    refuse_batches("jacobian", batch_axis)

    def rows(y):
        return [pull([y], as_list(xs), [unit]) for unit in unit_vectors(y)]

    blocks = [assemble(rows(y), y, xs) for y in as_list(ys)]
    return tuple(blocks) if isinstance(ys, list | tuple) else blocks[0]


def hessian(ys, xs, batch_axis=None):
    """∂²y/∂xᵢ∂xⱼ of one number y, as a tensor of the shape of `xs` twice over.

    For several `xs` (a list or tuple) a tuple of tuples, the block of every pair. Row after row is
    a product with a unit vector, and can be differentiated again. Raises ValueError if `ys` is more
    than one number, NotImplementedError for a `batch_axis`.

    >>> x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    >>> paddle.autograd.hessian(x[0] * x[0] * x[1], x).tolist()
    [[4.0, 2.0], [2.0, 0.0]]
    """
    refuse_batches("hessian", batch_axis)
    if ys.size != 1:
        raise value_error(
            f"hessian of {ys.spec}", expected="one number", hint="sum it, or take jacobian"
        )
    inputs = as_list(xs)
    zeros = [constant(x.spec, 0, x) for x in inputs]

    def rows(k):
        return [
            hessian_vector(ys, inputs, [*zeros[:k], unit, *zeros[k + 1 :]])
            for unit in unit_vectors(inputs[k])
        ]

    blocks = [assemble(rows(k), x, xs) for k, x in enumerate(inputs)]
    return tuple(blocks) if isinstance(xs, list | tuple) else blocks[0]


def pull(ys, xs, cotangents) -> list:
    """The gradients of Σ cotangent·y, zeros where nothing leads; differentiable again."""
    gradients = grad(ys, xs, cotangents, create_graph=True, allow_unused=True)
    return [constant(x.spec, 0, x) if g is None else g for g, x in zip(gradients, xs, strict=True)]


def unit_vectors(x):
    """The unit vectors of the space of `x`: one for each element, 1 there and 0 elsewhere."""
    with device_guard(x.place):
        rows = arrangement.eye(rows=x.spec.size, columns=x.spec.size, dtype=x.spec.dtype)
        return [movement.reshape(row, shape=x.spec.shape) for row in rows]


def assemble(rows, y, xs):
    """Rows, one for each element of y, each a list with a tensor for each of `xs`, as arrays."""
    blocks = [
        movement.reshape(
            movement.stack(*[row[j] for row in rows], axis=0), shape=y.spec.shape + x.spec.shape
        )
        if rows
        else constant(Spec(y.spec.shape + x.spec.shape, x.spec.dtype), 0, x)
        for j, x in enumerate(as_list(xs))
    ]
    return tuple(blocks) if isinstance(xs, list | tuple) else blocks[0]


def constant(spec, value, like):
    return current.top.full(spec, value, like)


def as_list(x) -> list:
    """The items of a list or tuple, or anything else as one item."""
    return list(x) if isinstance(x, list | tuple) else [x]


def refuse_batches(name: str, batch_axis) -> None:
    if batch_axis is not None:
        raise not_supported(
            f"{name}(batch_axis={batch_axis!r})",
            expected="None",
            hint="loop over the batch, or sum over it: its items do not meet",
        )
