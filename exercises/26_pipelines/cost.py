"""Cut by cost: the slowest part decides, so make it as fast as it can be.

A pipeline works as fast as its slowest stage. Layers differ: an embedding costs nearly nothing, the
scores of all words cost as much as some blocks. Write `cut_by_cost(costs, parts)`:

- `costs` is a list with a number for each layer of a row, in order, 0 or more.
- Cut the row into `parts` runs of layers that follow each other, with at least one layer in each.
  (There are enough layers.) The cost of a part is the sum of its layers'.
- Return the bounds as a list of parts + 1 numbers: part k has the layers from number `bounds[k]` up
  to, but without, `bounds[k + 1]`. The first is 0, the last the number of layers.
- The largest cost of a part is to be as small as it can be. Where several cuts do that, any of them
  is right.

    costs 4 1 1 1 1 4, in 3 parts  ->  [0, 1, 5, 6]: 4, 4, 4

To try all cuts takes too long: 48 layers in 8 parts have 63 million. Source: the linear partition
problem, Skiena, "The Algorithm Design Manual", section 10.7.
"""


def cut_by_cost(costs, parts) -> list:
    """The bounds of parts of which the slowest is as fast as it can be."""
    raise NotImplementedError
