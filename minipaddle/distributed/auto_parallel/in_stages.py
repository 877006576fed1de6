"""A `DistModel` in stages: its program is cut where `parallelize` was told to."""

from __future__ import annotations

from ...engine.core.errors import not_supported, value_error
from ..pipeline.parts import Part
from ..pipeline.schedules import build_schedule
from ..pipeline.splitting import Split, cut_at, function_of, positions_of, tensors_of, trace_forward
from ..pipeline.training import Pipeline, add_gradients, clip_across_stages, local
from ..tensors.dist_tensor import view_of


class StagedModel:
    """The modes of a `DistModel` in the stages along the mesh dimension pp.

    Each rank has the model's weights; it trains those that its parts use. Each call gets a full
    batch, sharded along dp alone. Weights that several stages use get the sum of their gradients.
    """

    def __init__(self, model, split: Split):
        self.model, self.split = model, split
        how, mesh = model.strategy.pipeline, split.mesh
        stages, axis = mesh.get_dim_size("pp"), mesh.dim_names.index("pp")
        parts = len(split.points) + 1
        if parts % stages:
            raise value_error(f"{parts} parts of a model in {stages} stages")
        if model.merged > 1:
            raise not_supported("gradient_merge of a model in stages", hint="accumulate_steps")
        micro_batches = how.accumulate_steps if how.enable else 1
        name = how.schedule_mode if how.enable else "FThenB"
        chunks = parts // stages
        name = "VPP" if chunks > 1 and name == "1F1B" else name
        schedule = build_schedule(name, stages, micro_batches, chunks)
        group, stage = mesh.get_group("pp"), view_of(mesh).place[axis]
        view = view_of(stage_mesh(mesh)) if mesh.size > stages else None
        self.size = how.micro_batch_size if how.enable else None  # None: the whole batch
        self.pipeline, self.stage = Pipeline(schedule, self.size, group, view), stage
        self.parts: dict[tuple, tuple] = {}
        self.trainers: dict = {}  # the stages that train a weight
        if model.optimizer is not None:
            clip_across_stages(model.optimizer, group)

    def train(self, *args):
        """The loss of a batch, after a step of the optimizer."""
        model, scaler = self.model, self.model.scaler
        scale = scaler.get_loss_scaling().item() if scaler.is_enable() else 1.0
        results = self.run(model.compute_loss, args, scale)
        add_gradients(self.tied)
        losses = self.pipeline.losses(results)
        self.pipeline.step(model.optimizer, scaler)
        model.optimizer.clear_grad()
        return losses.mean()

    def evaluate(self, *args):
        """The loss of a batch."""
        return self.pipeline.losses([x for (x,) in self.run(self.model.compute_loss, args)]).mean()

    def predict(self, *args):
        """The result of the layer, in the last part's stage; None elsewhere."""
        return self.pipeline.join_results(self.run(self.model.compute_outputs, args))

    def run(self, function, args, seed=None) -> list:
        """The result of this stage for a batch."""
        if self.size is None:
            self.pipeline.size = args[0].shape[0]
        batches = self.pipeline.cut(args)
        key = function.__name__, self.model.mode, *(x.spec for x in batches[0])
        if key not in self.parts:
            self.parts[key] = self.cut(function, batches[0])
        programs, parts, self.tied = self.parts[key]

        def data_of(micro_batch: int, part: int) -> list:
            return [batches[micro_batch][k] for k in programs[part].inputs]

        return self.pipeline.run(parts, data_of, seed)

    def cut(self, function, tensors) -> tuple:
        """(the parts of the program of a function, this stage's as `Part`s, tied weights)."""
        program = trace_forward(function, tensors, "forward")
        programs = cut_at(program, positions_of(program, self.split.points))
        schedule, stages = self.pipeline.schedule, {}
        for k, part in enumerate(programs):
            for x in tensors_of(part.program):
                if x is not None and not x.stop_gradient:
                    stages.setdefault(x, []).append(schedule.locate(k)[0])
        self.trainers = stages
        tied = [x for x, users in stages.items() if len({*users}) > 1]
        for x in tied:
            x.is_firstly_shared = stages[x][0] == self.stage
        numbers = [schedule.find_part(self.stage, chunk) for chunk in range(schedule.chunks)]
        parts = [Part(function_of(programs[k])) for k in numbers]
        return programs, parts, [(x, self.pipeline.group) for x in tied]

    def trains(self, x) -> bool:
        """Whether this stage trains a weight; before the first batch each stage does."""
        return self.stage in self.trainers.get(x, [self.stage])

    def share_weights(self) -> None:
        """Broadcast each weight from the stage that trains it. The optimizer forgets states that it
        read for the weights of other stages.
        """
        for x, stages in self.trainers.items():
            self.pipeline.group.broadcast(local(x.array), stages[0])
            if self.model.optimizer is not None and not self.trains(x):
                self.model.optimizer._states.pop(x, None)


def stage_mesh(mesh):
    """The mesh of this rank's stage."""
    stage = view_of(mesh).place[mesh.dim_names.index("pp")]
    return mesh.get_mesh_with_dim("pp", stage)


def broadcast_along_stages(model, mesh) -> None:
    """Give all stages the weights and buffers of the first."""
    group = mesh.get_group("pp")
    for x in [*model.parameters(), *model.buffers()]:
        group.broadcast(local(x.array), 0)
