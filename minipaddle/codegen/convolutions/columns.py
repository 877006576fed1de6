"""The adjoint of a convolution in the image by windows, which are added where they overlap.

It multiplies each pixel of the gradient by the whole kernel, which pays for few channels.
"""

from __future__ import annotations

from string import Template

from ...engine.codegen.kernel import Kernel, read_template, stack_array
from ...engine.core.slots import slot
from ..c_text import ON_STACK, indent
from ..kernel_frame import FloatKernel, RowBlocks
from ..products import microkernel
from .image_strips import Images, frame_helpers, worth_threads

SPREAD, TURNED = (Template(read_template(f"{name}.c", __file__)) for name in ("spread", "turned"))


@slot("codegen.columns")
def columns_pay(im: Images, itemsize: int, faster: int = 1) -> bool:
    """Whether it is faster to multiply each pixel of the gradient by the whole kernel, and to add
    the windows where they overlap. This holds for few channels, which would leave most lanes empty.
    The other way may multiply some times `faster`.
    """
    lanes, (kh, kw), (sh, sw) = 64 // itemsize, im.kernel, im.stride
    vectors = lambda n: -(-n // lanes)
    taps = -(-kh // sh) * -(-kw // sw)
    direct = im.target[0] * im.target[1] * taps * im.channels * vectors(im.outs)
    window = im.channels * vectors(kh * kw * im.outs) + 3 * kh * vectors(kw * im.outs)
    return im.source[0] * im.source[1] * window * faster < direct


def columns_fit(im: Images, itemsize: int) -> bool:
    """Whether the algorithm "columns" applies, and fits the stack of a thread."""
    return (
        im.groups == 1 and im.dilation == (1, 1) and sum(columns_sizes(im)) * itemsize <= ON_STACK
    )


def columns_sizes(im: Images) -> tuple[int, int]:
    """Elements of (an image with everything its windows reach, a row of windows)."""
    (gh, gw), (kh, kw), (sh, sw) = im.source, im.kernel, im.stride
    high = max((gh - 1) * sh + kh, im.target[0] + max(im.low[0], 0))
    wide = max((gw - 1) * sw + kw, im.target[1] + max(im.low[1], 0))
    return high * wide * im.outs, gw * kh * kw * im.outs


def write_columns(frame: FloatKernel, im: Images) -> Kernel:
    """The kernel of an adjoint in the image: windows are added where they overlap."""
    T, o, c = frame.T, im.channels, im.outs
    (gh, gw), (kh, kw), (sh, sw), (h, w) = im.source, im.kernel, im.stride, im.target
    padded, columns = columns_sizes(im)
    wide = max((gw - 1) * sw + kw, w + max(im.low[1], 0))
    window = kh * kw * c
    frame.text += (
        f"    {T} *turned = {frame.room.array(T, o * window)};\n"
        f"    turned_{T}(turned, {frame.names[1]}, {window}, {o}, 1);\n"
    )
    calls = microkernel.sum_terms(
        T, gw, window, o, 1, (f"{frame.names[0]} + (n * {gh} + r) * {gw * o}", o, 1, 0),
        ("turned", window, 0), ("columns", window),
    )  # fmt: skip
    tiles = (
        f"{stack_array(T, 'image', padded)}\n{stack_array(T, 'columns', columns)}\n"
        f"memset(image, 0, sizeof image);\nfor (int64_t r = 0; r < {gh}; r++) {{\n"
        f"{indent(calls, 4)}"
        f"    spread_{T}(image + r * {sh * wide * c}, {wide * c}, {sw * c}, columns, {gw}, {kh}, "
        f"{kw * c});\n}}\n"
        f"frame_{T}({frame.target} + n * {h * w * c}, {h}, {w}, image, {padded // (wide * c)}, "
        f"{wide}, {c}, {im.low[0]}, {im.low[1]});\n"
    )
    helpers = *frame_helpers(T), SPREAD.substitute(T=T), TURNED.substitute(T=T)
    return frame.write_tiled_kernel(RowBlocks(im.n, h, h, w), tiles, worth_threads(im), helpers)
