"""Conflict: of all ways to compute an operator on pieces, the one that moves fewest bytes.

x lies in pieces along its rows, w in pieces along its own, and both on the same axis of the mesh. A
product can use one of the two cuts; the other tensor has to be moved. Which? Write two functions.

`plan_for(rule, specs, placed, results, mesh_shape, chosen)`: the `ShardingPlan(inputs, results,
cost)` in which each axis of the mesh does what the tuple `chosen` says.

- `specs` and `results` are lists of the specs of inputs and results. `placed` has for each input
  its placements, or None for a Python number.
- `inputs` are the placements that the inputs have to have, None for a number; `results` those that
  the results get. Both come from `lying(chosen, axes, spec, mesh_shape, terms, k)`, where `axes` is
  the entry of the tensor in the list `rule.inputs` or `rule.results`, and `terms` is {} and k its
  number for an input; for a result they are `rule.terms` and None.
- `cost` are the bytes that a rank receives when the inputs are moved.
  `steps_between(spec.nbytes, before, after, mesh_shape)[0]` are those of one of them.
- A result that is a term has to be joined sooner or later, and one that is cut along another
  letter than the first input has to be moved back to it. What that will cost,
  `cost_of_next_moves(rule, specs, placed, results, found, mesh_shape)`, where `found` is the list
  of the results' placements, is added, but not always: a plan in which nothing moves and no axis of
  the mesh keeps terms (`Terms`) costs nothing. So what lies right already is never moved to save a
  move that another operator may need anyway.

`propagate(rule, specs, placed, results, mesh_shape)`: the plan that costs least.

- `candidates(rule, specs, placed, axis)` is the list of what an axis of the mesh may do; each axis
  does one of these, whatever the others do.
- `leaves_enough(rule, chosen, mesh_shape)`: whether each rank has something to work on. Other
  choices are none.
- Of plans that cost the same the first is taken, where the last axis of the mesh goes through its
  candidates fastest.

    x [64, 8] in pieces along 0, w [8, 4] in pieces along 0, on 2 ranks: w is gathered, 64 bytes;
    with x [2, 8]: its rows become columns, 16 bytes, and 16 to scatter the sum: 32 bytes

Source: Xu et al., "GSPMD", 2021, section 3.5.
"""

from itertools import product

from minipaddle.engine.sharding.moves import steps_between
from minipaddle.engine.sharding.propagate import (
    ShardingPlan,
    Terms,
    candidates,
    cost_of_next_moves,
    leaves_enough,
    lying,
)


def plan_for(rule, specs, placed, results, mesh_shape, chosen):
    """The plan for a choice for each axis of the mesh."""
    inputs = [
        None if before is None else lying(chosen, axes, spec, mesh_shape, {}, k)
        for k, (axes, spec, before) in enumerate(zip(rule.inputs, specs, placed))
    ]
    found = [
        lying(chosen, axes, spec, mesh_shape, rule.terms, None)
        for axes, spec in zip(rule.results, results)
    ]
    cost = 0
    for spec, before, after in zip(specs, placed, inputs):
        if before is not None:
            cost += steps_between(spec.nbytes, before, after, mesh_shape)[0]
    if cost or any(isinstance(each, Terms) for each in chosen):
        cost += cost_of_next_moves(rule, specs, placed, results, found, mesh_shape)
    return ShardingPlan(inputs, found, cost)


def propagate(rule, specs, placed, results, mesh_shape):
    """The plan that moves fewest bytes."""
    choices = [candidates(rule, specs, placed, axis) for axis in range(len(mesh_shape))]
    plans = [
        plan_for(rule, specs, placed, results, mesh_shape, chosen)
        for chosen in product(*choices)
        if leaves_enough(rule, chosen, mesh_shape)
    ]
    return min(plans, key=lambda plan: plan.cost)
