"""Products of int8 in int32: in tiles (`integer_tile.c`), by Winograd's, or as plain loops.

The left side is widened to int16, block by block of rows; of a convolution a row is the window of a
pixel. The right side lies in panels, which are packed before the runs where it is constant.
"""

from __future__ import annotations

from math import prod
from string import Template

from ..engine.codegen.kernel import Kernel, emits, function, read_template, stack_array
from ..engine.codegen.plain_products import loops_over
from ..engine.codegen.writer import condition, in_c, least
from ..engine.core.polynomial import loop as variable
from ..engine.ops.movement import ravel
from .c_text import PARALLEL, Workspace, epilogue_after, indent, loop
from .epilogue import block_of
from .integer_winograd import by_winograd, tiled
from .matmul import fits_rows
from .prepacking import Prepack, is_constant_input
from .product import product_of
from .strips import ON_STACK, Images, images_of

ROWS, PANEL, MOST = 6, 16, 48
"""Rows and columns of a tile, and the most rows of a block."""

INTEGERS = Template(read_template("integers.c", __file__)).substitute(rows=ROWS)
PANELS = read_template("integer_panels.c", __file__)
WINDOWS = read_template("integer_windows.c", __file__)
DEPTHWISE = read_template("integer_depthwise.c", __file__)

MOST_TAPS = 64
"""Of a depthwise convolution: the addresses of their pixels are on the stack."""

SERIAL = 1 << 19
"""Multiplications from which on a second thread pays."""


def tile(T: str) -> tuple[str, str]:
    """Helpers: `integer_panel_T`, where the panels are of type T."""
    call = "    case %d: integer_tile_%s(%d, pairs, a, a_row, b, c, c_row, n); break;"
    rest = "\n".join(call % (n, T, n) for n in range(1, ROWS))
    text = Template(read_template("integer_tile.c", __file__))
    return INTEGERS, text.substitute(T=T, rows=ROWS, rest=rest)


