"""Tests see kernels as the emitters' rules make them, whatever was tuned on this machine; and
programs run on the interpreter unless a test, or the environment, asks for another backend.
"""

import gc
import os
import sys
import threading
from pathlib import Path

import pytest
from numpy._core._multiarray_umath import __cpu_features__

sys.modules.setdefault("rfc3987_syntax", None)  # two seconds of grammars that nbformat imports
os.environ.setdefault("MINIPADDLE_TUNED", "0")
os.environ.setdefault("MINIPADDLE_BACKEND", "interpreter")
os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(Path.cwd() / ".pytest_cache/hypothesis"))
if __cpu_features__["AVX512F"]:  # PyTorch, an oracle, rounds and treats NaN as with AVX2
    os.environ.setdefault("ATEN_CPU_CAPABILITY", "avx2")
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")
    os.environ.setdefault("MKL_ENABLE_INSTRUCTIONS", "AVX2")

gc.disable()  # until everything is collected: tests and modules live as long as the process

UNMEASURED = {
    f"{folder}/{name}.py"
    for folder, files in {
        "codegen": "test_convolution test_cuda test_product test_special",
        "distributed": "test_data_parallel test_sequences",
        "executors": """test_accuracy test_cache_blocking test_cuda test_cuda_operators
            test_differential test_long test_native_operators test_strange""",
        "gpu": "test_operators_on_gpu",
        "jit": "test_first_call test_fuzz test_models",
        "ops": "test_operators",
        "optimizer": "test_training",
        "passes": "test_models test_operators test_toggles",
        "sharding": """test_accumulation test_counts test_every_operator test_every_optimizer
            test_overlap test_training test_whole_batch test_zero_memory""",
        "static": "test_open_models test_open_operators",
    }.items()
    for name in files.split()
}
UNMEASURED |= {
    "amp/test_decorate.py::test_every_executor_agrees",
    "core/test_autograd.py::test_a_chain_of_100_000_operators",
    "core/test_curvature.py::test_hessian_vector_is_the_product",
    "distributed/test_fleet.py::test_merged_steps_are_one_on_the_joined_batch",
    "distributed/test_planning.py::test_a_pretended_rank_is_as_a_real_one",
    "distributed/test_planning.py::test_more_devices_take_longer_and_compute_no_more",
    "distributed/test_training.py::test_twenty_steps",
    "docs/test_docstrings.py::test_examples_of_operators",
    "executors/test_comparing.py::test_a_row_without_its_mean_leaves_its_rounding",
    "executors/test_comparing.py::test_each_operator_is_noisy_by_no_more_than_rounding",
    "executors/test_comparing.py::test_nothing_finite_is_near_infinity",
    "executors/test_comparing.py::test_terms_that_cancel_leave_their_rounding",
    "executors/test_comparing.py::test_what_is_left_of_equal_halves_without_their_mean_has_any_sign",
    "executors/test_comparing.py::test_what_was_divided_by_a_rounding_is_as_large_as_that_says",
    "executors/test_in_place.py::test_random_writes_to_one_cache",
    "executors/test_native.py::test_the_extremes_of_rows_are_numpys",
    "executors/test_strip_products.py::test_random_sizes_and_schedules",
    "executors/test_support.py::test_no_case_of_an_operator_is_left_to_the_host",
    "executors/test_support.py::test_whole_numbers_are_left_to_the_host_where_the_table_says_so",
    "ir/test_text.py::test_every_function_is_read_back",
    "ir/test_text.py::test_time_grows_with_the_length",
    "jit/test_custom.py::test_same_as_eager",
    "jit/test_save.py::test_random_damage",
    "jit/test_save.py::test_training",
    "jit/test_untaken.py::test_errors_are_raised_where_they_are_reached",
    "jit/test_walking.py::test_what_the_survey_passes_over_changes_nothing",
    "nn/test_loss.py::test_element_weights",
    "nn/test_norm.py::test_normalize",
    "onnx/test_models.py::test_a_model_an_eighth_as_wide",
    "ops/test_random_programs.py::test_values_and_gradients_are_pytorchs",
    "ops/test_selfcheck.py::test_a_wrong_engine_is_noticed",
    "ops/test_stat.py::test_spread",
    "passes/test_algebra.py::test_any_formula_is_the_same_to_the_last_bit",
    "passes/test_fusion_groups.py::test_groups_of_equal_form_are_equally_nests",
    "passes/test_list_scheduling.py::test_any_program",
    "passes/test_list_scheduling.py::test_work_grows_with_the_program_no_faster",
    "passes/test_looks_for.py::test_a_pass_that_is_skipped_would_change_nothing",
    "passes/test_memory.py::test_any_program",
    "passes/test_memory_arena.py::test_exhaustion_finds_the_smallest_arena",
    "passes/test_memory_arena.py::test_the_tree_places_many_buffers_as_the_list_does",
    "passes/test_memory_arena.py::test_three_thousand_buffers_in_a_moment",
    "passes/test_recompute.py::test_any_program",
    "passes/test_sinking.py::test_a_reshape_of_a_view",
    "passes/test_sinking.py::test_any_chain",
    "passes/test_sinking.py::test_transformers_need_no_transpose",
    "serving/test_batcher.py::test_any_history",
    "serving/test_simulator.py::test_a_full_queue_refuses_as_erlang_says",
    "serving/test_simulator.py::test_batches_carry_what_single_runs_cannot",
    "serving/test_simulator.py::test_two_workers_serve_twice_as_much",
    "sharding/test_checkpoints.py::test_any_mesh_loads_what_any_wrote",
    "sharding/test_checkpoints.py::test_training_goes_on",
    "sharding/test_meta_parallel.py::test_training_has_the_losses_of_one_process",
    "sharding/test_moves.py::test_no_chain_is_better",
    "sharding/test_moves.py::test_pieces_arrive",
    "sharding/test_paddle_rules.py::test_where_nothing_has_to_move",
    "sharding/test_paddle_rules.py::test_where_something_has_to_move",
    "sharding/test_parallelize.py::test_training",
    "sharding/test_recompute.py::test_tensors_in_pieces",
    "sharding/test_stages.py::test_bytes_held",
    "sharding/test_stages.py::test_terms_add_up_without_communication",
    "sharding/test_stages.py::test_training",
    "sharding/test_topology.py::test_groups",
    "tensor/test_indexing.py::test_random_keys",
    "vision/test_models.py::test_parts_have_paddles_names_order_and_shapes",
    "vision/test_ops.py::test_gradients",
    "viz/test_transpiling.py::test_of_a_large_tree_the_first_nodes_are_drawn",
}
"""Every model and every operator, in every executor and on every mesh: measured, they take two to
four times as long. That each line is reached is seen from the tests of the parts."""


def pytest_report_header():
    return f"processor: {os.environ.get('MINIPADDLE_PROCESSOR', 'native')}"


def pytest_collection_finish():
    """No collection of garbage looks again at 700,000 objects that stay."""
    gc.enable()
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """(pytest-cov's own `no_cover` starts coverage anew, which wraps `os._exit` once more.)"""
    file = f"{item.path.parent.name}/{item.path.name}"
    names = {file, f"{file}::{getattr(item, 'originalname', item.name)}"}
    if not names & UNMEASURED:
        return (yield)
    tracers = sys.gettrace(), threading.gettrace()
    sys.settrace(None)
    threading.settrace(None)
    try:
        return (yield)
    finally:
        sys.settrace(tracers[0])
        threading.settrace(tracers[1])
