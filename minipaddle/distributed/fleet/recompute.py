"""Recomputation of a chain of layers, in segments. Source: Paddle API
`paddle.distributed.fleet.recompute`.
"""

from functools import partial

from ...eager.recompute import recompute
from ...engine.core.errors import not_supported, type_error, value_error
from ...engine.core.slots import slot
from ...nn import Sequential

__all__ = ["recompute", "recompute_hybrid", "recompute_sequential"]


class Segment:
    """Functions one after the other; what their layers change as they are called is this one's."""

    def __init__(self, functions: list):
        self.functions = functions
        self.owners = [getattr(f, "__self__", f) for f in functions]

    def __call__(self, *args):
        first, *others = self.functions
        value = first(*args)
        for function in others:
            value = function(value)
        return value

    def buffers(self) -> list:
        return [x for f in self.owners if hasattr(f, "buffers") for x in f.buffers()]

    def parameters(self) -> list:
        return [x for f in self.owners if hasattr(f, "parameters") for x in f.parameters()]


def recompute_sequential(ctx, functions, *args, **kwargs):
    """The result of a chain of functions for `args` that keeps the inputs of its segments alone.

    ctx: a dict with `segments` (1) and `preserve_rng_state` (True)
    functions: a `Sequential`, or a list; each takes what the one before it returns
    Each segment has as many functions, the last one the rest; the last keeps its values, for its
    backward is the first: with one segment nothing is computed again. √n segments of n functions
    need the least memory. Raises ValueError for more segments than functions.
    Source: Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016.

    >>> from minipaddle.distributed.fleet import recompute_sequential
    >>> x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    >>> y = recompute_sequential({"segments": 2}, [paddle.exp, paddle.sin, paddle.exp], x)
    >>> y.sum().backward()
    >>> x.grad.shape
    [2]
    """
    ctx = read_options(ctx, segments=1, preserve_rng_state=True)
    functions = [*functions.children()] if isinstance(functions, Sequential) else [*functions]
    n = ctx["segments"]
    if type(n) is not int or not 1 <= n <= len(functions):
        raise value_error(f"segments={n!r} of {len(functions)} functions", f"1 to {len(functions)}")
    kwargs.setdefault("preserve_rng_state", ctx["preserve_rng_state"])
    return run_segments(functions, n, args, partial(recompute, **kwargs))


@slot("fleet.run_segments")
def run_segments(functions: list, n: int, args: tuple, again):
    """The result of a chain of functions for `args` in n segments, all but the last by `again`."""
    each = len(functions) // n
    for k in range(n - 1):
        args = (again(Segment(functions[k * each : (k + 1) * each]), *args),)
    return Segment(functions[(n - 1) * each :])(*args)


def recompute_hybrid(ctx, function, *args, **kwargs):
    """`recompute` of a function of sharded tensors: it keeps its inputs sharded.

    ctx: a dict; `mp_group` is not needed. Raises NotImplementedError for `offload` and `partition`.

    >>> from minipaddle.distributed.fleet.recompute import recompute_hybrid
    >>> recompute_hybrid({"mp_group": None}, paddle.exp, paddle.zeros([1])).tolist()
    [1.0]
    """
    ctx = read_options(ctx, mp_group=None, offload=False, partition=False, preserve_rng_state=True)
    for name in ("offload", "partition"):
        if ctx[name]:
            raise not_supported(
                f"recompute_hybrid with {name}={ctx[name]!r}",
                expected="False",
                hint="dist.reshard(x, mesh, [dist.Shard(0)]) before the call keeps a piece of x",
            )
    kwargs.setdefault("preserve_rng_state", ctx["preserve_rng_state"])
    return recompute(function, *args, **kwargs)


def read_options(ctx, **defaults) -> dict:
    """The values of a `ctx`; TypeError if it is no dict, ValueError for an unknown key."""
    if not isinstance(ctx, dict):
        raise type_error(f"ctx={ctx!r:.80}", expected=f"a dict with {', '.join(defaults)}")
    if unknown := ctx.keys() - defaults.keys():
        raise value_error(f"ctx has {min(unknown)!r}", expected=f"one of {', '.join(defaults)}")
    return defaults | ctx
