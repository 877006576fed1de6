"""An operator on tensors in pieces: move the inputs, compute on the local pieces.

The same function serves eager mode, where local tensors have values, and the pass `partition`,
where they are symbolic: it applies operators to local tensors.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

from ..core.dispatch import current
from ..core.op import Op
from ..core.record import Spec
from ..core.slots import slot
from ..eager.tensor import Tensor
from ..ops.creation import full
from ..ops.elementwise import where
from ..ops.marks import after, placed_as, reshard
from ..ops.movement import replace_axis, reshape
from .letters import LetterRule, rule_of
from .moves import move_local
from .placements import (
    REPLICATE,
    Placement,
    Placements,
    ProcessMesh,
    Shard,
    local_shape,
    normalize,
    piece_of,
)
from .propagate import propagate


class MeshView(NamedTuple):
    """A mesh as one of its ranks sees it."""

    mesh: ProcessMesh
    shape: tuple[int, ...]
    place: tuple[int, ...]  # the rank's coordinates
    groups: tuple[int, ...]  # for each axis the number of the group of ranks along it

    @property
    def replicated(self) -> Placements:
        """All axes replicate."""
        return (REPLICATE,) * len(self.shape)


class Piece:
    """A rank's shard `local` of a tensor of `spec` with these `placements`.

    `copies` has the same tensor with the placements of earlier moves; `time` says when it
    was computed, in a program.
    """

    time = 0

    def __init__(self, local: Tensor, spec: Spec, placements: Placements, copies=None):
        self.local, self.spec, self.placements = local, spec, placements
        self.copies = {placements: local} if copies is None else copies

    def as_placed(self, placements: Placements, view: MeshView) -> Tensor:
        """The local tensor for other placements of the whole: moved there once."""
        if placements not in self.copies:
            shape, time = tuple(self.spec.shape), (self.time, len(self.copies))
            self.copies[placements] = move_local(
                self.local, shape, self.placements, placements, view, time
            )
        copy = self.copies[placements]
        if any(p.is_partial() for p in self.placements):  # joined once, for all later readers
            self.local, self.placements = copy, placements
        return copy

    def move_to(self, placements: Placements, view: MeshView) -> Piece:
        """The shard of the same tensor with other placements."""
        return Piece(self.as_placed(placements, view), self.spec, placements, self.copies)

    @slot("sharding.in_use")
    def in_use(self, view: MeshView) -> Piece:
        """The piece as operators take it: whole if it is only stored in pieces."""
        used = tuple(REPLICATE if p.stored else p for p in self.placements)
        return self if used == self.placements else self.move_to(used, view)

    def __repr__(self) -> str:
        return f"<piece of {self.spec}, {list(self.placements)}>"


@slot("sharding.apply_to_pieces")
def apply_to_pieces(op: Op, inputs: list, attrs: dict, results, view: MeshView):
    """The result of an operator, a Piece or a tuple of them; `results` are the specs of the whole.

    inputs: pieces, and Python numbers
    """
    if op in (reshard, placed_as):
        asked = attrs["placements"] if op is reshard else map(place_gradient, inputs[1].placements)
        asked = tuple(p or own for p, own in zip(asked, inputs[0].placements))
        return inputs[0].move_to(normalize(asked, results.shape, view.shape), view)
    if op is after:  # an order of work, whatever the placements of its inputs
        local = current.top.apply(op, [x.local for x in inputs], attrs)
        return Piece(local, inputs[0].spec, inputs[0].placements)
    inputs = [x.in_use(view) if isinstance(x, Piece) else x for x in inputs]
    several = not isinstance(results, Spec)
    outs = list(results) if several else [results]
    specs = [x.spec if isinstance(x, Piece) else x for x in inputs]
    placed = [x.placements if isinstance(x, Piece) else None for x in inputs]
    cut = any(not p.is_replicated() for own in placed if own for p in own)
    rule = rule_of(op, specs, attrs, outs) if cut else None
    if cut and rule is None:
        warnings.warn(f"{op.name} has no sharding rule: each rank computes all of it", stacklevel=2)
    if rule is not None:
        wanted, placements, _ = propagate(rule, specs, placed, outs, view.shape)
    else:
        wanted, placements = [p and view.replicated for p in placed], [view.replicated] * len(outs)
    local = [x if place is None else x.as_placed(place, view) for x, place in zip(inputs, wanted)]
    if rule is not None and rule.localise is not None:
        attrs = localise(rule, attrs, outs[0], placements[0], view)
    if rule is not None and rule.offset is not None:
        ys = apply_at_offset(op, rule, local, attrs, specs, wanted, view)
    else:
        ys = current.top.apply(op, local, attrs)
    ys = list(ys) if several else [ys]
    pieces = [Piece(y, spec, p) for y, spec, p in zip(ys, outs, placements)]
    return tuple(pieces) if several else pieces[0]


def place_gradient(p: Placement) -> Placement:
    """The placement of a value's gradient: a partial sum has the gradient of the sum."""
    return REPLICATE if p.is_partial() else Shard(p.dim, p.unit) if p.stored else p


def localise(
    rule: LetterRule, attrs: dict, spec: Spec, placements: Placements, view: MeshView
) -> dict:
    """The attributes for the local pieces."""
    local = Spec(local_shape(spec.shape, placements, view.shape, view.place), spec.dtype)
    return rule.localise(attrs, local, {p.dim for p in placements if p.is_shard()})


def apply_at_offset(op, rule: LetterRule, local: list, attrs, specs, wanted, view: MeshView):
    """An operator that reads at positions along an axis which may be cut: a rank reads what is in
    its piece, and gives zeros for the other positions. One that is no position stays wrong.
    """
    letter, k = rule.offset
    j, d = next(
        (j, d) for j, axes in enumerate(rule.inputs) for d, a in enumerate(axes)
        if a is not None and a.letter == letter
    )  # fmt: skip
    n = specs[j].shape[d]
    start, rows = piece_of(specs[j].shape, wanted[j], view.shape, view.place)[d]
    if rows == n:
        return current.top.apply(op, local, attrs)
    place = local[k]
    inside, known = (place >= start) & (place < start + rows), (place >= 0) & (place < n)
    if "ignore_index" in attrs:
        ignored = place == attrs["ignore_index"]
        inside, known = inside & ~ignored, known | ignored
        attrs = attrs | {"ignore_index": -1}
    args = [*local]
    args[k] = where(inside, place - start, where(known, 0, place))
    if not rows:  # a row of zeros to read
        args[j] = full(shape=replace_axis(local[j].spec.shape, d, 1), value=0, dtype=specs[j].dtype)
    y = current.top.apply(op, args, attrs)
    inside = reshape(inside, shape=(*place.spec.shape, *(1,) * (y.spec.ndim - place.spec.ndim)))
    return where(inside, y, 0)
