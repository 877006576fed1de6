"""A step in stages: what `PipelineParallel` and `DistModel` have in common."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from ...core.prelude import Recording, Tensor, e, not_supported, slot, value_error
from ...engine.eager.tensor import wrap
from ...engine.sharding.array import ShardedArray, sharded
from ...engine.sharding.placements import Replicate, Shard
from ...nn import ClipGradByGlobalNorm
from ...nn.clip import shrink, total_square
from ...tensor.generator import GENERATOR
from ...tensor.joining import concat
from ..collectives.python_objects import all_gather_object
from ..simulator.timeline import Activity, Timeline
from .messages import Neighbours
from .runner import Runner
from .schedules import Schedule

DRAWS = 1 << 20
"""The random draws that are set aside for each layer: so they do not depend on the stages."""

DATA_AXES = ("dp", "sharding")
"""The axes of a mesh along which ranks have other samples."""


class Pipeline:
    """A stage among the others.

    schedule: the order of the jobs; its micro-batches have `size` rows
    group: the ranks of the stages that this rank sends to and receives from
    view: the mesh of this rank's stage; None where it is one rank
    layers: for how many layers draws are set aside
    """

    def __init__(self, schedule: Schedule, size: int, group, view, layers: int = 1):
        self.schedule, self.size, self.group, self.view = schedule, size, group, view
        self.layers, self.runner = layers, None

    def run(self, parts: list, data_of: Callable, seed=None, first_layer=lambda part: 0) -> list:
        """Runs micro-batches in the `Runner` of this stage: trains with a `seed`, otherwise
        evaluates. The draws of a layer are those of its number, from `first_layer(part)` on.
        """
        position, m = GENERATOR.position(), self.schedule.micro_batches

        def start(micro_batch: int, part: int) -> None:
            GENERATOR.jump(position, (micro_batch * self.layers + first_layer(part)) * DRAWS)

        neighbours = Neighbours(self.group, self.view)
        self.runner = Runner(self.schedule, self.group.rank, parts, neighbours, start)
        if seed is None:
            found = self.runner.evaluate(data_of)
        else:
            found = self.runner.train(data_of, seed / m)
        GENERATOR.jump(position, 0 if seed is None else m * self.layers * DRAWS)
        return found

    def losses(self, found: list[Tensor]) -> Tensor:
        """The losses of the micro-batches, which the last part's stage has, in all stages."""
        source, _ = self.schedule.locate(self.schedule.parts - 1)
        if found:
            with Recording(False):
                array = concat([x.astype("float32").reshape([1]) for x in found]).array
            array = array.whole() if sharded(array) else array
        else:
            array = Tensor([0.0] * self.schedule.micro_batches).array
        return wrap(self.group.broadcast(array, source))

    def join_results(self, found: list[list[Tensor]]):
        """The results of the micro-batches as those of the batch: a tensor, or a tuple of them;
        None in a stage that has none.
        """
        if not found:
            return None
        with Recording(False):
            joined = [concat(list(each)) for each in zip(*found)]
        return joined[0] if len(joined) == 1 else tuple(joined)

    def step(self, optimizer, scaler=None) -> None:
        """A step of an optimizer, and of a scaler: it is left out if any stage has a gradient that
        is not finite.
        """
        if scaler is None:
            optimizer.step()
            return
        if scaler.is_enable():
            scaler.unscale_(optimizer)
            found = scaler._stages()[optimizer].found
            for flag in (found, scaler._found_inf):
                flag.set_value(wrap(self.group.all_reduce(local(flag.array).copy(), "max")))
        scaler.step(optimizer)
        scaler.update()

    def cut(self, given) -> list[tuple]:
        """The micro-batches of a tensor, or of several, each a tuple of tensors.

        ValueError for another number of rows.
        """
        tensors = given if isinstance(given, (tuple, list)) else [] if given is None else [given]
        size, count = self.size, self.schedule.micro_batches
        for x in tensors:
            if not isinstance(x, Tensor) or not x.ndim or x.shape[0] != size * count:
                raise value_error(
                    f"a batch of {x.spec if isinstance(x, Tensor) else repr(x)[:60]}",
                    expected=f"{size * count} rows: accumulate_steps={count} of "
                    f"micro_batch_size={size}",
                    hint="strategy.pipeline_configs",
                )
            if sharded(x.array):
                raise not_supported(f"a batch in pieces, {x.spec}", "the batch of this rank alone")
        rows = [slice(k * size, (k + 1) * size) for k in range(count)]
        return [tuple(self.placed(x[each]) for x in tensors) for each in rows]

    def placed(self, x: Tensor) -> Tensor:
        """This rank's samples as a piece of those of the stage's ranks; along the axis sep it takes
        its part of each sequence.
        """
        if self.view is None:
            return x
        pairs = [*zip(self.view.mesh.dim_names, self.view.shape)]
        placements = tuple(Shard(0) if name in DATA_AXES else Replicate() for name, _ in pairs)
        ranks = prod(n for name, n in pairs if name in DATA_AXES)
        shape = x.shape[0] * ranks, *x.shape[1:]
        found = ShardedArray(x.array, shape, placements, self.view)
        if x.ndim > 1:
            cut = (Shard(1) if name == "sep" else p for (name, _), p in zip(pairs, placements))
            found = found.placed(tuple(cut))
        return wrap(found)

    def timeline(self) -> Timeline:
        """When each stage did its jobs of the last batch, in all stages; the ranks' clocks are
        those of one machine. `viz.pipeline` draws it.
        """
        found: list = []
        all_gather_object(found, [tuple(span) for span in self.runner.spans], self.group)
        spans = [Activity(*each) for stage in found for each in stage]
        first = min(s.start for s in spans)
        spans = [s._replace(start=s.start - first, end=s.end - first) for s in spans]
        busy = sum(s.end - s.start for s in spans) / self.schedule.stages
        return Timeline(spans, max(s.end for s in spans), busy)


