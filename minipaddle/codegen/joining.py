"""C text of `concat`, `stack` and `split`: pieces of arrays copied, each as a whole."""

from __future__ import annotations

from math import prod

from ..engine.codegen.kernel import C_TYPES, Kernel, emits, function, is_number
from ..engine.codegen.scalar import CannotWrite
from .matmul import indented, late


def copies(outer: int, pieces, whole: int, T: str, joined: bool) -> str:
    """C text: pieces of (name, elements), side by side in rows of `whole` elements, `outer` times.

    `joined` says where to: into out0 or from in0.
    """
    lines, start = [], 0
    for name, n in pieces:
        piece = f"{name} + o * {n}" if outer > 1 else name
        row = f"o * {whole} + {start}" if outer > 1 else f"{start}"
        to, source = (f"out0 + {row}", piece) if joined else (piece, f"in0 + {row}")
        if n:
            lines.append(f"memcpy({to}, {source}, {n} * sizeof({T}));\n")
        start += n
    if outer == 1:
        return "".join(lines)
    return f"for (int64_t o = 0; o < {outer}; o++) {{\n{indented(''.join(lines), 4)}}}\n"


@emits("concat", "stack")
def emit_joined(record, name, rows=None, parameters=()) -> Kernel:
    """The kernel of `concat` and of `stack`."""
    axis, out = record.attrs["axis"], record.spec
    if any(is_number(x) or x.dtype != out.dtype for x in record.inputs):
        raise CannotWrite("pieces of several dtypes")
    outer = prod(out.shape[:axis])
    pieces = [(f"in{k}", x.spec.size // max(outer, 1)) for k, x in enumerate(record.inputs)]
    whole = out.size // max(outer, 1)
    text = indented(copies(outer, pieces, whole, C_TYPES[out.dtype], True), 4)
    text += late(rows, out) if out.size else ""
    return Kernel(name, function(record, name, text, parameters=parameters))


@emits("split")
def emit_split(record, name, rows=None, parameters=()) -> Kernel:
    """The kernel of `split`, which has several results and so no epilogue."""
    x, axis = record.inputs[0].spec, record.attrs["axis"]
    if rows is not None:
        raise CannotWrite("an epilogue of several results")
    outer, inner = prod(x.shape[:axis]), prod(x.shape[axis + 1 :])
    pieces = [(f"out{k}", n * inner) for k, n in enumerate(record.attrs["sizes"])]
    text = copies(outer, pieces, x.shape[axis] * inner, C_TYPES[x.dtype], False)
    return Kernel(name, function(record, name, indented(text, 4), parameters=parameters))
