"""Shape and dtype arithmetic: broadcasting, promotion, axes."""

from __future__ import annotations

from . import dtype as dt


def broadcast_shapes(*shapes) -> tuple:
    """NumPy's broadcasting of shapes; raises ValueError that names the dimension that differs.

    >>> broadcast_shapes((2, 1, 3), (4, 1))
    (2, 4, 3)
    """
    rank = max(map(len, shapes), default=0)
    out = []
    for d in range(-rank, 0):
        sizes = {s[d] for s in shapes if len(s) >= -d} - {1}
        if len(sizes) > 1:
            given = " and ".join(str(list(s)) for s in shapes)
            raise ValueError(
                f"shapes {given} do not broadcast: dimension {d} is {' and '.join(map(str, sorted(sizes)))}; "
                "sizes must be equal or 1"
            )
        out.append(sizes.pop() if sizes else 1)
    return tuple(out)


def scalar_dtype(value):
    """The dtype a Python scalar has when it stands alone."""
    return dt.resolve(type(value))


def promote(name: str, inputs):
    """The common dtype of arrays or specs; a Python scalar only lifts to its own category.

    Source: Paddle's guide "Type promotion".
    """
    dtypes = {x.dtype for x in inputs if hasattr(x, "dtype")}
    scalars = [x for x in inputs if not hasattr(x, "dtype")]
    if not dtypes:
        return max((scalar_dtype(x) for x in scalars), key=_rank)
    common = dtypes.pop() if len(dtypes) == 1 else _common(dtypes)
    for x in scalars:
        own = scalar_dtype(x)
        if _category(own) > _category(common):
            common = own
    return common


def _category(dtype) -> int:
    return 0 if dtype.kind == "b" else 1 if dtype.kind in "iu" else 2


def _rank(dtype) -> tuple:
    return _category(dtype), dtype.itemsize


def _common(dtypes):
    top = max(map(_category, dtypes))
    names = {d for d in dtypes if _category(d) == top}
    if len(names) == 1:
        return names.pop()
    if top == 2 and len(names) > 1:
        widest = max(names, key=_rank)
        return dt.float32.numpy if widest.itemsize == 2 else widest
    signed = [d for d in names if d.kind == "i"]
    widest = max(names, key=_rank)
    if dt.uint8.numpy in names and signed:
        biggest = max(signed, key=_rank)
        return dt.int16.numpy if biggest.itemsize == 1 else biggest
    return widest


def normalize_axis(axis, ndim: int) -> int:
    """A non-negative axis; raises ValueError when it lies outside [-ndim, ndim)."""
    low, high = (-ndim, ndim) if ndim else (-1, 1)
    if not low <= axis < high:
        raise ValueError(f"axis {axis} is out of range for {ndim} dimensions: [{low}, {high - 1}]")
    return axis + ndim if axis < 0 else axis


def normalize_axes(axis, ndim: int) -> tuple:
    """A sorted tuple of non-negative axes from None (all), a number, or a list."""
    if axis is None:
        return tuple(range(ndim))
    axes = [axis] if not isinstance(axis, list | tuple) else axis
    out = {normalize_axis(int(a), ndim) for a in axes}
    if len(out) != len(axes):
        raise ValueError(f"axis {axis} names a dimension twice")
    return tuple(sorted(a for a in out if a < ndim))
