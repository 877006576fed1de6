"""The map of a planner: how long a step takes on each mesh, and where it does not fit."""

from __future__ import annotations

from ...distributed.planner.report import mesh_map
from ...distributed.planner.search import Planned
from ..picture import Picture, figure

LONGEST = 2.0
"""The ratio to the best step time from which all meshes have one colour."""


def plan_map(found: Planned, title: str = "") -> Picture:
    """A field for each mesh: the ranks of tensor parallel across, the stages of the pipe down, and
    data parallel with the rest. The darker, the shorter the step; what fits on no device is hatched
    and says how many GB it needs.

    found: what `distributed.planner.plan` returns

    >>> from minipaddle import viz
    >>> from minipaddle.distributed.planner import Limits, plan
    >>> from minipaddle.distributed.simulator import cluster_named
    >>> from minipaddle.static import InputSpec
    >>> with paddle.LazyGuard():
    ...     net = paddle.text.GPT(4096, 1024, layers=4, heads=8, context=512)
    >>> sample, cluster = InputSpec([512], "int64"), cluster_named("1x8 H100")
    >>> found = plan(net, sample, *cluster, 64, limits=Limits(model=1))
    >>> [line.split()[:3] for line in viz.plan_map(found).text.splitlines()[1:2]]
    [['pipe', '1', 'best']]
    """
    cells = mesh_map(found)
    pipes, models = sorted({p for p, _ in cells}), sorted({t for _, t in cells})
    fig, axis = figure(1.2 + 1.1 * len(models), 1.0 + 0.42 * len(pipes))
    for (pipe, model), (_, ratio, nbytes) in cells.items():
        x, y = models.index(model), pipes.index(pipe)
        shade = 1.0 if ratio is None else min(1.0, max(0.0, ratio - 1) / (LONGEST - 1))
        look = {"color": "white", "hatch": "////"} if ratio is None else {"color": colour(shade)}
        axis.bar(x, 0.94, 0.96, y - 0.47, edgecolor="#888888", linewidth=0.5, **look)
        ink = "white" if shade < 0.45 else "black"
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1} if ratio is None else None
        where = {"ha": "center", "va": "center", "fontsize": 7}
        axis.text(x, y, label(ratio, nbytes), color=ink, bbox=box, **where)
    axis.set(xticks=range(len(models)), xticklabels=models, xlabel="model", ylabel="pipe")
    axis.set(yticks=range(len(pipes)), yticklabels=pipes, xlim=(-0.5, len(models) - 0.5))
    axis.set_ylim(len(pipes) - 0.5, -0.5)
    axis.set_title(title or f"{found.best.layout}", fontsize=8, loc="left")
    return Picture(fig, "\n".join(lines(cells, pipes, models)))


def colour(shade: float) -> tuple[float, float, float]:
    """From blue, for the shortest step, to nearly white."""
    return tuple(dark + (0.95 - dark) * shade for dark in (0.0, 0.447, 0.698))


def label(ratio: float | None, nbytes: float) -> str:
    """What a field says."""
    if ratio is None:
        return f"{nbytes / 1e9:.3g} GB"
    return "best" if ratio == 1 else f"{ratio - 1:+.0%}"


def lines(cells: dict, pipes: list[int], models: list[int]) -> list[str]:
    """The map for a terminal."""
    found = [f"{'':<8}" + "".join(f"{f'model {t}':>10}" for t in models)]
    for pipe in pipes:
        row = [label(*cells[pipe, t][1:]) if (pipe, t) in cells else "" for t in models]
        found.append(f"{f'pipe {pipe}':<8}" + "".join(f"{text:>10}" for text in row))
    return [line.rstrip() for line in found]
