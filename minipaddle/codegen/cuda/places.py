"""CUDA kernels that look at places, make them, go by known ones, or run along an axis."""

from __future__ import annotations

from math import prod

from ...engine.codegen.kernel import is_number
from ...engine.codegen.scalar import CannotWrite, literal, wide
from ...engine.core import dtype as dt
from ...engine.ops.movement import strides_of
from ..target import filled
from .calls import CUDA_TYPES, Launch, Operand, Work, operands, works
from .text import buffers, each, kernel, parameters


def by_element(record, name: str, body: str, size: int | None = None, **words) -> Work:
    """One kernel: `body` for each element i of the result."""
    size = record.spec.size if size is None else size
    text = filled(body, CUDA_TYPES, record.dtype, words)
    return Work((each(name, parameters(record), size, text, operands(record)),))


LOOK = """
const int64_t at = GIVEN[i];
if ((at < LOW || at >= SIZE) IGNORED) wrong[0] = 1, wrong[1] = at;
"""


def look(record, name: str, places, slot: int) -> Launch | None:
    """A kernel that writes into a slot, a pair (is one wrong? which one?), if a place is out of
    range. (Of several wrong ones any may stand there.)
    """
    index = record.inputs[places.k]
    if is_number(index) or not index.spec.size:
        return None
    k = buffers(record).index(index)
    ignored = "" if places.ignored is None else f"&& at != {places.ignored}"
    words = {"GIVEN": f"in{k}", "SIZE": places.size, "LOW": -places.size if places.wraps else 0}
    text = filled(LOOK, CUDA_TYPES, index.dtype, words | {"IGNORED": ignored})
    given = Operand("in", k), Operand("wrong", 0, slot * WRONG)
    own = [parameters(record)[k], "int64_t *wrong"]
    return each(f"{name}_places{places.k}", own, index.spec.size, text, given)


WRONG = 16
"""Bytes of a slot."""

# ---- the place of the largest ----------------------------------------------------------------

BEST = """\
    const int64_t row = (int64_t)blockIdx.x * 4 + threadIdx.y;
    if (row >= ROWS) return;
    const E *x = in0 + row / INNER * (LENGTH * INNER) + row % INNER;
    T best = LOAD(x[0]);
    int64_t place = 0;
    for (int64_t k = threadIdx.x; k < LENGTH; k += 32) {
        const T value = LOAD(x[k * INNER]);
        if (value SIGN best || (value != value && best == best)) best = value, place = k;
    }
    for (int apart = 16; apart > 0; apart /= 2) {
        const T value = __shfl_xor_sync(0xffffffff, best, apart);
        const int64_t k = __shfl_xor_sync(0xffffffff, place, apart);
        const bool same = value == best || (value != value && best != best);
        if (same ? k < place : value SIGN best || value != value) best = value, place = k;
    }
    if (threadIdx.x == 0) out0[row] = place;"""
"""A warp for each row. NaN is before all; of equal ones the first is taken."""


