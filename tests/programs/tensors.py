"""Making, shaping, joining, indexing and printing tensors."""

import numpy as np

from tests.programs.common import wave


def creation(paddle):
    """The ways to make a tensor, and what they are when nobody says which dtype."""
    base = paddle.ones([2, 3], dtype="float32")
    made = {
        "python": paddle.to_tensor([[1, 2], [3, 4]]),
        "floats": paddle.to_tensor([1.5, 2.0]),
        "numpy": paddle.to_tensor(np.arange(3, dtype="int32")),
        "scalar": paddle.to_tensor(3.0, stop_gradient=False),
        "arange": paddle.arange(1, 10, 3),
        "half_open": paddle.arange(0.0, 1.0, 0.25),
        "linspace": paddle.linspace(0, 1, 5),
        "full": paddle.full([2, 2], 7, dtype="int64"),
        "full_like": paddle.full_like(base, 0.5),
        "zeros": paddle.zeros([2, 0, 3]),
        "zeros_like": paddle.zeros_like(base, dtype="int32"),
        "ones_like": paddle.ones_like(base),
        "eye": paddle.eye(2, 3),
        "diag": paddle.diag(paddle.to_tensor([1.0, 2.0]), offset=1),
        "diagflat": paddle.diagflat(paddle.to_tensor([[1, 2], [3, 4]])),
        "assign": paddle.assign(np.array([[1.0, 2.0]], dtype="float32")),
        "clone": paddle.clone(base) * 2,
        "grid": paddle.meshgrid(paddle.arange(2), paddle.arange(3)),
        "cast": paddle.cast(paddle.to_tensor([1.9, -1.9]), "int32"),
    }
    empty = paddle.empty([3, 2])
    made["empty"] = (empty.shape, paddle.empty_like(empty).shape, paddle.is_empty(made["zeros"]))
    made["kinds"] = [str(t.dtype) for t in (made["python"], made["floats"], made["zeros_like"])]
    made["is_tensor"] = [paddle.is_tensor(base), isinstance(base, paddle.Tensor)]
    return made


def places(paddle):
    """The first lines of many scripts."""
    paddle.disable_static()
    place = paddle.CUDAPlace(0) if paddle.is_compiled_with_cuda() else paddle.CPUPlace()
    before = paddle.device.get_device()
    paddle.set_device("gpu" if paddle.is_compiled_with_cuda() else "cpu")
    x = paddle.to_tensor([1, 2], dtype=paddle.int32, place=place)
    paddle.set_device(before)
    return x, x.place == place, x.dtype == paddle.int32, x.cpu()


def attributes(paddle):
    """What a tensor says of itself."""
    x = paddle.to_tensor(wave(2, 3, 4), stop_gradient=False)
    y = (x * 2).detach()
    x.name = "pixels"
    return {
        "shape": list(x.shape),
        "asked": paddle.shape(x),
        "ndim": x.ndim,
        "size": int(x.size),
        "numel": x.numel(),
        "bytes": x.element_size(),
        "name": x.name,
        "leaf": [x.is_leaf, (x * 2).is_leaf, y.is_leaf],
        "stop": [x.stop_gradient, (x * 2).stop_gradient, y.stop_gradient],
        "place": str(x.place),
        "on_cpu": x.cpu().place == paddle.CPUPlace(),
        "T": x.T.shape,
        "len": len(x),
        "dtypes": [x.dtype == paddle.float32, paddle.ones([1], "int64").dtype == paddle.int64],
        "cuda": paddle.is_compiled_with_cuda() == paddle.device.is_compiled_with_cuda(),
        "dense": "DENSE_TENSOR" in str(x.type),
        "contiguous": [x.is_contiguous(), x.contiguous().shape],
        "rank": x.ndimension(),
    }


