"""Images in C: resampled along an axis, cut into windows, put together again; and the place of the
largest pixel of windows, for C and CUDA.
"""

from __future__ import annotations

from math import prod

from ...engine.codegen.kernel import emits, read_template
from ...engine.codegen.scalar import CannotWrite, wide
from ...engine.core import dtype as dt
from ...engine.eager.device import NUMPY
from ...engine.ops.conv import out_size
from ...ops.resample import taps
from ..rows.axis_lines import Lines, fill_kernel, lines_of
from ..target import KernelTarget, LoopLevel, fill, insert, kernel
from .pooling import per_axis, three

# ---- along one axis --------------------------------------------------------------------------

ACROSS = read_template("resample_across.c", __file__)
"""An axis before the last: each row of the result is a weighed sum of a few rows."""

ROWS = read_template("resample_rows.c", __file__)
"""The last axis: each element is a weighed sum of a few elements; TERMS of them, if all are of as
many."""


def numbers(values) -> str:
    """An array as C text."""
    return ", ".join(map(str, NUMPY.asarray(values).tolist()))


def emit_taps(record, name: str, axis: int, sums):
    """A kernel that computes each place of an axis as a sum, of which `sums` has the pairs (place,
    weight).
    """
    x, out = record.inputs[0].spec, record.spec
    if not out.size:
        return fill_kernel(record, name, "", x.dtype)
    lines, counts = lines_of(x.shape, axis), {len(pairs) for pairs in sums}
    flat = [pair for pairs in sums for pair in pairs] or [(0, 0.0)]
    words = {
        "TO": len(sums), "STARTS": numbers(NUMPY.cumsum([0, *map(len, sums)])),
        "PLACES": numbers([p for p, _ in flat]), "WEIGHTS": numbers([w for _, w in flat]),
    }  # fmt: skip
    text = ACROSS
    if lines.inner == 1:
        same = counts.pop() if len(counts) == 1 else 0
        table = [[pairs[t] for pairs in sums] for t in range(same)] if 0 < same <= 4 else []
        parts = {
            "TABLES": "\n".join(
                f"static const int32_t p{t}[] = {{{numbers([p for p, _ in column])}}};\n"
                f"static const T w{t}[] = {{{numbers([w for _, w in column])}}};"
                for t, column in enumerate(table)
            ),
            "TERMS": " + ".join(f"LOAD(x[p{t}[i]]) * w{t}[i]" for t in range(len(table))),
        }
        text = ROWS_OF_TERMS if table else ROWS
        for word, part in parts.items():
            text = text.replace(word, part)
    if max(p for p, _ in flat) >= 1 << 31:
        raise CannotWrite("an axis of more than 2^31 elements")
    return fill_kernel(record, name, text, x.dtype, **words, **lines.words)


ROWS_OF_TERMS = read_template("resample_terms.c", __file__)


@emits("resample")
def emit_resample(record, name: str):
    """The kernel of `resample`."""
    at = dict(record.attrs)
    axis, size, to = at.pop("axis"), at.pop("size"), at.pop("to")
    places, weights = taps(NUMPY, size, to, **at)
    n = record.inputs[0].shape[axis]
    weights = weights.astype(wide(record.dtype))
    rows = zip(places.tolist(), weights.tolist(), strict=True)
    sums = [[(p, w) for p, w in zip(*row, strict=True) if p < n] for row in rows]
    return emit_taps(record, name, axis, sums)


@emits("remap_grad")
def emit_remap_grad(record, name: str):
    """The kernel of the adjoint of `remap`."""
    at = record.attrs
    sums: list = [[] for _ in range(at["size"])]
    for i, position in enumerate(at["index"]):
        sums[position].append((i, 1.0))
    return emit_taps(record, name, at["axis"], sums)


# ---- windows as columns ----------------------------------------------------------------------

WINDOWS = read_template("window_rows.c", __file__)
"""For each row of a column of windows: the positions `low` to `high` inside the image."""

CUT = """\
for (int64_t w = 0; w < low; w++) column[w] = ZERO;
for (int64_t w = low; w < high; w++) column[w] = row[w * SW];
for (int64_t w = high; w < OW; w++) column[w] = ZERO;
"""

ADD = "for (int64_t w = low; w < high; w++) row[w * SW] += LOAD(column[w]);\n"


def window_words(size, kernel, stride, padding, dilation) -> dict:
    """The sizes of windows as words of a template."""
    words = per_axis("I", three(size, 1))
    out = out_size(size, kernel, stride, padding, dilation)
    low = tuple(before for before, _ in padding)
    for letter, sizes, one in (
        ("K", kernel, 1), ("S", stride, 1), ("P", low, 0), ("D", dilation, 1), ("O", out, 1)
    ):  # fmt: skip
        words |= per_axis(letter, three(sizes, one))
    return words | {"IMAGE": prod(size), "COLUMNS": prod(kernel) * prod(out)}


