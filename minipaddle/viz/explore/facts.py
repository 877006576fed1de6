"""The facts of an explorer's page: what became of each line, from Python to memory.

Every fact is kept where it arises: the record that a record was made from (`Record.source`), the
record that a backward passed (`Program.gradient_of`), the line of a layer's call (`Record.scope`),
the record whose value an expression of C is (`ScalarText.of`).

The page's JSON holds lists, whose places are the numbers that stand elsewhere. A *track* is a
record through all passes; everything else is a set of tracks.

    src      {name, file, first, lines, conv, back}: a function; conv: its converted text, back: for
             a line of that the user's
    spans    [src, line, column, last line, last column]: an expression
    paths    names of boxes: phase, layers, control flow
    tracks   [operator, spec, span, path, attributes, [tracks it came from], track it is the
             gradient of]; -1 is none
    calls    {span of a layer's call: tracks}
    stages   {name, ms, recs, gone, new, rules}: a program after a pass; recs has [track, tracks it
             reads, names it reads, group] or, of the stage before, [first row, end]
    kernels  {name, lines, call, tracks, us, host}; c, own: {line of C: tracks}
    arena    {size, live, n, blocks}, of [offset, bytes, start, end, tracks, address of the last
             reader]
    ranks    {rank, recs}, of [track, placements, collective, bytes]
    why      {pane: why it is empty}
"""

import re
from collections.abc import Mapping
from itertools import groupby
from time import perf_counter
from types import MappingProxyType

from ...core.display import hide_folders
from ...engine.codegen.kernel_schedule import KernelSchedule, following
from ...engine.codegen.step import refusal, signature_of
from ...engine.core.grad import history
from ...engine.core.record import Record
from ...engine.eager.tensor import Tensor
from ...engine.executors.compiler import compiler
from ...engine.executors.native import CannotCompile, Executable
from ...engine.ir.control import fused
from ...engine.ir.cut import has_effect
from ...engine.ir.program import ITEM, Program, open_sizes
from ...executors.native.timing import add_timers
from ..compiled import sample_input
from ..records import records_in
from ..tape import roots_of
from ..target import forward_of, last_executable, passes_result_of, program_of
from .kernel_lines import owners_of_lines
from .ranks import rank_programs
from .rules import find_applied_rules
from .sources import Sources
from .tracks import Tracks

VERSION = 1
RUNS, SECONDS = 20, 1.0
"""How often a program with clocks runs, and how long at most; a kernel's time is its shortest."""

EAGER = "eager mode computes at once: to_static compiles a function"
ALONE = "a rank does not run alone: its collectives wait for the others"
NO_RULES: Mapping[Record, str] = MappingProxyType({})
EFFECTS = "a run would print or write once more: it was not timed"
NOT_COMPILED = "nothing was compiled to C: to_static(function, backend='native'), called once"


