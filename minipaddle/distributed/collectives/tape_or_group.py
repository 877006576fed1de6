"""Take tensors into a collective and back: by the operator where a tape or a program records, or
else by the group itself.
"""

from ...engine.core.dispatch import Recording, current
from ...engine.core.errors import value_error
from ...engine.core.op import OPS
from ...engine.core.record import mark_written, writable
from ...engine.distributed.process_group import Done, MappedWork, Work
from ...engine.eager.device import module_of
from ...engine.eager.tensor import Tensor, wrap
from ...engine.sharding.array import sharded
from ...tensor.joining import concat
from ...tensor.shaping import reshape
from ..ranks.known_groups import group_of
from . import operators  # noqa: F401  (the operators by their names)

COUNTED = ("all_gather", "gather", "reduce_scatter", "scatter")
"""The operators whose result shape depends on the number of ranks, which they get."""


def number_in(group, rank: int) -> int:
    """The number in a group of the rank that is `rank` among all; ValueError if it has none."""
    here = group_of(group)
    number = here.get_group_rank(rank)
    if number < 0:
        raise value_error(f"rank {rank}", expected=f"one of {here.ranks}, as among all ranks")
    return number


def communicate(x: Tensor, name: str, group, sync_op: bool, keep, **options) -> Work | None:
    """Take part in the collective `name` with `x`; `keep(result)` stores the result."""
    here = group_of(group)
    if here.rank < 0:
        return None
    options = {k: number_in(group, v) if k in ("src", "dst") else v for k, v in options.items()}
    if current.top.tracing or (not x.stop_gradient and not x.is_leaf and current.top.recording):
        counted = {"nranks": here.size} if name in COUNTED else {}
        linear = name != "all_reduce" or options["op"] in ("sum", "avg")
        name = name if linear else "all_fold"
        keep(OPS[name](x, **counted, **options, group=here.id))
        return Done(x)
    work = begin(here, name, x.array, options)
    task = MappedWork(work, lambda array: keep(wrap(array)) if array is not None else None)
    if sync_op:
        task.wait()
    return task


def begin(group, name: str, array, options: dict) -> Work:
    """Begin a collective of a group. ValueError for a sharded array."""
    if sharded(array):
        call = f"{name} of a tensor in pieces, {array.dtype}[{', '.join(map(str, array.shape))}]"
        raise value_error(call, "a tensor of each rank", hint="dist.reshard(x, mesh, placements)")
    array = make_dense(array)
    if name == "scatter":
        out = module_of(array).empty((array.shape[0] // group.size, *array.shape[1:]), array.dtype)
        return group.scatter(out, array, **options, wait=False)
    return getattr(group, name)(array, **{k: v for k, v in options.items() if v != ()}, wait=False)


def make_dense(array):
    """Return the array if it is writeable, row-major and without gaps, otherwise a copy."""
    fine = array.flags.c_contiguous and writable(array) and 0 not in array.strides
    return array if fine else array.copy()


def put(x: Tensor, result: Tensor) -> None:
    """Let `x` hold `result` from now on, and its tape if it has one and `x` is no leaf."""
    if x.array is result.array:
        return mark_written(x.array)
    if result.spec.shape != x.spec.shape:
        result = reshape(result, x.spec.shape)
    if result.stop_gradient or (x.is_leaf and not x.stop_gradient):
        with Recording(False):
            x.set_value(result)
    else:
        x.become(result)


def write_in_place(x: Tensor, name: str, group, sync_op: bool, **options) -> Work | None:
    """Start a collective that writes `x` in place."""
    return communicate(x, name, group, sync_op, lambda result: put(x, result), **options)


def rows_of(x: Tensor) -> Tensor:
    """A tensor with a first axis: one without becomes a single row."""
    return x if x.spec.shape else reshape(x, [1])


def join_rows(tensors, group) -> Tensor:
    """Join the rows of several tensors, one for each rank."""
    size = group_of(group).size
    if len(tensors) != size:
        raise value_error(f"{len(tensors)} tensors for {size} ranks", expected="one for each")
    return concat([rows_of(x) for x in tensors])


def split_rows(x: Tensor, rows, shapes) -> list[Tensor]:
    """Split a tensor along axis 0 into pieces of these shapes."""
    ends = [sum(rows[: k + 1]) for k in range(len(rows))]
    cuts = zip(ends, rows, shapes, strict=True)
    return [reshape(x[end - n : end], shape) for end, n, shape in cuts]


def fill(targets: list[Tensor], results: list[Tensor]) -> None:
    """Write tensors into those of a list; extend an empty list."""
    if not targets:
        targets.extend(results)
        return
    for x, y in zip(targets, results, strict=True):
        put(x, y)


def gather_rows(name: str, targets, x: Tensor, group, sync_op: bool, **options) -> Work | None:
    """`all_gather` or `gather` into a list, or into none."""
    shape, size = x.spec.shape, group_of(group).size
    row = rows_of(x)

    def keep(joined):
        if targets is not None:
            fill(targets, split_rows(joined, [row.spec.shape[0]] * size, [shape] * size))

    return communicate(row, name, group, sync_op, keep, **options)
