"""C text of convolutions with the channels last.

A row of the result image is a matrix product. Its rows are the pixels, and k runs over the pixels
of the window and their channels, which are neighbours within a row of the image. The rows of the
window are segments of k. Only a strip of the image is copied, with its padding, into a buffer on
the thread's stack: the strip that some rows of the result read. Without padding nothing is copied.
"""

from __future__ import annotations

from string import Template
from typing import NamedTuple

from ...engine.codegen.kernel import Kernel, read_template, stack_array
from ...engine.codegen.kernel_schedule import pick
from ...engine.codegen.writer import ALWAYS, for_head, least
from ..c_text import ON_STACK, SIZES, indent, loop, share_loop
from ..kernel_frame import FloatKernel, KernelFrame, writes
from ..machine import facts
from ..open_sizes import is_open
from ..products import microkernel
from ..products.bias_and_bounds import NOTHING, BiasAndBounds
from ..products.matmul import product_kernel
from ..products.pairs import are_halves, is_paired, zip_rows
from ..products.product import Product, axis
from . import winograd
from .columns import TURNED, columns_fit, columns_pay, write_columns
from .image_strips import (
    Images,
    ImageStrips,
    frame_helpers,
    images_of,
    strips_of,
    worth_threads,
)
from .pair_strips import count_packed, pack_taps, tile_pixels, zip_pixels
from .window_lines import SweepAxis, sweep_backward, sweep_forward

DEPTHWISE, DEPTHWISE_WEIGHT, WINDOWS = (
    Template(read_template(f"{name}.c", __file__))
    for name in ("depthwise", "depthwise_weight", "windows")
)

PARTS = 4
"""Partial sums over the batch, each computed by one thread. Their number is fixed, so a weight's
gradient does not depend on the number of threads."""

FEWEST = 16
"""Fewest channels for which a weight's gradient is faster with tiles (AMX): the rows of a tile."""


# ---- one sweep -------------------------------------------------------------------------------


