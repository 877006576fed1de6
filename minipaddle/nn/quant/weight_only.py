"""Weights in one byte or half of one, multiplied with floats.

A weight [in, out] is kept as Paddle has it: turned to [out, in], with a scale for each output, or,
with `group_size`, for each group of an output's inputs, [groups, out]. A scale is that of one step:
weight ≈ q · scale. Two numbers of four bits share a byte, the even output in its lower half.
(Paddle then shuffles the bytes for its kernels, otherwise for each GPU.)
"""

from ...core.prelude import (
    e,
    movement,
    reduction,
    require_floats,
    require_ndim,
    require_one_of,
    reshape,
    slot,
    transpose,
    value_error,
    where,
)
from ...engine.core import dtype as dt
from ...engine.ops.creation import assign
from ...ops.quantization import matmul_integer, quantize, width
from ...ops.weight_only import floats, pack, weight_only_matmul
from .. import functional as F

BITS = {"weight_only_int8": 8, "weight_only_int4": 4, "llm.int8": 8}
ALGORITHMS = {"int8": "weight_only_int8", "int4": "weight_only_int4"}
GROUPS = -1, 64, 128


def turn(x):
    return transpose(x, perm=(1, 0))


def largest(x, axis: int):
    """The largest magnitude along an axis, which stays."""
    return reduction.max(e.abs(x), axis=(axis,), keepdim=True)


