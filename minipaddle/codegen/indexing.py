"""C text of operators whose places are in the data: rows taken, put, added up, picked.

A place that is out of range is never read or written: the kernel counts it in the file's
`bad_index`. If that is not what it was, the host is asked to compute the record, and says what is
wrong; a run on another thread, of the same program, asks in vain.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from ..engine.codegen.kernel import BAD_INDEX, C_TYPES, Kernel, emits, function, is_number
from ..engine.codegen.scalar import CannotWrite, literal
from ..engine.core import dtype as dt
from ..engine.core.spec import broadcast_shapes
from ..engine.ops.movement import replaced, reshape, strides_of
from ..ops.ordering import after
from .matmul import PARALLEL, Room, indented, late, widened

SERIAL = 60_000
"""Elements below which a second thread costs more than it brings."""


def place(index: str, size: int, wraps: bool = True) -> str:
    """C text: `at` is the place that `index` says, or the loop goes on with the next."""
    wrap = f"if (at < 0) at += {size};\n" if wraps else ""
    return (
        f"int64_t at = {index};\n{wrap}"
        f"if (at < 0 || at >= {size}) {{\n    bad_index++;\n    continue;\n}}\n"
    )


def finished(record, name, text, rows, parameters, work=0) -> Kernel:
    """A kernel of this file around its body."""
    if record.spec.size:
        text += late(rows, record.spec)
    source = function(record, name, text, work=work > 0, parameters=parameters)
    return Kernel(name, source, work, (BAD_INDEX,))


def loop(name: str, count: int, inside: str, work: int = 0) -> str:
    """C text of a loop, shared out among threads if there is work enough."""
    pragma = PARALLEL if work > SERIAL else ""
    head = f"for (int64_t {name} = 0; {name} < {count}; {name}++)"
    return f"{pragma}{head} {{\n{indented(inside, 4)}}}\n"


def looked(index: str, count: int, size: int, wraps: bool = True) -> str:
    """C text: a look at `count` places where nothing is moved."""
    return loop("i", count, place(index, size, wraps))


def taken(x, count: int, axis: int, target: str, index: str, ignored: str = "", wraps=True) -> str:
    """C text: slices of in0 along `axis` at `count` places."""
    outer, size, inner = prod(x.shape[:axis]), x.shape[axis], prod(x.shape[axis + 1 :])
    if not outer * inner:
        return looked(index, count, size, wraps)
    T = C_TYPES[x.dtype]
    copy = f"memcpy(to, {target} + (o * {size} + at) * {inner}, {inner} * sizeof({T}));\n"
    body = f"{T} *to = out0 + (o * {count} + i) * {inner};\n{ignored}{place(index, size, wraps)}"
    work = count * inner
    return loop("o", outer, loop("i", count, body + copy, work))


class Places(NamedTuple):
    """Whole numbers that name places: input `k` of a record, below `size`. Negative ones may count
    from the end (`wraps`); one number may say that there is none (`ignored`).
    """

    k: int
    size: int
    wraps: bool = True
    ignored: int | None = None


def named_places(record) -> list[Places]:
    """What of a record's inputs names places."""
    given, attrs, name = record.inputs, record.attrs, record.op.name
    if name in ("take", "put"):
        return [Places(1, given[0].shape[attrs["axis"]])]
    if name == "scatter_sum":
        return [Places(1, attrs["shape"][attrs["axis"]])]
    if name == "along_index":
        return [Places(0, attrs["shape"][attrs["axis"]])]
    if name == "flat_index":
        return [Places(k, size) for k, size in enumerate(attrs["shape"])]
    if name == "embedding":
        return [Places(0, given[1].shape[0], False)]
    if name == "one_hot":
        return [Places(0, attrs["classes"], False)]
    if name == "pick":
        return [Places(1, given[0].shape[-1], False, attrs["ignore_index"])]
    if name == "place":
        return [Places(1, attrs["classes"], False, attrs["ignore_index"])]
    return []


