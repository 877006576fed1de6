"""A layout gives the placements of a layer's tensors on a mesh; `lay_out` applies it.

Placements are the one mechanism. Each of Paddle's names is a row: the plans of `parallelize`, the
layers of fleet and ZeRO's stages say which axis of a parameter is sharded along which dimension of
the mesh, and which placement the first input and the first result of the layer get. Along the other
dimensions of the mesh placements stay.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ...core.prelude import current, value_error
from ...engine.ops import marks
from ...engine.sharding.array import sharded
from ...engine.sharding.placements import REPLICATE, Placement, ProcessMesh, Shard
from ...nn import Layer
from ..communication import broadcast
from ..ranks.known_groups import group_numbered
from .dist_tensor import cut_tensor, view_of

Hook = Callable[[ProcessMesh], Callable]
"""A hook of a layer, made for a mesh."""


class LayerLayout(NamedTuple):
    """The placements of a layer along the mesh dimension mp.

    parameters: {name: the axis that is sharded, None: replicate}; other parameters stay as they are
    before: the hook that moves the input
    after: the hook that moves the result
    """

    parameters: dict[str, int | None]
    before: Hook | None = None
    after: Hook | None = None


def lay_out(
    layer: Layer, mesh: ProcessMesh, layout: LayerLayout, names=None, what: str = ""
) -> None:
    """Apply a layout to a layer on a mesh; with `names` to these parameters alone.

    ValueError that names `what`, the user's plan, if the layer has none of the parameters.
    """
    names = layout.parameters if names is None else names
    dims = {name: dim for name, dim in layout.parameters.items() if name in names}
    present = {p: dim for k, dim in dims.items() if (p := getattr(layer, k, None)) is not None}
    if dims and not present:
        raise value_error(
            f"{what} for {type(layer).__name__}, which has no {' or '.join(dims)}",
            expected="a Linear or Embedding, or a layer with a weight",
        )
    for p, dim in present.items():
        cut_parameter(p, mesh, {} if dim is None else {"mp": dim})
    if layout.before is not None:
        layer.register_forward_pre_hook(layout.before(mesh))
    if layout.after is not None:
        layer.register_forward_post_hook(layout.after(mesh))


def cut_parameter(p, mesh: ProcessMesh, cuts: dict[str, int]) -> None:
    """Put a parameter on a mesh with the values of its first rank: sharded at axis `cuts[name]`
    along the mesh dimension `name`, replicated along the others. One that is on the mesh keeps its
    other placements.
    """
    before = p.placements if p.process_mesh == mesh else [REPLICATE] * mesh.ndim
    if not p.is_dist():
        broadcast_first(p, mesh)
    placements = [
        Shard(cuts[name]) if name in cuts else kept for name, kept in zip(mesh.dim_names, before)
    ]
    if not p.is_dist() or placements != before:
        cut_tensor(p, mesh, placements)


def broadcast_first(x, mesh: ProcessMesh) -> None:
    """Give all ranks of a mesh the values that its first rank has."""
    for group in map(group_numbered, view_of(mesh).groups) if mesh.size > 1 else ():
        broadcast(x, group.ranks[0], group)  # along one dimension after the other


def put_on_mesh(parameters: Iterable, mesh: ProcessMesh) -> None:
    """Replicate the parameters that are on no mesh yet on this one."""
    for p in parameters:
        if not p.is_dist():
            cut_parameter(p, mesh, {})


# ---- moves ---------------------------------------------------------------------------------------


def move_hook(mesh: ProcessMesh, placement: Placement, what: str, swap: bool = False) -> Callable:
    """The hook that moves the first input of a layer, or its first result, along mp. With `swap`
    the shards of a [batch, sequence, …] tensor have the axes [sequence, batch, …].
    """

    def move(x):
        if isinstance(x, (tuple, list)):
            return type(x)([move(x[0]), *x[1:]])
        x = x.transpose([1, 0, 2]) if swap and placement.is_shard() else x
        x = move_on_axis(x, mesh, "mp", placement, what)
        return x.transpose([1, 0, 2]) if swap and not placement.is_shard() else x

    return lambda layer, *values: move(values[-1])


def move_on_axis(x, mesh: ProcessMesh, axis: str, placement: Placement, what: str = "reshard"):
    """x with another placement along one dimension of the mesh; along the others it keeps its own.
    A mesh without that dimension has one rank there: nothing moves.
    """
    if axis not in mesh.dim_names:
        return x
    require_pieces(x, what)
    if placement.is_shard():
        ndim = x.spec.ndim
        if not -ndim <= placement.dim < ndim:
            raise value_error(f"{what}: {placement} of {x.spec}")
        placement = Shard(placement.dim % ndim)
    view_of(mesh)
    placements = tuple(placement if name == axis else None for name in mesh.dim_names)
    return marks.reshard(x, mesh=mesh, placements=placements)


def require_pieces(x, what: str) -> None:
    """ValueError for a tensor on no mesh; while a program is traced no tensor is on one yet."""
    if not current.top.tracing and not sharded(x.array):
        raise value_error(
            f"{what} was given {x.spec}, a tensor of this rank alone",
            expected="a tensor in pieces",
            hint="dist.shard_tensor(x, mesh, placements)",
        )


class Wrapper(Layer):
    """A layer around a model; its state dict is the model's, which the model loads without it."""

    def __init__(self, layers: Layer, kind: str):
        super().__init__(f"{layers.full_name()}_{kind}")
        self._layers = layers

    def forward(self, *inputs, **kwargs):
        return self._layers(*inputs, **kwargs)

    def state_dict(self, *args, **kwargs):
        """The model's state dict."""
        return self._layers.state_dict(*args, **kwargs)

    def set_state_dict(self, state_dict, use_structured_name=True):
        """Load a state dict into the model."""
        return self._layers.set_state_dict(state_dict, use_structured_name)

    set_dict = load_dict = set_state_dict
