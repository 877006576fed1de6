"""The cost of a step of a layout: seconds by use, bytes by content."""

from typing import NamedTuple

from ...engine.core.slots import slot
from ..simulator.cluster import Cluster, Device, Link
from .counting import PARTS, KernelCost, Size, scale
from .figures import Tally
from .layout import Layout
from .pipes import halves_seconds, live_of, pipeline_seconds, stage_layers


class Recipe(NamedTuple):
    """The settings of training in every layout: bytes of a parameter in weights, gradients and
    optimizer (Adam: a copy in float32 and two moments), and the abilities of its software.
    """

    weights: int = 2
    gradients: int = 4
    states: int = 12
    clip: bool = True  # gradients by their norm
    fused_attention: bool = True
    fused_loss: bool = True
    overlap_tensor: bool = True  # collectives of tensor parallel and sep, with computation
    overlap_data: bool = True  # collectives of gradients and weights, with computation
    sequence: bool = True  # shard the sequence where tensor parallel shards nothing
    half: bool = True  # layers of float32 compute in half precision
    messages: int = 1  # collectives for a block's weights in stage 3; else one for all


OURS = Recipe(weights=4, gradients=4, states=8, clip=False, fused_attention=False,
              overlap_tensor=False, overlap_data=False, sequence=False, half=False,
              messages=5)  # fmt: skip
"""The recipe of `apply_plan` in float32, with Adam's two moments: collectives do not overlap; for
ZeRO-3 `partition` makes about five in a block."""


class Seconds(NamedTuple):
    """A step: computing; waiting for tensor parallel, for a full pipe, for gradients and weights;
    the update; waiting for keys and values of other parts of the sequence.
    """

    compute: float
    tensor: float
    bubble: float
    data: float
    update: float
    sep: float = 0.0

    @property
    def total(self) -> float:
        return sum(self)


class Footprint(NamedTuple):
    """The bytes of the fullest device."""

    weights: float
    gradients: float
    states: float
    activations: float

    @property
    def total(self) -> float:
        return sum(self)


class Cost(NamedTuple):
    """The seconds and bytes of a step of a layout; the share of the devices' operations that the
    model's own products are, with attention counted as if nothing was masked.
    """

    layout: Layout
    seconds: Seconds
    memory: Footprint
    utilization: float


class Pass(NamedTuple):
    """Seconds of a part's forward or backward on one micro-batch: computing, waiting for the
    collectives of tensor parallel, and for other parts of the sequence. `weights` is the share of
    `compute` that the gradients of weights take.
    """

    compute: float
    tensor: float
    sep: float = 0.0
    weights: float = 0.0

    @property
    def total(self) -> float:
        return self.compute + self.tensor + self.sep


class StageJob:
    """A model on a cluster, which costs layouts. `figures` are by the ranks of tensor parallel;
    `operations` are the model's for one sample.
    """

    def __init__(self, figures: dict[int, Tally], device: Device, cluster: Cluster, recipe=None):
        self.figures, self.device, self.cluster = figures, device, cluster
        self.recipe = recipe or Recipe()
        tally = figures[min(figures)]
        self.blocks = tally.blocks
        parts = {part: tally.operations(1, part) for part in PARTS}
        parts["block"] *= self.blocks
        self.operations = tally.ranks * sum(parts.values())
        self.tokens = next((n for n, _ in tally.list_attended("block")), 1)
        self.passes: dict = {}
        self.layers: dict = {}

    def cost(self, layout: Layout) -> Cost:
        """The cost of a step of a layout."""
        memory, took = memory_of(self, layout), seconds_of_step(self, layout)
        done = self.operations * layout.batch / took.total
        share = done / (self.device.operations * layout.ranks)
        return Cost(layout, took, memory, share)

    def part(self, layout: Layout, part: str, backward: bool) -> Pass:
        """The seconds of a part's forward or backward on a micro-batch."""
        key = *kernels_of(layout), part, backward
        if key not in self.passes:
            cost = pass_of(self, layout, part, backward)
            if backward and layout.recompute and part == "block":
                again = self.part(layout, part, False)
                cost = Pass(*(a + b for a, b in zip(cost, again, strict=True)))
            self.passes[key] = cost
        return self.passes[key]

    def both(self, layout: Layout, part: str) -> float:
        """The seconds of a part's forward and backward on a micro-batch."""
        return sum(self.part(layout, part, backward).total for backward in (False, True))