class Looked:
    """The places that were looked at so far: whoever is given the same numbers need not fear them.

    (The forward comes first, and the backward is as lenient.)
    """

    def __init__(self):
        self.at: dict = {}

    def add(self, index, places: Places) -> bool:
        """Must these be looked at? Numbers are the same at another time, in another shape."""
        while index.op in (after, reshape):
            index = index.inputs[0]
        before = self.at.setdefault(index, [])
        known = any(old.size == places.size and covers(old, places) for old in before)
        before += [] if known else [places]
        return not known


def covers(old: Places, new: Places) -> bool:
    """Is what the old ones allow allowed by the new ones, of the same size?"""
    return (new.wraps or not old.wraps) and old.ignored in (None, new.ignored)


@emits("take")
def emit_take(record, name, rows=None, parameters=()) -> Kernel:
    """The kernel of `take`."""
    x, index = (e.spec for e in record.inputs)
    text = taken(x, index.size, record.attrs["axis"], "in0", "in1[i]")
    return finished(record, name, indented(text, 4), rows, parameters)


@emits("embedding")
def emit_embedding(record, name, rows=None, parameters=()) -> Kernel:
    """The kernel of `embedding`: rows of the table; zeros for `padding_idx`."""
    x, weight = (e.spec for e in record.inputs)
    padding, T = record.attrs["padding_idx"], C_TYPES[weight.dtype]
    ignored = ""
    if padding is not None:
        clear = f"memset(to, 0, {weight.shape[1]} * sizeof({T}));"
        ignored = f"if (in0[i] == {padding}) {{\n    {clear}\n    continue;\n}}\n"
    text = taken(weight, x.size, 0, "in1", "in0[i]", ignored, wraps=False)
    return finished(record, name, indented(text, 4), rows, parameters)


@emits("scatter_sum")
def emit_scatter_sum(record, name, rows=None, parameters=()) -> Kernel:
    """The kernel of `scatter_sum`: slices added up at their places, in order."""
    x, index = (e.spec for e in record.inputs)
    shape, axis = record.attrs["shape"], record.attrs["axis"]
    if x.dtype == dt.bool_.numpy:
        raise CannotWrite("sums of booleans")
    outer, size, inner = prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])
    T, room, half = C_TYPES[x.dtype], Room(), x.dtype in dt.HALVES
    text, given, target = "", "in0", "out0"
    if half:
        text += widened(room, "in0", "wide", x)
        T, given, target = "float", "wide", "sum"
        text += f"    float *sum = {room.array('float', record.spec.size)};\n"
    text += f"    memset({target}, 0, {record.spec.size} * sizeof({T}));\n"
    body = place("in1[i]", size) + (
        f"const {T} *from = {given} + (o * {index.size} + i) * {inner};\n"
        f"{T} *to = {target} + (o * {size} + at) * {inner};\n"
        f"for (int64_t k = 0; k < {inner}; k++) to[k] += from[k];\n"
    )
    moves = loop("o", outer, loop("i", index.size, body))
    text += indented(moves if outer * inner else looked("in1[i]", index.size, size), 4)
    if half:
        value = "narrow(sum[i])" if x.dtype == dt.bfloat16.numpy else "sum[i]"
        text += f"    for (int64_t i = 0; i < {record.spec.size}; i++) out0[i] = {value};\n"
    return finished(record, name, text, rows, parameters, room.size)


