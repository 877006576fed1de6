"""Do all ranks of a mesh say the same of a tensor? If not, an error on all of them names it."""

from __future__ import annotations

from zlib import crc32

from ..core.prelude import Tensor
from ..engine.executors.executable_cache import CHECKS
from ..engine.sharding.array import sharded
from ..engine.sharding.pieces import View
from ..engine.sharding.placements import ProcessMesh
from .objects import all_gather_object
from .parallel import get_group


def checksum(array) -> int:
    """A number that stands for the values of an array."""
    host = array.get() if hasattr(array, "get") else array
    return crc32(host.tobytes())


def octets(x: Tensor) -> int | None:
    """A checksum of a tensor that each rank has whole."""
    return None if x.is_dist() else checksum(x.array)


def require_same_mesh(facts: dict[str, list[str]], mesh: ProcessMesh, what: str) -> None:
    """`require_agreement` of all ranks of the world, also where they mean different meshes of it:
    groups along the axes of such meshes would wait for each other forever.
    """
    found: list[dict] = []
    all_gather_object(found, {"the mesh": [f"{mesh}"]} | facts)
    require_equal(found, [*range(len(found))], what, mesh)


def require_agreement(facts: dict[str, list[str]], view: View, what: str) -> None:
    """ValueError on all ranks of a mesh that names the tensors for which `facts` differ."""
    found = [facts]
    for group in view.groups:  # along one axis of the mesh after the other
        gathered: list[list] = []
        all_gather_object(gathered, found, get_group(group))
        found = [each for line in gathered for each in line]
    require_equal(found, view.mesh.process_ids, what, view.mesh)


def require_equal(found: list[dict], ranks: list[int], what: str, mesh) -> None:
    """ValueError that names the tensors of which the first rank says other things than another."""
    first, lines = found[0], []
    for rank, other in zip(ranks, found, strict=True):
        for name in first | other:
            if first.get(name) != other.get(name):
                here, there = first.get(name) or ["none"], other.get(name) or ["none"]
                pairs = [(a, b) for a, b in zip(here, there) if a != b]
                here, there = pairs[0] if pairs else (here, there)
                lines.append(f"  {name}: {here} in rank {ranks[0]}, {there} in rank {rank}")
    if lines:
        raise ValueError("\n".join([f"{what}: the ranks of {mesh} disagree", *lines[:5]]))


def require_same_inputs(program, arrays, view: View) -> None:
    """Each rank counts an input or an outer tensor that does not lie in pieces as whole: so it must
    be the same in all of them. Compared before the first run of a program; other values may come
    later.
    """
    names = [f"argument {k}" for k in range(len(program.inputs))]
    names += [f"the outer tensor {state.name}" for state in program.states]
    facts = {
        name: [f"{a.dtype}{[*a.shape]}", f"values with sum {checksum(a)}"]
        for name, a in zip(names, arrays, strict=True)
        if not sharded(a)
    }
    what = f"{program.name} of tensors in pieces and whole ones (see shard_tensor)"
    require_agreement(facts, view, what)


CHECKS.append(require_same_inputs)
