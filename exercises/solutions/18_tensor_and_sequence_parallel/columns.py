"""Columns: a layer whose ranks each compute some columns of the result.

The columns of x @ weight need one column of the weight each, and all of x. So ranks that hold some
columns of the weight need not communicate: they compute the shards of the result. Write two methods
of `ColumnParallelLinear`.

`build_layout(self)` returns the `LayerLayout` of the parameters on the mesh.

- `LayerLayout({name: axis})` names the axis of each parameter that is sharded among the ranks along
  mp, or None for one that is replicated in each rank.
- "weight" has the shape [in_features, out_features], "bias" [out_features]. Name both: a layer
  without a bias leaves its name out, and a parameter without a name here is put on no mesh.
- A rank holds the columns that it computes, and the part of the bias that belongs to them.

`forward(self, x)` returns x @ weight + bias.

- `self.apply_linear(x, bias)` is x @ weight + bias for sharded tensors; bias may be None. An error
  there names the layer.
- `self.require_pieces(x)` is x, but refuses a tensor of this rank alone on a mesh whose ranks may
  have other data: use it for the x that you get.
- If `self.gather_output`, each rank gets all columns: `self.move_along_mp(y, placement)` is y with
  another placement along mp, and `Replicate()` is one. Otherwise they stay sharded, and nothing
  travels.

    weight [4, 6] on 2 ranks  ->  [4, 3] in each; x [2, 4]  ->  [2, 3] in each

Source: Shoeybi et al., "Megatron-LM: Training Multi-Billion Parameter Language Models Using Model
Parallelism", 2019, section 3.
"""

from minipaddle.distributed import Replicate
from minipaddle.distributed.tensors.layout import LayerLayout


def build_layout(self) -> LayerLayout:
    """Shard weight and bias along the columns of the result."""
    return LayerLayout({"weight": 1, "bias": 0})


def forward(self, x):
    """x @ weight + bias, sharded along its last axis or replicated."""
    y = self.apply_linear(self.require_pieces(x), self.bias)
    return self.move_along_mp(y, Replicate()) if self.gather_output else y