# ---- time --------------------------------------------------------------------------------------


def kernels_of(layout: Layout) -> tuple:
    """The fields of a layout that the kernels of a rank depend on."""
    return layout.model, layout.share, layout.sep, layout.recompute, layout.micro_batches > 1


def kernel_seconds(
    kernel: KernelCost, batch: float, prime: int, device: Device, recipe: Recipe, adds: bool
) -> float:
    """The time of a kernel: it computes, or waits for memory. If it `adds` gradients to those of
    other micro-batches it reads and writes them; else it writes them.
    """
    sizes = [tuple(scale(n, batch, prime) for n in p) for p in kernel.products]
    gradient = recipe.gradients * (1 + adds)
    values = kernel.moved if recipe.fused_loss or not kernel.apart else kernel.apart
    moved = sum(s.nbytes(batch, prime) for s in values) + kernel.gradients * gradient
    if kernel.on_chip and recipe.fused_attention:
        done = sum(2 * b * m * n * k for b, m, n, k in sizes) / (2 if kernel.masked else 1)
        compute = done / (device.operations * device.attention)
    else:
        width = gradient if kernel.gradients else 2
        compute = sum(device.product(*p, width) for p in sizes)
        moved += sum(s.nbytes(batch, prime) for s in kernel.on_chip)
    return device.launch + max(compute, moved / device.bandwidth)


def pass_of(job: StageJob, layout: Layout, part: str, backward: bool) -> Pass:
    """One part's forward or backward."""
    device, recipe, tally = job.device, job.recipe, job.figures[layout.model]
    mine = [k for k in tally.kernels if (k.part, k.backward) == (part, backward)]
    settings = layout.share, tally.prime, device, recipe, layout.micro_batches > 1
    took = [(k, kernel_seconds(k, *settings)) for k in mine]
    sent = [(s.size, s.half) for s in tally.sent if (s.part, s.backward) == (part, backward)]
    if backward:
        sent += [(size, True) for size in tally.kept[part].gathered]
    waits = sum(
        collective(tally.ranks, 1, size.nbytes(layout.share, tally.prime), job.cluster, half)
        for size, half in sent
    )
    if recipe.overlap_tensor and tally.ranks > 1:
        # the first piece is waited for, the others arrive during computation
        first, products = waits / tally.ranks, sum(t for k, t in took if k.products)
        waits = first + max(0.0, waits - first - products)
    weights = sum(t for k, t in took if k.gradients) / device.whole
    computing = sum(t for _, t in took) / device.whole
    attention = sum(t for k, t in took if tally.joins(k)) if recipe.overlap_tensor else 0.0
    apart = max(0.0, sequence_seconds(job, layout, part, backward) - attention)
    return Pass(computing, waits, apart, weights)


def sequence_seconds(job: StageJob, layout: Layout, part: str, backward: bool) -> float:
    """The time of keys and values of the full sequence in a ring to all ranks along sep; in the
    backward their gradients return. A rank has an early and a late piece, so that all compute
    equally much. Source: Liu et al., "Ring Attention with Blockwise Transformers for
    Near-Infinite Context", 2023.
    """
    tally, stride = job.figures[layout.model], layout.stride("sep")
    sizes = (s.nbytes(layout.micro_batch, tally.prime) for _, s in tally.list_attended(part))
    return sum(collective(layout.sep, stride, n, job.cluster, not backward) for n in sizes)


