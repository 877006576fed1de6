"""Movement: elements change place, never value. Each has a body and an index map.

The index map says from where output element `i` comes: it lets a code generator read through a
movement without making a copy.
"""

from __future__ import annotations

from ..core.op import movement
from ..core.record import Spec


def ravel(i, shape):
    """The row-major position of index `i` in an array of `shape`."""
    flat = 0
    for k, n in zip(i, shape, strict=True):
        flat = flat * n + k
    return flat


def unravel(flat, shape):
    """The index at row-major position `flat` in an array of `shape`."""
    out = []
    for n in reversed(shape):
        out.append(flat % n)
        flat = flat // n
    return out[::-1]


@movement
def reshape(m, x, *, shape):
    """The same elements, in row-major order, in another shape."""
    return m.reshape(x, shape)


@reshape.shape
def _(x, *, shape):
    if Spec(shape, x.dtype).size != x.size:
        raise ValueError(f"{x} has {x.size} elements, which do not fill shape {list(shape)}")
    return Spec(tuple(shape), x.dtype)


reshape.index(lambda i, x, shape: unravel(ravel(i, shape), x.shape))
reshape.vjp(lambda g, x_spec: reshape(g, shape=x_spec.shape))


@movement
def transpose(m, x, *, perm):
    """Axis `d` of the result is axis `perm[d]` of x."""
    return m.transpose(x, perm)


@transpose.shape
def _(x, *, perm):
    if sorted(perm) != list(range(x.ndim)):
        raise ValueError(f"perm {list(perm)} is no order of the {x.ndim} axes of {x}")
    return Spec(tuple(x.shape[d] for d in perm), x.dtype)


def inverse(perm) -> tuple:
    """The order that undoes `perm`."""
    return tuple(perm.index(d) for d in range(len(perm)))


transpose.index(lambda i, x, perm: [i[d] for d in inverse(perm)])
transpose.vjp(lambda g, perm: transpose(g, perm=inverse(perm)))


@movement
def broadcast_to(m, x, *, shape):
    """x repeated along new leading axes and along axes of size 1."""
    return m.broadcast_to(x, shape)


@broadcast_to.shape
def _(x, *, shape):
    tail = shape[len(shape) - x.ndim :]
    if len(shape) < x.ndim or any(n not in (1, t) for n, t in zip(x.shape, tail, strict=True)):
        raise ValueError(f"{x} does not broadcast to shape {list(shape)}")
    return Spec(tuple(shape), x.dtype)


@broadcast_to.index
def _(i, x, *, shape):
    return [0 if n == 1 else k for n, k in zip(x.shape, i[len(shape) - x.ndim :], strict=True)]


broadcast_to.vjp(lambda g, x_spec: g.sum_to(x_spec.shape))
