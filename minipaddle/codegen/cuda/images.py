"""Convolutions with the channels last, as products of matrices, and the pooling of images.

The pixels that a window meets are laid in a row of a matrix (`columns`), for each group

    columns [N · positions, taps · channels]

so that a convolution is columns · w, its adjoint in w is columnsᵀ · g, and its adjoint in the image
spreads g · wᵀ: every pixel adds up what it was in.
"""

from __future__ import annotations

from math import inf, prod

from ...engine.codegen.scalar import CannotWrite, literal, wide
from ...engine.core import dtype as dt
from .calls import CUDA_TYPES, Clear, Gemm, Matrix, Operand, Work, operands, works
from .indexing import by_element
from .text import each, filled, inserted


def three(sizes, one) -> tuple:
    """Sizes of one, two or three axes, as of three."""
    return (*(one,) * (3 - len(sizes)), *sizes)


def named(letter: str, sizes) -> dict:
    """Words of a template: letter + D, H, W."""
    return {f"{letter}{axis}": n for axis, n in zip("DHW", sizes)}


# ---- convolution -----------------------------------------------------------------------------

COLUMNS = """
const int64_t c = i % CHANNELS, t = i / CHANNELS % TAPS, p = i / (CHANNELS * TAPS) % POSITIONS;
const int64_t n = i / (CHANNELS * TAPS * POSITIONS) % IMAGES;
const int64_t g = i / (CHANNELS * TAPS * POSITIONS * IMAGES);
const int64_t d = p / (OH * OW) * SD - PD + t / (KH * KW) * GD;
const int64_t h = p / OW % OH * SH - PH + t / KW % KH * GH;
const int64_t w = p % OW * SW - PW + t % KW * GW;
const bool inside = d >= 0 && d < ID && h >= 0 && h < IH && w >= 0 && w < IW;
columns[i] = inside ? x[(((n * ID + d) * IH + h) * IW + w) * (GROUPS * CHANNELS) + g * CHANNELS + c]
    : STORE(0);
"""

SPREAD = """
const int64_t c = i % CHANNELS, g = i / CHANNELS % GROUPS, q = i / (CHANNELS * GROUPS);
const int64_t w = q % IW, h = q / IW % IH, d = q / (IW * IH) % ID, n = q / (IW * IH * ID);
T sum = 0;
for (int t = 0; t < TAPS; t++) {
    const int64_t a = d + PD - t / (KH * KW) * GD, b = h + PH - t / KW % KH * GH;
    const int64_t e = w + PW - t % KW * GW;
    if (a < 0 || b < 0 || e < 0 || a % SD || b % SH || e % SW) continue;
    if (a / SD >= OD || b / SH >= OH || e / SW >= OW) continue;
    const int64_t p = (a / SD * OH + b / SH) * OW + e / SW;
    sum += LOAD(columns[(((g * IMAGES + n) * POSITIONS + p) * TAPS + t) * CHANNELS + c]);
}
image[i] = STORE(sum);
"""


