"""A program as a picture: data flow, branches and loops as nested boxes, states beside it."""

from __future__ import annotations

from ..engine.core.errors import line_of, teach
from ..engine.ir.edit import count_uses
from ..engine.ir.printer import Printer
from ..engine.ir.program import ITEM, NUMBER, Program, everywhere
from ..engine.passes.manager import Optimized, optimized
from .drawing import RecordDrawing
from .records import short, spec_text
from .spread import SAME, Spread
from .style import LOOKS, bytes_text, count


def program(target, depth: int | None = None, *, title: str = ""):
    """A Program, or the one a static function wrote last, as a graph.

    Layers, the branches of a `cond` and the body of a `while_loop` are boxes; `depth` says how many
    levels of them are open, by default as many as fit in 150 nodes. Of a program that is longer
    still, the newest part is drawn. A line that made many records, such as `loss.backward()`, is a
    box too. States are cylinders: a dashed line leads from the new value to its state. Numbers
    stand in the labels, and the tooltips have the user's lines. Raises RuntimeError if a static
    function was not called yet, TypeError for anything else.

    >>> import minipaddle as paddle
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
    return ProgramDrawing(program_of(target), depth, *ends_of(target)).draw(title)


def groups(target, depth: int | None = None, *, title: str = ""):
    """What is computed together: a program after the passes, with a box for each group.

    A group is one kernel: a loop nest, maybe with the product or the convolution it begins with.
    With `depth=0` the boxes are closed, as they are where there would be more than 150 nodes. Takes
    what `viz.passes` takes.

    >>> import minipaddle as paddle
    >>> from minipaddle import viz
    >>> @paddle.jit.to_static
    ... def f(x):
    ...     return paddle.nn.functional.softmax(x * 2)
    >>> y = f(paddle.ones([3, 4]))
    >>> print(viz.groups(f).text.splitlines()[1])
      v1 = fused(x, region=(x~: float32[3, 4]) {
    """
    program = with_states_used(optimized_of(target).program)
    return ProgramDrawing(program, depth, set(program.outputs), set(), groups=True).draw(title)


def with_states_used(program: Program) -> Program:
    """The program without the states that its records have no use for any more."""
    used = count_uses(program)
    states = [s for s in program.states if s.update is not None or used[s.record]]
    return Program(**vars(program) | {"states": states})


def optimized_of(target) -> Optimized:
    """What the passes made of a program: of a static function's last one, as it was compiled, or
    as its strategy would have it; an executable has it already.
    """
    if isinstance(target, Optimized):
        return target
    target = getattr(target, "forward", target)
    compiled = getattr(target, "executables", None) or [target]
    found = getattr(compiled[-1], "optimized", None)
    return found or optimized(program_of(target), getattr(target, "build_strategy", None))


def program_of(target) -> Program:
    """The program itself, or that of a static function, a layer made static, an executable."""
    target = getattr(target, "forward", target)
    found = getattr(target, "main_program", getattr(target, "program", target))
    if not isinstance(found, Program):
        raise TypeError(
            teach(
                f"a picture of the program of {type(target).__name__}",
                expected="a Program, what paddle.jit.to_static gave, or an executable of that",
                hint="viz.tape draws what an eager computation did",
            )
        )
    return found


def ends_of(target) -> tuple[set, set]:
    """The results of a program, and what its forward hands to its backward; some are both."""
    captured = getattr(getattr(target, "forward", target), "concrete_program", None)
    if captured is None or captured.backward is None:
        return set(program_of(target).outputs), set()
    outputs, states = captured.program.outputs, {s.record for s in captured.program.states}
    return set(outputs[: captured.residuals]), set(outputs[captured.residuals :]) - states


FRAMES = {
    "group": {"style": "rounded,filled", "fillcolor": "#56b4e920", "color": "#56b4e9"},
    "layer": {},
    "lines": {"style": "rounded,dashed"},
    "region": {"color": LOOKS["region"].fill, "penwidth": "1.5"},
}


KEPT = {"color": "#d55e00", "penwidth": "3"}


class ProgramDrawing(RecordDrawing):
    """A program's records and those of its regions."""

    def __init__(self, program: Program, depth, results: set, residuals: set, groups=False):
        self.program, self.said = program, names_in(program)
        self.spread = self.spread_out(groups)
        made = self.spread.at  # what a group gives is made inside of it
        results, self.residuals = ({made.get(r) or r for r in s} for s in (results, residuals))
        super().__init__(self.spread.records, results, self.spread.paths, depth)

    def spread_out(self, groups: bool) -> Spread:
        return Spread(self.program, groups=groups)

    def draw(self, title: str = "", **attrs):
        return super().draw(title, compound="true", **attrs)

    def look(self, record) -> tuple[str, str, str, dict]:
        role, spec = self.role(record), spec_text(record)
        if role == "decision":
            return role, record.op.name.removesuffix("_loop"), self.tip(record), {"margin": "0"}
        if role == "same":
            return role, "=", f"as it is: {spec}", {"width": "0.3"}
        attrs = {"peripheries": "2"} if record in self.results and role == "input" else {}
        attrs |= KEPT if record in self.residuals else {}
        label = self.label(record)
        return role, f"{label}\n{spec}" if label else spec, self.tip(record), attrs

    def role(self, record) -> str:
        """The role (a key of LOOKS) of a record of a program."""
        if record in self.spread.controls:
            return "decision"
        if record in self.spread.states:
            return self.spread.state_role(record)
        if record in self.spread.carried:
            return "carried"
        if not record.inputs and record.attrs.get("name") == SAME:
            return "same"
        if record in self.given():
            return "input"
        if record in self.results:
            return "output"
        if self.is_merge(record):
            return "merge"
        return record.op.kind if record.op.kind in LOOKS else "opaque"

    def is_merge(self, record) -> bool:
        return record.op is ITEM and record.inputs[0] in self.spread.controls

    def given(self):
        return self.program.inputs

    def label(self, record) -> str:
        """`multiply(·, 2)`: the operator, with the numbers among its inputs."""
        if record in self.spread.states:
            return self.spread.state_name(record)
        if record in self.spread.carried or record in self.given():
            return self.said[record]
        if record.op is ITEM:
            alone = self.is_merge(record) and len(record.inputs[0].shape) == 1
            return "" if alone else f"[{record.attrs['k']}]"
        if not any(e.op is NUMBER for e in record.inputs):
            return record.op.name
        inputs = [number(e.attrs["value"]) if e.op is NUMBER else "·" for e in record.inputs]
        return f"{record.op.name}({', '.join(inputs)})"

    def tip(self, record) -> str:
        """Its name in the text, its attributes, the user's line."""
        inputs = [
            repr(e.attrs["value"]) if e.op is NUMBER else self.said.get(e, "·")
            for e in record.inputs
        ]
        attrs = [f"{k}={short(v)}" for k, v in record.attrs.items() if not isinstance(v, Program)]
        name, said = self.said.get(record, ""), ", ".join([*inputs, *attrs])
        lines = [f"{name} = {record.op.name}({said}) : {spec_text(record)}"]
        if record in self.spread.states:
            lines = [f"state {self.spread.states[record].name or name} : {spec_text(record)}"]
        elif record in self.given() or record in self.spread.carried:
            lines = [f"{name} : {spec_text(record)}"]
        if record.where:
            lines.append(line_of(record.where))
        return "\n".join(lines)

    def edges(self):
        for flow in self.spread.flows:
            attrs = {"tooltip": flow.tip} | flow.attrs
            frame = self.spread.entries.get(id(flow))
            if frame is not None and self.units[flow.to] is flow.to:
                attrs["lhead"] = f"cluster_{self.name(frame)}"
            yield flow.source, flow.to, attrs

    def frame_text(self, frame) -> tuple[str, str]:
        return frame.label, frame.tip

    def frame_attrs(self, frame) -> dict:
        return FRAMES[frame.kind]

    def closed_role(self, frame) -> str:
        return frame.kind

    def closed_tip(self, records) -> str:
        where = [line_of(r.where) for r in records if r.where]
        return f"\n{where[0]}" if where else ""

    def caption(self) -> str:
        """How many records, and how much memory its states take."""
        made = count(sum(1 for _ in everywhere(self.program)), "record")
        states = self.program.states
        if not states:
            return made
        written = sum(s.update is not None for s in states)
        size = bytes_text(sum(s.record.spec.nbytes for s in states))
        text = f"{made}, {count(len(states), 'state')} of {size}"
        return f"{text}, {written} of them updated" if written else text

    def text(self) -> str:
        return str(self.program)

    def more_legend(self):
        updated = any(s.update is not None for s in self.program.states)
        cells = [("⇢ new value of a state", "#d55e00")] if updated else []
        return cells + ([("▢ kept for the backward", KEPT["color"])] if self.residuals else [])


def number(value) -> str:
    return f"{value:.4g}" if isinstance(value, float) else short(value)


def names_in(program: Program) -> dict:
    """What each record is called in the program's text."""
    printer = Printer()
    printer.block(program, "", "")
    return printer.names
