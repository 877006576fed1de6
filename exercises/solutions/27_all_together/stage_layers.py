"""Blocks for stages: who does other work gets fewer of them.

The blocks of a model are equal, but the first stage of a pipe has the words, too, and the last one
the scores and the loss. The slowest stage decides how long a step takes. Write
`stage_layers(blocks, pipe, first, last)`: how many blocks each stage gets.

- `blocks` are at least as many as the stages, `pipe`. Each stage gets one at least.
- The first stage has other work, which takes as long as `first` blocks, the last one as long as
  `last` blocks: numbers from 0 on, not always whole ones. With one stage it has both.
- Return a list of `pipe` whole numbers, whose sum is `blocks`, in the order of the stages. The
  slowest stage is to be as fast as it can be; where several lists do that, any of them is right.

    8 blocks, 4 stages, last 0.9  ->  2 2 2 2;   7 blocks, 2 stages, last 1  ->  4 3

Layers that are not equal are the subject of 26_pipelines/cost; here it is simpler.
"""


def stage_layers(blocks, pipe, first, last) -> list:
    """How many blocks each stage of a pipe has."""
    other = [0.0] * pipe
    other[0] += first
    other[-1] += last
    counts = [1] * pipe
    for _ in range(blocks - pipe):  # the next block goes where the least is done
        stage = min(range(pipe), key=lambda k: counts[k] + other[k])
        counts[stage] += 1
    return counts
