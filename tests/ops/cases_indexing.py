"""Cases of gather, scatter, sorting and searching."""

import numpy as np
import torch

from tests.ops.cases import Case, booleans, fixed, normal, together, whole


def placed(axis):
    """x with v at the places i of an axis."""

    def oracle(x, i, v):
        y = x.clone()
        y[(*(slice(None),) * axis, i)] = v
        return y

    return oracle


def summed(shape, axis):
    """Zeros with the slices of x added at the places i of an axis."""

    def oracle(x, i):
        flat = x.reshape(*shape[:axis], -1, *shape[axis + 1 :])
        return torch.zeros(shape, dtype=x.dtype).index_add(axis, i.reshape(-1) % shape[axis], flat)

    return oracle


def folded(how):
    return lambda x, i, v: x.scatter_reduce(0, i, v, how)


def multiplied(x, i, v):
    """Out of place, so that torch differentiates it twice, zeros among the factors included."""
    return torch.stack([torch.prod(torch.cat([x[k : k + 1], v[i == k]])) for k in range(len(x))])


def along(shape, axis):
    """Positions, by the definition."""

    def oracle(i):
        grid = list(np.indices(i.shape))
        grid[axis] = i % shape[axis]
        return np.ravel_multi_index(grid, shape)

    return oracle


def first_places(i):
    """By the definition, with the first place of each number."""
    return np.array([i.tolist().index(n) for n in i.tolist()], "int64")


def overlapping(size, strides, offset):
    """Zeros with x added where `as_strided` would read it."""

    def oracle(x):
        places = offset + sum(
            torch.arange(n).reshape(-1, *(1,) * (x.ndim - 1 - d)) * strides[d]
            for d, n in enumerate(x.shape)
        )
        return torch.zeros(size, dtype=x.dtype).index_add(0, places.reshape(-1), x.reshape(-1))

    return oracle


def most_frequent(x, axis):
    """scipy's rule, and the last place of the value, by the definition."""
    x = np.moveaxis(x, axis, -1)
    out = np.empty((*x.shape[:-1], 1), int)
    for k in np.ndindex(x.shape[:-1]):
        values, counts = np.unique(x[k], return_counts=True)
        out[k] = np.flatnonzero(x[k] == values[counts.argmax()])[-1]
    return np.moveaxis(out, -1, axis)


def runs(x):
    values, which, counts = torch.unique_consecutive(
        torch.tensor(x), return_inverse=True, return_counts=True
    )
    return values.numpy(), which.reshape(-1).numpy(), counts.numpy()


def rows_of_runs(x):
    values, which, counts = torch.unique_consecutive(torch.tensor(x), True, True, dim=1)
    return values.numpy(), which.numpy(), counts.numpy()


def distinct(x):
    y, first, which, counts = np.unique(x, True, True, True)
    return y, first, which.reshape(-1), counts


INT = np.dtype("int64")
TIES = fixed(np.array([[3.0, 1.0, 3.0, 2.0], [1.0, 1.0, 0.0, 1.0]]))
NAN = fixed(np.array([3.0, np.nan, 1.0]))
PLACES = np.array([0, 0, 3, 1, 1])
REPEATED = fixed(np.array([1.5, 0.5, 3.0, -4.0]), PLACES, np.array([2.0, 0.5, -1.0, 7.0, 3.0]))
WITH_ZEROS = fixed(np.array([1.5, 0.0, 3.0, 0.0]), PLACES, np.array([2.0, 0.0, 0.0, 7.0, 3.0]))
REACHED = fixed(np.array([1.0, 5.0, 3.0]), np.array([0, 0, 1, 1]), np.array([2.0, 2.0, 5.0, 4.0]))

