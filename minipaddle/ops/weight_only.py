"""Products of floats with a weight in whole numbers of 8 or 4 bits.

The weight is [out, in], one byte each, or [out / 2, in], where the even output has the lower half
of a byte. A scale [groups, out] is that of one step: the inputs fall into groups of one size.
"""

from ..engine.core import dtype as dt
from ..engine.core.op import opaque
from ..engine.core.record import Spec
from ..engine.core.slots import slot
from ..engine.ops.linalg import matmul
from ..engine.ops.movement import reshape, stack, transpose


@slot("quantization.pack")
def pack(low, high):
    """Pairs of whole numbers from -8 to 7, as bytes."""
    return (low & 15) | (high << 4)


@slot("quantization.unpack")
def unpack(x):
    """The pairs (low, high) that `pack` put into bytes, with their signs."""
    return x << 4 >> 4, x >> 4


def whole(w, bits: int):
    """The whole numbers [in, out] of a weight."""
    if bits == 4:
        pairs, rows = w.spec.shape
        w = reshape(stack(*unpack(w), axis=1), shape=(2 * pairs, rows))
    return transpose(w, perm=(1, 0))


def floats(w, scale, bits: int):
    """The floats [in, out] of a weight, in the dtype of the scale [groups, out]."""
    q = whole(w, bits)
    rows, columns = q.spec.shape
    groups = scale.spec.shape[0]
    y = reshape(q, shape=(groups, rows // groups, columns)).astype(scale.spec.dtype)
    return reshape(y * reshape(scale, shape=(groups, 1, columns)), shape=(rows, columns))


@opaque
def weight_only_matmul(m, x, w, scale, *, bits):
    """x @ w for rows x [rows, in], a weight of `bits` bits, and its scales [groups, out]."""
    if bits == 4:
        w = m.stack([w << 4 >> 4, w >> 4], 1).reshape(-1, w.shape[1])
    groups, columns = scale.shape
    y = w.T.astype(x.dtype).reshape(groups, -1, columns) * scale.astype(x.dtype)[:, None]
    return x @ y.reshape(-1, columns)


@weight_only_matmul.shape
def _(x, w, scale, *, bits):
    if x.dtype in dt.HALVES:
        raise TypeError(f"weight_only_matmul multiplies in float32 or float64, not in {x.dtype}")
    columns, rows = w.shape[0] * 8 // bits, w.shape[1]
    if x.ndim != 2 or x.shape[1] != rows or scale.shape[1:] != (columns,) or rows % scale.shape[0]:
        raise ValueError(
            f"x {list(x.shape)} and scales {list(scale.shape)} do not fit a weight of {columns} "
            f"outputs and {rows} inputs in {bits} bits"
        )
    return Spec((x.shape[0], columns), x.dtype)


weight_only_matmul.by_rows = True
weight_only_matmul.vjp(
    x=lambda g, w, scale, bits: matmul(
        g, transpose(floats(w, scale, bits).astype(g.spec.dtype), perm=(1, 0))
    )
)
weight_only_matmul.shards(lambda x, w, scale, *, bits: "m.,..,..->m.", linear="x")
