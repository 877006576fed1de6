"""Convolutions of bfloat16 as pairs of terms (`products/pairs.py`).

A pixel's channels are pairs as they lie, so an image of pairs has half as many channels, and only
the kernels are packed. The last of an odd number of channels is paired with a zero. A weight's
gradient sums over pixels: there a pair is two pixels of a row. For tiles (AMX) the rows of a strip
are as long in the image as in the gradient of the result, so all pixels of a strip are the terms of
one product for each tap.
"""

from __future__ import annotations

from math import gcd, prod

from ...engine.codegen.writer import for_head, least
from ..c_text import indent, loop
from ..kernel_frame import FloatKernel
from ..products import microkernel
from ..products.microkernel import PAIRS
from .image_strips import Images, ImageStrips, frame_helpers
from .window_lines import SweepAxis


def pack_taps(
    frame: FloatKernel, im: Images, sweeps, channels: int, *, turned: bool
) -> tuple[str, ...]:
    """Declare `panels`: for each sweep, of `im` in pairs of `channels`, the kernels of its taps,
    one after the other in each panel. They are `turned` if inputs and outputs change places.
    Returns helpers.
    """
    t, o, whole = microkernel.tile(), im.outs, channels // 2
    panel, column, step = t.panel(PAIRS), *((channels, 1) if turned else (1, o))
    text, at = "", 0
    for taps in sweeps:
        to = f"{{made}} + {at} + (n * {len(taps)} + t * {panel}) * {im.channels}"
        source = f"{{given}} + taps[t] * {channels * o} + n * {column}"
        wide = least(f"{o} - n", panel)
        call = microkernel.call_panels(
            PAIRS, t, wide, whole, source, column, 2 * step, to, "bfloat16"
        )
        if channels % 2:
            last = f"{source} + {(channels - 1) * step}, {column}, {to} + {whole} * {panel}"
            call = f"{{{{ {call.rstrip()} pair_with_zeros({wide}, {last}); }}}}\n"
        text += (
            f"{{{{ static const int taps[] = {{{{{', '.join(map(str, taps)) or '0'}}}}};\n"
            f"    for (int64_t n = 0; n < {o}; n += {panel})\n"
            f"        for (int64_t t = 0; t < {len(taps)}; t++) {call}    }}}}\n    "
        )
        at += count_packed(im, len(taps))
    frame.pack("panels", 1, at, text.rstrip(), PAIRS)
    return microkernel.panels(PAIRS, t, "bfloat16")


def count_packed(im: Images, taps: int) -> int:
    """The pairs of a sweep's panels."""
    widest = microkernel.tile().widest
    return taps * im.channels * -(-im.outs // widest) * widest


def zip_pixels(s: ImageStrips, across: SweepAxis, source: str, room, parts: int) -> str:
    """C text: `image`, a block's strip of pairs of the pixels that neighbouring positions read."""
    strip, apart = s._replace(T="bfloat16"), across.step * s.im.channels
    return (
        strip.load(source, room, parts, "strip")
        + s.declare(PAIRS, "image", room, parts)
        + f"zip_pairs(({s.high}) * {s.pitch} - {apart}, strip, {apart}, image);\n"
    )


def tile_pixels(s: ImageStrips, down: SweepAxis, across: SweepAxis, names, room, parts: int):
    """(C text, helpers) that adds the terms of a strip's pixels to `part`. With a stride the image
    is several, of every second pixel, say, each of which other taps read. All their rows have an
    even number of pixels; where there is none, the gradient is 0.
    """
    im, t, (c, o) = s.im, microkernel.tile(), (s.im.channels, s.im.outs)
    (high, wide), panel = im.kernel, t.panel(PAIRS)
    steps, gaps = (down.step, across.step), (down.gap, across.gap)
    periods = [step // gcd(step, gap) for step, gap in zip(steps, gaps)]
    more = s.height.reach // steps[0] + 1
    pitch = -(-(s.pixels + s.width.reach // steps[1]) // 2) * 2
    pixels = pitch * (s.blocks.block + more)
    image, result = (
        f"{x} + n * {prod(sizes) * k}, {sizes[0]}, {sizes[1]}, {k}, top"
        for x, sizes, k in zip(names, (im.source, im.target), (c, o))
    )
    begin = f"{image} * {down.step} + {down.first}, {across.first}"
    text = f"const int64_t terms = rows * {pitch // 2}, row = terms + {more * pitch // 2};\n"
    for T, name, size in (
        ("bfloat16", "strip", pixels * c * prod(steps)),
        ("bfloat16", "phase", pixels * c if max(steps) > 1 else 0),
        (PAIRS, "turned", pixels // 2 * c),
        ("bfloat16", "outs", s.blocks.block * pitch * o),
        (PAIRS, "panels", microkernel.panels_size(o, s.blocks.block * pitch // 2, t)),
    ):
        text += f"{T} *{name} = {room.array(T, size * parts)} + p * {size};\n"
    text += (
        f"frame_bfloat16(strip, (rows + {more}) * {steps[0]}, {pitch * steps[1]}, {begin});\n"
        f"frame_bfloat16(outs, rows, {pitch}, {result}, 0);\n"
    )
    text += microkernel.call_panels(PAIRS, t, o, "terms", "outs", 1, 2 * o, "panels", "bfloat16")
    firsts = [f"{x} * {gap} % {step}" for x, gap, step in zip("ab", gaps, steps)]
    pixel = f"(i / {pitch} * {steps[0]} + {firsts[0]}) * {pitch * steps[1]}"
    pixel += f" + i % {pitch} * {steps[1]} + {firsts[1]}"
    copy = f"memcpy(phase + i * {c}, strip + ({pixel}) * {c}, {c} * sizeof *phase);\n"
    split, pixels = (loop("i", "2 * row", copy), "phase") if max(steps) > 1 else ("", "strip")
    turn = (
        f"turn_pairs({c}, {least('row - k', 16)}, {pixels} + k * {2 * c}, {c}, turned + k, row);\n"
    )
    offset = f"t * {gaps[0]} / {steps[0]} * {pitch} + u * {gaps[1]} / {steps[1]}"
    tap = microkernel.call_blocks(
        PAIRS, c, o, "terms", 1,
        (f"(const pairs *)((const bfloat16 *)turned + {offset})", "row", 1, 0),
        ("panels", panel, 0, f"{panel} * terms"),
        (f"part + (t * {wide} + u) * {c * o}", o), "1",
    )  # fmt: skip
    taps = f"{for_head('u', 'b', wide, periods[1])} {{\n{indent(tap, 4)}}}\n"
    taps = f"{for_head('t', 'a', high, periods[0])} {{\n{indent(taps, 4)}}}\n"
    inside = split + loop("k", "row", turn, step=16) + taps
    text += loop("a", min(periods[0], high), loop("b", min(periods[1], wide), inside))
    return text, (*microkernel.panels(PAIRS, t, "bfloat16"), *frame_helpers("bfloat16"))
