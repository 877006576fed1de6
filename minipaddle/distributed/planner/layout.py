"""A layout of a job on the devices of a cluster. It is data; `cost.py` computes its cost.

Ranks have Paddle's numbers: consecutive along model, then along sep, sharding, pipe, and data last.
"""

from math import prod
from typing import NamedTuple

from ...engine.core.errors import value_error
from ...engine.core.slots import slot
from ..pipeline.schedules import SCHEDULES

AXES = ("data", "pipe", "sharding", "sep", "model")
"""The axes of the mesh; the last one varies fastest."""


class Layout(NamedTuple):
    """The ranks along each dimension of the mesh; the cuts of the batch; the ways to save memory.

    A step computes `micro_batches` of `micro_batch` samples, one after the other, on each of
    data × sharding ranks; the ranks along sep have equal parts of each sample's sequence. A rank
    has `chunks` pieces of the pipe (more than one: interleaved). With `halves` the gradients of
    weights are computed apart, where the pipe would be idle. `stage` is ZeRO's along the axis
    sharding. With `recompute` a block keeps its input alone.
    """

    data: int = 1
    pipe: int = 1
    sharding: int = 1
    sep: int = 1
    model: int = 1
    micro_batch: int = 1
    micro_batches: int = 1
    chunks: int = 1
    stage: int = 0
    recompute: bool = False
    halves: bool = False

    @property
    def sizes(self) -> tuple[int, ...]:
        """The ranks along each of `AXES`."""
        return self[: len(AXES)]

    @property
    def ranks(self) -> int:
        """All ranks."""
        return prod(self.sizes)

    @property
    def batch(self) -> int:
        """The samples of a step."""
        return self.data * self.sharding * self.micro_batch * self.micro_batches

    @property
    def share(self) -> float:
        """The number of samples whose tokens a rank has at once."""
        return self.micro_batch / self.sep

    @property
    def schedule(self) -> str:
        """The name of the order in which a stage computes its micro-batches."""
        names = ("ZBH1", "ZBV") if self.halves else ("1F1B", "VPP")
        return names[self.chunks > 1] if self.pipe > 1 else ""

    @property
    def folded(self) -> bool:
        """Whether the first stage has the last piece of the pipe, too."""
        return self.pipe > 1 and SCHEDULES[self.schedule].folded

    def stride(self, axis: str) -> int:
        """The distance of neighbours along an axis.

        >>> from minipaddle.distributed.planner import Layout
        >>> Layout(data=2, pipe=3, model=8).stride("pipe")
        8
        """
        return prod(self.sizes[AXES.index(axis) + 1 :])

    def locate_samples(self, rank: int) -> tuple[int, int]:
        """The number of a rank's part of a batch, and the number of parts.

        >>> from minipaddle.distributed.planner import Layout
        >>> [Layout(data=2, model=2).locate_samples(rank) for rank in range(4)]
        [(0, 2), (0, 2), (1, 2), (1, 2)]
        """
        at = dict(zip(AXES, coordinates(rank, self.sizes)))
        return at["data"] * self.sharding + at["sharding"], self.data * self.sharding

    def __str__(self) -> str:
        axes = [f"{name} {n}" for name, n in zip(AXES, self.sizes) if n > 1] or ["one device"]
        how = [f"{self.micro_batches} × {self.micro_batch}"]
        chunks = f" of {self.chunks} chunks" if self.chunks > 1 else ""
        how += [self.schedule + chunks] if self.schedule not in ("", "1F1B") else []
        how += [f"ZeRO-{self.stage}"] if self.stage and self.sharding > 1 else []
        how += ["recompute"] if self.recompute else []
        return f"{' × '.join(axes)}; {', '.join(how)}"


@slot("planner.coordinates")
def coordinates(rank: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The coordinate of a rank in a grid of `sizes`; along the last axis ranks are consecutive.
    ValueError for a rank that is not in it.

    >>> from minipaddle.distributed.planner.layout import coordinates
    >>> [coordinates(r, (2, 3)) for r in (0, 1, 3, 5)]
    [(0, 0), (0, 1), (1, 0), (1, 2)]
    """
    if not 0 <= rank < prod(sizes):
        raise value_error(f"rank {rank} of a grid of {sizes}", expected=f"0 to {prod(sizes) - 1}")
    coordinate = []
    for n in reversed(sizes):
        rank, k = divmod(rank, n)
        coordinate.append(k)
    return tuple(reversed(coordinate))
