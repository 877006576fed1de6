"""Sequences sharded along mp between the layers of a block: the moves, and layers with them.

Tensors are [sequence, batch, width], as in Paddle: axis 0 is sharded. Each operation is a move
along the mesh dimension mp; its gradient gets the placement of its input. So the gradient of an
all-gather is reduce-scattered if it is a partial sum, and cut if it is replicated: `GatherOp` and
`AllGatherOp`, two rules in Paddle, are one here. Gradients of parameters that every rank uses with
a shard of the sequence are partial sums, which the operators that use them reduce: no hook has to.

Source: Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", 2022.
"""

from ....engine.core.errors import value_error
from ....engine.core.slots import slot
from ....engine.sharding.placements import Replicate, Shard
from ...tensors.layout import move_on_axis
from ..meta_parallel.layers import ColumnParallelLinear, RowParallelLinear
from ..topology import get_hybrid_communicate_group


def move_along_mp(x, placement, what: str):
    """x with another placement along mp."""
    return move_on_axis(x, get_hybrid_communicate_group().mesh, "mp", placement, what)


def scatter(input):
    """The tensor sharded along axis 0."""
    return ScatterOp.apply(input)


def all_gather(input):
    """The full tensor of a sharded one, in each rank."""
    return AllGatherOp.apply(input)


def reduce_scatter(input):
    """The sum of partial sums, sharded along axis 0."""
    return ReduceScatterOp.apply(input)


class ScatterOp:
    """From replicated to sharded along an axis; the gradient is all-gathered.

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
        """The tensor sharded along `axis`."""
        return move_along_mp(input, Shard(axis), "ScatterOp")


class GatherOp:
    """From sharded to replicated; each rank takes its shard of the gradient."""

    @staticmethod
    def apply(input, axis=0):
        """The full tensor of one that is sharded along `axis`, or along any other."""
        return move_along_mp(input, Replicate(), "GatherOp")


class AllGatherOp:
    """From sharded to replicated; the gradient's partial sums are reduce-scattered."""

    @staticmethod
    @slot("fleet.all_gather")
    def apply(input):
        """The full tensor of a sharded one."""
        return move_along_mp(input, Replicate(), "AllGatherOp")


class ReduceScatterOp:
    """From partial sums to their sum, sharded along axis 0; the gradient is all-gathered."""

    @staticmethod
    def apply(input):
        """The sum of partial sums, sharded."""
        return move_along_mp(input, Shard(0), "ReduceScatterOp")


class ColumnSequenceParallelLinear(ColumnParallelLinear):
    """`ColumnParallelLinear` of a sharded sequence, which it gathers first; the result stays
    sharded along its last axis: `gather_output=True` is refused, as in Paddle.
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
        return self.apply_linear(self.move_along_mp(x, Replicate()), self.bias)


class RowSequenceParallelLinear(RowParallelLinear):
    """`RowParallelLinear` whose sum is reduce-scattered along axis 0, the sequence: x is sharded
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
    """Mark a parameter that each rank uses with a shard of the sequence. The partial sums of its
    gradient are added without the mark, too.
    """
    parameter.sequence_parallel = True


def is_sequence_parallel_parameter(parameter) -> bool:
    """Whether a parameter was marked."""
    return getattr(parameter, "sequence_parallel", False)


def register_sequence_parallel_allreduce_hooks(
    model, accumulation_steps, fuse_sequence_parallel_allreduce
) -> None:
    """Do nothing: operators add the partial sums of the gradients that they use. Source: Paddle
    API `paddle.distributed.fleet.utils.sequence_parallel_utils.
    register_sequence_parallel_allreduce_hooks`.
    """
