"""The keys of slices, and the shapes of the slices."""

from __future__ import annotations

from ..core.dim import UNSEEN, Dim, as_guarded, decide, larger, never, smaller, suppose, symbols


def as_key(index) -> tuple:
    """The hashable index of an operator in the form that arrays take.

    An entry is an int (it takes one place and drops the axis), None (a new axis of size 1) or a
    triple (start, stop, step). Axes without an entry stay whole.
    """
    return (*[slice(*k) if type(k) is tuple else k for k in index], ...)


def slice_shape(x, index) -> tuple:
    """The shape of a slice; raises IndexError when it does not fit x."""
    sizes, out = list(x.shape), []
    for k in index:
        if k is None:
            out.append(1)
            continue
        if not sizes:
            raise IndexError(f"too many indices for {x}: it has {x.ndim} dimensions")
        n = sizes.pop(0)
        if type(k) is tuple:
            if k[2] == 0:
                raise ValueError("the step of a slice cannot be 0")
            known = isinstance(n, int) and Dim not in map(type, k)
            out.append(count_places(*find_places(k, n)) if known else slice_size(n, *k))
        elif not -n <= k < n:
            raise IndexError(f"index {k} is out of range for an axis of size {n} of {x}")
    return (*out, *sizes)


def find_places(k: tuple, n: int) -> tuple[int, int, int]:
    """The first place among n that a slice names, where it ends, and the step: `slice.indices`,
    for any kind of number.
    """
    step = 1 if k[2] is None else k[2]
    low, high = (0, n) if step > 0 else (-1, n - 1)
    ends = (n + v if v is not None and v < 0 else v for v in k[:2])
    first, end = (v if v is None else low if v < low else high if v > high else v for v in ends)
    whole = (low, high)[:: 1 if step > 0 else -1]
    return whole[0] if first is None else first, whole[1] if end is None else end, step


def count_places(first: int, end: int, step: int) -> int:
    return max(-((first - end) // step), 0)


def slice_size(n, start, stop, step):
    """The number of places among n that a slice names, for sizes that only a run knows."""
    step = 1 if step is None else step
    first, end = (v if v is None else count_from_front(n, v, step > 0) for v in (start, stop))
    known = isinstance(first, Dim) and end is not None and isinstance(end - first, int)
    if known and depends_on_values(first):
        suppose(end, "<=", n)  # `x[i : i + 1]`, with a value for i: no part of it is outside
        return max(-((first - end) // abs(step)), 0)
    first = 0 if first is None else larger(first, 0)
    end = n if end is None else smaller(end, n)
    return larger(-((first - end) // abs(step)), 0)


def count_from_front(n, place, forward: bool):
    """A place among n, counted from where a slice begins."""
    if isinstance(place, Dim) and depends_on_values(place) and not never(place, ">", 0):
        suppose(place, ">=", 0)  # `x[: len(x) - n]`, with a value for n
    if decide(as_guarded(place, True), 0, "<"):
        return n + place if forward else -1 - place
    return place if forward else n - 1 - place


def depends_on_values(n: Dim) -> bool:
    """Whether a size depends on values, which become known only while the program runs."""
    return any(UNSEEN.match(name) for name in symbols(n))
