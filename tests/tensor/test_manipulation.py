"""Shapes, joining, gather and scatter against PyTorch: values, first and second derivatives."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle.engine.core.op import OPS
from minipaddle.engine.core.record import Spec
from minipaddle.testing import check_grad

RNG = np.random.default_rng(5)
X = RNG.standard_normal((2, 3, 4))
M = RNG.standard_normal((3, 4))
V = RNG.standard_normal(4)
I = np.array([2, 0, 0])
T = paddle.to_tensor


def listed(y):
    return list(y) if isinstance(y, list | tuple) else [y]


def agree(ours, theirs, *arrays, second=True):
    """`ours` (on tensors) and `theirs` (on torch's) give the same values and gradients."""
    floating = [k for k, a in enumerate(arrays) if a.dtype == np.float64]
    xs = [T(a, stop_gradient=k not in floating) for k, a in enumerate(arrays)]
    ts = [torch.tensor(a, requires_grad=k in floating) for k, a in enumerate(arrays)]
    ys, want = listed(ours(*xs)), listed(theirs(*ts))
    assert len(ys) == len(want)
    weights = [RNG.standard_normal(tuple(y.shape)) for y in ys]
    for y, w in zip(ys, want, strict=True):
        assert tuple(y.shape) == tuple(w.shape)
        np.testing.assert_allclose(y.numpy(), w.detach().numpy(), rtol=1e-12)
    pairs = [(y, w, g) for y, w, g in zip(ys, want, weights, strict=True) if not y.stop_gradient]
    if not pairs:
        return
    found = paddle.grad(
        [y for y, _, _ in pairs], [xs[k] for k in floating], [T(g) for _, _, g in pairs]
    )
    hoped = torch.autograd.grad(
        [w for _, w, _ in pairs], [ts[k] for k in floating], [torch.tensor(g) for _, _, g in pairs]
    )
    for a, b in zip(found, hoped, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-10, atol=1e-12)
    if second:
        check_grad(lambda *v: [y * y * y for y in listed(ours(*v))], *arrays, order=2)


CASES = {
    # shapes
    "reshape": (lambda x: paddle.reshape(x, [4, -1]), lambda x: x.reshape(4, 6), X),
    "reshape, 0 copies": (lambda x: x.reshape([0, -1]), lambda x: x.reshape(2, 12), X),
    "reshape, numbers": (lambda x: x.reshape(6, 4), lambda x: x.reshape(6, 4), X),
    "reshape, tensors": (lambda x: x.reshape([T(6), T([4])]), lambda x: x.reshape(6, 4), X),
    "reshape, tensor": (lambda x: x.reshape(T([6, 4])), lambda x: x.reshape(6, 4), X),
    "view": (lambda x: x.view([12, 2]), lambda x: x.view(12, 2), X),
    "view_as": (lambda x, y: x.view_as(y), lambda x, y: x.view(12), M, np.zeros(12, "int64")),
    "flatten": (paddle.flatten, torch.flatten, X),
    "flatten 0-D": (paddle.flatten, torch.flatten, np.array(2.0)),
    "flatten from 1": (lambda x: x.flatten(1, -1), lambda x: x.flatten(1), X),
    "unflatten": (lambda x: x.unflatten(-1, [2, -1]), lambda x: x.unflatten(-1, (2, 2)), X),
    "squeeze": (paddle.squeeze, torch.squeeze, X[:1, :, :1]),
    "squeeze some": (lambda x: x.squeeze([0, 1]), lambda x: x.squeeze(0), X[:1]),
    "unsqueeze": (lambda x: x.unsqueeze(-1), lambda x: x.unsqueeze(-1), X),
    "unsqueeze two": (lambda x: x.unsqueeze([0, 2]), lambda x: x[None, :, None], M),
    "unsqueeze tensor": (lambda x: x.unsqueeze(T([0, 0])), lambda x: x[None, None], M),
    "atleast_1d": (paddle.atleast_1d, torch.atleast_1d, np.array(2.0)),
    "atleast_2d": (paddle.atleast_2d, torch.atleast_2d, V),
    "atleast_3d": (paddle.atleast_3d, torch.atleast_3d, M),
    "atleast_3d of many": (lambda *x: paddle.atleast_3d(*x), lambda *x: torch.atleast_3d(*x), V, X),
    "transpose": (lambda x: x.transpose([2, 0, 1]), lambda x: x.permute(2, 0, 1), X),
    "transpose, numbers": (lambda x: x.transpose(0, -1), lambda x: x.transpose(0, -1), X),
    "swapaxes": (lambda x: x.swapaxes(1, 2), lambda x: x.swapaxes(1, 2), X),
    "permute": (lambda x: x.permute(1, 2, 0), lambda x: x.permute(1, 2, 0), X),
    "t": (paddle.t, torch.t, M),
    "t of a vector": (paddle.t, torch.t, V),
    "moveaxis": (lambda x: paddle.moveaxis(x, 0, -1), lambda x: x.moveaxis(0, -1), X),
    "moveaxis two": (
        lambda x: paddle.moveaxis(x, [0, 1], [-1, 0]),
        lambda x: x.moveaxis((0, 1), (-1, 0)),
        X,
    ),
    # turning round, repeating
    "flip": (lambda x: x.flip([0, -1]), lambda x: x.flip(0, -1), X),
    "flip one": (lambda x: x.flip(1), lambda x: x.flip(1), X),
    "roll": (lambda x: x.roll(5), lambda x: x.roll(5), X),
    "roll axes": (lambda x: x.roll([1, -2], [0, 2]), lambda x: x.roll((1, -2), (0, 2)), X),
    "tile": (lambda x: x.tile([2, 1, 3]), lambda x: x.tile(2, 1, 3), M),
    "tile, fewer": (lambda x: paddle.tile(x, 2), lambda x: x.tile(2), M),
    "tile, tensor": (lambda x: x.tile(T([2, 2])), lambda x: x.tile(2, 2), M),
    "expand": (lambda x: x.expand([2, -1, 5]), lambda x: x.expand(2, 3, 5), M[:, :1]),
    "expand, numbers": (lambda x: x.expand(2, 3, 4), lambda x: x.expand(2, 3, 4), M),
    "expand_as": (
        lambda x, y: x.expand_as(y),
        lambda x, y: x.expand_as(y),
        V,
        np.zeros((2, 4), int),
    ),
    "broadcast_to": (lambda x: paddle.broadcast_to(x, [2, 4]), lambda x: x.expand(2, 4), V),
    "broadcast_tensors": (
        lambda *x: paddle.broadcast_tensors(x),
        torch.broadcast_tensors,
        M,
        X[:, :1, :1],
    ),
    "repeat_interleave": (
        lambda x: x.repeat_interleave(2, 1),
        lambda x: x.repeat_interleave(2, 1),
        M,
    ),
    "repeat_interleave flat": (
        lambda x: x.repeat_interleave(3),
        lambda x: x.repeat_interleave(3),
        M,
    ),
    "repeat_interleave by tensor": (
        lambda x: x.repeat_interleave(T(I), 0),
        lambda x: x.repeat_interleave(torch.tensor(I), 0),
        M,
    ),
    # joining and splitting
    "concat": (lambda *x: paddle.concat(x, 1), lambda *x: torch.cat(x, 1), M, M[:, :2]),
    "concat, tensor axis": (lambda *x: paddle.concat(x, T(-1)), lambda *x: torch.cat(x, 1), M, M),
    "stack": (lambda *x: paddle.stack(x, -1), lambda *x: torch.stack(x, -1), M, M),
    "hstack": (lambda *x: paddle.hstack(x), lambda *x: torch.hstack(x), M, M),
    "hstack 0-D": (lambda *x: paddle.hstack(x), lambda *x: torch.hstack(x), V[0], V[1]),
    "vstack": (lambda *x: paddle.vstack(x), lambda *x: torch.vstack(x), V, M),
    "dstack": (lambda *x: paddle.dstack(x), lambda *x: torch.dstack(x), M, M),
    "meshgrid": (
        lambda *x: paddle.meshgrid(*x),
        lambda *x: torch.meshgrid(*x, indexing="ij"),
        V,
        V[:3],
        V[0],
    ),
    "meshgrid xy": (
        lambda *x: paddle.meshgrid(x, indexing="xy"),
        lambda *x: torch.meshgrid(*x, indexing="xy"),
        V,
        V[:3],
    ),
    "split": (lambda x: x.split(2, axis=-1), lambda x: x.split(2, -1), X),
    "split sizes": (lambda x: x.split([1, -1], 1), lambda x: x.split([1, 2], 1), X),
    "chunk": (lambda x: x.chunk(3, 1), lambda x: x.chunk(3, 1), X),
    "tensor_split": (lambda x: x.tensor_split(3, 2), lambda x: x.tensor_split(3, 2), X),
    "tensor_split at": (
        lambda x: x.tensor_split([1, 3, 2, -1, 9], -1),
        lambda x: x.tensor_split([1, 3, 2, -1, 9], -1),
        X,
    ),
    "hsplit": (lambda x: x.hsplit(2), lambda x: x.hsplit(2), V),
    "hsplit matrix": (lambda x: x.hsplit([1]), lambda x: x.hsplit([1]), M),
    "vsplit": (lambda x: x.vsplit(3), lambda x: x.vsplit(3), M),
    "dsplit": (lambda x: x.dsplit(2), lambda x: x.dsplit(2), X),
    "unbind": (lambda x: x.unbind(1), lambda x: x.unbind(1), X),
    "unstack": (lambda x: x.unstack(-1, 4), lambda x: x.unbind(-1), X),
    # cutting
    "slice": (lambda x: x.slice([0, 2], [-1, 1], [9, -1]), lambda x: x[-1:, :, 1:-1], X),
    "slice, tensors": (lambda x: x.slice([1], [T(1)], T([3])), lambda x: x[:, 1:3], X),
    "strided_slice": (
        lambda x: x.strided_slice([0, 2], [0, 3], [2, 0], [1, -2]),
        lambda x: x[..., [3, 1]],
        X,
    ),
    "strided_slice past the front": (
        lambda x: x.strided_slice([0], [3], [-9], [-1]),
        lambda x: x.flip(0),
        V,
    ),
    "crop": (lambda x: x.crop([1, -1, 2], [1, 1, 0]), lambda x: x[1:, 1:, :2], X),
    "crop nothing": (lambda x: x.crop(), lambda x: x, X),
    "unfold": (lambda x: x.unfold(1, 2, 1), lambda x: x.unfold(1, 2, 1), X),
    "unfold, apart": (lambda x: x.unfold(-1, 2, 2), lambda x: x.unfold(-1, 2, 2), X),
    "as_strided": (
        lambda x: x.as_strided([2, 3], [1, 2], 4),
        lambda x: x.as_strided((2, 3), (1, 2), 4),
        X,
    ),
    # diagonals
    "diag": (lambda x: paddle.diag(x, -1), lambda x: torch.diag(x, -1), V),
    "diag of a matrix": (lambda x: paddle.diag(x, 1), lambda x: torch.diag(x, 1), M),
    "diagflat": (lambda x: paddle.diagflat(x, 2), lambda x: torch.diagflat(x, 2), M[:2, :2]),
    "diag_embed": (
        lambda x: paddle.diag_embed(x, 1, 0, 2),
        lambda x: torch.diag_embed(x, 1, 0, 2),
        M,
    ),
    "diagonal": (lambda x: x.diagonal(1, 2, 0), lambda x: x.diagonal(1, 2, 0), X),
    "tril": (lambda x: x.tril(1), lambda x: x.tril(1), X),
    "triu": (lambda x: x.triu(-1), lambda x: x.triu(-1), X),
    # gathering
    "gather": (lambda x, i: x.gather(i, 1), lambda x, i: x[:, i], X, I),
    "gather, a column": (lambda x, i: x.gather(i), lambda x, i: x[i[:, 0]], M, I[:, None]),
    "gather, one": (lambda x, i: x.gather(i, -1), lambda x, i: x[..., i], M, np.array(-1)),
    "index_select": (lambda x, i: x.index_select(i, 2), lambda x, i: x.index_select(2, i), X, I),
    "index_sample": (paddle.index_sample, lambda x, i: x.gather(1, i), M, np.array([[3, 0]] * 3)),
    "index_add": (
        lambda x, i, v: x.index_add(i, 1, v, alpha=2),
        lambda x, i, v: x.index_add(1, i, v, alpha=2),
        X,
        I,
        X + 1,
    ),
    "index_fill": (
        lambda x, i: x.index_fill(i, 1, 5.0),
        lambda x, i: x.index_fill(1, i, 5.0),
        X,
        I,
    ),
    "gather_nd": (
        paddle.gather_nd,
        lambda x, i: x[i[..., 0], i[..., 1]],
        X,
        np.array([[[1, 2], [0, -1]], [[0, 0], [1, 2]]]),
    ),
    "gather_nd of nothing": (
        paddle.gather_nd,
        lambda x, i: x.expand(2, 3, 4),
        M,
        np.zeros((2, 0), "int64"),
    ),
    "scatter_nd": (
        lambda i, v: paddle.scatter_nd(i, v, [5, 4]),
        lambda i, v: torch.zeros(5, 4, dtype=v.dtype).index_add(0, i[:, 0], v),
        I[:, None],
        M,
    ),
    "scatter_nd_add": (
        lambda x, i, v: x.scatter_nd_add(i, v),
        lambda x, i, v: x.index_put((i[:, 0], i[:, 1]), v, accumulate=True),
        M,
        np.array([[0, 1], [0, 1], [2, 3]]),
        V[:3],
    ),
    "scatter": (
        lambda x, i, v: x.scatter(i, v),
        lambda x, i, v: x.index_put((i,), v),
        M,
        np.array([2, 0]),
        M[:2] + 1,
    ),
    "scatter, summed": (
        lambda x, i, v: x.scatter(i, v, overwrite=False),
        lambda x, i, v: x.index_fill(0, i, 0.0).index_add(0, i, v),
        M,
        I,
        M + 1,
    ),
    "index_put": (
        lambda x, i, v: x.index_put((i, T([1, 1, 3])), v),
        lambda x, i, v: x.index_put((i, torch.tensor([1, 1, 3])), v),
        M,
        np.array([2, 0, 0]),
        V[:3],
    ),
    "index_put, summed": (
        lambda x, i, v: x.index_put((i,), v, accumulate=True),
        lambda x, i, v: x.index_put((i,), v, accumulate=True),
        M,
        I,
        V,
    ),
    "index_put, mask": (
        lambda x, v: x.index_put([T(M > 0)], v),
        lambda x, v: x.index_put([torch.tensor(M > 0)], v),
        M,
        V[0],
    ),
    "take": (lambda x, i: x.take(i), lambda x, i: x.flatten()[i], X, np.array([[0, -1], [5, 5]])),
    "take, wrap": (lambda x: x.take(T([-30, 30]), "wrap"), lambda x: x.flatten()[[18, 6]], X),
    "take, clip": (lambda x: x.take(T([-3, 30]), "clip"), lambda x: x.flatten()[[0, 23]], X),
    # one place along an axis
    "take_along_axis": (
        lambda x, i: x.take_along_axis(i, 0),
        lambda x, i: torch.take_along_dim(x, i, 0),
        M,
        np.array([[2, 0, 1, -1], [0, 0, 1, 1]]) % 3,
    ),
    "take_along_axis, spread": (
        lambda x, i: x.take_along_axis(i, 1),
        lambda x, i: torch.take_along_dim(x, i, 1),
        X,
        np.array([[[2], [1]]])[..., :1],
    ),
    "take_along_axis, short": (
        lambda x, i: x.take_along_axis(i, 1, broadcast=False),
        lambda x, i: x.gather(1, i),
        M,
        np.array([[3, 3, 0]]),
    ),
    "put_along_axis": (
        lambda x, i, v: x.put_along_axis(i, v, 1),
        lambda x, i, v: x.scatter(1, i, v),
        M,
        np.array([[3, 0]] * 3),
        M[:, :2] + 1,
    ),
    "put_along_axis, a number": (
        lambda x, i: x.put_along_axis(i, 7.0, 1),
        lambda x, i: x.scatter(1, i.expand(3, 1), 7.0),
        M,
        np.array([[2]]),
    ),
    "put_along_axis, more values": (
        lambda x, i, v: x.put_along_axis(i, v, 0, broadcast=False),
        lambda x, i, v: x.scatter(0, i, v[:1, :2]),
        M,
        np.array([[2, 1]]),
        M + 1,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_torch(name):
    ours, theirs, *arrays = CASES[name]
    agree(ours, theirs, *map(np.asarray, arrays))


TWICE = np.array([[0, 0, 3], [1, 2, 1], [3, 3, 3]])
HOW = {
    "add": "sum",
    "mul": "prod",
    "multiply": "prod",
    "mean": "mean",
    "amin": "amin",
    "amax": "amax",
}


@pytest.mark.parametrize("self_too", [True, False])
@pytest.mark.parametrize("reduce", HOW)
def test_put_along_axis_folds(reduce, self_too):
    values = RNG.standard_normal((3, 3))
    agree(
        lambda x, i, v: x.put_along_axis(i, v, 1, reduce, include_self=self_too),
        lambda x, i, v: x.scatter_reduce(1, i, v, HOW[reduce], include_self=self_too),
        M,
        TWICE,
        values,
        second=reduce not in ("amin", "amax"),
    )


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
@pytest.mark.parametrize("reduce", ["amin", "amax", "mean", "add"])
def test_put_along_axis_of_whole_numbers(reduce, dtype):
    x, v = np.array([[9, 1, 4]], dtype), np.array([[3, 8]], dtype)
    ours = paddle.put_along_axis(T(x), T([[0, 0]]), T(v), 1, reduce, include_self=False)
    want = {"amin": 3, "amax": 8, "mean": 5, "add": 11}[reduce]
    assert ours.tolist() == [[want, 1, 4]]
    assert ours.dtype == dtype


def test_masks():
    mask = M > 0
    agree(lambda x: x.masked_select(T(mask)), lambda x: x.masked_select(torch.tensor(mask)), M)
    row = V > 0
    agree(lambda x: x.masked_select(T(row)), lambda x: x.masked_select(torch.tensor(row)), M)
    agree(
        lambda x, v: x.masked_fill(T(mask), v),
        lambda x, v: x.masked_fill(torch.tensor(mask), v),
        M,
        np.array(2.0),
    )
    agree(
        lambda x, v: x.masked_scatter(T(mask), v),
        lambda x, v: x.masked_scatter(torch.tensor(mask), v),
        M,
        X,
    )
    filled = paddle.to_tensor([1, 2]).masked_fill(T([True, False]), 7.9)
    assert filled.tolist() == [7, 2]
    assert filled.dtype == "int64"


def test_rot90():
    for k in range(-2, 6):
        agree(lambda x: paddle.rot90(x, k, [2, 0]), lambda x: x.rot90(k, (2, 0)), X)  # noqa: B023


def test_shard_index():
    shards = [paddle.shard_index(paddle.arange(5), 5, 2, k, -7).tolist() for k in (0, 1)]
    assert shards == [[0, 1, 2, -7, -7], [-7, -7, -7, 0, 1]]


def test_broadcast_shape():
    assert paddle.broadcast_shape([2, 1, 3], [4, 1]) == [2, 4, 3]


def spec(*shape, dtype="float32"):
    return Spec(shape, np.dtype(dtype))


@pytest.mark.parametrize(
    ("name", "specs", "attrs", "words"),
    [
        ("tile", [spec(2, 3)], {"repeats": (2,)}, "1 repeats for the 2 axes"),
        ("pad", [spec(2)], {"widths": ((0, -1),), "value": 0}, "counts >= 0"),
        ("slice", [spec(2)], {"index": (0, 0)}, "too many indices"),
        ("split", [spec(4)], {"sizes": (1, 2), "axis": 0}, "do not add up"),
        ("flat_index", [spec(2)], {"shape": (3,)}, "whole numbers"),
        ("put", [spec(2), spec(1, dtype="int64"), spec(3)], {"axis": 0}, "does not fit|broadcast"),
        ("slice_assign", [spec(2), spec(2, 2)], {"index": ()}, "does not fit"),
        ("reinterpret", [spec(3)], {"dtype": np.dtype("float64")}, "cannot be read"),
    ],
)
def test_shape_rules_teach(name, specs, attrs, words):
    with pytest.raises((ValueError, IndexError, TypeError), match=words):
        OPS[name].infer(*specs, **attrs)


IN_PLACE = {
    "index_add": (T(I), 1, T(M[:, :3])),
    "index_fill": (T(I), 1, 5.0),
    "index_put": ([T(I)], T(V)),
    "masked_fill": (T(M > 0), 2.0),
    "masked_scatter": (T(M > 0), T(X)),
    "put_along_axis": (T(I[:, None]), 7.0, 1),
    "scatter": (T(I[:2]), T(M[:2])),
    "tril": (),
    "triu": (1,),
    "reshape": ([4, 3],),
    "unsqueeze": (0,),
    "transpose": ([1, 0],),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place(name):
    args = IN_PLACE[name]
    want = getattr(paddle, name)(T(M), *args)
    x = T(M)
    assert getattr(x, f"{name}_")(*args) is x
    assert x.tolist() == want.tolist()
    leaf = T(M, stop_gradient=False)
    y = leaf * 1
    getattr(y, f"{name}_")(*args)
    assert y.tolist() == want.tolist()
    ours = paddle.grad(y * y, leaf)
    theirs = paddle.grad(getattr(paddle, name)(leaf * 1, *args) ** 2, leaf)
    np.testing.assert_allclose(ours[0].numpy(), theirs[0].numpy())


def test_view_reads_bytes():
    x = np.arange(6, dtype="float32").reshape(2, 3)
    assert T(x).view("int32").tolist() == x.view("int32").tolist()
    assert T(x).view("uint8").shape == [2, 12]
    assert T(x).view("uint8").view("float32").tolist() == x.tolist()


def test_joining_promotes_floating_dtypes_as_addition_does():
    half, single = paddle.ones([2], "float16"), paddle.ones([2], "float32")
    assert paddle.concat([half, single]).dtype == "float32"
    assert paddle.stack([half, half]).dtype == "float16"
    with pytest.raises(TypeError, match="int64"):
        paddle.concat([single, paddle.arange(2)])


def test_empty_tensors():
    empty = paddle.zeros([0, 3])
    assert empty.reshape([-1, 3]).shape == [0, 3]
    assert empty.reshape([0, -1]).shape == [0, 3]
    assert empty.reshape([3, -1]).shape == [3, 0]
    assert paddle.concat([empty, paddle.ones([1, 3])]).shape == [1, 3]
    assert empty.transpose([1, 0]).tile([2, 1]).shape == [6, 0]
    assert paddle.gather(paddle.ones([2, 3]), T([], dtype="int64")).shape == [0, 3]
    assert paddle.unbind(empty) == []


def test_views_share_memory_and_splits_cost_nothing():
    x = paddle.zeros([4, 6])
    whole = [x.reshape([24]), x.transpose([1, 0]), x[1:], x.expand([2, 4, 6])]
    parts = [*whole, *paddle.split(x, 2, axis=1)]
    assert all(np.shares_memory(x.array, p.array) for p in [*parts, x.unfold(0, 2, 1)])


def test_a_gradient_flows_through_the_pieces_that_are_used():
    x = T(X, stop_gradient=False)
    first, _, last = paddle.split(x, 3, axis=1)
    (first * 2 + last).sum().backward()
    assert x.grad[:, :, 0].tolist() == [[2, 0, 1]] * 2


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.lists(st.integers(1, 3), max_size=4), st.data())
def test_reshape_fills_in_the_hole(shape, data):
    wanted = [*data.draw(st.permutations(shape)), 1]
    hole = data.draw(st.integers(0, len(wanted) - 1))
    with_hole = [-1 if d == hole else n for d, n in enumerate(wanted)]
    assert paddle.reshape(paddle.zeros(shape), with_hole).shape == wanted


ERRORS = [
    (lambda: paddle.where_(T([True]), T([1.0])), ValueError, "both: x is changed"),
    (lambda: paddle.reshape(T(X), [5, -1]), ValueError, "divide the number of elements"),
    (lambda: paddle.reshape(T(X), [-1, -1]), ValueError, "at most one -1"),
    (lambda: paddle.reshape(T(X), [5, 5]), ValueError, "24 elements"),
    (lambda: paddle.reshape(T(X), [0, 0, 0, 0]), ValueError, "24 elements"),
    (lambda: paddle.reshape(T(X), "ab"), TypeError, "shape='ab'"),
    (lambda: paddle.reshape(T(X), [2.5]), TypeError, "whole number"),
    (lambda: paddle.flatten(T(X), 2, 1), ValueError, "axis 2 to 1"),
    (lambda: paddle.squeeze(T(X), 3), ValueError, "axis 3 is out of range"),
    (lambda: paddle.unsqueeze(T(V), [2, 0]), ValueError, "axis 2 is out of range"),
    (lambda: paddle.transpose(T(X), [0, 1]), ValueError, "no order of the 3 axes"),
    (lambda: paddle.transpose(T(X), [0, 1, 1]), ValueError, "no order"),
    (lambda: paddle.t(T(X)), ValueError, "at most two dimensions"),
    (lambda: paddle.moveaxis(T(X), [0, 1], [0]), ValueError, "2 axes to 1"),
    (lambda: paddle.moveaxis(T(X), [0, 0], [0, 1]), ValueError, "twice"),
    (lambda: paddle.roll(T(X), [1, 2], [0]), ValueError, "2 shifts along 1"),
    (lambda: paddle.expand(T(V), [2, 2]), ValueError, "does not broadcast"),
    (lambda: paddle.expand(T(V), [-1, 4]), ValueError, "negative size"),
    (lambda: paddle.tile(T(V), [2.0]), TypeError, "repeat_times"),
    (lambda: paddle.concat(T(M)), TypeError, "a list of one or more"),
    (lambda: paddle.concat([]), TypeError, "a list of one or more"),
    (lambda: paddle.concat([T(M), T(V)]), ValueError, "cannot be joined"),
    (lambda: paddle.concat([T(V[0]), T(V[0])]), ValueError, "no axis to be joined"),
    (lambda: paddle.concat([T(M), T(M)], 2), ValueError, "axis 2 is out of range"),
    (lambda: paddle.stack([T(M), T(V)]), ValueError, "equal shapes"),
    (lambda: paddle.split(T(V), 3), ValueError, "tensor_split"),
    (lambda: paddle.split(T(V), 0), ValueError, "tensor_split"),
    (lambda: paddle.split(T(V), [1, 2]), ValueError, "add up to it"),
    (lambda: paddle.split(T(V), [5, -1]), ValueError, "add up to it"),
    (lambda: paddle.split(T(V), [-1, -1]), ValueError, "add up to it"),
    (lambda: paddle.unstack(T(V), 0, 3), ValueError, "gives 4, not 3"),
    (lambda: paddle.meshgrid(T(V), indexing="yx"), ValueError, "ij"),
    (lambda: paddle.slice(T(X), [0, 1], [0], [1]), ValueError, "2 axes"),
    (lambda: paddle.strided_slice(T(V), [0], [0], [3], [0]), ValueError, "step"),
    (lambda: paddle.crop(T(V), [3], [2]), ValueError, "leaves"),
    (lambda: paddle.crop(T(M), [3], [2]), ValueError, "crop"),
    (lambda: paddle.as_strided(T(V), [3], [2]), ValueError, "reaches element 4 of 4"),
    (lambda: paddle.as_strided(T(V), [2], [-1]), ValueError, "reaches element -1"),
    (lambda: paddle.unfold(T(V), 0, 5, 1), ValueError, "windows of 5"),
    (lambda: T(V).view("bool").view("float64")[:1].reshape([3]), ValueError, "fill shape"),
    (lambda: paddle.to_tensor([[True]]).view("float32"), ValueError, "float32"),
    (lambda: paddle.diag(T(X)), ValueError, "diag_embed"),
    (lambda: paddle.diag_embed(T(V), 0, 1, 1), ValueError, "must differ"),
    (lambda: paddle.diagonal(T(X), 0, 1, -2), ValueError, "must differ"),
    (lambda: paddle.tril(T(V)), ValueError, "two dimensions"),
    (lambda: paddle.gather(T(M), T([[0, 1]])), ValueError, "single column"),
    (lambda: paddle.gather(T(M), T([3])), IndexError, "index 3 is out of bounds"),
    (lambda: paddle.gather(T(M), T([0.5])), TypeError, "whole numbers"),
    (lambda: paddle.gather_nd(T(M), T([[0, 0, 0]])), ValueError, "3 numbers into 2"),
    (lambda: paddle.gather_nd(T(M), T([[0, 9]])), IndexError, "index 9"),
    (lambda: paddle.scatter(T(M), T([0]), T(V[:3])), ValueError, "do not broadcast"),
    (lambda: paddle.index_add(T(M), T([0]), 0, T(V)), ValueError, "is needed"),
    (lambda: paddle.index_sample(T(X), T([[0]])), ValueError, "as many rows"),
    (lambda: paddle.take(T(V), T([0]), "no"), ValueError, "wrap or clip"),
    (lambda: paddle.take_along_axis(T(M), T([0]), 0), ValueError, "as many dimensions"),
    (lambda: paddle.take_along_axis(T(M), T([[0, 0]]), 0), ValueError, "do not broadcast"),
    (lambda: paddle.take_along_axis(T(M[:1]), T([[0]] * 2), 1), ValueError, "do not broadcast"),
    (lambda: paddle.take_along_axis(T(M), T([[0] * 5]), 0, False), ValueError, "do not fit"),
    (lambda: paddle.take_along_axis(T(M), T([[7]]), 1, False), IndexError, "index 7"),
    (lambda: paddle.put_along_axis(T(M), T([[0]]), 1.0, 0, "sum"), ValueError, "reduce='sum'"),
    (lambda: paddle.masked_select(T(V), T([1, 0, 0, 1])), TypeError, "boolean"),
    (lambda: paddle.masked_scatter(T(V), T(V) < 9, T([1.0])), ValueError, "1 values into 4"),
    (lambda: paddle.shard_index(T([1]), 5, 2, 2), ValueError, "from 0 to 1"),
]


@pytest.mark.parametrize("k", range(len(ERRORS)))
def test_errors_teach(k):
    call, error, words = ERRORS[k]
    with pytest.raises(error, match=words.replace("(", r"\(")):
        call()
