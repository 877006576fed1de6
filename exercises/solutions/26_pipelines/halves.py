"""Split off the gradients of the weights: nobody waits for them.

The backward of a stage finds two things: the gradient of its inputs, for which the stage before it
waits, and the gradients of its weights, for which only the optimizer does, at the end. In halves
the first can go on its way sooner, and the second fills gaps. The backward is a program, so this is
no work for its layers: it is dead code, seen from one half. Write `split_weights(backward,
inputs)`:

- `backward` is a `Program`: `inputs`, `records` in order, `outputs`, no states. Its first `inputs`
  outputs (a number) are the gradients of the inputs, the others are those of the weights. Change
  nothing in it; its records may stand in several programs.
- Return a pair of programs (first, second). `first` takes the inputs of `backward`. Its first
  outputs are the gradients of the inputs; further ones are the values that `second` needs and
  `first` computes, each once. It has no record that is only needed for weights.
- `second` takes as its inputs all values that it needs and does not compute: inputs of `backward`,
  and outputs of `first`, in any order, each once. Its outputs are the gradients of the weights. It
  computes nothing that `first` computes.
- A record whose `op` is `ITEM` picks one result of several: its only input computes them all, which
  is no value that a program can give. So it stands where its input stands.

What helps, from the engine: `needed(program)` lists the records that a program's results need;
`residuals_of(records, program, wanted)` lists the values that some records, and the values
`wanted`, need of the rest of a program, inputs first; `pruned(program)` is a program without
unneeded records. `Program(name, inputs, states, records, outputs)` makes one.

Source: Qi, Wan, Huang and Lin, "Zero Bubble Pipeline Parallelism", 2023.
"""

from minipaddle.engine.ir.cut import needed, pruned, residuals_of
from minipaddle.engine.ir.program import ITEM, Program


def split_weights(backward, inputs) -> tuple:
    """The gradients of the inputs and what they need, and the gradients of the weights."""
    own, weights = backward.outputs[:inputs], backward.outputs[inputs:]
    # dead code, if only the gradients of the inputs are wanted, is what can wait
    early = set(needed(Program("first", backward.inputs, [], backward.records, own)))
    early |= {r for r in backward.records if r.op is ITEM and r.inputs[0] in early}
    late = [r for r in backward.records if r not in early]
    kept = residuals_of(late, backward, weights)
    handed = [r for r in kept if r in early and r not in own]
    records = [r for r in backward.records if r in early]
    first = Program("first", backward.inputs, [], records, [*own, *handed])
    return first, pruned(Program("second", kept, [], late, weights))
