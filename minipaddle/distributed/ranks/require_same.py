"""The check that all ranks of a mesh make the same call; its error names the differences."""

from ...core.prelude import NUMPY, Spec, Tensor, current
from ...engine.core.rank import Cause
from ...engine.sharding.array import cause_of_whole
from ...engine.sharding.placements import Placement, ProcessMesh
from ..collectives.python_objects import all_gather_object, receive_object, send_object
from .known_groups import current_groups

TAG = 23295
"""The tag of messages between the ranks of a mesh that are not all."""


def values_of(x: Tensor) -> str:
    """The values of a local tensor, as a short text."""
    return "in pieces" if x.is_dist() else f"{cause_of_whole(x.array, wait=True)}"


def require_same(what: str, mesh: ProcessMesh | None, facts: dict[str, list]) -> None:
    """ValueError on all ranks of a mesh (None: of the world) that names the `facts` that differ.
    The facts may be of any type: their texts are compared.

    It needs no group: ranks that call it with different meshes of all ranks get the error, too.
    Ranks that are threads trace one after the other, so nothing is compared while they do.
    """
    world = current_groups().world.size
    if current.top.tracing or world == 1 or (mesh is not None and mesh.size == 1):
        return
    ranks = [*range(world)] if mesh is None else sorted(mesh.process_ids)
    texts = {"the call": [what.partition(" of ")[0]]}
    texts |= {"the mesh": [f"{mesh}"]} if mesh is not None else {}
    texts |= {name: [*map(as_text, values)] for name, values in facts.items()}
    with Cause(1, str, f"{what} on {mesh}" if mesh else what):
        first, *others = exchange(texts, ranks)
    lines = []
    for rank, other in zip(ranks[1:], others, strict=True):
        for name in first | other:
            if first.get(name) != other.get(name):
                here, there = first.get(name) or ["none"], other.get(name) or ["none"]
                pairs = [(a, b) for a, b in zip(here, there) if a != b]
                here, there = pairs[0] if pairs else (here, there)
                lines.append(f"  {name}: {here} in rank {ranks[0]}, {there} in rank {rank}")
    if lines:
        of = f"of {mesh} " if mesh is not None else ""
        raise ValueError("\n".join([f"{what}: the ranks {of}disagree", *lines[:5]]))


def exchange(value, ranks: list[int]) -> list:
    """Send a value to some ranks; return the value of each of them."""
    world, values = current_groups().world, []
    if len(ranks) == world.size:
        all_gather_object(values, value)
        return [values[rank] for rank in ranks]
    others = [rank for rank in ranks if rank != world.rank]
    for rank in others:
        send_object(world, value, rank, TAG)
    by_rank = {rank: receive_object(world, rank, TAG) for rank in others} | {world.rank: value}
    return [by_rank[rank] for rank in ranks]


PLAIN = (bool, int, float, complex, str, type(None), type, NUMPY.dtype)
SHOWN = (Spec, Placement, ProcessMesh)
"""Types whose values have the same text in all ranks."""


def as_text(value) -> str:
    """A setting as text that is the same in all ranks: an object's class and settings."""
    if isinstance(value, PLAIN + SHOWN):
        return str(value)
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {as_text(x)}' for key, x in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(as_text, value))}]"
    settings, name = getattr(value, "__dict__", {}), type(value).__name__
    shown = {key: x for key, x in settings.items() if isinstance(x, PLAIN + SHOWN)}
    return f"{getattr(value, '__qualname__', name)}{as_text(shown) if shown else ''}"


def parameters_of(layer) -> dict[str, list]:
    """The facts of a layer's parameters that must be the same in all ranks."""
    return {name: [p.spec] for name, p in layer.named_parameters()}