def collective(n: int, stride: int, nbytes: float, cluster: Cluster, half: bool = False) -> float:
    """The seconds of an all-reduce among n ranks that are `stride` apart, while all others do the
    same, in the rings of `all_reduce_along`: within machines, and between machines. `half` of it is
    an all-gather, or a reduce-scatter.

    >>> from minipaddle.distributed.planner.cost import collective
    >>> from minipaddle.distributed.simulator import NDR, NVLINK4, Cluster
    >>> cluster = Cluster(8, 8, NVLINK4, NDR)
    >>> [f"{1e3 * collective(8, stride, 1e9, cluster):.1f} ms" for stride in (1, 8)]
    ['4.0 ms', '35.1 ms']
    """
    near = max(1, min(n, cluster.devices // stride))
    near = near if n % near == 0 else 1
    far = n // near
    inside = 2 * (near - 1) * cluster.inside.seconds(nbytes / near)
    shared = cluster.devices * nbytes / n  # all devices of a machine send at once
    between = 2 * (far - 1) * cluster.between.seconds(shared) if far > 1 else 0.0
    return (inside + between) / (2 if half else 1)


def layers_of(job: StageJob, layout: Layout) -> list[int]:
    """The blocks of each stage; as many in each where a rank has several pieces."""
    if layout.chunks > 1:
        return [job.blocks // layout.pipe] * layout.pipe
    key = *kernels_of(layout), layout.pipe
    if key not in job.layers:
        block, first, last = (job.both(layout, part) for part in ("block", "first", "last"))
        job.layers[key] = stage_layers(job.blocks, layout.pipe, first / block, last / block)
    return job.layers[key]


def seconds_of_step(job: StageJob, layout: Layout) -> Seconds:
    """The seconds of a step."""
    layers, m = layers_of(job, layout), layout.micro_batches
    block, first, last = (job.both(layout, part) for part in ("block", "first", "last"))
    stages = [n * block for n in layers]
    stages[0] += first
    end = 0 if layout.folded else -1
    stages[end] += last
    k = stages.index(max(stages))
    parts = [(layers[k], "block"), (k == 0, "first"), (k == range(layout.pipe)[end], "last")]
    forward, backward = (
        Pass(*(sum(n * x for n, x in zip(counts, column)) for column in zip(*passes)))
        for counts, passes in (
            ([n for n, _ in parts], [job.part(layout, part, b) for _, part in parts])
            for b in (False, True)
        )
    )
    compute, tensor, sep, _ = (m * (a + b) for a, b in zip(forward, backward, strict=True))
    if layout.halves:
        late = backward.weights
        pipe = halves_seconds(layout, (forward.total, backward.total - late, late))
    else:
        pipe = pipeline_seconds(stages, m, layout.chunks)
    bubble = max(0.0, pipe + hops(job, layout) - compute - tensor - sep)
    data = data_seconds(job, layout, max(layers), forward.total, backward.total)
    update = update_seconds(job, layout, max(layers))
    return Seconds(compute, tensor, bubble, data, update, sep)


def hops(job: StageJob, layout: Layout) -> float:
    """Waiting for messages between stages while the pipe fills and empties; otherwise they overlap
    with computing.
    """
    if layout.pipe == 1:
        return 0.0
    tally = job.figures[layout.model]
    nbytes = tally.entry.nbytes(layout.share, tally.prime)
    nbytes /= layout.model if job.recipe.sequence else 1
    near = layout.stride("pipe") < job.cluster.devices
    link = job.cluster.inside if near else share_of(job.cluster)
    return 2 * (layout.pipe - 1) * link.seconds(nbytes)


def share_of(cluster: Cluster) -> Link:
    """A device's share of the link between machines."""
    return cluster.between._replace(bandwidth=cluster.between.bandwidth / cluster.devices)


def parameters_of(job: StageJob, layout: Layout, layers: int) -> int:
    """The parameters of the fullest stage, before ZeRO."""
    weights = job.figures[layout.model].weights
    both, one = (weights["first"], weights["last"]), layout.pipe == 1 or layout.folded
    return layers * weights["block"] + (sum(both) if one else max(both))


def data_seconds(
    job: StageJob, layout: Layout, layers: int, forward: float, backward: float
) -> float:
    """Waiting for gradients and weights. In stage 1 they travel once, during the last backward and
    the next forward; from stage 2 on gradients travel in each micro-batch, in stage 3 weights, too.
    """
    recipe, size = job.recipe, parameters_of(job, layout, layers)
    gather, scatter = size * recipe.weights, size * recipe.gradients
    inner, outer = layout.sharding, layout.data
    pieces = layers * recipe.messages if layout.stage == 3 else 1
    travel = lambda nbytes, axis, n, half=False: (
        pieces * collective(n, layout.stride(axis), nbytes / pieces, job.cluster, half)
    )
    gathers = travel(gather, "sharding", inner, True)
    scatters = travel(scatter, "sharding", inner, True)
    once = sum(travel(scatter / inner, a, n) for a, n in (("data", outer), ("sep", layout.sep)))
    hidden = recipe.overlap_data
    # nothing overlaps with the weights, or the gradients, of the first layer
    first = job.figures[layout.model].weights["first"] / size
    wait = lambda took, beside: (
        first * took + max(0.0, (1 - first) * took - beside) if hidden else took
    )
    if layout.stage <= 1:
        return wait(scatters + once, backward) + wait(gathers, forward)
    m = layout.micro_batches
    total = (m - 1) * wait(scatters, backward) + wait(scatters + once, backward)
    if layout.stage == 2:
        return total + wait(gathers, forward)
    total = (m - 1) * wait(scatters + gathers, backward) + wait(scatters + once + gathers, backward)
    return total + m * wait(gathers, forward)


def update_seconds(job: StageJob, layout: Layout, layers: int) -> float:
    """The optimizer reads gradients and its states, and writes states and weights. Before that
    clipping reads gradients for their norm, and reads and writes them to scale them.
    """
    recipe, size = job.recipe, parameters_of(job, layout, layers)
    size /= layout.sharding if layout.stage else 1
    gradients = recipe.gradients * (4 if recipe.clip else 1)
    return size * (gradients + 2 * recipe.states + recipe.weights) / job.device.bandwidth


# ---- memory ------------------------------------------------------------------------------------


def count_bytes(sizes: list[Size], batch: float, prime: int) -> float:
    return sum(s.nbytes(batch, prime) for s in sizes)


@slot("planner.memory")
def memory_of(job: StageJob, layout: Layout) -> Footprint:
    """The bytes of the fullest device: the first stage, or the last."""
    tally, recipe, batch = job.figures[layout.model], job.recipe, layout.share
    layers = layers_of(job, layout)
    kept = count_bytes(tally.kept["block"].sizes, batch, tally.prime)
    entry = tally.entry.nbytes(batch, tally.prime) / (layout.model if recipe.sequence else 1)
    divisor = lambda stage: layout.sharding if layout.stage >= stage else 1
    stages = []
    for k in {0, layout.pipe - 1}:
        end = 0 if layout.folded else layout.pipe - 1
        ends = [p for p, present in (("first", k == 0), ("last", k == end)) if present]
        size = layers[k] * tally.weights["block"] + sum(tally.weights[p] for p in ends)
        live = live_of(layout, k)
        held = live * layers[k] * (entry if layout.recompute else kept)
        held += kept if layout.recompute else 0
        held += sum(count_bytes(tally.kept[p].sizes, batch, tally.prime) for p in ends)
        gathered = tally.weights["block"] * recipe.weights * 2 if layout.stage == 3 else 0
        stages.append(
            Footprint(
                size * recipe.weights / divisor(3) + gathered,
                size * recipe.gradients / divisor(2),
                size * recipe.states / divisor(1),
                held,
            )
        )
    return max(stages, key=lambda each: each.total)
