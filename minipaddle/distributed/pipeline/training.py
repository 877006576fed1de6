"""A step in stages, for `PipelineParallel` and `DistModel`."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from ...core.prelude import Recording, Tensor, e, not_supported, slot, value_error, wrap
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
"""The random draws reserved for each layer, so that they do not depend on the stages."""

DATA_AXES = ("dp", "sharding")
"""The mesh dimensions along which ranks have other samples."""


class Pipeline:
    """A stage of a pipeline.

    schedule: the order of the jobs; its micro-batches have `size` rows
    group: the ranks of the stages that this rank sends to and receives from
    view: the mesh of this rank's stage; None if it is one rank
    layers: the number of layers with reserved draws
    """

    def __init__(self, schedule: Schedule, size: int, group, view, layers: int = 1):
        self.schedule, self.size, self.group, self.view = schedule, size, group, view
        self.layers, self.runner = layers, None

    def run(self, parts: list, data_of: Callable, seed=None, first_layer=lambda part: 0) -> list:
        """Run micro-batches in the `Runner` of this stage: train with a `seed`, otherwise evaluate.
        The number of a layer determines its draws, from `first_layer(part)` on.
        """
        position, m = GENERATOR.position(), self.schedule.micro_batches

        def start(micro_batch: int, part: int) -> None:
            GENERATOR.jump(position, (micro_batch * self.layers + first_layer(part)) * DRAWS)

        neighbours = Neighbours(self.group, self.view)
        self.runner = Runner(self.schedule, self.group.rank, parts, neighbours, start)
        if seed is None:
            results = self.runner.evaluate(data_of)
        else:
            results = self.runner.train(data_of, seed / m)
        GENERATOR.jump(position, 0 if seed is None else m * self.layers * DRAWS)
        return results

    def losses(self, losses: list[Tensor]) -> Tensor:
        """Broadcast the losses of the micro-batches from the last part's stage to all stages."""
        source, _ = self.schedule.locate(self.schedule.parts - 1)
        if losses:
            with Recording(False):
                array = concat([x.astype("float32").reshape([1]) for x in losses]).array
            array = array.whole() if sharded(array) else array
        else:
            array = Tensor([0.0] * self.schedule.micro_batches).array
        return wrap(self.group.broadcast(array, source))

    def join_results(self, results: list[list[Tensor]]):
        """Join the results of the micro-batches to a tensor of the batch, or a tuple; None in a
        stage without results.
        """
        if not results:
            return None
        with Recording(False):
            joined = [concat(list(each)) for each in zip(*results)]
        return joined[0] if len(joined) == 1 else tuple(joined)

    def step(self, optimizer, scaler=None) -> None:
        """Step an optimizer and a scaler, unless any stage has a gradient that is not finite."""
        if scaler is None:
            optimizer.step()
            return
        if scaler.is_enable():
            scaler.unscale_(optimizer)
            overflow = scaler._stages()[optimizer].found
            for flag in (overflow, scaler._found_inf):
                flag.set_value(wrap(self.group.all_reduce(local(flag.array).copy(), "max")))
        scaler.step(optimizer)
        scaler.update()

    def cut(self, batch) -> list[tuple]:
        """Cut a tensor, or several, into micro-batches, each a tuple of tensors.

        Raises ValueError for another number of rows.
        """
        tensors = batch if isinstance(batch, (tuple, list)) else [] if batch is None else [batch]
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
        return [tuple(self.shard_batch(x[each]) for x in tensors) for each in rows]

    def shard_batch(self, x: Tensor) -> Tensor:
        """This rank's samples as a shard of the stage's, along sep its part of each sequence."""
        if self.view is None:
            return x
        pairs = [*zip(self.view.mesh.dim_names, self.view.shape)]
        placements = tuple(Shard(0) if name in DATA_AXES else Replicate() for name, _ in pairs)
        ranks = prod(n for name, n in pairs if name in DATA_AXES)
        shape = x.shape[0] * ranks, *x.shape[1:]
        array = ShardedArray(x.array, shape, placements, self.view)
        if x.ndim > 1:
            cut = (Shard(1) if name == "sep" else p for (name, _), p in zip(pairs, placements))
            array = array.move_to(tuple(cut))
        return wrap(array)

    def timeline(self) -> Timeline:
        """The times of all stages' jobs of the last batch; all ranks have one machine's clock.
        `viz.pipeline` draws it.
        """
        stages: list = []
        all_gather_object(stages, [tuple(span) for span in self.runner.spans], self.group)
        spans = [Activity(*each) for stage in stages for each in stage]
        first = min(s.start for s in spans)
        spans = [s._replace(start=s.start - first, end=s.end - first) for s in spans]
        busy = sum(s.end - s.start for s in spans) / self.schedule.stages
        return Timeline(spans, max(s.end for s in spans), busy)


@slot("pipeline.add_gradients")
def add_gradients(tied: list[tuple]) -> None:
    """Sum the gradients of each weight that several stages have over these stages.

    tied: (weight, the group of the ranks that have it)
    """
    for weight, group in tied:
        g = weight.array if weight.grad is None else weight.grad.array
        g = g.move_to(weight.array.placements).copy() if sharded(g) else g.copy()
        if weight.grad is None:
            local(g)[...] = 0
        group.all_reduce(local(g))
        weight.grad = Tensor(g)


class ClipAcrossStages(ClipGradByGlobalNorm):
    """One factor for all gradients of all stages; a weight of several stages counts once."""

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
    """Make an optimizer clip by the norm of the gradients of all stages."""
    for each in optimizer._param_groups:
        if type(each.grad_clip) is ClipGradByGlobalNorm:
            each.grad_clip = ClipAcrossStages(each.grad_clip.clip_norm, group)


def local(array):
    """This rank's shard of an array, or a local array itself."""
    return array.local if sharded(array) else array