@works("argmax", "argmin")
def emit_best(record, name: str) -> Work:
    """The kernel of `argmax` and of `argmin`."""
    x, axis = record.inputs[0].spec, record.attrs["axis"]
    before, after = (x.shape[:axis], x.shape[axis + 1 :]) if axis is not None else ((), ())
    length = x.size if axis is None else x.shape[axis]
    words = {"ROWS": record.spec.size, "LENGTH": length, "INNER": prod(after)}
    words["SIGN"] = ">" if record.op.name == "argmax" else "<"
    assert prod(before) * prod(after) == record.spec.size
    text = kernel(name, parameters(record), [filled(BEST, CUDA_TYPES, x.dtype, words)], (32, 4))
    blocks = -(-record.spec.size // 4), 1
    return Work((Launch(name, text, blocks, (32, 4), operands(record)),))


# ---- places from places ----------------------------------------------------------------------


def wrapped(index: str, size: int) -> str:
    """CUDA for a place counted from the front."""
    return f"((int64_t){index} + ((int64_t){index} < 0 ? {size} : 0))"


def digit(d: int, shape) -> str:
    """CUDA for the index along axis d of the flat number i."""
    return f"i / {strides_of(shape)[d]} % {shape[d]}"


@works("along_index")
def emit_along(record, name: str) -> Work:
    """The kernel of `along_index`."""
    whole, axis, shape = record.attrs["shape"], record.attrs["axis"], record.inputs[0].shape
    terms = [f"{wrapped('in0[i]', whole[axis])} * {strides_of(whole)[axis]}"]
    for d, step in enumerate(strides_of(whole)):
        if d != axis and shape[d] > 1:
            terms.append(f"{digit(d, shape)} * {step}")
    return by_element(record, name, f"out0[i] = {' + '.join(terms)};")


@works("flat_index")
def emit_flat(record, name: str) -> Work:
    """The kernel of `flat_index`: one array of places for each axis."""
    if len(record.inputs) != len([*operands(record)]) - 1:
        raise CannotWrite("a number among places")
    flat, shape = "", record.shape
    for k, (x, n) in enumerate(zip(record.inputs, record.attrs["shape"], strict=True)):
        lead = len(shape) - len(x.shape)
        terms = [
            f"{digit(d + lead, shape)} * {step}"
            for d, step in enumerate(strides_of(x.shape))
            if x.shape[d] > 1
        ]
        place = wrapped(f"in{k}[{' + '.join(terms) or 0}]", n)
        flat = f"({flat}) * {n} + {place}" if flat else place
    return by_element(record, name, f"out0[i] = {flat};")


# ---- known places ----------------------------------------------------------------------------

REMAP = """
static const int table[] = {TABLE};
const int64_t k = table[i / INNER % COUNT];
out0[i] = in0[(i / (INNER * COUNT) * SIZE + k) * INNER + i % INNER];
"""

REMAP_GRAD = """
static const int table[] = {TABLE};
const int64_t o = i / (INNER * SIZE), place = i / INNER % SIZE;
T sum = 0;
for (int k = 0; k < COUNT; k++)
    if (table[k] == place) sum += LOAD(in0[(o * COUNT + k) * INNER + i % INNER]);
out0[i] = STORE(sum);
"""


@works("remap", "remap_grad")
def emit_remap(record, name: str) -> Work:
    """The kernel of `remap`, and of its adjoint."""
    axis, index = record.attrs["axis"], record.attrs["index"]
    forward = record.op.name == "remap"
    size = record.inputs[0].shape[axis] if forward else record.attrs["size"]
    words = {"INNER": prod(record.shape[axis + 1 :]), "COUNT": len(index), "SIZE": size}
    words["TABLE"] = ", ".join(str(k % size) for k in index)
    return by_element(record, name, REMAP if forward else REMAP_GRAD, **words)


# ---- running along an axis -------------------------------------------------------------------

SCAN = """
const int64_t first = i / INNER * (LENGTH * INNER) + i % INNER;
T total = START;
for (int64_t k = 0; k < LENGTH; k++) {
    const int64_t at = first + PLACE * INNER;
    total = total SIGN LOAD(in0[at]);
    out0[at] = STORE(total);
}
"""


@works("cumsum", "cumprod")
def emit_scan(record, name: str) -> Work:
    """The kernel of `cumsum` and of `cumprod`: a thread for each row."""
    x, axis = record.spec, record.attrs["axis"]
    if x.dtype in (*dt.HALVES, dt.bool_.numpy):
        raise CannotWrite(f"{record.op.name} of {CUDA_TYPES[x.dtype]}")
    length, product = x.shape[axis], record.op.name == "cumprod"
    words = {
        "INNER": prod(x.shape[axis + 1 :]), "LENGTH": length, "START": int(product),
        "SIGN": "*" if product else "+",
        "PLACE": f"({length - 1} - k)" if record.attrs["reverse"] else "k",
    }  # fmt: skip
    text = filled(SCAN, CUDA_TYPES, x.dtype, words)
    rows = each(name, parameters(record), x.size // length, text, operands(record))
    return Work((rows,))


# ---- a value in a slice ----------------------------------------------------------------------


@works("slice_assign")
def emit_slice_assign(record, name: str) -> Work:
    """The kernel of `slice_assign`: elements inside of the slice are the value's."""
    x, value = record.inputs
    if x.dtype == dt.bfloat16.numpy or not (is_number(value) or value.dtype == x.dtype):
        raise CannotWrite("a value of another dtype")
    tests, places = [], []  # what holds inside; the value's index there
    axes = iter(range(len(x.shape)))
    keys = [*record.attrs["index"]]
    keys += [(None, None, None)] * (len(x.shape) - sum(k is not None for k in keys))
    for key in keys:
        if key is None:
            places.append("0")
            continue
        d = next(axes)
        at, n = f"({digit(d, x.shape)})", x.shape[d]
        if type(key) is not tuple:
            tests.append(f"{at} == {key % n}")
            continue
        found = range(*slice(*key).indices(n))
        if not found:
            tests.append("false")
        elif found != range(n):
            low, high, step = min(found), max(found), abs(found.step)
            tests.append(f"{at} >= {low} && {at} <= {high} && ({at} - {low}) % {step} == 0")
        first = found[0] if found else 0
        places.append(f"({at} - {first}) / ({found.step})")
    given = value_at(value, x.dtype, places)
    return by_element(record, name, f"out0[i] = {' && '.join(tests) or 'true'} ? {given} : in0[i];")


def value_at(value, dtype, places) -> str:
    """CUDA for the element of a value that is broadcast to a slice, at places of the slice."""
    if is_number(value):
        return filled(
            f"STORE({literal(value.attrs['value'], wide(dtype)).template})", CUDA_TYPES, dtype, {}
        )
    own = value.shape[max(0, len(value.shape) - len(places)) :]  # what is before has size 1
    pairs = zip(reversed(places), reversed(own), reversed(strides_of(own)))
    terms = [f"{place} * {step}" for place, n, step in pairs if n > 1]
    return f"in1[{' + '.join(terms) or 0}]"
