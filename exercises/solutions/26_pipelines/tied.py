"""Tied weights: one weight in two stages stays one weight.

The words of a GPT are its first layer and, transposed, its last. In a pipeline these are in
different stages: each has a copy of the weight, and its own gradient. They stay one weight if both
copies begin alike and always make the same step, by the sum of the gradients. Write
`add_gradients(tied)`, which each stage calls before the step:

- `tied` is a list of pairs (weight, group): the weights that this stage shares, and the process
  group of all ranks that have them.
- Let `weight.grad` be a tensor with the sum of the gradients of all these ranks.
- `group.all_reduce(array)` adds up the arrays of all ranks in place, the same shape and dtype in
  each; all of them call it, for each pair in the order of the list. A rank where the weight got no
  gradient (`weight.grad` is None) must not stay away: the others would wait for ever.
- `weight.grad.array` may be the memory of another tensor, too. So add up in a copy: `Tensor(array)`
  makes a tensor of it.
- In a stage of several ranks an array may lie in pieces: then `sharded(array)` is true, and all
  ranks that share a weight have the same piece of it. A gradient may lie otherwise than its weight:
  `array.move_to(weight.array.placements)` moves it. `local(array)` is this rank's piece, or all of
  an array that is whole.

    gradients 1 and 5  ->  6 in both;   None and 5  ->  5 in both

Source: Paddle API `paddle.distributed.fleet.meta_parallel.SharedLayerDesc`; Press and Wolf, "Using
the Output Embedding to Improve Language Models", 2017.
"""

from minipaddle import Tensor
from minipaddle.distributed.pipeline.training import local
from minipaddle.engine.sharding.array import sharded


def add_gradients(tied) -> None:
    """The gradient of a weight that several stages have is the sum of theirs."""
    for weight, group in tied:
        found = weight.array if weight.grad is None else weight.grad.array
        if sharded(found):
            found = found.move_to(weight.array.placements)
        found = found.copy()
        if weight.grad is None:
            local(found)[...] = 0  # a zero is a gradient, too: nobody waits
        group.all_reduce(local(found))
        weight.grad = Tensor(found)
