"""Functions and layers that each rank computes on its own piece: between them nothing moves."""

from __future__ import annotations

from functools import wraps

from ...core.prelude import Tensor, value_error
from ...engine.jit.tree import flatten, unflatten
from ...nn import Layer
from .api import ToLocal, check_placements, dtensor_from_local, eager_only, reshard


class LocalLayer(Layer):
    """A layer whose `forward` gets this rank's pieces of its inputs, and returns pieces.

    out_dist_attrs: for each result (mesh, placements): how the joined tensor lies
    grad_dist_attrs: for each input (mesh, placements) of its gradient, or None: as the input lies.
        Where each rank computes something else with the whole of an input, gradients are terms:
        `(mesh, [dist.Partial()])`

    It computes in eager mode only. Raises ValueError if the numbers of inputs or results differ
    from those of the attributes.

    >>> import minipaddle.distributed as dist
    >>> class Sum(dist.LocalLayer):
    ...     def forward(self, x):
    ...         return x.sum()
    >>> def work():
    ...     mesh = dist.ProcessMesh([0, 1])
    ...     layer = Sum([(mesh, [dist.Partial()])], [None])
    ...     y = layer(dist.shard_tensor(paddle.arange(5.0), mesh, [dist.Shard(0)]))
    ...     return y._local_value().item(), y.item()
    >>> dist.spawn(work, nprocs=2).results
    [(3.0, 10.0), (7.0, 10.0)]
    """

    def __init__(self, out_dist_attrs, grad_dist_attrs):
        super().__init__()
        self.out_dist_attrs, self.grad_dist_attrs = out_dist_attrs, grad_dist_attrs

    def __call__(self, *inputs, **kwargs):
        eager_only(what := type(self).__name__)
        pairs = pair_up(inputs, self.grad_dist_attrs, f"grad_dist_attrs of {what}")
        pieces = [take_piece(x, attr and attr[1], what) for x, attr in pairs]
        leaves, form = flatten(super().__call__(*pieces, **kwargs))
        pairs = pair_up(leaves, self.out_dist_attrs, f"out_dist_attrs of {what}")
        return unflatten(form, [dtensor_from_local(y, *attr) for y, attr in pairs])


def local_map(func, out_placements, in_placements=None, process_mesh=None, reshard_inputs=False):
    """`func` for tensors in pieces: it gets this rank's pieces, and returns pieces.

    out_placements: for each result its placements; None for one that is no tensor
    in_placements: for each argument the placements it must have, None for one that lies on no mesh;
        None: every tensor as it lies
    process_mesh: by default that of the first tensor in pieces
    reshard_inputs: move arguments that lie otherwise, rather than raise ValueError

    It computes in eager mode only; where no argument lies in pieces, it is `func`.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     mesh = dist.ProcessMesh([0, 1])
    ...     total = dist.local_map(lambda x: x.sum(), [[dist.Partial()]])
    ...     return total(dist.shard_tensor(paddle.arange(5.0), mesh, [dist.Shard(0)])).item()
    >>> dist.spawn(work, nprocs=2).results
    [10.0, 10.0]
    """

    @wraps(func)
    def mapped(*args, **kwargs):
        eager_only("local_map")
        leaves, form = flatten(args)
        found = [x for x in leaves if isinstance(x, Tensor) and x.is_dist()]
        if not found:
            return func(*args, **kwargs)
        mesh, name = process_mesh or found[0].process_mesh, getattr(func, "__name__", "local_map")
        wanted = [None] * len(leaves) if in_placements is None else in_placements
        pieces = []
        for x, asked in pair_up(leaves, wanted, f"in_placements of {name}"):
            if in_placements is not None and isinstance(x, Tensor):
                x = as_asked(x, asked, mesh, reshard_inputs, name)
            pieces.append(take_piece(x, None, name))
        leaves, form = flatten(func(*unflatten(form, pieces), **kwargs))
        pairs = pair_up(leaves, out_placements, f"out_placements of {name}")
        found = [y if lies is None else dtensor_from_local(y, mesh, lies) for y, lies in pairs]
        return unflatten(form, found)

    return mapped


def pair_up(values, others, what: str) -> list[tuple]:
    """Each value with what belongs to it; ValueError if they are not as many."""
    if len(values) != len(others):
        raise value_error(f"{len(others)} {what}", expected=f"{len(values)}, one for each")
    return [*zip(values, others, strict=True)]


def as_asked(x: Tensor, placements, mesh, moves: bool, what: str) -> Tensor:
    """An argument, which must lie as `placements` say; None: on no mesh."""
    if (placements is None) == x.is_dist():
        lies = x.placements or "on no mesh"
        expected = "on no mesh" if placements is None else placements
        raise value_error(f"{what} of {x.spec}, which lies {lies}", expected)
    if placements is None:
        return x
    placements = [*check_placements(placements, mesh, x.ndim, f"{what} of {x.spec}")]
    if x.process_mesh == mesh and x.placements == placements:
        return x
    if not moves:
        raise value_error(
            f"{what} of {x.spec}, which lies {x.placements} on {x.process_mesh}",
            expected=f"{placements} on {mesh}",
            hint="reshard_inputs=True moves it",
        )
    return reshard(x, mesh, placements)


def take_piece(x, gradient, what: str):
    """This rank's piece of a tensor in pieces, whose gradient lies as `gradient` says."""
    if not isinstance(x, Tensor) or not x.is_dist():
        return x
    lies, mesh = tuple(x.placements), x.process_mesh
    if gradient is not None:
        gradient = check_placements(gradient, mesh, x.ndim, f"the gradient of an input of {what}")
    return ToLocal.apply(x, lies, mesh, gradient)
