"""Tensors that lie in many ways, written and read again: what the tests of checkpoints share."""

import numpy as np

import minipaddle as paddle
import minipaddle.distributed as dist

from .models import R

ARRAYS = {
    "matrix": np.arange(35, dtype="float32").reshape(7, 5),
    "flags": np.arange(13) % 3 == 0,
    "number": np.float64(2.5),
    "row": np.arange(4).reshape(1, 4),  # pieces of which are empty
    "nothing": np.zeros((0, 3), "float32"),
    "cube": np.arange(24, dtype="float16").reshape(2, 3, 4),
}
S = dist.Shard
LAYOUTS = {
    "one": (1, None, None),
    "plain": (2, None, None),
    "2x2": (4, [[0, 1], [2, 3]], lambda n: [S(0), S(n - 1)]),
    "rows of 4": (4, [0, 1, 2, 3], lambda n: [S(0)]),
    "columns of 3": (3, [0, 1, 2], lambda n: [S(n - 1)]),
    "2x2, one axis": (4, [[3, 1], [0, 2]], lambda n: [R, S(0)]),
    "blocks of 2": (2, [0, 1], lambda n: [S(n - 1, 2)]),
}


def times(k: int):
    """A function that makes other arrays of the same dtypes."""
    return lambda a: (a * k).astype(a.dtype)


def state_of(layout: str, make) -> dict:
    """The arrays, made by a function, as tensors that lie as a layout says; in nested dicts."""
    _, mesh, place = LAYOUTS[layout]
    found = {}
    for name, array in ARRAYS.items():
        x = paddle.to_tensor(make(array))
        if mesh is not None and x.ndim:
            x = dist.shard_tensor(x, dist.ProcessMesh(mesh), place(x.ndim))
        found[name] = x
    half = paddle.to_tensor(make(ARRAYS["matrix"])).astype("bfloat16")
    return {
        "inner": {"deep": found},
        "half": half,
        "epoch": int(make(np.array(3))),
        "more": (1, "a"),
    }


def write(layout: str, folder, value=lambda a: a, **options):
    def work():
        dist.save_state_dict(state_of(layout, value), folder, **options)

    dist.spawn(work, nprocs=LAYOUTS[layout][0])


def read(layout: str, folder, **options) -> list:
    """What each rank has after loading."""

    def work():
        state = state_of(layout, np.zeros_like)
        state["more"] = ()
        dist.load_state_dict(state, folder, **options)
        deep = {name: x.numpy() for name, x in state["inner"]["deep"].items()}
        return deep, state["half"].astype("float32").numpy(), state["epoch"], state["more"]

    return dist.spawn(work, nprocs=LAYOUTS[layout][0]).results


def check(results, value=lambda a: a):
    for deep, half, epoch, more in results:
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(deep[name], value(array), strict=True)
        np.testing.assert_array_equal(half, value(ARRAYS["matrix"]))
        assert (epoch, more) == (value(np.array(3)), (1, "a"))
