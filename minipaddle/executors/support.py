"""Which executor computes which operator, and how: a table derived from the registries.

Eager execution and the interpreter run the operator's body. The C executor has a kernel of its own,
a loop nest, a view, or other operators, by which a pass replaces it; so has the CUDA executor, in
which arrays of CuPy compute the rest between two kernels. Where an executor has no kernel, for an
operator or for some dtypes, the reason is said here.
"""

from __future__ import annotations

from typing import NamedTuple

from ..codegen.cuda import program  # noqa: F401  (fills CUDA_EMITTERS)
from ..codegen.cuda.calls import CUDA_EMITTERS
from ..engine.codegen.kernel import EMITTERS
from ..engine.core.op import OPS, Op
from ..engine.ir.control import cond, while_loop
from ..engine.passes.nest import fusable_op
from ..engine.passes.registry import LOOKS_FOR

SIZES = "the size of its result depends on values"

REFUSED = dict.fromkeys(
    ("extent", "flatnonzero", "nonzero", "repeated", "unique", "unique_consecutive"), SIZES
)
"""The operators that the C executor leaves out: a program that has one stays on the interpreter."""

EFFECT = "it has an effect outside of the program"

OF_FLOATS = """
    avg_pool avg_pool_grad avg_pool_last avg_pool_last_grad check_finite_and_unscale cholesky
    choose_distinct conv
    conv_input_grad conv_last conv_last_input_grad conv_last_weight_grad conv_weight_grad
    cross_entropy det deviation eig eigh inverse logsumexp matrix_exp max_pool max_pool_grad
    max_pool_last max_pool_last_grad max_pool_last_take max_pool_take mean_of_valid moments p_norm
    pinv qr scale_grad slogdet softmax softmax_minus_label solve solve_triangular standardize
    svd weight_only_matmul
"""
"""The operators that C computes for floats alone. Functions of Paddle refuse whole numbers there;
NumPy computes those that reach the operator itself."""

BY_CUPY = {
    "arrangement": "it reads memory as another dtype",
    "counting": "threads would meet at one count",
    "decompositions": "cuSOLVER and arrays factor matrices",
    "matrix_functions": "cuSOLVER and arrays factor matrices",
    "quantization": "cuBLAS multiplies floats, which hold its sums exactly",
    "random": "it searches or sorts what is drawn",
    "resample": "its windows overlap",
    "scan": "each step waits for the one before",
    "scatter": "threads would meet at one element",
    "sorting": "it sorts, with Thrust",
    "strided": "threads would meet at one element",
    "weight_only": "cuBLAS multiplies floats",
}
"""Why operators have no CUDA kernel, by the file that defines them."""

MARKS = {
    "NumPy": "the operator's body computes with arrays",
    "Python": "Python does it, or decides it; a compiled program calls back for it",
    "kernel": "a function of its own in the generated file",
    "loop nest": "a part of loops that fusion makes of it and its neighbours",
    "view": "another look at the same memory, where it can be one; nothing is computed",
    "other operators": "a pass replaces it before code is written",
    "of floats": "NumPy computes whole numbers, for which Paddle has no such operator",
    "C's own": "`if` and `for` of the generated file",
    "CuPy": "the body computes with arrays on the GPU between two kernels, for the reason that is "
    "given; such a program is no CUDA graph",
    "no": "a program with it stays on the interpreter, for the reason that is given",
    "a part of programs": "it marks inputs, groups, results, or placements, and computes nothing",
}
"""The meaning of the words of the table."""

PARTS = {"input", "number", "item", "leaf", "fused", "custom", "reshard", "placed_as"}
"""The operators that no executor computes: they are the structure of programs."""

REPLACE = ("decompose", "layout", "canonicalize_matmul")
"""The passes that replace operators by others, in every compiled program."""


class OperatorSupport(NamedTuple):
    """How each executor computes an operator; "" is a hole."""

    op: Op
    body: str  # eager execution and the interpreter
    c: str
    cuda: str


def rows() -> list[OperatorSupport]:
    """A row for each operator, by name."""
    return [
        OperatorSupport(op, body(op), describe_c(op), describe_cuda(op))
        for op in sorted(OPS.values(), key=lambda op: op.name)
    ]


def body(op: Op) -> str:
    """How operators without a compiler are computed."""
    if op.name in PARTS:
        return "a part of programs"
    return "Python" if op.effect or op in (cond, while_loop) else "NumPy"


def describe_compiled(op: Op, emitters) -> str:
    """How compiled programs compute an operator, with these emitters."""
    if op.name in PARTS:
        return "a part of programs"
    if op.name in emitters and op.kind != "reduction":
        return "kernel"
    if op.alias is not None:
        return "view or loop nest"
    if fusable_op(op) or (op.kind == "movement" and op.view):  # items of `unstack` are slices
        return "loop nest"
    replaced = op.composite or op.kind == "contraction"
    if replaced or any(op in LOOKS_FOR[name] for name in REPLACE):
        return "other operators"
    return ""


def describe_c(op: Op) -> str:
    """How the C executor computes an operator, or why it does not."""
    if op in (cond, while_loop):
        return "C's own"
    if op.name in REFUSED:
        return f"no: {SIZES}"
    how = describe_compiled(op, EMITTERS) or (f"Python: {EFFECT}" if op.effect else "")
    return f"{how}, of floats" if op.name in OF_FLOATS.split() else how


def describe_cuda(op: Op) -> str:
    """How the CUDA executor computes an operator, or why arrays do."""
    if op in (cond, while_loop):
        return "Python: a value decides which kernels come next"
    if op.name in REFUSED:
        return f"no: {SIZES}"
    reason = BY_CUPY.get(op.body.__module__.rpartition(".")[2], "")
    rest = f"Python: {EFFECT}" if op.effect else reason and f"CuPy: {reason}"
    return describe_compiled(op, CUDA_EMITTERS) or rest
