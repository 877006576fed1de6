"""Messages between stages: tensors of one micro-batch, and at first their descriptions."""

from typing import NamedTuple

from ...core.prelude import Spec, Tensor, value_error, wrap
from ...engine.eager.device import current_place
from ...engine.sharding.array import ShardedArray, sharded
from ...engine.sharding.placements import Replicate, Shard, local_shape
from ..collectives.python_objects import as_object, as_octets, length
from ..collectives.tape_or_group import make_dense


class TensorLike(NamedTuple):
    """The description of a tensor: its full spec, its placements, and whether the other stage
    sends a gradient back.
    """

    spec: Spec
    placements: tuple | None
    differentiable: bool

    def empty(self, view):
        """An empty array to receive this rank's shard."""
        shape = self.spec.shape
        if self.placements is not None:
            shape = local_shape(shape, self.placements, view.shape, view.place)
        return current_place().module.empty(shape, self.spec.dtype)


def make_like(x: Tensor) -> TensorLike:
    """The description of a tensor."""
    placements = tuple(x.array.placements) if sharded(x.array) else None
    return TensorLike(x.spec, placements, not x.stop_gradient)


class Neighbours:
    """The messages of this rank's stage along a group of stages.

    group: the process group along pp
    view: the mesh of a stage as this rank sees it; None if a stage is one rank
    """

    def __init__(self, group, view=None):
        self.group, self.view, self.works = group, view, []
        self.known: dict[int, list[TensorLike]] = {}  # by tag, for the tensors of this batch

    def send(self, tensors: list[Tensor], stage: int, tag: int, describe: bool) -> None:
        """Send tensors to another stage, which calls `receive`; do not wait."""
        if describe:
            words = as_octets([describe_tensor(make_like(x)) for x in tensors])
            self.post(length(words), stage, tag)
            self.post(words, stage, tag)
        for x in tensors:
            array = x.array.local if sharded(x.array) else x.array
            self.post(make_dense(array), stage, tag)

    def post(self, array, stage: int, tag: int) -> None:
        self.works.append((self.group.send(array, stage, tag, wait=False), array))

    def receive(self, stage: int, tag: int, described: bool, likes=None) -> list[Tensor]:
        """Receive the tensors that another stage sends with a tag."""
        if described:
            n = self.group.recv(length(), stage, tag).item()
            room = current_place().module.empty(n, "uint8")
            words = as_object(self.group.recv(room, stage, tag))
            self.known[tag] = [read_description(each) for each in words]
        tensors = []
        for each in self.known[tag] if likes is None else likes:
            array = self.group.recv(each.empty(self.view), stage, tag)
            if each.placements is not None:
                array = ShardedArray(array, each.spec.shape, each.placements, self.view)
            tensors.append(wrap(array))
            tensors[-1].stop_gradient = not each.differentiable
        return tensors

    def finish(self) -> None:
        """Wait until all sends are complete."""
        for work, _ in self.works:
            work.wait()
        self.works, self.known = [], {}


def describe_tensor(x: TensorLike) -> list:
    """Numbers and words for a message. ValueError for a partial sum."""
    dims = None
    if x.placements is not None:
        if any(p.is_partial() for p in x.placements):
            raise value_error(
                f"a stage hands on {x.spec}, which lies as {list(x.placements)}",
                expected="pieces or whole tensors",
                hint="dist.reshard(x, mesh, [dist.Replicate()]) as the last operation",
            )
        dims = [p.dim if p.is_shard() else -1 for p in x.placements]
    return [[*x.spec.shape], str(x.spec.dtype), dims, x.differentiable]


def read_description(words: list) -> TensorLike:
    """The description that `describe_tensor` wrote."""
    shape, dtype, dims, differentiable = words
    if dims is not None:
        dims = tuple(Shard(dim) if dim >= 0 else Replicate() for dim in dims)
    return TensorLike(Spec(tuple(shape), dtype), dims, differentiable)
