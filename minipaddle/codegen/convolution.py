"""C text of the convolutions with the channels last.

A row of the result is a matrix product: its rows are the pixels, k runs over the pixels of the
window and their channels, which within a row of the image are neighbours; the rows of the window
are segments. So nothing is copied but the strip of the image that some rows of the result meet,
with its padding around it, into a buffer on the thread's stack; and not even that if there is none.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core import dtype as dt
from . import gemm
from .frame import Frame
from .kernel import Kernel, emits
from .matmul import PARALLEL, SERIAL, Plan, Room, batched, indented
from .product import Product, axis, way
from .scalar import CannotWrite
from .sweep import Line, Window, backward, forward, window
from .templates import DEPTHWISE, DEPTHWISE_WEIGHT, FRAME, TURNED

ON_STACK = 1 << 17
"""Bytes of a strip that a thread keeps on its stack."""

PARTS = 4
"""Sums over the batch that are added up apart, each by one thread: so a weight's gradient does not
depend on how many there are."""


class Images(NamedTuple):
    """The sizes of a convolution: images [n, h, w, channels], kernels [kh, kw, ·, ·]."""

    n: int
    source: tuple[int, int]  # the image that is swept over
    target: tuple[int, int]  # the image that is made (of the weight's gradient: whose gradient)
    kernel: tuple[int, int]
    channels: int  # of the source
    outs: int  # of the target
    groups: int
    stride: tuple[int, int]
    low: tuple[int, int]
    dilation: tuple[int, int]

    @property
    def depthwise(self) -> bool:
        return self.groups > 1 and self.channels == self.outs == self.groups

    @property
    def pointwise(self) -> bool:
        """Does every pixel of the result come from the one below it?"""
        ones = self.kernel == self.stride == (1, 1) and self.low == (0, 0)
        return ones and self.groups == 1 and self.source == self.target


def images_of(record, source: int, target, kernel) -> Images:
    """The sizes of a record; an image of one axis is one of two, a row high."""
    attrs, x = record.attrs, record.inputs[source].spec
    if x.ndim not in (3, 4):
        raise CannotWrite("a convolution in three dimensions")
    flat = x.ndim == 3
    two = lambda sizes, one: (one, *sizes) if flat else tuple(sizes)
    return Images(
        x.shape[0], two(x.shape[1:-1], 1), two(target.shape[1:-1], 1), two(kernel, 1),
        x.shape[-1], target.shape[-1], attrs["groups"], two(attrs["stride"], 1),
        two([low for low, _ in attrs["padding"]], 0), two(attrs["dilation"], 1),
    )  # fmt: skip


# ---- the strip of an image that some rows of the result meet ---------------------------------


class Strips(NamedTuple):
    """The source in strips of `rows` positions, `count` of them an image."""

    rows: int
    count: int
    total: int  # positions of an image, from top to bottom
    height: Window
    width: Window
    pixels: int  # positions of a row
    framed: bool  # is there anything around the image?
    on_stack: bool


def strips_of(im: Images, down: list[Line], across: list[Line], itemsize: int) -> Strips:
    """Strips as high as fit the stack, and enough of them for several threads."""
    height, width = window(down), window(across)
    total, pixels = max(line.count for line in down), max(line.count for line in across)
    ends = ((height, total, im.source[0]), (width, pixels, im.source[1]))
    framed = any(w.first < 0 or w.first + w.size(count) > n for w, count, n in ends)
    row = width.size(pixels) * im.channels * itemsize
    rows = total if im.n >= PARTS else -(-total // PARTS)
    fit = (ON_STACK // max(row, 1) - height.reach - 1) // height.step + 1
    on_stack = fit >= 1
    rows = (min(rows, fit) if on_stack else total) if framed else rows
    return Strips(rows, -(-total // rows), total, height, width, pixels, framed, on_stack)


def strip_text(im: Images, s: Strips, T: str, source: str, room: Room) -> str:
    """C text: image number, first position, how many; `image` points to the strip's first pixel."""
    c, (h, w), total = im.channels, im.source, s.total
    text = f"const int64_t n = {'i' if s.count == 1 else f'i / {s.count}'};\n"
    if s.count > 1:
        text += f"const int64_t top = i % {s.count} * {s.rows};\n"
        least = f"top + {s.rows} < {total} ? {s.rows} : {total} - top"
        text += f"const int64_t rows = {s.rows if total % s.rows == 0 else least};\n"
    else:
        text += f"const int64_t top = 0, rows = {total};\n"
    first = f"top * {s.height.step} + {s.height.first}"
    if not s.framed:
        return text + (
            f"const {T} *image = {source} + ((n * {h} + {first}) * {w} + {s.width.first}) * {c};\n"
        )
    high, wide = s.height.size(s.rows), s.width.size(s.pixels)
    size = high * wide * c
    if s.on_stack:
        text += f"{T} image[{size}] __attribute__((aligned(64)));\n"
    else:
        text += f"{T} *image = {room.array(T, size * im.n)} + n * {size};\n"
    met = f"(rows - 1) * {s.height.step} + {s.height.reach + 1}"
    return text + (
        f"frame_{T}(image, {met}, {wide}, {source} + n * {h * w * c}, {h}, {w}, {c}, "
        f"{first}, {s.width.first});\n"
    )