class Convolution:
    """The sizes of a convolution: `image` is the large spec, `small` the one with the outputs."""

    def __init__(self, record, image, small, kernel):
        attrs, self.record = record.attrs, record
        if image.dtype not in dt.FLOATS or image.ndim > 5:
            raise CannotWrite(f"{record.op.name} of {image}")
        self.n, self.groups = image.shape[0], attrs["groups"]
        self.channels, self.outs = image.shape[-1] // self.groups, small.shape[-1]
        self.positions, self.taps = prod(small.shape[1:-1]), prod(kernel)
        self.rows, self.width = self.n * self.positions, self.taps * self.channels
        padding = [low for low, _ in attrs["padding"]]
        self.words = {
            **named("I", three(image.shape[1:-1], 1)), **named("O", three(small.shape[1:-1], 1)),
            **named("K", three(kernel, 1)), **named("S", three(attrs["stride"], 1)),
            **named("P", three(padding, 0)), **named("G", three(attrs["dilation"], 1)),
            "CHANNELS": self.channels, "TAPS": self.taps, "POSITIONS": self.positions,
            "IMAGES": self.n, "GROUPS": self.groups,
        }  # fmt: skip
        still = all(s == 1 for s in attrs["stride"]) and not any(map(sum, attrs["padding"]))
        self.same = still and self.taps == 1 and self.groups == 1
        self.nbytes = (
            0 if self.same else self.groups * self.rows * self.width * image.dtype.itemsize
        )
        self.dtype, self.image_size = image.dtype, image.size

    @property
    def empty(self) -> bool:
        return not (self.rows and self.width and self.outs)

    def columns(self, at: Operand, turned: bool = False) -> Matrix:
        """The matrix of columns: that at `at` if it is the image itself, else in the workspace."""
        at = at if self.same else Operand("work")
        return Matrix(at, self.width, self.rows * self.width, turned)

    def outputs(self, at: Operand, turned: bool = False) -> Matrix:
        """A matrix whose lines are the outputs of a group: g, the result, or the weights."""
        return Matrix(at, self.outs, self.outs // self.groups, turned)

    def gemm(self, x: Matrix, y: Matrix, c: Matrix, m: int, n: int, k: int) -> Gemm:
        return Gemm(x, y, c, m, n, k, self.groups, self.dtype)

    def laid(self, name: str, at: Operand) -> tuple:
        """The call that lays the columns of an image."""
        if self.same:
            return ()
        E, size = CUDA_TYPES[self.dtype], self.groups * self.rows * self.width
        text = filled(COLUMNS, self.dtype, self.words)
        own = [f"const {E} *x", f"{E} *columns"]
        return (each(f"{name}_columns", own, size, text, (at, Operand("work"))),)


@works("conv_last")
def emit_conv(record, name: str) -> Work:
    """The calls of `conv_last`."""
    x, w = record.inputs
    c = Convolution(record, x.spec, record.spec, w.shape[:-2])
    if c.empty:
        return Work((Clear(Operand("out"), record.spec.nbytes),))
    image, weight, out = operands(record)
    product = c.gemm(c.columns(image), c.outputs(weight), c.outputs(out),
                     c.rows, c.outs // c.groups, c.width)  # fmt: skip
    return Work((*c.laid(name, image), product), c.nbytes)


@works("conv_last_input_grad")
def emit_input_grad(record, name: str) -> Work:
    """The calls of `conv_last_input_grad`."""
    g, w = record.inputs
    c = Convolution(record, record.spec, g.spec, w.shape[:-2])
    if c.empty:
        return Work((Clear(Operand("out"), record.spec.nbytes),))
    given, weight, out = operands(record)
    product = c.gemm(c.outputs(given), c.outputs(weight, True), c.columns(out),
                     c.rows, c.width, c.outs // c.groups)  # fmt: skip
    if c.same:
        return Work((product,))
    E, text = CUDA_TYPES[c.dtype], filled(SPREAD, c.dtype, c.words)
    own = [f"const {E} *columns", f"{E} *image"]
    return Work((product, each(name, own, c.image_size, text, (Operand("work"), out))), c.nbytes)


@works("conv_last_weight_grad")
def emit_weight_grad(record, name: str) -> Work:
    """The calls of `conv_last_weight_grad`."""
    x, g = record.inputs
    c = Convolution(record, x.spec, g.spec, record.attrs["kernel"])
    if c.empty:
        return Work((Clear(Operand("out"), record.spec.nbytes),))
    image, given, out = operands(record)
    product = c.gemm(c.columns(image, True), c.outputs(given), c.outputs(out),
                     c.width, c.outs // c.groups, c.rows)  # fmt: skip
    return Work((*c.laid(name, image), product), c.nbytes)


# ---- pooling ---------------------------------------------------------------------------------

WINDOW = """
const int64_t c = i % CHANNELS, p = i / CHANNELS;
const int64_t first_w = p % OW * SW - PW, first_h = p / OW % OH * SH - PH;
const int64_t first_d = p / (OW * OH) % OD * SD - PD, n = p / (OW * OH * OD);
"""
"""Result i is a window's: where it begins."""

TAP = """
for (int t = 0; t < KD * KH * KW; t++) {
    const int64_t d = first_d + t / (KH * KW), h = first_h + t / KW % KH, w = first_w + t % KW;
    if (d < 0 || d >= ID || h < 0 || h >= IH || w < 0 || w >= IW) { OUTSIDE continue; }
    const int64_t at = (((n * ID + d) * IH + h) * IW + w) * CHANNELS + c;
    INSIDE
}
"""
"""Every pixel of the window; `at` is where it lies."""

AROUND = """
const int64_t c = i % CHANNELS, q = i / CHANNELS;
const int64_t x = q % IW, y = q / IW % IH, z = q / (IW * IH) % ID, n = q / (IW * IH * ID);
T total = 0;
for (int u = 0; u < KD * KH * KW; u++) {
    const int64_t e = z + PD - u / (KH * KW), b = y + PH - u / KW % KH, a = x + PW - u % KW;
    if (e < 0 || b < 0 || a < 0 || e % SD || b % SH || a % SW) continue;
    if (e / SD >= OD || b / SH >= OH || a / SW >= OW) continue;
    const int64_t first_d = e / SD * SD - PD, first_h = b / SH * SH - PH;
    const int64_t first_w = a / SW * SW - PW;
    const int64_t to = (((n * OD + e / SD) * OH + b / SH) * OW + a / SW) * CHANNELS + c;
    INSIDE
}
out0[i] = STORE(total);
"""
"""Result i is a pixel's: it adds up over the windows `to` it is in, at their place u."""

MAXIMUM = """
T best = LOWEST;
TAP
out0[i] = STORE(best);
"""

CHOSEN = """
const T top = LOAD(Y[WHERE]);
int found = -1;
TAP
"""
"""The place in the window where its maximum stands, the first of equal ones."""


def pooling(record, name: str, image, small, body: str, **words) -> Work:
    """A kernel of windows; `image` and `small` are specs."""
    if image.ndim > 5 or record.dtype not in dt.FLOATS:
        raise CannotWrite(f"{record.op.name} of {image}")
    windows = three(record.attrs["windows"], (1, 1, 0, 1))
    for letter, k in zip("KSPO", range(4)):
        words |= named(letter, [w[k] for w in windows])
    words |= named("I", three(image.shape[1:-1], 1))
    return by_element(record, name, body, CHANNELS=image.shape[-1], **words)


def tap(inside: str, outside: str = "") -> str:
    """Statements for every pixel of a window, and for every place beyond the image."""
    return inserted(TAP.replace("OUTSIDE", outside), "INSIDE", inside).strip("\n")


def chosen(x: str, y: str, where: str) -> str:
    """Statements that find the maximum of a window; outside the image there is -inf."""
    inside = f"if (found < 0 && LOAD({x}[at]) == top) found = t;"
    outside = "if (found < 0 && top == -INFINITY) found = t;"
    text = CHOSEN.replace("Y[WHERE]", f"{y}[{where}]")
    return inserted(text, "TAP", tap(inside, outside))


@works("max_pool_last")
def emit_max(record, name: str) -> Work:
    """The kernel of `max_pool_last`; NaN is larger than all."""
    met = "const T x = LOAD(in0[at]);\nif (x > best || x != x) best = x;"
    body = WINDOW + inserted(MAXIMUM, "TAP", tap(met))
    lowest = literal(-inf, wide(record.dtype)).template
    return pooling(record, name, record.inputs[0].spec, record.spec, body, LOWEST=lowest)


@works("max_pool_last_grad")
def emit_max_grad(record, name: str) -> Work:
    """The kernel of `max_pool_last_grad`."""
    inside = chosen("in1", "in2", "to") + "if (found == u) total += LOAD(in0[to]);"
    body = inserted(AROUND, "INSIDE", inside)
    return pooling(record, name, record.spec, record.inputs[2].spec, body)


@works("max_pool_last_take")
def emit_max_take(record, name: str) -> Work:
    """The kernel of `max_pool_last_take`."""
    met = "if (t == found) total = LOAD(in0[at]);"
    body = WINDOW + chosen("in1", "in2", "i") + "T total = 0;\n" + tap(met)
    body += "\nout0[i] = STORE(total);\n"
    return pooling(record, name, record.inputs[1].spec, record.spec, body)


def share(record) -> str:
    """Statements: `share`, 1 / how many pixels a window counts."""
    attrs = record.attrs
    if attrs["divisor"]:
        return f"const T share = 1 / (T){attrs['divisor']};\n"
    text, sizes = "", []
    for axis in "DHW"[3 - len(attrs["windows"]) :]:
        first, low = f"first_{axis.lower()}", f"P{axis}"
        end = f"I{axis}" if attrs["exclusive"] else f"(I{axis} + {low})"
        begin = f"({first} > 0 ? {first} : 0)" if attrs["exclusive"] else first
        stop = f"({first} + K{axis} < {end} ? {first} + K{axis} : {end})"
        name = f"pixels_{axis.lower()}"
        text += f"const int64_t {name} = {stop} - {begin};\n"
        sizes.append(f"(T)({name} > 1 ? {name} : 1)")
    return text + f"const T share = 1 / ({' * '.join(sizes)});\n"


@works("avg_pool_last")
def emit_avg(record, name: str) -> Work:
    """The kernel of `avg_pool_last`."""
    body = WINDOW + share(record) + "T total = 0;\n" + tap("total += LOAD(in0[at]);")
    body += "\nout0[i] = STORE(total * share);\n"
    return pooling(record, name, record.inputs[0].spec, record.spec, body)


@works("avg_pool_last_grad")
def emit_avg_grad(record, name: str) -> Work:
    """The kernel of `avg_pool_last_grad`."""
    body = inserted(AROUND, "INSIDE", share(record) + "total += LOAD(in0[to]) * share;")
    return pooling(record, name, record.spec, record.inputs[0].spec, body)