class Tiles:
    """A product of M rows, K terms and N columns for each of `count` images, in tiles: the numbers
    of its text. `k_step` and `n_step` lead through the right side.
    """

    def __init__(self, record, right: int, count: int, sizes, steps):
        self.record, self.edge, self.name = record, record.inputs[right], f"in{right}"
        self.count, (self.m, self.n, self.k), self.steps = count, sizes, steps
        self.row = self.k + self.k % 2
        fitting = ON_STACK // (2 * max(self.row, 1)) // ROWS * ROWS
        self.block = min(MOST, fitting)
        self.constant = is_constant_input(self.edge)

    @property
    def pay(self) -> bool:
        """Whether a block fits the stack, and there are rows enough to pack the panels for."""
        return self.block > 0 and (self.constant or self.count * self.m >= ROWS)

    def kernel(self, name: str, gather: str, helpers=(), *, rows, parameters, c_row: int) -> Kernel:
        """The kernel. `gather` is C text that puts rows [first, last) of image n into `wide`."""
        panels, room = -(-self.n // PANEL) * PANEL * self.row, Workspace()
        pack = f"integer_panels({self.n}, {self.k}, %s, {self.steps[0]}, {self.steps[1]}, %s);"
        prepack, body = None, f"    const int8_t *panels = {self.name};\n"
        if self.constant:
            prepack = Prepack(self.edge, panels, pack % ("given", "made"))
        else:
            body = f"    int8_t *panels = {room.array('int8_t', panels)};\n"
            body += f"    {pack % (self.name, 'panels')}\n"
        blocks = -(-self.m // self.block)
        inside = (
            f"const int64_t n = i / {blocks}, first = i % {blocks} * {self.block};\n"
            f"const int64_t last = {least(f'first + {self.block}', self.m)};\n"
            f"{stack_array('int16_t', 'wide', self.block * self.row + 15)}\n"
            f"{gather}"
            f"{block_of(rows, self.record.spec, f'n * {self.m} + first', self.block)}"
            f"integer_rows(last - first, {self.n}, {self.row // 2}, wide, panels,\n"
            f"             out0 + (n * {self.m} + first) * {c_row}, {c_row});\n"
        )
        if rows is not None:
            inside += rows(f"n * {self.m} + first", f"n * {self.m} + last")
        large = self.count * self.m * self.n * self.k > SERIAL
        body += indent(loop("i", self.count * blocks, inside, pragma=PARALLEL * large), 4)
        text = function(self.record, name, body, work=room.size > 0, parameters=parameters)
        return Kernel(name, text, room.size, (*tile("int8_t"), PANELS, *helpers), prepack)


# ---- matrices --------------------------------------------------------------------------------


def straight(start: str, length: int, end: str) -> str:
    """C text that widens rows of `length` numbers which are neighbours in memory."""
    return f"integer_widen(wide, {start}, (last - first) * {length}, {end});\n"


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
    x, step = f"in{int(p.exchanged)}", tiles.row
    gather = (
        f"for (int64_t m = first; m < last; m++) {{\n"
        f"    int16_t *to = wide + (m - first) * {step};\n"
        f"    for (int64_t k = 0; k < {p.k.size}; k++) to[k] = {x}[m * {p.m.x} + k * {p.k.x}];\n"
        + f"    to[{p.k.size}] = 0;\n" * (p.k.size % 2)
        + "}\n"
    )
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
        return by_winograd(record, name, way, rows, parameters, tile("int16_t"))
    tiles = Tiles(record, 1, im.n, (oh * ow, outs, w.size // outs), (1, outs))
    if not tiles.pay:
        return plain_convolution(record, name, rows, parameters)
    sizes = [*h, c, *im.kernel, *im.stride, *im.dilation, *im.low]
    gather = (
        straight(f"in0 + (n * {oh * ow} + first) * {c}", c, f"in0 + {x.size}")
        if (im.pointwise and c % 2 == 0)
        else (
            f"integer_windows(wide, {tiles.row}, in0 + n * {h[0] * h[1] * c}, first, last, {ow},\n"
            f"                {', '.join(map(str, sizes))});\n"
        )
    )
    how = {"rows": rows, "parameters": parameters, "c_row": outs}
    return tiles.kernel(name, gather, (WINDOWS,), **how)


def depthwise(record, name: str, im: Images, rows, parameters) -> Kernel:
    """The kernel of a depthwise convolution: a tap is multiplied for 16 channels at once."""
    (h, w), (oh, ow), c, taps = im.source, im.target, im.channels, prod(im.kernel)
    wide = -(-c // 16) * 16
    elements, pack = wide * (taps + taps % 2), f"integer_depthwise_kernels(%s, %s, {taps}, {c});"
    prepack, room, body = None, Workspace(), "    const int16_t *kernels = (const int16_t *)in1;\n"
    if is_constant_input(record.inputs[1]):
        prepack = Prepack(record.inputs[1], 2 * elements, pack % ("(int16_t *)made", "given"))
    else:
        body = f"    int16_t *kernels = {room.array('int16_t', elements)};\n"
        body += f"    {pack % ('kernels', 'in1')}\n"
    sizes = *im.kernel, im.stride[1], *im.dilation
    inside = (
        f"{stack_array('int8_t', 'patch', taps * wide)}\n"
        f"{block_of(rows, record.spec, f'i * {ow}', ow)}"
        f"integer_depthwise(out0 + i * {ow * c}, {ow}, in0 + i / {oh} * {h * w * c},\n"
        f"    {h}, {w}, {c}, {', '.join(map(str, sizes))},\n"
        f"    i % {oh} * {im.stride[0]} - {im.low[0]}, -{im.low[1]}, kernels, patch);\n"
    )
    if rows is not None:
        inside += rows(f"i * {ow}", f"(i + 1) * {ow}")
    large = im.n * oh * ow * c * taps > SERIAL
    body += indent(loop("i", im.n * oh, inside, pragma=PARALLEL * large), 4)
    text = function(record, name, body, work=room.size > 0, parameters=parameters)
    return Kernel(name, text, room.size, (INTEGERS, DEPTHWISE), prepack)


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