def pitch(im: Images, s: Strips) -> int:
    """Elements from one row of the strip to the next."""
    return (s.width.size(s.pixels) if s.framed else im.source[1]) * im.channels


# ---- one sweep -------------------------------------------------------------------------------


def sweep(im: Images, s: Strips, down: Line, across: Line, T: str, b: str, out: str) -> tuple:
    """(C text, helpers): the rows of the strip for one pair of phases; b are its kernels."""
    c, o, row = im.channels, im.outs, pitch(im, s)
    (h, w), groups = im.target, im.groups
    inner, outer = c // groups, o // groups
    target = f"((n * {h} + {plus('r', down.stride, down.start)}) * {w} + {across.start}) * {o}"
    target = f"{out} + {target}"
    limit = f"top + rows && r < {down.count}" if s.total != down.count else "top + rows"
    loop = f"for (int64_t r = top; r < {limit}; r++) {{\n"
    text = f"    {T} *c = {target};\n"
    high, wide = len(down.taps), len(across.taps)
    if not high or not wide or not inner:
        clear = f"    for (int64_t p = 0; p < {across.count}; p++) "
        clear += f"memset(c + p * {across.stride * o}, 0, sizeof({T}) * {o});\n"
        return loop + text + clear + "}\n", ()
    start = (down.first - s.height.first) * row + (across.first - s.width.first) * c
    text += f"    const {T} *a = image + (r - top) * {down.step * row} + {start};\n"
    a_row, c_row = across.step * c, across.stride * o
    if im.depthwise:
        text += (
            f"    depthwise_{T}({across.count}, {c}, {high}, {wide}, a, {a_row}, "
            f"{down.gap * row}, {across.gap * c}, {b}, c, {c_row});\n"
        )
        return loop + text + "}\n", (*gemm.vectors(T), DEPTHWISE.substitute(T=T))
    if groups == 1 and (across.gap == 1 or wide == 1):
        body = tiles(
            T, across.count, outer, wide * c, high,
            ("a", a_row, 1, down.gap * row), (b, o, wide * c * o), ("c", c_row), "0",
        )  # fmt: skip
    else:
        inside = tiles(
            T, across.count, outer, inner, wide,
            (f"a + g * {inner} + t * {down.gap * row}", a_row, 1, across.gap * c),
            (f"{b} + g * {outer} + t * {wide * inner * o}", o, inner * o),
            (f"c + g * {outer}", c_row), "t > 0",
        )  # fmt: skip
        body = (
            f"for (int64_t g = 0; g < {groups}; g++)\n    for (int64_t t = 0; t < {high}; t++) {{\n"
        )
        body += indented(inside, 8) + "    }\n"
    return loop + text + indented(body, 4) + "}\n", gemm.blocks(T, across.count)


def plus(index: str, step: int, start: int) -> str:
    """C text of start + index * step."""
    text = index if step == 1 else f"{index} * {step}"
    return f"{text} + {start}" if start else text


def tiles(T, rows, columns, k, segments, a, b, c, add: str) -> str:
    """Calls of the block functions for `rows` rows: a is (pointer, row, step, segment) of A,
    b (pointer, step, segment) of B, c (pointer, row) of C."""
    text, at = "", 0
    for height, count in gemm.heights(rows):
        x = a[0] if not at else f"{a[0]} + {at * a[1]}"
        y = c[0] if not at else f"{c[0]} + {at * c[1]}"
        text += (
            f"rows{height}_{T}({count}, {columns}, {k}, {segments}, {x}, {a[1]}, {a[2]}, {a[3]},\n"
            f"    {b[0]}, {b[1]}, {b[2]}, PANEL_{T}, {y}, {c[1]}, {add});\n"
        )
        at += count
    return text


