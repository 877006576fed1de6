"""Interleave: stages with several parts of the model fill the pipeline sooner.

If a stage has one part of the layers, the last stage waits until a micro-batch is through all
others. With v smaller parts in each stage, called *chunks*, it waits a v-th of that: the first
parts of all stages, then the second parts of all stages, and so on. Write `interleave(stages,
micro_batches, chunks)`: the order in which a stage computes forwards.

- Return a list of pairs (micro-batch, chunk), each of them once.
- As many micro-batches as there are stages form a group, 0, 1, … first; the last group may have
  fewer. One group comes after the other.
- A group goes through chunk 0, then through chunk 1, and so on, its micro-batches in order. (When
  the last of a group leaves the last stage, the first one has come to its next chunk: nobody
  waits.)

    2 stages, 4 micro-batches, 2 chunks
        ->  (0, 0) (1, 0) (0, 1) (1, 1) (2, 0) (3, 0) (2, 1) (3, 1)

Source: Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
Megatron-LM", 2021, section 2.2.
"""


def interleave(stages, micro_batches, chunks) -> list:
    """(micro-batch, chunk) in the order of a stage's forwards."""
    raise NotImplementedError
