"""Layers whose weights lie in pieces on the axis mp of the mesh of `fleet.init`: tensor parallel.

Each is the ordinary layer with a placement of its weight, and a move where its arguments ask for
one. A weight has the shape of the whole; `weight._local_shape` is that of a piece. What does not
divide works, too: the last ranks have fewer rows.

Source: Shoeybi et al., "Megatron-LM: Training Multi-Billion Parameter Language Models Using Model
Parallelism", 2019.
"""

from __future__ import annotations

from ....engine.core.dispatch import current
from ....engine.core.errors import value_error
from ....engine.core.slots import slot
from ....engine.sharding.placements import Replicate
from ....nn import Embedding, Layer, Linear
from ....nn import functional as F
from ....nn.layer.tree import path_of
from ...ranks.known_groups import known
from ...tensors.layout import cut_parameter, move_on_axis, require_pieces
from ..topology import get_hybrid_communicate_group


def mesh_of(layer: str, mp_group):
    """The mesh of `fleet.init`, if `mp_group` is None or its group along mp."""
    group = get_hybrid_communicate_group()
    own = group.get_model_parallel_group().ranks
    if mp_group is not None and mp_group.ranks != own:
        raise value_error(
            f"{layer} with mp_group={mp_group.ranks}",
            expected=f"None, or the group along mp of fleet.init: {own}",
        )
    return group.mesh


class OnMesh:
    """The base of the layers: `mesh`, and their name in errors."""

    def named(self) -> str:
        """`GPT.blocks.0.up (a ColumnParallelLinear)`."""
        path = path_of(current.top.scope)
        kind = type(self).__name__
        return kind if path in ("", kind) else f"{path} (a {kind})"

    def taken(self, x):
        """The input; ValueError for one of this rank alone where ranks may have other data."""
        if known().world.size > 1 and set(self.mesh.dim_names) - {"mp"}:
            require_pieces(x, self.named())
        return x

    def along_mp(self, x, placement):
        """x where it lies otherwise along mp."""
        return move_on_axis(x, self.mesh, "mp", placement, self.named())


class CutLinear(OnMesh, Linear):
    """A Linear whose weight, and bias if `has_bias`, are cut along mp by `cut`."""

    def __init__(self, features, weight_attr, has_bias, mp_group, name):
        self.__dict__["mesh"] = mesh_of(type(self).__name__, mp_group)
        super().__init__(*features, weight_attr, None if has_bias else False, name)
        self.cut()


class ColumnParallelLinear(CutLinear):
    """x @ weight + bias: each rank along mp computes some columns of the result.

    `weight` [in_features, out_features] and `bias` (with `has_bias` alone) are cut along
    out_features. With `gather_output` each rank gets all columns, otherwise they stay in pieces.
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
        super().__init__((in_features, out_features), weight_attr, has_bias, mp_group, name)
        self.gather_output = gather_output

    @slot("fleet.cut_columns")
    def cut(self) -> None:
        """Cut weight and bias along out_features."""
        cut_parameter(self.weight, self.mesh, {"mp": 1})
        if self.bias is not None:
            cut_parameter(self.bias, self.mesh, {"mp": 0})

    @slot("fleet.columns")
    def forward(self, x):
        y = self.applied(self.taken(x), self.bias)
        return self.along_mp(y, Replicate()) if self.gather_output else y


class RowParallelLinear(CutLinear):
    """x @ weight + bias: each rank along mp multiplies some columns of x; the terms are added.

    `weight` [in_features, out_features] is cut along in_features, `bias` is whole. If
    `input_is_parallel`, x is in pieces along its last axis already; otherwise each rank takes its
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
        super().__init__((in_features, out_features), weight_attr, has_bias, mp_group, name)
        self.input_is_parallel = input_is_parallel

    result = Replicate()
    """How the sum lies along mp."""

    @slot("fleet.cut_rows")
    def cut(self) -> None:
        """Cut the weight along in_features; the bias lies whole in each rank."""
        cut_parameter(self.weight, self.mesh, {"mp": 0})
        if self.bias is not None:
            cut_parameter(self.bias, self.mesh, {})

    @slot("fleet.rows")
    def forward(self, x):
        y = self.along_mp(self.applied(self.taken(x), None), self.result)
        return y if self.bias is None else y + self.bias


class VocabParallelEmbedding(OnMesh, Embedding):
    """A table of vectors, of which each rank along mp has some rows: looked up by number.

    A rank gives zeros for rows that it does not have; the terms are added. A last layer that takes
    `weight.t()` has scores in pieces along the vocabulary, as `ParallelCrossEntropy` takes them.

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
        self.__dict__["mesh"] = mesh_of(type(self).__name__, mp_group)
        super().__init__(num_embeddings, embedding_dim, weight_attr=weight_attr, name=name)
        cut_parameter(self.weight, self.mesh, {"mp": 0})

    def forward(self, x):
        return self.along_mp(super().forward(self.taken(x)), Replicate())


class ParallelCrossEntropy(OnMesh, Layer):
    """-log softmax(input) at the label, of scores in pieces along the classes; none is gathered.

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
        super().__init__()
        self.mesh, self.name = mesh_of(type(self).__name__, mp_group), name
        self.ignore_index = ignore_index

    def forward(self, input, label):
        label = self.taken(label)
        return F.softmax_with_cross_entropy(
            self.taken(input), label, ignore_index=self.ignore_index
        )
