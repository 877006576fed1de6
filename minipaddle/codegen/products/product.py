"""The axes of a matrix product, and how to compute it.

A product has rows (axes of x and the result), columns (of y and the result) and a summed axis. The
other axes are a batch. Only strides matter: a transposed operand is an operand with other strides,
and a batch axis that y lacks is more rows.
"""

from __future__ import annotations

from math import gcd, prod
from typing import NamedTuple

from ...engine.codegen.kernel_schedule import pick
from ...engine.core.slots import slot
from ...engine.ops.movement import inverse
from ...ops.strided import strides_of
from ..machine import facts
from ..open_sizes import is_open
from .blas import is_wide

FEW = 24
"""Rows below which dot products along k are faster than packing y into panels."""

STREAMED = 4
"""Most rows of x whose result stays in the first-level cache while y is read once."""

WIDE = 64
"""Fewest columns for that: with fewer, the result stays in registers."""

LARGE = 1 << 20
"""Elements of y from which OpenBLAS is faster: it has blocks for each cache level (measured)."""

TALL = 32
"""Fewest rows of x for which OpenBLAS is faster. With as many for each 16 bytes of a vector, y is
packed: packing takes longer than it saves for fewer, the more so the faster the processor is.
"""


class StridedAxis(NamedTuple):
    """An axis of a product: its size, and its strides in x, in y and in the result."""

    size: int
    x: int
    y: int
    out: int

    def continues(self, inner: StridedAxis) -> bool:
        """Whether this axis and an inner one form one longer axis in all three arrays."""
        return self[1:] == tuple(step * inner.size for step in inner[1:])

    def times(self, inner: StridedAxis) -> StridedAxis:
        return StridedAxis(self.size * inner.size, *inner[1:])

    def exchange(self) -> StridedAxis:
        return StridedAxis(self.size, self.y, self.x, self.out)


class Product(NamedTuple):
    """out[b, m, n] = Σ x[b, m, k] · y[b, k, n], with the strides of the axes b, m, n and k."""

    batch: tuple[StridedAxis, ...]
    m: StridedAxis
    n: StridedAxis
    k: StridedAxis
    exchanged: bool = False
    """Whether x and y are exchanged, so that columns are neighbours in the result."""

    @property
    def count(self) -> int:
        """The number of matrix products."""
        return prod([a.size for a in self.batch])

    @property
    def work(self) -> int:
        """The number of multiplications."""
        return self.count * self.m.size * self.n.size * self.k.size


def axis(size, x, y, out) -> StridedAxis:
    """An axis; one of size 1 has strides 0."""
    return StridedAxis(size, x, y, out) if size > 1 else StridedAxis(size, 0, 0, 0)


def product_of(
    x, y, out, *, x_perm, y_perm, out_perm, keep_columns=False, keep_order=False
) -> Product:
    """The axes of a `product` record, from the specs of its operands and its result.

    With `keep_columns` the columns are one axis of the result. With `keep_order` no axes are merged
    into rows or columns, and the batch has the order of the operands.
    """
    xs, ys = [x.shape[d] for d in x_perm], [y.shape[d] for d in y_perm]
    xt = [strides_of(x.shape)[d] * (x.shape[d] > 1) for d in x_perm]
    yt = [strides_of(y.shape)[d] * (y.shape[d] > 1) for d in y_perm]
    to = [strides_of(out.shape)[d] for d in inverse(out_perm)]
    lead = range(len(to) - 2)
    batch = [axis(ys[d] if xs[d] == 1 else xs[d], xt[d], yt[d], to[d]) for d in lead]
    m, n = axis(xs[-2], xt[-2], 0, to[-2]), axis(ys[-1], 0, yt[-1], to[-1])
    k = axis(xs[-1], xt[-1], yt[-2], 0)
    batch = [a for a in batch if a.size != 1]
    exchange = m.out == 1 and n.out != 1
    if exchange:
        batch, m, n = [a.exchange() for a in batch], n.exchange(), m.exchange()
        k = k.exchange()
    if not keep_order:
        m = extend_axis(m, batch, "y")
        n = n if keep_columns else extend_axis(n, batch, "x")
        batch.sort(key=lambda a: -a.out)
    for k_ in range(len(batch) - 1, 0, -1):
        if batch[k_ - 1].continues(batch[k_]):
            batch[k_ - 1 : k_ + 1] = [batch[k_ - 1].times(batch[k_])]
    return Product(tuple(batch), m, n, k, exchange)


