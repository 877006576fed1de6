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
    half_products,
    layout,
    loop_invariants,
    loop_residuals,
    loop_slices,
    narrow_inputs,
    pooling_gradients,
    pretranspose,
    quantized_products,
    recompute,
    repeated_casts,
    scatter_adds,
    sinking,
    slice_creations,
    strip_products,
    unread_iterations,
)

PASSES[:] = [
    # what the program's inputs say
    "specialise", "dead_code", "unread_iterations",
    # forms of operators
    "gathers", "slice_creations", "quantized_products", "batch_norm", "decompose",
    "layout", "canonicalize_matmul", "concat_of_slices", "whole_puts",
    "scatter_adds",
    # less to compute
    "folding", "algebra", "cse", "sinking", "folding", "batch_weight_gradients", "algebra", "cse",
    "loop_residuals", "half_products", "dead_code",
    # loop nests
    "strip_products", "recompute", "repeated_casts", "pretranspose", "loop_invariants",
    "loop_slices", "fusion", "epilogue", "back_to_back_gemm",
    # the order of records
    "schedule", "early_checks", "async_collectives",
]  # fmt: skip
"""The passes in the order in which they run, the engine's among them."""
