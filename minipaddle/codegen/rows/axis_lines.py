"""Kernels that walk lines of an array: the elements along an axis, for each place on the others.

This file knows sizes and fills templates; what is done along a line is in the template.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from ...engine.codegen.kernel import BAD_INDEX, C_TYPES, Kernel, function
from ...engine.codegen.writer import worth_sharing
from ..c_target import SERIAL
from ..c_text import indent, share_where
from ..target import fill


class Lines(NamedTuple):
    """The lines along an axis: `outer` times `inner` of them, with `length` elements each. The
    next element of a line is `inner` elements further on.
    """

    outer: int
    length: int
    inner: int

    @property
    def count(self) -> int:
        """The number of lines."""
        return self.outer * self.inner

    @property
    def words(self) -> dict:
        """The sizes as words of a template, and a pragma where threads pay."""
        pragma = share_where(worth_sharing(self.count * self.length, SERIAL + 1)).strip()
        sizes = {"OUTER": self.outer, "LENGTH": self.length, "INNER": self.inner}
        return sizes | {"LINES": self.count, "PARALLEL": pragma}


def lines_of(shape, axis: int | None) -> Lines:
    """The lines of an array along an axis; None: the array as one line."""
    if axis is None:
        return Lines(1, prod(shape), 1)
    return Lines(prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :]))


def fill_kernel(record, name: str, text: str, dtype, *, work=0, helpers=(), **words) -> Kernel:
    """The kernel whose body is a template: E, T, LOAD, STORE and ZERO are those of `dtype` (see
    `target.fill`); `work` are its bytes of workspace. A kernel that counts in `bad_index` leaves
    the record, and its error, to the host.
    """
    body = indent(fill(text, C_TYPES, dtype, words), 4)
    helpers = (*helpers, *([BAD_INDEX] if "bad_index" in body else []))
    return Kernel(name, function(record, name, body, work=work > 0), work, helpers)