# ---- the operators ---------------------------------------------------------------------------


def swept(frame: Frame, im: Images, downs, acrosses, kernels: str) -> Kernel:
    """The kernel that sweeps over an image, once for each pair of phases."""
    T, width = frame.T, dt.float64.numpy.itemsize if frame.T == "double" else 4
    s = strips_of(im, downs, acrosses, width)
    items, helpers = im.n * s.count, list(FRAMES(T) if s.framed else gemm.vectors(T))
    inside, at = strip_text(im, s, T, frame.names[0], frame.room), 0
    for down in downs:
        for across in acrosses:
            b = f"{kernels} + {at}" if at else kernels
            text, needed = sweep(im, s, down, across, T, b, frame.target)
            inside, helpers = inside + text, [*helpers, *needed]
            at += len(down.taps) * len(across.taps) * im.channels // im.groups * im.outs
    if frame.inline:
        (h, w), stride = im.target, downs[0].stride
        end = f"(top + rows) * {stride}"
        end = f"({end} < {h} ? {end} : {h})" if h % stride else end
        inside += (
            f"const int64_t first = (n * {h} + top * {stride}) * {w};\n"
            f"const int64_t last = (n * {h} + {end}) * {w};\n" + frame.rows("first", "last")
        )
    pragma = "    " + PARALLEL if items > 1 and work_of(im) > SERIAL else ""
    loop = f"{pragma}    for (int64_t i = 0; i < {items}; i++) {{\n{indented(inside, 8)}    }}\n"
    return frame.kernel(loop, helpers, done=True)


def FRAMES(T: str) -> tuple[str, ...]:
    """Helpers: `frame_T`."""
    return (*gemm.vectors(T), FRAME.substitute(T=T))


def work_of(im: Images) -> int:
    """Multiplications, about: every pixel of the smaller image meets every tap."""
    pixels = min(im.source[0] * im.source[1], im.target[0] * im.target[1])
    return im.n * pixels * im.kernel[0] * im.kernel[1] * im.channels * im.outs // im.groups


def multiplied(frame: Frame, p: Product) -> Kernel:
    """The kernel of a convolution that is one product of matrices."""
    how = way(p, dt.float32.numpy if frame.half else frame.out.dtype)
    rows = frame.inline if how != "blas" else None
    plan = Plan(p, frame.T, how, (*frame.names, frame.target), False, rows, p.n.size, frame.room)
    text, helpers = batched(plan)
    return frame.kernel(text, helpers, done=rows is not None)


@emits("conv_last")
def emit_conv(record, name, rows=None, parameters=()) -> Kernel:
    """The kernel of `conv_last`."""
    frame, kernel = Frame(record, name, rows, parameters), record.inputs[1].shape[:-2]
    im = images_of(record, 0, record, kernel)
    if not frame.out.size or frame.empty:
        return frame.kernel("")
    if im.pointwise:
        pixels, c, o = record.spec.size // im.outs, im.channels, im.outs
        m, n = axis(pixels, c, 0, o), axis(o, 0, 1, 1)
        return multiplied(frame, Product((), m, n, axis(c, 1, o, 0)))
    down, across = (
        [forward(im.target[d], im.kernel[d], im.stride[d], im.low[d], im.dilation[d])]
        for d in (0, 1)
    )
    return swept(frame, im, down, across, frame.names[1])


@emits("conv_last_input_grad")
def emit_input_grad(record, name, rows=None, parameters=()) -> Kernel:
    """The kernel of `conv_last_input_grad`."""
    frame, kernel = Frame(record, name, rows, parameters), record.inputs[1].shape[:-2]
    im = images_of(record, 0, record, kernel)
    if not frame.out.size or frame.empty:
        return frame.kernel("")
    if im.pointwise:
        pixels, o, c = record.spec.size // im.outs, im.channels, im.outs
        m, n = axis(pixels, o, 0, c), axis(c, 0, o, 1)
        return multiplied(frame, Product((), m, n, axis(o, 1, 1, 0)))
    downs, acrosses = (
        backward(im.target[d], im.kernel[d], im.stride[d], im.low[d], im.dilation[d])
        for d in (0, 1)
    )
    taps = [
        t * im.kernel[1] + u
        for down in downs
        for across in acrosses
        for t in down.taps
        for u in across.taps
    ]
    frame.text += turned_kernels(frame, im, taps)
    result = swept(frame, im, downs, acrosses, "turned")
    return result._replace(helpers=(TURNED.substitute(T=frame.T), *result.helpers))


