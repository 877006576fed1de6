"""Kernels in C that search sorted rows, count values, or put several values in one place."""

from __future__ import annotations

from math import prod

from ...engine.codegen.kernel import C_TYPES, emits
from ...engine.codegen.scalar import CannotWrite, wide
from ...engine.core import dtype as dt
from ...engine.eager.device import NUMPY
from ..convolutions.resampling import numbers
from ..rows.axis_lines import Lines, fill_kernel
from ..target import KernelTarget, LoopLevel, fill, kernel

# ---- in sorted rows --------------------------------------------------------------------------

SEARCH = """\
const V value = READ(in1[row * COUNT + i]);
const E *sorted = in0 + SHARED * LENGTH;
int64_t first = 0, n = LENGTH;
while (n > 0) {
    const int64_t half = n / 2;
    const V x = LOADROW(sorted[first + half]);
    const int before = x BEFORE value || (value != value && TAIL);
    first = before ? first + half + 1 : first;
    n = before ? n - half - 1 : half;
}
out0[row * COUNT + i] = first;
"""


@kernel("searchsorted")
def searchsorted(k: KernelTarget) -> None:
    """Halving: elements that are smaller (or not larger) are before; NaN is the largest."""
    x, value = k.specs
    right, common = k.attrs["right"], NUMPY.result_type(wide(x.dtype), wide(value.dtype))
    if common not in k.types:
        raise CannotWrite(f"a search for {value.dtype} among {x.dtype}")
    rows = prod(x.shape[:-1]) if len(x.shape) > 1 else 1
    T = k.types[common]
    words = {
        "COUNT": value.size // max(rows, 1), "LENGTH": x.shape[-1], "V": T,
        "SHARED": "row" if len(x.shape) > 1 else "0", "BEFORE": "<=" if right else "<",
        "TAIL": "1" if right else "x == x",
        "READ": reader(k, value.dtype, T), "LOADROW": reader(k, x.dtype, T),
    }  # fmt: skip
    text = fill(SEARCH, k.types, x.dtype, words)
    k.loops(LoopLevel("row", rows), LoopLevel("i", words["COUNT"], text))


def reader(k: KernelTarget, dtype, T: str) -> str:
    """A conversion of an element in memory to type T."""
    return f"({T}){fill('LOAD', k.types, dtype, {})}"


@emits("choose_repeatedly")
def emit_choose_repeatedly(record, name: str):
    """How many running sums of the weights each u, times their sum, has reached."""
    u, weights = (x.spec for x in record.inputs)
    lines = Lines(1, weights.shape[-1], prod(weights.shape[:-1]))
    words = lines.words | {"COUNT": u.shape[-1], "READ": C_TYPES[u.dtype]}
    return fill_kernel(record, name, CHOSEN, weights.dtype, work=8 * lines.length, **words)


emit_choose_repeatedly.mixes = True


CHOSEN = """\
double *const total = (double *)work;
for (int64_t row = 0; row < LINES; row++) {
    double sum = 0;
    for (int64_t i = 0; i < LENGTH; i++) total[i] = sum += LOAD(in1[row * LENGTH + i]);
    for (int64_t j = 0; j < COUNT; j++) {
        const double goal = (double)in0[row * COUNT + j] * sum;
        int64_t reached = 0;
        for (int64_t i = 0; i < LENGTH; i++) reached += total[i] <= goal;
        out0[row * COUNT + j] = reached;
    }
}
"""

# ---- histograms ------------------------------------------------------------------------------

COUNTS = """\
N *const count = ROOM;
memset(count, 0, SIZE * sizeof(N));
for (int64_t i = 0; i < LENGTH; i++) {
    FIND
    count[at] += WEIGHT;
}
END
"""


