"""Scans along an axis in C: a line has a state, which every element changes and stores.

Several lines advance side by side, since each step of one waits for the step before: neighbours in
memory if the axis is not the last one, else a few rows.
"""

from __future__ import annotations

from typing import NamedTuple

from ...engine.codegen.kernel import emits, read_template
from ...engine.codegen.scalar import wide
from ...engine.core import dtype as dt
from ..target import insert
from .axis_lines import Lines, fill_kernel, lines_of

ACROSS = read_template("scan_across.c", __file__)
"""An axis before the last: a block of neighbouring lines."""

ROWS = read_template("scan_rows.c", __file__)
"""The last axis: a few rows."""

PRODUCTS = read_template("small_product.c", __file__)
"""`multiply_floats`, which is fast where the product is too small for a normal float."""


class Scan(NamedTuple):
    """The state of line k, its start, and one step at the element `at`, number i of the line."""

    state: str
    start: str
    step: str
    helpers: tuple[str, ...] = ()


def make_running(sign: str, start: int) -> Scan:
    """A running sum or product."""
    step = f"total[k] = total[k] {sign} LOAD(in0[at]);\nout0[at] = STORE(total[k]);\n"
    return Scan("T total[COUNT];\n", f"total[k] = {start};\n", step)


def make_running_extreme(sign: str) -> Scan:
    """The place of the best element so far: the last of equal ones, and the first NaN for good."""
    return Scan(
        "T best[COUNT];\nPLACE place[COUNT];\n",
        "best[k] = 0;\nplace[k] = 0;\n",
        f"""\
const T x = LOAD(in0[at]);
if (i == 0 || !(best[k] {sign} x || best[k] != best[k])) best[k] = x, place[k] = (PLACE)i;
out0[at] = place[k];
""",
    )


def make_product(dtype, in_rows: bool) -> Scan:
    """A running product. Random factors of mean size below 1 soon reach 2^-126, which makes rows of
    floats slow.
    """
    scan = make_running("&" if dtype == dt.bool_.numpy else "*", 1)
    if not in_rows or wide(dtype) != dt.float32.numpy:
        return scan
    step = scan.step.replace("total[k] * LOAD(in0[at])", "multiply_floats(total[k], LOAD(in0[at]))")
    return scan._replace(step=step, helpers=(PRODUCTS,))


RECURRENCE = Scan(
    "T h[COUNT];\n",
    "h[k] = 0;\n",
    """\
h[k] = i > 0 ? LOAD(in0[at]) * h[k] + LOAD(in1[at]) : LOAD(in1[at]);
out0[at] = STORE(h[k]);
""",
)

LOG_SUM = Scan(
    "T top[COUNT];\nT total[COUNT];\n",
    "top[k] = -INFINITY;\ntotal[k] = 0;\n",
    """\
const T x = LOAD(in0[at]), apart = x == top[k] ? 0 : x - top[k], part = EXP(-ABS(apart));
total[k] = x > top[k] ? total[k] * part + 1 : total[k] + (x > -INFINITY ? part : 0);
top[k] = x > top[k] ? x : top[k];
out0[at] = STORE(x != x ? (total[k] = x) : top[k] + LOG(total[k]));
""",
)
"""log Σ eˣ as the largest x so far and Σ e^(x - largest)."""


SCANS = {
    "cumsum": lambda dtype, _: make_running("|" if dtype == dt.bool_.numpy else "+", 0),
    "cumprod": make_product,
    "cummax_index": lambda *_: make_running_extreme(">"),
    "cummin_index": lambda *_: make_running_extreme("<"),
    "recurrence": lambda *_: RECURRENCE,
    "logcumsumexp": lambda *_: LOG_SUM,
}
"""The scan that an operator is: `(dtype, whether of rows) -> Scan`."""


@emits(*SCANS)
def emit_scan(record, name: str):
    """The kernel of a scan."""
    x = record.inputs[0].spec
    lines = lines_of(x.shape, record.attrs["axis"])
    if not x.size:
        lines = Lines(0, 1, 1)
    scan = SCANS[record.op.name](x.dtype, lines.inner == 1)
    double = wide(x.dtype) == dt.float64.numpy
    words = {
        "NEXT": f"({lines.length - 1} - i)" if record.attrs.get("reverse") else "i",
        "EXP": "exp" if double else "expf", "LOG": "log" if double else "logf",
        "ABS": "fabs" if double else "fabsf", "PLACE": place_type(lines),
    }  # fmt: skip
    parts = {"STATE": scan.state, "START": scan.start, "STEP": scan.step}
    text = insert(ROWS if lines.inner == 1 else ACROSS, **parts)
    return fill_kernel(record, name, text, x.dtype, helpers=scan.helpers, **words, **lines.words)


def place_type(lines: Lines) -> str:
    """A type as wide as a float, for places in a line that is not too long."""
    return "int32_t" if lines.length < 1 << 31 else "int64_t"
