"""A loop nest as CUDA kernels, from the same `Nest` and the same formulas as in C.

    elements: each thread takes every (number of threads)-th
    rows and columns: each team of threads takes a row, loop by loop:

        fold what is mine of the row; join it with the team's; compute with the result; ...

Few long rows are split: a first kernel folds the parts, a second joins them and computes the rest.
"""

from __future__ import annotations

from ...engine.codegen.accumulator import Accumulator, join
from ...engine.codegen.kernel import C_TYPES
from ...engine.codegen.nest_kernel import nest_writer
from ...engine.codegen.rows import Rows
from ...engine.codegen.scalar import Text, wide
from ...engine.codegen.writer import Writer
from ...engine.passes.node import Node
from .calls import CUDA_TYPES, Calls, Launch, Operand, operands
from .teams import Teams, declare_loops, flat_name, index_type, splits_of, teams_of
from .text import MOST_BLOCKS, THREADS, kernel

WORDS = """
and asm at class delete half live namespace new not operator or part private public row template
this using xor
"""
TAKEN = tuple(WORDS.split())
"""Words of C++ and of the kernels that no input may be called."""

SHARED = 40_000
"""Bytes of rows that a block keeps between two stages."""


def emit_nest(record, name: str) -> Calls:
    """The calls for a record that is one loop nest."""
    writer, parameters = nest_writer(record, CUDA_TYPES, TAKEN)
    if not writer.nest.reduces:
        return elements(record, name, writer, parameters)
    teams = teams_of(writer.nest)
    if splittable(writer) and (splits := splits_of(teams, writer.nest)) > 1:
        return in_parts(record, name, parameters, teams._replace(splits=splits))
    return TeamRows(writer, teams).work(record, name, parameters)