def emit_counts(record, name: str, find: str, length: int, *, weights=None, end: str = "", **words):
    """A kernel that finds a place for each element, and counts there, or adds its weight."""
    size, add = record.spec.size, "1" if weights is None else "(double)READ(in1[i])"
    double = weights is not None or end
    if weights is not None:
        end = end or "for (int64_t i = 0; i < SIZE; i++) out0[i] = RESULT(count[i]);\n"
        words["READ"] = fill("LOAD", C_TYPES, weights.dtype, {})
    words |= {
        "N": "double" if double else "int64_t", "ROOM": "(double *)work" if double else "out0",
        "WEIGHT": add, "SIZE": size, "LENGTH": length,
        "RESULT": fill("STORE", C_TYPES, record.dtype, {}),
    }  # fmt: skip
    text = COUNTS.replace("FIND", find.strip()).replace("END", end)
    text = text.replace("WEIGHT", add)
    dtype = record.inputs[0].dtype
    return fill_kernel(record, name, text, dtype, work=8 * size if double else 0, **words)


@emits("bincount")
def emit_bincount(record, name: str):
    """The kernel of `bincount`. A value that the result has no place for is left to the host."""
    x, *weights = record.inputs
    find = "const int64_t at = in0[i];\nif (at < 0 || at >= SIZE) { bad_index++; return; }\n"
    return emit_counts(
        record, name, find, x.spec.size, weights=weights[0].spec if weights else None
    )


BIN = """\
const T x = LOAD(in0[i]);
if (!(x >= edge[0] && x <= edge[SIZE])) continue;
int64_t at = (int64_t)((x - edge[0]) / (edge[SIZE] - edge[0]) * SIZE);
at = at >= SIZE ? SIZE - 1 : at;
while (x < edge[at]) at--;
while (at < SIZE - 1 && x >= edge[at + 1]) at++;
"""

DENSITY = """\
double total = 0;
for (int64_t i = 0; i < SIZE; i++) total += count[i];
for (int64_t i = 0; i < SIZE; i++) out0[i] = RESULT(count[i] / VOLUME / total);
"""


@emits("histogram")
def emit_histogram(record, name: str):
    """The kernel of `histogram`: equal parts, whose edges are NumPy's."""
    at, (x, *weights) = record.attrs, record.inputs
    real = wide(x.dtype) if x.dtype in dt.FLOATS else dt.float64.numpy
    edges = NUMPY.histogram_bin_edges(NUMPY.zeros(0, real), at["bins"], (at["low"], at["high"]))
    table = f"static const {C_TYPES[real]} edge[] = {{{numbers(edges)}}};\n"
    end = DENSITY.replace("VOLUME", "(edge[i + 1] - edge[i])") if at["density"] else ""
    kernel = emit_counts(
        record, name, BIN.replace("const T x", "const EDGE x"), x.spec.size, end=end,
        weights=weights[0].spec if weights else None, EDGE=C_TYPES[real],
    )  # fmt: skip
    return kernel._replace(source=kernel.source.replace("{\n", "{\n    " + table, 1))


CELL = """\
int64_t at = 0;
int outside = 0;
for (int64_t d = 0; d < AXES; d++) {
    const double x = LOAD(in0[i * AXES + d]);
    const int64_t n = bins[d];
    const double *edge = edges + starts[d];
    int64_t j = 0;
    while (j < n && x >= edge[j + 1]) j++;
    j -= j == n && x == edge[n];
    outside |= !(x >= edge[0]) || j == n;
    at = at * n + j;
}
if (outside) continue;
"""


@emits("histogramdd")
def emit_histogramdd(record, name: str):
    """The kernel of `histogramdd`."""
    at, (x, *weights) = record.attrs, record.inputs
    edges = [NUMPY.linspace(*limits, n + 1) for limits, n in zip(at["ranges"], at["bins"])]
    volumes = prod(NUMPY.ix_(*(NUMPY.diff(e) for e in edges)))
    starts = NUMPY.cumsum([0, *(len(e) for e in edges)])
    tables = (
        f"static const double edges[] = {{{numbers(NUMPY.concatenate(edges))}}};\n"
        f"    static const int64_t starts[] = {{{numbers(starts)}}};\n"
        f"    static const int64_t bins[] = {{{numbers(at['bins'])}}};\n"
    )
    end = "for (int64_t i = 0; i < SIZE; i++) out0[i] = RESULT(count[i]);\n"
    if at["density"]:
        tables += f"    static const double volume[] = {{{numbers(volumes.reshape(-1))}}};\n"
        end = DENSITY.replace("VOLUME", "volume[i]")
    kernel = emit_counts(
        record, name, CELL, x.shape[0], weights=weights[0].spec if weights else None, end=end,
        AXES=x.shape[1],
    )  # fmt: skip
    return kernel._replace(source=kernel.source.replace("{\n", "{\n    " + tables, 1))


