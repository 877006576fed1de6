"""The map of a planner: how long a step takes on each mesh, and where it does not fit."""

from ...distributed.planner.report import mesh_map
from ...distributed.planner.search import SearchResult
from ..chart import Bar, Panel, Picture, chart
from ..gradient_norms import blend

LONGEST = 2.0
"""The ratio to the best step time from which all meshes have one colour."""


def plan_map(found: SearchResult, title: str = "") -> Picture:
    """A field for each mesh: the ranks of tensor parallel across, the stages of the pipe down, and
    data parallel with the rest. The darker, the shorter the step; what fits on no device is hatched
    and says how many GB it needs.

    found: what `distributed.planner.plan` returns

    >>> from minipaddle import viz
    >>> from minipaddle.distributed.planner import SearchLimits, plan
    >>> from minipaddle.distributed.simulator import cluster_named
    >>> from minipaddle.static import InputSpec
    >>> with paddle.LazyGuard():
    ...     net = paddle.text.GPT(4096, 1024, layers=4, heads=8, context=512)
    >>> sample, cluster = InputSpec([512], "int64"), cluster_named("1x8 H100")
    >>> found = plan(net, sample, *cluster, 64, limits=SearchLimits(model=1))
    >>> [line.split()[:3] for line in viz.plan_map(found).text.splitlines()[1:2]]
    [['pipe', '1', 'best']]
    """
    cells = mesh_map(found)
    pipes, models = sorted({p for p, _ in cells}), sorted({t for _, t in cells})
    bars = []
    for (pipe, model), (_, ratio, nbytes) in cells.items():
        part = 1.0 if ratio is None else min(1.0, max(0.0, ratio - 1) / (LONGEST - 1))
        colour, ink = blend(*SHADES, part), "white" if part < 0.45 else "black"
        look = {"high": 0.94, "edgecolor": "#888888"} | (TOO_LARGE if ratio is None else {})
        box = pipes.index(pipe), models.index(model) - 0.48, 0.96
        bars.append(Bar.in_row(*box, colour, label(ratio, nbytes), "middle", ink, **look))
    axes = {"xticks": range(len(models)), "xticklabels": models, "xlabel": "model"}
    panel = Panel(bars, title or f"{found.best.layout}", pipes, axes=axes | {"ylabel": "pipe"})
    text = "\n".join(lines(cells, pipes, models))
    size = 1.2 + 1.1 * len(models), 1.0 + 0.42 * len(pipes)
    return chart(size, [panel], text)


SHADES = "#0072b2", "#f2f2f2"
"""From the shortest step to the longest."""
TOO_LARGE = {"facecolor": "white", "hatch": "////", "edgecolor": "#dddddd"}


def label(ratio: float | None, nbytes: float) -> str:
    """The text of a field."""
    if ratio is None:
        return f"{nbytes / 1e9:.3g} GB"
    return "best" if ratio == 1 else f"{ratio - 1:+.0%}"


def lines(cells: dict, pipes: list[int], models: list[int]) -> list[str]:
    """The map for a terminal."""
    rows = [f"{'':<8}" + "".join(f"{f'model {t}':>10}" for t in models)]
    for pipe in pipes:
        row = [label(*cells[pipe, t][1:]) if (pipe, t) in cells else "" for t in models]
        rows.append(f"{f'pipe {pipe}':<8}" + "".join(f"{text:>10}" for text in row))
    return [line.rstrip() for line in rows]
