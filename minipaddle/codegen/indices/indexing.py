"""Kernels of operators with indices in the data: they take, put, add and pick elements."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from ...engine.codegen.kernel import IN_PLACE, is_number
from ...engine.codegen.scalar import CannotWrite, literal, wide
from ...engine.ops.movement import WHOLE
from ...engine.ops.slices import count_places, find_places
from ...ops.strided import strides_of
from ..rows.collapsed_loops import digits
from ..target import KernelTarget, LoopLevel, kernel, skip


class Slices(NamedTuple):
    """Slices (o, i) of `inner` elements k; slice i is at an index below `size` of an array."""

    outer: int
    count: int
    inner: int
    size: int

    @property
    def place(self) -> str:
        """The index of an element."""
        return f"(o * {self.size} + at) * {self.inner} + k"

    def levels(self, text: str, inside: LoopLevel) -> tuple[LoopLevel, ...]:
        """The loops over the slices; `text` computes the index."""
        return LoopLevel("o", self.outer), LoopLevel("i", self.count, text), inside


def slices(shape, axis: int, count: int) -> Slices:
    """`count` slices of an array along an axis."""
    return Slices(prod(shape[:axis]), count, prod(shape[axis + 1 :]), shape[axis])


def take_slices(k: KernelTarget, s: Slices, table: str, index: str, skipped: str = "") -> None:
    """Copy the slices of a table at the indices `place`."""
    to = f"out0 + (o * {s.count} + i) * {s.inner}"
    source = f"{table} + (o * {s.size} + at) * {s.inner}"
    skipped = skipped.replace("CLEAR", k.clear_slice(to, s.inner))
    k.loops(*s.levels(skipped + index, k.copy(to, source, s.inner)))


@kernel("take")
def take(k: KernelTarget) -> None:
    """Slices along an axis."""
    x, index = k.specs
    s = slices(x.shape, k.attrs["axis"], index.size)
    k.check(1, s.size)
    take_slices(k, s, "in0", k.place(1, s.size))


@kernel("sparse_embedding")
@kernel("embedding")
def embedding(k: KernelTarget) -> None:
    """Rows of the table; zeros for `padding_idx`."""
    x, weight = k.specs
    s, padding = slices(weight.shape, 0, x.size), k.attrs["padding_idx"]
    skipped = skip("in0[i]", padding, "CLEAR")
    take_slices(k, s, "in1", k.place(0, s.size, wraps=False), skipped)


@kernel("scatter_sum")
def scatter_sum(k: KernelTarget) -> None:
    """Add slices at their indices, in order."""
    s = slices(k.attrs["shape"], k.attrs["axis"], k.specs[1].size)
    k.scatter(s, f"in0[(o * {s.count} + i) * {s.inner} + k]", adds=True)


IN_PLACE.update(put=[(0, 0)], scatter_add=[(0, 0)], slice_assign=[(0, 0)])


@kernel("scatter_add")
def scatter_add(k: KernelTarget) -> None:
    """Add slices at their indices to an array, in order."""
    s = slices(k.out.shape, k.attrs["axis"], k.specs[1].size)
    k.check(1, s.size)
    k.begin_with(0)
    k.scatter(s, f"in2[(o * {s.count} + i) * {s.inner} + k]", adds=True, onto=True)


@kernel("put")
def put(k: KernelTarget) -> None:
    """A copy with values at some indices; of equal indices the last one counts."""
    x, index, value = k.record.inputs
    axis = k.attrs["axis"]
    if is_number(value):
        term = number_in(k, value)
    elif value.dtype != x.dtype:
        raise CannotWrite("values of another dtype")
    else:
        s, axes = slices(x.shape, axis, index.spec.size), digits("o", x.shape[:axis])
        axes += digits("i", index.shape) + digits("k", x.shape[axis + 1 :])
        whole = value.spec.size == s.outer * s.count * s.inner
        at = f"(o * {s.count} + i) * {s.inner} + k" if whole else element(value.shape, axes)
        term = f"in2[{at}]"
    k.check(1, x.shape[axis])
    k.begin_with(0)
    k.scatter(slices(x.shape, axis, index.spec.size), term, adds=False)


@kernel("blend")
def blend(k: KernelTarget) -> None:
    """Weighed sums of a few pixels, whose places all channels share."""
    x, position, weight = k.specs
    if weight.dtype != x.dtype:
        raise CannotWrite("weights of another dtype")
    (n, taps, count), (_, channels, size) = position.shape, x.shape
    tap = f"[(n * {taps} + TAP) * {count} + i]"
    term = f"LOAD(image[in1{tap}]) * LOAD(in2{tap})"
    terms = [term.replace("TAP", str(t)) for t in range(taps)]
    text = f"out0[(n * {channels} + c) * {count} + i] = STORE({' + '.join(terms)});\n"
    image = f"const E *image = in0 + (n * {channels} + c) * {size};\n"
    k.check(1, size, wraps=False)
    k.loops(LoopLevel("n", n), LoopLevel("c", channels, image), LoopLevel("i", count, text))


@kernel("blend_input_grad")
def blend_input_grad(k: KernelTarget) -> None:
    """Each plane of an image adds up what was read from it."""
    g, position, weight = k.specs
    if weight.dtype != g.dtype:
        raise CannotWrite("weights of another dtype")
    (n, taps, count), (_, channels, size) = position.shape, k.out.shape
    k.check(1, size, wraps=False)
    sums = k.sums()
    at = [f"[(n * {taps} + {t}) * {count} + i]" for t in range(taps)]
    text = "".join(f"plane[in1{a}] += g * LOAD(in2{a});\n" for a in at)
    text = f"const T g = LOAD(in0[(n * {channels} + c) * {count} + i]);\n{text}"
    plane = f"T *plane = {sums} + (n * {channels} + c) * {size};\n"
    plane += f"for (int64_t i = 0; i < {count}; i++) {{\n{text}}}\n"
    k.loops(LoopLevel("n", n), LoopLevel("c", channels, plane), each=taps * count)
    k.store_sums()


@kernel("blend_weight_grad")
def blend_weight_grad(k: KernelTarget) -> None:
    """For each weight the pixels of all channels times their cotangents."""
    x, position, g = k.specs
    if g.dtype != x.dtype:
        raise CannotWrite("cotangents of another dtype")
    (n, taps, count), (_, channels, size) = position.shape, x.shape
    k.check(1, size, wraps=False)
    at = [f"[(n * {taps} + {t}) * {count} + i]" for t in range(taps)]
    image = f"in0 + n * {channels * size}"
    start = [f"const E *x{t} = {image} + in1{a};\nT sum{t} = 0;\n" for t, a in enumerate(at)]
    add = [f"sum{t} += g * LOAD(x{t}[c * {size}]);\n" for t in range(taps)]
    end = [f"out0{a} = STORE(sum{t});\n" for t, a in enumerate(at)]
    text = f"const T g = LOAD(in2[(n * {channels} + c) * {count} + i]);\n{''.join(add)}"
    text = f"for (int64_t c = 0; c < {channels}; c++) {{\n{text}}}\n"
    text = "".join([*start, text, *end])
    k.loops(LoopLevel("n", n), LoopLevel("i", count, text), each=taps * channels)


@kernel("remap")
def remap(k: KernelTarget) -> None:
    """Slices at constant indices."""
    x, index = k.specs[0], k.attrs["index"]
    s = slices(x.shape, k.attrs["axis"], len(index))
    table = ", ".join(str(at % s.size) for at in index)
    place = f"static const int table[] = {{{table}}};\nconst int64_t at = table[i];\n"
    take_slices(k, s, "in0", place)


@kernel("slice_assign")
def slice_assign(k: KernelTarget) -> None:
    """A copy, with a value in a slice."""
    x, value = k.record.inputs
    if not (is_number(value) or value.dtype == x.dtype):
        raise CannotWrite("a value of another dtype")
    k.begin_with(0)
    number = number_in(k, value) if is_number(value) else None
    assign_slice(k, value.shape, k.attrs["index"], "in1", number)


def assign_slice(k: KernelTarget, shape, index, source: str, number: str | None = None) -> None:
    """Put an array of a shape, broadcast, or a number into a slice of the result."""
    whole = k.out.shape
    keys = [*index, *WHOLE[: len(whole) - sum(key is not None for key in index)]]
    axes, sizes, to = iter(zip(whole, strides_of(whole))), [], []
    for key in keys:
        if key is None:
            sizes.append(1)
            continue
        n, step = next(axes)
        if type(key) is tuple:
            first, end, by = find_places(key, n)
            to.append(f"{first * step} + i{len(sizes)} * {by * step}")
            sizes.append(count_places(first, end, by))
        else:
            to.append(f"{key % n * step}")
    term = number or f"{source}[{element(shape, len(sizes))}]"
    each_element(k, sizes, f"out0[{' + '.join(to) or 0}] = {term};\n")


def number_in(k: KernelTarget, number) -> str:
    """A number as an element of the result."""
    return k.fill(f"STORE({literal(number.attrs['value'], wide(k.out.dtype)).template})")


def each_element(k: KernelTarget, shape, text: str) -> None:
    """A loop for each axis: i0, i1, … Of no elements nothing is written."""
    if 0 in shape:
        return
    *outer, inner = [LoopLevel(f"i{d}", n) for d, n in enumerate(shape)] or [LoopLevel("i0", 1)]
    k.loops(*outer, inner._replace(text=text))


def element(shape, axes) -> str:
    """The index of an element in an array that is broadcast; `axes` are the indices of the whole
    array, i0, i1, … if it is a number of axes.
    """
    axes = [f"i{d}" for d in range(axes)] if isinstance(axes, int) else axes
    shape = shape[max(len(shape) - len(axes), 0) :]  # a value may have further axes of size 1
    places = zip(axes[len(axes) - len(shape) :], shape, strides_of(shape), strict=True)
    return " + ".join(f"{i} * {step}" for i, n, step in places if n > 1) or "0"


# ---- places from places ----------------------------------------------------------------------


@kernel("along_index")
def along_index(k: KernelTarget) -> None:
    """Positions in a whole array, from indices along one axis."""
    axis, (index,) = k.attrs["axis"], k.specs
    own, steps = element(index.shape, len(index.shape)), strides_of(k.attrs["shape"])
    terms = [f"i{d} * {step}" for d, step in enumerate(steps) if d != axis]
    k.check(0, k.attrs["shape"][axis])
    text = k.place(0, k.attrs["shape"][axis], i=own)
    text += f"out0[{own}] = {' + '.join([f'at * {steps[axis]}', *terms])};\n"
    each_element(k, index.shape, text)


@kernel("flat_index")
def flat_index(k: KernelTarget) -> None:
    """Positions in a whole array, from indices along all axes."""
    if any(map(is_number, k.record.inputs)):
        raise CannotWrite("a number among places")
    shape, text = k.out.shape, "int64_t flat = 0;\n"
    for number, n in enumerate(k.attrs["shape"]):
        k.check(number, n)
    for number, (index, n) in enumerate(zip(k.specs, k.attrs["shape"], strict=True)):
        place = k.place(number, n, i=element(index.shape, len(shape)))
        text += f"{{\n{place}flat = flat * {n} + at;\n}}\n"
    each_element(k, shape, f"{text}out0[{element(shape, len(shape))}] = flat;\n")


# ---- one number out of each row --------------------------------------------------------------


@kernel("pick")
def pick(k: KernelTarget) -> None:
    """The element of each row at its label."""
    x, label = k.specs
    classes = x.shape[-1]
    place = k.place(1, classes, False, k.attrs["ignore_index"], "out0[i] = ZERO;")
    k.loops(LoopLevel("i", label.size, f"{place}out0[i] = in0[i * {classes} + at];\n"))


@kernel("place")
def place(k: KernelTarget) -> None:
    """Rows of zeros, with one element at the label."""
    label, classes = k.specs[1], k.attrs["classes"]
    place = k.place(1, classes, False, k.attrs["ignore_index"])
    k.clear()
    k.loops(LoopLevel("i", label.size, f"{place}out0[i * {classes} + at] = in0[i];\n"))


@kernel("one_hot")
def one_hot(k: KernelTarget) -> None:
    """Rows of zeros with a one at the index."""
    x, classes = k.specs[0], k.attrs["classes"]
    k.clear()
    text = f"{k.place(0, classes, wraps=False)}out0[i * {classes} + at] = STORE(1);\n"
    k.loops(LoopLevel("i", x.size, text))
