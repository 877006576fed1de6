"""A program as a picture: data flow, branches and loops as nested boxes, states beside it."""

from collections.abc import Iterator

from ..engine.core.errors import line_of, runtime_error
from ..engine.core.record import Record
from ..engine.ir.edit import count_uses
from ..engine.ir.printer import Printer
from ..engine.ir.program import ITEM, NUMBER, Program, everywhere
from .collapse import LIMIT, PAGE, draw_records
from .flat_program import SAME, FlatProgram
from .parts import Legend, Node
from .records import role_of_operator, short, spec_text
from .style import bytes_text, count
from .target import ends_of, explorer_call, forward_of, passes_result_of, program_of


def program(target, depth: int | None = None, *, title: str = ""):
    """A Program, or the one a static function wrote last, as a graph.

    Layers, the branches of a `cond` and the body of a `while_loop` are boxes; `depth` says how many
    levels of them are open, by default as many as fit in 150 nodes. Of a program that is longer
    still, the newest part is drawn. A line that made many records, such as `loss.backward()`, is a
    box too. States are cylinders: a dashed line leads from the new value to its state. Numbers
    stand in the labels, and the tooltips have the user's lines. Raises RuntimeError if a static
    function was not called yet, TypeError for anything else.

    >>> from minipaddle import viz
    >>> @paddle.jit.to_static
    ... def double(x):
    ...     return x * 2
    >>> double(paddle.ones([3])).tolist()
    [2.0, 2.0, 2.0]
    >>> print(viz.program(double).text)
    program double(x~: float32[3]) {
      v1 = multiply(x, 2) : float32[3]
      return v1
    }
    """
    graph = draw_levels(program_of(target), ends_of(target), depth, title)
    graph.call = explorer_call(target)
    return graph


def draw_levels(program: Program, ends: tuple[set, set], depth: int | None, title: str = ""):
    """The graph of a program, whose `ends` are its results and its residuals."""
    view = ProgramView(program, FlatProgram(program), *ends)
    return draw_program(view.parts(), title, depth, program)


def groups(target, depth: int | None = None, *, title: str = ""):
    """The groups of a program after the passes, with a box for each.

    A group is one kernel: a loop nest, maybe with the product or the convolution it begins with.
    With `depth=0` the boxes are closed, as they are where there would be more than 150 nodes. Takes
    the same targets as `viz.passes`.

    >>> from minipaddle import viz
    >>> @paddle.jit.to_static
    ... def f(x):
    ...     return paddle.nn.functional.softmax(x * 2)
    >>> y = f(paddle.ones([3, 4]))
    >>> print(viz.groups(f).text.splitlines()[1])
      v1 = fused(x, region=(x~: float32[3, 4]) {
    """
    program = drop_unused_states(passes_result_of(target).program)
    view = ProgramView(program, FlatProgram(program, groups=True), program.outputs)
    return draw_program(view.parts(), title, depth, program, explorer_call(target))


def partition(target, depth: int | None = None, *, title: str = ""):
    """The program of a rank, as the pass `partition` wrote it: with its moves.

    Collectives have a role of their own; they name the axis of the mesh and the bytes that the rank
    receives. Inputs and states say how they lie, from the first axis of the mesh on: S0 in pieces
    along axis 0, R whole, P a term of a sum. Takes a static function that was called with tensors
    in pieces, and draws what it did last; RuntimeError if there is no such program.

    >>> import minipaddle.distributed as dist
    >>> from minipaddle import viz
    >>> @paddle.jit.to_static
    ... def total(x):
    ...     return x.sum()
    >>> def work():
    ...     mesh = dist.ProcessMesh([0, 1], dim_names=["x"])
    ...     return total(dist.shard_tensor(paddle.ones([4]), mesh, [dist.Shard(0)])).item()
    >>> dist.spawn(work, nprocs=2).results
    [4.0, 4.0]
    >>> print(viz.partition(total).text)
    total on a mesh [2]: 2 records, 1 collective, 4 B for each rank
      all_reduce along x, 4 B: float32[]
    """
    captured = getattr(forward_of(target), "concrete_program", None)
    if captured is None or not captured.executables.parts:
        what = "a picture of a program of tensors in pieces"
        expected = "a function of paddle.jit.to_static that was called with such tensors"
        hint = "viz.program draws programs of whole tensors"
        raise runtime_error(what, expected=expected, hint=hint)
    (_, view, *placements), (part, _) = [*captured.executables.parts.items()][-1]
    return draw_program(moves_of(part, view, placements), title, depth, part)


