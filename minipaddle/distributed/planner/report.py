"""The report on a search: the plan, its cost, its reasons, and the cost of the next best."""

from collections.abc import Iterator

from ...engine.core.errors import value_error
from .cost import Cost, Footprint
from .layout import Layout
from .search import SearchResult, unit_of

COMPARED = ("model", "sep", "pipe", "chunks", "halves", "micro_batch", "stage", "recompute")
"""The fields of a layout that the report compares with other choices."""
NAMES = {"micro_batch": "micro-batch", "stage": "ZeRO stage", "halves": "backward in halves"}


def describe(result: SearchResult) -> str:
    """The report on a search.

    >>> from minipaddle.distributed.planner import SearchLimits, describe, plan
    >>> from minipaddle.distributed.simulator import cluster_named
    >>> from minipaddle.static import InputSpec
    >>> with paddle.LazyGuard():
    ...     net = paddle.text.GPT(4096, 1024, layers=4, heads=8, context=512)
    >>> sample, cluster = InputSpec([512], "int64"), cluster_named("1x8 H100")
    >>> found = plan(net, sample, *cluster, 64, limits=SearchLimits(model=1))
    >>> print(describe(found).splitlines()[0])
    plan      sharding 8; 1 × 8, ZeRO-1
    """
    best = result.best
    lines = [("plan", str(best.layout)), ("step", step(best)), ("memory", memory(result, best))]
    lines.append(("binds", name_bottleneck(result)))
    lines += [("instead" if k == 0 else "", words) for k, words in enumerate(reasons(result))]
    after = result.next_best
    lines.append(("next", f"{after.layout}: {more(result, after)}" if after else "no other mesh"))
    tried = len(result.fits) + len(result.too_large)
    lines.append(("tried", f"{tried:,} layouts, of which {len(result.fits):,} fit"))
    return "\n".join(f"{head:<10}{words}" for head, words in lines)


def step(cost: Cost) -> str:
    """The seconds of a step, by their causes."""
    total = cost.seconds.total
    names = ("computing", "tensor parallel", "bubble", "gradients", "update", "keys and values")
    parts = zip(names, cost.seconds, strict=True)
    shares = ", ".join(f"{name} {t / total:.1%}" for name, t in parts if t / total >= 0.0005)
    return f"{total:.3g} s, {cost.utilization:.1%} of the devices' peak: {shares}"


def memory(result: SearchResult, cost: Cost) -> str:
    """The bytes of the fullest device, by their contents."""
    limit = result.job.device.memory
    size, unit = unit_of(limit)
    parts = zip(Footprint._fields, cost.memory, strict=True)
    held = ", ".join(f"{name} {n / size:.3g}" for name, n in parts)
    return f"{cost.memory.total / size:.3g} of {limit / size:.3g} {unit}: {held}"


def name_bottleneck(result: SearchResult) -> str:
    """The bottleneck of the step."""
    best, limit = result.best, result.job.device.memory
    share = best.memory.total / limit
    lost = {
        "the links of tensor parallel": best.seconds.tensor,
        "the bubble of the pipe": best.seconds.bubble,
        "the links of data parallel": best.seconds.data,
        "keys and values along sep": best.seconds.sep,
    }
    name = max(lost, key=lost.get)
    full = f"memory: {share:.0%} is full" if share > 0.75 else f"not memory: {share:.0%} is full"
    wait = lost[name] / best.seconds.total
    return full + (f"; of waiting most is for {name}, {wait:.1%}" if wait >= 0.0005 else "")


def reasons(result: SearchResult) -> Iterator[str]:
    """The cost of each choice next to the plan's, with the best of all else."""
    best, (size, unit) = result.best.layout, unit_of(result.job.device.memory)
    for field in COMPARED:
        chosen = getattr(best, field)
        fits: dict = {}
        for cost in result.fits:
            fits.setdefault(getattr(cost.layout, field), cost)
        large: dict = {}
        for layout, held in result.too_large:
            key = getattr(layout, field)
            if key not in large or held.total < large[key].total:
                large[key] = held
        known = sorted({*fits, *large})
        near = [v for v in known if v < chosen][-1:] + [v for v in known if v > chosen][:1]
        for value in near:
            name = NAMES.get(field, field)
            choice = f"{name} {value if type(value) is int else 'yes' if value else 'no'}"
            if value in fits:
                total = fits[value].memory.total
                yield f"{choice}: {more(result, fits[value])}, {total / size:.3g} {unit}"
            else:
                yield f"{choice}: does not fit, {large[value].total / size:.3g} {unit} at least"


def more(result: SearchResult, cost: Cost) -> str:
    """The extra time of a step of another layout, as a share."""
    return f"{cost.seconds.total / result.best.seconds.total - 1:+.1%}"


def mesh_map(result: SearchResult) -> dict[tuple[int, int], tuple[Layout, float | None, float]]:
    """For each (pipe, model): the best layout, the ratio of its step to the plan's (None:
    nothing fits), and the bytes of its fullest device (of the smallest, if nothing fits).
    """
    if not result.fits:
        raise value_error("a map of no layouts")
    cells: dict = {}
    for cost in result.fits:
        ratio = cost.seconds.total / result.best.seconds.total
        known = cost.layout, ratio, cost.memory.total
        cells.setdefault((cost.layout.pipe, cost.layout.model), known)
    for layout, held in result.too_large:
        key = layout.pipe, layout.model
        if key not in cells or (cells[key][1] is None and held.total < cells[key][2]):
            cells[key] = layout, None, held.total
    return cells
