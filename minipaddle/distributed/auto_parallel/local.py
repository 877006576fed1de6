"""Functions and layers that each rank computes on its shards: inside them nothing moves."""

from functools import wraps

from ...core.prelude import Tensor, value_error
from ...engine.jit.tree import flatten, unflatten
from ...nn import Layer
from .api import ToLocal, check_placements, dtensor_from_local, require_eager, reshard


class LocalLayer(Layer):
    """A layer whose `forward` gets this rank's shards of its inputs, and returns shards.

    out_dist_attrs: for each result (mesh, placements) of the joined tensor
    grad_dist_attrs: for each input (mesh, placements) of its gradient, or None: the input's. If
        each rank computes something else with a replicated input, gradients are partial sums:
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
        require_eager(what := type(self).__name__)
        pairs = pair_up(inputs, self.grad_dist_attrs, f"grad_dist_attrs of {what}")
        shards = [take_shard(x, attr and attr[1], what) for x, attr in pairs]
        leaves, form = flatten(super().__call__(*shards, **kwargs))
        pairs = pair_up(leaves, self.out_dist_attrs, f"out_dist_attrs of {what}")
        return unflatten(form, [dtensor_from_local(y, *attr) for y, attr in pairs])


def local_map(func, out_placements, in_placements=None, process_mesh=None, reshard_inputs=False):
    """`func` for sharded tensors: it gets this rank's shards, and returns shards.

    out_placements: for each result its placements; None for one that is no tensor
    in_placements: for each argument the placements it must have, None for one that is on no mesh;
        None: any placements
    process_mesh: by default the mesh of the first sharded tensor
    reshard_inputs: move arguments with other placements, rather than raise ValueError

    It computes in eager mode only; if no argument is on a mesh, it is `func`.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     mesh = dist.ProcessMesh([0, 1])
    ...     total = dist.local_map(lambda x: x.sum(), [[dist.Partial()]])
    ...     return total(dist.shard_tensor(paddle.arange(5.0), mesh, [dist.Shard(0)])).item()
    >>> dist.spawn(work, nprocs=2).results
    [10.0, 10.0]
    """

    @wraps(func)
    def call_on_shards(*args, **kwargs):
        require_eager("local_map")
        leaves, form = flatten(args)
        sharded = [x for x in leaves if isinstance(x, Tensor) and x.is_dist()]
        if not sharded:
            return func(*args, **kwargs)
        mesh, name = process_mesh or sharded[0].process_mesh, getattr(func, "__name__", "local_map")
        wanted = [None] * len(leaves) if in_placements is None else in_placements
        shards = []
        for x, asked in pair_up(leaves, wanted, f"in_placements of {name}"):
            if in_placements is not None and isinstance(x, Tensor):
                x = match_placements(x, asked, mesh, reshard_inputs, name)
            shards.append(take_shard(x, None, name))
        leaves, form = flatten(func(*unflatten(form, shards), **kwargs))
        pairs = pair_up(leaves, out_placements, f"out_placements of {name}")
        results = [y if p is None else dtensor_from_local(y, mesh, p) for y, p in pairs]
        return unflatten(form, results)

    return call_on_shards


def pair_up(values, others, what: str) -> list[tuple]:
    """Pair each value with its attribute; ValueError if they are not as many."""
    if len(values) != len(others):
        raise value_error(f"{len(others)} {what}", expected=f"{len(values)}, one for each")
    return [*zip(values, others, strict=True)]


def match_placements(x: Tensor, placements, mesh, moves: bool, what: str) -> Tensor:
    """Return an argument with `placements` (None: on no mesh); ValueError for one that has others,
    unless `moves`.
    """
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


def take_shard(x, gradient, what: str):
    """This rank's shard of a sharded tensor; `gradient` are the placements of its gradient."""
    if not isinstance(x, Tensor) or not x.is_dist():
        return x
    placements, mesh = tuple(x.placements), x.process_mesh
    if gradient is not None:
        gradient = check_placements(gradient, mesh, x.ndim, f"the gradient of an input of {what}")
    return ToLocal.apply(x, placements, mesh, gradient)