@slot("quantization.group_scales")
def group_scales(x, group: int):
    """The largest magnitude in each group of `group` rows of a matrix: [rows / group, columns]."""
    rows, columns = x.spec.shape
    y = largest(reshape(x, shape=(rows // group, group, columns)), 1)
    return reshape(y, shape=(rows // group, columns))


def arrange_by_rows(scale, shape, group: int):
    """Scales in a shape that broadcasts to a matrix of groups, and the shape of that."""
    rows, columns = shape
    if group == -1:
        return reshape(scale, shape=(1, 1, columns)), (1, rows, columns)
    return reshape(scale, shape=(rows // group, 1, columns)), (rows // group, group, columns)


def require_scale(name: str, scale) -> None:
    if scale is None:
        raise value_error(f"{name} was given weight_scale=None", "the scales of weight_quantize")


def check_group(name: str, group: int, rows: int) -> None:
    require_one_of(name, GROUPS, group_size=group)
    if group > 0 and rows % group:
        raise value_error(
            f"{name} was given group_size={group} for {rows} inputs", "groups of one size"
        )


def weight_quantize(x, algo="weight_only_int8", arch=None, group_size=-1):
    """(whole numbers, scales) of a weight x [in, out].

    The numbers are int8 [out, in], or [out / 2, in] with two of four bits in a byte
    ("weight_only_int4"). `arch`, a GPU, changes nothing. Raises ValueError if the outputs or the
    inputs do not fall into pairs or groups.

    >>> x = paddle.to_tensor([[64.0, -254.0], [-127.0, 127.0]])
    >>> q, scale = paddle.nn.quant.weight_quantize(x)
    >>> q.tolist(), scale.tolist()
    ([[64, -127], [-127, 64]], [1.0, 2.0])
    """
    require_one_of("weight_quantize", tuple(BITS), algo=algo)
    require_ndim("weight_quantize", x, 2)
    require_floats("weight_quantize", x)
    rows, columns = x.spec.shape
    check_group("weight_quantize", group_size, rows)
    top = group_scales(x, rows if group_size == -1 else group_size)
    scale, shape = arrange_by_rows(top, x.spec.shape, group_size)
    at = width(BITS[algo])
    q = quantize(reshape(x, shape=shape), where(scale > 0, scale, 1.0), 0.0, **at)
    q = turn(reshape(q, shape=x.spec.shape))
    if BITS[algo] == 4:
        if columns % 2:
            raise value_error(f"weight_quantize in 4 bits of {columns} outputs", "an even number")
        pairs = reshape(q, shape=(columns // 2, 2, rows))
        q = pack(*(movement.slice_(pairs, index=((0, columns // 2, 1), k)) for k in (0, 1)))
    q = assign(q)  # its elements are in order, as C reads them
    return q, (reshape(top, shape=(columns,)) if group_size == -1 else top) / at["high"]


def weight_dequantize(
    x, scale, algo="weight_only_int8", out_dtype="float16", group_size=-1,
):  # fmt: skip
    """The floats [in, out] that stand for a weight, in the dtype of `scale`.

    As in Paddle `out_dtype` has no effect.

    >>> x = paddle.to_tensor([[64.0, -254.0], [-127.0, 127.0]])
    >>> paddle.nn.quant.weight_dequantize(*paddle.nn.quant.weight_quantize(x)).tolist()
    [[64.0, -254.0], [-127.0, 128.0]]
    """
    require_one_of("weight_dequantize", tuple(BITS), algo=algo)
    check_group("weight_dequantize", group_size, x.spec.shape[1])
    return floats(x, arrange_in_groups(scale), BITS[algo])


def arrange_in_groups(scale):
    """Scales as [groups, out]."""
    return reshape(scale, shape=(1, *scale.spec.shape)) if scale.spec.ndim == 1 else scale


def weight_only_linear(
    x, weight, bias=None, weight_scale=None, weight_dtype="int8", arch=None, group_size=-1
):
    """x @ weight + bias, for a weight and scales of `weight_quantize`.

    `weight_dtype` is "int8" or "int4"; `arch`, a GPU, changes nothing.

    >>> weight = paddle.to_tensor([[64.0, -254.0], [-127.0, 127.0]])
    >>> q, scale = paddle.nn.quant.weight_quantize(weight)
    >>> paddle.nn.quant.weight_only_linear(paddle.ones([1, 2]), q, weight_scale=scale).tolist()
    [[-63.0, -126.0]]
    """
    require_one_of("weight_only_linear", tuple(ALGORITHMS), weight_dtype=weight_dtype)
    require_scale("weight_only_linear", weight_scale)
    check_group("weight_only_linear", group_size, weight.spec.shape[1])
    rows = x if x.spec.ndim == 2 else reshape(x, shape=(-1, weight.spec.shape[1]))
    bits, dtype = BITS[ALGORITHMS[weight_dtype]], x.spec.dtype
    wide = dt.float32.numpy if dtype in dt.HALVES else dtype  # of halves: rounded once, at the end
    scale = arrange_in_groups(weight_scale).astype(wide)
    y = weight_only_matmul(rows.astype(wide), weight, scale, bits=bits).astype(dtype)
    y = y if x.spec.ndim == 2 else reshape(y, shape=(*x.spec.shape[:-1], y.spec.shape[1]))
    return y if bias is None else y + bias


def llm_int8_linear(x, weight, bias=None, weight_scale=None, threshold=6.0):
    """x @ weight + bias in whole numbers, but for the columns of x that hold outliers.

    Columns with a magnitude above `threshold` are multiplied as floats. In the others each row of x
    has a scale of its own, found in the run. Weight and scales are those of `weight_quantize`.
    Source: Dettmers et al. 2022.

    >>> weight = paddle.to_tensor([[64.0, -254.0], [-127.0, 127.0]])
    >>> q, scale = paddle.nn.quant.weight_quantize(weight, "llm.int8")
    >>> x = paddle.to_tensor([[1.0, 100.0]])
    >>> paddle.nn.quant.llm_int8_linear(x, q, weight_scale=scale).round().tolist()
    [[-12636.0, 12546.0]]
    """
    require_scale("llm_int8_linear", weight_scale)
    axes = tuple(range(x.spec.ndim - 1))
    outliers = reduction.max(e.abs(x), axis=axes, keepdim=True) > threshold
    usual, strange = where(outliers, 0.0, x), where(outliers, x, 0.0)
    top = largest(usual, x.spec.ndim - 1)
    top = where(top > 0, top, 1.0)
    q = matmul_integer(quantize(usual, top, 0.0, **width(8)), turn(weight))
    y = q.astype(x.spec.dtype) * (top / 127) * weight_scale
    y = y + F.linear(strange, weight_dequantize(weight, weight_scale))
    return y if bias is None else y + bias


__all__ = ["llm_int8_linear", "weight_dequantize", "weight_only_linear", "weight_quantize"]
