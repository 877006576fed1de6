"""Gather before use, scatter after: weights that are only stored in shards.

In ZeRO's third stage a rank stores a shard of each weight. An operator that uses a weight gets the
full weight, all-gathered just before; its gradient is a partial sum in each rank, which is
reduce-scattered before the step; and the step uses the shards. Write three methods.

`in_use(self, view)` of a piece: the piece that operators use.

- `self.placements` is a tuple with a placement for each dimension of the mesh. Operators compute on
  the shards of tensor parallel: these stay. A shard with `p.stored` is there to save memory:
  operators use the full tensor, `Replicate()`.
- `self.move_to(placements, view)` is the piece of the same tensor with other placements. It
  communicates; if nothing is stored, the result is `self`.

`gradient_of(self, p)` of an optimizer: the gradient of a parameter as the step takes it, None if
there is none (`p.grad is None`).

- `self.layouts[p]` is a pair (mesh, placements) of the states of p. The gradient gets the same:
  `dist.reshard(x, mesh, placements)`. That adds the partial sums.
- The gradient of a parameter that is not trained (`p.stop_gradient`) is returned as it is.
- From the second stage on (`self.shard_fn.keeps_gradients`) p keeps no more than the shard: it
  becomes `p.grad`.

`value_of(self, p)`: the parameter that the step uses, with the placements of its states.

    placements (Shard(0, stored=True), Shard(1))  ->  in use: (Replicate(), Shard(1))

Source: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models",
2020, section 5.3.
"""

import minipaddle.distributed as dist


def in_use(self, view):
    """The piece that operators use: replicated where it is only stored in shards."""
    if not any(p.stored for p in self.placements):
        return self
    used = tuple(dist.Replicate() if p.stored else p for p in self.placements)
    return self.move_to(used, view)


def gradient_of(self, p):
    """The sharded gradient of a parameter."""
    if p.grad is None or p.stop_gradient:
        return p.grad
    piece = dist.reshard(p.grad, *self.layouts[p])
    if self.shard_fn.keeps_gradients:
        p.grad = piece
    return piece


def value_of(self, p):
    """The sharded parameter."""
    return dist.reshard(p, *self.layouts[p])