def elements(record, name: str, w: Writer, parameters) -> Calls:
    """No reductions: every element once."""
    nest = w.nest
    blocks = min(-(-nest.size // THREADS), MOST_BLOCKS)
    T, at = index_type(nest), flat_name(nest.loops, "at")
    w.put(f"for ({T} {at} = blockIdx.x * {THREADS} + threadIdx.x; {at} < {nest.size}; "
          f"{at} += {blocks * THREADS}) {{")  # fmt: skip
    w.depth += 1
    w.put(*declare_loops(T, at, nest.loops))
    w.assign(w.stores(w.outputs(), {}))
    w.depth -= 1
    w.put("}")
    text = kernel(name, parameters, w.lines, (THREADS, 1))
    return Calls((Launch(name, text, (blocks, 1), (THREADS, 1), operands(record)),))


class TeamRows(Rows):
    """A nest with reductions: `Rows` as in C, each row by a team."""

    def __init__(self, writer: Writer, teams: Teams):
        super().__init__(writer)
        self.teams, self.T = teams, index_type(writer.nest)
        self.kept = [a for a in self.nest.loops if a in writer.parallel]
        self.at, self.number = flat_name(self.along, "at"), flat_name(self.kept, "row")
        self.helpers: dict[str, None] = {}
        self.checked = bool(self.nest.rows % teams.beside)

    def work(self, record, name: str, parameters) -> Calls:
        self.write()
        text = kernel(name, parameters, self.w.lines, self.teams.threads)
        blocks = self.teams.blocks(self.nest.rows), 1
        helpers = tuple(self.helpers)
        given = operands(record)
        return Calls((Launch(name, text, blocks, self.teams.threads, given, helpers),))

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
        """Which row is this thread's? One beyond the last computes along, and stores nothing."""
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
        """One of the team stores what belongs to the row."""
        outputs, w = self.w.outputs(stage, True), self.w
        if not outputs:
            return
        tests = [f"{self.teams.member} == 0"] * (self.teams.size > 1) + ["live"] * self.checked
        if tests:
            w.put(f"if ({' && '.join(tests)}) {{")
            w.depth += 1
        w.assign(w.stores(outputs, self.row))
        if tests:
            w.depth -= 1
            w.put("}")

    def buffer(self, node: Node) -> str:
        w, name, beside = self.w, self.w.fresh("kept"), self.teams.beside
        w.put(f"__shared__ {C_TYPES[wide(node.dtype)]} {name}[{beside * self.length}];")
        team = f"threadIdx.y * {self.length} + " if beside > 1 else ""
        return f"{name}[{team}{self.at if self.along else 0}]"

    def loops(self, folds, outputs, buffers) -> dict:
        """The loop of a member along the row, and what the team makes of it."""
        w, size, at = self.w, self.teams.size, self.at
        w.put(*(f"{f.type} {f.name} = {f.identity};" for f in folds))
        first, last = self.teams.member, str(self.length)
        if self.checked:
            first = f"live ? {first} : {last}"
        w.put(f"for ({self.T} {at} = {first}; {at} < {last}; {at} += {size}) {{")
        w.depth += 1
        w.put(*declare_loops(self.T, at, self.along))
        self.body(folds, outputs, buffers)
        w.depth -= 1
        w.put("}")
        self.join_all(folds)
        return {}

    def join_all(self, folds) -> None:
        for f in folds:
            self.w.put(*self.join_statements(f))

    def join_statements(self, f: Accumulator) -> list[str]:
        """Statements: a fold of one thread becomes that of its team."""
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


def splittable(w: Writer) -> bool:
    """Are all results those of rows, known after one way along them?"""
    outputs = w.nest.outputs
    return w.stages == 2 and all(n.stage == 1 and w.nest.once_a_row(n, at) for _, n, at in outputs)


def in_parts(record, name: str, parameters, teams: Teams) -> Calls:
    """Two kernels: parts of rows are folded, then joined."""
    writer, _ = nest_writer(record, CUDA_TYPES, TAKEN)
    parts = PartialRows(writer, teams)
    first, folds = parts.first(record, name, parameters)
    offsets, size = [], 0
    for f in folds:
        offsets.append(size)
        size += -(-teams.splits * writer.nest.rows * f.dtype.itemsize // 64) * 64
    room = tuple(Operand("work", 0, offset) for offset in offsets)
    given = operands(record)
    writer, _ = nest_writer(record, CUDA_TYPES, TAKEN)
    rest = JoinRows(writer, joining_teams(teams))
    second = rest.second(record, f"{name}_joined", parameters, teams.splits)
    ins = tuple(x for x in given if x.kind == "in")
    first = first._replace(given=(*ins, *room))
    return Calls((first, second._replace(given=(*given, *room))), size)


def joining_teams(teams: Teams) -> Teams:
    """A warp for each row, or threads beside each other for each column."""
    return Teams(8, 32, True) if teams.down else Teams(32, 4, False)


class PartialRows(TeamRows):
    """The first of the two kernels: blockIdx.y says which part of the row."""

    def first(self, record, name: str, parameters) -> tuple[Launch, list[Accumulator]]:
        w, splits = self.w, self.teams.splits
        self.later = {}
        self.find_row()
        nodes = w.folds(0)
        self.hoist([n.args[0] for n in nodes])
        folds = [Accumulator(n, w.fresh(n.of.op.name)) for n in nodes]
        w.put(*(f"{f.type} {f.name} = {f.identity};" for f in folds))
        share, at = -(-self.length // splits), self.at
        w.put(f"const {self.T} end = {share} * (blockIdx.y + 1) < {self.length} "
              f"? {share} * (blockIdx.y + 1) : {self.length};")  # fmt: skip
        begin = f"{share} * blockIdx.y + {self.teams.member}"
        begin = f"live ? {begin} : {self.length}" if self.checked else begin
        w.put(f"for ({self.T} {at} = {begin}; {at} < end; {at} += {self.teams.size}) {{")
        w.depth += 1
        w.put(*declare_loops(self.T, at, self.along))
        self.body(folds, [], {})
        w.depth -= 1
        w.put("}")
        self.join_all(folds)
        tests = [f"{self.teams.member} == 0"] + ["live"] * self.checked
        w.put(f"if ({' && '.join(tests)}) {{")
        row = self.number if self.kept else "0"
        w.put(*(f"    part{k}[blockIdx.y * {self.nest.rows} + {row}] = {f.name};"
                for k, f in enumerate(folds)), "}")  # fmt: skip
        ins = [p for p in parameters if p.startswith("const ")]
        own = [*ins, *(f"{f.type} *part{k}" for k, f in enumerate(folds))]
        text = kernel(name, own, w.lines, self.teams.threads)
        grid = (self.teams.blocks(self.nest.rows), splits)
        return Launch(name, text, grid, self.teams.threads, (), tuple(self.helpers)), folds


class JoinRows(TeamRows):
    """The second: the parts of each row are joined, and all the rest is computed."""

    def second(self, record, name: str, parameters, splits: int) -> Launch:
        w, rows = self.w, self.nest.rows
        self.later = {}
        self.find_row()
        folds = [Accumulator(n, w.fresh(n.of.op.name)) for n in w.folds(0)]
        row = self.number if self.kept else "0"
        for k, f in enumerate(folds):
            term = f.combine(Text(f"part{k}[split * {rows} + {row}]", (), f.dtype), f.name)
            w.put(f"{f.type} {f.name} = {f.identity};")
            w.put(f"for (int split = {self.teams.member}; split < {splits}; "
                  f"split += {self.teams.size}) {{")  # fmt: skip
            w.depth += 1
            w.assign([(f.name, term, f.dtype)])
            w.depth -= 1
            w.put("}")
            w.known[f.node] = Text(f.name, (), f.dtype)
        self.join_all(folds)
        self.row_outputs(1)
        own = [f"const {f.type} *part{k}" for k, f in enumerate(folds)]
        text = kernel(name, [*parameters, *own], w.lines, self.teams.threads)
        grid = self.teams.blocks(rows), 1
        return Launch(name, text, grid, self.teams.threads, (), tuple(self.helpers))
