"""Plans for layers of a model that is written for one process: `dist.parallelize`.

A plan is a layout: it shards the weights of a layer along the mesh dimension mp, or moves its input
or its result. None computes or communicates by itself.
"""

from ...engine.core.errors import value_error
from ...engine.sharding.placements import Replicate, Shard
from .layout import LayerLayout, lay_out, move_hook

__all__ = [
    "ColWiseParallel", "PrepareLayerInput", "PrepareLayerOutput", "RowWiseParallel",
    "SequenceParallelBegin", "SequenceParallelDisable", "SequenceParallelEnable",
    "SequenceParallelEnd",
]  # fmt: skip


class LayerPlan:
    """The change of `parallelize` to one layer: its layout."""

    layout = LayerLayout({})

    def apply(self, layer, mesh, names=("weight", "bias")) -> None:
        """Apply the layout to a layer, to its parameters in `names` alone."""
        lay_out(layer, mesh, self.layout, names, type(self).__name__)


class ColWiseParallel(LayerPlan):
    """Shard the weight by columns, and the bias; with `gather_output` each rank gets the full
    result.

    >>> import minipaddle.distributed as dist
    >>> dist.ColWiseParallel().gather_output
    False
    """

    def __init__(self, gather_output=False):
        self.gather_output = gather_output
        after = self.gather_output_hook if gather_output else None
        self.layout = LayerLayout({"weight": 1, "bias": 0}, after=after)

    def gather_output_hook(self, process_mesh):
        """The hook that gathers the result of a layer."""
        return move_hook(process_mesh, Replicate(), type(self).__name__)


class RowWiseParallel(LayerPlan):
    """Shard the weight by rows. With `is_input_parallel=False` the input is sharded along its last
    axis first.

    >>> import minipaddle.distributed as dist
    >>> dist.RowWiseParallel().is_input_parallel
    True
    """

    def __init__(self, is_input_parallel=True):
        self.is_input_parallel = is_input_parallel
        self.layout = LayerLayout(
            {"weight": 0}, None if is_input_parallel else self.split_input_hook
        )

    def split_input_hook(self, process_mesh):
        """The hook that shards the input of a layer along its last axis."""
        return move_hook(process_mesh, Shard(-1), type(self).__name__)


class PrepareLayerInput(LayerPlan):
    """`fn(process_mesh)` is a hook before `forward`.

    >>> import minipaddle.distributed as dist
    >>> plan = dist.PrepareLayerInput(lambda mesh: lambda layer, inputs: inputs)
    """

    attribute = "before"

    def __init__(self, fn=None):
        if not callable(fn):
            raise value_error(f"{type(self).__name__}({fn!r})", expected="a function of the mesh")
        self.fn, self.layout = fn, LayerLayout({}, **{self.attribute: fn})


class PrepareLayerOutput(PrepareLayerInput):
    """`fn(process_mesh)` is a hook after `forward`.

    >>> import minipaddle.distributed as dist
    >>> plan = dist.PrepareLayerOutput(lambda mesh: lambda layer, inputs, outputs: outputs)
    """

    attribute = "after"


class SequencePlan(LayerPlan):
    """Moves of [batch, sequence, width] to shards of the sequence, and back. With `need_transpose`
    the shards are [sequence, batch, width].
    """

    before = after = None

    def __init__(self, need_transpose=True):
        self.need_transpose = need_transpose
        hooks = [name and getattr(self, name) for name in (self.before, self.after)]
        self.layout = LayerLayout({}, *hooks)

    def shard_sequence(self, process_mesh):
        """The hook that shards the sequence."""
        swap = self.need_transpose
        return move_hook(process_mesh, Shard(0 if swap else 1), type(self).__name__, swap)

    def gather_sequence(self, process_mesh):
        """The hook that gathers the sequence again."""
        return move_hook(process_mesh, Replicate(), type(self).__name__, self.need_transpose)


class SequenceParallelBegin(SequencePlan):
    """Shard the result of the last layer before a range in sequence parallel.

    >>> import minipaddle.distributed as dist
    >>> dist.SequenceParallelBegin().need_transpose
    True
    """

    after = "sequence_parallel_begin"
    sequence_parallel_begin = SequencePlan.shard_sequence


class SequenceParallelEnd(SequencePlan):
    """Gather the input of the first layer after a range in sequence parallel.

    >>> import minipaddle.distributed as dist
    >>> dist.SequenceParallelEnd(need_transpose=False).need_transpose
    False
    """

    before = "sequence_parallel_end"
    sequence_parallel_end = SequencePlan.gather_sequence


class SequenceParallelEnable(SequencePlan):
    """A layer that computes on shards of the sequence; its input is [batch, sequence, width].

    >>> import minipaddle.distributed as dist
    >>> plan = dist.SequenceParallelEnable()
    """

    before, after = "sequence_parallel_begin", "sequence_parallel_end"
    sequence_parallel_begin = SequencePlan.shard_sequence
    sequence_parallel_end = SequencePlan.gather_sequence

    def __init__(self):
        super().__init__(need_transpose=False)


class SequenceParallelDisable(SequencePlan):
    """A layer in a range in sequence parallel that takes full sequences.

    >>> import minipaddle.distributed as dist
    >>> dist.SequenceParallelDisable().need_transpose
    True
    """

    before, after = "sequence_parallel_end", "sequence_parallel_begin"
    sequence_parallel_begin = SequencePlan.shard_sequence
    sequence_parallel_end = SequencePlan.gather_sequence