@slot("pipeline.add_gradients")
def add_gradients(tied: list[tuple]) -> None:
    """Let the gradient of each weight that several stages have be the sum of theirs.

    tied: (weight, the group of the ranks that have it)
    """
    for weight, group in tied:
        own = weight.array if weight.grad is None else weight.grad.array
        own = own.placed(weight.array.placements).copy() if sharded(own) else own.copy()
        if weight.grad is None:
            local(own)[...] = 0
        group.all_reduce(local(own))
        weight.grad = Tensor(own)


class ClipAcrossStages(ClipGradByGlobalNorm):
    """All gradients of all stages scaled by one factor; what several stages have counts once."""

    def __init__(self, clip_norm: float, group):
        super().__init__(clip_norm)
        self.group = group

    def __call__(self, params_grads) -> list:
        pairs = list(params_grads)
        chosen = [(p, g) for p, g in pairs if g is not None and getattr(p, "need_clip", True)]
        with Recording(False):
            counted = [g for p, g in chosen if getattr(p, "is_firstly_shared", True)]
            total = total_square(counted) if counted else Tensor(0.0)
            array = total.array.whole() if sharded(total.array) else total.array
            norm = e.sqrt(wrap(self.group.all_reduce(array.copy())))
            clipped = {id(g): shrink(g, norm, self.clip_norm) for _, g in chosen}
        return [(p, clipped.get(id(g), g)) for p, g in pairs]


def clip_across_stages(optimizer, group) -> None:
    """Let an optimizer that clips by the norm of all gradients count those of all stages."""
    for each in optimizer._param_groups:
        if type(each.grad_clip) is ClipGradByGlobalNorm:
            each.grad_clip = ClipAcrossStages(each.grad_clip.clip_norm, group)


def local(array):
    """This rank's piece of an array, or all of it."""
    return array.local if sharded(array) else array
