"""Products of int8 in int32: in tiles (`grouped_tiles.py`), by Winograd's, or as plain loops."""

from __future__ import annotations

from math import prod

from ..engine.codegen.kernel import Kernel, emits, function, read_template, stack_array
from ..engine.codegen.plain_products import loops_over
from ..engine.codegen.writer import condition, in_c
from ..engine.core.polynomial import loop as variable
from ..engine.core.record import Record
from ..engine.ops.movement import ravel
from .c_text import PARALLEL, SIZES, Workspace, epilogue_after, indent, loop
from .epilogue import block_of
from .grouped_tiles import INTEGERS, SERIAL, SHORTS, Tiles, gathered, straight
from .integer_winograd import by_winograd, tiled
from .known_inputs import is_known_unsigned
from .machine import facts
from .matmul import fits_rows
from .prepacking import Prepack, is_constant_input
from .product import product_of
from .strips import Images, images_of

DEPTHWISE = read_template("integer_depthwise.c", __file__)

MOST_TAPS = 64
"""Of a depthwise convolution: the addresses of their pixels are on the stack."""

# ---- matrices --------------------------------------------------------------------------------


@emits("product_integer")
def emit_product(record, name: str, rows=None, parameters=()) -> Kernel:
    """The kernel of a product of int8 matrices."""
    (x, y), out = (e.spec for e in record.inputs), record.spec
    if not out.size:
        return Kernel(name, function(record, name, "", parameters=parameters))
    p = product_of(x, y, out, **record.attrs, keep_columns=rows is not None)
    sizes = p.m.size, p.n.size, p.k.size
    tiles = Tiles(record, 1 - p.exchanged, 1, sizes, (p.n.y, p.k.y))
    in_rows = fits_rows(p, out) and p.n.out <= 1 and p.count == 1
    if not (p.k.size and in_rows and tiles.pay):
        return plain_product(record, name, rows, parameters)
    gather = gathered(p, tiles)
    return tiles.kernel(name, gather, rows=rows, parameters=parameters, c_row=p.n.size)


def plain_product(record, name: str, rows, parameters) -> Kernel:
    """The kernel in plain loops. The innermost one runs through the result's columns, so the
    compiler makes vectors of it.
    """
    p = product_of(*(e.spec for e in record.inputs), record.spec, **record.attrs, keep_order=True)
    letters = [*(f"b{k}" for k in range(len(p.batch))), "m", "k", "n"]
    axes = [(variable(c, a.size), a) for c, a in zip(letters, (*p.batch, p.m, p.k, p.n))]
    places = [sum(i * getattr(a, step) for i, a in axes) for step in ("out", "x", "y")]
    if p.exchanged:
        places[1:] = places[:0:-1]
    return emit_loops(record, name, rows, parameters, [i for i, _ in axes], places)


def emit_loops(record, name: str, rows, parameters, axes, places, ranges=()) -> Kernel:
    """Loops over `axes`. `places` are the indices into the memory of the result and of the two
    inputs; what is out of `ranges` adds nothing.
    """
    loops = [a for axis in axes for a in axis.loops]
    heads = [f"for (int64_t {a} = 0; {a} < {a.extent}; {a}++)" for a in loops]
    heads += [f"if {condition(ranges)}"] if condition(ranges) != "(true)" else []
    out, x, y = map(in_c, places)
    lines = [f"memset(out0, 0, {record.spec.nbytes});"]
    lines += ["    " * depth + head for depth, head in enumerate(heads)]
    lines.append("    " * len(heads) + f"out0[{out}] += in0[{x}] * in1[{y}];")
    body = "".join(f"    {line}\n" for line in lines) + epilogue_after(rows, record.spec)
    return Kernel(name, function(record, name, body, parameters=parameters))


# ---- convolutions ----------------------------------------------------------------------------


