"""Kernels of operators whose places are in the data: taken, put, added up, picked.

Nothing is added by two threads at once: places that are equal form a chain, and one thread adds up
all of a chain in the order of its terms. A place out of range is never read or written; a kernel of
its own (`look`) says that there is one.
"""

from __future__ import annotations

from math import prod

from ...engine.codegen.kernel import is_number
from ...engine.codegen.scalar import CannotWrite, literal, wide
from ...engine.core import dtype as dt
from ..indexing import broadcast
from .calls import Clear, Launch, Operand, Work, operands, works
from .text import buffers, each, filled, parameters


def by_element(record, name: str, body: str, size: int | None = None, **words) -> Work:
    """One kernel: `body` for each element i of the result."""
    size = record.spec.size if size is None else size
    if not size:
        return Work(())
    text = filled(body, record.dtype, words)
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
    text = filled(LOOK, index.dtype, words | {"IGNORED": ignored})
    given = Operand("in", k), Operand("wrong", 0, slot * WRONG)
    own = [parameters(record)[k], "int64_t *wrong"]
    return each(f"{name}_places{places.k}", own, index.spec.size, text, given)


WRONG = 16
"""Bytes of a slot."""

TAKE = """
int64_t at = INDEX[i / INNER % COUNT];
if (at < 0) at += WRAP;
out0[i] = at < 0 || at >= SIZE ? E(ZERO)
    : TABLE[(i / (INNER * COUNT) * SIZE + at) * INNER + i % INNER];
"""
EMPTY = {dt.bfloat16.numpy: "bfloat16{0}"}


def zero(dtype) -> str:
    """CUDA for 0 in memory."""
    return EMPTY.get(dtype, "0")


@works("take")
def emit_take(record, name: str) -> Work:
    """The kernel of `take`."""
    x, index = (e.spec for e in record.inputs)
    axis = record.attrs["axis"]
    size, inner = x.shape[axis], prod(x.shape[axis + 1 :])
    return by_element(
        record, name, TAKE, INDEX="in1", TABLE="in0", INNER=inner, COUNT=index.size, SIZE=size,
        WRAP=size, ZERO=zero(record.dtype),
    )  # fmt: skip


@works("embedding")
def emit_embedding(record, name: str) -> Work:
    """The kernel of `embedding`: rows of the table; zeros for `padding_idx`."""
    x, weight = (e.spec for e in record.inputs)
    padding, text = record.attrs["padding_idx"], TAKE.replace("if (at < 0) at += WRAP;\n", "")
    if padding is not None:
        text = text.replace("? E", f"|| at == {padding} ? E")
    return by_element(
        record, name, text, INDEX="in0", TABLE="in1", INNER=weight.shape[1], COUNT=x.size,
        SIZE=weight.shape[0], ZERO=zero(record.dtype),
    )  # fmt: skip


CHAIN = """
const int64_t mine = in1[i] < 0 ? in1[i] + SIZE : in1[i];
int next = -1, first = mine >= 0 && mine < SIZE;
for (int64_t k = i + 1; k < COUNT && next < 0; k++)
    if (in1[k] == mine || in1[k] == mine - SIZE) next = k;
for (int64_t k = i - 1; k >= 0 && first; k--)
    if (in1[k] == mine || in1[k] == mine - SIZE) first = 0;
chain[2 * i] = next, chain[2 * i + 1] = first;
"""
"""For each place: the next that names the same, and whether none did before."""

SUM = """
const int64_t o = i / (INNER * COUNT), at = i / INNER % COUNT, k = i % INNER;
if (!chain[2 * at + 1]) continue;
const int64_t place = in1[at] < 0 ? in1[at] + SIZE : in1[at];
T sum = 0;
for (int64_t n = at; n >= 0; n = chain[2 * n]) sum += LOAD(in0[(o * COUNT + n) * INNER + k]);
out0[(o * SIZE + place) * INNER + k] = STORE(sum);
"""