def extend_axis(inner: StridedAxis, batch: list[StridedAxis], idle: str) -> StridedAxis:
    """`inner`, merged with the axes of the batch that continue it (stride 0 in x or in y)."""
    for a in reversed(batch):
        if getattr(a, idle) == 0 and (inner.size == 1 or a.continues(inner)):
            batch.remove(a)
            return extend_axis(a if inner.size == 1 else a.times(inner), batch, idle)
    return inner


def fits_rows(p: Product, out) -> bool:
    """Whether blocks of the product's rows are whole rows of the result, in order."""
    last = out.shape[-1] if out.ndim else 1
    return p.n.size == last and p.n.out <= 1 and (p.m.size == 1 or p.m.out == last)


@slot("codegen.product")
def choose_algorithm(p: Product, dtype) -> str:
    """The algorithm of a product: "rows", "panels", "dots", "stream" or "blas".

    rows: tiles of the result, from x and from a y whose columns are neighbours; panels: the same
    with y packed into panels; dots: vectors along k; stream: rows of y are added to few rows of
    the result; blas: OpenBLAS.
    """
    along_k = p.k.x <= 1 and p.k.y <= 1
    straight = p.n.y == 1
    large = p.n.size * p.k.size >= LARGE and p.m.size >= TALL
    if large and dtype.name == "float32" and blas_can(p) and is_wide():
        return "blas"
    if along_k and p.k.size > 1 and (p.n.size == 1 or (p.m.size < FEW and not straight)):
        return "dots"
    if straight and is_streamed(p) and p.n.size >= WIDE:
        return "stream"
    tall = p.m.size >= TALL * facts().vector // 16
    if straight and p.count == 1 and tall and not stays_in_cache(p, dtype):
        return "panels"
    return "rows" if straight or p.n.size == 1 else "panels"


def is_streamed(p: Product) -> bool:
    """Whether the result of its rows may stay in the cache; their number is in the text."""
    return not is_open(p.m.size) and p.m.size <= STREAMED


def stays_in_cache(p: Product, dtype) -> bool:
    """Whether a tile's columns of y, whose rows are `k.y` apart, stay in the first-level cache, and
    all of y in the second one. Rows whose distance is a multiple of a power of two share few of its
    places: a way of it has `first / 8` bytes."""
    way = facts().first // 8
    places = way // gcd(p.k.y * dtype.itemsize, way) * 8
    in_second = p.n.size * p.k.size * dtype.itemsize <= facts().second // 2
    return in_second and p.k.size <= 4 * places


def pick_algorithm(p: Product, dtype) -> str:
    """The algorithm of a product: the default, or the choice of the schedule."""
    along_k = p.k.x <= 1 and p.k.y <= 1 and p.k.size > 1
    can = {"rows": p.n.y == 1 or p.n.size == 1, "panels": p.n.size > 1, "dots": along_k}
    can["stream"] = p.n.y == 1 and is_streamed(p)
    can["blas"] = dtype.name == "float32" and blas_can(p)
    return pick(
        "way", choose_algorithm(p, dtype), [how for how, possible in can.items() if possible]
    )


def blas_can(p: Product) -> bool:
    """Whether each operand is contiguous along one of its axes."""
    return 1 in (p.k.x, p.m.x) and 1 in (p.k.y, p.n.y) and min(p.m.size, p.n.size, p.k.size) > 1
