"""Layers whose weights are sharded along mp of the mesh of `fleet.init`: tensor parallel.

Each is the ordinary layer with a `LayerLayout`, and a move where its arguments ask for one. A
weight has the shape of the full tensor, `weight._local_shape` of its shard. Sizes need not divide:
the last ranks have fewer rows.

Source: Shoeybi et al., "Megatron-LM: Training Multi-Billion Parameter Language Models Using Model
Parallelism", 2019.
"""

from ....engine.core.dispatch import current
from ....engine.core.errors import value_error
from ....engine.core.slots import slot
from ....engine.sharding.placements import Replicate
from ....nn import Embedding, Layer, Linear
from ....nn import functional as F
from ....nn.layer.tree import path_of
from ...ranks.known_groups import current_groups
from ...tensors.layout import LayerLayout, lay_out, move_on_axis, require_pieces
from ..topology import get_hybrid_communicate_group

__all__ = [
    "ColumnParallelLinear", "ParallelCrossEntropy", "RowParallelLinear", "VocabParallelEmbedding",
]  # fmt: skip


def mesh_of(layer: str, mp_group):
    """The mesh of `fleet.init`, if `mp_group` is None or its group along mp."""
    hybrid = get_hybrid_communicate_group()
    ranks = hybrid.get_model_parallel_group().ranks
    if mp_group is not None and mp_group.ranks != ranks:
        raise value_error(
            f"{layer} with mp_group={mp_group.ranks}",
            expected=f"None, or the group along mp of fleet.init: {ranks}",
        )
    return hybrid.mesh


class MeshLayer:
    """The base of the layers: it applies the layout of a subclass on the mesh of `fleet.init`."""

    def __init__(self, mp_group, *args, **kwargs):
        self.__dict__["mesh"] = mesh_of(type(self).__name__, mp_group)
        super().__init__(*args, **kwargs)
        lay_out(self, self.mesh, self.build_layout())

    def build_layout(self) -> LayerLayout:
        """The placements of the parameters along mp; this layer has none."""
        return LayerLayout({})

    def describe(self) -> str:
        """Its name in errors: `GPT.blocks.0.up (a ColumnParallelLinear)`."""
        path = path_of(current.top.scope)
        name = type(self).__name__
        return name if path in ("", name) else f"{path} (a {name})"

    def require_pieces(self, x):
        """Return the input; ValueError if it is this rank's alone and ranks may have other data."""
        if current_groups().world.size > 1 and set(self.mesh.dim_names) - {"mp"}:
            require_pieces(x, self.describe())
        return x

    def move_along_mp(self, x, placement):
        """x with another placement along mp."""
        return move_on_axis(x, self.mesh, "mp", placement, self.describe())


class ColumnParallelLinear(MeshLayer, Linear):
    """x @ weight + bias: each rank along mp computes some columns of the result.

    `weight` [in_features, out_features] and `bias` (with `has_bias` alone) are sharded along
    out_features. With `gather_output` each rank gets all columns, otherwise they stay sharded.
    `fuse_matmul_bias` changes nothing here: a compiled program fuses them. All ranks begin with the
    weights of rank 0.

    >>> from minipaddle.distributed import fleet
    >>> def work():
    ...     strategy = fleet.DistributedStrategy()
    ...     strategy.hybrid_configs = {"mp_degree": 2}
    ...     fleet.init(is_collective=True, strategy=strategy)
    ...     up = fleet.meta_parallel.ColumnParallelLinear(4, 6, has_bias=True, gather_output=False)
    ...     down = fleet.meta_parallel.RowParallelLinear(6, 4, input_is_parallel=True)
    ...     h = up(paddle.ones([2, 4]))
    ...     return up.weight.shape, up.weight._local_shape, h._local_shape, down(h).shape
    >>> paddle.distributed.spawn(work, nprocs=2).results[0]
    ([4, 6], [4, 3], [2, 3], [2, 4])
    """

    def __init__(
        self, in_features, out_features, weight_attr=None, has_bias=None, gather_output=True,
        fuse_matmul_bias=False, mp_group=None, name=None,
    ):  # fmt: skip
        bias_attr = None if has_bias else False
        super().__init__(mp_group, in_features, out_features, weight_attr, bias_attr, name)
        self.gather_output = gather_output

    @slot("fleet.cut_columns")
    def build_layout(self) -> LayerLayout:
        """Shard weight and bias along out_features."""
        return LayerLayout({"weight": 1, "bias": 0})

    @slot("fleet.columns")
    def forward(self, x):
        y = self.apply_linear(self.require_pieces(x), self.bias)
        return self.move_along_mp(y, Replicate()) if self.gather_output else y


