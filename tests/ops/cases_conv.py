"""Convolution and its adjoints, against torch's convolution and its gradients."""

import torch
import torch.nn.functional as F

from tests.ops.cases import Case, normal

CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}


def convolution(x, w, *, stride, padding, dilation, groups):
    """torch's convolution, with padding that may differ before and after."""
    pads = [p for pair in reversed(padding) for p in pair]
    return CONV[len(stride)](F.pad(x, pads), w, None, stride, 0, dilation, groups)


def input_grad(g, w, *, size, **how):
    """The gradient of `convolution` in an image of `size`: it is linear, so any image will do."""
    shape = (g.shape[0], w.shape[1] * how["groups"], *size)
    return torch.func.vjp(lambda x: convolution(x, w, **how), g.new_zeros(shape))[1](g)[0]


def weight_grad(x, g, *, kernel, **how):
    """The gradient of `convolution` in a weight with this kernel."""
    shape = (g.shape[1], x.shape[1] // how["groups"], *kernel)
    return torch.func.vjp(lambda w: convolution(x, w, **how), x.new_zeros(shape))[1](g)[0]


def cases(size, kernel, stride, padding, dilation, groups=1, batch=2, channels=2, outs=3):
    """A case of each of the three operators; `channels` and `outs` are of one group."""
    how = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    out = tuple(
        (n + a + b - d * (k - 1) - 1) // s + 1
        for n, k, s, (a, b), d in zip(size, kernel, stride, padding, dilation)
    )
    x, w = (batch, channels * groups, *size), (outs * groups, channels, *kernel)
    g = (batch, outs * groups, *out)
    return (
        Case(normal(x, w), lambda x, w: convolution(x, w, **how), how, tolerance=4),
        Case(normal(g, w), lambda g, w: input_grad(g, w, size=size, **how), {"size": size, **how},
             tolerance=4),
        Case(normal(x, g), lambda x, g: weight_grad(x, g, kernel=kernel, **how),
             {"kernel": kernel, **how}, tolerance=4),
    )  # fmt: skip


EVEN = ((1, 1), (1, 1))
SETTINGS = [
    cases((7,), (3,), (1,), ((1, 1),), (1,)),
    cases((9,), (3,), (2,), ((2, 0),), (2,), groups=2),
    cases((5, 6), (3, 3), (1, 1), EVEN, (1, 1)),
    cases((6, 7), (3, 2), (2, 3), ((1, 0), (0, 2)), (1, 1)),
    cases((8, 7), (3, 3), (2, 1), EVEN, (2, 3), groups=2),
    cases((5, 5), (1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1)),
    cases((6, 5), (1, 1), (2, 2), ((0, 0), (0, 0)), (1, 1)),
    cases((7, 5), (2, 2), (3, 4), ((0, 0), (1, 1)), (1, 1)),  # a stride that leaves pixels out
    cases((5, 5), (3, 3), (1, 1), EVEN, (1, 1), groups=3, channels=1, outs=2),  # depthwise
    cases((4, 4), (3, 3), (1, 1), EVEN, (1, 1), channels=33, batch=1, outs=1),  # tap by tap
    cases((4, 4), (3, 3), (1, 1), EVEN, (1, 1), channels=9, batch=1, outs=2),  # taps in pairs
    cases((3, 4, 5), (2, 3, 2), (1, 2, 1), ((1, 0), (1, 1), (0, 0)), (1, 1, 2)),
    cases((2, 2), (4, 4), (1, 1), ((3, 3), (2, 3)), (1, 1)),  # a kernel larger than the image
]
CASES = {
    "conv": [s[0] for s in SETTINGS],
    "conv_input_grad": [
        *(s[1] for s in SETTINGS),
        # A transposed convolution whose last pixels no window reaches: the padding is negative.
        cases((5, 5), (2, 2), (1, 1), ((0, -1), (0, -1)), (2, 2))[1],
    ],
    "conv_weight_grad": [s[2] for s in SETTINGS],
}
