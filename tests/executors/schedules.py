"""Kernels as large programs get them, for small ones: thresholds that small sizes reach, and
schedules that are drawn at random.
"""

from __future__ import annotations

import contextlib
from random import Random
from unittest import mock

from minipaddle.codegen import c_target, c_text
from minipaddle.codegen.convolutions import image_strips, vector_pooling, winograd
from minipaddle.codegen.machine import Facts
from minipaddle.codegen.products import (
    matmul,
    microkernel,
    online_softmax,
    product,
    product_plan,
    strip_products,
)
from minipaddle.codegen.rows import column_nest, vector_row_nest
from minipaddle.engine.codegen import rows
from minipaddle.engine.codegen import writer as loops
from minipaddle.engine.passes import fusion_groups, nest
from minipaddle.passes import back_to_back_gemm as chains
from minipaddle.passes import strip_products as large

SMALL = Facts(first=1 << 9, second=1 << 10, third=1 << 12)

LOW = {
    c_target: {"SERIAL": 0},
    vector_pooling: {"ENOUGH": 0},
    chains: {"FEWEST": 2},
    fusion_groups: {"MOST": 4},
    loops: {"PARALLEL": 0},
    matmul: {"ON_STACK": 256},
    microkernel: {"TERMS": 8},
    nest: {"PARTS": 2},
    online_softmax: {"FROM": 2, "WIDTH": 192},
    product: {"FEW": 2, "LARGE": 4, "TALL": 2, "WIDE": 4, "facts": lambda: SMALL},
    product_plan: {
        "SERIAL": 0, "BLOCK": 8, "DEEP": 4, "LARGE": 8, "SHALLOW": 8, "CHUNK": 32,
        "facts": lambda: SMALL,
    },
    large: {"FROM": 0, "LARGER": 0.2},
    strip_products: {"LONG": 2, "STRIP": 256},
    strip_products.StripPlan: {"most": 8, "size": 256},
    strip_products.MaskedPlan: {"most": 8},
    online_softmax.BlockPlan: {"most": 8},
    rows: {"ALONG": 8, "ROW_BUFFER": 64},
    column_nest: {"BLOCK": 8, "DOWN": 4},
    vector_row_nest: {"WIDENED": 4, "CHAINS": 2},
    image_strips: {"ON_STACK": 2048, "IN_CACHE": 4096, "PARTS": 2},
    winograd: {"WORTH": 1, "TILES": 1},
    c_text: {"BLOCK": 8, "FEW": 2},
}  # fmt: skip
"""What counts as large or worth while, by module."""


@contextlib.contextmanager
def low_thresholds(random: Random):
    """Most thresholds are low within the block."""
    with contextlib.ExitStack() as stack:
        for module, values in LOW.items():
            sample = {name: value for name, value in values.items() if random.random() < 0.7}
            if sample:
                stack.enter_context(mock.patch.multiple(module, **sample))
        yield


class Drawn:
    """Schedules for all kernels, by their signature: half of the answers are drawn."""

    def __init__(self, seed: object):
        self.seed = seed

    def get(self, signature: str):
        def answer(name, knob):
            random = Random(f"{self.seed} {signature} {name}")
            return random.choice(knob.options) if random.random() < 0.5 else knob.default

        return answer