class RowParallelLinear(MeshLayer, Linear):
    """x @ weight + bias: each rank along mp multiplies some columns of x, and an all-reduce adds
    the partial sums.

    `weight` [in_features, out_features] is sharded along in_features, `bias` is replicated. If
    `input_is_parallel`, x is sharded along its last axis already; otherwise each rank takes its
    columns of x, which moves nothing. `fuse_matmul_bias` changes nothing here.

    >>> from minipaddle.distributed import fleet
    >>> def work():
    ...     strategy = fleet.DistributedStrategy()
    ...     strategy.hybrid_configs = {"mp_degree": 2}
    ...     fleet.init(is_collective=True, strategy=strategy)
    ...     layer = fleet.meta_parallel.RowParallelLinear(6, 4)
    ...     y = layer(paddle.ones([2, 6]))
    ...     return layer.weight._local_shape, y.placements
    >>> paddle.distributed.spawn(work, nprocs=2).results[0]
    ([3, 4], [Replicate()])
    """

    def __init__(
        self, in_features, out_features, weight_attr=None, has_bias=True, input_is_parallel=False,
        fuse_matmul_bias=False, mp_group=None, name=None,
    ):  # fmt: skip
        bias_attr = None if has_bias else False
        super().__init__(mp_group, in_features, out_features, weight_attr, bias_attr, name)
        self.input_is_parallel = input_is_parallel

    result = Replicate()
    """The placement of the sum along mp."""

    @slot("fleet.cut_rows")
    def build_layout(self) -> LayerLayout:
        """Shard the weight along in_features; replicate the bias."""
        return LayerLayout({"weight": 0, "bias": None})

    @slot("fleet.rows")
    def forward(self, x):
        y = self.move_along_mp(self.apply_linear(self.require_pieces(x), None), self.result)
        return y if self.bias is None else y + self.bias


class VocabParallelEmbedding(MeshLayer, Embedding):
    """A table of vectors, looked up by number; each rank along mp has some of its rows.

    A rank gives zeros for rows that it does not have, and an all-reduce adds the partial sums. A
    last layer that takes `weight.t()` has scores sharded along the vocabulary, as
    `ParallelCrossEntropy` takes them.

    >>> from minipaddle.distributed import fleet
    >>> def work():
    ...     strategy = fleet.DistributedStrategy()
    ...     strategy.hybrid_configs = {"mp_degree": 2}
    ...     fleet.init(is_collective=True, strategy=strategy)
    ...     table = fleet.meta_parallel.VocabParallelEmbedding(10, 4)
    ...     return table.weight._local_shape, table(paddle.to_tensor([[0, 9]])).shape
    >>> paddle.distributed.spawn(work, nprocs=2).results[0]
    ([5, 4], [1, 2, 4])
    """

    def __init__(
        self, num_embeddings, embedding_dim, weight_attr=None, mp_group=None, name=None
    ):  # fmt: skip
        super().__init__(
            mp_group, num_embeddings, embedding_dim, weight_attr=weight_attr, name=name
        )

    def build_layout(self) -> LayerLayout:
        """Shard the table along its rows."""
        return LayerLayout({"weight": 0})

    def forward(self, x):
        return self.move_along_mp(super().forward(self.require_pieces(x)), Replicate())


class ParallelCrossEntropy(MeshLayer, Layer):
    """-log softmax(input) at the label, of scores sharded along the classes; none is gathered.

    input: [..., classes]; label: class numbers [...] or [..., 1]; the loss is [..., 1], and 0 where
    the label is `ignore_index`.

    >>> from minipaddle.distributed import fleet
    >>> def work():
    ...     strategy = fleet.DistributedStrategy()
    ...     strategy.hybrid_configs = {"mp_degree": 2}
    ...     fleet.init(is_collective=True, strategy=strategy)
    ...     layer = fleet.meta_parallel.ColumnParallelLinear(4, 10, gather_output=False)
    ...     loss = fleet.meta_parallel.ParallelCrossEntropy()
    ...     return loss(layer(paddle.zeros([2, 4])), paddle.to_tensor([3, 9])).mean().item()
    >>> round(paddle.distributed.spawn(work, nprocs=2).results[0], 4)  # log 10
    2.3026
    """

    def __init__(self, mp_group=None, name=None, ignore_index=-100):
        super().__init__(mp_group)
        self.name, self.ignore_index = name, ignore_index

    def forward(self, input, label):
        input, label = map(self.require_pieces, (input, label))
        return F.softmax_with_cross_entropy(input, label, ignore_index=self.ignore_index)
