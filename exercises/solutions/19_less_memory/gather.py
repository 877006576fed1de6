"""Gather before use, scatter after: weights that are only stored in pieces.

In ZeRO's third stage a rank stores a piece of each weight. An operator that uses a weight gets all
of it, gathered just before; its gradient comes as terms, one in each rank, whose sum is moved into
pieces before the step; and the step takes the pieces. Write three methods.

`in_use(self, view)` of a piece: the piece as operators take it.

- `self.placements` is a tuple with a placement for each axis of the mesh. Of tensor parallel there
  are shards on whose pieces operators compute: these stay. A shard with `p.stored` is there to save
  memory: operators take the whole, `Replicate()`.
- `self.moved_to(placements, view)` is the piece of the same tensor where it lies otherwise. It
  communicates; a piece of which nothing is stored is taken as it is, `self`.

`gradient_of(self, p)` of an optimizer: the gradient of a parameter as the step takes it, None if
there is none (`p.grad is None`).

- `self.lying[p]` is a pair (mesh, placements): how the states of p lie. The gradient is to lie so,
  too: `dist.reshard(x, mesh, placements)`. That joins the terms.
- The gradient of a parameter that is not trained (`p.stop_gradient`) is returned as it is.
- From the second stage on (`self.shard_fn.keeps_gradients`) p keeps no more than the piece: it
  becomes `p.grad`.

`value_of(self, p)`: the parameter as the step takes it: as its states lie.

    placements (Shard(0, stored=True), Shard(1))  ->  in use: (Replicate(), Shard(1))

Source: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models",
2020, section 5.3.
"""

import minipaddle.distributed as dist


def in_use(self, view):
    """The piece as operators take it: whole where it is only stored in pieces."""
    if not any(p.stored for p in self.placements):
        return self
    used = tuple(dist.Replicate() if p.stored else p for p in self.placements)
    return self.moved_to(used, view)


def gradient_of(self, p):
    """The gradient of a parameter, in pieces."""
    if p.grad is None or p.stop_gradient:
        return p.grad
    piece = dist.reshard(p.grad, *self.lying[p])
    if self.shard_fn.keeps_gradients:
        p.grad = piece
    return piece


def value_of(self, p):
    """The parameter, in pieces."""
    return dist.reshard(p, *self.lying[p])
