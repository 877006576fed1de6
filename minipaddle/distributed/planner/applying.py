"""`apply_plan`: train a model for one process in the layout that the planner chose."""

from functools import partial
from itertools import accumulate

from ...engine.core.errors import not_supported, value_error
from ...engine.sharding.placements import ProcessMesh
from ...tensor.creation import zeros
from ..auto_parallel.dist_model import DistModel
from ..auto_parallel.in_stages import stage_mesh
from ..auto_parallel.strategy import Strategy
from ..fleet.recompute import recompute
from ..pipeline.splitting import SplitPoint, trace_forward
from ..ranks.known_groups import current_groups
from ..tensors.layout import cut_parameter
from ..tensors.parallelize import parallelize
from .cost import layers_of
from .layout import Layout
from .search import SearchResult
from .splitting import LayerBlocks, blocks_of, columns_and_rows


def apply_plan(result: SearchResult, model, sample, loss, optimizer) -> DistModel:
    """The model, trained on all ranks in the best layout of a plan.

    result: the result of `plan` for as many devices as there are ranks
    model: written for one process; each rank has one, with the weights of rank 0
    sample: shape and dtype of one sample of the batch, as `plan` was given
    loss: called with the result of the model and the labels
    optimizer: of the model's parameters

    A call with this rank's part of a batch (`Layout.locate_samples`) and its labels makes a step,
    and returns the loss of the full batch in every rank. A checkpoint of the result continues in
    any layout. Each rank holds all weights of the model, but gradients and states of the optimizer
    for its own shards alone. ValueError for another number of ranks.

    >>> import minipaddle.distributed as dist
    >>> from minipaddle.distributed.planner import apply_plan, plan
    >>> from minipaddle.distributed.simulator import cluster_named
    >>> from minipaddle.static import InputSpec
    >>> from minipaddle.nn import functional as F
    >>> def work():
    ...     net = paddle.text.GPT(7, 8, layers=2, heads=2, context=6)
    ...     sample = InputSpec([6], "int64")
    ...     found = plan(net, sample, *cluster_named("1x2 CPU"), batch=4)
    ...     sgd = paddle.optimizer.SGD(0.1, parameters=net.parameters())
    ...     loss = lambda y, label: F.cross_entropy(y.flatten(0, 1), label.flatten())
    ...     model = apply_plan(found, net, sample, loss, sgd)
    ...     part, parts = found.best.layout.locate_samples(dist.get_rank())
    ...     x = paddle.ones([4 // parts, 6], "int64")
    ...     losses = [float(model(x, x)) for _ in range(9)]
    ...     return losses[-1] < losses[0]
    >>> dist.spawn(work, nprocs=2).results
    [True, True]
    """
    layout, ranks = result.best.layout, current_groups().world.size
    if layout.ranks != ranks:
        raise value_error(f"a plan for {layout.ranks} devices", expected=f"{ranks}, all ranks")
    if layout.data > 1 and layout.sharding > 1:
        raise not_supported(f"to apply {layout}", expected="data or sharding, not both")
    blocks = blocks_of(model)
    mesh = mesh_of(layout)
    if layout.model > 1:
        shard_weights(model, sample, stage_mesh(mesh))
    if layout.recompute:
        recompute_blocks(blocks)
    config = {
        "dp_config": {"sharding_level": layout.stage},
        "pp_config": {"split_spec": split_points(result, model, blocks)},
    }
    model, optimizer = parallelize(model, optimizer, mesh, config)
    how = {"schedule_mode": layout.schedule or "1F1B", "micro_batch_size": layout.micro_batch,
           "accumulate_steps": layout.micro_batches}  # fmt: skip
    strategy = Strategy({"pipeline": {"enable": True, **how}})
    return DistModel(model, None, loss, optimizer, strategy)


def mesh_of(layout: Layout) -> ProcessMesh:
    """The mesh of a layout: its axes as `parallelize` names them, with data or sharding as dp."""
    names = ("pp", "dp") if layout.sharding > 1 else ("dp", "pp")
    sizes = {"pp": layout.pipe, "dp": layout.data * layout.sharding}
    shape = [*(sizes[name] for name in names), layout.sep, layout.model]
    axes = [*names, "sep", "mp"]
    return ProcessMesh(shape=shape, process_ids=[*range(layout.ranks)], dim_names=axes)


def shard_weights(model, sample, mesh: ProcessMesh) -> None:
    """Put the weights on the mesh of a stage, sharded by columns and rows along mp."""
    x = zeros([1, *sample.shape], sample.dtype)
    placed = columns_and_rows(trace_forward(lambda x: model(x), [x], "forward"))
    for p in model.parameters():
        if id(p) in placed:
            cut_parameter(p, mesh, {"mp": placed[id(p)].dim})


def recompute_blocks(blocks: LayerBlocks) -> None:
    """Let each block keep its input alone, and compute the rest again."""
    for block in blocks.holder.children():
        block.forward = partial(recompute, block.forward)


def split_points(result: SearchResult, model, blocks: LayerBlocks) -> dict:
    """The first block of each part of the pipe, by the plan's blocks for each."""
    layout = result.best.layout
    counts = layers_of(result.job, layout)
    counts = [n // layout.chunks for n in counts for _ in range(layout.chunks)]
    names = {layer: name for name, layer in model.named_sublayers()}
    children = [*blocks.holder.children()]
    starts = [*accumulate(counts)][:-1]
    return {names[children[k]]: SplitPoint.BEGINNING for k in starts}
