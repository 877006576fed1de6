"""The passes a program goes through before it is compiled: one list, each switched by its name.

    >>> from minipaddle.engine.passes.manager import optimized
    >>> @paddle.jit.to_static
    ... def f(x):
    ...     return (x * 2.0 + x * 2.0) * 1.0
    >>> y = f(paddle.ones([3]))
    >>> done = optimized(f.concrete_program.program)
    >>> [s.name for s in done.snapshots if s.changed]
    ['algebra', 'cse']

`registry` has the order of the passes and their switches, which a strategy sets by name; False for
a pass's own name leaves it out. `paddle.static.BuildStrategy` prints what each switch does.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import NamedTuple

from ..core.dim import Dim
from ..core.errors import value_error
from ..core.slots import PLUGGED, SLOTS
from ..ir.program import INPUT, NUMBER, Program, everywhere, open_sizes, regions
from ..ir.verifier import VerifyError, premises, verify
from . import (  # noqa: F401  (each makes its pass a slot)
    algebra,
    async_collectives,
    cse,
    dead_code,
    decompose,
    folding,
    fusion,
    list_scheduling,
    specialise,
)
from .buffer_assignment import MemoryPlan, bytes_text
from .lifetimes import bytes_of, is_view, roots, specs_of
from .memory import live, plan
from .registry import DEFAULTS, LOOKS_FOR, PASSES, SWITCHES
from .result_aliasing import separate


class PassSnapshot(NamedTuple):
    """A program before and after a pass, and how long the pass took."""

    name: str
    before: Program
    after: Program
    seconds: float

    @property
    def changed(self) -> bool:
        """Whether the pass found something to do."""
        return self.before is not self.after


class ProgramFigures(NamedTuple):
    """The costs of a program that can be counted."""

    records: int
    kernels: int  # records that compute something: views do not
    moved: int | None  # bytes that they read and write; None while a size is open
    live: int | None  # bytes of the largest live set

    def texts(self) -> list[str]:
        """The figures as texts, bytes with their unit."""
        sizes = ("-" if n is None else bytes_text(n) for n in self[2:])
        return [str(self.records), str(self.kernels), *sizes]


def figures(program: Program) -> ProgramFigures:
    """The figures of a program.

    >>> from minipaddle.ir.parser import parse
    >>> figures(parse("program p(x: float32[2]) { v1 = add(x, x) : float32[2] return v1 }"))
    Figures(records=1, kernels=1, moved=16, live=0)
    """
    root = roots(program)
    kernels = [r for r in program.records if not is_view(r, root)]
    if open_sizes(program):
        return ProgramFigures(len(program.records), len(kernels), None, None)
    moved = 0
    for r in kernels:
        read = {root[x]: x.spec for x in r.inputs if x.dtype is not None and x.op is not NUMBER}
        moved += sum(map(bytes_of, [*read.values(), *specs_of(r)]))
    return ProgramFigures(len(program.records), len(kernels), moved, live(program))


class Optimized(NamedTuple):
    """The program after the passes, what each pass did, and what the strategy had chosen."""

    program: Program
    snapshots: list[PassSnapshot]
    chosen: Mapping

    def after(self, name: str) -> Program:
        """The program as the (last) pass of this name left it."""
        return next(s.after for s in reversed(self.snapshots) if s.name == name)

    def report(self, plan: MemoryPlan | None = None) -> str:
        """A line for each pass: the figures of the program it left (`=`: it changed nothing), and
        its time; then the memory plan.
        """
        rows = [("pass", "records", "kernels", "moved", "live", "ms")]
        if self.snapshots:
            rows.append(("before", *figures(self.snapshots[0].before).texts(), ""))
        for s in self.snapshots:
            now = figures(s.after).texts() if s.changed else ("=", "", "", "")
            rows.append((s.name, *now, f"{s.seconds * 1e3:.1f}"))
        width = max(len(row[0]) for row in rows)
        layout = f"{{:<{width}}}{{:>9}}{{:>9}}{{:>12}}{{:>12}}{{:>9}}"
        lines = [layout.format(*row) for row in rows]
        if not open_sizes(self.program):
            plan = plan or self.planned()
            size, least = bytes_text(plan.size), bytes_text(plan.live)
            lines.append(f"memory plan: arena {size}, live {least}")
        return "\n".join(lines)

    def planned(self, *kernels) -> MemoryPlan:
        """The memory plan as the strategy wants it; `kernels`: see `memory.plan`."""
        return plan(self.program, *kernels, **arguments("memory.plan", self.chosen))


def optimized(program: Program, strategy=None, *, until: str | None = None, **options) -> Optimized:
    """The program after the passes, up to and including the one named `until`.

    `strategy` sets switches by name: a dict, or Paddle's BuildStrategy. `options` come on top of
    it: `optimized(program, cse=False)`. Raises VerifyError that names the pass if one leaves a
    program that is not well formed.
    """
    chosen, now, snapshots, seen = DEFAULTS | {**switches_of(strategy), **options}, program, [], {}
    features, records = survey(program, seen), everywhere(program)
    trusted = {*records, *map(premises, records)}
    for name in names_until(until):
        if chosen.get(name) is False:
            continue
        began = perf_counter()
        after = run_pass(name, now, chosen, features)
        snapshots.append(PassSnapshot(name, now, after, perf_counter() - began))
        if after is not now:
            verify_pass(name, now, after, trusted)
            now, features = after, survey(after, seen)
    return Optimized(now if now is program else separate(program, now), snapshots, chosen)


def run_pass(name: str, program: Program, chosen: Mapping, features: set) -> Program:
    """The program after a pass; the same program if it has none of the features that the pass looks
    for. A reader's code, plugged in, may make work for any pass.
    """
    if name in LOOKS_FOR and not PLUGGED and features.isdisjoint(LOOKS_FOR[name]):
        return program
    slot = f"passes.{name}"
    return SLOTS[slot].function(program, **arguments(slot, chosen))


def survey(program: Program, seen: dict) -> set:
    """The operators of a program and its regions, and these facts; passes look for them. `seen` has
    the answers for regions, so that each is looked at once.

    - "composites": an operator whose body is written in operators
    - "contractions": an operator of that kind
    - "open sizes": an input or a state with a size that is no number
    - "computed inputs": an input that a record of another program computes
    - "known values": a state, or a record that reads no array
    - "unused values": a state or a record that nothing reads, and that is no result
    - "repeated operators": an operator that is applied twice
    - "linked records": a record that reads what another one computes, or reads too
    """
    records, ops = program.records, {r.op for r in program.records}
    numbers = {x for r in records for x in r.inputs if x.op is NUMBER}
    reads = [{*r.inputs} - numbers for r in records]
    read, states = set().union(*reads), [s.record for s in program.states]
    facts = {
        "composites": True in {op.composite for op in ops},
        "contractions": "contraction" in {op.kind for op in ops},
        "open sizes": Dim in {type(n) for r in program.given for n in r.shape},
        "computed inputs": not {r.op for r in program.inputs} <= {INPUT},
        "known values": states or set() in reads,
        "unused values": not read.union(program.results).issuperset([*records, *states]),
        "repeated operators": len(ops) < len(records),
        "linked records": sum(map(len, reads)) > len(read) or not read.isdisjoint(records),
    }
    inside = [x for r in records if r.op.kind == "control" for x in regions(r).values()]
    seen.update({region: survey(region, seen) for region in inside if region not in seen})
    return ops.union([fact for fact, holds in facts.items() if holds], *map(seen.get, inside))


def names_until(until: str | None) -> list[str]:
    """The names of the passes to run."""
    if until is None:
        return PASSES
    if until not in PASSES:
        raise value_error(f"no pass {until!r}", expected=f"one of {', '.join(PASSES)}")
    return PASSES[: len(PASSES) - PASSES[::-1].index(until)]


def switches_of(strategy) -> Mapping:
    """The switches that a strategy sets, by name; the others keep their pass's default."""
    if strategy is None or isinstance(strategy, Mapping):
        return strategy or {}
    return strategy.chosen


def arguments(slot: str, chosen: Mapping) -> dict:
    """The switches of a slot's function that a strategy sets."""
    return {name: chosen[name] for name in SWITCHES[slot] if chosen.get(name) is not None}


def verify_pass(name: str, before: Program, after: Program, trusted: set) -> None:
    """Raise VerifyError unless a pass left a well-formed program with the same inputs and results
    as before. Records that are `trusted` were looked at before.
    """
    try:
        verify(after, trusted)
        if name != "specialise" and not same_ends(before, after):
            raise VerifyError("its inputs or results are not what they were")
    except VerifyError as error:
        raise VerifyError(f"after the pass {name}: {error}") from error


def same_ends(before: Program, after: Program) -> bool:
    """Whether the inputs and results of two programs have the same specs."""
    old, new = ([*program.inputs, *program.results] for program in (before, after))
    return old == new or [(r.shape, r.dtype) for r in old] == [(r.shape, r.dtype) for r in new]
