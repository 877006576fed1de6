"""Reduce, use, reduce: the stages of a row, and what is kept between them.

A softmax folds each row to its maximum, uses that for every element, folds again, to a sum, and
uses that. All of it can be one kernel that takes one row after the other, if it goes along each row
several times: once for each *stage*. Write two functions:

- `stage_of(kind, args)`: the stage of a value, that is how many reductions of the row must be
  finished before it can be computed. `args` are what it is made of, each with a `.stage`. A value
  of the kind "reduce" is the result of a reduction: it is there one stage later than what it folds.
  All others are there as soon as all their args are; what has no args, at stage 0.

- `needed_later(writer, keeps)`: at each stage the kernel goes along the row and computes what that
  stage asks for. Some of it an earlier stage has computed already. Return a dict whose keys are the
  nodes (values) that a later stage is to find where an earlier one has left them; its values are
  None.
    - For each stage in `range(writer.stages)` begin at what it asks for: what is folded,
      `fold.args[0]` for `fold` in `writer.folds(stage)`; and the nodes of what is stored for each
      element, the third entry of the tuples `writer.outputs(stage, False)`. From there go to the
      args, and to theirs.
    - Stop at a node of the kind "load", which is memory, and at `writer.nest.is_row(node)`: that is
      one number for the whole row, and in a variable anyway.
    - If a node's stage is less than the stage that asks, it has been computed before. It belongs in
      the dict if it is a node of the nest's outputs (the second entry of the tuples
      `writer.nest.outputs`), for then it lies in memory; or else if `keeps` says that there is room
      for a row, and `expensive(node)` that its formula calls a function such as exp. Then stop.
    - What is cheap is computed again: go on to its args.

    softmax: max at stage 1, exp(x - max) at stage 1, their sum and the quotient at stage 2. Stage 2
    finds exp(x - max) in a buffer; log_softmax asks for x - max only, and computes it again.

Source: Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018, count the passes
along a row; operators that reduce and use as one kernel: Chen and others, "TVM", OSDI 2018.
"""

from minipaddle.engine.codegen.writer import expensive


def stage_of(kind, args) -> int:
    """How many reductions of the row must be finished before a value."""
    raise NotImplementedError


def needed_later(writer, keeps) -> dict:
    """The values that a later stage is to find where an earlier one has left them."""
    raise NotImplementedError
