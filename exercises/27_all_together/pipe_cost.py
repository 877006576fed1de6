"""The cost of a plan: how long a pipe takes, and what it keeps.

A planner tries hundreds of layouts. It does not simulate each: two formulas say what a pipe costs
that has p stages, m micro-batches, and v pieces of the model in each stage (v = 1: the schedule
1F1B; v > 1: interleaved). Write two functions:

- `pipeline_seconds(stages, micro_batches, chunks)`: how long a step takes. `stages` has the
  seconds of a micro-batch in each stage, forward and backward, all of its pieces together. The
  slowest stage works without a pause, once the pipe is full. To fill and empty it takes one
  micro-batch's time in each of the *other* stages; with pieces only a piece's, a v-th of it.
- `live_micro_batches(pipe, micro_batches, chunks, stage=0)`: of how many micro-batches a stage
  keeps the activations at the worst moment. Without pieces: one for each stage from this one to the
  last, if there are so many. With pieces: all, where there are no more micro-batches than stages;
  else a stage starts 2 (p - 1 - stage) + (v - 1) p + 1 pieces before its first backward is done,
  and keeps so many v-ths of a micro-batch, but never more than all micro-batches.

    four stages of 1 s, 8 micro-batches  ->  11 s;   stage 0 keeps 4 micro-batches, stage 3 one

Sources: Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
Megatron-LM", 2021; Korthikanti et al., 2022, section 4.2.
"""


def pipeline_seconds(stages, micro_batches, chunks) -> float:
    """How long a pipe takes whose stages take so many seconds for a micro-batch."""
    raise NotImplementedError


def live_micro_batches(pipe, micro_batches, chunks, stage=0) -> float:
    """How many micro-batches' values a stage holds at once."""
    raise NotImplementedError
