"""Collectives of parts of arrays, and those with a result in one rank.

| collective     | each rank gives | each rank gets                                 |
|----------------|-----------------|------------------------------------------------|
| reduce         | x               | the sum of all x, the rank `dst`               |
| gather         | x               | all x, the rank `dst`; the others None         |
| reduce_scatter | size parts      | its part of the sum                            |
| scatter        | size parts      | its part of what the rank `src` gave           |
| all_to_all     | size parts      | part number `rank` of every rank               |

They are methods of every process group, like the engine's own collectives; Paddle's names of a
group's properties are, too.
"""

from math import prod

from ...engine.core.errors import value_error
from ...engine.distributed.collectives import (
    COLLECTIVES,
    all_gather,
    part,
    reduce_arrays,
    reduce_part,
)
from ...engine.distributed.process_group import ProcessGroup, result_or_work
from ...engine.eager.device import module_of
from .point_to_point import give


class Exchanges:
    """Methods of process groups."""

    def reduce(self, array, dst: int = 0, op: str = "sum", *, wait: bool = True):
        """`all_reduce` for the rank `dst` only; the other arrays do not change."""
        return result_or_work(
            self.start_reduction("reduce", array, op, root=self.check_rank(dst)), wait
        )

    def reduce_scatter(self, array, op: str = "sum", *, wait: bool = True):
        """Part number `rank` of the sum; `array` is cut along axis 0 into one part per rank."""
        self.rows_per_rank(array)
        return result_or_work(self.start_reduction("reduce_scatter", array, op), wait)

    def gather(self, array, dst: int = 0, *, wait: bool = True):
        """`all_gather` for the rank `dst` only; the others get None."""
        return result_or_work(self.start("gather", array, root=self.check_rank(dst)), wait)

    def scatter(self, out, array=None, src: int = 0, *, wait: bool = True):
        """`out` becomes part number `rank` of the `array` of the rank `src`."""
        if self.check_rank(src) == self.rank:
            if array is None:
                raise value_error(f"scatter from rank {src}, which gives nothing")
            self.rows_per_rank(array)
        return result_or_work(self.start("scatter", array, out=out, root=src), wait)

    def all_to_all(self, array, sent=None, received=None, *, wait: bool = True):
        """Part number `rank` of every rank's `array`, one after the other along axis 0.

        `sent` and `received` are the numbers of rows to and from each rank, if they differ.
        """
        rows = None if sent is not None else self.rows_per_rank(array)
        sent = list(sent) if sent is not None else [rows] * self.size
        received = list(received) if received is not None else sent
        for what, counts in (("sent", sent), ("received", received)):
            if len(counts) != self.size:
                raise value_error(f"{len(counts)} counts of rows {what}", expected=self.size)
        if sum(sent) != array.shape[0]:
            raise value_error(f"all_to_all of {array.shape[0]} rows sends {sum(sent)}")
        return result_or_work(self.start("all_to_all", array, sent=sent, received=received), wait)

    def rows_per_rank(self, array) -> int:
        """The number of rows of each part of `array`; ValueError if it cannot be cut evenly."""
        rows = array.shape[0] if array.ndim else 0
        if not array.ndim or rows % self.size:
            raise value_error(
                f"an array of shape {list(array.shape)} for {self.size} ranks",
                expected=f"a first axis that {self.size} divides",
            )
        return rows // self.size

    # ---- Paddle's names ------------------------------------------------------------------------

    def get_group_rank(self, rank: int) -> int:
        """The number in this group of the rank `rank` of all; -1 if it is not in the group."""
        return self.ranks.index(rank) if rank in self.ranks else -1

    def is_member(self) -> bool:
        """Return True if this rank is in the group and there are others."""
        return self.rank >= 0 and self.size > 1

    nranks = world_size = ProcessGroup.size

    @property
    def name(self) -> str:
        return f"_default_pg{self.id}"

    @property
    def process_group(self) -> ProcessGroup:
        return self


give(ProcessGroup, Exchanges)


# ---- what threads do ---------------------------------------------------------------------------


def reduce(inputs, options, r: int):
    reduce_part(inputs, options[r]["op"], r, [inputs[options[r]["root"]]])
    return inputs[r]


def gather(inputs, options, r: int):
    return all_gather(inputs, options, r) if r == options[r]["root"] else None


def reduce_scatter(inputs, options, r: int):
    return reduce_arrays([part(array, len(inputs), r) for array in inputs], options[r]["op"])


def scatter(inputs, options, r: int):
    out = options[r]["out"]
    out[...] = part(inputs[options[r]["root"]], len(inputs), r).reshape(out.shape)
    return out


def all_to_all(inputs, options, r: int):
    begins = [sum(o["sent"][:r]) for o in options]
    received = [x[b : b + o["sent"][r]] for x, b, o in zip(inputs, begins, options)]
    return module_of(inputs[0]).concatenate(received)


COLLECTIVES |= {
    function.__name__: function
    for function in (all_to_all, gather, reduce, reduce_scatter, scatter)
}


def bytes_per_row(array) -> int:
    """The bytes of one row of an array that is cut along axis 0."""
    return prod(array.shape[1:]) * array.itemsize
