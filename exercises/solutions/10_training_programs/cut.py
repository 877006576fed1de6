"""The cut: what the forward keeps for the backward.

A program that holds a forward and the backward after it cannot run in one go: the backward needs
the cotangents of the results, which come later, from whatever is done with the results. So it is
cut in two programs. Values that go from the first to the second are the *residuals*; they stay in
memory all the time between the two runs, so there should be few. Write three functions:

- `depending(program, inputs)`: the set of those of `program.records` whose value depends on any of
  `inputs` (records), directly or through others. The inputs themselves are not in it.
- `residuals_of(late, program, wanted)`: `late` are records that will be computed in the second
  program. Give the list of all values that must be there: what late records take and what is
  `wanted`, unless it is one of the late records itself. Each once: first those of `program.given`
  (inputs and states), then those of `program.records`, both in the order in which they stand there.
  (Python numbers, which stand in neither, bring their value along.)
- `cut(program, late_inputs, late_outputs)`: the two programs. `late_inputs` are inputs of the
  program (records), `late_outputs` numbers of outputs.
    - The first has the name, the states and the guards of the program, the inputs that are not
      late, and the records that do not depend on late inputs. It gives the outputs that are not
      late, in their order, and then the residuals. Return it as `pruned(…)`: without records that
      nobody needs.
    - The second is called `<name>_backward`. It takes the residuals, then the late inputs; it has
      no states and no guards, and gives the late outputs, in the order of `late_outputs`.

  What is cheap may be computed a second time instead of being kept:
  `again(late, program, wanted, free)` gives (the late records with those that are to be made again,
  the residuals that are left). It asks your `residuals_of`. `wanted` are the records of the late
  outputs; `free` is a set of records that are alive in any case and cost nothing to keep: what is
  given to the program, and the outputs that are not late. (It may return late inputs among the
  residuals. Leave them out: they are no residuals.)

    program p(x, g) { v1 = exp(x); v2 = multiply(v1, g); return v1, v2 }, late: g, output 1
    ->  p(x) { v1 = exp(x); return v1, v1 }  and  p_backward(v1, g) { v2 = …; return v2 }

Source: for values that are made again, Chen, Xu, Zhang and Guestrin, "Training deep nets with
sublinear memory cost", 2016.
"""

from minipaddle.engine.ir.cut import again, pruned
from minipaddle.engine.ir.program import Program


def depending(program, inputs) -> set:
    """The records whose value depends on any of the inputs."""
    found = set(inputs)
    for record in program.records:  # what a record takes stands before it
        if not found.isdisjoint(record.inputs):
            found.add(record)
    return found - set(inputs)


def residuals_of(late, program, wanted) -> list:
    """What the late records and outputs need and the late records do not make."""
    needed = {*wanted, *(value for record in late for value in record.inputs)} - {*late}
    return [value for value in [*program.given, *program.records] if value in needed]


def cut(program, late_inputs, late_outputs) -> tuple:
    """(the program that can run at once, the one that waits for the late inputs)."""
    waiting = depending(program, late_inputs)
    wanted = [program.outputs[k] for k in late_outputs]
    own = [value for k, value in enumerate(program.outputs) if k not in late_outputs]
    late = [record for record in program.records if record in waiting]
    late, residuals = again(late, program, wanted, {*own, *program.given})
    residuals = [value for value in residuals if value not in late_inputs]
    first = Program(
        program.name,
        [value for value in program.inputs if value not in late_inputs],
        program.states,
        [record for record in program.records if record not in waiting],
        [*own, *residuals],
        program.guards,
    )
    second = Program(f"{program.name}_backward", [*residuals, *late_inputs], [], late, wanted)
    return pruned(first), second