@emits("put")
def emit_put(record, name, rows=None, parameters=()) -> Kernel:
    """The kernel of `put`: a copy, with values in some places."""
    x, index, value = record.inputs
    axis, T = record.attrs["axis"], C_TYPES[x.dtype]
    outer, size, inner = prod(x.shape[:axis]), x.shape[axis], prod(x.shape[axis + 1 :])
    count = index.spec.size
    text = f"memcpy(out0, in0, {x.spec.size} * sizeof({T}));\n"
    if is_number(value):
        if x.dtype == dt.bfloat16.numpy:
            raise CannotWrite("a number put among bfloat16")
        given = literal(value.attrs["value"], x.dtype).template
    elif value.dtype != x.dtype:
        raise CannotWrite("values of another dtype")
    else:
        given = "in2[" + broadcast(value.shape, x.shape, index.shape, axis) + "]"
    body = place("in1[i]", size)
    body += f"{T} *to = out0 + (o * {size} + at) * {inner};\n"
    body += f"for (int64_t k = 0; k < {inner}; k++) to[k] = {given};\n"
    text += loop("o", outer, loop("i", count, body))
    text = text if outer * inner else looked("in1[i]", count, size)
    return finished(record, name, indented(text, 4), rows, parameters)


def broadcast(shape, x, index, axis: int) -> str:
    """C text: where the value for slice element (o, i, k) stands in an array of `shape`."""
    whole = replaced(x, axis, *index)
    shape = shape[max(len(shape) - len(whole), 0) :]  # a value may have further axes of size 1
    steps = [0] * (len(whole) - len(shape))
    steps += [step * (n > 1) for n, step in zip(shape, strides_of(shape))]
    assert broadcast_shapes(shape, whole) == whole
    terms, names = [], ("o", "i", "k")
    groups = (0, axis), (axis, axis + len(index)), (axis + len(index), len(whole))
    for name, (start, end) in zip(names, groups):
        inner = 1
        for d in reversed(range(start, end)):
            if steps[d]:
                terms.append(f"{name} / {inner} % {whole[d]} * {steps[d]}")
            inner *= whole[d]
    return " + ".join(terms[::-1]) or "0"


# ---- one number out of each row --------------------------------------------------------------


def skipped(record, clear: str) -> str:
    """C text: what is done for a row whose label is to be ignored."""
    ignored = record.attrs["ignore_index"]
    if ignored is None:
        return ""
    return f"if (in1[i] == {ignored}) {{\n    {clear}\n    continue;\n}}\n"


def zero(dtype) -> str:
    """C text of 0."""
    return "(bfloat16){0}" if dtype == dt.bfloat16.numpy else "0"


@emits("pick")
def emit_pick(record, name, rows=None, parameters=()) -> Kernel:
    """The kernel of `pick`."""
    x, label = (e.spec for e in record.inputs)
    body = skipped(record, f"out0[i] = {zero(x.dtype)};") + place("in1[i]", x.shape[-1], False)
    body += f"out0[i] = in0[i * {x.shape[-1]} + at];\n"
    return finished(record, name, indented(loop("i", label.size, body), 4), rows, parameters)


@emits("place")
def emit_place(record, name, rows=None, parameters=()) -> Kernel:
    """The kernel of `place`."""
    label, classes, T = record.inputs[1].spec, record.attrs["classes"], C_TYPES[record.dtype]
    text = f"memset(out0, 0, {record.spec.size} * sizeof({T}));\n"
    body = skipped(record, "") + place("in1[i]", classes, False)
    body += f"out0[i * {classes} + at] = in0[i];\n"
    text += loop("i", label.size, body)
    return finished(record, name, indented(text, 4), rows, parameters)


@emits("one_hot")
def emit_one_hot(record, name, rows=None, parameters=()) -> Kernel:
    """The kernel of `one_hot`."""
    x, classes, T = record.inputs[0].spec, record.attrs["classes"], C_TYPES[record.dtype]
    one = "narrow(1)" if record.dtype == dt.bfloat16.numpy else "1"
    text = f"memset(out0, 0, {record.spec.size} * sizeof({T}));\n"
    body = place("in0[i]", classes, False) + f"out0[i * {classes} + at] = {one};\n"
    text += loop("i", x.size, body)
    return finished(record, name, indented(text, 4), rows, parameters)
