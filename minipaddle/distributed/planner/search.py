"""The search for a layout: all meshes of a cluster, and all choices on each.

The memory of a layout is the first test: one that does not fit is not timed.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from ...engine.core.errors import value_error
from ...engine.core.slots import slot
from ..simulator.cluster import Cluster, Device
from .cost import Cost, Footprint, Recipe, StageJob, memory_of
from .figures import Tally, figures
from .layout import Layout

MICRO_BATCHES = (1, 2, 4, 8, 16)
"""The samples of a micro-batch that are tried."""


class SearchLimits(NamedTuple):
    """The limits of a search: the most ranks of tensor parallel and of the pipe, ZeRO's stages,
    whether a rank of the pipe may have several pieces, and whether blocks may be recomputed; the
    most ranks along sep; whether a backward may be in halves (the schedules ZBH1 and ZBV).
    """

    model: int = 8
    pipe: int = 1 << 20
    stages: Sequence[int] = (0, 1, 2, 3)
    interleaved: bool = True
    recompute: bool = True
    sep: int = 8
    halves: bool = True


class SearchResult(NamedTuple):
    """The result of a search: the costs of layouts that fit, the fastest first; layouts that do not
    fit, as (layout, memory).
    """

    job: StageJob
    batch: int
    fits: list[Cost]
    too_large: list[tuple[Layout, Footprint]]

    @property
    def best(self) -> Cost:
        """The chosen layout."""
        return self.fits[0]

    @property
    def next_best(self) -> Cost | None:
        """The fastest layout on another mesh; None if no other mesh fits."""
        mesh = self.best.layout.sizes
        return next((c for c in self.fits if c.layout.sizes != mesh), None)


def divisors(n: int) -> list[int]:
    """The numbers that divide n, in order."""
    small = [k for k in range(1, int(n**0.5) + 1) if n % k == 0]
    return sorted({*small, *(n // k for k in small)})


def meshes(job: StageJob, batch: int, limits: SearchLimits) -> Iterator[tuple[int, int, int, int]]:
    """(data, pipe, sep, model) of all meshes: tensor parallel within a machine, no stage without a
    block, each rank of data parallel with a sample at least, each rank of sep with two equal pieces
    of a sequence that attention joins.
    """
    for model in job.figures:
        if model > min(limits.model, job.cluster.devices) or job.cluster.size % model:
            continue
        for rest in divisors(job.cluster.size // model):
            sep = job.cluster.size // model // rest
            if sep > 1 and (sep > limits.sep or job.tokens % (2 * sep * model)):
                continue
            for pipe in divisors(rest):
                data = rest // pipe
                if pipe <= min(job.blocks, limits.pipe) and batch % data == 0:
                    yield data, pipe, sep, model


def orders(job: StageJob, pipe: int, m: int, limits: SearchLimits) -> Iterator[tuple[int, bool]]:
    """(chunks, halves) of the schedules of a pipe with m micro-batches."""
    pieces = [1]
    if limits.interleaved and pipe > 1 and job.blocks % pipe == 0 and m % pipe == 0:
        pieces = divisors(job.blocks // pipe)
    yield from ((chunks, False) for chunks in pieces)
    if limits.halves and pipe > 1 and m >= 2 * pipe:
        yield 1, True
        if limits.interleaved and job.blocks % (2 * pipe) == 0:
            yield 2, True


def layouts(job: StageJob, batch: int, limits: SearchLimits) -> Iterator[Layout]:
    """All layouts of a job for a batch."""
    for data, pipe, sep, model in meshes(job, batch, limits):
        for size in MICRO_BATCHES:
            m, rest = divmod(batch // data, size)
            if rest:
                continue
            choices = product(
                orders(job, pipe, m, limits), (False, True)[: 1 + limits.recompute], limits.stages
            )
            for (chunks, halves), recompute, stage in choices:
                if (stage > 0 and data == 1) or (stage > 1 and pipe > 1):
                    continue  # a stage of a pipe keeps its gradients until all are complete
                if stage == 0 and data > 1 and 1 in limits.stages:
                    continue  # stage 1 sends as much, and holds less
                inner = data if stage else 1
                mesh = data // inner, pipe, inner, sep, model
                yield Layout(*mesh, size, m, chunks, stage, recompute, halves)


CLOSE = 0.005
"""Steps that differ by less count as equal: the model is not so exact."""


@slot("planner.choose")
def choose(costs: list[Cost]) -> list[Cost]:
    """The costs of layouts that fit, the best first: the shortest step, and of about equal ones the
    simplest: without recomputation or parts of sequences, of a lower stage of ZeRO, with fewer
    stages, whole backwards, fewer pieces.
    """
    shortest = min(c.seconds.total for c in costs)
    return sorted(costs, key=lambda c: (int((c.seconds.total / shortest - 1) / CLOSE), effort(c)))


def effort(cost: Cost) -> tuple:
    """The demands of a layout, besides time."""
    how = cost.layout
    mesh = how.sep, how.stage, how.pipe, how.halves, how.chunks, how.model
    return how.recompute, *mesh, cost.seconds.total


def search(job: StageJob, batch: int, limits: SearchLimits | None = None) -> SearchResult:
    """Sort the layouts of a job for a batch by cost. ValueError with the nearest if none fits."""
    fits, too_large = [], []
    for layout in layouts(job, batch, limits or SearchLimits()):
        memory = memory_of(job, layout)
        if memory.total > job.device.memory:
            too_large.append((layout, memory))
        else:
            fits.append(job.cost(layout))
    if not fits:
        raise build_misfit_error(job, batch, too_large)
    return SearchResult(job, batch, choose(fits), too_large)


UNITS = (1e9, "GB"), (1e6, "MB"), (1e3, "KB")


def unit_of(memory: float) -> tuple[float, str]:
    """The unit for the bytes of devices with this much memory, and its name."""
    return next((each for each in UNITS if memory >= each[0]), UNITS[-1])


def build_misfit_error(job: StageJob, batch: int, too_large: list) -> ValueError:
    """Build the error if no layout fits."""
    count, (size, unit) = job.cluster.size, unit_of(job.device.memory)
    job_text = f"a batch of {batch} on {count} devices of {job.device.memory / size:.3g} {unit}"
    if not too_large:
        hint = f"a multiple of {count}"
        return value_error(job_text, "a batch that the ranks of data parallel divide", hint=hint)
    layout, memory = min(too_large, key=lambda pair: pair[1].total)
    nearest = f"{memory.total / size:.3g} {unit} for each device with {layout}"
    return value_error(job_text, f"at least {nearest}", hint="more devices, or a shorter sequence")


def plan(
    model,
    sample,
    device: Device,
    cluster: Cluster,
    batch: int,
    *,
    recipe: Recipe | None = None,
    limits: SearchLimits | None = None,
    loss=None,
) -> SearchResult:
    """Search the best layout of a training job, with its cost and the costs of the others.

    model: a `Layer` with a list of equal blocks; made under `paddle.LazyGuard` it takes no memory
    sample: shape and dtype of one sample of the batch, such as `InputSpec([4096], "int64")`
    device, cluster: the devices, and their links
    batch: the samples of a step
    recipe, limits: the settings of training, and of the search
    loss: see `figures`
    ValueError if nothing fits.

    >>> from minipaddle.distributed.planner import SearchLimits, plan
    >>> from minipaddle.distributed.simulator import H100, NVLINK4, Cluster
    >>> from minipaddle.static import InputSpec
    >>> with paddle.LazyGuard():
    ...     net = paddle.text.GPT(4096, 1024, layers=4, heads=8, context=512)
    >>> sample, cluster = InputSpec([512], "int64"), Cluster(1, 8, NVLINK4)
    >>> found = plan(net, sample, H100, cluster, 64, limits=SearchLimits(model=1))
    >>> print(found.best.layout)
    sharding 8; 1 × 8, ZeRO-1
    """
    recipe, limits = recipe or Recipe(), limits or SearchLimits()
    by_ranks: dict[int, Tally] = {}
    ranks = 1
    while ranks <= min(limits.model, cluster.devices, cluster.size):
        if cluster.size % ranks == 0:
            by_ranks[ranks] = figures(model, sample, ranks, loss, recipe.sequence, recipe.half)
        ranks *= 2
    return search(StageJob(by_ranks, device, cluster, recipe), batch, limits)