class StepFacts:
    """The facts of a target; `json` is the form in which a page holds them."""

    def __init__(self, target, timed: bool = True):
        self.sources = Sources()
        self.tracks = Tracks(self.sources)
        self.lines: dict[tuple, dict[int, list[int]]] = {}  # of kernels: numbers of their records
        self.json = {"v": VERSION, "title": title_of(target), "stages": [], "kernels": [], "c": "",
                     "own": {}, "arena": None, "why": {}, "twins": {}}  # fmt: skip
        captured = getattr(forward_of(target), "concrete_program", None)
        if isinstance(target, Tensor):
            self.add_tape(target)
        elif captured is not None and captured.executables.parts:
            self.add_ranks(captured)
        elif captured is not None:
            executable = self.find_executable(target, captured.executables)
            self.add_stages(executable or target, captured.program)
            self.add_executable(executable, timed)
        else:
            executable = self.compile_program(program_of(target), frozen=True)
            self.add_stages(executable or target, None)
            self.add_executable(executable, timed)
        self.json |= {
            "src": self.sources.rows,
            "spans": [*map(list, self.sources.spans)],
            "paths": [*map(list, self.tracks.paths)],
            "tracks": self.tracks.rows,
            "calls": {span: [*tracks] for span, tracks in self.tracks.calls.items()},
        }

    # ---- programs ----------------------------------------------------------------------------

    def add_stages(self, target, captured: Program | None) -> None:
        """The program as it was captured, after each pass that changed it, and as kernels."""
        done = passes_result_of(target)
        changes = [s for s in done.snapshots if s.changed]
        first = changes[0].before if changes else done.program
        if not self.json["stages"]:
            self.add_function(target)
            self.start(captured or first)
        if captured is not None and first is not captured:
            self.add_stage("sizes", first, 0.0)
        for s in changes:
            rules = find_applied_rules(s.before) if s.name == "algebra" else {}
            self.add_stage(s.name, s.after, s.seconds, rules)
        self.add_stage("kernels", done.program, 0.0)
        self.json["twins"] = self.tracks.find_twins(done.program)

    def add_function(self, target) -> None:
        """The function itself comes first among the sources."""
        function = getattr(forward_of(target), "dygraph_function", None)
        code = getattr(function, "__code__", None)
        if code is not None:
            self.sources.number_function(code, code.co_firstlineno)

    def add_tape(self, tensor: Tensor) -> None:
        """The records that led to a tensor."""
        self.tracks.start_tape(history.reference(roots_of(tensor)))
        self.json["stages"].append({"name": "tape", "ms": 0.0, "recs": self.tracks.last, "gone": [],
                                    "new": []})  # fmt: skip
        self.json["why"] |= dict.fromkeys(["c", "arena", "time"], EAGER)

    def add_ranks(self, captured) -> None:
        """The program of whole tensors, that of a rank, its passes; the programs of all ranks."""
        ranks = rank_programs(captured)
        compiled = {program: x for (program, *_), x in captured.executables.compiled.items()}
        own = [each.program for each in ranks if each.program in compiled]
        first = own[0] if own else ranks[0].program
        self.start(captured.program)
        self.add_stage("partition", first, 0.0)
        self.add_stages(compiled.get(first, first), first)
        self.json["why"]["time"] = ALONE
        self.add_executable(compiled.get(first), timed=False)
        self.json["ranks"] = [
            {"rank": each.rank, "recs": self.tracks.rows_of_rank(each.rows(), first)}
            for each in ranks
        ]

    def find_executable(self, target, cache):
        """The executable of a static function. The backend "auto" has one only of what ran often:
        it is compiled now.
        """
        executable = last_executable(target)
        if hasattr(executable, "source") or cache.backend != "auto":
            return executable
        return self.compile_program(program_of(target), strategy=cache.strategy)

    def compile_program(self, program: Program, **how):
        """A program compiled; None if it cannot be."""
        if sizes := open_sizes(program):
            why = f"of open sizes ({', '.join(sorted(sizes))}) C is written when a call fixes them"
        elif compiler() is None:
            why = "there is no C compiler"
        else:
            try:
                return Executable(program, **how)
            except CannotCompile as error:
                why = str(error)
        self.json["why"]["c"] = why
        return None

    def add_executable(self, executable, timed: bool) -> None:
        if hasattr(executable, "source"):
            self.add_kernels(executable, timed)
            self.add_arena(executable.plan, executable.kernels)
        else:
            why = self.json["why"].get("c", NOT_COMPILED)
            self.json["why"] |= dict.fromkeys(["c", "arena", "time"], why)

    def start(self, program: Program) -> None:
        self.tracks.start(program)
        self.add_stage("captured", program, 0.0)

    def add_stage(self, name: str, program: Program, seconds: float, rules=NO_RULES) -> None:
        before = self.tracks.last
        named = {self.tracks.find(r): text for r, text in rules.items()}
        rows, gone, new = self.tracks.follow(program)
        stage = {"name": name, "ms": round(seconds * 1e3, 1), "gone": gone, "new": new}
        stage |= {"recs": difference_of(before, rows), "rules": self.list_rules(gone, new, named)}
        self.json["stages"].append(stage)

    def list_rules(self, gone: list[int], new: list[int], named: dict) -> list[dict]:
        """The rewrites of a pass, one after the other: what stood there, and what stands there."""
        rows, rewrites = self.tracks.rows, dict.fromkeys(named.keys() & {*gone}, ())
        for track in new:
            for source in rows[track][5]:
                rewrites[source] = *rewrites.get(source, ()), track
        rules = []
        for source, tracks in sorted(rewrites.items()):
            before = named.get(source, rows[source][0])
            after = ", ".join([rows[t][0] for t in tracks]) or "a value that is there"
            there = [source] if source in gone else []
            rules.append({"name": f"{before} → {after}", "gone": there, "new": [*tracks]})
        return rules

    # ---- C -----------------------------------------------------------------------------------

    def add_kernels(self, executable, timed: bool) -> None:
        """The C, the lines of each kernel, the records of each line, the times."""
        kernels, source = executable.kernels, executable.source
        if timed and any(map(has_effect, executable.program.records)):
            timed, self.json["why"]["time"] = False, EFFECTS
        times = shortest_times(executable) if timed else {}
        own, first, at = source.own, {}, 1
        for name, text in kernels.texts.items():
            first[name] = at, at + text.count("\n") - 1
            at += text.count("\n") + 1
        calls = [(n, x) for n, x in enumerate(own.split("\n"), 1) if n >= at]
        owned: dict[int, dict] = {}
        for record, kernel in kernels.of.items():
            tracks = self.tracks.inside(record)
            row = {"name": f"{record.op.name} by the host", "lines": None, "call": None,
                   "tracks": tracks, "us": times.get(record)}  # fmt: skip
            self.json["kernels"].append(row)
            if kernel is None:
                row["host"] = refusal(record)
                continue
            call = next((n for n, x in calls if re.search(rf"\b{kernel.name}\(", x)), None)
            calls = [each for each in calls if each[0] != call]
            row |= {"name": kernel.name, "lines": [*first[kernel.name]], "call": call}
            start = first[kernel.name][0] + kernels.texts[kernel.name].startswith("/*")
            for line, records in self.lines_of(executable, record, kernel).items():
                known = (self.tracks.number.get(r) for r in records)
                owned.setdefault(start + line, {}).update((t, None) for t in known if t is not None)
        own = hide_folders(own)
        self.json |= {"c": own, "own": {line: [*owned[line]] for line in sorted(owned)}}

    def lines_of(self, executable, record: Record, kernel) -> dict[int, list[Record]]:
        """For lines of a kernel the records. Groups that share a text have like records in turn."""
        kernels, records = executable.kernels, records_in(record)
        key = kernel.name, *(r.op for r in records)
        if key not in self.lines:
            choices = kernels.tuned.get(signature_of(kernel)) if kernels.tuned else None

            def write():
                with following(KernelSchedule(choices) if choices else None):
                    return kernels.kernel(record, kernel.name)

            owners = owners_of_lines(record, kernel.source, write)
            places = {r: k for k, r in enumerate(records)}
            self.lines[key] = {
                line: [places[r] for r in of if r in places] for line, of in owners.items()
            }
        return {line: [records[k] for k in of] for line, of in self.lines[key].items()}

    # ---- memory ------------------------------------------------------------------------------

    def add_arena(self, plan, kernels) -> None:
        """The places of the values in the arena, from the step that writes them to the last that
        reads them.
        """
        blocks, records = [], plan.program.records
        for each in plan.allocations:
            values = [r.attrs["region"].outputs[k] if r.op is fused else r for r, k in each.values]
            values = values or ([each.work] if getattr(each, "work", None) is not None else [])
            tracks = [t for r in values for t in self.tracks.inside(r)]
            place, life = each.location, each.buffer
            reader = self.find_reader(records[life.start + 1 : life.end], kernels)
            blocks.append([place.offset, place.nbytes, life.start, life.end, tracks, reader])
        steps = len(records)
        self.json["arena"] = {"size": plan.size, "live": plan.live, "n": steps, "blocks": blocks}

    def find_reader(self, records: list[Record], kernels) -> str:
        """The address of the last of the records after a value was written: of its kernel, or of
        itself if the host computes it; "" if there is none.
        """
        last = next((r for r in reversed(records) if r.op is not ITEM), None)
        kernel = kernels.of.get(last)
        if kernel is not None:
            return f"n{kernel.name}"
        return f"t{self.tracks.find(last)}" if last else ""


