"""`shard_layer`: a layer whose parameters and buffers are on a mesh."""

from ...core.prelude import Tensor, type_error, value_error
from ...nn import Layer
from ..ranks.require_same import require_same, values_of
from ..tensors.dist_tensor import cut_tensor
from .mesh import require_mesh


def shard_layer(layer, process_mesh, shard_fn=None, input_fn=None, output_fn=None):
    """The layer itself, with its parameters and buffers on a mesh from now on.

    shard_fn: called with (name, sublayer, mesh) for the layer (its name is "") and each layer in
    it; it places parameters by `shard_tensor`. All others are replicated.
    input_fn, output_fn: called with (the tuple of inputs, mesh) and (outputs, mesh) of each call

    All ranks of the mesh call it. Raises ValueError on all of them, with the names of the tensors,
    if a tensor has other values, another shape or other placements in another rank; TypeError if
    `layer` is no layer.

    >>> import minipaddle.distributed as dist
    >>> def columns(name, layer, mesh):
    ...     if isinstance(layer, paddle.nn.Linear):
    ...         dist.shard_tensor(layer.weight, mesh, [dist.Shard(1)])
    >>> def work():
    ...     paddle.seed(1)
    ...     net = paddle.nn.Linear(4, 6)
    ...     dist.shard_layer(net, dist.ProcessMesh([0, 1]), columns)
    ...     return net.weight._local_shape, net.bias.placements
    >>> dist.spawn(work, nprocs=2).results[0]
    ([4, 3], [Replicate()])
    """
    if process_mesh is None:
        raise value_error("shard_layer without a process_mesh", expected="dist.ProcessMesh(...)")
    mesh = require_mesh(process_mesh, "shard_layer")
    if not isinstance(layer, Layer):
        raise type_error(f"shard_layer of {layer!r:.80}", "a paddle.nn.Layer")
    require_same("shard_layer", mesh, {})
    before = {name: values_of(x) for name, x in list_tensors(layer)}
    if shard_fn is not None:
        for name, sublayer in layer.named_sublayers(include_self=True):
            shard_fn(name, sublayer, mesh)
    for owner in layer.sublayers(include_self=True):
        for store in (owner._parameters, owner._buffers):
            for name, x in store.items():
                if x is not None and not x.is_dist():
                    store[name] = cut_tensor(x, mesh, [])
    facts = {name: describe(x, before.get(name)) for name, x in list_tensors(layer)}
    require_same("shard_layer", mesh, facts)
    if input_fn is not None:
        layer.register_forward_pre_hook(lambda _, inputs: as_arguments(input_fn(inputs, mesh)))
    if output_fn is not None:
        layer.register_forward_post_hook(lambda _, inputs, outputs: output_fn(outputs, mesh))
    return layer


def as_arguments(inputs):
    """A list of inputs as the tuple that a call takes."""
    return tuple(inputs) if isinstance(inputs, list) else inputs


def list_tensors(layer: Layer) -> list[tuple[str, Tensor]]:
    """The parameters and buffers of a layer."""
    return [*layer.named_parameters(), *layer.named_buffers()]


def describe(x: Tensor, before: str | None) -> list:
    """The facts of a tensor that must be the same in all ranks: spec, placements, values before it
    was placed.
    """
    return [x.spec, f"on {x.process_mesh} as {x.placements}", before]
