"""A program with the records of its regions: the frame of each, and an edge for each value.

A region is a closed program, which takes all it uses as inputs. In a picture an edge leads straight
from where a value is made, so these inputs vanish; but loop-carried values stay.
"""

import linecache
import math
from collections import Counter, defaultdict
from functools import reduce

from ..engine.core.errors import line_number, line_of
from ..engine.core.record import Record
from ..engine.eager.storage import TensorStorage
from ..engine.ir.control import cond, fused, while_loop
from ..engine.ir.program import INPUT, ITEM, NUMBER, Program, regions
from ..nn.layer.tree import layers_of
from .collapse import common
from .parts import Edge, Frame
from .phases import phases_of, split_into_components
from .records import input_name, layer_frame, spec_text

MANY = 8
"""More records than this, made by one line that calls no layer, get a frame."""
TIPS = {
    "forward": "the loss",
    "backward": "the gradients, by a reverse walk through the forward",
    "update": "the new values of parameters and of the optimizer's states",
}
NEW = "new "
"""How the label of an update's frame begins."""
SAME = "same"
"""The name, in `attrs`, of a record that hands on a value unchanged."""


class FlatProgram:
    """`records` in order, `paths` to the frames of each, and `flows`.

    `carried` are the values loops carry, `controls` the records with regions.
    """

    def __init__(self, program: Program, around: tuple = (), groups: bool = False):
        """With `groups` there are no frames but those of groups, branches and loops."""
        self.groups = groups
        self.records: list[Record] = []
        self.paths: dict[Record, tuple] = {}
        self.flows: list[Edge] = []
        self.carried: set[Record] = set()
        self.controls: set[Record] = set()
        self.states = {s.record: s for s in program.states}
        self.frames: dict[tuple, Frame] = {}
        self.updates: list[Frame] = []
        self.at: dict[Record, Record | None] = {}  # the source of a value in the picture
        self.phases = {} if groups else phases_of(program)
        self.busy = () if self.phases else busy_lines(program.records)
        for record in program.given:
            self.put(record, around, record)
        self.region(program, around, ())
        self.frame_updates(program)
        if groups:
            self.frame_lone_updates(program)
        self.place_states(program)
        if len(program.inputs) > MANY:
            self.place_inputs(program)
        self.stack_updates()

    def put(self, record, path: tuple, source) -> None:
        self.records.append(record)
        self.paths[record], self.at[record] = path, source

    def flow(self, source, to, tip: str, attrs: dict | None = None) -> None:
        origin = self.at.get(source)
        if origin is not None:
            self.flows.append(Edge(origin, to, tip, attrs or {}))

    # ---- records -----------------------------------------------------------------------------

    def region(self, program: Program, path: tuple, outer: tuple) -> None:
        """The records of a program; `outer` are the layers its owner was called in."""
        uses = {e for r in program.records for e in r.inputs} | set(program.results)
        for record in program.records:
            inner = layers_of(record.scope)
            layers = inner[len(common(inner, outer)) :]
            frame = self.frame_layers(path + self.frame_line(record, path, outer), layers)
            if record.op is fused:
                self.group(record, path)
            elif record.op is ITEM and record.inputs[0].op is fused:
                region = record.inputs[0].attrs["region"]
                self.at[record] = self.at[region.outputs[record.attrs["k"]]]
            elif regions(record):
                self.control(record, frame, inner)
            elif record.op is ITEM and record.inputs[0] in self.controls:
                if record in uses:
                    self.result(record)
            else:
                self.put(record, frame, record)
                for k, edge in enumerate(record.inputs):
                    if edge.op is not NUMBER:
                        self.flow(edge, record, f"{input_name(record.op, k)}: {spec_text(edge)}")

    def frame_layers(self, path: tuple, scopes) -> tuple:
        """The path, and on it a frame for each layer call."""
        for scope in () if self.groups else scopes:
            key = (*path, id(scope))
            if key not in self.frames:
                self.frames[key] = layer_frame(scope)
            path += (self.frames[key],)
        return path

    def frame_phase(self, record) -> tuple:
        """The frames of a training step's phase, and in it of the update of a parameter."""
        phase, *state = self.phases[record]
        frame = Frame(phase, TIPS[phase], "update" if state else "phase")
        path = (self.frames.setdefault((phase,), frame),)
        for name in state:
            if (phase, name) not in self.frames:
                self.frames[phase, name] = Frame(f"{NEW}{name}", path[0].tip, "lines")
                self.updates.append(self.frames[phase, name])
            path += (self.frames[phase, name],)
        return path

    def frame_line(self, record, path, outer) -> tuple:
        """The frame of a phase, or of a busy line, at the outermost level."""
        if record in self.phases and not path and not outer:
            return self.frame_phase(record)
        line = locate(record)
        if path or outer or self.groups or line not in self.busy:
            return ()
        text = linecache.getline(*line).strip() or line_of(record.where)
        text = text if len(text) <= 50 else f"{text[:49]}…"
        return (self.frames.setdefault(line, Frame(text, line_of(record.where), "lines")),)

    def group(self, record, path: tuple) -> None:
        """The records of a group, in a frame of its own outside of all layers."""
        region = record.attrs["region"]
        self.at |= {x: self.at.get(e) for x, e in zip(region.inputs, record.inputs)}
        names = dict.fromkeys(r.op.name for r in region.records if r.op.kind != "movement")
        label = ", ".join([*names][:3]) + (", …" if len(names) > 3 else "")
        tip = line_of(record.where) if record.where else label
        self.region(region, (*path, Frame(label, tip, "group")), ())

    # ---- branches and loops ------------------------------------------------------------------

    def control(self, record, path: tuple, layers: tuple) -> None:
        """A record with regions: a frame with a decision, a frame for each region, the results."""
        tip = line_of(record.where) if record.where else record.op.name
        path = (*path, Frame(record.op.name, tip, "region"))
        inputs = record.inputs
        if record.op is while_loop:
            inputs = self.carry(record, path)
        self.controls.add(record)
        self.put(record, path, record)
        if record.op is cond:
            self.flow(inputs[0], record, f"pred: {spec_text(inputs[0])}")
        for name, region in regions(record).items():
            frame = Frame(name, f"{name} of {record.op.name}", "region")
            captured = inputs[len(inputs) - len(region.inputs) :]
            self.at |= {inner: self.at.get(e) for inner, e in zip(region.inputs, captured)}
            if record.op is while_loop and name == "test" and region.outputs[0] in region.inputs:
                self.flow(region.outputs[0], record, "goes on while it holds")
                continue
            self.region(region, (*path, frame), layers)
            self.pass_on(region, (*path, frame))
            self.enter(record, frame, name)
        if record.op is while_loop:
            self.loop_back(record)

    def carry(self, record, path) -> list:
        """The loop-carried values: the body's inputs, as values of the picture."""
        carried = record.inputs[: record.attrs["carried"]]
        own = record.attrs["body"].inputs[: len(carried)]
        for first, inner in zip(carried, own):
            self.put(inner, path, inner)
            self.flow(first, inner, f"at first: {spec_text(first)}")
            self.carried.add(inner)
        return [*own, *record.inputs[len(carried) :]]

    def loop_back(self, record) -> None:
        test, body = record.attrs["test"], record.attrs["body"]
        if test.outputs[0] not in test.inputs:
            self.flow(test.outputs[0], record, "goes on while it holds")
        for inner, output in zip(body.inputs, body.outputs[: record.attrs["carried"]]):
            self.flow(output, inner, "for the next round", AGAIN)

    def pass_on(self, region: Program, path) -> None:
        """A node for each output of a region that is one of its inputs."""
        for output in dict.fromkeys(region.outputs):
            if output.op is INPUT:
                same = Record(INPUT, (), {"name": SAME}, output.shape, output.dtype)
                self.put(same, path, same)
                self.flow(output, same, spec_text(output))
                self.at[output] = same

    def enter(self, record, frame, name: str) -> None:
        """The decision leads to the first record of a region."""
        first = next((r for r in self.records if frame in self.paths[r]), None)
        if first is not None and name != "test":
            self.flows.append(Edge(record, first, name, DECIDED | {"lhead": frame}))

    def result(self, item) -> None:
        """A result of a record with regions: where its branches meet, or a loop's last value."""
        record, k = item.inputs[0], item.attrs["k"]
        self.put(item, self.paths[record], item)
        if record.op is while_loop:
            body, n = record.attrs["body"], record.attrs["carried"]
            written = len(record.shape) - len(record.attrs.get("writes", ()))
            if k >= written:
                self.flow(body.outputs[n + k - written], item, "of each round")
            elif k == n:
                self.flow(record, item, "how many rounds")
            else:
                self.flow(body.inputs[k % (n + 1)], item, "at last" if k < n else "of each round")
            return
        for name, region in regions(record).items():
            self.flow(region.outputs[k], item, f"{name}: {spec_text(region.outputs[k])}")

    # ---- frames of updates, and states -------------------------------------------------------

    def frame_updates(self, program: Program) -> None:
        """In a busy line, a frame for the records of each separate update."""
        for line in list(self.frames.values()):
            if line.kind != "lines":
                continue
            members = [r for r in self.records if self.paths[r] == (line,)]
            groups = split_into_components(members, program.states)
            if len(groups) < 2:
                continue
            for group in groups:
                states = [s for s in program.states if s.update in group]
                if states and len(group) > 1:
                    label = f"{NEW}{min((s.name for s in states), key=len) or 'state'}"
                    frame = Frame(label, line.tip, "lines")
                    self.updates.append(frame)
                    for r in group:
                        self.paths[r] = (line, frame)

    def frame_lone_updates(self, program: Program) -> None:
        """One frame for states that change by themselves, as powers of an optimizer's decay do."""
        updates = {s.update for s in program.states}
        fixed = lambda r: all(e in self.states or e.op is NUMBER for e in r.inputs)
        lone = [r for r in program.records if r in updates and fixed(r)]
        frame = Frame("states that change by themselves", "no input has a part in that", "lines")
        self.paths |= dict.fromkeys(lone if len(lone) > MANY else (), (frame,))

    def place_states(self, program: Program) -> None:
        """Place a copy of a state in each outermost frame that uses it, to keep lines short."""
        flows_from = defaultdict(list)
        for k, flow in enumerate(self.flows):
            flows_from[flow.source].append(k)
        for state in program.states:
            uses: dict[tuple, list] = {}
            for k in flows_from[state.record]:
                uses.setdefault(self.paths[self.flows[k].target][:1], []).append(k)
            new = state.update and self.at[state.update]
            if new is state.record:  # as it was
                new = None
            if new is not None:
                uses.setdefault(self.paths[new][:1], [])
            for n, (top, places) in enumerate(uses.items()):
                users = [self.flows[k].target for k in places]
                if new is not None and self.paths[new][:1] == top:
                    users.append(new)
                record = self.copy(state) if n else state.record
                self.place(record, users)
                if new in users[len(places) :]:
                    self.flow(new, record, "the new value", UPDATE)
                for k in places:
                    self.flows[k] = self.flows[k]._replace(source=record)

    def place_inputs(self, program: Program) -> None:
        """Place each input in the innermost frame around all its uses."""
        for record in program.inputs:
            users = [flow.target for flow in self.flows if flow.source is record]
            if users:
                self.place(record, users)

    def copy(self, state) -> Record:
        """The same state, to be drawn once more."""
        record = Record(INPUT, (), {}, *state.record.spec)
        self.states[record], self.at[record] = state, record
        self.records.append(record)
        return record

    def place(self, record, users) -> None:
        """Move a record into the innermost frame around its users, before the first of them."""
        self.paths[record] = reduce(common, [self.paths[r] for r in users])
        self.records.remove(record)
        self.records.insert(min(map(self.records.index, users)), record)

    def stack_updates(self) -> None:
        """Arrange the frames of updates in rows."""
        columns = math.isqrt(len(self.updates))
        for k, frame in enumerate(self.updates[columns:]):
            above = [r for r in self.records if self.updates[k] in self.paths[r]]
            below = [r for r in self.records if frame in self.paths[r] and r in self.states]
            self.flows += [Edge(above[-1], r, "", {"style": "invis"}) for r in below]

    def state_role(self, record) -> str:
        """The role of a state: a parameter, or another state."""
        cell = self.states[record].storage
        own = isinstance(cell, TensorStorage) and cell.tensor.is_parameter
        return "parameter" if own else "state"

    def state_name(self, record) -> str:
        """The name of a state at its place: inside its layer, the attribute's name."""
        state = self.states[record]
        tensor = getattr(state.storage, "tensor", None)
        for frame in reversed(self.paths[record]):
            layer = frame.layer
            held = {} if layer is None else {**layer._parameters, **layer._buffers}
            for name, x in held.items():
                if x is tensor:
                    return name
            around = f"{frame.label.removeprefix(NEW)}_"
            if frame.label.startswith(NEW) and state.name.startswith(around):
                return state.name.removeprefix(around)
        return state.name or "state"


UPDATE = {"style": "dashed", "constraint": "false", "color": "#d55e00", "arrowhead": "empty"}
AGAIN = {"style": "dashed", "constraint": "false", "arrowhead": "empty"}
DECIDED = {"style": "dotted", "arrowhead": "open", "penwidth": "1.5"}


def busy_lines(records) -> set:
    """The lines that made many records, some of them outside of any layer."""
    counts = Counter(locate(r) for r in records if r.where)
    bare = {locate(r) for r in records if r.where and r.scope is None}
    return {line for line, n in counts.items() if n > MANY and line in bare}


def locate(record) -> tuple | None:
    """File and line of a record."""
    if not record.where or isinstance(record.where, str):  # of a program read from a file
        return record.where and (record.where, 0)
    return record.where[0].co_filename, line_number(record.where)
