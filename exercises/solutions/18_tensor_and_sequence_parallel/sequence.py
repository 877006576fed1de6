"""Sequence: tensors between the layers of a block, sharded along the sequence.

Norms, dropout and sums with the residual work on each token by itself, so they can work on a shard
of the sequence. Before the columns of a layer the sequence is gathered, after its rows the partial
sums are reduce-scattered. Tensors are [time, batch, width]: the sequence is axis 0. Write three
functions.

`move_along_mp(x, placement, what)` is x with another placement along mp: `Shard(d)` is sharded
along axis d, `Replicate()` full in each rank. Its derivative is the move back: a sharded gradient
is gathered, and a gradient of partial sums is reduce-scattered. `what` is the name in errors:
"ScatterOp", "AllGatherOp".

- `scatter(input, axis=0)`: the tensor sharded along `axis`.
- `all_gather(input)`: the full tensor of a sharded one, in each rank.
- `forward(self, x)` of a column layer, for a sharded sequence: x @ weight + bias, which stays
  sharded along its last axis. `self.move_along_mp(x, placement)` is `move_along_mp` with the name
  of the layer, `self.apply_linear(x, bias)` is x @ weight + bias, `self.bias` may be None.

    [8, 2, 4] on 2 ranks: scatter -> [4, 2, 4] in each; with 6 columns -> [8, 2, 3] in each

Source: Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", 2022.
"""

from minipaddle.distributed import Replicate, Shard
from minipaddle.distributed.fleet.utils.sequence_parallel_utils import move_along_mp


def scatter(input, axis=0):
    """The tensor sharded along `axis`."""
    return move_along_mp(input, Shard(axis), "ScatterOp")


def all_gather(input):
    """The full tensor of a sharded one."""
    return move_along_mp(input, Replicate(), "AllGatherOp")


def forward(self, x):
    """x @ weight + bias of a sharded sequence: gathered first, columns sharded afterwards."""
    return self.apply_linear(self.move_along_mp(x, Replicate()), self.bias)
