"""Which operators mixed precision computes in few bits ("white"), and which in float32 ("black").

The lists are Paddle's, by Paddle's names, so that what users write in `custom_white_list` fits.
`OURS` says which of our operators a name means; a function that is one operator in Paddle has the
name itself (see `as_operator` in `core/casting.py`).
Source: Paddle 3.3.1, `python/paddle/amp/amp_lists.py`.
"""

from functools import cache

WHITE = """
    conv2d einsum flash_attn fused_gemm_epilogue fused_rotary_position_embedding linear_v2 matmul
    matmul_v2 max_pool2d_with_index mul
"""
WHITE_IN_FLOAT16 = """
    fake_quantize_dequantize_abs_max fake_quantize_dequantize_moving_average_abs_max
    fused_attention fused_feedforward
"""
BLACK_IN_O2 = """
    bicubic_interp_v2 bilinear_interp_v2 linear_interp_v2 lookup_table lookup_table_v2
    nearest_interp_v2 scatter trilinear_interp_v2
"""
"""Rows that are picked, or values between pixels: a gradient of few bits would lose small sums."""
BLACK_IN_O1 = """
    acos asin atanh c_softmax_with_cross_entropy c_softmax_with_multi_label_cross_entropy cosh
    cross_entropy cross_entropy2 cumprod cumsum dist erfinv exp expm1 frobenius_norm group_norm
    hsigmoid_loss huber_loss layer_norm log log10 log2 log_loss log_softmax margin_cross_entropy
    mean nll_loss pnorm pow reciprocal reduce_mean reduce_prod reduce_sum renorm rsqrt
    sigmoid_cross_entropy_with_logits sinh softmax softmax_with_cross_entropy softmin softplus
    square tan tanh_shrink triplet_margin_loss
"""
"""Long sums, and functions that are steep or overflow."""

OURS = {
    "conv2d": "conv conv_last",
    "cross_entropy2": "cross_entropy",
    "elementwise_add": "add",
    "elementwise_div": "divide",
    "elementwise_mul": "multiply",
    "elementwise_pow": "pow",
    "elementwise_sub": "subtract",
    "frobenius_norm": "p_norm",
    "fused_gemm_epilogue": "affine",
    "linear_v2": "linear affine",
    "lookup_table": "embedding",
    "lookup_table_v2": "embedding",
    "matmul": "matmul product",
    "matmul_v2": "matmul product",
    "mul": "matmul product",
    "pnorm": "p_norm",
    "reduce_mean": "mean",
    "reduce_prod": "prod",
    "reduce_sum": "sum",
    "softmax_with_cross_entropy": "cross_entropy",
    "tanh_shrink": "tanhshrink",
    **dict.fromkeys([f"{mode}_interp_v2" for mode in
                     ("bicubic", "bilinear", "linear", "nearest", "trilinear")], "interpolate"),
}  # fmt: skip
"""Paddle's name -> our operators, where the names differ."""

ABSENT = {
    "c_softmax_with_cross_entropy": "ParallelCrossEntropy is written in operators",
    "c_softmax_with_multi_label_cross_entropy": "no layer here needs it",
    "fake_quantize_dequantize_abs_max": "comes with quantization",
    "fake_quantize_dequantize_moving_average_abs_max": "comes with quantization",
    "fused_attention": "attention is written in operators, and passes fuse them",
    "fused_feedforward": "likewise",
    "fused_rotary_position_embedding": "likewise",
    "hsigmoid_loss": "there is no such loss here",
    "margin_cross_entropy": "there is no such loss here",
    "max_pool2d_with_index": "the largest value is found in the image as it is, then taken there",
    "softmin": "it is softmax(-x)",
}
"""Paddle's names that mean nothing here, and why."""


@cache
def names(op) -> frozenset[str]:
    """All names of an operator: its own, and those that Paddle gives it."""
    return frozenset({op.name, *(name for name, own in OURS.items() if op.name in own.split())})


def white_list() -> dict:
    """The names computed in few bits: {dtype: {level: set}}.

    >>> from minipaddle.amp import white_list
    >>> "matmul" in white_list()["bfloat16"]["O1"]
    True
    """
    every = {
        "float16": {*WHITE.split(), *WHITE_IN_FLOAT16.split()}, "bfloat16": {*WHITE.split()},
    }  # fmt: skip
    return {dtype: {level: set(own) for level in LEVELS} for dtype, own in every.items()}


def black_list() -> dict:
    """The names computed in float32: {dtype: {level: set}}.

    >>> from minipaddle.amp import black_list
    >>> "softmax" in black_list()["float16"]["O1"], "softmax" in black_list()["float16"]["O2"]
    (True, False)
    """
    wide = {*BLACK_IN_O2.split()}
    own = {"OD": set(), "O1": wide | {*BLACK_IN_O1.split()}, "O2": wide}
    return {dtype: {level: set(own[level]) for level in LEVELS} for dtype in DTYPES}


LEVELS = ("OD", "O1", "O2")
DTYPES = ("float16", "bfloat16")