def reshaping(paddle):
    """Views and copies of other shapes."""
    x = paddle.arange(24)
    cube = paddle.reshape(x, [2, 3, -1])
    return {
        "kept": paddle.reshape(cube, [0, -1]),
        "flatten": paddle.flatten(cube, start_axis=1),
        "part": cube.flatten(0, 1).shape,
        "transpose": paddle.transpose(cube, perm=[2, 0, 1]).shape,
        "permute": cube.permute(1, 0, 2).shape,
        "method": cube.transpose([0, 2, 1])[0],
        "squeeze": paddle.squeeze(paddle.ones([1, 2, 1]), axis=0).shape,
        "unsqueeze": paddle.unsqueeze(x, axis=[0, -1]).shape,
        "view": x.view([4, 6])[1:3, ::2],
        "expand": paddle.expand(paddle.to_tensor([[1], [2]]), shape=[-1, 3]),
        "grown": paddle.ones([1, 2]).expand([3, 2]).sum(axis=0),
        "expand_as": paddle.expand_as(paddle.to_tensor([1.0, 2.0]), paddle.zeros([2, 2])),
        "broadcast_to": paddle.broadcast_to(paddle.to_tensor([5, 6]), shape=[2, 2]),
        "broadcast_shape": paddle.broadcast_shape([2, 1, 3], [4, 1]),
        "tile": paddle.tile(paddle.to_tensor([1, 2]), repeat_times=[2, 2]),
        "again": cube.tile([1, 1, 2]).shape,
        "slice": paddle.slice(cube, axes=[1, 2], starts=[0, 1], ends=[2, 3]),
        "strided": paddle.strided_slice(x, axes=[0], starts=[20], ends=[1], strides=[-6]),
        "roll": paddle.roll(cube, shifts=[1, 1], axis=[0, 2])[0],
        "repeat": paddle.repeat_interleave(paddle.to_tensor([1, 2, 3]), 2),
    }


def joining_and_splitting(paddle):
    """Batches put together and taken apart."""
    a, b = paddle.to_tensor(wave(2, 3)), paddle.to_tensor(wave(2, 3, phase=1.0))
    both = paddle.concat([a, b], axis=-1)
    left, right = paddle.split(both, num_or_sections=2, axis=1)
    uneven = paddle.split(paddle.arange(7), [1, -1, 2])
    stacked = paddle.stack([a, b], axis=1)
    return {
        "both": both,
        "equal": [paddle.equal_all(left, a), paddle.equal_all(right, b)],
        "uneven": uneven,
        "stacked": stacked,
        "chunks": paddle.chunk(paddle.arange(6), chunks=3),
        "method": [t.shape for t in both.chunk(2, axis=0)],
        "unbind": paddle.unbind(stacked, axis=1)[1],
        "added": paddle.add_n([a, b, a]),
        "rows": [row.sum() for row in a],
    }


def indexing(paddle):
    """Everything that may stand between the brackets."""
    x = paddle.to_tensor(wave(4, 5, 3))
    index = paddle.to_tensor([3, 0, 0])
    mask = x > 0.5
    y = x.clone()
    y[0, :, 1] = 7.0
    y[paddle.to_tensor([1, 2]), 0] = paddle.zeros([3])
    y[mask] = -1.0
    y[..., -1] += 10
    grid = np.array([0, 2])
    return {
        "row": x[1],
        "negative": x[-1, -2],
        "slice": x[1:3, ::2, 0],
        "reverse": x[::-1, 0, 0],
        "ellipsis": x[..., 2],
        "new_axis": x[:, None, 0].shape,
        "integers": x[index, 1],
        "pairs": x[[0, 1], [2, 3]],
        "array": x[grid, :, grid],
        "mask": x[mask],
        "rows": x[x[:, 0, 0] > 0].shape,
        "number": x[2, 3, 1].item(),
        "written": y,
    }


