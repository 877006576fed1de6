"""Kernels of random draws in C: quantiles of distributions, and elements chosen without repetition.

The formulas of `quantiles.c` have the numbers of the NIST Digital Library of Mathematical
Functions.
"""

from __future__ import annotations

from math import prod

from ...engine.codegen import scalar
from ...engine.codegen.kernel import C_TYPES, emits, is_number, read_template
from ...engine.codegen.scalar import CannotWrite, ScalarText, literal, statements
from ...engine.codegen.translation_unit import register
from ...engine.core import dtype as dt
from ...ops import random
from ..functions import special  # noqa: F401  (a file has its functions first)
from ..rows.axis_lines import Lines, fill_kernel
from ..rows.sorting import SortedItems
from ..target import fill

register(read_template("quantiles.c", __file__))

WHOLE = dt.int64.numpy

QUANTILE = """\
PARALLEL
for (int64_t i = 0; i < SIZE; i++) out0[i] = STORE(QUANTILE(ARGUMENTS));
"""


@emits("poisson_quantile", "binomial_quantile", "gamma_quantile")
def emit_quantile(record, name: str):
    """A quantile for each element."""
    if any(is_number(x) or x.shape != record.shape for x in record.inputs):
        raise CannotWrite("quantiles of arrays of several shapes")
    reads = (fill("LOAD", C_TYPES, x.dtype, {}) for x in record.inputs)
    arguments = ", ".join(f"{read}(in{k}[i])" for k, read in enumerate(reads))
    words = {"SIZE": record.spec.size, "QUANTILE": f"{record.op.name}_double"}
    words["ARGUMENTS"] = arguments
    words |= {"PARALLEL": Lines(1, record.spec.size, 1).words["PARALLEL"]}
    return fill_kernel(record, name, QUANTILE, record.dtype, **words)


emit_quantile.mixes = True  # what is drawn is in double, in the operators of weights below too


SORTED = """\
ITEM *const first = (ITEM *)work;
for (int64_t line = 0; line < LINES; line++) {
    KEYS
    const ITEM *const sorted = SORT(first, first + LENGTH, LENGTH);
    for (int64_t i = 0; i < SIZE; i++) out0[line * SIZE + i] = PLACEIN(sorted[i]);
}
"""


def emit_sorted(record, name: str, dtype, lines: Lines, keys: str, **words):
    """A kernel that makes a key for each place of a line, and stores the first places in order."""
    if not record.spec.size:
        return fill_kernel(record, name, "", dtype)
    items = SortedItems(dtype, lines, places=True)
    text = items.fill(SORTED.replace("KEYS", keys.strip()), items.words | lines.words | words)
    work = 2 * lines.length * items.nbytes
    return fill_kernel(record, name, text, dtype, work=work, helpers=items.helpers)


@emits("random_permutation")
def emit_random_permutation(record, name: str):
    """The order of random bits: the formula of `ops.random`, applied to expressions."""
    (base,), size = record.inputs, record.attrs["size"]
    number = is_number(base)
    seed = literal(base.attrs["value"], WHOLE) if number else ScalarText("in0[0]", (), WHOLE)
    names = iter(f"t{k}" for k in range(99))
    lines, (value,) = statements(
        [random.bits(scalar.C, ScalarText("i", (), WHOLE), seed)], names.__next__
    )
    keys = "\n".join([*lines, f"first[i] = (ITEM){{{value}, i}};"])
    keys = f"for (int64_t i = 0; i < LENGTH; i++) {{\n{keys}\n}}\n"
    return emit_sorted(record, name, WHOLE, Lines(1, size, 1), keys, SIZE=size)


WAITING = """\
int64_t possible = 0;
for (int64_t i = 0; i < LENGTH; i++) {
    const double weight = READ(in1[line * LENGTH + i]), u = LOAD(in0[line * LENGTH + i]);
    possible += weight > 0;
    first[i].key = key_double(weight > 0 ? -log1p(-u) / weight : INFINITY);
    first[i].place = i;
}
if (possible < SIZE) { bad_index++; return; }
"""


@emits("choose_distinct")
def emit_choose_distinct(record, name: str):
    """The order of exponential waiting times."""
    u, weights = (x.spec for x in record.inputs)
    if u.dtype != dt.float64.numpy or u.shape != weights.shape:
        raise CannotWrite("draws that are not in double, one for each weight")
    lines = Lines(prod(u.shape[:-1]), u.shape[-1], 1)
    words = {"READ": fill("LOAD", C_TYPES, weights.dtype, {}), "SIZE": record.attrs["size"]}
    return emit_sorted(record, name, u.dtype, lines, WAITING, **words)


emit_choose_distinct.mixes = True
