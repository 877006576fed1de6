"""Strips of images: the part of an image that some rows of a convolution's result read.

A strip is a copy with padding, small enough for the stack of a thread. An image that needs no
padding is read in place. This file knows the sizes of a convolution and the text of a strip, not
what is done with its pixels (`convolution.py`, `winograd.py`).
"""

from __future__ import annotations

from string import Template
from typing import NamedTuple

from ...engine.codegen.kernel import read_template, stack_array
from ...engine.codegen.kernel_schedule import pick
from ...engine.codegen.scalar import CannotWrite
from ...engine.codegen.writer import worth_sharing
from ..c_text import ON_STACK, SIZES, Workspace, count_parts
from ..kernel_frame import RowBlocks
from ..products import microkernel
from ..products.product_plan import SERIAL
from .window_lines import SweepAxis, Window, find_window

FRAME = Template(read_template("frame.c", __file__))

FRAME_ODD = read_template("frame_odd.c", __file__)

IN_CACHE = 1 << 19
"""Most bytes of a strip in the workspace, if a row does not fit the stack."""

RESULTS = 1 << 15
"""About how many bytes of results of a strip of an image that is read in place."""

PARTS = 4
"""Fewest strips of an image, if there are fewer images than this."""


class Images(NamedTuple):
    """The sizes of a convolution: images [n, h, w, channels], kernels [kh, kw, ·, ·]."""

    n: int
    source: tuple[int, int]  # the image that is swept over
    target: tuple[int, int]  # the result (for a weight's gradient: the gradient of the result)
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
        """Whether each pixel of the result depends on one pixel of the image."""
        ones = self.kernel == self.stride == (1, 1) and self.low == (0, 0)
        return ones and self.groups == 1 and self.source == self.target

    def lines(self, sweep) -> list:
        """The answers of `sweep.forward` or `sweep.backward` for each axis."""
        axes = self.target, self.kernel, self.stride, self.low, self.dilation
        return [sweep(*sizes) for sizes in zip(*axes, strict=True)]


def images_of(record, target, kernel) -> Images:
    """The sizes of a record. An image with one axis is one row: it gets a first axis of size 1, or
    changes its axes if the last one has size 1, since the kernels go along rows.
    """
    attrs, x = record.attrs, record.inputs[0].spec
    if x.ndim not in (3, 4):
        raise CannotWrite("a convolution in three dimensions")
    low = [low for low, _ in attrs["padding"]]
    sizes = x.shape[1:-1], target.shape[1:-1], kernel, attrs["stride"], low, attrs["dilation"]
    column = x.ndim == 4 and {each[1] for each in sizes[:3]} == {1} and low[1] == 0
    row = [(1 if each is not low else 0, *each) for each in sizes] if x.ndim == 3 else sizes
    pairs = [tuple(reversed(each)) if column else tuple(each) for each in row]
    source, shape, taps, stride, low, dilation = pairs
    channels, outs = x.shape[-1], target.shape[-1]
    at = source, shape, taps, channels, outs, attrs["groups"], stride, low, dilation
    return Images(x.shape[0], *at)


# ---- the strip of an image that some rows of the result meet ---------------------------------


