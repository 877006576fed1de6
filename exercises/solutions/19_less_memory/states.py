"""Shard the states: which part of an optimizer's states each rank keeps.

Adam keeps two numbers for each weight. Ranks that hold the same weights need not all hold these:
in the first stage of ZeRO each keeps a part of them, makes the step for this part of the weights,
and then all get the new weights. Which part? Write `pieces(self, param)`, a method of the stage. It
says how the states of a parameter lie, and so do its gradient and the parameter itself during a
step.

- `param.process_mesh` is the mesh; its `shape` are the ranks along each of its axes. `self.axis` is
  the axis along which the stage cuts, a name or a number: `axis(self.axis)`, a method of the mesh,
  gives the number.
- `param.placements` is a list with a placement for each axis of the mesh, `param.shape` a list of
  sizes, `param.ndim` how many there are.
- Return a tuple: a placement for each axis of the mesh. On all axes but the stage's it is the
  parameter's.
- On the stage's axis: if the parameter is cut there already (`p.is_shard()`), that stays. A
  parameter without axes stays whole. Else it is `Shard(d)`, where d is the first axis of the
  parameter whose rows make *equal* pieces. If other axes of the mesh cut d as well
  (`p.is_shard(d)`), there are as many pieces as their numbers of ranks, multiplied. If no axis
  makes equal pieces, d is 0: then the last ranks get fewer rows, or none.
- A `Shard` may be *stored*: only kept in pieces, and gathered before use (stage 3). A step computes
  on the pieces. So no shard in the result is a stored one: `Shard(p.dim, p.unit)` is the same
  without the mark.

    mesh of 4 ranks, [6, 8], whole  ->  (Shard(1),)      [6, 10]  ->  (Shard(0),), unequal

Source: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models",
2020, section 5.
"""

from math import prod

from minipaddle.distributed import Shard


def pieces(self, param) -> tuple:
    """How a parameter, its gradient and its states lie during a step."""
    mesh = param.process_mesh
    axis = mesh.axis(self.axis)
    found = [Shard(p.dim, p.unit) if p.is_shard() else p for p in param.placements]
    if found[axis].is_shard() or not param.ndim:
        return tuple(found)
    equal = []
    for d, rows in enumerate(param.shape):
        # the stage's axis will cut d; others may do so already
        cutting = [n for k, n in enumerate(mesh.shape) if k == axis or found[k].is_shard(d)]
        if rows % prod(cutting) == 0:
            equal.append(d)
    found[axis] = Shard(equal[0] if equal else 0)
    return tuple(found)
