"""Convolutions of volumes as sums of convolutions of planes.

A plane of the result is the sum, over the depth of the kernel, of the convolution of a plane of the
volume. The planes of all depths make one batch: the kernels in C have images of two axes at most.
"""

from __future__ import annotations

from ..engine.core.dtype import HALVES, float32
from ..engine.ops import conv as plain
from ..engine.ops.movement import WHOLE, reshape, slice_, stack, transpose, unslice
from ..engine.passes.decompose import RULES
from ..engine.passes.registry import LOOKS_FOR
from ..ops.arrangement import pad
from ..ops.channels_last import SIBLINGS, permute

DEPTH_LAST = (0, 2, 1, 3, 4)
"""[N, C, D, H, W] -> [N, D, C, H, W], and back."""


def of_planes(attrs) -> dict:
    """The attributes of the convolution of planes."""
    cut = {k: attrs[k][1:] for k in ("stride", "padding", "dilation")}
    return {**cut, "groups": attrs["groups"]}


def depth_slice(attrs, tap: int, count: int) -> tuple:
    """The depths, in the padded volume, that meet one depth of the kernel: a key of a slice."""
    start, stride = tap * attrs["dilation"][0], attrs["stride"][0]
    return (*WHOLE[:2], (start, start + (count - 1) * stride + 1, stride))


def as_planes(x):
    """A volume [N, C, D, H, W] as a batch of planes [N · D, C, H, W]."""
    n, c, depth, *size = x.spec.shape
    return reshape(transpose(x, perm=DEPTH_LAST), shape=(n * depth, c, *size))


def as_volume(x, batch: int):
    """A batch of planes as a volume."""
    planes, *rest = x.spec.shape
    return transpose(reshape(x, shape=(batch, planes // batch, *rest)), perm=DEPTH_LAST)


def pad_depth(x, attrs):
    """A volume with the padding of its depth."""
    low, high = attrs["padding"][0]
    return pad(x, widths=((0, 0), (0, 0), (low, high), (0, 0), (0, 0)), value=0)


def kernel_slice(w, tap: int):
    """One depth of a kernel [O, C, KD, KH, KW]."""
    return slice_(w, index=(*WHOLE[:2], tap))


def conv(attrs, x, w, result):
    """The convolution."""
    n, count, x = x.spec.shape[0], result[2], pad_depth(x, attrs)
    total = None
    for tap in range(w.spec.shape[2]):
        part = as_planes(slice_(x, index=depth_slice(attrs, tap, count)))
        part = plain.conv(part, kernel_slice(w, tap), **of_planes(attrs))
        total = part if total is None else total + part
    return as_volume(total, n)


def conv_input_grad(attrs, g, w, result):
    """Its adjoint in the volume."""
    n, c, depth, *size = result
    low, high = attrs["padding"][0]
    planes, total = as_planes(g), None
    for tap in range(w.spec.shape[2]):
        part = plain.conv_input_grad(
            planes, kernel_slice(w, tap), size=tuple(size), **of_planes(attrs)
        )
        key = depth_slice(attrs, tap, g.spec.shape[2])
        part = unslice(as_volume(part, n), shape=(n, c, low + depth + high, *size), index=key)
        total = part if total is None else total + part
    return slice_(total, index=(*WHOLE[:2], (low, low + depth, 1)))


def conv_weight_grad(attrs, x, g, result):
    """Its adjoint in the kernel."""
    planes, x = as_planes(g), pad_depth(x, attrs)
    taps = []
    for tap in range(result[2]):
        part = as_planes(slice_(x, index=depth_slice(attrs, tap, g.spec.shape[2])))
        how = of_planes(attrs)
        taps.append(plain.conv_weight_grad(part, planes, kernel=tuple(result[3:]), **how))
    return stack(*taps, axis=2)


def by_planes(rule):
    """The rule of `decompose`: for volumes with padding that is not negative, and no open sizes."""

    def apply(record, x, y):
        attrs, shapes = record.attrs, (x.spec.shape, y.spec.shape, record.shape)
        known = all(isinstance(n, int) and n for shape in shapes for n in shape)
        if len(record.shape) != 5 or not known or min(attrs["padding"][0]) < 0:
            return None
        half = record.dtype in HALVES
        x, y = ((z.astype(float32.numpy) if half else z) for z in (x, y))
        result = rule(attrs, x, y, record.shape)
        return result.astype(record.dtype) if half else result

    return apply


def with_channels_last(rule, into, back):
    """The same rule for the sibling of an operator; see `ops.channels_last`."""

    def apply(attrs, x, y, result):
        operands = (permute(z, order.first) for z, order in zip((x, y), into, strict=True))
        shape = tuple(result[d] for d in back.first(len(result)))
        return permute(rule(attrs, *operands, shape), back.last)

    return apply


for op, rule in (
    (plain.conv, conv),
    (plain.conv_input_grad, conv_input_grad),
    (plain.conv_weight_grad, conv_weight_grad),
):
    last, into, back = SIBLINGS[op]
    RULES[op] = by_planes(rule)
    RULES[last] = by_planes(with_channels_last(rule, into, back))
    LOOKS_FOR["decompose"] += op, last
