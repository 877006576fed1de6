"""One forward, one backward: begin a backward as soon as there is one.

A stage that does all forwards first keeps the activations of all micro-batches. If it begins with
the backwards as soon as it can, it keeps those of few. Write `one_forward_one_backward(forwards,
backwards, warmup)`, the jobs of a stage in order:

- `forwards` and `backwards` are lists of pairs (micro-batch, chunk), equally long, each in the
  order in which the stage computes them.
- The first `warmup` forwards come first. (There may be fewer forwards than that.)
- Then, in turn: the next forward, the next backward, until there are no forwards left.
- Then the backwards that are left.
- A job is `Job("F", micro_batch, chunk)` or `Job("B", micro_batch, chunk)`. Return a list of them.

    4 micro-batches, warmup 1  ->  F0 F1 B0 F2 B1 F3 B2 B3

The last stage has no warmup, the one before it one forward, and so on: it takes so long until the
first gradient is back. Source: Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for
DNN Training", 2019.
"""

from minipaddle.distributed.pipeline.schedules import Job


def one_forward_one_backward(forwards, backwards, warmup) -> list:
    """The jobs of a stage that begins backwards early."""
    jobs = [Job("F", *each) for each in forwards[:warmup]]
    left = list(forwards[warmup:])
    for each in backwards:
        if left:  # the steady state: one of each
            jobs.append(Job("F", *left.pop(0)))
        jobs.append(Job("B", *each))
    return jobs
