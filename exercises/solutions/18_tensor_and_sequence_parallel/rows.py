"""Rows: a layer whose ranks each have one partial sum.

A rank that holds some columns of x, as a column layer leaves them, and the same rows of the next
weight, can multiply them: the product is a partial sum of x @ weight, and the partial sums of all
ranks are to be added. Write two methods of `RowParallelLinear`.

`build_layout(self)` returns the `LayerLayout` of the parameters on the mesh.

- `LayerLayout({name: axis})` names the axis of each parameter that is sharded among the ranks along
  mp, or None for one that is replicated in each rank.
- "weight" has the shape [in_features, out_features], "bias" [out_features]. Name both: a layer
  without a bias leaves its name out, and a parameter without a name here is put on no mesh.
- The weight is sharded as the columns of x are. All ranks need all of the bias.

`forward(self, x)` returns x @ weight + bias.

- `self.apply_linear(x, bias)` is x @ weight + bias for sharded tensors; bias may be None. Of the
  product of shards it gives what each rank has: a partial sum. An error there names the layer.
- `self.require_pieces(x)` is x, but refuses a tensor of this rank alone on a mesh whose ranks may
  have other data: use it for the x that you get.
- `self.move_along_mp(y, placement)` is y with another placement along mp: it adds partial sums.
  `self.result` is the placement of the sum: `Replicate()` by all-reduce, or, in the layer's child
  for sequence parallel, `Shard(0)` by reduce-scatter. Add them once, and before the bias: a bias
  that each rank adds to its partial sum would be added several times.

    x [2, 6] and weight [6, 4] on 2 ranks: [2, 3] @ [3, 4] in each  ->  the sum, [2, 4] in each

Source: Shoeybi et al., "Megatron-LM: Training Multi-Billion Parameter Language Models Using Model
Parallelism", 2019, section 3.
"""

from minipaddle.distributed.tensors.layout import LayerLayout


def build_layout(self) -> LayerLayout:
    """Shard the weight along the rows that are multiplied with the columns of x."""
    return LayerLayout({"weight": 0, "bias": None})


def forward(self, x):
    """x @ weight + bias; the partial sums are added before the bias."""
    terms = self.apply_linear(self.require_pieces(x), None)
    total = self.move_along_mp(terms, self.result)
    return total if self.bias is None else total + self.bias
