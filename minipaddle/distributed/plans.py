"""Plans for layers of a model that is written for one process: `dist.parallelize`.

A plan cuts the weights of a layer along the axis mp, or moves what goes in or comes out. None
computes or communicates by itself.
"""

from __future__ import annotations

from ..core.prelude import value_error
from ..engine.sharding.placements import Replicate, Shard
from .along import cut_parameter, move_on_axis


class Plan:
    """What `parallelize` does to one layer."""

    def apply(self, layer, mesh, names=("weight", "bias")) -> None:
        """Change a layer; of its parameters those in `names` alone."""
        raise NotImplementedError

    def along(self, x, mesh, placement):
        """x where it lies otherwise along mp; of several the first."""
        if isinstance(x, (tuple, list)):
            return type(x)([self.along(x[0], mesh, placement), *x[1:]])
        return move_on_axis(x, mesh, "mp", placement, type(self).__name__)

    def cut(self, layer, mesh, dims: dict) -> None:
        """Cut parameters along an axis each."""
        found = {name: p for name in dims if (p := getattr(layer, name, None)) is not None}
        if not found:
            kind, what = type(layer).__name__, " or ".join(dims)
            raise value_error(
                f"{type(self).__name__} for {kind}, which has no {what}",
                expected="a Linear or Embedding, or a layer with a weight",
            )
        for name, p in found.items():
            cut_parameter(p, mesh, {"mp": dims[name]})


class ColWiseParallel(Plan):
    """Columns of the weight, and the bias, in pieces; with `gather_output` each rank gets all of
    the result.

    >>> import minipaddle.distributed as dist
    >>> dist.ColWiseParallel().gather_output
    False
    """

    def __init__(self, gather_output=False):
        self.gather_output = gather_output

    def gather_output_hook(self, process_mesh):
        """The hook that gathers the result of a layer."""
        return lambda layer, x, y: self.along(y, process_mesh, Replicate())

    def apply(self, layer, mesh, names=("weight", "bias")):
        dims = {"weight": 1, "bias": 0}
        self.cut(layer, mesh, {name: dims[name] for name in names})
        if self.gather_output:
            layer.register_forward_post_hook(self.gather_output_hook(mesh))


class RowWiseParallel(Plan):
    """Rows of the weight in pieces. With `is_input_parallel=False` the input is cut along its last
    axis first.

    >>> import minipaddle.distributed as dist
    >>> dist.RowWiseParallel().is_input_parallel
    True
    """

    def __init__(self, is_input_parallel=True):
        self.is_input_parallel = is_input_parallel

    def split_input_hook(self, process_mesh):
        """The hook that cuts the input of a layer along its last axis."""
        return lambda layer, x: self.along(x, process_mesh, Shard(-1))

    def apply(self, layer, mesh, names=("weight", "bias")):
        if "weight" in names:
            self.cut(layer, mesh, {"weight": 0})
        if not self.is_input_parallel:
            layer.register_forward_pre_hook(self.split_input_hook(mesh))


class PrepareLayerInput(Plan):
    """`fn(process_mesh)` is a hook before `forward`.

    >>> import minipaddle.distributed as dist
    >>> plan = dist.PrepareLayerInput(lambda mesh: lambda layer, inputs: inputs)
    """

    def __init__(self, fn=None):
        if not callable(fn):
            raise value_error(f"{type(self).__name__}({fn!r})", expected="a function of the mesh")
        self.fn = fn

    def apply(self, layer, mesh, names=()):
        layer.register_forward_pre_hook(self.fn(mesh))


class PrepareLayerOutput(PrepareLayerInput):
    """`fn(process_mesh)` is a hook after `forward`.

    >>> import minipaddle.distributed as dist
    >>> plan = dist.PrepareLayerOutput(lambda mesh: lambda layer, inputs, outputs: outputs)
    """

    def apply(self, layer, mesh, names=()):
        layer.register_forward_post_hook(self.fn(mesh))


class Sequence(Plan):
    """Moves of [batch, sequence, width] to pieces of the sequence, and back. With `need_transpose`
    the pieces are of [sequence, batch, width].
    """

    need_transpose = False

    def __init__(self, need_transpose=True):
        self.need_transpose = need_transpose

    def cut_sequence(self, x, mesh):
        """The sequence in pieces."""
        if isinstance(x, (tuple, list)):
            return type(x)([self.cut_sequence(x[0], mesh), *x[1:]])
        x = x.transpose([1, 0, 2]) if self.need_transpose else x
        return self.along(x, mesh, Shard(0 if self.need_transpose else 1))

    def join_sequence(self, x, mesh):
        """The sequence whole."""
        if isinstance(x, (tuple, list)):
            return type(x)([self.join_sequence(x[0], mesh), *x[1:]])
        x = self.along(x, mesh, Replicate())
        return x.transpose([1, 0, 2]) if self.need_transpose else x


class SequenceParallelBegin(Sequence):
    """The result of a layer, the last before a range in sequence parallel, in pieces.

    >>> import minipaddle.distributed as dist
    >>> dist.SequenceParallelBegin().need_transpose
    True
    """

    def sequence_parallel_begin(self, process_mesh):
        """The hook after the layer."""
        return lambda layer, x, y: self.cut_sequence(y, process_mesh)

    def apply(self, layer, mesh, names=()):
        layer.register_forward_post_hook(self.sequence_parallel_begin(mesh))


class SequenceParallelEnd(Sequence):
    """The input of a layer, the first after a range in sequence parallel, whole.

    >>> import minipaddle.distributed as dist
    >>> dist.SequenceParallelEnd(need_transpose=False).need_transpose
    False
    """

    def sequence_parallel_end(self, process_mesh):
        """The hook before the layer."""
        return lambda layer, x: self.join_sequence(x, process_mesh)

    def apply(self, layer, mesh, names=()):
        layer.register_forward_pre_hook(self.sequence_parallel_end(mesh))


class SequenceParallelEnable(Sequence):
    """A layer that computes on pieces of the sequence; what goes in is [batch, sequence, width].

    >>> import minipaddle.distributed as dist
    >>> plan = dist.SequenceParallelEnable()
    """

    def __init__(self):
        super().__init__(need_transpose=False)

    def sequence_parallel_begin(self, process_mesh):
        """The hook before the layer."""
        return lambda layer, x: self.cut_sequence(x, process_mesh)

    def sequence_parallel_end(self, process_mesh):
        """The hook after the layer."""
        return lambda layer, x, y: self.join_sequence(y, process_mesh)

    def apply(self, layer, mesh, names=()):
        layer.register_forward_pre_hook(self.sequence_parallel_begin(mesh))
        layer.register_forward_post_hook(self.sequence_parallel_end(mesh))


class SequenceParallelDisable(Sequence):
    """A layer in a range in sequence parallel that takes whole sequences.

    >>> import minipaddle.distributed as dist
    >>> dist.SequenceParallelDisable().need_transpose
    True
    """

    def sequence_parallel_begin(self, process_mesh):
        """The hook after the layer."""
        return lambda layer, x, y: self.cut_sequence(y, process_mesh)

    def sequence_parallel_end(self, process_mesh):
        """The hook before the layer."""
        return lambda layer, x: self.join_sequence(x, process_mesh)

    def apply(self, layer, mesh, names=()):
        layer.register_forward_pre_hook(self.sequence_parallel_end(mesh))
        layer.register_forward_post_hook(self.sequence_parallel_begin(mesh))
