"""Sequence: what lies between the layers of a block, in pieces.

Norms, dropout and sums with the residual work on each token by itself, so they can work on a piece
of the sequence. Before the columns of a layer the sequence is gathered, after its rows the terms
are reduce-scattered. Tensors are [time, batch, width]: the sequence is axis 0. Write three
functions.

`moved(x, placement, what)` is x where it lies otherwise along mp: `Shard(d)` is in pieces along
axis d, `Replicate()` whole in each rank. Its derivative is the move back, whatever that is: pieces
of the whole are gathered, and where gradients are terms they are reduce-scattered. `what` is the
name that an error names: "ScatterOp", "AllGatherOp".

- `scatter(input, axis=0)`: the tensor in pieces along `axis`.
- `all_gather(input)`: the whole of a tensor in pieces, in each rank.
- `forward(self, x)` of a column layer, given a sequence in pieces: x @ weight + bias, which stays
  in pieces along its last axis. `self.along_mp(x, placement)` is `moved` with the name of the
  layer, `self.applied(x, bias)` is x @ weight + bias, `self.bias` may be None.

    [8, 2, 4] on 2 ranks: scatter -> [4, 2, 4] in each; with 6 columns -> [8, 2, 3] in each

Source: Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", 2022.
"""

from minipaddle.distributed import Replicate, Shard
from minipaddle.distributed.fleet.utils.sequence_parallel_utils import moved


def scatter(input, axis=0):
    """The tensor in pieces along `axis`."""
    raise NotImplementedError


def all_gather(input):
    """The whole of a tensor in pieces."""
    raise NotImplementedError


def forward(self, x):
    """x @ weight + bias of a sequence in pieces: gathered first, columns in pieces afterwards."""
    raise NotImplementedError
