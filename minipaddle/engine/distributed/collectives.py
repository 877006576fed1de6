"""The results of collectives, when the arrays of all ranks are in one memory."""

from __future__ import annotations

from typing import NamedTuple

from ..core.rank import NO_CAUSE, Cause
from ..core.record import Spec
from ..eager.device import module_of

COMBINE = {"sum": "add", "max": "maximum", "min": "minimum", "prod": "multiply"}
"""The function of the array module that combines two ranks' values."""


def reduce_arrays(arrays, op: str):
    """The sum (or maximum, …) of arrays, in the order of their ranks."""
    m = module_of(arrays[0])
    combine, total = getattr(m, COMBINE[op]), arrays[0].copy()
    for array in arrays[1:]:
        combine(total, array, out=total)
    return total


def part(array, parts: int, k: int):
    """Part `k` of an array that is cut into `parts` along axis 0."""
    n = len(array)
    return array[n * k // parts : n * (k + 1) // parts]


def reduce_part(arrays, op: str, r: int, into) -> None:
    """Reduce part number `r` of the elements, and write it to each array of `into`."""
    total = reduce_arrays([part(x.reshape(-1), len(arrays), r) for x in arrays], op)
    for array in into:
        part(array.reshape(-1), len(arrays), r)[...] = total


def all_reduce(inputs, options, r: int):
    reduce_part(inputs, options[r]["op"], r, inputs)
    return inputs[r]


def broadcast(inputs, options, r: int):
    if r != options[r]["root"]:
        inputs[r][...] = inputs[options[r]["root"]]
    return inputs[r]


def all_gather(inputs, options, r: int):
    return module_of(inputs[0]).concatenate(inputs)


def barrier(inputs, options, r: int):
    return None


COLLECTIVES = {
    function.__name__: function for function in (all_gather, all_reduce, barrier, broadcast)
}
"""For each collective a function of the inputs and options of all ranks and of a rank's number: it
does that rank's share of the work and gives that rank's result. Others register here.
"""


# ---- do all ranks call the same collective? ------------------------------------------------------


class CollectiveCall(NamedTuple):
    """A rank's call of a collective, as errors name it."""

    name: str
    number: int  # among those of its group
    cause: Cause

    def __str__(self) -> str:
        return f"{self.name} number {self.number}{why(self.cause)}"


def why(cause: Cause) -> str:
    """The words for a cause after a call."""
    return f" for {cause}" if cause.number else ""


def common_signature(name: str, array, options: dict) -> tuple:
    """The part of a call that must be the same in all ranks."""
    if name == "scatter":
        array = options["out"]
    if array is None or name == "message":
        return (name,)
    shape = array.shape if name != "all_to_all" else array.shape[1:]
    number = options.get("cause", NO_CAUSE).number
    return name, options.get("op"), options.get("root"), shape, array.dtype, number


def rows_match(name: str, options: list[dict]) -> bool:
    """Whether each rank expects as many rows as are sent to it."""
    ranks = range(len(options)) if name == "all_to_all" else ()
    return all(options[a]["sent"][b] == options[b]["received"][a] for a in ranks for b in ranks)


def format_call(name: str, array, options: dict) -> str:
    """A rank's call of a collective as text."""
    array = options.get("out", array)
    args = [] if array is None else [str(Spec(array.shape, array.dtype))]
    args += [f"{k}={v}" for k, v in options.items() if k in ("op", "root", "sent", "received")]
    return f"{name}({', '.join(args)}){why(options['cause'])}"


def build_mismatch(what: str, ranks, calls) -> ValueError:
    """The error of all ranks when they call different collectives; `calls` are texts."""
    lines = "".join(f"\n  rank {r}: {call}" for r, call in zip(ranks, calls))
    return ValueError(f"{what}: the ranks do not ask for the same{lines}")
