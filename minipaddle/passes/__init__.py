"""Passes beyond the book's. Importing this registers them with the engine, each at its place."""

from ..engine.passes.registry import PASSES, insert
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

insert("gathers", "slice_creations", "quantized_products", "batch_norm", before="decompose")
insert("layout", "canonicalize_matmul", "concat_of_slices", after="decompose")
insert("whole_puts", after="concat_of_slices")
insert("sinking", "folding", "batch_weight_gradients", "algebra", "cse", after="cse")
insert("strip_products", "recompute", "pretranspose", before="fusion")
insert("epilogue", "back_to_back_gemm", after="fusion")
insert("early_checks", after="schedule")
