"""C text of depthwise convolutions with the channels first: each plane of an image by itself.

A strip of a plane is copied with its padding, into one image for each phase of the stride: every
stride-th pixel of every stride-th row. There the pixels that a tap meets, from one position to the
next, are neighbours, and the rows of a strip are one line of positions: a vector of results is one
multiply-add for each tap. The positions beyond the end of a row are computed too, and dropped.

Eager mode computes with these. In a program the channels are last (`passes.layout`), because the
products between two depthwise convolutions want them there.
"""

from __future__ import annotations

from math import prod
from string import Template
from typing import NamedTuple

from ...engine.codegen.kernel import Kernel, read_template, stack_array
from ...engine.codegen.scalar import CannotWrite
from ...engine.codegen.writer import least, worth_sharing
from ..c_text import ON_STACK, SIZES, indent, loop, share_loop
from ..kernel_frame import FloatKernel, RowBlocks, writes
from ..machine import facts
from ..products import microkernel
from ..products.product_plan import SERIAL
from .window_lines import SweepAxis, Window, find_window, sweep_backward, sweep_forward

PHASES = Template(read_template("phases.c", __file__))

STRIP = 1 << 14
"""About how many bytes of a strip: it stays in the first-level cache, as its results do."""

MOST = 49
"""Most taps: each is a statement of its own."""

LANES = 16
"""Most elements of a vector, which a strip has more than its pixels."""


