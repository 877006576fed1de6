"""A loop nest as CUDA kernels, from the same `Nest` and the same formulas as in C.

    without reductions: n threads share the elements, and each takes every n-th (or n-th pack)
    rows and columns: a team of threads takes a row. In each stage

        a thread reduces its elements of the row, the team joins the results, all go on with them

If there are few long rows, they are split. Then each stage is a kernel: it joins what the parts of
earlier stages have reduced, and walks along the parts of this one. A last kernel computes the
results of rows.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import NamedTuple

from ...engine.codegen.accumulator import Accumulator, join
from ...engine.codegen.kernel import C_TYPES
from ...engine.codegen.nest_kernel import nest_writer
from ...engine.codegen.rows import Rows
from ...engine.codegen.scalar import ScalarText, wide
from ...engine.codegen.writer import NestWriter, for_head, least
from ...engine.core.symbols import Loop
from ...engine.passes.nest import NestNode, reach
from ..rows.collapsed_loops import declare_loops, flat_name
from .calls import CUDA_TYPES, KernelCalls, Launch, Operand, operands
from .packs import PackWriter, lanes_of
from .teams import Teams, index_type, splits_of, teams_of
from .text import each, find_used, launch

WORDS = """
and asm at class delete half live namespace new not operator or part private public row template
this using xor table block
"""
TAKEN = tuple(WORDS.split())
"""Words of C++ and of the kernels, which cannot be names of inputs."""

SHARED = 40_000
"""Most bytes of rows that a block keeps between two stages."""


def emit_nest(record, name: str) -> KernelCalls:
    """The calls for a record that is one loop nest."""
    writer, parameters = nest_writer(record, CUDA_TYPES, TAKEN)
    if not writer.nest.reduces:
        return elements(record, name, writer, parameters)
    teams = teams_of(writer.nest)
    if (splits := splits_of(teams, writer.nest)) > 1:
        return reduce_in_parts(record, name, writer, parameters, teams._replace(splits=splits))
    lanes = 1 if teams.down else lanes_of(writer.nest)
    rows = TeamRows(writer, teams)
    if lanes > 1 and len(rows.along) == 1 and rows.length >= lanes * teams.size:
        rows = TeamRows(PackWriter(writer, lanes), teams)
        rows.lanes = lanes
    return rows.work(record, name, parameters)


def elements(record, name: str, w: NestWriter, parameters) -> KernelCalls:
    """No reductions: every element once."""
    T, loops, lanes = index_type(w.nest), w.nest.loops, lanes_of(w.nest)
    if lanes > 1:
        w = PackWriter(w, lanes)
        loops = [*loops[:-1], Loop(w.first, loops[-1].extent // lanes)]
    at, w.depth = flat_name(loops, w.fresh("at")), 0
    w.put(*declare_loops(T, at, loops))
    with w.pack(w.nest.nodes(), w.outputs()) if lanes > 1 else nullcontext():
        w.assign(w.stores(w.outputs(), {}))
    body, count = "\n".join(w.lines), w.nest.size // lanes
    return KernelCalls((each(name, parameters, count, body, operands(record), at, T),))


class TeamRows(Rows):
    """A nest with reductions: `Rows` as in C, each row by a team."""

    lanes = 1  # elements that a thread takes at once

    def __init__(self, writer: NestWriter, teams: Teams):
        super().__init__(writer)
        self.teams, self.T = teams, index_type(writer.nest)
        self.at, self.number = flat_name(self.along, "at"), flat_name(self.kept, "row")
        self.helpers: dict[str, None] = {}
        self.checked = bool(self.nest.rows % teams.beside)

    def launch(self, name: str, parameters, arguments=()) -> Launch:
        """The kernel with the lines written so far."""
        teams = self.teams
        blocks = teams.blocks(self.nest.rows), teams.splits
        return launch(
            name, parameters, self.w.lines, blocks, teams.threads, arguments, self.helpers
        )

    def work(self, record, name: str, parameters) -> KernelCalls:
        self.write()
        return KernelCalls((self.launch(name, parameters, operands(record)),))

    def write(self) -> None:
        w = self.w
        self.find_row()
        self.later = w.needed_later(True)
        stored = {n for _, n, _ in self.nest.outputs}
        room = sum(wide(n.dtype).itemsize for n in self.later if n not in stored)
        if room * self.length * self.teams.beside > SHARED or self.teams.down:
            self.later = w.needed_later(False)
        for stage in range(w.stages):
            self.row_outputs(stage)
            self.stage(stage)

    def find_row(self) -> None:
        """Declare the row of this thread. One beyond the last row computes, but stores nothing."""
        w, rows, T = self.w, self.nest.rows, self.T
        if not self.kept:
            if self.checked:
                w.put(f"if ({self.teams.row(T)} > 0) return;")
                self.checked = False
            return
        if not self.checked or not self.teams.waits:
            w.put(f"const {T} {self.number} = {self.teams.row(T)};")
            if self.checked:
                w.put(f"if ({self.number} >= {rows}) return;")
                self.checked = False
        else:
            w.put(f"const bool live = {self.teams.row(T)} < {rows};")
            w.put(f"const {T} {self.number} = live ? {self.teams.row(T)} : {rows - 1};")
        w.put(*declare_loops(T, self.number, self.kept))

    def row_outputs(self, stage: int) -> None:
        """One thread of the team stores the results of the row."""
        if outputs := self.w.outputs(stage, True):
            with self.one_thread():
                self.w.assign(self.w.stores(outputs, self.row))

    @contextmanager
    def one_thread(self):
        """Statements of one thread of each team."""
        tests = [f"{self.teams.member} == 0"] * (self.teams.size > 1) + ["live"] * self.checked
        with self.w.block(f"if ({' && '.join(tests)})") if tests else nullcontext():
            yield

    def buffer(self, node: NestNode) -> str:
        w, name, beside = self.w, self.w.fresh("kept"), self.teams.beside
        w.put(f"__shared__ {C_TYPES[wide(node.dtype)]} {name}[{beside * self.length}];")
        team = f"threadIdx.y * {self.length} + " if beside > 1 else ""
        return f"{name}[{team}{self.at if self.along else 0}]"

    def along_row(self, folds, outputs, buffers) -> None:
        count = str(self.length // self.lanes)
        self.team_row(folds, outputs, buffers, self.teams.member, count)

    def team_row(self, folds, outputs, buffers, first: str, last: str) -> None:
        """The loop of a thread along its part of the row; then the team joins its results."""
        w = self.w
        self.declare([(f.type, f.name, f.identity) for f in folds])
        if self.checked:
            first = f"live ? {first} : {self.length}"
        counter = self.at if self.lanes == 1 else w.first
        with w.block(for_head(counter, first, last, self.teams.size, self.T)):
            if self.lanes == 1:
                w.put(*declare_loops(self.T, counter, self.along))
                self.body(folds, outputs, buffers)
            else:
                roots = [*(f.node.args[0] for f in folds), *(n for *_, n, _ in outputs), *buffers]
                with w.pack(reach(roots, lambda n: n not in w.known), outputs):
                    self.body(folds, outputs, buffers)
        self.join(folds)

    def join(self, folds) -> None:
        """Join the results of all threads of the team; each thread gets the joined one."""
        for f in folds:
            self.w.put(*self.join_statements(f))
            self.w.known[f.node] = f.result(None)

    def join_statements(self, f: Accumulator) -> list[str]:
        """Statements that join the accumulators of a team's threads."""
        size, name = self.teams.size, f"join_{f.op.name}_{f.type}"
        if size == 1:
            return []
        self.helpers[join(f.op, f.dtype)] = None
        if self.teams.down:
            call = f"over_column<{f.type}, {name}, {size}>"
        else:
            call = f"over_warp<{f.type}, {name}>"
            call = call if size == 32 else f"over_block<{f.type}, {name}, {size}>"
        return [f"{f.name} = {call}({f.name});"]


