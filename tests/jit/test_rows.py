"""What people write and Paddle's `to_static` makes of it, row by row; what proves each row here.

A row is a feature; after it come its proofs: functions of functions_*.py, models and training
steps of models_*.py, and tests; one that ends in ! shows a refusal.
`python -m tests.jit.test_rows` prints the table.
"""

import ast
import json
from functools import cache
from pathlib import Path

import pytest

from tests.jit import models
from tests.jit.examples import examples

HERE = Path(__file__).parent

ROWS = """
Control flow
  if/elif/else on a tensor: branches.if_else branches.elif_chain vision.Siamese
  if on a Python value: branches.if_on_python vision.LeNet python.Configured
  nested if: branches.nested_ifs sequence.Seq2Seq
  conditional expression, nested too: branches.nested_conditional_expression dynamic.Highway
  condition that is no bool: branches.condition_is_not_boolean branches.condition_is_a_float
  condition with several elements: test_calls.test_conditions_of_several_elements!
  one name, tensors of other shapes: branches.shapes_that_differ
  one name, tensors of other dtypes: test_calls.test_dtypes_that_differ!
  numbers in both branches: branches.numbers_that_differ branches.numbers_that_agree
  a tensor in one branch, a number in the other: branches.tensor_or_number
  other objects that differ: branches.text_that_differs
  None before, a tensor in one branch: branches.none_and_tensor
  a name of one branch only, not used afterwards: branches.temporary_in_one_branch
  a name of one branch only, used afterwards: branches.undefined_in_one_branch
  raise in a branch: branches.raise_on_tensor functions.raise_and_catch
  in-place effects in a branch: branches.in_place_in_a_branch branches.item_in_a_branch
  match: branches.match_on_python branches.tensor_if_in_match python.ManyStatements
  while on a tensor: loops.while_on_tensor dynamic.ode_solver dynamic.conjugate_gradients
  while on Python: loops.while_on_python
  a condition that becomes a tensor while looping: loops.while_true_with_tensor_break
      dynamic.k_means
  a loop variable that changes its dtype or shape: loops.integer_becomes_float loops.growing_shape
  a Python int carried through a loop: loops.while_counts_in_python dynamic.ode_solver
  None before a loop, a tensor after a round: loops.none_before_the_loop_not_after
      dynamic.value_iteration
  for over range of a tensor: loops.for_tensor_range loops.for_tensor_range_with_step
      sequence.LSTMToALength
  nested loops over tensor ranges: loops.nested_tensor_ranges
  for over a tensor, enumerate: loops.for_rows loops.for_enumerate_rows dynamic.patience
  for over zip, lists, dicts: loops.for_zip_tensors loops.for_dict_items vision.MobileNet
  for/while with else: loops.for_else_on_tensors loops.while_else_with_break dynamic.newton
  break, continue: jumps.break_in_tensor_while jumps.continue_in_tensor_range
      vision.non_maximum_suppression
  break on a tensor in a loop of Python: loops.python_loop_tensor_break loops.break_over_rows
      dynamic.Equilibrium
  early return: jumps.early_return jumps.several_returns
  return of a tensor from a loop: jumps.return_from_tensor_while jumps.return_from_nested_loops
      dynamic.EarlyExit
  returns of different kinds: jumps.returns_different_structures jumps.returns_nothing_sometimes
  recursion that Python ends: functions.recursion_on_python sequence.TreeLSTM python.recursive
  recursion that a tensor ends: test_calls.test_recursion_without_an_end!
  try, with: functions.try_around_tensor_if functions.with_statement jumps.return_in_try
      python.ManyStatements
  generators: functions.generator_of_tensors functions.sum_over_generator python.WithGenerators
  iterators as arguments: test_once.test_an_iterator_as_argument
Operators, builtins, attributes
  and, or, not: logic.and_of_tensors logic.not_of_tensor logic.right_side_has_effects
      dynamic.Highway
  and/or of tensors and Python: logic.and_of_both_kinds dynamic.AdaptiveTime
  chained comparison: logic.chained_comparison logic.chain_of_both_kinds dynamic.Highway
  in, is None: logic.in_list logic.tensor_in_list logic.is_none
  is: test_aliases.test_identity_is_as_in_eager_mode
      test_aliases.test_identity_that_only_a_run_knows
  arithmetic, augmented assignment: containers.augmented_assignments
  int(t), float(t), bool(t): logic.casts dynamic.DynamicDepth
  max, min, sum, any, all of tensors: logic.max_and_min logic.sum_and_abs logic.any_and_all
  len(t): logic.length test_calls.test_loops_over_open_sizes_and_lengths sequence.CRF
  len of a list grown in a loop: containers.grown_and_used
  print(t): logic.printing
  assert: logic.assert_on_tensor logic.assert_on_python
      test_runtime.test_what_is_raised_when_the_program_runs
  t.shape: loops.for_over_shape test_calls.test_open_sizes_share_a_program vision.UNet
  paddle.shape(t): test_calls.test_shape_as_a_tensor
  t.item(), t.numpy() of whole numbers: logic.item_as_a_size logic.item_as_a_number
      logic.numpy_and_tolist_of_whole_numbers
  t.numpy() of others: test_reading.test_it_agrees_with_an_array
  t.item(), t.item(i, j) of others: test_numbers.test_item_at_an_index
      test_numbers.test_they_flow_on_as_pythons_do
  numbers of a run, among themselves: test_numbers.test_among_numbers_they_compute_as_python_does
      test_numbers.test_errors_are_pythons
  numbers of a run, beside tensors: test_numbers.test_beside_tensors_they_are_weak
  functions of math: test_numbers.test_functions_of_one_number
  texts with a tensor's value, printed: test_texts.test_it_prints_when_it_runs
  texts with a tensor's value, used otherwise: test_texts.test_other_uses_are_refused!
  seeds of NumPy and Python: test_once.test_a_seed_acts_in_each_call
  numbers drawn by NumPy and Python: test_once.test_a_draw_is_taken_once
  NumPy on a tensor: test_calls.test_values_are_not_there_yet!
  isinstance(t, paddle.Tensor): logic.isinstance_of_tensor
      test_calls.test_isinstance_and_arguments_of_numpy
  stop_gradient, paddle.grad inside: branches.stop_gradient_inside branches.gradients_inside
      python.gradient_inside
  t.backward() inside: training.supervised training.gan training.micro_batches
  register_hook inside: functions.hooks python.WithHooks test_custom.test_refused
  t[i] = v: loops.writes_items_in_a_loop loops.writes_by_tensor_index sequence.GPTUntilEnd
  a list indexed by a tensor: logic.list_indexed_by_tensor
      containers.list_written_where_a_tensor_says containers.list_written_in_a_loop
  unpacking: containers.unpacking loops.for_star_unpacking python.ManyStatements
  comprehensions: containers.comprehensions containers.comprehension_over_tensor
  lambda: functions.lambda_with_condition python.WithClosures
  f-strings, walrus, del, global, inner classes: containers.string_formatting
      functions.walrus_in_if branches.delete_in_a_branch functions.global_written
      functions.inner_class
  to_tensor of a list of tensors: test_calls.test_to_tensor_of_tensors
Containers
  list built in a loop of Python: containers.list_in_python_loop sequence.UnrolledGRU
  append in a tensor loop, then stack: containers.grown_and_stacked dynamic.Rollout
  append in a tensor loop, the list returned: containers.grown_and_returned
      containers.grown_in_two_loops
  append in both branches: containers.append_in_both_branches python.WithContainers
  pop, x[0] = v, negative index, nested: containers.pop_in_both_branches
      loops.negative_index_in_a_loop containers.nested_containers_in_a_loop vision.UNet
  del x[0], slices, sort of a list: containers.list_methods
  dict, keys unchanged: containers.dict_in_a_loop python.WithContainers
  dict, a key added in one branch: containers.dict_key_in_one_branch
  dict filled in both branches: containers.dict_filled_in_both
  dict of constants and tensors: containers.dict_in_a_loop
  a dict bound anew on one side, written on the other: containers.bound_anew_on_one_side
      containers.bound_anew_and_written
  written afterwards while another name holds it: containers.written_with_another_name
      containers.written_by_another_name containers.written_in_a_round_that_binds_it_anew
  nested structures in and out: containers.nested_structure_out containers.structured_arguments
      python.named_tuples_and_dicts
  dataclasses, named tuples: containers.dataclass_in_a_loop containers.frozen_dataclass
      python.WithDataclasses
Functions, classes, decorators
  calls at any depth: functions.calls_a_helper functions.methods python.Nested
  decorators: functions.calls_decorated functions.is_decorated python.Decorated
  decorators made of context managers: functions.decorated_by_context_managers
      functions.methods_decorated_by_context_managers functions.generator_of_a_context_manager
  several to_static on one function: test_calls.test_to_static_twice_is_once
  to_static on a layer, rollback: test_calls.test_a_layer_is_converted_in_place_and_rolled_back
  a decorator that registers runs once: test_calls.test_a_registering_decorator_runs_once
  properties, static and class methods: functions.property_with_tensor
      functions.static_and_class_methods python.Shifted
      test_calls.test_wraps_properties_and_static_methods
  closures, nonlocal: functions.closure_reads functions.closure_writes python.WithClosures
  super(), inheritance: functions.inheritance vision.BatchNormOfOnesOwn python.Shifted
  without source: test_errors.test_without_source!
      test_runtime.test_functions_without_source_are_called
  not_to_static, ignore_module: test_runtime.test_not_to_static test_runtime.test_ignored_modules
      test_calls.test_what_stays_python
  *args, **kwargs, defaults: functions.many_kinds_of_arguments functions.default_arguments
      python.ManyInputs
  buffers made in __init__, changed in forward: vision.BatchNormOfOnesOwn
      dynamic.SpectrallyNormed python.Remembers
  attributes written in branches and loops: functions.attribute_written_by_callee
      containers.object_attribute_in_a_branch python.Remembers
  a function stored on a layer: python.WithClosures python.Configured
  methods of plain classes: test_calls.test_a_method_of_a_plain_class_has_programs_of_its_own
Caching
  what makes a program: test_calls.test_what_makes_a_program
  train and eval: test_calls.test_modes_have_programs_of_their_own vision.MobileNet
  a warning after many programs: test_calls.test_a_warning_after_many_programs
  arguments without a hash: test_calls.test_arguments_without_a_hash_stand_for_themselves
  enable_to_static(False): test_calls.test_enable_to_static
  threads: test_calls.test_threads
InputSpec
  None and -1, names, equality, batch, unbatch: test_calls.test_specs_are_values
  one program for all sizes: test_calls.test_open_sizes_share_a_program
  nesting: test_calls.test_specs_follow_the_nesting_of_arguments
  an input that does not fit: test_calls.test_a_call_that_the_spec_does_not_fit_has_its_own_program
  a spec in the decorator and another in save: test_save.test_the_decorators_spec_wins
Saving and loading
  layers: test_save.test_values test_save.test_gradients
  plain functions: test_save.test_a_function
  several methods: test_save.test_several_methods
  frozen modes: test_save.test_modes_are_frozen
  no program at all: test_save.test_a_layer_that_was_never_traced!
      test_save.test_what_was_called_last_is_saved
  training goes on: test_save.test_training
  state dicts: test_save.test_a_state_dict
  hostile files: test_save.test_random_damage test_save.test_tricks
Training
  the converted net trains as the eager one: vision.ResNet sequence.GPT python.Configured
  hooks, accumulation of gradients: vision.Mlp python.WithHooks training.gradients_left
  a whole step, every optimizer: test_training.test_every_optimizer
  schedules, clipping, regularizers: training.supervised training.several_steps_in_one
      training.hooks_and_regularizers test_training.test_every_schedule
      test_training.test_every_clip
  micro-batches: training.micro_batches
  clear_grad(set_to_zero=False): training.cleared_to_zero
      test_outside.test_clearing_to_none_makes_one_program_for_a_waiting_gradient
  two optimizers: training.gan
  freezing, weight tying: training.frozen_and_tied sequence.GPT
  averages of weights: training.moving_average training.q_learning
  double backward: training.gradient_penalty training.meta_learning
  PyLayer: python.Quantized test_custom.test_same_as_eager
  what a step does to the outside: test_outside.test_same_as_eager
"""