class Planes(NamedTuple):
    """The planes of a depthwise convolution, and the sweeps over one: a pair of lines for each pair
    of phases of the result."""

    count: int
    source: tuple[int, int]  # the image that is swept over
    target: tuple[int, int]
    downs: list[SweepAxis]
    acrosses: list[SweepAxis]
    T: str

    @property
    def ends(self) -> tuple[Window, Window]:
        """The pixels that the sweeps read, along each axis."""
        return find_window(self.downs), find_window(self.acrosses)

    @property
    def positions(self) -> tuple[int, int]:
        """Positions of the longest sweeps."""
        return max(x.count for x in self.downs), max(x.count for x in self.acrosses)

    @property
    def pitch(self) -> int:
        """Pixels of a row of a phase."""
        width = self.ends[1]
        return -(-width.size(self.positions[1]) // width.step)

    @property
    def rows(self) -> int:
        """Rows of positions of a strip."""
        height, width = self.ends
        row = self.pitch * height.step * width.step * SIZES[self.T]
        return max(1, min(self.positions[0], STRIP // row - height.reach // height.step))

    @property
    def high(self) -> int:
        """Rows of a phase of a strip."""
        height = self.ends[0]
        return -(-height.size(self.rows) // height.step)

    @property
    def pixels(self) -> int:
        """Pixels of a strip."""
        return self.ends[0].step * self.ends[1].step * self.high * self.pitch

    @property
    def beyond(self) -> int:
        """Elements after them: a vector may begin at the last pixel."""
        return self.pitch + LANES

    @property
    def blocks(self) -> RowBlocks:
        """The strips of all planes."""
        return RowBlocks(self.count, self.positions[0], self.rows)

    def pay(self, taps: int) -> str:
        """When threads pay (see `worth_sharing`): each pixel of the result meets each tap."""
        return worth_sharing(self.count * prod(self.target) * taps, SERIAL + 1)

    def offset(self, down: SweepAxis, across: SweepAxis, t: int, u: int) -> int:
        """Where tap (t, u) of a sweep finds the pixel of position 0 in the strip."""
        (height, width), at = self.ends, (down.first + t * down.gap, across.first + u * across.gap)
        (y, d), (x, a) = (divmod(n - w.first, w.step) for n, w in zip(at, (height, width)))
        return ((d * width.step + a) * self.high + y) * self.pitch + x

    def strip(self, source: str) -> str:
        """C text: `image`, the strip from position `top` on of plane n."""
        T, (height, width), (h, w) = self.T, self.ends, self.source
        return (
            f"{stack_array(T, 'image', self.pixels + self.beyond)}\n"
            f"phases_{T}(image, {self.high}, {self.pitch}, {source} + n * {h * w}, {h}, {w}, "
            f"top * {height.step} + {height.first}, {width.first}, {height.step}, {width.step});\n"
            f"memset(image + {self.pixels}, 0, {self.beyond} * sizeof({T}));\n"
        )

    @property
    def helpers(self) -> tuple[str, ...]:
        return *microkernel.vectors(self.T), PHASES.substitute(T=self.T)


def planes_of(frame: FloatKernel, image, lines, target) -> Planes:
    """The planes of a record; an image with one axis gets a second one of size 1. `lines` gives the
    sweeps over an axis.
    """
    attrs, (n, c, *size) = frame.record.attrs, image.shape
    taps = attrs.get("kernel") or frame.record.inputs[1].shape[2:]
    if not (c == target.shape[1] == attrs["groups"] > 1 and len(size) < 3 and prod(taps) <= MOST):
        raise CannotWrite("a convolution of channels with channels, which are first")
    two = lambda sizes, one: (*(one,) * (2 - len(size)), *sizes)
    low = [low for low, _ in attrs["padding"]]
    out, stride, gap = two(target.shape[2:], 1), two(attrs["stride"], 1), two(attrs["dilation"], 1)
    axes = zip(out, two(taps, 1), stride, two(low, 0), gap, strict=True)
    downs, acrosses = (lines(*sizes) for sizes in axes)
    planes = Planes(n * c, two(size, 1), out, downs, acrosses, frame.T)
    if planes.pixels * SIZES[frame.T] > ON_STACK:
        raise CannotWrite("rows of an image that are longer than the stack")
    return planes


def sweep_once(*sizes) -> list[SweepAxis]:
    """The only sweep of a convolution over an axis."""
    return [sweep_forward(*sizes)]


LINES = {"conv": sweep_once, "conv_input_grad": sweep_backward, "conv_weight_grad": sweep_once}
"""The sweeps over an axis, by operator."""


@writes(*LINES)
def convolve(frame: FloatKernel) -> Kernel:
    """The kernel of a depthwise convolution with the channels first, or of one of its adjoints."""
    record, (x, y) = frame.record, frame.record.inputs
    of_weight = "kernel" in record.attrs
    planes = planes_of(frame, x, LINES[record.op.name], y if of_weight else record)
    return (write_weight_grad if of_weight else write_sweeps)(frame, planes)


# ---- the convolution, and the gradient of the image ----------------------------------------------


def write_sweeps(frame: FloatKernel, p: Planes) -> Kernel:
    """The kernel that sweeps over each plane."""
    weight = frame.record.inputs[1].spec
    taps, parts = prod(weight.shape[2:]), [f"part{k}" for k in range(len(p.acrosses))]
    tiles = f"const {p.T} *b = {frame.names[1]} + n % {weight.shape[0]} * {taps};\n"
    tiles += p.strip(frame.names[0])
    for part in parts:
        tiles += f"{stack_array(p.T, part, p.rows * p.pitch + LANES)}\n"
    for down in p.downs:
        for across, part in zip(p.acrosses, parts, strict=True):
            tiles += write_sums(p, down, across, part, weight.shape[-1])
        tiles += loop("r", f"rows && top + r < {down.count}", write_row(p, down, frame.target))
    return frame.write_tiled_kernel(p.blocks, tiles, p.pay(taps), p.helpers)


def write_sums(p: Planes, down: SweepAxis, across: SweepAxis, part: str, wide: int) -> str:
    """C text of `part`, the results of a sweep over a strip; `wide`: the taps of a kernel's row."""
    taps = [(t, u) for t in range(len(down.taps)) for u in range(len(across.taps))]
    if not taps:
        return f"memset({part}, 0, sizeof {part});\n"
    T, weights, terms = p.T, "", []
    for k, (t, u) in enumerate(taps):
        at = down.taps[t] * wide + across.taps[u]
        weights += f"const vector_{T} b{k} = b[{at}] - (vector_{T}){{0}};\n"
        terms.append(f"load_{T}(image + p + {p.offset(down, across, t, u)}) * b{k}")
    total = f"store_{T}({part} + p,\n    " + "\n    + ".join(terms) + ");\n"
    each = loop("p", f"rows * {p.pitch}", total, step=f"LANES_{T}")
    return f"{{\n{indent(weights + each, 4)}}}\n"


def write_row(p: Planes, down: SweepAxis, out: str) -> str:
    """C text that writes row r of a strip's results into the plane."""
    (h, w), step = p.target, p.acrosses[0].stride
    at = f"(n * {h} + (top + r) * {down.stride} + {down.start}) * {w}"
    text = f"{p.T} *line = {out} + {at};\n"
    if step == 1:
        return text + f"memcpy(line, part0 + r * {p.pitch}, {w} * sizeof({p.T}));\n"
    each = lambda k, j: f"line[{j} * {step} + {k}] = part{k}[r * {p.pitch} + {j}];\n"
    last = p.acrosses[-1].count
    text += loop("j", last, "".join(each(k, "j") for k in range(len(p.acrosses))))
    return text + "".join(each(k, last) for k, x in enumerate(p.acrosses) if x.count > last)


# ---- the gradient of the weight ------------------------------------------------------------------


def write_weight_grad(frame: FloatKernel, p: Planes) -> Kernel:
    """The kernel that sums over the planes of each channel."""
    channels, T, (h, w) = frame.out.shape[0], p.T, p.target
    (down,), (across,) = p.downs, p.acrosses
    taps = [(t, u) for t in range(len(down.taps)) for u in range(len(across.taps))]
    inside = (
        f"const int64_t n = k * {channels} + c, rows = {least(f'{h} - top', p.rows)};\n"
        f"{p.strip(frame.names[0])}"
        f"const {T} *g = {frame.names[1]} + (n * {h} + top) * {w};\n"
    )
    most = max(1, facts().registers - 4)
    for first in range(0, len(taps), most):
        inside += f"{{\n{indent(add_taps(p, taps[first : first + most], first), 4)}}}\n"
    inside = loop("top", h, inside, step=p.rows)
    body = f"{T} total[{len(taps)}] = {{0}};\n" + loop("k", p.count // channels, inside)
    body += f"memcpy({frame.target} + c * {len(taps)}, total, sizeof total);\n"
    loops = share_loop("c", channels, body, p.pay(len(taps)))
    return frame.kernel(indent(loops, 4), p.helpers)


def add_taps(p: Planes, taps, first: int) -> str:
    """C text that adds the products of a strip with `g` to the totals of some taps."""
    (down,), (across,), T, w = p.downs, p.acrosses, p.T, p.target[1]
    names = [f"sum{k}" for k in range(len(taps))]

    def terms(load: str, more: str) -> str:
        text = f"const vector_{T} q = {load}_{T}(g + r * {w} + j{more});\n"
        for name, tap in zip(names, taps):
            pixel = f"image + r * {p.pitch} + j + {p.offset(down, across, *tap)}"
            text += f"{name} += {load}_{T}({pixel}{more}) * q;\n"
        return text

    inside = f"int64_t j = 0;\nfor (; j + LANES_{T} <= {w}; j += LANES_{T}) {{\n"
    inside += f"{indent(terms('load', ''), 4)}}}\n"
    inside += f"if (j < {w}) {{\n{indent(terms('load_part', f', {w} - j'), 4)}}}\n"
    text = f"vector_{T} {', '.join(f'{name} = {{0}}' for name in names)};\n"
    text += loop("r", "rows", inside)
    for k, name in enumerate(names, first):
        text += f"for (int l = 0; l < LANES_{T}; l++) total[{k}] += {name}[l];\n"
    return text
