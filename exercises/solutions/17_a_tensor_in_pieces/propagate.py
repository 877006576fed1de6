"""Propagate: from pieces of the inputs to pieces of the result.

Where the inputs of an operator lie is known, and its rule gives their axes letters. An axis of the
mesh can cut one of these letters; then all axes that have it are cut alike, in inputs and result.
Write two functions about one axis of the mesh.

`letters_to_cut(rule, specs, placed, axis)`: the letters that the inputs are cut along there
already: a list of `Letter(letter, unit, groups)`, each once, those of the first input first.

- `rule.inputs` has for each input a tuple with an entry for each of its axes: an axis with a
  `letter` and a `unit`, or None: it has to be whole, and is no candidate.
- `specs` and `placed` have for each input its spec (`spec.shape`) and its placements, one for each
  axis of the mesh; a Python number has None for placements. `placed[k][axis]` is how input k lies
  along our axis of the mesh. `p.is_shard()`: in pieces along the input's axis `p.dim`, cut between
  blocks of `p.unit` rows.
- A letter stands for blocks, too: of an axis with the unit 8 it counts blocks of 8 rows. So the
  letter is cut between p.unit / 8 of its blocks; if 8 does not divide p.unit, between single ones.
  That number is the `unit` of the Letter, and `groups` is how many such groups the axis has
  (rounded down).

`placement_for(choice, axes, terms, k)`: how a tensor whose axes are `axes` (a tuple as in
`rule.inputs`) lies along an axis of the mesh for which there is a choice. k is the number of the
input; None: the tensor is a result.

- `choice` is None: nothing is cut, all of it is whole: `REPLICATE`.
- It is a `Letter`: `Shard(d, rows)` along the axis that has it, cut between as many rows as the
  unit of the choice has blocks of. A tensor without the letter is whole; but where `terms`, a dict
  by letters, has it, the operator sums over it: each rank has a term, `Partial(terms[letter])`.
- It is a `Terms`: the inputs numbered in `choice.inputs`, and all results, are
  `Partial(choice.op)`; other inputs are whole.

    x [6, 8] in pieces along 1, w [8, 4] whole, mk,kn->mn: the candidate is k;
    x: Shard(1), w: Shard(0), the result: Partial("sum")

Source: Xu et al., "GSPMD", 2021; Paddle's rules, `get_phi_spmd_rule`.
"""

from minipaddle.engine.sharding.placements import REPLICATE, Partial, Shard
from minipaddle.engine.sharding.propagate import Letter, Terms


def letters_to_cut(rule, specs, placed, axis) -> list:
    """The letters along which an axis of the mesh cuts inputs."""
    found = []
    for axes, spec, placements in zip(rule.inputs, specs, placed):
        if placements is None or not placements[axis].is_shard():
            continue
        p = placements[axis]
        if axes[p.dim] is None:
            continue
        letter, rows = axes[p.dim]
        unit = p.unit // rows if p.unit % rows == 0 else 1
        candidate = Letter(letter, unit, spec.shape[p.dim] // (rows * unit))
        if candidate not in found:
            found.append(candidate)
    return found


def placement_for(choice, axes, terms, k):
    """How a tensor lies along an axis of the mesh."""
    if choice is None:
        return REPLICATE
    if isinstance(choice, Terms):
        return Partial(choice.op) if k is None or k in choice.inputs else REPLICATE
    for d, axis in enumerate(axes):
        if axis is not None and axis.letter == choice.letter:
            return Shard(d, axis.unit * choice.unit)
    return Partial(terms[choice.letter]) if choice.letter in terms else REPLICATE
