"""Sequences in pieces along mp between the layers of a block: the moves, and layers with them.

Tensors are [sequence, batch, width], as in Paddle: what is cut is axis 0. Each operation is a move
along the axis mp; its gradient lies as its input did. So an all-gather's gradient is
reduce-scattered where it is a sum of terms, and cut where each rank has all of it: `GatherOp` and
`AllGatherOp`, two rules in Paddle, are one here. Gradients of parameters that every rank uses with
a piece of the sequence are terms, which are added where they are used: no hook has to.

Source: Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", 2022.
"""

from __future__ import annotations

from ....engine.core.errors import value_error
from ....engine.core.slots import slot
from ....engine.sharding.placements import Replicate, Shard
from ...tensors.layout import move_on_axis
from ..meta_parallel.layers import ColumnParallelLinear, RowParallelLinear
from ..topology import get_hybrid_communicate_group


def moved(x, placement, what: str):
    """x where it lies otherwise along mp."""
    return move_on_axis(x, get_hybrid_communicate_group().mesh, "mp", placement, what)


def scatter(input):
    """The tensor in pieces along axis 0."""
    return ScatterOp.apply(input)


def all_gather(input):
    """The whole of a tensor in pieces, in each rank."""
    return AllGatherOp.apply(input)


def reduce_scatter(input):
    """The sum of terms in pieces along axis 0."""
    return ReduceScatterOp.apply(input)


class ScatterOp:
    """From the whole in each rank to pieces along an axis; the gradient is gathered.

    >>> from minipaddle import distributed as dist
    >>> from minipaddle.distributed import fleet
    >>> def work():
    ...     strategy = fleet.DistributedStrategy()
    ...     strategy.hybrid_configs = {"mp_degree": 2}
    ...     fleet.init(is_collective=True, strategy=strategy)
    ...     mesh = fleet.get_hybrid_communicate_group().mesh
    ...     x = dist.shard_tensor(paddle.ones([8, 2, 4]), mesh, [])
    ...     y = fleet.utils.sequence_parallel_utils.ScatterOp.apply(x)
    ...     z = fleet.utils.sequence_parallel_utils.AllGatherOp.apply(y)
    ...     return y._local_shape, z._local_shape
    >>> dist.spawn(work, nprocs=2).results[0]
    ([4, 2, 4], [8, 2, 4])
    """

    @staticmethod
    @slot("fleet.scatter")
    def apply(input, axis=0):
        """The tensor in pieces along `axis`."""
        return moved(input, Shard(axis), "ScatterOp")


class GatherOp:
    """From pieces to the whole in each rank; of the gradient each takes its piece."""

    @staticmethod
    def apply(input, axis=0):
        """The whole of a tensor in pieces along `axis`, or along any other."""
        return moved(input, Replicate(), "GatherOp")


class AllGatherOp:
    """From pieces to the whole in each rank; the gradient's terms are reduce-scattered."""

    @staticmethod
    @slot("fleet.all_gather")
    def apply(input):
        """The whole of a tensor in pieces."""
        return moved(input, Replicate(), "AllGatherOp")


class ReduceScatterOp:
    """From terms to pieces of their sum along axis 0; the gradient is gathered."""

    @staticmethod
    def apply(input):
        """The sum of terms, in pieces."""
        return moved(input, Shard(0), "ReduceScatterOp")


class ColumnSequenceParallelLinear(ColumnParallelLinear):
    """`ColumnParallelLinear` of a sequence in pieces, which it gathers first; the result stays in
    pieces along its last axis: `gather_output=True` is refused, as in Paddle.
    """

    def __init__(
        self, in_features, out_features, weight_attr=None, has_bias=None, gather_output=True,
        fuse_matmul_bias=False, mp_group=None, name=None,
    ):  # fmt: skip
        if gather_output:
            raise value_error(
                "ColumnSequenceParallelLinear with gather_output=True",
                expected="False: its result is in pieces along the last axis",
            )
        super().__init__(
            in_features, out_features, weight_attr, has_bias, False, fuse_matmul_bias, mp_group,
            name,
        )  # fmt: skip

    @slot("fleet.sequence_columns")
    def forward(self, x):
        return self.applied(self.along_mp(x, Replicate()), self.bias)


class RowSequenceParallelLinear(RowParallelLinear):
    """`RowParallelLinear` whose sum is reduce-scattered along axis 0, the sequence: x is in pieces
    along its last axis (`input_is_parallel=True`, as in Paddle).
    """

    result = Shard(0)

    def __init__(
        self, in_features, out_features, weight_attr=None, has_bias=True, input_is_parallel=False,
        fuse_matmul_bias=False, mp_group=None, name=None,
    ):  # fmt: skip
        if not input_is_parallel:
            raise value_error(
                "RowSequenceParallelLinear with input_is_parallel=False",
                expected="True: its input is in pieces along the last axis",
            )
        super().__init__(
            in_features, out_features, weight_attr, has_bias, True, fuse_matmul_bias, mp_group, name
        )


def mark_as_sequence_parallel_parameter(parameter) -> None:
    """Note that each rank uses a parameter with a piece of the sequence. Its gradient's terms are
    added without the note.
    """
    parameter.sequence_parallel = True


def is_sequence_parallel_parameter(parameter) -> bool:
    """Whether a parameter was marked."""
    return getattr(parameter, "sequence_parallel", False)


def register_sequence_parallel_allreduce_hooks(
    model, accumulation_steps, fuse_sequence_parallel_allreduce
) -> None:
    """Nothing is left to do: gradients that are terms are added where they are used. Source: Paddle
    API `paddle.distributed.fleet.utils.sequence_parallel_utils.
    register_sequence_parallel_allreduce_hooks`.
    """
