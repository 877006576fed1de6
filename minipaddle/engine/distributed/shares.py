"""What each rank gets of a collective, when all arrays lie in one memory."""

from __future__ import annotations

import hashlib

from ..core.record import Spec
from ..eager.device import module_of

COMBINE = {"sum": "add", "max": "maximum", "min": "minimum", "prod": "multiply"}


def fold(arrays, op: str):
    """The sum (or maximum, …) of arrays, in the order of their ranks."""
    m = module_of(arrays[0])
    combine, total = getattr(m, COMBINE[op]), arrays[0].copy()
    for array in arrays[1:]:
        combine(total, array, out=total)
    return total


def cut(n: int, parts: int, k: int) -> slice:
    """Part `k` of n things."""
    return slice(n * k // parts, n * (k + 1) // parts)


def rows(array, parts: int, k: int):
    """Part `k` of an array that is cut along axis 0."""
    return array[cut(array.shape[0], parts, k)]


def share_of_all_reduce(given, how, r: int):
    """Add up an r-th of the elements, and write them where each rank wants them."""
    flat = [array.reshape(-1) for array in given]
    part = cut(flat[0].size, len(given), r)
    total = fold([array[part] for array in flat], how[r]["op"])
    for array in flat:
        array[part] = total
    return given[r]


def share_of_reduce(given, how, r: int):
    flat, root = [array.reshape(-1) for array in given], how[r]["root"]
    part = cut(flat[0].size, len(given), r)
    flat[root][part] = fold([array[part] for array in flat], how[r]["op"])
    return given[r]


def share_of_broadcast(given, how, r: int):
    if r != how[r]["root"]:
        given[r][...] = given[how[r]["root"]]
    return given[r]


def share_of_all_gather(given, how, r: int):
    return module_of(given[0]).concatenate(given)


def share_of_gather(given, how, r: int):
    return share_of_all_gather(given, how, r) if r == how[r]["root"] else None


def share_of_reduce_scatter(given, how, r: int):
    return fold([rows(array, len(given), r) for array in given], how[r]["op"])


def share_of_scatter(given, how, r: int):
    out = how[r]["out"]
    out[...] = rows(given[how[r]["root"]], len(given), r).reshape(out.shape)
    return out


def share_of_all_to_all(given, how, r: int):
    begins = [sum(h["sent"][:r]) for h in how]
    mine = [a[b : b + h["sent"][r]] for a, b, h in zip(given, begins, how)]
    return module_of(given[0]).concatenate(mine)


SHARES = {
    "all_gather": share_of_all_gather,
    "all_reduce": share_of_all_reduce,
    "all_to_all": share_of_all_to_all,
    "barrier": lambda given, how, r: None,
    "broadcast": share_of_broadcast,
    "gather": share_of_gather,
    "reduce": share_of_reduce,
    "reduce_scatter": share_of_reduce_scatter,
    "scatter": share_of_scatter,
}
"""What rank `r` gets, of what all gave; and an r-th of the work of a reduction."""


def spec(array) -> Spec:
    return Spec(array.shape, array.dtype)


def agreed(name: str, array, how: dict) -> tuple:
    """What must be the same in all ranks."""
    if name == "scatter":
        array = how["out"]
    if array is None:
        return (name,)
    shape = array.shape if name != "all_to_all" else array.shape[1:]
    return name, how.get("op"), how.get("root"), shape, array.dtype


def exchanged(name: str, how: list[dict]) -> bool:
    """Does each rank await as many rows as are sent to it?"""
    places = range(len(how)) if name == "all_to_all" else ()
    return all(how[a]["sent"][b] == how[b]["received"][a] for a in places for b in places)


def said_by(name: str, array, how: dict) -> str:
    """What a rank asked for, as a call."""
    array = how.get("out", array)
    given = [] if array is None else [str(spec(array))]
    told = [f"{k}={v}" for k, v in how.items() if k in ("op", "root", "sent", "received")]
    return f"{name}({', '.join([*given, *told])})"


def disagreement(what: str, ranks, said) -> ValueError:
    """The error of all ranks when they do not ask for the same: what each `said`."""
    lines = "".join(f"\n  rank {r}: {text}" for r, text in zip(ranks, said))
    return ValueError(f"{what}: the ranks do not ask for the same{lines}")


def number_of(*things) -> int:
    """64 bits that stand for some things; the same in all processes."""
    return int.from_bytes(hashlib.blake2b(repr(things).encode(), digest_size=8).digest(), "little")


def vote(rank: int, size: int, name: str, array, how: dict) -> int:
    """A number of 64 bits for each rank, whose sum over all is 0 if they ask for the same (and by
    chance in one of 2**64 other cases): Σ weight·question, where the weights sum to 0.
    """
    weight = number_of(rank) if rank else -sum(map(number_of, range(1, size)))
    found = weight * number_of(agreed(name, array, how))
    for other in range(size) if name == "all_to_all" else ():
        found += how["sent"][other] * number_of(rank, other)
        found -= how["received"][other] * number_of(other, rank)
    return found % 2**64