@emits("unfold")
def emit_unfold(record, name: str):
    """The kernel of `unfold`: columns are written row by row."""
    x = record.inputs[0].spec
    words = window_words(x.shape[2:], **record.attrs)
    planes = prod(x.shape[:2]) if record.spec.size else 0
    words |= Lines(1, words["COLUMNS"], planes).words | {"LINES": planes}
    text = insert(WINDOWS, INSIDE=CUT).replace("CONST", "const E").replace("WRITTEN", "E")
    text = text.replace("IMAGES", "in0").replace("BEGIN\n", "").replace("END\n", "")
    return fill_kernel(record, name, text.replace("LISTS", "out0"), x.dtype, **words)


@emits("fold")
def emit_fold(record, name: str):
    """The kernel of `fold`: columns are added to the image row by row."""
    g, at = record.inputs[0].spec, dict(record.attrs)
    words = window_words(at.pop("size"), **at)
    planes = prod(record.shape[:2]) if record.spec.size else 0
    words |= Lines(1, words["COLUMNS"], planes).words | {"LINES": planes}
    half = g.dtype in dt.HALVES
    end = "for (int64_t i = 0; i < IMAGE; i++) out0[plane * IMAGE + i] = STORE(image[i]);\n"
    text = insert(
        WINDOWS, INSIDE=ADD, BEGIN="memset(image, 0, IMAGE * sizeof(T));\n", END=end if half else ""
    )
    text = text.replace("CONST", "T").replace("WRITTEN", "const E").replace("LISTS", "in0")
    text = text.replace("IMAGES", "((T *)work)" if half else "out0")
    work = planes * words["IMAGE"] * 4 if half else 0
    return fill_kernel(record, name, text, g.dtype, work=work, **words)


# ---- the place of the largest pixel ----------------------------------------------------------

ADAPTIVE = """\
const int64_t first_d = d * ID / OD, last_d = ((d + 1) * ID + OD - 1) / OD;
const int64_t first_h = h * IH / OH, last_h = ((h + 1) * IH + OH - 1) / OH;
const int64_t first_w = w * IW / OW, last_w = ((w + 1) * IW + OW - 1) / OW;
const E *image = in0 + plane * IMAGE;
int64_t found = (first_d * IH + first_h) * IW + first_w;
T best = LOAD(image[found]);
for (int64_t a = first_d; a < last_d; a++)
    for (int64_t b = first_h; b < last_h; b++)
        for (int64_t c = first_w; c < last_w; c++) {
            const int64_t at = (a * IH + b) * IW + c;
            if (LOAD(image[at]) > best) best = LOAD(image[at]), found = at;
        }
out0[((plane * OD + d) * OH + h) * OW + w] = found;
"""

LARGEST = """\
const E *image = in0 + plane * IMAGE;
const int64_t to = ((plane * OD + d) * OH + h) * OW + w;
const T y = LOAD(in1[to]);
int64_t found = 0;
for (int64_t t = 0; t < KD * KH * KW; t++) {
    const int64_t a = d * SD - PD + t / (KH * KW), b = h * SH - PH + t / KW % KH;
    const int64_t c = w * SW - PW + t % KW, at = (a * IH + b) * IW + c;
    const int inside = a >= 0 && a < ID && b >= 0 && b < IH && c >= 0 && c < IW;
    if ((inside ? LOAD(image[at]) : -(T)INFINITY) == y) {
        found = at;
        break;
    }
}
out0[to] = found;
"""


def each_window(k: KernelTarget, text: str, words: dict) -> None:
    """Run a text for each place of the result of a pooling."""
    x = k.specs[0]
    if len(x.shape) > 5:
        raise CannotWrite("an image of more than three axes")
    words = words | per_axis("I", three(x.shape[2:], 1)) | {"IMAGE": prod(x.shape[2:])}
    sizes = three(k.out.shape[2:], 1)
    text = fill(text, k.types, x.dtype, words | per_axis("O", sizes))
    names = zip("dhw", sizes, strict=True)
    *outer, inner = [LoopLevel("plane", prod(x.shape[:2])), *(LoopLevel(a, n) for a, n in names)]
    k.loops(*outer, inner._replace(text=text))


@kernel("adaptive_max_index")
def adaptive_max_index(k: KernelTarget) -> None:
    """The first of the largest pixels of windows that share an image evenly."""
    each_window(k, ADAPTIVE, {})


@kernel("max_pool_index")
def max_pool_index(k: KernelTarget) -> None:
    """The first pixel of each window that equals its maximum."""
    words: dict = {}
    for letter, sizes, one in zip("KSPO", zip(*k.attrs["windows"], strict=True), (1, 1, 0, 1)):
        words |= per_axis(letter, three(sizes, one))
    each_window(k, LARGEST, words)
