"""Rows: a layer whose ranks each have one term of a sum.

A rank that holds some columns of x, as a column layer leaves them, and the same rows of the next
weight, can multiply them: the product is a term of x @ weight, and the terms of all ranks are to be
added. Write two methods of `RowParallelLinear`.

`cut(self)` says how the parameters lie on the mesh.

- `cut_parameter(p, self.mesh, cuts)` puts a parameter on the mesh. `cuts` is a dict: {"mp": 1} cuts
  axis 1 of the parameter among the ranks along the axis mp; {} leaves it whole in each rank.
- `self.weight` has the shape [in_features, out_features], `self.bias` [out_features], or is None.
- The weight is cut as the columns of x are. All ranks need all of the bias.

`forward(self, x)` returns x @ weight + bias.

- `self.applied(x, bias)` is x @ weight + bias for tensors in pieces; bias may be None. Of the
  product of pieces it gives what each rank has: a term. An error there names the layer.
- `self.taken(x)` is x, but refuses a tensor of this rank alone on a mesh whose ranks may have other
  data: use it for what you are given.
- `self.along_mp(y, placement)` is y where it lies otherwise along mp: so terms are joined.
  `self.result` is how the sum is to lie: `Replicate()` by all-reduce, or, in the layer's child for
  sequence parallel, `Shard(0)` by reduce-scatter. Join them once, and before the bias: a bias that
  each rank adds to its term would come in several times, or has to be kept out of all but one.

    x [2, 6] and weight [6, 4] on 2 ranks: [2, 3] @ [3, 4] in each  ->  the sum, [2, 4] in each

Source: Shoeybi et al., "Megatron-LM: Training Multi-Billion Parameter Language Models Using Model
Parallelism", 2019, section 3.
"""

from minipaddle.distributed.tensors.layout import cut_parameter


def cut(self) -> None:
    """Cut the weight along the rows that are multiplied with the columns of x."""
    cut_parameter(self.weight, self.mesh, {"mp": 0})
    if self.bias is not None:
        cut_parameter(self.bias, self.mesh, {})


def forward(self, x):
    """x @ weight + bias; the terms are joined before the bias."""
    terms = self.applied(self.taken(x), None)
    total = self.along_mp(terms, self.result)
    return total if self.bias is None else total + self.bias