def moves_of(part: Program, view, placements) -> Iterator:
    """The parts of the picture of a rank's program; `placements` are those of what it is given."""
    drawn, lines, total = ProgramView(part, FlatProgram(part), part.outputs), [], 0
    for record, lies in zip(part.given, placements):
        drawn.notes[record] = f" [{', '.join(map(letter, lies))}]"
    for record in filter(is_collective, part.records):
        axis = view.groups.index(record.attrs["group"])
        n = count_received(record, view.shape[axis])
        where = f"along {view.mesh.dim_names[axis]}, {bytes_text(n)}"
        drawn.notes[record] = f"\n{where}"
        lines.append(f"  {record.op.name} {where}: {record.spec}")
        total += n
    head = f"{part.name} on a mesh {[*view.shape]}: {count(len(part.records), 'record')}, "
    head += f"{count(len(lines), 'collective')}, {bytes_text(total)} for each rank"
    *others, legend = drawn.parts()
    yield from others
    yield Legend(legend.caption, legend.cells, "\n".join([head, *lines]))


def letter(placement) -> str:
    """A placement in short: S0, R, P."""
    return f"{type(placement).__name__[0]}{getattr(placement, 'dim', '')}"


def is_collective(record) -> bool:
    """Whether ranks communicate in a record."""
    return record.op.kind == "opaque" and "group" in record.attrs


def count_received(record, parts: int) -> int:
    """The bytes that a collective of `parts` ranks brings to each."""
    most = max(record.spec.nbytes, record.inputs[0].spec.nbytes)
    return most * (parts - 1) // parts * (2 if record.op.name in ("all_reduce", "all_fold") else 1)


def drop_unused_states(program: Program) -> Program:
    """The program without the states that its records have no use for any more."""
    used = count_uses(program)
    states = [s for s in program.states if s.update is not None or used[s.record]]
    return Program(**vars(program) | {"states": states})


KEPT = {"color": "#d55e00", "penwidth": "3"}


