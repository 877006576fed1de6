"""CUDA kernels that check indices in the data, find the largest element, or run along an axis."""

from __future__ import annotations

from math import prod

from ...engine.codegen.kernel import read_template
from ...engine.codegen.scalar import CannotWrite
from ...engine.core import dtype as dt
from ..rows.argmax import SIGNS
from ..target import fill
from .calls import CUDA_TYPES, KernelCalls, Launch, Operand, cuda_emitter, operands
from .text import each, launch, parameters

LOOK = """
const int64_t at = index[i];
if ((at < LOW || at >= SIZE) IGNORED) wrong[0] = 1, wrong[1] = at;
"""


def look(index, name: str, places, slot: int, at: Operand) -> Launch | None:
    """A kernel that checks the indices `index`, which lie at `at`: if one is out of range, it
    writes the pair (1, the index) into a slot. If several are, any of them may be there.
    """
    if not index.spec.size:
        return None
    ignored = "" if places.ignored is None else f"&& at != {places.ignored}"
    words = {"SIZE": places.size, "LOW": -places.size if places.wraps else 0, "IGNORED": ignored}
    text = fill(LOOK, CUDA_TYPES, index.dtype, words)
    declared = [f"const {CUDA_TYPES[index.dtype]} *index", "int64_t *wrong"]
    memory = at, Operand("wrong", 0, slot * WRONG)
    return each(f"{name}_places{places.k}", declared, index.spec.size, text, memory)


WRONG = 16
"""Bytes of a slot."""

# ---- the index of the largest ----------------------------------------------------------------

BEST = read_template("best.cu", __file__).rstrip("\n")
"""A warp for each row. NaN wins over all numbers; of equal elements the first counts."""


@cuda_emitter(*SIGNS)
def emit_best(record, name: str) -> KernelCalls:
    """The kernel of `argmax` and of `argmin`."""
    x, axis = record.inputs[0].spec, record.attrs["axis"]
    before, after = (x.shape[:axis], x.shape[axis + 1 :]) if axis is not None else ((), ())
    length = x.size if axis is None else x.shape[axis]
    words = {"ROWS": record.spec.size, "LENGTH": length, "INNER": prod(after)}
    words["SIGN"] = SIGNS[record.op.name]
    assert prod(before) * prod(after) == record.spec.size
    lines, blocks = [fill(BEST, CUDA_TYPES, x.dtype, words)], (-(-record.spec.size // 4), 1)
    return KernelCalls(
        (launch(name, parameters(record), lines, blocks, (32, 4), operands(record)),)
    )


# ---- constant indices ----------------------------------------------------------------------------

REMAP_GRAD = read_template("remap_grad.cu", __file__)


@cuda_emitter("remap_grad")
def emit_remap_grad(record, name: str) -> KernelCalls:
    """The kernel of the adjoint of `remap`."""
    index, size = record.attrs["index"], record.attrs["size"]
    words = {"INNER": prod(record.shape[record.attrs["axis"] + 1 :]), "COUNT": len(index)}
    words |= {"SIZE": size, "TABLE": ", ".join(str(k % size) for k in index)}
    text = fill(REMAP_GRAD, CUDA_TYPES, record.dtype, words)
    return KernelCalls((each(name, parameters(record), record.spec.size, text, operands(record)),))


# ---- running along an axis -------------------------------------------------------------------

SCAN = read_template("scan.cu", __file__)


SUMS = {"cumsum": ("+", 0), "cumprod": ("*", 1)}
"""How two elements are joined, and what a row begins with, by operator."""


@cuda_emitter(*SUMS)
def emit_scan(record, name: str) -> KernelCalls:
    """The kernel of `cumsum` and of `cumprod`: a thread for each row."""
    x, axis = record.spec, record.attrs["axis"]
    if x.dtype in (*dt.HALVES, dt.bool_.numpy):
        raise CannotWrite(f"{record.op.name} of {CUDA_TYPES[x.dtype]}")
    length, (sign, start) = x.shape[axis], SUMS[record.op.name]
    words = {
        "INNER": prod(x.shape[axis + 1 :]), "LENGTH": length, "START": start, "SIGN": sign,
        "PLACE": f"({length - 1} - k)" if record.attrs["reverse"] else "k",
    }  # fmt: skip
    text = fill(SCAN, CUDA_TYPES, x.dtype, words)
    rows = each(name, parameters(record), x.size // length, text, operands(record))
    return KernelCalls((rows,))
