"""Layers on whole numbers of a few bits, and weights kept in them.

`qat` has the layers that `paddle.quantization` puts in the place of others, `format` what these
become at inference, `weight_only` functions for weights of a byte or half of one.
Source: Paddle API `paddle.nn.quant`.
"""

from . import format, qat, stub, weight_only
from .stub import Stub
from .weight_only import llm_int8_linear, weight_dequantize, weight_only_linear, weight_quantize

__all__ = ["Stub", "llm_int8_linear", "weight_dequantize", "weight_only_linear", "weight_quantize"]