def gathering(paddle):
    """Picking elements by index, the named ways."""
    x = paddle.to_tensor(wave(4, 3))
    rows = paddle.to_tensor([0, 2, 2])
    places = paddle.to_tensor([[0, 1], [3, 2]])
    picked = paddle.take_along_axis(x, paddle.to_tensor([[0], [2], [1], [0]]), axis=1)
    return {
        "gather": paddle.gather(x, rows),
        "columns": paddle.gather(x, paddle.to_tensor([2, 0]), axis=1),
        "gather_nd": paddle.gather_nd(x, places),
        "index_select": paddle.index_select(x, paddle.to_tensor([1]), axis=0),
        "masked_select": paddle.masked_select(x, x < 0),
        "where": paddle.where(x > 0, x, paddle.zeros_like(x)),
        "nonzero": paddle.nonzero(paddle.to_tensor([0.0, 3.0, 0.0, 1.0])),
        "tuple": paddle.nonzero(x > 0.9, as_tuple=True),
        "method": (x > 0.9).nonzero().shape,
        "along": picked,
        "put": paddle.put_along_axis(x, paddle.to_tensor([[0]]), 9.0, axis=1),
        "scatter": paddle.scatter(x, paddle.to_tensor([1, 3]), paddle.ones([2, 3])),
        "summed": paddle.scatter(
            paddle.zeros([3, 2]), paddle.to_tensor([0, 0]), paddle.ones([2, 2]), overwrite=False
        ),
        "one_hot": paddle.nn.functional.one_hot(rows, num_classes=4),
    }


def conversions(paddle):
    """To Python and NumPy and back."""
    x = paddle.to_tensor([[1.5, -2.5], [0.0, 4.0]])
    n = x.numpy()
    n[0, 0] = 100.0
    return {
        "list": x.tolist(),
        "array": n,
        "kept": x,
        "item": paddle.to_tensor([[3]]).item(),
        "one": x.item(1),
        "python": [float(x[0, 0]), int(x[1, 1]), bool(x[1, 0])],
        "astype": x.astype("int64"),
        "cast": x.cast("float64"),
        "to_bool": x.astype(paddle.bool),
        "by_numpy": x.astype(np.int32),
        "np_array": np.array(x).sum(),
        "inside": [1.5 in x[0], 9.0 in x[0]],
        "summed": sum([x[0], x[1]]),
        "largest": max(paddle.to_tensor([1.0, 3.0, 2.0])),
        "format": f"{paddle.to_tensor(2.5):.2f}",
        "as_index": ["a", "b", "c"][paddle.to_tensor(1)],
        "lists": paddle.to_tensor([paddle.to_tensor(1.0), paddle.to_tensor(2.0)]),
    }


def printing(paddle):
    """What a reader sees."""
    weights = paddle.to_tensor([[0.5, -1.25], [3.0, 1e-3]], stop_gradient=False)
    return [
        str(paddle.to_tensor([1, 2, 3])),
        repr(weights),
        str(paddle.to_tensor(2.5)),
        str(paddle.ones([2, 2], dtype="bool")),
        str(paddle.zeros([0, 3])),
        str(paddle.to_tensor([float("nan"), float("inf"), 1.0])),
        str(paddle.float32),
    ]


def sorting_and_searching(paddle):
    """Order, extremes, and where they are."""
    x = paddle.to_tensor(wave(3, 5))
    values, places = paddle.topk(x, k=2, axis=1)
    low, _ = x.topk(2, largest=False)
    unique, inverse, counts = paddle.unique(
        paddle.to_tensor([3, 1, 3, 2, 1]), return_inverse=True, return_counts=True
    )
    edges = paddle.to_tensor([0.0, 1.0, 2.0])
    return {
        "sort": paddle.sort(x, axis=0),
        "down": x.sort(descending=True)[0],
        "argsort": paddle.argsort(x, axis=-1),
        "argmax": [paddle.argmax(x), x.argmax(axis=1), x.argmax(axis=0, keepdim=True)],
        "argmin": paddle.argmin(x, axis=1),
        "top": [values, places, low],
        "unique": [unique, inverse, counts],
        "searched": paddle.searchsorted(edges, paddle.to_tensor([0.5, 1.0, 5.0]), right=True),
        "mode": paddle.mode(paddle.to_tensor([[2.0, 2.0, 3.0], [1.0, 5.0, 5.0]]))[0],
        "kth": paddle.kthvalue(x, 2)[0],
    }
