"""Forward and backward program of a static function, and what crosses the cut between them."""

from __future__ import annotations

from ..engine.core.errors import teach
from ..engine.ir.program import Program
from .drawing import RecordDrawing, key
from .program import ProgramDrawing, names_in
from .records import spec_text
from .spread import Flow, Frame, Spread
from .style import bytes_text, count

CROSSING = {"color": "#d55e00", "fontcolor": "#d55e00", "penwidth": "2", "minlen": "0"}


def joint(function, depth: int | None = None, *, title: str = ""):
    """The programs of a static function's forward and backward, side by side.

    The forward goes down on one side, the backward up on the other; thick lines are the residuals,
    what the forward keeps for the backward, with their bytes. Parameters are alive in any case and
    are no residuals. `depth` as in `viz.program`. Raises ValueError if the program written last has
    no backward of its own: its inputs wanted no gradient, or it is a whole training step.

    >>> import minipaddle as paddle
    >>> from minipaddle import viz
    >>> square = paddle.jit.to_static(lambda x: paddle.tanh(x))
    >>> x = paddle.to_tensor([1.0], stop_gradient=False)
    >>> _ = square(x)
    >>> viz.joint(square).text.splitlines()[-1]
    '1 record forward, 3 backward; 1 residual of 4 B'
    """
    function = getattr(function, "forward", function)
    captured = function.concrete_program
    if captured.backward is None:
        raise ValueError(
            teach(
                f"{function.__name__} has no backward program",
                expected="a call with inputs or parameters that want a gradient",
                hint="of a step that does its own backward viz.program shows all",
            )
        )
    return JointDrawing(captured, depth).draw(title)


class JointDrawing(ProgramDrawing):
    """Two programs as one drawing; lines of the backward are turned around, so that it goes up."""

    def __init__(self, captured, depth: int | None = None):
        self.program, self.again = captured.program, set()
        self.backward = self.renewed(captured.backward)
        states = {s.record for s in self.program.states}
        self.residuals = set(self.program.outputs[captured.residuals :]) - states
        self.said = names_in(self.backward) | names_in(self.program)
        self.gradients = gradient_names(captured, self.backward, self.said)
        ahead, back = (Frame("lines", name, name) for name in ("forward", "backward"))
        self.spread = Spread(self.program, (ahead,))
        returning = Spread(self.backward, (back,))
        self.crossing = self.join(returning)
        results = {*self.program.outputs[: captured.residuals], *self.backward.outputs}
        RecordDrawing.__init__(self, self.spread.records, results, self.spread.paths, depth)
        self.sums = self.summed()

    def renewed(self, backward: Program) -> Program:
        """The backward, where values it computes again are records of their own."""
        own, fresh, records = set(self.program.records), {}, []
        for r in backward.records:
            inputs = [fresh.get(e, e) for e in r.inputs]
            if r in own or inputs != list(r.inputs):
                new = fresh[r] = r.copy(inputs)
                self.again |= {new} if r in own else set()
            records.append(fresh.get(r, r))
        outputs = [fresh.get(r, r) for r in backward.outputs]
        return Program(backward.name, backward.inputs, [], records, outputs, backward.guards)

    def join(self, returning: Spread) -> list[Flow]:
        """Take over what the backward's spread knows; the flows that cross the cut."""
        ours = set(self.spread.paths)
        for state in self.program.states:
            users = [f.to for f in returning.flows if f.source is state.record]
            if users:  # alive in any case: it stands on this side too
                copy = returning.copy(state)
                returning.settle(copy, users)
                returning.flows = [
                    f._replace(source=copy) if f.source is state.record else f
                    for f in returning.flows
                ]
        self.back = {r for r in returning.records if r not in ours}
        self.spread.records += [r for r in returning.records if r in self.back]
        self.spread.flows += [f for f in returning.flows if f.source not in ours]
        for name in ("paths", "states", "layers", "entries"):
            setattr(self.spread, name, getattr(returning, name) | getattr(self.spread, name))
        self.spread.controls |= returning.controls
        self.spread.carried |= returning.carried
        return list({(f.source, f.to): f for f in returning.flows if f.source in ours}.values())

    def summed(self) -> dict:
        """For each pair of units, the residuals between them."""
        sums: dict[tuple, dict] = {}
        for flow in self.crossing:
            pair = key(self.units[flow.source]), key(self.units[flow.to])
            sums.setdefault(pair, {})[flow.source] = flow.source.spec.nbytes
        return sums

    def given(self):
        return self.program.inputs

    def role(self, record) -> str:
        if record in self.backward.inputs and record in self.back:
            return "gradient"
        return super().role(record)

    def label(self, record) -> str:
        if record in self.backward.inputs and record in self.back:
            return self.said[record]
        label = super().label(record)
        if record in self.again:
            label += " again"
        return f"{label}\n{self.gradients[record]}" if record in self.gradients else label

    def edges(self):
        for source, to, attrs in super().edges():
            if source in self.back:
                turned = {"dir": "back"} if attrs.get("style") != "invis" else {}
                ends = {"lhead": "ltail", "ltail": "lhead"}
                yield to, source, {ends.get(k, k): v for k, v in attrs.items()} | turned
            else:
                yield source, to, attrs
        told = set()
        for flow in self.crossing:
            pair = key(self.units[flow.source]), key(self.units[flow.to])
            sizes, label = self.sums[pair], {}
            if pair not in told:
                many = f"{len(sizes)}: " if len(sizes) > 1 else ""
                label = {"label": f" {many}{size_text(sum(sizes.values()))} "}
            told.add(pair)
            said = [f"{self.said[r]}: {spec_text(r)}, {size_text(n)}" for r, n in sizes.items()]
            yield flow.source, flow.to, CROSSING | label | {"tooltip": "\n".join(said)}

    def caption(self) -> str:
        kept = {flow.source: flow.source.spec.nbytes for flow in self.crossing}
        made = count(len(self.program.records), "record")
        return (
            f"{made} forward, {len(self.backward.records)} backward; "
            f"{count(len(kept), 'residual')} of {size_text(sum(kept.values()))}"
        )

    def text(self) -> str:
        return f"{self.program}\n{self.backward}\n{self.caption()}"

    def more_legend(self):
        return [*super().more_legend(), ("━ residual", CROSSING["color"])]


def gradient_names(captured, backward: Program, said: dict) -> dict:
    """Of which input or parameter each result of the backward is the gradient."""
    inputs = [said[captured.program.inputs[k]] for k in captured.walk.inputs]
    names = [*inputs, *(x.name for x in captured.walk.outer)]
    found: dict = {}
    for record, name in zip(backward.outputs, names, strict=True):
        found[record] = f"{found[record]}, {name}" if record in found else f"∂/∂ {name}"
    return found


def size_text(n) -> str:
    """A size in bytes; where a dimension is open, as a formula."""
    return bytes_text(n) if isinstance(n, int) else f"{n} B"
