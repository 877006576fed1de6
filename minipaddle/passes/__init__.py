"""Passes beyond the book's. Importing this registers them with the engine."""

from ..engine.passes.registry import PASSES
from . import (
    algebra_of_shapes,
    arena_search,
    arena_tree,
    back_to_back_gemm,
    batch_norm,
    batch_weight_gradients,
    cache_writes,
    canonicalize_matmul,
    concat_of_slices,
    decompose_losses,
    decompose_means,
    decompose_volumes,
    epilogue,
    frozen_states,
    fusion_forms,
    fusion_switches,
    gathers,
    layout,
    narrow_inputs,
    pretranspose,
    quantized_products,
    recompute,
    sinking,
    slice_creations,
    strip_products,
)

PASSES[:] = [
    # what the program's inputs say
    "specialise", "dead_code",
    # forms of operators
    "gathers", "slice_creations", "quantized_products", "batch_norm", "decompose",
    "layout", "canonicalize_matmul", "concat_of_slices", "whole_puts",
    # less to compute
    "folding", "algebra", "cse", "sinking", "folding", "batch_weight_gradients", "algebra", "cse",
    "dead_code",
    # loop nests
    "strip_products", "recompute", "pretranspose", "fusion", "epilogue", "back_to_back_gemm",
    # the order of records
    "schedule", "early_checks", "async_collectives",
]  # fmt: skip
"""The passes in the order in which they run, the engine's among them."""