def turned_kernels(frame: Frame, im: Images, taps) -> str:
    """C text: the kernels with inputs and outputs exchanged, tap by tap in this order."""
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


@emits("conv_last_weight_grad")
def emit_weight_grad(record, name, rows=None, parameters=()) -> Kernel:
    """The kernel of `conv_last_weight_grad`: sums over pixels, in parts of the batch."""
    frame, g = Frame(record, name, rows, parameters), record.inputs[1]
    im = images_of(record, 0, g, record.attrs["kernel"])
    if not frame.out.size or frame.empty:
        return frame.kernel("")
    if im.pointwise:
        pixels, c, o = g.spec.size // im.outs, im.channels, im.outs
        m, n = axis(c, 1, 0, o), axis(o, 0, 1, 1)
        return multiplied(frame, Product((), m, n, axis(pixels, c, o, 0)))
    T, size = frame.T, frame.out.size
    down, across = (
        forward(im.target[d], im.kernel[d], im.stride[d], im.low[d], im.dilation[d]) for d in (0, 1)
    )
    s = strips_of(im, [down], [across], 8 if T == "double" else 4)
    items = im.n * s.count
    parts = min(PARTS, items) if work_of(im) > SERIAL else 1
    inside = strip_text(im, s, T, frame.names[0], frame.room)
    text, helpers = met_pixels(im, s, down, across, T, frame.names[1])
    more = f"{frame.room.array(T, size * (parts - 1))}" if parts > 1 else ""
    part = f"p ? {more} + (p - 1) * {size} : {frame.target}" if parts > 1 else frame.target
    first = f"p * {items} / {parts}"
    body = (
        f"    {T} *part = {part};\n"
        f"    memset(part, 0, {size} * sizeof({T}));\n"
        f"    for (int64_t i = {first}; i < (p + 1) * {items} / {parts}; i++) {{\n"
        f"{indented(inside + text, 8)}    }}\n"
    )
    pragma = "    " + PARALLEL if parts > 1 else ""
    loops = f"{pragma}    for (int64_t p = 0; p < {parts}; p++) {{\n{indented(body, 4)}    }}\n"
    if parts > 1:
        terms = " + ".join(f"more[i + {k * size}]" for k in range(parts - 1))
        loops += f"    const {T} *more = {more};\n"
        loops += f"    for (int64_t i = 0; i < {size}; i++) {frame.target}[i] += {terms};\n"
    return frame.kernel(loops, [*(FRAMES(T) if s.framed else ()), *helpers])


def met_pixels(im: Images, s: Strips, down: Line, across: Line, T: str, g: str) -> tuple:
    """(C text, helpers): what the pixels of a strip add to `part`."""
    c, o, row, groups = im.channels, im.outs, pitch(im, s), im.groups
    inner, outer, (high, wide) = c // groups, o // groups, im.kernel
    g = f"{g} + (n * {im.target[0]} + top) * {im.target[1] * o}"
    steps = across.step * c, down.step * row
    if im.depthwise:
        return (
            f"depthwise_weight_{T}(rows, {across.count}, {c}, {high}, {wide}, image, {steps[0]}, "
            f"{steps[1]}, {down.gap * row}, {across.gap * c}, {g}, part);\n"
        ), (*gemm.vectors(T), DEPTHWISE_WEIGHT.substitute(T=T))
    whole = groups == 1 and across.gap == 1
    count = wide * c if whole else inner
    a, b = f"image + t * {down.gap * row}", g
    target = f"part + t * {wide * inner * o}"
    if not whole:
        a += f" + u * {across.gap * c} + g * {inner}"
        b += f" + g * {outer}"
        target += f" + u * {inner * o} + g * {outer}"
    text = tiles(
        T, count, outer, across.count, "rows",
        (a, 1, *steps), (b, o, im.target[1] * o), (target, o), "1",
    )  # fmt: skip
    loop = f"for (int64_t t = 0; t < {high}; t++) {{\n{indented(text, 4)}}}\n"
    if not whole:
        loop = f"for (int64_t u = 0; u < {wide}; u++)\n{indented(loop, 4)}"
        loop = f"for (int64_t g = 0; g < {groups}; g++)\n{indented(loop, 4)}"
    return loop, gemm.blocks(T, count)
