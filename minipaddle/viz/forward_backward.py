"""Forward and backward program of a static function, and the residuals between them."""

from collections.abc import Iterator

from ..engine.core.errors import value_error
from ..engine.core.record import Record
from ..engine.ir.program import Program
from .collapse import Collapse
from .flat_program import FlatProgram
from .parts import Edge, Frame, Legend, Node, draw
from .program import ProgramView, close_lines, names_in
from .records import spec_text
from .style import bytes_text, count
from .target import forward_of

CROSSING = {"color": "#d55e00", "fontcolor": "#d55e00", "penwidth": "2", "minlen": "0"}


def joint(function, depth: int | None = None, *, title: str = ""):
    """The programs of a static function's forward and backward, side by side.

    The forward goes down on one side, the backward up on the other; thick lines are the residuals,
    what the forward keeps for the backward, with their bytes. Parameters are alive in any case and
    are no residuals. `depth` as in `viz.program`. Raises ValueError if the program written last has
    no backward of its own: its inputs wanted no gradient, or it is a whole training step.

    >>> from minipaddle import viz
    >>> square = paddle.jit.to_static(lambda x: paddle.tanh(x))
    >>> x = paddle.to_tensor([1.0], stop_gradient=False)
    >>> _ = square(x)
    >>> viz.joint(square).text.splitlines()[-1]
    '1 record forward, 3 backward; 1 residual of 4 B'
    """
    function = forward_of(function)
    captured = function.concrete_program
    if captured.backward is None:
        expected = "a call with inputs or parameters that want a gradient"
        hint = "of a step that does its own backward viz.program shows all"
        what = f"{function.__name__} has no backward program"
        raise value_error(what, expected=expected, hint=hint)
    return draw(JointView(captured).joint_parts(depth), title, compound="true")


class JointView(ProgramView):
    """Two programs as one; lines of the backward are turned around, so that it goes up."""

    def __init__(self, captured):
        program = captured.program
        self.backward, again = copy_shared(captured.backward, program)
        states = {s.record for s in program.states}
        results = {*program.outputs[: captured.residuals], *self.backward.outputs}
        residuals = set(program.outputs[captured.residuals :]) - states
        names = names_in(self.backward) | names_in(program)
        forward, backward = (Frame(name, name, "lines") for name in ("forward", "backward"))
        flat, returning = FlatProgram(program, (forward,)), FlatProgram(self.backward, (backward,))
        self.crossing = join(flat, returning, program.states)
        super().__init__(program, flat, results, residuals, names)
        self.back = {r for r in flat.records if flat.paths[r][:1] == (backward,)}
        self.roles = {r: "gradient" for r in self.backward.inputs if r in self.back}
        self.notes = dict.fromkeys(again, " again")
        for record, text in name_gradients(captured, self.backward, names).items():
            self.notes[record] = f"{self.notes.get(record, '')}\n{text}"
        self.notes = {r: text for r, text in self.notes.items() if r not in self.roles}

    def joint_parts(self, depth: int | None) -> Iterator:
        """The parts that are drawn, with `depth` levels of frames open."""
        parts = list(self.parts())
        fold = Collapse((p for p in parts if isinstance(p, Node)), depth, close_lines)
        turned = (self.turn(p) if isinstance(p, Edge) else p for p in parts)
        crossing = self.draw_crossing(fold.units)
        cells = (*self.cells(), ("━ residual", CROSSING["color"]))
        text = f"{self.program}\n{self.backward}\n{self.caption()}"
        yield from fold.parts([*turned, *crossing, Legend(self.caption(), cells, text)])

    def turn(self, edge: Edge) -> Edge:
        """A line of the backward, drawn from its end."""
        if edge.source not in self.back:
            return edge
        ends = {"lhead": "ltail", "ltail": "lhead"}
        attrs = {ends.get(k, k): v for k, v in edge.attrs.items()}
        turned = {"dir": "back"} if attrs.get("style") != "invis" else {}
        return Edge(edge.target, edge.source, edge.tip, attrs | turned)

    def draw_crossing(self, units: dict) -> Iterator[Edge]:
        """The residuals; the first line between two units has the sum of their sizes."""
        sums: dict[tuple, dict] = {}
        for source, target in self.crossing:
            pair = units[source], units[target]
            sums.setdefault(pair, {})[source] = source.spec.nbytes
        labels = {}
        for pair, sizes in sums.items():
            many = f"{len(sizes)}: " if len(sizes) > 1 else ""
            labels[pair] = {"label": f" {many}{bytes_text(sum(sizes.values()))} "}
        for source, target in self.crossing:
            pair = units[source], units[target]
            sizes = sums[pair].items()
            lines = [f"{self.names[r]}: {spec_text(r)}, {bytes_text(n)}" for r, n in sizes]
            yield Edge(source, target, "\n".join(lines), CROSSING | labels.pop(pair, {}))

    def caption(self) -> str:
        sizes = {source: source.spec.nbytes for source, _ in self.crossing}
        records = f"{count(len(self.program.records), 'record')} forward"
        residuals = f"{count(len(sizes), 'residual')} of {bytes_text(sum(sizes.values()))}"
        return f"{records}, {len(self.backward.records)} backward; {residuals}"


def copy_shared(backward: Program, program: Program) -> tuple[Program, set]:
    """The backward, in which records of the forward are copies; and the set of these copies."""
    own, fresh, records, again = set(program.records), {}, [], set()
    for r in backward.records:
        inputs = [fresh.get(e, e) for e in r.inputs]
        if r in own or inputs != list(r.inputs):
            fresh[r] = r.copy(inputs)
            again |= {fresh[r]} if r in own else set()
        records.append(fresh.get(r, r))
    outputs = [fresh.get(r, r) for r in backward.outputs]
    return Program(backward.name, backward.inputs, [], records, outputs, backward.guards), again


def join(forward: FlatProgram, returning: FlatProgram, states) -> list[tuple[Record, Record]]:
    """Add the backward to the forward; the pairs of records whose value crosses over."""
    ours = set(forward.paths)
    for state in states:
        users = [f.target for f in returning.flows if f.source is state.record]
        if users:  # alive in any case: it is on this side too
            copy = returning.copy(state)
            returning.place(copy, users)
            returning.flows = [
                f._replace(source=copy) if f.source is state.record else f for f in returning.flows
            ]
    forward.records += [r for r in returning.records if r not in ours]
    forward.flows += [f for f in returning.flows if f.source not in ours]
    forward.paths = returning.paths | forward.paths
    forward.states = returning.states | forward.states
    forward.controls |= returning.controls
    forward.carried |= returning.carried
    return list({(f.source, f.target): None for f in returning.flows if f.source in ours})


def name_gradients(captured, backward: Program, known: dict) -> dict:
    """Of which input or parameter each result of the backward is the gradient."""
    inputs = [known[captured.program.inputs[k]] for k in captured.walk.inputs]
    names = [*inputs, *(s.tensor.name for s in captured.walk.outer)]
    names_of: dict = {}
    for record, name in zip(backward.outputs, names, strict=True):
        names_of[record] = f"{names_of[record]}, {name}" if record in names_of else f"∂/∂ {name}"
    return names_of