CASES = {
    "extent": Case(fixed(np.array(3)), numpy=lambda count: np.zeros(int(count), bool)),
    "take": [
        Case(
            together(normal(4, 3), fixed(np.array([[0, 3], [-1, 0]]))),
            lambda x, i: x[i],
            {"axis": 0},
        ),
        Case(together(normal(2, 3, 2), fixed(np.array(1))), lambda x, i: x[:, i], {"axis": 1}),
        Case(together(normal(2, 3), whole(0, 3, (0,))), lambda x, i: x[:, i], {"axis": 1}),
        Case(together(normal(9, 200), whole(0, 9, (40,))), lambda x, i: x[i], {"axis": 0}, order=1),
        Case(
            together(normal(2, 3), fixed(np.array([2, 0], "uint8"))),
            lambda x, i: x[:, i.long()],
            {"axis": 1},
        ),
    ],
    "scatter_sum": [
        Case(
            together(normal(2, 2, 3), fixed(np.array([[0, 3], [-1, 0]]))),
            summed((4, 3), 0),
            {"shape": (4, 3), "axis": 0},
        ),
        Case(
            together(normal(2, 4), fixed(np.array([1, 1, 0, -3]))),
            summed((2, 3), 1),
            {"shape": (2, 3), "axis": 1},
        ),
        Case(
            together(normal(60, 30), whole(-7, 7, (60,))),
            summed((7, 30), 0),
            {"shape": (7, 30), "axis": 0},
            order=1,
        ),
        Case(
            together(whole(0, 9, (60, 30)), whole(0, 7, (60,))),
            summed((7, 30), 0),
            {"shape": (7, 30), "axis": 0},
            order=0,
        ),
        Case(
            together(normal((0, 3)), whole(0, 4, (0,))),
            summed((4, 3), 0),
            {"shape": (4, 3), "axis": 0},
        ),
    ],
    "put": [
        Case(
            together(normal(4, 3), fixed(np.array([3, -4])), normal(2, 3)), placed(0), {"axis": 0}
        ),
        Case(
            together(normal(2, 4), fixed(np.array([[3, 0], [1, 2]])), normal(2)),
            placed(1),
            {"axis": 1},
        ),
        Case(together(normal(4), fixed(np.array([0, 2])), fixed(2.5)), placed(0), {"axis": 0}),
    ],
    "flat_index": [
        Case(
            fixed(np.array([0, -1, 2]), np.array([[1], [-4]])),
            numpy=lambda i, j: (i % 3) * 4 + j % 4,
            attrs={"shape": (3, 4)},
            order=0,
        ),
        Case(
            fixed(np.array([200, 0], "uint8"), np.array([3, 4], "int32")),
            numpy=lambda i, j: i.astype(int) * 5 + j,
            attrs={"shape": (300, 5)},
            order=0,
        ),
    ],
    "along_index": [
        Case(
            fixed(np.array([[1, -1], [0, 2]])),
            numpy=along((3, 2), 0),
            attrs={"shape": (3, 2), "axis": 0},
            order=0,
        ),
        Case(
            fixed(np.array([[[1], [0]]])),
            numpy=along((2, 3, 4), 2),
            attrs={"shape": (2, 3, 4), "axis": 2},
            order=0,
        ),
    ],
    "nonzero": [
        Case(fixed(np.array([[1, 0], [2, 3]])), lambda x: x.nonzero(), order=0),
        Case(booleans(2, 3, 4), lambda x: x.nonzero(), order=0),
    ],
    "flatnonzero": Case(booleans(2, 3), numpy=np.flatnonzero, order=0),
    "repeated": Case(fixed(np.array([2, 0, 3])), lambda n: torch.repeat_interleave(n), order=0),
    "scatter_add": [
        Case(
            together(normal(4, 3), fixed(np.array([[0, 3], [-1, 0]])), normal(2, 2, 3)),
            lambda x, i, v: x.index_put((i,), v, accumulate=True),
            {"axis": 0},
        ),
        Case(
            together(normal(2, 3, 2), fixed(np.array(1)), normal(2, 2)),
            lambda x, i, v: x.index_add(1, i.reshape(1), v[:, None]),
            {"axis": 1},
        ),
        Case(
            together(whole(0, 9, (7, 3)), whole(-7, 7, (5,)), whole(0, 9, (5, 3))),
            lambda x, i, v: x.index_put((i,), v, accumulate=True),
            {"axis": 0},
            order=0,
        ),
    ],
    "equal_places": [
        Case(fixed(np.array([5, 2, 5, 5, -1, 2])), numpy=first_places, order=0),
        Case(whole(-9, 9, 40), numpy=first_places, order=0),
        Case(fixed(np.array([], "int64")), numpy=first_places, order=0),
    ],
    "scatter_prod": [
        Case(WITH_ZEROS, multiplied, order=1, dtypes=("float64", "float32")),
        Case(REPEATED, multiplied, dtypes=("float64", "float32")),
    ],
    "scatter_max": Case(REACHED, folded("amax"), order=1),
    "scatter_min": Case(REACHED, folded("amin"), order=1),
    "strided_sum": Case(
        normal(2, 3), overlapping(9, (1, 2), 1), {"size": 9, "strides": (1, 2), "offset": 1}
    ),
    "sort": [
        Case(normal(3, 4), lambda x: x.sort(0).values, {"axis": 0, "descending": False}),
        Case(
            TIES,
            lambda x: x.sort(dim=1, descending=True, stable=True).values,
            {"axis": 1, "descending": True},
            smooth=False,
        ),
        Case(
            NAN, lambda x: x.sort(descending=True).values, {"axis": 0, "descending": True}, order=0
        ),
    ],
    "argsort": [
        Case(TIES, lambda x: x.argsort(dim=1, stable=True), {"axis": 1, "descending": False}),
        Case(
            TIES,
            lambda x: x.argsort(dim=1, descending=True, stable=True),
            {"axis": 1, "descending": True},
        ),
        Case(NAN, lambda x: x.argsort(descending=True), {"axis": 0, "descending": True}),
        Case(
            whole(0, 3, (2, 9)),
            lambda x: x.argsort(dim=1, stable=True),
            {"axis": 1, "descending": False},
        ),
    ],
    "topk_index": [
        Case(
            normal(3, 5),
            lambda x: x.topk(2, 1).indices,
            {"k": 2, "axis": 1, "largest": True},
            dtypes=("float64", "float32"),
        ),
        Case(
            normal(5, 3),
            lambda x: x.topk(5, 0, False).indices,
            {"k": 5, "axis": 0, "largest": False},
            dtypes=("float64", "float32"),
        ),
    ],
    "mode_index": [
        Case(whole(0, 4, (3, 9)), numpy=lambda x: most_frequent(x, 1), attrs={"axis": 1}, order=0),
        Case(
            whole(0, 3, (7, 2, 3)), numpy=lambda x: most_frequent(x, 0), attrs={"axis": 0}, order=0
        ),
    ],
    "searchsorted": [
        Case(
            fixed(np.array([1, 3, 5]), np.array([[3, 6], [0, 4]])),
            torch.searchsorted,
            {"right": False},
            order=0,
        ),
        Case(
            fixed(np.array([[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]), np.array([[3.0, 6.0], [4.0, 4.0]])),
            lambda s, v: torch.searchsorted(s, v, right=True),
            {"right": True},
        ),
    ],
    "unique": [
        Case(fixed(np.array([[3, 1], [1, 2]])), numpy=distinct, attrs={"axis": None}, order=0),
        Case(
            fixed(np.array([[3, 1], [3, 1], [0, 2]])),
            numpy=lambda x: np.unique(x, True, True, True, axis=0),
            attrs={"axis": 0},
            order=0,
        ),
    ],
    "unique_consecutive": [
        Case(fixed(np.array([1, 1, 2, 2, 2, 1])), numpy=runs, attrs={"axis": None}, order=0),
        Case(
            fixed(np.array([[1, 1, 2], [3, 3, 3]])), numpy=rows_of_runs, attrs={"axis": 1}, order=0
        ),
        Case(fixed(np.zeros(0)), numpy=runs, attrs={"axis": None}, order=0),
    ],
}
