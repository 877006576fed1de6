"""A layout says how the tensors of a layer lie on a mesh; `lay_out` puts them there.

Placements are the one mechanism. Each of Paddle's names is a row: the plans of `parallelize`, the
layers of fleet and ZeRO's stages say which axis of a parameter is cut by which axis of the mesh,
and where the first input and the first result of the layer move. Along the other axes of the mesh
all lies as before.
"""

from __future__ import annotations

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
    """How a layer lies along the axis mp.

    parameters: {name: its axis that is cut}; parameters without a name here are left alone
    before: the hook that moves the input
    after: the hook that moves the result
    """

    parameters: dict[str, int]
    before: Hook | None = None
    after: Hook | None = None


def lay_out(layer: Layer, mesh: ProcessMesh, layout: LayerLayout, names, what: str) -> None:
    """Put a layer on a mesh as a layout says; of its parameters those in `names` alone.

    ValueError, which says `what` asks for it, where the layer has none of these parameters.
    """
    dims = {name: dim for name, dim in layout.parameters.items() if name in names}
    found = {p: dim for name, dim in dims.items() if (p := getattr(layer, name, None)) is not None}
    if dims and not found:
        raise value_error(
            f"{what} for {type(layer).__name__}, which has no {' or '.join(dims)}",
            expected="a Linear or Embedding, or a layer with a weight",
        )
    for p, dim in found.items():
        cut_parameter(p, mesh, {"mp": dim})
    if layout.before is not None:
        layer.register_forward_pre_hook(layout.before(mesh))
    if layout.after is not None:
        layer.register_forward_post_hook(layout.after(mesh))


def cut_parameter(p, mesh: ProcessMesh, cuts: dict[str, int]) -> None:
    """Put a parameter on a mesh: as rank 0 has it, cut along an axis `cuts[name]` by the axis
    `name` of the mesh, whole along the others. One that lies on the mesh keeps its other cuts.
    """
    before = p.placements if p.process_mesh == mesh else [REPLICATE] * mesh.ndim
    if not p.is_dist() and mesh.size > 1:
        for group in map(group_numbered, view_of(mesh).groups):  # along one axis after the other
            broadcast(p, group.ranks[0], group)
    found = [
        Shard(cuts[name]) if name in cuts else own for name, own in zip(mesh.dim_names, before)
    ]
    if not p.is_dist() or found != before:
        cut_tensor(p, mesh, found)


def put_on_mesh(parameters: Iterable, mesh: ProcessMesh) -> None:
    """Put the parameters that are on no mesh yet on this one, whole in each rank."""
    for p in parameters:
        if not p.is_dist():
            cut_parameter(p, mesh, {})


# ---- moves ---------------------------------------------------------------------------------------


def move_hook(mesh: ProcessMesh, placement: Placement, what: str, swap: bool = False) -> Callable:
    """The hook of a layer that moves its first input, or its first result, along mp. With `swap`,
    which goes with axes [batch, sequence, …], pieces are those of [sequence, batch, …].
    """

    def move(x):
        if isinstance(x, (tuple, list)):
            return type(x)([move(x[0]), *x[1:]])
        x = x.transpose([1, 0, 2]) if swap and placement.is_shard() else x
        x = move_on_axis(x, mesh, "mp", placement, what)
        return x.transpose([1, 0, 2]) if swap and not placement.is_shard() else x

    return lambda layer, *given: move(given[-1])


def move_on_axis(x, mesh: ProcessMesh, axis: str, placement: Placement, what: str = "reshard"):
    """x where it lies otherwise on one axis of the mesh, and on the others as before. A mesh
    without that axis has one rank there: nothing moves.
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
    """ValueError for a tensor that is on no mesh; what a trace computes may still become one."""
    if not current.top.tracing and not sharded(x.array):
        raise value_error(
            f"{what} was given {x.spec}, a tensor of this rank alone",
            expected="a tensor in pieces",
            hint="dist.shard_tensor(x, mesh, placements)",
        )


class Wrapper(Layer):
    """A layer around a model; its state dict is that of the model, which can be loaded alone."""

    def __init__(self, layers: Layer, kind: str):
        super().__init__(f"{layers.full_name()}_{kind}")
        self._layers = layers

    def forward(self, *inputs, **kwargs):
        return self._layers(*inputs, **kwargs)

    def state_dict(self, *args, **kwargs):
        """That of the model inside, so that it can be loaded without this one."""
        return self._layers.state_dict(*args, **kwargs)

    def set_state_dict(self, state_dict, use_structured_name=True):
        """That of the model inside."""
        return self._layers.set_state_dict(state_dict, use_structured_name)

    set_dict = load_dict = set_state_dict