# ---- equal values ----------------------------------------------------------------------------

EQUAL = """\
int64_t *const table = (int64_t *)work;
memset(table, 255, SLOTS * sizeof(int64_t));
for (int64_t i = 0; i < LENGTH; i++) {
    uint64_t at = ((uint64_t)in0[i] * 11400714819323198485u) >> SHIFT;
    while (table[at] >= 0 && in0[table[at]] != in0[i]) at = (at + 1) % SLOTS;
    if (table[at] < 0) table[at] = i;
    out0[i] = table[at];
}
"""


@emits("equal_places")
def emit_equal_places(record, name: str):
    """A hash table of places, half of it empty (Knuth, volume 3, section 6.4)."""
    (index,) = record.inputs
    bits = max(2 * index.spec.size - 1, 1).bit_length()
    words = {"SLOTS": 1 << bits, "SHIFT": 64 - bits, "LENGTH": index.spec.size}
    return fill_kernel(record, name, EQUAL, index.dtype, work=8 << bits, **words)


# ---- several values in one place -------------------------------------------------------------

JOIN = """\
T *const y = ROOM;
for (int64_t i = 0; i < SIZE; i++) y[i] = LOAD(in0[i]);
for (int64_t i = 0; i < COUNT; i++) {
    PLACE
    const T x = LOAD(in2[i]);
    RULE
}
END
"""

RULES = {
    "scatter_prod": "y[at] *= x;",
    "scatter_max": "y[at] = x > y[at] || x != x ? x : y[at];",
    "scatter_min": "y[at] = x < y[at] || x != x ? x : y[at];",
}


@emits(*RULES)
def emit_scatter(record, name: str):
    """A vector, in which values are joined with those at their indices."""
    x, index, value = record.inputs
    if value.dtype != x.dtype:
        raise CannotWrite("values of another dtype")
    half = x.dtype in dt.HALVES
    position = (
        "int64_t at = in1[i];\nif (at < 0) at += SIZE;\n"
        "if (at < 0 || at >= SIZE) { bad_index++; return; }\n"
    )
    end = "for (int64_t i = 0; i < SIZE; i++) out0[i] = STORE(y[i]);\n" if half else ""
    text = JOIN.replace("PLACE", position.strip()).replace("END", end)
    words = {
        "SIZE": x.spec.size, "COUNT": index.spec.size, "RULE": RULES[record.op.name],
        "ROOM": "(T *)work" if half else "out0",
    }  # fmt: skip
    text = text.replace("ROOM", words.pop("ROOM"))
    work = 4 * x.spec.size if half else 0
    return fill_kernel(record, name, text, x.dtype, work=work, **words)


@emits("strided_sum")
def emit_strided_sum(record, name: str):
    """Zeros, with elements added at places that strides name."""
    x, at = record.inputs[0].spec, record.attrs
    half, size = x.dtype in dt.HALVES, record.spec.size
    to = " + ".join([str(at["offset"]), *(f"i{d} * {s}" for d, s in enumerate(at["strides"]))])
    text = f"T *const y = {'(T *)work' if half else 'out0'};\nmemset(y, 0, {size} * sizeof(T));\n"
    text += "const E *x = in0;\n"
    for d, n in enumerate(x.shape):
        text += f"for (int64_t i{d} = 0; i{d} < {n}; i{d}++)\n"
    text += f"y[{to}] += LOAD(*x++);\n"
    if half:
        text += f"for (int64_t i = 0; i < {size}; i++) out0[i] = STORE(y[i]);\n"
    return fill_kernel(record, name, text, x.dtype, work=4 * size if half else 0)