# ---- few long rows ---------------------------------------------------------------------------


class PartialResult(NamedTuple):
    """The reductions of parts of rows: an array [parts, rows] in the workspace."""

    node: NestNode
    name: str
    at: Operand

    @property
    def dtype(self):
        return wide(self.node.dtype)


def reduce_in_parts(record, name: str, w: NestWriter, parameters, teams: Teams) -> KernelCalls:
    """A kernel for each stage, and one for the results of rows; `w` has written nothing."""
    launches: list[Launch] = []
    partials: list[PartialResult] = []
    size = 0
    for stage in range(w.stages):
        reduced = []
        for node in w.folds(stage):
            at = Operand("work", 0, size)
            reduced.append(PartialResult(node, f"part{len(partials) + len(reduced)}", at))
            size += -(-teams.splits * w.nest.rows * reduced[-1].dtype.itemsize // 64) * 64
        if reduced or w.outputs(stage, False):
            part = PartialRows(begin_again(w), teams, partials)
            launches.append(part.walk_part(record, f"{name}_{stage}", parameters, stage, reduced))
        partials += reduced
    if any(w.outputs(stage, True) for stage in range(w.stages)):
        rest = PartialRows(begin_again(w), choose_joining_teams(teams), partials, teams.splits)
        launches.append(rest.finish_rows(record, f"{name}_joined", parameters))
    return KernelCalls(tuple(launches), size)


def begin_again(w: NestWriter) -> NestWriter:
    """A writer of the same nest."""
    again = NestWriter(w.nest, w.names, w.outs)
    again.taken |= w.taken
    return again


def choose_joining_teams(teams: Teams) -> Teams:
    """A warp for each row, or threads beside each other for each column."""
    return Teams(8, 32, True) if teams.down else Teams(32, 8, False)


class PartialRows(TeamRows):
    """A kernel whose teams read the parts of rows that earlier kernels have reduced (`partials`);
    blockIdx.y is the number of the part that it walks along itself.
    """

    def __init__(self, writer: NestWriter, teams: Teams, partials, splits: int = 0):
        super().__init__(writer, teams)
        self.partials, self.splits = tuple(partials), splits or teams.splits
        self.index = f" * {self.nest.rows} + {self.number if self.kept else 0}]"

    def begin(self) -> None:
        """Declare the row, and what is known of it: reductions of earlier stages."""
        w = self.w
        self.find_row()
        self.later = w.needed_later(False)
        folds = [Accumulator(p.node, w.fresh(p.node.of.op.name)) for p in self.partials]
        self.declare([(f.type, f.name, f.identity) for f in folds])
        if folds:
            head = for_head("split", self.teams.member, self.splits, self.teams.size, "int")
            with w.block(head):
                for f, p in zip(folds, self.partials, strict=True):
                    part = ScalarText(f"{p.name}[split{self.index}", (), f.dtype)
                    w.assign([(f.name, f.combine(part, f.name), f.dtype)])
        self.join(folds)

    def launch_with(self, record, name: str, parameters, results=()) -> Launch:
        """The kernel; it gets what its lines name."""
        both = (("const ", self.partials), ("", results))
        more = [f"{kind}{C_TYPES[p.dtype]} *{p.name}" for kind, ps in both for p in ps]
        memory = *operands(record), *(p.at for p in (*self.partials, *results))
        return self.launch(name, *find_used([*parameters, *more], memory, self.w.lines))

    def walk_part(self, record, name: str, parameters, stage: int, reduced) -> Launch:
        """The walk of one stage along a part of the row."""
        w, length = self.w, self.length
        self.begin()
        for earlier in range(stage):
            self.read_back(w.outputs(earlier, False))
        folds, outputs = self.accumulators(stage), w.outputs(stage, False)
        self.hoist([f.node.args[0] for f in folds] + [n for *_, n, _ in outputs])
        share = -(-length // self.splits)
        w.put(f"const {self.T} end = {least(f'{share} * (blockIdx.y + 1)', length)};")
        self.team_row(folds, outputs, {}, f"{share} * blockIdx.y + {self.teams.member}", "end")
        if folds:
            with self.one_thread():
                stores = zip(folds, reduced, strict=True)
                w.put(*(f"{p.name}[blockIdx.y{self.index} = {f.name};" for f, p in stores))
        return self.launch_with(record, name, parameters, reduced)

    def finish_rows(self, record, name: str, parameters) -> Launch:
        """The results of rows, when all reductions are known."""
        self.begin()
        for stage in range(self.w.stages):
            self.row_outputs(stage)
        return self.launch_with(record, name, parameters)
