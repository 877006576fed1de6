"""Predictions of published runs: `predictions()` gives a row for each of `published.toml`."""

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import minipaddle as paddle
from minipaddle.distributed.planner import Cost, Layout, Recipe, StageJob, Tally, figures
from minipaddle.distributed.simulator import (
    A100_80,
    H100,
    HDR,
    NDR,
    NVLINK3,
    NVLINK4,
    Cluster,
    Device,
)
from minipaddle.static import InputSpec

from .models import Decoder

RUNS = tomllib.loads((Path(__file__).parent / "published.toml").read_text())


class Prediction(NamedTuple):
    """A published run beside what the planner says of it."""

    run: dict
    cost: Cost
    others: list[Cost]

    @property
    def error(self) -> float:
        """How much too high the prediction is, as a share of what is published."""
        return self.errors([self.cost])[0]

    def errors(self, costs: list[Cost]) -> list[float]:
        """The same of several costs."""
        return [cost.utilization / self.run["utilization"] - 1 for cost in costs]

    @property
    def how(self) -> str:
        """Where the layout is from, and the errors of others that are as likely."""
        fitted = ", fitted" if self.run.get("fitted") else ""
        found = [f"{e:+.0%} with {c.layout.micro_batches} × {c.layout.micro_batch}"
                 for e, c in zip(self.errors(self.others), self.others, strict=True)]  # fmt: skip
        return ", ".join([self.run["layout"] + fitted, *found])


def machine(run: dict) -> tuple[Device, Cluster]:
    """The device of a run, and so many machines of eight."""
    count, name = run["name"].split(", ")[1].split()
    links = {"A100": (A100_80, NVLINK3, HDR), "H100": (H100, NVLINK4, NDR)}[name]
    device, inside, between = links
    return device, Cluster(int(count) // 8, 8, inside, between)


@lru_cache(maxsize=32)
def figures_of(model: tuple, tokens: int, ranks: int, sequence: bool) -> Tally:
    """The figures of a decoder with these arguments."""
    with paddle.LazyGuard():
        net = Decoder(**dict(model))
    return figures(net, InputSpec([tokens], "int64"), ranks, sequence=sequence)


def job_of(run: dict, ranks=()) -> StageJob:
    """A run as a job, with figures for its own ranks of tensor parallel and others."""
    recipe, model = Recipe(**RUNS["recipes"][run["source"]]), tuple(run["model"].items())
    found = {
        n: figures_of(model, run["tokens"], n, recipe.sequence)
        for n in {run["mesh"].get("model", 1), *ranks}
    }
    return StageJob(found, *machine(run), recipe)


def predictions() -> list[Prediction]:
    """All of them."""
    found = []
    for run in RUNS["run"]:
        job, mesh = job_of(run), run["mesh"]
        first, *others = [job.cost(Layout(**mesh | own)) for own in ({}, *run.get("others", ()))]
        found.append(Prediction(run, first, others))
    return found


def shown(found: list[Prediction]) -> str:
    """A line for each."""
    lines = [f"{'':24}{'published':>10}{'predicted':>10}{'error':>8}  layout"]
    for each in found:
        run, cost = each.run, each.cost
        text = f"{run['utilization']:>10.1%}{cost.utilization:>10.1%}{each.error:>+8.0%}"
        lines.append(f"{run['name']:24}{text}  {each.how}: {cost.layout}")
    return "\n".join(lines)
