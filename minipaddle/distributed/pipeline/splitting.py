"""Cut a model for one process into parts: its program, at layers.

The forward of a micro-batch is traced once. A part is a run of its records; its inputs are results
of the part before. A value that only a later part needs passes through the parts between.
"""

from bisect import bisect_right
from enum import Enum
from typing import NamedTuple

from ...core.prelude import Record, Tensor, slot, value_error
from ...engine.eager.tracer import trace
from ...engine.ir.program import ITEM, Program
from ...engine.jit.transpile import transpile
from ...jit.loading import on_tape


class SplitPoint(Enum):
    """The end of a part: before a layer, or after it.

    >>> import minipaddle.distributed as dist
    >>> [each.name for each in dist.SplitPoint]
    ['BEGINNING', 'END']
    """

    BEGINNING = 0
    END = 1


class Split(NamedTuple):
    """The marks of `parallelize` on a model: the mesh, with pp, and the ends of parts."""

    mesh: object
    points: list[tuple]  # (name of a layer, the layer, a SplitPoint)


class ProgramPart(NamedTuple):
    """A part of a program. Its inputs are the results of the part before it, then the program's."""

    program: Program
    inputs: list[int]  # the numbers of the program's inputs that it takes


def read_split_spec(model, spec, stages: int) -> list[tuple]:
    """The (name, layer, SplitPoint) of a `split_spec`: a dict of these, or the name of a list of
    layers, which is cut into as many parts as there are stages.

    Raises ValueError for an unknown layer.
    """
    layers = dict(model.named_sublayers())
    if isinstance(spec, str):
        names = [name for name in layers if name.rpartition(".")[0] == spec]
        if len(names) < stages:
            raise value_error(
                f"split_spec={spec!r}: {len(names)} layers in {stages} stages",
                expected="the name of a list of at least as many layers",
            )
        first = [names[k * len(names) // stages] for k in range(1, stages)]
        spec = dict.fromkeys(first, SplitPoint.BEGINNING)
    for name, point in spec.items():
        if name not in layers or not isinstance(point, SplitPoint):
            raise value_error(
                f"split_spec has {name!r}: {point!r}",
                expected=f"layers, {', '.join([*layers][:6])}, …, and SplitPoint.END or BEGINNING",
            )
    return [(name, layers[name], point) for name, point in spec.items()]


def trace_forward(function, tensors: list[Tensor], name: str) -> Program:
    """Trace a function of tensors like these, which returns one or several, to a program."""
    converted = transpile(function)

    def return_list(*xs):
        y = converted(*xs)
        return list(y) if isinstance(y, (list, tuple)) else [y]

    return trace(return_list, [x.spec for x in tensors], name=name).program


def positions_of(program: Program, points: list[tuple]) -> list[int]:
    """The number of the first record of each part but the first.

    Raises ValueError for a layer that the program does not call, and for layers out of order.
    """
    positions = []
    for name, layer, point in points:
        inside = [k for k, r in enumerate(program.records) if is_within(r.scope, layer)]
        if not inside:
            raise value_error(f"split_spec has {name!r}, which {program.name} does not call")
        positions.append(inside[0] if point is SplitPoint.BEGINNING else inside[-1] + 1)
    if sorted({*positions}) != positions:
        named = ", ".join(name for name, *_ in points)
        raise value_error(f"split_spec: {named}", "layers in the order in which they are called")
    return positions


def is_within(scope, layer) -> bool:
    """Whether a scope is inside of a layer."""
    while scope is not None:
        scope, inner, _ = scope
        if inner is layer:
            return True
    return False


@slot("pipeline.cut_at")
def cut_at(program: Program, positions: list[int]) -> list[ProgramPart]:
    """Cut a program into parts: a new one begins at each of these records.

    An item of several results stays in the part that computes them.
    """
    number: dict[Record, int] = {}
    for k, record in enumerate(program.records):
        number[record] = bisect_right(positions, k)
        if record.op is ITEM:
            number[record] = number[record.inputs[0]]
    last, end = dict.fromkeys(program.outputs, len(positions)), len(positions)
    for record in program.records:
        for source in record.inputs:
            last[source] = max(last.get(source, 0), number[record])
    crossing = [
        [r for r in program.records if number[r] < k <= last.get(r, -1)] for k in range(1, end + 1)
    ]
    parts = []
    for k in range(end + 1):
        records = [r for r in program.records if number[r] == k]
        used = {source for record in records for source in record.inputs}
        taken = [j for j, r in enumerate(program.inputs) if r in used]
        inputs = [*(crossing[k - 1] if k else ()), *(program.inputs[j] for j in taken)]
        here = {*records, *used}
        states = [s for s in program.states if s.record in used or s.update in {*records}]
        states = [s if s.update in here else type(s)(s.name, s.record, None, s.storage)
                  for s in states]  # fmt: skip
        outputs = crossing[k] if k < end else program.outputs
        name = f"{program.name}_{k}"
        parts.append(ProgramPart(Program(name, inputs, states, records, [*outputs]), taken))
    return parts


def tensors_of(program: Program) -> list[Tensor | None]:
    """The tensors of a program's states; None for the random generator."""
    return [getattr(state.storage, "tensor", None) for state in program.states]


def function_of(part: ProgramPart):
    """A part as a function of tensors that returns a tuple of them."""
    program, states = part.program, tensors_of(part.program)

    def function(*inputs):
        return tuple(on_tape(program, list(inputs), states, {}))

    return function
