"""Quantization and products of whole numbers, against NumPy and torch in wider arithmetic."""

import numpy as np
import torch
import torch.nn.functional as F

from tests.ops.cases import Case, fixed, together, uniform, whole

BITS = {8: {"low": -128, "high": 127}, 4: {"low": -7, "high": 7}}


def quantized(x, scale, zero, low, high):
    return np.clip(np.rint(x / scale * high) + zero, low, high).astype("int8")


class Straight(torch.autograd.Function):
    """The second input, with the derivative of the first."""

    @staticmethod
    def forward(context, x, rounded):
        return rounded

    @staticmethod
    def backward(context, g):
        return g, None


def passed_straight(x, scale, zero, low, high):
    rounded = (torch.round(x / scale * high) + zero).clamp(low, high)
    return Straight.apply(x, (rounded - zero) * scale / high)


def scales(*shapes):
    return together(uniform(-3.0, 3.0, shapes[0]), uniform(0.5, 2.0, shapes[1]))


PLACES = [((2, 3), (3,)), ((2, 3), ()), ((2, 4, 3), (2, 1, 3)), ((0, 3), (3,))]
HALF = "float64", "float32"
CASES = {
    "quantize": [
        Case(together(scales(*shapes), fixed(zero)), None, at,
             numpy=lambda x, s, z, at=at: quantized(x, s, z, **at), order=0, dtypes=HALF)
        for shapes, (at, zero) in zip(PLACES, [(BITS[8], 0.0), (BITS[8], 3.0), (BITS[4], 0.0)] * 2)
    ],
    "dequantize": [
        Case(together(whole(-128, 128, shapes[0], dtype="int8"), uniform(0.5, 2.0, shapes[1]),
                      fixed(zero)), None, {"high": 127},
             numpy=lambda q, s, z: (q.astype(s.dtype) - z) * s / 127, order=0, dtypes=HALF)
        for shapes, zero in zip(PLACES, (0.0, 3.0, -5.0, 0.0))
    ],
    "fake_quantize": [
        Case(together(scales(*shapes), fixed(zero)),
             lambda x, s, z, at=at: passed_straight(x, s, z, **at), at, wrt=(0,), smooth=False)
        for shapes, (at, zero) in zip(PLACES, [(BITS[8], 0.0), (BITS[8], 3.0), (BITS[4], 0.0)] * 2)
    ],
}  # fmt: skip


def bytes_of(*shapes):
    return whole(-128, 128, *shapes, dtype="int8")


def multiplied(x, y, x_perm=(0, 1), y_perm=(0, 1), out_perm=(0, 1)):
    """In int64: nothing wraps."""
    x, y = x.astype("int64").transpose(x_perm), y.astype("int64").transpose(y_perm)
    return (x @ y).transpose(out_perm)


def convolved(x, w, *, stride, padding, dilation, groups):
    pads = [p for pair in reversed(padding) for p in pair]
    x, w = (torch.tensor(a, dtype=torch.float64) for a in (x, w))
    convolve = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[len(stride)]
    return convolve(F.pad(x, pads), w, None, stride, 0, dilation, groups).numpy()


PERMS = [
    {"x_perm": (0, 1), "y_perm": (1, 0), "out_perm": (0, 1)},
    {"x_perm": (1, 0), "y_perm": (0, 1), "out_perm": (1, 0)},
]
SHAPES = [((3, 5), (7, 5)), ((5, 3), (5, 7))]
CONVS = [  # x, w, attributes
    ((2, 3, 6, 5), (4, 3, 3, 3), ((2, 1), ((1, 1), (0, 2)), (1, 1), 1)),
    ((1, 4, 6, 5), (4, 1, 3, 2), ((1, 1), ((1, 1), (0, 1)), (1, 2), 4)),
    ((2, 4, 9), (6, 2, 3), ((2,), ((1, 0),), (1,), 2)),
    ((1, 2, 3, 4, 3), (2, 2, 2, 2, 2), ((1, 1, 1), ((0, 1),) * 3, (1, 1, 1), 1)),
]
CASES["matmul_integer"] = [
    Case(bytes_of(*shapes), None, numpy=multiplied if len(shapes[0]) == 2 else
         lambda x, y: x.astype("int64") @ y.astype("int64"))
    for shapes in [((3, 5), (5, 7)), ((2, 3, 5), (5, 7)), ((5,), (5, 2)), ((2, 1100), (1100, 3))]
]  # fmt: skip
CASES["product_integer"] = [
    Case(bytes_of(*shapes), None, perms, numpy=lambda x, y, perms=perms: multiplied(x, y, **perms))
    for shapes, perms in zip(SHAPES, PERMS, strict=True)
]
NAMES = "stride", "padding", "dilation", "groups"
CASES["conv_integer"] = [
    Case(bytes_of(x, w), None, dict(zip(NAMES, how, strict=True)),
         numpy=lambda x, w, how=how: convolved(x, w, **dict(zip(NAMES, how, strict=True))))
    for x, w, how in CONVS
]  # fmt: skip


def channels_last(x, w, **how):
    image, kernel = np.moveaxis(x, -1, 1), np.moveaxis(w, (-1, -2), (0, 1))
    return np.moveaxis(convolved(image, kernel, **how), 1, -1)


CASES["conv_last_integer"] = [
    Case(bytes_of((x[0], *x[2:], x[1]), (*w[2:], w[1], w[0])), None,
         dict(zip(NAMES, how, strict=True)),
         numpy=lambda x, w, how=how: channels_last(x, w, **dict(zip(NAMES, how, strict=True))))
    for x, w, how in CONVS
]  # fmt: skip


def by_weight(x, w, scale, bits):
    w = w.to(torch.int32)
    if bits == 4:
        w = torch.stack([(w & 15 ^ 8) - 8, w >> 4], 1).reshape(-1, w.shape[1])
    return x @ (w.T * scale.repeat_interleave(x.shape[1] // len(scale), 0))


CASES["weight_only_matmul"] = [
    Case(together(uniform(-2.0, 2.0, (3, 8)), whole(-128, 128, (4 * bits // 8, 8), dtype="int8"),
                  uniform(0.5, 2.0, (groups, 4))),
         lambda x, w, scale, bits=bits: by_weight(x, w, scale, bits), {"bits": bits}, wrt=(0,),
         dtypes=("float64", "float32"))
    for bits, groups in ((8, 1), (4, 2))
]  # fmt: skip