def title_of(target) -> str:
    target = forward_of(target)
    return getattr(target, "__name__", "") or getattr(target, "name", "") or type(target).__name__


def difference_of(before: list, rows: list) -> list:
    """Rows with runs of those of the stage before as [first, end]."""
    known = {row: k for k, row in enumerate(before)}
    places = [known.get(row, -1) for row in rows]
    runs, listed = (
        groupby(enumerate(places), lambda pair: pair[1] - pair[0] if pair[1] >= 0 else None),
        [],
    )
    for step, run in runs:
        pairs = [*run]
        if step is None:
            listed += [rows[k] for k, _ in pairs]
        else:
            listed.append([pairs[0][1], pairs[-1][1] + 1])
    return listed


def shortest_times(executable) -> dict[Record, float]:
    """The microseconds of each kernel: the shortest of some runs on sample numbers."""
    twin = add_timers(executable)
    inputs = twin.program.given[: len(twin.program.given) - len(twin.weights.arrays)]
    arrays = [sample_input(r.spec) for r in inputs]
    best: dict[Record, float] = {}
    before: dict[Record, float] = {}
    end = perf_counter() + SECONDS
    for n in range(RUNS):
        if n and perf_counter() > end:
            break
        twin(twin.program, arrays)
        for seconds, record in twin.times():
            best[record] = min(best.get(record, 1e9), seconds - before.get(record, 0.0))
            before[record] = seconds
    return {record: round(seconds * 1e6, 2) for record, seconds in best.items()}
