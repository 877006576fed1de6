"""Convolution and pooling with the channels last: torch's, between two transpositions.

Every case of the operators with the channels first is one of these, with its axes in the other
order.
"""

import numpy as np

from tests.ops import cases_conv, cases_pooling
from tests.ops.cases import Case

ORDERS = {  # of each input and of the result: an image, or the kernel of a convolution
    "conv": ("image", "kernel", "image"),
    "conv_input_grad": ("image", "kernel", "image"),
    "conv_weight_grad": ("image", "image", "kernel"),
    "max_pool": ("image", "image"),
    "max_pool_grad": ("image", "image", "image", "image"),
    "max_pool_take": ("image", "image", "image", "image"),
    "avg_pool": ("image", "image"),
    "avg_pool_grad": ("image", "image"),
}


def to_last(kind: str, ndim: int) -> list:
    """The axes of an array with the channels first, in the order with the channels last."""
    if kind == "image":
        return [0, *range(2, ndim), 1]
    return [*range(2, ndim), 1, 0]


def to_first(kind: str, ndim: int) -> list:
    return [int(d) for d in np.argsort(to_last(kind, ndim))]


def turned(case: Case, orders) -> Case:
    """A case of the operator with the channels first, for the one with the channels last."""
    *into, back = orders

    def build(rng):
        arrays = zip(case.build(rng), into)
        return [np.ascontiguousarray(a.transpose(to_last(kind, a.ndim))) for a, kind in arrays]

    def oracle(*arrays):
        given = [a.permute(to_first(kind, a.ndim)).contiguous() for a, kind in zip(arrays, into)]
        y = case.torch(*given)
        return y.permute(to_last(back, y.ndim))

    return case._replace(build=build, torch=oracle)


FIRST = cases_conv.CASES | cases_pooling.CASES
CASES = {
    name.replace("conv", "conv_last").replace("pool", "pool_last"): [
        turned(case, orders) for case in FIRST[name]
    ]
    for name, orders in ORDERS.items()
}