@emits("conv_last_integer")
def emit_convolution(record, name: str, rows=None, parameters=()) -> Kernel:
    """The kernel of a convolution of int8 images [N, *size, C] with kernels [*kernel, in, out]."""
    (x, w), out = (e.spec for e in record.inputs), record.spec
    if not out.size:
        return Kernel(name, function(record, name, "", parameters=parameters))
    *kernel, inner, outs = w.shape
    if x.ndim > 4 or not (inner and x.size):
        return plain_convolution(record, name, rows, parameters)
    im = images_of(record, record, kernel)
    if im.depthwise and prod(im.kernel) <= MOST_TAPS:
        return depthwise(record, name, im, rows, parameters)
    if im.groups > 1:
        return plain_convolution(record, name, rows, parameters)
    (oh, ow), (h, c) = im.target, (im.source, im.channels)
    way = tiled(im) if is_constant_input(record.inputs[1]) else None
    if way is not None:
        return by_winograd(record, name, way, rows, parameters, SHORTS.tile)
    tiles = Tiles(record, 1, im.n, (oh * ow, outs, w.size // outs), (1, outs))
    if not tiles.pay:
        return plain_convolution(record, name, rows, parameters)
    form = tiles.form
    sizes = [*h, c, *im.kernel, *im.stride, *im.dilation, *im.low]
    gather = (
        straight(form, f"in0 + (n * {oh * ow} + first) * {c}", c, f"in0 + {x.size}")
        if (im.pointwise and c == tiles.row)
        else (
            f"integer_windows_{form.F}(\n"
            f"                wide, {tiles.row}, in0 + n * {h[0] * h[1] * c}, first, last, {ow},\n"
            f"                {', '.join(map(str, sizes))});\n"
        )
    )
    how = {"rows": rows, "parameters": parameters, "c_row": outs}
    return tiles.kernel(name, gather, (form.windows,), **how)


def depthwise(record, name: str, im: Images, rows, parameters) -> Kernel:
    """The kernel of a depthwise convolution: a tap is multiplied for 16 channels at once."""
    (h, w), (oh, ow), c, taps = im.source, im.target, im.channels, prod(im.kernel)
    quads = fits_quads(record.inputs[0], c)
    wide, T, F = -(-c // 16) * 16, *(("int8_t", "quads") if quads else ("int16_t", "kernels"))
    elements = -(-c // 32) * 128 * (taps // 4 + taps % 4) if quads else wide * (taps + taps % 2)
    pack = f"integer_depthwise_{F}(%s, %s, {taps}, {c});"
    prepack, room, body = None, Workspace(), f"    const {T} *kernels = (const {T} *)in1;\n"
    if is_constant_input(record.inputs[1]):
        made = pack % (f"({T} *)made", "given")
        prepack = Prepack(record.inputs[1], SIZES[T] * elements, made)
    else:
        body = f"    {T} *kernels = {room.array(T, elements)};\n"
        body += f"    {pack % ('kernels', 'in1')}\n"
    sizes = *im.kernel, im.stride[1], *im.dilation
    inside = (
        f"{stack_array('int8_t', 'patch', c if quads else taps * wide)}\n"
        f"{block_of(rows, record.spec, f'i * {ow}', ow)}"
        f"integer_depthwise(out0 + i * {ow * c}, {ow}, in0 + i / {oh} * {h * w * c},\n"
        f"    {h}, {w}, {c}, {', '.join(map(str, sizes))},\n"
        f"    i % {oh} * {im.stride[0]} - {im.low[0]}, -{im.low[1]}, kernels, patch,\n"
        f"    {int(quads)});\n"
    )
    if rows is not None:
        inside += rows(f"i * {ow}", f"(i + 1) * {ow}")
    large = im.n * oh * ow * c * taps > SERIAL
    body += indent(loop("i", im.n * oh, inside, pragma=PARALLEL * large), 4)
    text = function(record, name, body, work=room.size > 0, parameters=parameters)
    return Kernel(name, text, room.size, (INTEGERS, DEPTHWISE), prepack)


def fits_quads(image: Record, channels: int) -> bool:
    """Whether a depthwise convolution sums four taps at once: bytes from 0 to 127 on a processor
    that multiplies such bytes, 32 channels or more.
    """
    return channels >= 32 and facts().vector >= 32 and is_known_unsigned(image)


def plain_convolution(record, name: str, rows, parameters) -> Kernel:
    """The kernel in plain loops, for groups and for any number of axes."""
    (x, w), out, attrs = (e.spec for e in record.inputs), record.spec, record.attrs
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
    axes = [n, *pixels, *taps, g, c, o]
    return emit_loops(record, name, rows, parameters, axes, places, ranges)
