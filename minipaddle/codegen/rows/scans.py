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


class Scan(NamedTuple):
    """The state of line k, its start, and one step at the element `at`, number i of the line."""

    state: str
    start: str
    step: str


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
    "cumsum": lambda logical: make_running("|" if logical else "+", 0),
    "cumprod": lambda logical: make_running("&" if logical else "*", 1),
    "cummax_index": lambda logical: make_running_extreme(">"),
    "cummin_index": lambda logical: make_running_extreme("<"),
    "recurrence": lambda logical: RECURRENCE,
    "logcumsumexp": lambda logical: LOG_SUM,
}
"""The scan that an operator is, of truths or of numbers."""


@emits(*SCANS)
def emit_scan(record, name: str):
    """The kernel of a scan."""
    x = record.inputs[0].spec
    scan = SCANS[record.op.name](x.dtype == dt.bool_.numpy)
    lines = lines_of(x.shape, record.attrs["axis"])
    if not x.size:
        lines = Lines(0, 1, 1)
    double = wide(x.dtype) == dt.float64.numpy
    words = {
        "NEXT": f"({lines.length - 1} - i)" if record.attrs.get("reverse") else "i",
        "EXP": "exp" if double else "expf", "LOG": "log" if double else "logf",
        "ABS": "fabs" if double else "fabsf", "PLACE": place_type(lines),
    }  # fmt: skip
    parts = {"STATE": scan.state, "START": scan.start, "STEP": scan.step}
    text = insert(ROWS if lines.inner == 1 else ACROSS, **parts)
    return fill_kernel(record, name, text, x.dtype, **words, **lines.words)


def place_type(lines: Lines) -> str:
    """A type as wide as a float, for places in a line that is not too long."""
    return "int32_t" if lines.length < 1 << 31 else "int64_t"
