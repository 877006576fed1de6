"""Convolutions of bfloat16 as pairs of terms (`products/pairs.py`).

A pixel's channels are pairs as they lie, so an image of pairs has half as many channels, and only
the kernels are packed. The last of an odd number of channels is paired with a zero. A weight's
gradient sums over pixels: there a pair is two pixels of a row.
"""

from __future__ import annotations

from ...engine.codegen.writer import least
from ..kernel_frame import FloatKernel
from ..products import microkernel
from ..products.microkernel import PAIRS
from .image_strips import Images, ImageStrips
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