class ProgramView:
    """The parts of a picture of a program's records and those of its regions.

    `residuals` are kept for the backward. A subclass or a caller may add `roles` of its own, and
    `notes` after the operators' names.
    """

    def __init__(self, program: Program, flat: FlatProgram, results, residuals=(), names=None):
        self.program, self.flat = program, flat
        self.names = names or names_in(program)
        at = flat.at  # the results of a group come from inside it
        self.results, self.residuals = ({at.get(r) or r for r in s} for s in (results, residuals))
        self.roles: dict[Record, str] = {}
        self.notes: dict[Record, str] = {}

    def parts(self) -> Iterator:
        for record in self.flat.records:
            yield self.node(record)
        yield from self.flat.flows
        yield Legend(caption_of(self.program), tuple(self.cells()), str(self.program))

    def node(self, record) -> Node:
        role, spec, frames = self.role(record), spec_text(record), self.flat.paths[record]
        if role == "decision":
            label = record.op.name.removesuffix("_loop")
            return Node(record, label, role, self.tip(record), frames, {"margin": "0"})
        if role == "same":
            return Node(record, "=", role, f"as it is: {spec}", frames, {"width": "0.3"})
        attrs = {"peripheries": "2"} if record in self.results and role == "input" else {}
        attrs |= KEPT if record in self.residuals else {}
        label = self.label(record) + self.notes.get(record, "")
        text = f"{label}\n{spec}" if label else spec
        return Node(record, text, role, self.tip(record), frames, attrs)

    def role(self, record) -> str:
        """The role (a key of LOOKS) of a record of a program."""
        if record in self.roles:
            return self.roles[record]
        if record in self.flat.controls:
            return "decision"
        if record in self.flat.states:
            return self.flat.state_role(record)
        if record in self.flat.carried:
            return "carried"
        if not record.inputs and record.attrs.get("name") == SAME:
            return "same"
        if record in self.program.inputs:
            return "input"
        if record in self.results:
            return "output"
        if self.is_merge(record):
            return "merge"
        if is_collective(record):
            return "collective"
        return role_of_operator(record.op)

    def is_merge(self, record) -> bool:
        return record.op is ITEM and record.inputs[0] in self.flat.controls

    def enters(self, record) -> bool:
        """Whether the value comes from outside, or from the iteration before."""
        return record in self.flat.carried or record in self.program.inputs

    def label(self, record) -> str:
        """`multiply(·, 2)`: the operator, with the numbers among its inputs."""
        if record in self.flat.states:
            return self.flat.state_name(record)
        if self.enters(record) or record in self.roles:
            return self.names[record]
        if record.op is ITEM:
            alone = self.is_merge(record) and len(record.inputs[0].shape) == 1
            return "" if alone else f"[{record.attrs['k']}]"
        if not any(e.op is NUMBER for e in record.inputs):
            return record.op.name
        inputs = [number(e.attrs["value"]) if e.op is NUMBER else "·" for e in record.inputs]
        return f"{record.op.name}({', '.join(inputs)})"

    def tip(self, record) -> str:
        """Its name in the text, its attributes, the user's line."""
        name, spec = self.names.get(record, ""), spec_text(record)
        if record in self.flat.states:
            text = f"state {self.flat.states[record].name or name} : {spec}"
        elif self.enters(record):
            text = f"{name} : {spec}"
        else:
            numbers = {e: repr(e.attrs["value"]) for e in record.inputs if e.op is NUMBER}
            inputs = [numbers.get(e) or self.names.get(e, "·") for e in record.inputs]
            attrs = record.attrs.items()
            inputs += [f"{k}={short(v)}" for k, v in attrs if not isinstance(v, Program)]
            text = f"{name} = {record.op.name}({', '.join(inputs)}) : {spec}"
        return f"{text}\n{line_of(record.where)}" if record.where else text

    def cells(self) -> Iterator[tuple[str, str]]:
        """More cells of the legend."""
        if any(s.update is not None for s in self.program.states):
            yield "⇢ new value of a state", "#d55e00"
        if self.residuals:
            yield "▢ kept for the backward", KEPT["color"]


def draw_program(parts, title: str, depth: int | None, program: Program, call: str = ""):
    """Draw the parts of a program; `depth` levels of frames are open, `call` shows more."""
    most = PAGE if program.gradient_of else LIMIT
    graph = draw_records(parts, title, depth, close_lines, most, compound="true")
    graph.call = call
    return graph


def close_lines(records) -> tuple[str, str, dict]:
    """A closed frame names the first of the user's lines in it, and where it can be opened."""
    line = next((f"\n{line_of(r.where)}" for r in records if r.where), "")
    return "", f"{line}\nviz.explore opens all boxes", {}


def caption_of(program: Program) -> str:
    """The number of records, and the memory of the states."""
    records = count(sum(1 for _ in everywhere(program)), "record")
    states = program.states
    if not states:
        return records
    written = sum(s.update is not None for s in states)
    size = bytes_text(sum(s.record.spec.nbytes for s in states))
    text = f"{records}, {count(len(states), 'state')} of {size}"
    return f"{text}, {written} of them updated" if written else text


def number(value) -> str:
    return f"{value:.4g}" if isinstance(value, float) else short(value)


def names_in(program: Program) -> dict:
    """The name of each record in the program's text."""
    printer = Printer()
    printer.block(program, "", "")
    return printer.names
