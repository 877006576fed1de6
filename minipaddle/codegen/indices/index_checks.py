"""Indices in the data: which inputs of a record are indices, and which of them need a check.

Nothing is read or written at an index that is out of range. In C the kernel counts such an index in
the file's variable `bad_index`. If the count has changed, the host computes the record, and raises
the error. (A run of the program on another thread may cause this without need.) In CUDA a kernel of
its own (`look`) finds the index.
"""

from __future__ import annotations

from contextlib import suppress
from math import prod
from typing import NamedTuple

from ...engine.codegen.kernel import C_TYPES
from ...engine.codegen.scalar import CannotWrite
from ...engine.ir.control import fused
from ...engine.ir.program import ITEM, Program
from ...engine.ops.marks import after
from ...engine.ops.movement import reshape
from ...ops.index_arrays import flat_index
from ..target import KERNELS, KernelTarget
from .value_ranges import ValueRanges


class IndexInput(NamedTuple):
    """Input `k` of a record: indices below `size`. Negative indices may count from the end
    (`wraps`), and one number may mean no index (`ignored`).
    """

    k: int
    size: int
    wraps: bool = True
    ignored: int | None = None


class IndexFinder(KernelTarget):
    """A target that collects the indices of a definition, and writes no kernel."""

    types = C_TYPES

    def __init__(self, record):
        super().__init__(record, "")
        self.indices: list[IndexInput] = []

    def place(self, k, size, wraps=True, ignored=None, instead="", i="i") -> str:
        self.indices.append(IndexInput(k, size, wraps, ignored))
        return ""

    def check(self, k, size, wraps=True) -> None:
        self.place(k, size, wraps)

    def clear_slice(self, to, count) -> str:
        return ""

    def scatter(self, slices, value, adds, onto=False) -> None:
        self.place(1, slices.size)

    def windows(self, image):
        raise CannotWrite("windows have no places")


def index_inputs(record) -> list[IndexInput]:
    """The inputs of a record that are indices."""
    finder = IndexFinder(record)
    with suppress(CannotWrite):  # then the host computes the record, and checks
        KERNELS.get(record.op.name, lambda target: None)(finder)
    return finder.indices


class CheckedIndices:
    """The indices that earlier records have checked. Another record with the same indices needs no
    check. (The forward pass runs first, and the backward pass allows the same indices.)
    """

    def __init__(self):
        self.at: dict = {}

    def add(self, index, places: IndexInput) -> bool:
        """Add an input; return whether it needs a check. Reshaped indices are the same indices, and
        positions in a whole array were checked when they were computed.
        """
        index = find_source(index)
        if index.op is flat_index and prod(index.attrs["shape"]) == places.size:
            return False
        before = self.at.setdefault(index, [])
        known = any(old.size == places.size and covers(old, places) for old in before)
        before += [] if known else [places]
        return not known


def find_source(index):
    """The record whose value these indices are, reshaped or not, also by a group."""
    while True:
        if index.op in (after, reshape):
            index = index.inputs[0]
        elif index.op is ITEM and index.inputs[0].op is fused:
            group = index.inputs[0]
            outer = dict(zip(group.attrs["region"].inputs, group.inputs, strict=True))
            inner = find_source(group.attrs["region"].outputs[index.attrs["k"]])
            if inner not in outer:
                return index
            index = outer[inner]
        else:
            return index


def covers(old: IndexInput, new: IndexInput) -> bool:
    """Whether `new` allows all indices that `old`, of the same size, allows."""
    return (new.wraps or not old.wraps) and old.ignored in (None, new.ignored)


def find_checked(records, program: Program):
    """The records of a program whose indices earlier records have checked, or that have only what a
    loop counts for indices. (What else may fail, such as a matrix without an inverse, nobody has
    checked.)
    """
    before, ranges = CheckedIndices(), ValueRanges(program)
    for record in records:
        indices = [(record.inputs[p.k], p) for p in index_inputs(record)]
        new = [before.add(x, p) for x, p in indices if not fits(ranges.of(x), p)]
        if indices and not any(new):
            yield record


def fits(values: tuple[int, int] | None, places: IndexInput) -> bool:
    """Whether all numbers of a range are indices."""
    low = -places.size if places.wraps else 0
    return values is not None and low <= values[0] and values[1] < places.size
