"""Convolutions of int8 in int32: in tiles, by Winograd's, by vectors of channels, plain loops."""

from __future__ import annotations

from math import prod

from ...engine.codegen.kernel import Kernel, read_template, stack_array
from ...engine.codegen.plain_products import loops_over, write_loops
from ...engine.codegen.writer import worth_sharing
from ...engine.core.polynomial import loop as variable
from ...engine.core.record import Record
from ...engine.ops.movement import ravel
from ..kernel_frame import KernelFrame, RowBlocks, writes
from ..machine import facts
from ..products import grouped_tiles
from ..products.grouped_tiles import INTEGERS, SERIAL, choose_format
from ..products.known_inputs import is_known_unsigned
from ..products.product import Product
from .convolution import FORMS
from .image_strips import Images, images_of
from .integer_winograd import pick_tiles, write_winograd

DEPTHWISE = read_template("integer_depthwise.c", __file__)

MOST_TAPS = 64
"""Of a depthwise convolution: the addresses of their pixels are on the stack."""


@writes("conv_last_integer", frame=KernelFrame)
def convolve(frame: KernelFrame) -> Kernel:
    """The kernel of a convolution of int8 images [N, *size, C] with kernels [*kernel, in, out]."""
    x, w = frame.record.inputs
    *kernel, _, outs = w.shape
    if x.spec.ndim > 4:
        return write_plain(frame)
    im = images_of(frame.record, frame.record, kernel)
    if im.depthwise and prod(im.kernel) <= MOST_TAPS:
        return write_depthwise(frame, im)
    if im.groups > 1:
        return write_plain(frame)
    (oh, ow), (h, c) = im.target, (im.source, im.channels)
    way = pick_tiles(im) if frame.is_constant(1) else None
    if way is not None:
        return write_winograd(frame, way)
    if im.pointwise:
        _, axes = FORMS["conv_last"]
        p = Product((), *axes(im.n * oh * ow, c, outs))
        return grouped_tiles.write_product(frame, p) or write_plain(frame)
    form, window = choose_format(x, im.n * oh * ow), w.spec.size // outs
    sizes = ", ".join(map(str, [*h, c, *im.kernel, *im.stride, *im.dilation, *im.low]))
    row = form.row(window)
    load = (
        f"integer_windows_{form.F}(wide, {row}, in0 + n * {h[0] * h[1] * c}, top, top + rows,\n"
        f"    {ow}, {sizes});\n"
    )
    how = frame, form, 1, im.n, (oh * ow, outs, window), (1, outs), load, ("wide", row)
    return grouped_tiles.write_tiles(*how, (form.windows,)) or write_plain(frame)


def write_depthwise(frame: KernelFrame, im: Images) -> Kernel:
    """The kernel of a depthwise convolution: a tap is multiplied for 16 channels at once."""
    (h, w), (oh, ow), c, taps = im.source, im.target, im.channels, prod(im.kernel)
    quads = fits_quads(frame.record.inputs[0], c)
    wide, T, F = -(-c // 16) * 16, *(("int8_t", "quads") if quads else ("int16_t", "kernels"))
    elements = -(-c // 32) * 128 * (taps // 4 + taps % 4) if quads else wide * (taps + taps % 2)
    pack = f"integer_depthwise_{F}({{made}}, {{given}}, {taps}, {c});"
    frame.pack("kernels", 1, elements, pack, T)
    sizes = *im.kernel, im.stride[1], *im.dilation
    tiles = (
        f"{stack_array('int8_t', 'patch', c if quads else taps * wide)}\n"
        f"integer_depthwise(out0 + i * {ow * c}, {ow}, in0 + n * {h * w * c},\n"
        f"    {h}, {w}, {c}, {', '.join(map(str, sizes))},\n"
        f"    top * {im.stride[0]} - {im.low[0]}, -{im.low[1]}, kernels, patch, {int(quads)});\n"
    )
    pays = worth_sharing(im.n * oh * ow * c * taps, SERIAL + 1)
    return frame.write_tiled_kernel(RowBlocks(im.n, oh, 1, ow), tiles, pays, (INTEGERS, DEPTHWISE))


def fits_quads(image: Record, channels: int) -> bool:
    """Whether a depthwise convolution sums four taps at once: bytes from 0 to 127 on a processor
    that multiplies such bytes, 32 channels or more.
    """
    return channels >= 32 and facts().vector >= 32 and is_known_unsigned(image)


def write_plain(frame: KernelFrame) -> Kernel:
    """The kernel in plain loops, for groups and for any number of axes."""
    record, attrs = frame.record, frame.record.attrs
    (x, w), out = (e.spec for e in record.inputs), record.spec
    *kernel, inner, outs = w.shape
    outer = outs // attrs["groups"]
    counts = out.shape[0], attrs["groups"], inner, outer
    n, g, c, o = (variable(letter, count) for letter, count in zip("ngco", counts))
    taps, pixels = loops_over("t", kernel), loops_over("p", out.shape[1:-1])
    terms = zip(pixels, attrs["stride"], taps, attrs["dilation"], attrs["padding"], strict=True)
    image = [p * stride + t * dilation - low for p, stride, t, dilation, (low, _) in terms]
    places = [
        ravel([n, *pixels, g * outer + o], out.shape),
        ravel([n, *image, g * inner + c], x.shape),
        ravel([*taps, c, g * outer + o], w.shape),
    ]
    ranges = [(at, 0, m) for at, m in zip(image, x.shape[1:-1], strict=True)]
    return frame.kernel(write_loops(record, [n, *pixels, *taps, g, c, o], places, ranges))
