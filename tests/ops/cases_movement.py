"""Cases of the movement operators; torch is the oracle."""

import numpy as np
import torch

from tests.ops.cases import Case, fixed, normal, together


def pieces(x, axis):
    return tuple(torch.unbind(x, axis))


def zeros_with(shape, key):
    """Zeros of `shape` with the argument at `key`."""

    def oracle(x):
        y = torch.zeros(shape, dtype=x.dtype)
        y[key] = x
        return y

    return oracle


def assigned(key):
    def oracle(x, v):
        y = x.clone()
        y[key] = v
        return y

    return oracle


def embedded(shape, offset, axis1, axis2, fill=0):
    def oracle(x):
        return torch.diagonal_scatter(
            torch.full(shape, fill, dtype=x.dtype), x, offset, axis1, axis2
        )

    return oracle


def read_as(dtype):
    return lambda x: np.ascontiguousarray(x).view(dtype)


HALF = ((None, None, None), (3, None, -2))

CASES = {
    "reshape": [
        Case(normal(2, 3, 4), lambda x: x.reshape(4, 6), {"shape": (4, 6)}),
        Case(normal(1), lambda x: x.reshape(()), {"shape": ()}),
        Case(normal(0, 3), lambda x: x.reshape(3, 0), {"shape": (3, 0)}),
    ],
    "transpose": [
        Case(normal(2, 3, 4), lambda x: x.permute(2, 0, 1), {"perm": (2, 0, 1)}),
        Case(normal(()), lambda x: x, {"perm": ()}),
    ],
    "broadcast_to": [
        Case(normal(3, 1), lambda x: x.expand(2, 3, 4), {"shape": (2, 3, 4)}),
        Case(normal(()), lambda x: x.expand(2), {"shape": (2,)}),
    ],
    "slice": [
        Case(normal(2, 3), lambda x: x[1], {"index": (1,)}),
        Case(normal(2, 3), lambda x: x[-1, None, 1:], {"index": (-1, None, (1, None, None))}),
        Case(normal(2, 5), numpy=lambda x: x[:, 3::-2], attrs={"index": HALF}),
        Case(normal(4), lambda x: x[3:1], {"index": ((3, 1, None),)}),
        Case(normal(()), lambda x: x[None], {"index": (None,)}),
    ],
    "unslice": [
        Case(
            normal(3),
            zeros_with((2, 3), 1),
            {"shape": (2, 3), "index": (1,)},
        ),
        Case(
            normal(2, 2),
            numpy=lambda x: np.stack([0 * x[:, 0], x[:, 1], 0 * x[:, 0], x[:, 0], 0 * x[:, 0]], 1),
            attrs={"shape": (2, 5), "index": HALF},
        ),
    ],
    "slice_assign": [
        Case(normal((2, 3), (3,)), assigned(1), {"index": (1,)}),
        Case(
            normal((2, 4), ()),
            assigned((slice(None), slice(1, 3))),
            {"index": (*HALF[:1], (1, 3, None))},
        ),
        Case(normal((2, 3), (1, 1, 2, 1)), assigned(...), {"index": ()}),
        Case(
            together(normal(3), fixed(2.5)), assigned(slice(1, None)), {"index": ((1, None, None),)}
        ),
    ],
    "pad": [
        Case(
            normal(2, 3),
            lambda x: torch.nn.functional.pad(x, (2, 0, 1, 1), value=7.0),
            {"widths": ((1, 1), (2, 0)), "value": 7.0},
        ),
        Case(
            normal(0),
            lambda x: torch.ones(3, dtype=x.dtype),
            {"widths": ((1, 2),), "value": 1},
            order=0,
        ),
    ],
    "concat": [
        Case(normal((2, 1), (2, 3), (2, 0)), lambda *xs: torch.cat(xs, 1), {"axis": 1}),
        Case(normal((2,)), lambda x: x, {"axis": 0}),
    ],
    "split": Case(normal(2, 6), lambda x: x.split((1, 3, 2), 1), {"sizes": (1, 3, 2), "axis": 1}),
    "stack": [
        Case(normal((2, 3), (2, 3)), lambda *xs: torch.stack(xs, 1), {"axis": 1}),
        Case(normal((), (), ()), lambda *xs: torch.stack(xs), {"axis": 0}),
    ],
    "unstack": Case(normal(2, 3), lambda x: pieces(x, 1), {"axis": 1}),
    "tile": [
        Case(normal(2, 3), lambda x: x.tile(2, 3), {"repeats": (2, 3)}),
        Case(normal(2, 1), lambda x: x.tile(1, 0), {"repeats": (1, 0)}),
    ],
    "flip": Case(normal(2, 3, 4), lambda x: x.flip(0, 2), {"axis": (0, 2)}),
    "roll": [
        Case(normal(2, 3), lambda x: x.roll((1, -5), (0, 1)), {"shifts": (1, -5), "axis": (0, 1)}),
        Case(normal(3), lambda x: x.roll((1, 1), (0, 0)), {"shifts": (1, 1), "axis": (0, 0)}),
    ],
    "diagonal": [
        Case(normal(3, 4), lambda x: x.diagonal(), {"offset": 0, "axis1": 0, "axis2": 1}),
        Case(
            normal(3, 2, 4), lambda x: x.diagonal(-1, 2, 0), {"offset": -1, "axis1": 2, "axis2": 0}
        ),
        Case(normal(2, 3, 4), lambda x: x.diagonal(2, 1, 2), {"offset": 2, "axis1": 1, "axis2": 2}),
        Case(normal(2, 2), lambda x: x.diagonal(5), {"offset": 5, "axis1": 0, "axis2": 1}),
    ],
    "embed_diagonal": [
        Case(
            normal(2, 3),
            embedded((3, 2, 4), -1, 2, 0),
            {"shape": (3, 2, 4), "offset": -1, "axis1": 2, "axis2": 0, "fill": 0},
        ),
        Case(
            normal(3),
            embedded((4, 4), 1, 0, 1, 6),
            {"shape": (4, 4), "offset": 1, "axis1": 0, "axis2": 1, "fill": 6},
        ),
    ],
    "tril": Case(normal(2, 3, 4), lambda x: x.tril(1), {"diagonal": 1}),
    "triu": Case(normal(4, 3), lambda x: x.triu(-1), {"diagonal": -1}),
    "as_strided": [
        Case(
            normal(3, 4),
            lambda x: x.contiguous().as_strided((2, 3, 2), (4, 1, 2), 1),
            {"shape": (2, 3, 2), "strides": (4, 1, 2), "offset": 1},
        ),
        Case(
            normal(5),
            lambda x: x.contiguous().as_strided((3, 2), (0, 1), 2),
            {"shape": (3, 2), "strides": (0, 1), "offset": 2},
        ),
    ],
    "reinterpret": [
        Case(
            fixed(np.arange(6.0).reshape(2, 3).astype("float32")),
            numpy=read_as("int32"),
            attrs={"dtype": np.dtype("int32")},
            order=0,
            dtypes=("float32",),
        ),
        Case(
            fixed(np.arange(6, dtype="int64").reshape(2, 3)),
            numpy=read_as("int32"),
            attrs={"dtype": np.dtype("int32")},
            order=0,
        ),
    ],
}
