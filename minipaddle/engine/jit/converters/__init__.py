"""The converters: each turns one construct of Python into calls of the runtime; in order.

A converter is a function `convert(tree, context) -> tree` and a slot, `jit.<name>`. The first ones
bring the code into a simple form (no decorators, no jumps), then control flow becomes functions,
then the rest of the expressions becomes calls that decide at run time.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from .attributes import writes
from .boolean import logic, negation
from .branches import if_else
from .calls import calls
from .choices import conditional
from .jumps import jumps
from .loops import for_loop, while_loop
from .signature import annotations, declarations, signature
from .undefined import undefined

CONVERTERS = [
    signature,     # def f(a, b=1): ...          without decorators and defaults
    declarations,  # global g, nonlocal n        at the start of the function
    annotations,   # x: int = 1                  x = 1
    jumps,         # break, continue, return     flags, and code that looks at them
    undefined,     # y, on some path not bound   _jst.require_defined(y)
    writes,        # self.x = v, d[k] = v        _jst.writing(self, "x").x = v
    if_else,       # if                          _jst.if_else(test, then, else_)
    while_loop,    # while                       _jst.while_loop(test, body)
    for_loop,      # for                         _jst.for_loop(iterable, body)
    conditional,   # a if test else b            _jst.if_exp(test, lambda: a, lambda: b)
    logic,         # a and b, a or b             _jst.and_(a, lambda: b)
    negation,      # not a                       _jst.not_(a)
    calls,         # f(x)                        _jst.call(f)(x)
]  # fmt: skip


def insert(*converters, before=None) -> None:
    """Let further converters run before another one, or last."""
    at = len(CONVERTERS) if before is None else CONVERTERS.index(before)
    CONVERTERS[at:at] = converters


class Conversion(NamedTuple):
    """The facts that converters know besides the tree."""

    owner: str | None = None  # the class around the function