class ImageStrips(NamedTuple):
    """The source in strips: each is what a block of the result reads."""

    im: Images
    T: str
    blocks: RowBlocks
    height: Window
    width: Window
    pixels: int  # positions of a row
    framed: bool  # whether windows reach beyond the image
    on_stack: bool
    odd: int = 0  # the channels of the source, if a zero makes them pairs

    @property
    def pitch(self) -> int:
        """Elements from one row of the strip to the next."""
        pixels = self.width.size(self.pixels) if self.framed else self.im.source[1]
        return pixels * self.im.channels

    @property
    def helpers(self) -> tuple[str, ...]:
        if self.odd:
            return *microkernel.elements(self.T), FRAME_ODD
        return frame_helpers(self.T) if self.framed else microkernel.elements(self.T)

    def read_in_place(self) -> ImageStrips:
        """Strips of an image that is read where it is; their results stay in a cache."""
        im, blocks = self.im, self.blocks
        row = max(im.target[1] * im.outs * SIZES[self.T] * self.height.step, 1)
        most = blocks.block if im.n < PARTS else blocks.rows
        block = max(1, min(most, RESULTS // row))
        return self._replace(blocks=blocks._replace(block=block), framed=False)

    @property
    def elements(self) -> int:
        """The elements of a strip with its frame."""
        return self.height.size(self.blocks.block) * self.pitch

    @property
    def parts(self) -> int:
        """The parts of the workspace that hold strips; 0 if these are on the stack, or in place."""
        if self.on_stack or not self.framed:
            return 0
        im, size = self.im, SIZES[self.T]
        result = im.n * im.target[0] * im.target[1] * im.outs * size
        return count_parts(self.blocks.total, self.elements * size, result)

    def load(self, source: str, room: Workspace, parts: int, name: str = "image") -> str:
        """C text: `name` points to the first pixel of a block's strip."""
        im, T, down, across = self.im, self.T, self.height, self.width
        c, (h, w), first = im.channels, im.source, f"top * {down.step} + {down.first}"
        if not self.framed:
            at = f"((n * {h} + {first}) * {w} + {across.first}) * {c}"
            return f"const {T} *{name} = {source} + {at};\n"
        wide, frame, c = across.size(self.pixels), "odd" if self.odd else T, self.odd or c
        return self.declare(T, name, room, parts) + (
            f"frame_{frame}({name}, {self.high}, {wide}, {source} + n * {h * w * c}, {h}, {w}, "
            f"{c}, {first}, {across.first});\n"
        )

    @property
    def high(self) -> str:
        """C text: the rows of a block's strip."""
        return f"(rows - 1) * {self.height.step} + {self.height.reach + 1}"

    def declare(self, T: str, name: str, room: Workspace, parts: int) -> str:
        """C text: memory for a strip."""
        size = self.elements
        if self.on_stack:
            return f"{stack_array(T, name, size)}\n"
        return f"{T} *{name} = {room.array(T, size * parts)} + p * {size};\n"


def strips_of(
    im: Images, down: list[SweepAxis], across: list[SweepAxis], T: str, copied=False, odd: int = 0
) -> ImageStrips:
    """Strips that fit the stack; enough of them for several threads."""
    height, width = find_window(down), find_window(across)
    total, pixels = max(line.count for line in down), max(line.count for line in across)
    ends = ((height, total, im.source[0]), (width, pixels, im.source[1]))
    outside = any(w.first < 0 or w.first + w.size(count) > n for w, count, n in ends)
    framed = copied or odd > 0 or outside
    row = width.size(pixels) * im.channels * SIZES[T]
    rows = total if im.n >= PARTS else -(-total // PARTS)
    stack, cache = (
        (most // max(row, 1) - height.reach - 1) // height.step + 1 for most in (ON_STACK, IN_CACHE)
    )
    on_stack = stack >= 1
    rows = min(rows, stack if on_stack else max(cache, 1)) if framed else rows
    rows = pick("strip", rows, [n for n in (1, 2, 4, 8, 16, 32) if n < rows])
    (high, wide), stride = im.target, down[0].stride
    blocks = RowBlocks(im.n, total, rows, wide, stride, high)
    return ImageStrips(im, T, blocks, height, width, pixels, framed, on_stack, odd)


def frame_helpers(T: str) -> tuple[str, ...]:
    """Helpers: `frame_T`."""
    return (*microkernel.elements(T), FRAME.substitute(T=T))


def worth_threads(im: Images) -> str:
    """When threads pay (see `worth_sharing`): each pixel of the smaller image meets each tap."""
    pixels = min(im.source[0] * im.source[1], im.target[0] * im.target[1])
    taps = im.kernel[0] * im.kernel[1]
    return worth_sharing(im.n * pixels * taps * im.channels * im.outs // im.groups, SERIAL + 1)
