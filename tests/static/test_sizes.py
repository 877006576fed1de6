"""Sizes in user code: arithmetic, comparisons, slices, loops, sizes that values decide."""

# ruff: noqa: RUF005 - a table, a line a case
import math

import numpy as np
import pytest

import minipaddle as paddle
from tests.static.open_sizes import compare, spec

F = paddle.nn.functional
CASES = []
BT = [{"b": 3, "t": 4}, {"b": 1, "t": 1}, {"b": 2, "t": 7}]


def case(name, function, *specs, sizes=BT, tol=1e-5, programs=1):
    CASES.append(pytest.param(lambda: function, list(specs), sizes, programs, tol, id=name))


x = spec("b", "t")
case("shape[0]*2+1 reshape", lambda x: paddle.zeros([x.shape[0] * 2 + 1, x.shape[1]]) + x.sum(), x)
case("minus //", lambda x: paddle.ones([(x.shape[0] + 1) // 2]) * x.mean(), x)
case("mod", lambda x: x * (x.shape[0] % 2), x)
case("neg", lambda x: x * (-x.shape[0]), x)
case("min max", lambda x: paddle.ones([min(x.shape[0], 2), max(x.shape[1], 3)]) * x.sum(), x)
case("divmod", lambda x: x * divmod(x.shape[1], 2)[0] + divmod(x.shape[1], 2)[1], x)
case("prod", lambda x: x.reshape([math.prod(x.shape)]), x)
case("sum", lambda x: x * sum(x.shape), x)
case("ret int", lambda x: (x, x.shape[0], x.shape[1] * 2 - 1), x)
case("len", lambda x: x * len(x), x)


def g(x):
    return x * len(x) + x.size + x.numel()


case("len size numel", g, x)
case("paddle.shape", lambda x: paddle.reshape(x, [paddle.shape(x)[0] * paddle.shape(x)[1]]), x)
case("paddle.shape zeros", lambda x: paddle.zeros(paddle.shape(x)) + x, x)
case(
    "paddle.shape concat",
    lambda x: paddle.ones(paddle.concat([paddle.shape(x)[:1], paddle.to_tensor([2])])) * x.sum(),
    x,
)
case("paddle.shape value", lambda x: paddle.shape(x) * 2, x)
case("slice half", lambda x: (x[: x.shape[0] // 2], x[x.shape[0] // 2 :]), x)
case(
    "slices", lambda x: (x[1:], x[:-1], x[:, 1:], x[::2], x[::-1], x[:, -2:], x[-1], x[0], x[:1]), x
)
case("x[-1]", lambda x: x[-1] + x[x.shape[0] - 1], x)
case("arange", lambda x: x + paddle.arange(x.shape[1]).astype("float32"), x)
case("arange2", lambda x: paddle.arange(0, x.shape[1], 2), x)
case(  # the grids of anchors of detectors
    "arange of floats",
    lambda x: paddle.arange(0.5 * 4, paddle.shape(x)[1] * 8.0, step=4.0, dtype="float32"),
    x,
)
case("arange of floats, a size", lambda x: paddle.zeros([x.shape[1]]) + paddle.arange(
    0.0, paddle.shape(x)[1].astype("float64") * 2, 2), x)  # fmt: skip
case("full", lambda x: paddle.full([x.shape[1]], x.shape[0], "float32"), x)
case("full val", lambda x: paddle.full([2, 2], x.shape[0]) * x.sum(), x)
case("expand", lambda x: x.mean(0).expand([x.shape[0], -1]), x)
case("expand2", lambda x: x.sum(0).unsqueeze(0).expand([x.shape[0], x.shape[1]]), x)
case("tile", lambda x: x.tile([x.shape[0], 2]), x)
case("split", lambda x: paddle.concat([x, x], 0).split(2, 0), x)
case("split sizes", lambda x: x.split([1, -1], 1), x)
case("chunk", lambda x: paddle.concat([x, x, x], 1).chunk(3, 1), x)
case("tensor_split", lambda x: paddle.tensor_split(x, 3, 1), x)
case("tdiv", lambda x: x.sum() / x.shape[0] / (x.shape[1] * 2.0), x)
case("float arith", lambda x: x * (x.shape[0] / 2 + 0.5 * x.shape[1]) - 1 / x.shape[0], x)
case("scalar pow", lambda x: x * (x.shape[1] ** 2), x)
case("scalar pow f", lambda x: x * (x.shape[1] ** -0.5), x)


def loop(x):
    s = 0.0
    for i in range(x.shape[1]):
        s = s + x[:, i] * i
    return s


case("loop range dim", loop, x)


def loop2(x):
    s = paddle.zeros([x.shape[1]])
    for row in x:
        s = s + row * row
    return s


case("loop rows", loop2, x)


def loop3(x):
    out = paddle.zeros_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] * 2
    return out


case("loop write", loop3, x)


def loop4(x):
    out = paddle.zeros_like(x)
    for i in range(x.shape[0]):
        out[i : i + 1] = x[i : i + 1] * 2
    return out


case("loop write slice", loop4, x)


def branch(x):
    if x.shape[0] > 2:
        return x * 2
    return x + 1


case("branch on size", branch, x, programs=2)
case("nonzero", lambda x: paddle.nonzero(x > 0), x)
case("nonzero tuple", lambda x: paddle.nonzero(x > 0, as_tuple=True), x)
case("mask select", lambda x: x[x > -9], x)
case("masked_select", lambda x: paddle.masked_select(x, x > -9).sum(), x)
case("masked size", lambda x: (x[x > 0] * 2).shape[0], x)
case("masked sum", lambda x: (x[x > 0] * x[x > 0]).sum(), x)
case("mask rows", lambda x: x[x.sum(1) > 0].mean(0), x)


def masg(x):
    y = x * 1
    y[y > 0] = 0.5
    return y


case("mask assign", lambda x: masg(x), x)


def masg2(x):
    y = x * 1
    y[y > 0] = y[y > 0] * 2
    return y


case("unique", lambda x: paddle.unique((x * 2).round()), x)
case(
    "unique full",
    lambda x: paddle.unique(
        (x * 2).round(), return_index=True, return_inverse=True, return_counts=True
    ),
    x,
)
case("unique ints", lambda x: paddle.unique(x, return_counts=True), spec("b", "t", dtype="int64"))
case(
    "unique_consecutive",
    lambda x: paddle.unique_consecutive(x, return_counts=True),
    spec("b", "t", dtype="int64"),
)
case("repeat t", lambda x, r: paddle.repeat_interleave(x, r, 0), x, spec("b", dtype="int64"))
case(
    "masked_scatter",
    lambda x: paddle.masked_scatter(x, x > 0, paddle.arange(100).astype("float32")),
    x,
)
case("where1", lambda x: paddle.where(x > 0), x)
case("bincount", lambda x: paddle.bincount(x.flatten(), minlength=2), spec("b", "t", dtype="int64"))
case("one_hot", lambda x: F.one_hot(x, 6), spec("b", "t", dtype="int64"))
case("one_hot auto", lambda x: F.one_hot(x), spec("b", "t", dtype="int64"))
case("seqmask", lambda x: F.sequence_mask(x.sum(1)), spec("b", "t", dtype="int64"))
case("seqmask 20", lambda x: F.sequence_mask(x.sum(1), 20), spec("b", "t", dtype="int64"))
case("arange of tensor", lambda x: paddle.arange(x.sum() + 1), spec("b", "t", dtype="int64"))
case("zeros of tensor", lambda x: paddle.zeros([x.max() + 1, 2]), spec("b", "t", dtype="int64"))
case("reshape tensor", lambda x: paddle.reshape(x, [x.shape[0] * paddle.to_tensor(1), -1]), x)
case("x[i] tensor", lambda x: x[(x > 9).sum()], x)
case("x[a:b] tensor", lambda x: x[(x > 9).sum() : (x > 9).sum() + 1], x)
case("x[:k] tensor", lambda x: x[:, : (x[0] > 0).sum()].sum(), x)
case("x[:k] tensor shape", lambda x: x[:, : (x[0] > 0).sum()], x)
case("neg idx tensor", lambda x: x[-1 - (x > 9).sum().astype("int64")], x)
case("to_tensor list", lambda x: paddle.to_tensor([x.sum(), x.mean(), 1.0]), x)
case("to_tensor shape", lambda x: paddle.to_tensor([x.shape[0], 2]), x)
case("stack", lambda x: paddle.stack([x, x * 2], 1), x)
case("einsum", lambda x: paddle.einsum("bt,bs->ts", x, x), x)
case("einsum dots", lambda x: paddle.einsum("...t,...t->...", x, x), x)
case("axis tensor", lambda x: x.sum(axis=paddle.to_tensor(1)), x)
case("axis tensor2", lambda x: x.sum(axis=paddle.to_tensor([0, 1])), x)
case("squeeze", lambda x: x.unsqueeze(1).squeeze(1), x)
case("fstring", lambda x: (x, f"{x.shape[0]}")[0], x)
case("meshgrid", lambda x: paddle.meshgrid(paddle.arange(x.shape[0]), paddle.arange(x.shape[1])), x)
case("linspace", lambda x: paddle.linspace(0, 1, x.shape[1]), x)
case("eye", lambda x: paddle.eye(x.shape[1]) + paddle.eye(x.shape[1]), x)
case("tril", lambda x: paddle.tril(paddle.ones([x.shape[1], x.shape[1]])), x)
case("randn", lambda x: paddle.randn([x.shape[0], 3]).shape, x)
case("rand perm", lambda x: paddle.randperm(x.shape[0]).sum(), x)
case("sort", lambda x: (paddle.sort(x, 1), paddle.argsort(x, 1), paddle.topk(x, 1, 1)), x)
case("median", lambda x: (paddle.median(x, 1),), x)
case(
    "medians",
    lambda x: (
        paddle.median(x),
        paddle.quantile(x, 0.3, 1),
        paddle.nanmedian(x),
        paddle.nanquantile(x, 0.3, 1),
    ),
    x,
)
case("kth", lambda x: paddle.kthvalue(x, 1, 1), x)
case(
    "var",
    lambda x: (
        x.var(1, unbiased=False),
        x.std(0, unbiased=False),
        x.mean(),
        x.var(1, unbiased=False),
    ),
    x,
)
case("var unb", lambda x: x.var(1), x, sizes=[{"b": 3, "t": 4}, {"b": 1, "t": 2}, {"b": 2, "t": 7}])
case("cum", lambda x: (x.cumsum(1), x.cumprod(1), x.logcumsumexp(0), paddle.cummax(x, 1)), x)
case(
    "gather",
    lambda x, i: (paddle.gather(x, i % x.shape[0]), paddle.index_select(x, i % x.shape[0])),
    x,
    spec("k", dtype="int64"),
    sizes=[{"b": 3, "t": 4, "k": 2}, {"b": 1, "t": 1, "k": 5}],
)
case("take_along", lambda x: paddle.take_along_axis(x, paddle.argsort(x, 1), 1), x)
case("put_along", lambda x: paddle.put_along_axis(x, paddle.argsort(x, 1), x * 2, 1), x)
case(
    "scatter_nd",
    lambda x: paddle.scatter_nd(
        paddle.arange(x.shape[0]).unsqueeze(1), x, [x.shape[0] + 1, x.shape[1]]
    ),
    x,
)
case("gather_nd", lambda x: paddle.gather_nd(x, paddle.nonzero(x > -9)), x)
case("flip roll", lambda x: (x.flip(0), x.roll(1, 1), paddle.rot90(x)), x)
case(
    "diag",
    lambda x: (paddle.diag(x[0]), paddle.diagonal(x), paddle.diag_embed(x), paddle.diagflat(x)),
    x,
)
case(
    "kron outer",
    lambda x: (
        paddle.kron(x, x),
        paddle.outer(x[0], x[:, 0]),
        x @ x.T,
        paddle.cdist(x, x),
        paddle.tensordot(x, x, [[0], [0]]),
    ),
    x,
)
case("norms", lambda x: (x.norm(), x.norm(p=1, axis=1), F.normalize(x + 3, axis=1)), x)
case("broadcast two", lambda x, y: x + y, x, spec(1, "t"))
case(
    "add other name",
    lambda x, y: x + y,
    x,
    spec("c", "t"),
    sizes=[{"b": 3, "t": 2, "c": 3}, {"b": 5, "t": 1, "c": 5}],
)
case(
    "concat",
    lambda x, y: paddle.concat([x, y], 0),
    x,
    spec("c", "t"),
    sizes=[{"b": 3, "t": 2, "c": 3}, {"b": 5, "t": 1, "c": 2}],
)
case("diff", lambda x: (paddle.diff(x, axis=1),), x)
case("unfold", lambda x: paddle.unfold(x, 1, 1, 1), x)
case(
    "strided",
    lambda x: (
        paddle.slice(x, [0], [0], [1]),
        paddle.strided_slice(x, [1], [0], [9], [2]),
        paddle.crop(x, [1, 1]),
    ),
    x,
)
case("histogram", lambda x: paddle.histogram(x, 4, -1, 1), x)
case("searchsorted", lambda x: paddle.searchsorted(paddle.sort(x, 1), x), x)
case(
    "lstsq/solve",
    lambda x: paddle.linalg.solve(x @ x.T + paddle.eye(x.shape[0]) * 3, x),
    x,
    tol=1e-4,
)
case(
    "inv/det/svd",
    lambda x: (
        paddle.linalg.det(x @ x.T + paddle.eye(x.shape[0])),
        paddle.linalg.qr(x)[1].abs(),
        paddle.linalg.svd(x)[1],
    ),
    x,
    tol=1e-3,
    programs=2,
)
case("vander", lambda x: paddle.vander(x[0], 3), x)
case("as_complex none", lambda x: paddle.atleast_2d(x[0]), x)
case("bool dim", lambda x: x * 2 if x.shape[0] else x, x)
case("shape list arith", lambda x: x.reshape([-1] + x.shape[1:]), x)
case("shape concat list", lambda x: paddle.zeros(x.shape + [2]) + x.unsqueeze(-1), x)
case("swap reshape", lambda x: x.reshape(x.shape[::-1]), x)
case("batch mean loss", lambda x: F.mse_loss(x, paddle.zeros_like(x)), x)
case("ones [0]*..", lambda x: paddle.nn.functional.softmax(x, -1), x)
case("dropout", lambda x: F.dropout(x, 0.0), x)
case("label_smooth", lambda x: F.label_smooth(F.softmax(x)), x)
case("cosine", lambda x: F.cosine_similarity(x, x * 2 + 1), x)
case("reverse", lambda x: x[::-1, ::-2], x)
case("idx list", lambda x: x[[0, 0]], x)
case("idx arrays", lambda x: x[paddle.arange(x.shape[0]), paddle.zeros([x.shape[0]], "int64")], x)
case("newaxis", lambda x: x[:, None, :] + x[:, :, None] * 0 if False else x[:, None], x)
case("numpy int", lambda x: x.reshape([np.int64(1), -1]), x)


@pytest.mark.parametrize(("make", "specs", "sizes", "programs", "tol"), CASES)
def test_one_program(make, specs, sizes, programs, tol):
    compare(make, specs, sizes, programs, tol)