class ImageSweep(NamedTuple):
    """Rows of the result from the strips of an image, for a pair of phases of the stride."""

    s: ImageStrips
    down: SweepAxis
    across: SweepAxis
    how: str
    b: str  # points to the kernels of these phases, which are `packed` into panels or not
    packed: bool
    source: str
    out: str
    finish: BiasAndBounds | None
    narrow: str = ""  # the function that rounds a row of the result, after it is summed

    @property
    def taps(self) -> tuple[int, int]:
        return len(self.down.taps), len(self.across.taps)

    def text(self) -> tuple[str, tuple[str, ...]]:
        """(C text, helpers) of the rows of a strip."""
        im, down, (h, w) = self.s.im, self.down, self.s.im.target
        row, limit = scale_and_shift("r", down.stride, down.start), "top + rows"
        limit += f" && r < {down.count}" if f"{self.s.blocks.rows}" != f"{down.count}" else ""
        at = f"((n * {h} + {row}) * {w} + {self.across.start}) * {im.outs}"
        T, size = microkernel.widen_type(self.s.T), self.across.count * im.outs
        text = f"{T} *c = {self.out} + {at};\n"
        if self.narrow:
            text = f"{stack_array(T, 'c', size)}\n"
        if not all((*self.taps, im.channels // im.groups)):
            body, helpers = self.clear(), ()
        else:
            body, helpers = self.meet_channels() if im.depthwise else self.multiply()
        if self.narrow:
            put = f"{self.out}[{at} + i] = {self.narrow}(c[i]);\n"
            body += loop("i", size, put)
        text = f"{for_head('r', 'top', limit)} {{\n{indent(text + body, 4)}}}\n"
        return text, helpers

    def clear(self) -> str:
        """C text of a row whose pixels meet no tap."""
        o, T = self.s.im.outs, self.s.T
        clear = f"memset(c + p * {self.across.stride * o}, 0, sizeof({T}) * {o});\n"
        return loop("p", self.across.count, clear)

    def multiply(self) -> tuple[str, tuple[str, ...]]:
        """A row of pixels as one product. Its terms are the windows, from a copy of them; or they
        are pieces of the image's rows: whole ones, or the channels of a group at each tap.
        """
        s, im, down, across, T = self.s, self.s.im, self.down, self.across, self.s.T
        (high, wide), c, o, row = self.taps, im.channels, im.outs, self.s.pitch
        inner, outer, size = c // im.groups, o // im.groups, high * wide * c
        step, gap = across.step * c, down.gap * row
        panel = microkernel.tile().panel(T)
        b_step, apart = (panel, (f"{panel} * {size}",)) if self.packed else (o, ())
        b, to, add, helpers = self.b, "c", "0", ()
        start = (down.first - s.height.first) * row + (across.first - s.width.first) * c
        text = f"const {T} *a = image + (r - top) * {down.step * row} + {start};\n"
        if self.how == "im2col":
            terms, segments, a = size, 1, ("columns", size, 1, 0)
            helpers = (WINDOWS.substitute(T=T),)
            text += (
                f"{stack_array(T, 'columns', across.count * size)}\n"
                f"windows_{T}(columns, a, {step}, {gap}, {across.count}, {high}, {wide * c});\n"
            )
        elif is_plain(im, across):
            terms, segments, a = wide * c, high, ("a", step, 1, gap)
        else:
            terms, segments, add = inner, wide, "t > 0"
            a = f"a + g * {inner} + t * {gap}", step, 1, across.gap * c
            b += f" + g * {outer} + t * {wide * inner * o}"
            to += f" + g * {outer}"
        body = microkernel.sum_terms(
            T, across.count, outer, terms, segments, a, (b, b_step, f"{terms} * {b_step}", *apart),
            (to, across.stride * o), add, finish=self.finish,
        )  # fmt: skip
        if add != "0":
            body = loop("g", im.groups, loop("t", high, body))
        return text + body, helpers

    def meet_channels(self) -> tuple[str, tuple[str, ...]]:
        """A row of a depthwise convolution, which reads the image in place: the taps outside of it
        are left out.
        """
        im, T, (high, wide), gap = self.s.im, self.s.T, self.taps, self.down.gap
        c, (gh, gw), across = im.channels, im.source, self.across
        begin = min(max(-(across.first // across.step), 0), across.count)
        end = (gw - 1 - across.last) // across.step + 1
        end = max(min(end, across.count), begin)
        finish = self.finish.text(T) if self.finish else NOTHING
        return (
            f"const int64_t y = r * {self.down.step} + {self.down.first};\n"
            f"const int64_t from = y < 0 ? (-y + {gap - 1}) / {gap} : 0;\n"
            f"int64_t to = y < {gh} ? ({gh + gap - 1} - y) / {gap} : 0;\n"
            f"to = {least('to', high)};\n"
            f"depthwise_{T}({across.count}, {begin}, {end}, {gw}, {c}, to > from ? to - from : 0, "
            f"{wide},\n    {self.source} + (n * {gh} + y + from * {gap}) * {gw * c}, "
            f"{across.step}, {across.first}, {across.gap}, {gap * gw * c},\n"
            f"    {self.b} + from * {wide * c}, c, {across.stride * c}, {finish});\n"
        ), (*microkernel.vectors(T), DEPTHWISE.substitute(T=T))


def is_finished(im: Images, downs, acrosses, how: str) -> bool:
    """Whether one sum is all of a pixel's channel, and has terms: then nothing is added later."""
    (down, *more), (across, *others) = downs, acrosses
    taps = down.taps and across.taps and not (more or others)
    return bool(taps) and (im.depthwise or how == "im2col" or is_plain(im, across))


def is_plain(im: Images, across: SweepAxis) -> bool:
    """Whether a row of a window is one piece of a row of the image."""
    return im.groups == 1 and (across.gap == 1 or len(across.taps) == 1)


def scale_and_shift(index: str, step: int, start: int) -> str:
    """C text of start + index * step."""
    text = index if step == 1 else f"{index} * {step}"
    return f"{text} + {start}" if start else text


# ---- the operators ---------------------------------------------------------------------------


def pick_algorithm(im: Images, downs, acrosses, T: str, adjoint: bool = False) -> str:
    """The algorithm of a convolution, or of its adjoint in the image: "direct", "winograd",
    "im2col", or for an adjoint also "columns".
    """
    first, width = (downs[0], acrosses[0]), SIZES[T]
    most = max(x.count * len(d.taps) * len(x.taps) for d in downs for x in acrosses) * im.channels
    plain = all(is_plain(im, across) for across in acrosses)
    can = {
        "direct": True,
        "winograd": winograd.is_possible(im, *first, T),
        "im2col": plain and most * width <= ON_STACK,
        "columns": adjoint and T != microkernel.PAIRS and columns_fit(im, width),
    }
    rule = winograd.choose_algorithm(im, *first, T)
    rule = "columns" if can["columns"] and columns_pay(im, width) else rule
    return pick("algorithm", rule, [how for how, possible in can.items() if possible])


def sweep_kernel(frame: FloatKernel, im: Images, downs, acrosses, kernels: str, how: str) -> Kernel:
    """The kernel that sweeps over an image, once for each pair of phases of the stride."""
    T, each = frame.E, im.outs
    if how == "winograd":
        return winograd.write_winograd(frame, im, downs[0], acrosses[0], kernels)
    packed = kernels == frame.names[1] and frame.is_constant(1) and is_plain(im, acrosses[0])
    channels = frame.record.inputs[0].shape[-1]
    odd = channels if T == microkernel.PAIRS and channels % 2 else 0
    s, helpers = strips_of(im, downs, acrosses, T, odd=odd), []
    if T == microkernel.PAIRS:
        sweeps = [combine_taps(im, down, across) for down in downs for across in acrosses]
        helpers = [*pack_taps(frame, im, sweeps, channels, turned=kernels == "turned")]
        packed, kernels, each = True, "panels", count_packed(im, 1) // im.channels
    elif packed:
        k, t = im.kernel[0] * im.kernel[1] * im.channels, microkernel.tile()
        frame.pack_panels(1, t, im.outs, k, 1, im.outs, T)
        kernels, helpers = "panels", [*microkernel.panels(T, t)]
    source, target = frame.names[0], frame.target
    s = s.read_in_place() if im.depthwise else s
    finish = frame.finish if is_finished(im, downs, acrosses, how) else None
    narrow = "narrow" if frame.half and frame.as_stored else ""
    tiles, at = "" if im.depthwise else s.load(source, frame.room, s.parts), 0
    for down in downs:
        for across in acrosses:
            b = scale_and_shift(kernels, 1, at)
            sweep = ImageSweep(s, down, across, how, b, packed, source, target, finish, narrow)
            text, needed = sweep.text()
            tiles, helpers = tiles + text, [*helpers, *needed]
            at += len(down.taps) * len(across.taps) * im.channels // im.groups * each
    helpers = [*s.helpers, *helpers]
    return frame.write_tiled_kernel(s.blocks, tiles, worth_threads(im), helpers, finish, s.parts)


def write_convolution(frame: FloatKernel, im: Images) -> Kernel:
    """The kernel of `conv_last`."""
    down, across = ([line] for line in im.lines(sweep_forward))
    how = pick_algorithm(im, down, across, frame.E)
    return sweep_kernel(frame, im, down, across, frame.names[1], how)


def write_input_grad(frame: FloatKernel, im: Images) -> Kernel:
    """The kernel of `conv_last_input_grad`."""
    downs, acrosses = im.lines(sweep_backward)
    how = pick_algorithm(im, downs, acrosses, frame.E, adjoint=True)
    if how == "columns":
        return write_columns(frame, im)
    if frame.E == microkernel.PAIRS:
        return sweep_kernel(frame, im, downs, acrosses, "turned", how)
    taps = [t for down in downs for across in acrosses for t in combine_taps(im, down, across)]
    frame.text += transpose_kernels(frame, im, taps)
    result = sweep_kernel(frame, im, downs, acrosses, "turned", how)
    return result._replace(helpers=(TURNED.substitute(T=frame.T), *result.helpers))


def combine_taps(im: Images, down: SweepAxis, across: SweepAxis) -> list[int]:
    """The taps of a sweep, in its order."""
    return [t * im.kernel[1] + u for t in down.taps for u in across.taps]


def transpose_kernels(frame: FloatKernel, im: Images, taps) -> str:
    """C text that transposes the kernels of these taps: inputs and outputs change places."""
    T, inner, outs = frame.T, im.outs // im.groups, im.channels
    size = inner * outs
    count = max(len(taps), 1)
    return (
        f"    {T} *turned = {frame.room.array(T, size * count)};\n"
        f"    static const int taps[] = {{{', '.join(map(str, taps)) or '0'}}};\n"
        f"    for (int64_t t = 0; t < {len(taps)}; t++)\n"
        f"        turned_{T}(turned + t * {size}, {frame.names[1]} + taps[t] * {size}, "
        f"{inner}, {outs // im.groups}, {im.groups});\n"
    )


def write_weight_grad(frame: FloatKernel, im: Images) -> Kernel:
    """The kernel of `conv_last_weight_grad`: sums over pixels, in parts of the batch."""
    T, size, paired = frame.T, frame.out.size, frame.E == microkernel.PAIRS
    down, across = im.lines(sweep_forward)
    s = strips_of(im, [down], [across], frame.E, copied=paired)
    items = s.blocks.total
    rule = min(PARTS, items) if worth_threads(im) else 1
    parts = pick("parts", rule, [n for n in (1, 2, 4, 8) if n <= items])
    source, g = frame.names
    tiled = microkernel.has_tiles(frame.E)
    if tiled:
        image, (text, helpers) = "", tile_pixels(s, down, across, (source, g), frame.room, parts)
    elif paired:
        image = zip_pixels(s, across, source, frame.room, parts)
        g = zip_rows(frame, g, frame.record.inputs[1].spec.size // (2 * im.outs), im.outs, im.outs)
    else:
        image = s.load(source, frame.room, parts)
    inside = s.blocks.head + image
    if not tiled:
        text, helpers = weight_terms(s, down, across, g)
    more = f"{frame.room.array(T, size * (parts - 1))}" if parts > 1 else ""
    part = f"p ? {more} + (p - 1) * {size} : {frame.target}" if parts > 1 else frame.target
    first = f"p * {items} / {parts}"
    body = (
        f"{T} *part = {part};\n"
        f"memset(part, 0, {size} * sizeof({T}));\n"
        f"for (int64_t i = {first}; i < (p + 1) * {items} / {parts}; i++) {{\n"
        f"{indent(inside + text, 4)}}}\n"
    )
    loops = indent(share_loop("p", parts, body, ALWAYS), 4)
    if parts > 1:
        terms = " + ".join(f"more[i + {k * size}]" for k in range(parts - 1))
        loops += f"    const {T} *more = {more};\n"
        loops += f"    for (int64_t i = 0; i < {size}; i++) {frame.target}[i] += {terms};\n"
    framed = frame_helpers("bfloat16" if paired else T) if s.framed and not tiled else ()
    return frame.kernel(loops, [*framed, *helpers])


def weight_terms(s: ImageStrips, down: SweepAxis, across: SweepAxis, g: str) -> tuple:
    """(C text, helpers) that adds the terms of a strip's pixels to `part`."""
    im, T, row = s.im, s.T, s.pitch
    c, o, groups = im.channels, im.outs, im.groups
    inner, outer, (high, wide) = c // groups, o // groups, im.kernel
    each = 2 if T == microkernel.PAIRS else 1  # pixels that are multiplied at once
    pixels, width = across.count // each, im.target[1] // each * o
    g = f"{g} + (n * {im.target[0]} + top + r) * {width}"
    steps = across.step * c, down.step * row
    most = microkernel.most_terms(T)
    few = f"({most} / {pixels} + 1)" if is_open(pixels) else max(most // pixels, 1)
    begin = (
        f"for (int64_t r = 0; r < rows; r += {few}) {{\n"
        f"    const int64_t few = rows - r < {few} ? rows - r : {few};\n"
        f"    const {T} *met = image + r * {steps[1]};\n"
    )
    if im.depthwise:
        return begin + (
            f"    depthwise_weight_{T}(few, {across.count}, {c}, {high}, {wide}, met, {steps[0]}, "
            f"{steps[1]}, {down.gap * row}, {across.gap * c}, {g}, part);\n}}\n"
        ), (*microkernel.vectors(T), DEPTHWISE_WEIGHT.substitute(T=T))
    plain = groups == 1 and across.gap == 1
    count = wide * c if plain else inner
    a, b = f"met + t * {down.gap * row}", g
    target = f"part + t * {wide * inner * o}"
    if not plain:
        a += f" + u * {across.gap * c} + g * {inner}"
        b += f" + g * {outer}"
        target += f" + u * {inner * o} + g * {outer}"
    text = microkernel.call_blocks(
        T, count, outer, pixels, "few",
        (a, 1, each * steps[0], steps[1]), (b, o, width), (target, o), "1",
    )  # fmt: skip
    text = loop("t", high, text)
    if not plain:
        text = loop("g", groups, loop("u", wide, text))
    return f"{begin}{indent(text, 4)}}}\n", ()


FORMS = {
    "conv_last": (
        write_convolution, lambda p, c, o: (axis(p, c, 0, o), axis(o, 0, 1, 1), axis(c, 1, o, 0)),
    ),
    "conv_last_input_grad": (
        write_input_grad, lambda p, o, c: (axis(p, o, 0, c), axis(c, 0, o, 1), axis(o, 1, 1, 0)),
    ),
    "conv_last_weight_grad": (
        write_weight_grad, lambda p, c, o: (axis(c, 1, 0, o), axis(o, 0, 1, 1), axis(p, c, o, 0)),
    ),
}  # fmt: skip
"""The writer of an operator's kernel; and the axes m, n, k of the product that computes each pixel
from one pixel, for p pixels, c and o channels of the input and of the output."""


@writes(*FORMS, frame=KernelFrame)
def convolve(frame: KernelFrame) -> Kernel:
    """The kernel of a convolution, or of one of its adjoints."""
    record, (_, other) = frame.record, frame.record.inputs
    kernel = record.attrs.get("kernel")
    target, kernel = (other, kernel) if kernel else (record, other.shape[:-2])
    im, (write, axes) = images_of(record, target, kernel), FORMS[record.op.name]
    if im.pointwise:
        p = Product((), *axes(target.spec.size // im.outs, im.channels, im.outs))
        return product_kernel(FloatKernel(*frame.how, paired=is_paired(frame, p)), p)
    paired = are_halves(*record.inputs) and has_pairs(im, write)
    whole = write is write_convolution or (write is write_input_grad and im.stride == (1, 1))
    frame = FloatKernel(*frame.how, paired=paired, as_stored=paired and whole)
    if paired and write is not write_weight_grad:
        frame.names[0] = "in0" if im.channels % 2 else f"((const {frame.E} *)in0)"
        im = im._replace(channels=-(-im.channels // 2))
    return write(frame, im)


def has_pairs(im: Images, write) -> bool:
    """Whether the kernel multiplies pairs: of pixels, or of channels. (Winograd's algorithm, which
    multiplies fewer floats, takes as long or longer.)
    """
    if im.groups > 1 or is_open(im.source[1]) or is_open(im.target[1]):
        return False
    if facts().amx and im.channels == 1:  # a tile of pairs would be almost empty
        return False
    if write is write_weight_grad:
        _, across = im.lines(sweep_forward)
        if facts().amx:
            return im.channels >= FEWEST
        return is_plain(im, across) and across.count % 2 == 0
    if write is write_convolution:
        acrosses = [im.lines(sweep_forward)[1]]
    else:
        _, acrosses = im.lines(sweep_backward)
        if columns_fit(im, 4) and columns_pay(im, 4, faster=2):
            return False
    return all(is_plain(im, across) for across in acrosses)
