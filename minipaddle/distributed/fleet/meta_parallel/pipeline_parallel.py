"""`PipelineParallel`: the model of `fleet.distributed_model` for a `PipelineLayer`."""

from __future__ import annotations

from ....core.prelude import Tensor, not_supported, type_error, value_error
from ...pipeline.parts import Part
from ...pipeline.training import Pipeline, add_gradients
from ...simulator.timeline import Timeline
from ...tensors.dist_tensor import view_of
from ...tensors.layout import Wrapper, put_on_mesh
from .pipeline_layer import PipelineLayer


class PipelineParallel(Wrapper):
    """`layers`, a `PipelineLayer`, trained in stages: each rank has some of the layers.

    A batch is cut into `accumulate_steps` micro-batches of `micro_batch_size`, which flow through
    the stages in the `schedule_mode` of `strategy.pipeline_configs`. A step uses the full batch:
    losses and gradients are means over the micro-batches. Layers see micro-batches: a batch norm
    uses the moments of one. Along dp and sharding each rank has a batch of its own, along mp and
    sep the same one; along sep each computes its part of axis 1, the sequence.

    >>> from minipaddle.distributed import fleet
    >>> from minipaddle.distributed.fleet.meta_parallel import LayerDesc, PipelineLayer
    >>> def work():
    ...     strategy = fleet.DistributedStrategy()
    ...     strategy.hybrid_configs = {"pp_degree": 2}
    ...     strategy.pipeline_configs = {"accumulate_steps": 4, "micro_batch_size": 2}
    ...     fleet.init(is_collective=True, strategy=strategy)
    ...     paddle.seed(1)
    ...     row = [LayerDesc(paddle.nn.Linear, 4, 4), LayerDesc(paddle.nn.Linear, 4, 1)]
    ...     model = fleet.distributed_model(PipelineLayer(row, loss_fn=paddle.nn.MSELoss()))
    ...     sgd = paddle.optimizer.SGD(0.1, parameters=model.parameters())
    ...     sgd = fleet.distributed_optimizer(sgd)
    ...     data = paddle.ones([8, 4]), paddle.ones([8, 1])
    ...     losses = [model.train_batch(data, sgd).item() for _ in range(9)]
    ...     return losses[-1] < losses[0] / 9
    >>> paddle.distributed.spawn(work, nprocs=2).results
    [True, True]
    """

    def __init__(self, layers, hcg, strategy):
        if not isinstance(layers, PipelineLayer):
            raise type_error(
                f"a pipeline of {type(layers).__name__}",
                "a PipelineLayer",
                hint="fleet.meta_parallel.PipelineLayer(layers, loss_fn=…)",
            )
        super().__init__(layers, "pipeline_parallel")
        view = None
        if hcg.mesh.size > 1:
            put_on_mesh(layers.parameters(), hcg.mesh)
            view = view_of(hcg.mesh)
        size, group = strategy.pipeline_configs["micro_batch_size"], hcg.get_pipe_parallel_group()
        self.pipeline = Pipeline(layers.schedule, size, group, view, len(layers.descs))
        self.parts: dict[int | None, list[Part]] = {}  # by the number of labels

    # ---- a step ------------------------------------------------------------------------------

    def train_batch(
        self, data, optimizer, lr_scheduler=None, scaler=None, loss_fn_idx=0,
        return_micro_batch_loss=False,
    ):  # fmt: skip
        """The loss of a batch, after a step of the optimizer, and of the scheduler and the scaler
        if they are given; the same in all stages.

        data: (inputs, labels): a tensor of [accumulate_steps · micro_batch_size, …], or a tuple of
        them, each. The first stage reads the inputs, the last one the labels.
        return_micro_batch_loss: return the losses of the micro-batches, [accumulate_steps]
        """
        losses = self.forward_backward_pipeline(data, scaler, loss_fn_idx)
        self.pipeline.step(optimizer, scaler)
        optimizer.clear_grad()
        if lr_scheduler is not None:
            lr_scheduler.step()
        return losses if return_micro_batch_loss else losses.mean()

    def forward_backward_pipeline(self, data, scaler=None, loss_fn_idx=0) -> Tensor:
        """The losses of the micro-batches [accumulate_steps], after the backward of the batch: the
        gradients wait in `.grad`.
        """
        if loss_fn_idx:
            raise not_supported(
                f"loss_fn_idx={loss_fn_idx}", expected="0, the loss_fn of the model"
            )
        if self._layers.loss_fn is None:
            raise value_error("train_batch of a PipelineLayer without loss_fn")
        self.train()
        scaled = scaler is not None and scaler.is_enable()
        losses = self.run(data, True, scaler.get_loss_scaling().item() if scaled else 1.0)
        add_gradients(self._layers.tied)
        return self.pipeline.losses(losses)

    def eval_batch(self, data, compute_loss=False, loss_fn_idx=0):
        """The loss of a batch in all stages if `compute_loss`, else the result of the last layer:
        in the last part's stage, None elsewhere. No weight changes.
        """
        self.eval()
        results = self.run(data, compute_loss)
        if compute_loss:
            return self.pipeline.losses([x for (x,) in results]).mean()
        return self.pipeline.join_results(results)

    def run(self, data, with_loss: bool, seed=None) -> list:
        """The results of this stage for the micro-batches of (inputs, labels)."""
        if not (isinstance(data, (tuple, list)) and len(data) == 2):
            raise type_error(f"a batch of {type(data).__name__}", "(inputs, labels)")
        inputs, labels = map(self.pipeline.cut, data)
        last, count = self._layers.schedule.parts - 1, len(labels[0]) if with_loss else None
        if count not in self.parts:
            chunks = range(self._layers.schedule.chunks)
            self.parts[count] = [Part(self._layers.function_of(k, count)) for k in chunks]

        def data_of(micro_batch: int, part: int) -> list:
            tensors = inputs[micro_batch] if part == 0 else ()
            return [*tensors, *(labels[micro_batch] if with_loss and part == last else ())]

        return self.pipeline.run(self.parts[count], data_of, seed, self._layers.bounds.__getitem__)

    def timeline(self) -> Timeline:
        """When each stage did its jobs of the last batch: a picture by `viz.pipeline`."""
        return self.pipeline.timeline()
