"""Cases of reductions, scans and counts."""

import numpy as np
import torch

from tests.ops.cases import Case, booleans, normal, together, uniform, whole

SHAPE = (2, 3, 4)
AXES = [((0, 1, 2), False), ((1,), True), ((0, 2), False), ((), True)]


def over(oracle, build=None, **options) -> list[Case]:
    """A case for each choice of axes; the oracle is `f(x, axes, keepdim)`."""
    build = normal(*SHAPE) if build is None else build
    return [
        Case(build, lambda x, a=a, k=k: oracle(x, a, k), {"axis": a, "keepdim": k}, **options)
        for a, k in AXES
        if a or options.get("none", True)
    ]


def one_by_one(function):
    """A torch reduction of one axis, over several: the last axis first."""

    def oracle(x, axes, keepdim):
        for a in sorted(axes, reverse=True):
            x = function(x, a, keepdim)
        return x

    return oracle


def torch_sum(x, axes, keepdim):
    return torch.sum(x, axes, keepdim) if axes else x.clone()


def torch_mean(x, axes, keepdim):
    return torch.mean(x, axes, keepdim) if axes else x.clone()


def extremum(function):
    return lambda x, axes, keepdim: function(x, axes, keepdim) if axes else x.clone()


def zeros_among(*shape):
    """Whole numbers from -2 to 2 as floats: products with zeros, and ties."""
    return lambda rng: [rng.integers(-2, 3, shape).astype(float)]


def distinct(*shape):
    """No two elements equal, so that an extremum has one place."""
    return lambda rng: [rng.permutation(np.prod(shape)).reshape(shape) / 7 - 1.0]


def shape_only(cases) -> list[Case]:
    return [case._replace(order=0) for case in cases]


def along(oracle, build=None, **options) -> list[Case]:
    """A scan along each axis."""
    build = normal(*SHAPE) if build is None else build
    return [Case(build, lambda x, a=a: oracle(x, a), {"axis": a}, **options) for a in range(3)]


def backwards(oracle):
    return lambda x, a: torch.flip(oracle(torch.flip(x, (a,)), a), (a,))


def scan(oracle, **options) -> list[Case]:
    return [
        case._replace(attrs=case.attrs | {"reverse": reverse})
        for reverse, f in ((False, oracle), (True, backwards(oracle)))
        for case in along(f, **options)
    ]


def recurrence(a, x):
    """h[i] = a[i] h[i-1] + x[i] along axis 1, one by one."""
    h, out = torch.zeros_like(x[:, 0]), []
    for i in range(x.shape[1]):
        h = a[:, i] * h + x[:, i]
        out.append(h)
    return torch.stack(out, 1)


def recurrence_back(a, x):
    return torch.flip(recurrence(torch.flip(a, (1,)), torch.flip(x, (1,))), (1,))


REDUCTIONS = {
    "sum": over(torch_sum)
    + shape_only(over(torch_sum, whole(-9, 9, *SHAPE)))
    + shape_only(over(lambda x, a, k: torch_sum(x.long(), a, k), booleans(*SHAPE))),
    "mean": over(torch_mean),
    "prod": over(one_by_one(torch.prod)) + over(one_by_one(torch.prod), zeros_among(2, 2, 2)),
    "max": over(extremum(torch.amax), distinct(*SHAPE)),
    "min": over(extremum(torch.amin), distinct(*SHAPE)),
    "logsumexp": over(lambda x, a, k: torch.logsumexp(x, a, k))[:3],
    "all": shape_only(over(one_by_one(torch.all), booleans(*SHAPE))),
    "any": shape_only(over(one_by_one(torch.any), booleans(*SHAPE))),
}

PLACES = {
    name: [
        Case(
            distinct(*SHAPE),
            lambda x, a=a, k=k, f=oracle: f(x, a, k),
            {"axis": a, "keepdim": k},
            order=0,
        )
        for a, k in ((None, False), (0, True), (2, False))
    ]
    for name, oracle in {"argmax": torch.argmax, "argmin": torch.argmin}.items()
}

SCANS = {
    "cumsum": scan(torch.cumsum),
    "cumprod": scan(torch.cumprod) + scan(torch.cumprod, build=zeros_among(2, 3, 4)),
    "logcumsumexp": along(torch.logcumsumexp),
    "cummax_index": along(lambda x, a: torch.cummax(x, a)[1], order=0)
    + along(lambda x, a: torch.cummax(x, a)[1], zeros_among(2, 3, 4), order=0),
    "cummin_index": along(lambda x, a: torch.cummin(x, a)[1], order=0)
    + along(lambda x, a: torch.cummin(x, a)[1], zeros_among(2, 3, 4), order=0),
    "recurrence": [
        Case(normal((2, n, 2), (2, n, 2)), oracle, {"axis": 1, "reverse": reverse})
        for n in (1, 2, 5)
        for reverse, oracle in ((False, recurrence), (True, recurrence_back))
    ],
}

COUNTS = {
    "bincount": [
        Case(whole(0, 5, 9), lambda x: torch.bincount(x, minlength=6), {"size": 6}, order=0),
        Case(
            together(whole(0, 5, 9), uniform(0, 1, 9)),
            numpy=lambda x, w: np.bincount(x, w, minlength=6).astype(w.dtype),
            attrs={"size": 6},
            order=0,
        ),
    ],
    "histogram": [
        Case(
            normal(20),
            numpy=lambda x: np.histogram(x, 4, (-1, 1))[0],
            attrs={"bins": 4, "low": -1.0, "high": 1.0, "density": False},
            order=0,
        ),
        Case(
            together(normal(20), uniform(0, 1, 20)),
            numpy=lambda x, w: np.histogram(x, 4, (-1, 1), True, w)[0].astype("float32"),
            attrs={"bins": 4, "low": -1.0, "high": 1.0, "density": True},
            order=0,
        ),
    ],
    "histogramdd": [
        Case(
            normal(20, 2),
            numpy=lambda x: np.histogramdd(x, [2, 3], [(-1, 1), (-2, 2)])[0],
            attrs={"bins": (2, 3), "ranges": ((-1.0, 1.0), (-2.0, 2.0)), "density": False},
            order=0,
        )
    ],
}

CASES = REDUCTIONS | PLACES | SCANS | COUNTS
