"""Which executor computes which operator, and how: a table derived from the registries.

Eager execution and the interpreter run the operator's body. The C executor has a kernel of its own,
a loop nest, a view, or other operators, by which a pass replaces it; so has the CUDA executor, in
which arrays compute the rest between two kernels. Where C has none, the reason is said here.
"""

from __future__ import annotations

from typing import NamedTuple

from ..codegen.cuda import program  # noqa: F401  (fills CUDA_EMITTERS)
from ..codegen.cuda.calls import CUDA_EMITTERS
from ..engine.codegen.kernel import EMITTERS
from ..engine.core.op import OPS, Op
from ..engine.ir.control import cond, while_loop
from ..engine.passes.lifetimes import VIEWS
from ..engine.passes.nest import fusable_op
from ..engine.passes.registry import LOOKS_FOR

SIZES = "the size of its result depends on values"

REFUSED = dict.fromkeys(
    ("extent", "flatnonzero", "nonzero", "repeated", "unique", "unique_consecutive"), SIZES
)
"""The operators that the C executor leaves out: a program that has one stays on the interpreter."""

EFFECT = "it has an effect outside of the program"

PARTS = {"input", "number", "item", "leaf", "fused", "custom"}
"""The operators that no executor computes: they are the structure of programs."""

REPLACE = ("decompose", "layout", "canonicalize_matmul")
"""The passes that replace operators by others, in every compiled program."""


class Row(NamedTuple):
    """How each executor computes an operator; "" is a hole."""

    op: Op
    eager: str
    interpreter: str
    c: str
    cuda: str


def rows() -> list[Row]:
    """A row for each operator, by name."""
    return [
        Row(op, body(op), body(op), in_c(op), in_cuda(op))
        for op in sorted(OPS.values(), key=lambda op: op.name)
    ]


def body(op: Op) -> str:
    """How operators without a compiler are computed."""
    if op.name in PARTS:
        return "a part of programs"
    return "Python" if op.effect or op in (cond, while_loop) else "NumPy"


def compiled(op: Op, emitters) -> str:
    """How compiled programs compute an operator, with these emitters."""
    if op.name in PARTS:
        return "a part of programs"
    if op.name in emitters and op.kind != "reduction":
        return "kernel"
    if op in VIEWS:
        return "view or loop nest"
    if fusable_op(op) or (op.kind == "movement" and op.view):  # items of `unstack` are slices
        return "loop nest"
    if op.composite or any(op in LOOKS_FOR[name] for name in REPLACE):
        return "other operators"
    return ""


def in_c(op: Op) -> str:
    """How the C executor computes an operator, or why it does not."""
    if op in (cond, while_loop):
        return "C's own"
    reason = REFUSED.get(op.name) or (EFFECT if op.effect else "")
    return compiled(op, EMITTERS) or (reason and f"no: {reason}")


def in_cuda(op: Op) -> str:
    """How the CUDA executor computes an operator."""
    if op in (cond, while_loop):
        return "Python"
    rest = f"no: {SIZES}" if op.name in REFUSED else "Python" if op.effect else "CuPy"
    return compiled(op, CUDA_EMITTERS) or rest
