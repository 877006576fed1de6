"""Choose a mesh: the fastest layout, and of equally fast ones the simplest.

The planner knows what each layout costs. A prediction that is 0.1 % better means nothing: the model
of the cost is not so exact. But a layout with fewer stages, or without recomputation, is simpler,
and simpler is surer. Write `choose(costs)`:

- `costs` is a list of `Cost`s of layouts that fit, at least one. `cost.seconds.total` is how long a
  step takes, `cost.layout` what it is.
- Return a list of the same costs, the best first.
- Steps are compared in units of `CLOSE` (0.005) of the shortest step: one that is 1.7 units longer
  than the shortest counts as 1 unit longer, as does one that is 1.2 units longer.
- Among layouts with the same number of units the simpler one comes first: without recomputation
  before with it; then a lower `stage` of ZeRO; then fewer stages of the pipe; then fewer `chunks`;
  then fewer ranks of tensor parallel (`model`). If all that is the same, the shorter step.

    steps of 1.000 s, pipe 4, and 1.003 s, pipe 2  ->  pipe 2 first;   1.006 s  ->  pipe 4 first
"""

from minipaddle.distributed.planner.search import CLOSE


def choose(costs) -> list:
    """The costs of layouts, the best first: the shortest step, about equal ones by simplicity."""
    shortest = min(cost.seconds.total for cost in costs)

    def rank(cost):
        how, seconds = cost.layout, cost.seconds.total
        units = int((seconds / shortest - 1) / CLOSE)
        return units, how.recompute, how.stage, how.pipe, how.chunks, how.model, seconds

    return sorted(costs, key=rank)
