"""Pooling, against torch's."""

import torch
import torch.nn.functional as F

from tests.ops.cases import Case, normal

MAX = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
AVG = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}


def windows(size, kernel, stride, padding, ceil=False):
    """The attribute `windows`, by torch's arguments."""
    found = []
    for n, k, s, p in zip(size, kernel, stride, padding):
        room = n + 2 * p - k
        found.append((k, s, p, (-(-room // s) if ceil else room // s) + 1))
    return tuple(found)


def positions(found):
    return tuple(out for *_, out in found)


def distinct(*shapes):
    """A builder of arrays whose elements all differ by a tenth at least: a maximum has no kink
    near. Further inputs are normal."""

    def build(rng):
        first, *rest = shapes
        x = rng.permutation(torch.Size(first).numel()).reshape(first) / 10.0
        return [x, *(rng.standard_normal(s) for s in rest)]

    return build


SETTINGS = [
    ((8,), (2,), (2,), (0,), False),
    ((9,), (3,), (2,), (1,), True),
    ((6, 6), (2, 2), (2, 2), (0, 0), False),
    ((7, 6), (3, 2), (2, 1), (1, 1), False),
    ((7, 7), (2, 3), (3, 2), (0, 1), True),
    ((5, 4), (5, 4), (1, 1), (0, 0), False),  # the whole image
    ((4, 5, 4), (2, 2, 3), (2, 1, 1), (1, 0, 1), False),
]
CASES = {
    "max_pool": [], "max_pool_grad": [], "max_pool_take": [], "max_pool_index": [],
    "avg_pool": [], "avg_pool_grad": [], "adaptive_max_index": [],
}  # fmt: skip
for size, kernel, stride, padding, ceil in SETTINGS:
    n, how = len(size), {"windows": windows(size, kernel, stride, padding, ceil)}
    shape, small = (2, 3, *size), (2, 3, *positions(how["windows"]))
    at = (kernel, stride, padding)

    def pool(x, n=n, at=at, ceil=ceil, mask=False):
        return MAX[n](x, *at, ceil_mode=ceil, return_indices=mask)

    def grad(g, x, y, pool=pool):
        """Linear in g; of x only the places of the maxima matter."""
        return torch.func.vjp(pool, x.detach())[1](g)[0]

    def taken(u, x, y, pool=pool):
        index = pool(x, mask=True)[1].flatten(2)
        return u.flatten(2).gather(2, index).reshape(y.shape)

    def built(first, shape=shape, pool=pool):
        """A builder of a normal array, x and its maxima."""

        def build(rng):
            (x,) = distinct(shape)(rng)
            return [rng.standard_normal(first), x, pool(torch.from_numpy(x)).numpy()]

        return build

    def with_maxima(rng, shape=shape, pool=pool):
        (x,) = distinct(shape)(rng)
        return [x, pool(torch.from_numpy(x)).numpy()]

    CASES["max_pool"].append(Case(distinct(shape), pool, how))
    CASES["max_pool_grad"].append(
        Case(built(small), grad, how, wrt=(0,), dtypes=("float64", "float32"))
    )
    CASES["max_pool_take"].append(
        Case(built(shape), taken, how, wrt=(0,), dtypes=("float64", "float32"))
    )
    CASES["max_pool_index"].append(
        Case(with_maxima, lambda x, y, pool=pool: pool(x, mask=True)[1].int(), how, order=0,
             dtypes=("float64", "float32"))
    )  # fmt: skip
    for exclusive, divisor in ((True, None), (False, None), (True, 3)):
        if divisor and n == 1:
            continue

        def mean(x, n=n, at=at, ceil=ceil, exclusive=exclusive, divisor=divisor):
            more = {"divisor_override": divisor} if n > 1 else {}
            return AVG[n](x, *at, ceil_mode=ceil, count_include_pad=not exclusive, **more)

        def spread(g, mean=mean, shape=shape):
            return torch.func.vjp(mean, g.new_zeros(shape))[1](g)[0]

        more = {"exclusive": exclusive, "divisor": divisor}
        CASES["avg_pool"].append(Case(normal(shape), mean, how | more))
        CASES["avg_pool_grad"].append(Case(normal(small), spread, how | more | {"size": size}))

for size, out in (((7,), (3,)), ((7, 5), (3, 4)), ((4, 6), (6, 2)), ((5, 4, 3), (2, 2, 2))):
    name = f"adaptive_max_pool{len(size)}d_with_indices"
    CASES["adaptive_max_index"].append(
        Case(
            distinct((2, 2, *size)),
            lambda x, out=out, name=name: getattr(F, name)(x, out)[1].int(),
            {"out": out},
            order=0,
        )
    )