def rows() -> dict[str, list[str]]:
    """The proofs of each row."""
    return {row: proofs.split() for row, proofs in (line.split(": ") for line in lines())}


def lines() -> list[str]:
    """The rows; what is indented further goes on with the line before."""
    found = ROWS.replace("\n      ", " ").splitlines()
    return [line.strip() for line in found if line.startswith("  ")]


@cache
def refusals() -> dict:
    """For each function and model: the message it is refused with; "" if it is converted."""
    models.collect()
    found = {e.name.removeprefix("functions_"): e.refused for e in examples()}
    return found | {c.name.removeprefix("models_"): "" for c in models.MODELS + models.TRAININGS}


@cache
def definitions(file: str) -> set[str]:
    tree = ast.parse((HERE / f"{file}.py").read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def exists(proof: str) -> bool:
    file, _, name = proof.rstrip("!").partition(".")
    return name in definitions(file) if file.startswith("test_") else proof in refusals()


def verdicts() -> dict[str, str]:
    """What Paddle makes of each function and model."""
    path = HERE.parent / "data" / "to_static_paddle.json"
    found = json.loads(path.read_text())["cases"]
    return {
        k.removeprefix("functions_").removeprefix("models_"): v["verdict"] for k, v in found.items()
    }


def table() -> list[tuple[str, str, str]]:
    """For each row what Paddle does with its proofs, and what we do."""
    theirs, found = verdicts(), []
    for row, proofs in rows().items():
        asked = [p for p in proofs if p in refusals()]  # all but tests
        kinds = {theirs.get(p, "not asked").partition(":")[0] for p in asked}
        ours = {"refused by name" if refusals().get(p) or p[-1] == "!" else "same" for p in proofs}
        found.append((row, ", ".join(sorted(kinds)), ", ".join(sorted(ours, reverse=True))))
    return found


def test_every_row_is_proved():
    missing = {row: [p for p in proofs if not exists(p)] for row, proofs in rows().items()}
    assert {row: proofs for row, proofs in missing.items() if proofs or not rows()[row]} == {}


def test_rows_are_written_once():
    assert len(rows()) == len(lines())


def test_every_model_proves_a_row_or_is_one():
    assert len(refusals()) >= 300
    assert len(models.MODELS) >= 60


def test_paddle_was_asked_about_every_case():
    """An example may be added without real Paddle: those who have it record its verdict."""
    waiting = sorted(refusals().keys() - verdicts().keys())
    if waiting:
        command = f"python tests/data/make_to_static_paddle.py {' '.join(waiting)}"
        pytest.skip(f"not asked of Paddle: {', '.join(waiting)}; where it is installed: {command}")


def test_every_verdict_belongs_to_a_case():
    """An example that is renamed or deleted is so in to_static_paddle.json, too."""
    assert verdicts().keys() - refusals().keys() == set()


def main() -> None:
    width = max(map(len, rows()))
    print(f"{'feature':{width}}  {'Paddle 3.3.1':25}  MiniPaddle")
    for row, theirs, ours in table():
        print(f"{row:{width}}  {theirs:25}  {ours}")


if __name__ == "__main__":
    main()
