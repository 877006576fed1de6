"""Columns: a layer whose ranks each compute some columns of the result.

The columns of x @ weight need one column of the weight each, and all of x. So ranks that hold some
columns of the weight need not speak: what they compute are the pieces of the result. Write two
methods of `ColumnParallelLinear`.

`cut(self)` says how the parameters lie on the mesh.

- `cut_parameter(p, self.mesh, cuts)` puts a parameter on the mesh. `cuts` is a dict: {"mp": 1} cuts
  axis 1 of the parameter among the ranks along the axis mp; {} leaves it whole in each rank.
- `self.weight` has the shape [in_features, out_features], `self.bias` [out_features], or is None.
- A rank holds the columns that it computes, and the part of the bias that belongs to them.

`forward(self, x)` returns x @ weight + bias.

- `self.applied(x, bias)` is x @ weight + bias for tensors in pieces; bias may be None. An error
  there names the layer.
- `self.taken(x)` is x, but refuses a tensor of this rank alone on a mesh whose ranks may have other
  data: use it for what you are given.
- If `self.gather_output`, each rank gets all columns: `self.along_mp(y, placement)` is y where it
  lies otherwise along mp, and `Replicate()` is a placement. Otherwise they stay in pieces, and
  nothing travels.

    weight [4, 6] on 2 ranks  ->  [4, 3] in each; x [2, 4]  ->  [2, 3] in each

Source: Shoeybi et al., "Megatron-LM: Training Multi-Billion Parameter Language Models Using Model
Parallelism", 2019, section 3.
"""

from minipaddle.distributed import Replicate
from minipaddle.distributed.tensors.layout import cut_parameter


def cut(self) -> None:
    """Cut weight and bias along the columns of the result."""
    cut_parameter(self.weight, self.mesh, {"mp": 1})
    if self.bias is not None:
        cut_parameter(self.bias, self.mesh, {"mp": 0})


def forward(self, x):
    """x @ weight + bias, in pieces along its last axis or whole."""
    y = self.applied(self.taken(x), self.bias)
    return self.along_mp(y, Replicate()) if self.gather_output else y