PUT = """
const int64_t o = i / (INNER * COUNT), at = i / INNER % COUNT, k = i % INNER;
const int64_t place = in1[at] < 0 ? in1[at] + SIZE : in1[at];
if (chain[2 * at] < 0 && place >= 0 && place < SIZE) out0[(o * SIZE + place) * INNER + k] = VALUE;
"""


def by_chains(record, name: str, body: str, shape, begin: tuple) -> Work:
    """Calls for what goes to the places in1 along an axis: `begin`, the chains, `body` for each
    element that goes somewhere.
    """
    index, axis = record.inputs[1].spec, record.attrs["axis"]
    outer, inner, count = prod(shape[:axis]), prod(shape[axis + 1 :]), index.size
    words = {"INNER": inner, "SIZE": shape[axis], "COUNT": count}
    if not outer * inner * count:
        return Work(begin)
    own, room = parameters(record), Operand("work")
    find = filled(CHAIN, record.dtype, words)
    found = each(f"{name}_chains", [own[1], "int *chain"], count, find, (Operand("in", 1), room))
    text = filled(body, record.dtype, words)
    given = [*operands(record), room]
    put = each(name, [*own, "const int *chain"], outer * inner * count, text, given)
    return Work((*begin, found, put), 8 * count)


@works("scatter_sum")
def emit_scatter_sum(record, name: str) -> Work:
    """The calls of `scatter_sum`: slices added up at their places, in order."""
    if record.dtype == dt.bool_.numpy:
        raise CannotWrite("sums of booleans")
    clear = Clear(Operand("out"), record.spec.nbytes)
    return by_chains(record, name, SUM, record.attrs["shape"], (clear,))


@works("put")
def emit_put(record, name: str) -> Work:
    """The calls of `put`: a copy, with values in some places; the last one stays."""
    x, index, value = record.inputs
    axis = record.attrs["axis"]
    if is_number(value):
        if x.dtype in dt.HALVES:
            raise CannotWrite("a number put among halves")
        given = literal(value.attrs["value"], x.dtype).template
    elif value.dtype != x.dtype:
        raise CannotWrite("values of another dtype")
    else:
        at = broadcast(value.shape, x.shape, index.shape, axis).replace("i /", "at /")
        given = f"in2[{at}]"
    if not x.spec.size:
        return Work(())
    ins = parameters(record)
    own, both = [ins[0], ins[-1]], (Operand("in"), Operand("out"))
    copy = each(f"{name}_copy", own, x.spec.size, "out0[i] = in0[i];", both)
    return by_chains(record, name, PUT.replace("VALUE", given), x.shape, (copy,))


PICK = """
const int64_t at = in1[i];
out0[i] = at < 0 || at >= CLASSES IGNORED ? E(ZERO) : in0[i * CLASSES + at];
"""
PLACE = """
const int64_t at = in1[i / CLASSES];
out0[i] = at == i % CLASSES NOT_IGNORED ? in0[i / CLASSES] : E(ZERO);
"""
ONE_HOT = "out0[i] = STORE(in0[i / CLASSES] == i % CLASSES ? ONE : NONE);"


def ignored(record, sign: str) -> str:
    index = record.attrs["ignore_index"]
    return "" if index is None else f"{'||' if sign == '==' else '&&'} at {sign} {index}"


@works("pick")
def emit_pick(record, name: str) -> Work:
    """The kernel of `pick`."""
    text = PICK.replace("IGNORED", ignored(record, "=="))
    classes = record.inputs[0].shape[-1]
    return by_element(record, name, text, CLASSES=classes, ZERO=zero(record.dtype))


@works("place")
def emit_place(record, name: str) -> Work:
    """The kernel of `place`."""
    text = PLACE.replace("NOT_IGNORED", ignored(record, "!="))
    classes = record.attrs["classes"]
    return by_element(record, name, text, CLASSES=classes, ZERO=zero(record.dtype))


@works("one_hot")
def emit_one_hot(record, name: str) -> Work:
    """The kernel of `one_hot`."""
    one, none = (literal(v, wide(record.dtype)).template for v in (1, 0))
    classes = record.attrs["classes"]
    return by_element(record, name, ONE_HOT, CLASSES=classes, ONE=one, NONE=none)
