"""The passes a program goes through before it is compiled: one list, each switched by its name.

    >>> import minipaddle as paddle
    >>> from minipaddle.engine.passes.manager import optimized
    >>> @paddle.jit.to_static
    ... def f(x):
    ...     return (x * 2.0 + x * 2.0) * 1.0
    >>> y = f(paddle.ones([3]))
    >>> done = optimized(f.concrete_program.program)
    >>> [s.name for s in done.snapshots if s.changed]
    ['algebra', 'common']

`registry` has the order of the passes and their switches, which a strategy sets by name; False for
a pass's own name leaves it out. `paddle.static.BuildStrategy` prints what each switch does.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import NamedTuple

from ..core.errors import teach
from ..core.slots import find
from ..ir.program import NUMBER, Program, everywhere
from ..ir.verifier import VerifyError, verify
from . import (  # noqa: F401  (each makes its pass a slot)
    algebra,
    batch_norm,
    common,
    data_parallel,
    dead_code,
    expand,
    folding,
    fusion,
    recompute,
    schedule,
    specialise,
)
from .lifetimes import bytes_of, looks_only, roots, specs_of
from .memory import live, plan
from .memory_of_results import separate
from .places import Plan, bytes_text
from .registry import PASSES, SWITCHES
from .specialise import open_sizes

DEFAULTS = {"budget": 0.66, "price": 1.5e-9, "least": 4 << 20, "fusion": True}
"""Unless a strategy says otherwise: a program that needs more than a few MiB computes again what
is cheap (at most 1.5 ns for a byte less at the peak), down to two thirds of that memory."""


class Snapshot(NamedTuple):
    """A program before and after a pass, and how long that took."""

    name: str
    before: Program
    after: Program
    seconds: float

    @property
    def changed(self) -> bool:
        """Did the pass find something to do?"""
        return self.before is not self.after


class Figures(NamedTuple):
    """What a program costs, as far as it can be counted."""

    records: int
    kernels: int  # records that compute something: views do not
    moved: int | None  # bytes that they read and write; None while a size is open
    live: int | None  # bytes of the largest live set

    def said(self) -> list[str]:
        """In words."""
        sizes = ("-" if n is None else bytes_text(n) for n in self[2:])
        return [str(self.records), str(self.kernels), *sizes]


def figures(program: Program) -> Figures:
    """The figures of a program.

    >>> from minipaddle.ir.parser import parse
    >>> figures(parse("program p(x: float32[2]) { v1 = add(x, x) : float32[2] return v1 }"))
    Figures(records=1, kernels=1, moved=16, live=0)
    """
    root = roots(program)
    kernels = [r for r in program.records if not looks_only(r, root)]
    if open_sizes(program):
        return Figures(len(program.records), len(kernels), None, None)
    moved = 0
    for r in kernels:
        read = {root[x]: x.spec for x in r.inputs if x.dtype is not None and x.op is not NUMBER}
        moved += sum(map(bytes_of, [*read.values(), *specs_of(r)]))
    return Figures(len(program.records), len(kernels), moved, live(program))


class Optimized(NamedTuple):
    """What came out of the passes, what each of them did, and what the strategy had chosen."""

    program: Program
    snapshots: list[Snapshot]
    chosen: Mapping

    def after(self, name: str) -> Program:
        """The program as the (last) pass of this name left it."""
        return next(s.after for s in reversed(self.snapshots) if s.name == name)

    def report(self, plan: Plan | None = None) -> str:
        """A line for each pass: what it left to compute, to move and to hold (`=`: it changed
        nothing), and its time; then the memory plan.
        """
        rows = [("pass", "records", "kernels", "moved", "live", "ms")]
        if self.snapshots:
            rows.append(("before", *figures(self.snapshots[0].before).said(), ""))
        for s in self.snapshots:
            now = figures(s.after).said() if s.changed else ("=", "", "", "")
            rows.append((s.name, *now, f"{s.seconds * 1e3:.1f}"))
        lines = ["{:<12}{:>8}{:>9}{:>12}{:>12}{:>9}".format(*row) for row in rows]
        if not open_sizes(self.program):
            plan = plan or self.planned()
            size, least = bytes_text(plan.size), bytes_text(plan.live)
            lines.append(f"memory plan: arena {size}, live {least}")
        return "\n".join(lines)

    def planned(self, *kernels) -> Plan:
        """The memory plan as the strategy wants it; `kernels`: see `memory.plan`."""
        return plan(self.program, *kernels, **arguments("memory.plan", self.chosen))


def optimized(program: Program, strategy=None, *, until: str | None = None, **options) -> Optimized:
    """The program after the passes, up to and including the one named `until`.

    `strategy` holds what is switched, by name: a dict, or Paddle's BuildStrategy. `options` come
    on top of it: `optimized(program, common=False)`. Raises VerifyError that names the pass if one
    leaves a program that is not well formed.
    """
    chosen, now, snapshots = DEFAULTS | {**chosen_by(strategy), **options}, program, []
    for name in until_named(until):
        if chosen.get(name) is False:
            continue
        slot, began = f"passes.{name}", perf_counter()
        after = find(slot).get()(now, **arguments(slot, chosen))
        snapshots.append(Snapshot(name, now, after, perf_counter() - began))
        checked(snapshots[-1])
        now = after
    return Optimized(separate(program, now), snapshots, chosen)


def until_named(until: str | None) -> list[str]:
    """The names of the passes to run."""
    if until is None:
        return PASSES
    if until not in PASSES:
        raise ValueError(teach(f"no pass {until!r}", expected=f"one of {', '.join(PASSES)}"))
    return PASSES[: len(PASSES) - PASSES[::-1].index(until)]


def chosen_by(strategy) -> Mapping:
    """What a strategy switches, by name; what it does not mention is left to each pass."""
    if strategy is None or isinstance(strategy, Mapping):
        return strategy or {}
    return strategy.chosen


def arguments(slot: str, chosen: Mapping) -> dict:
    """The switches of a slot's function that a strategy sets."""
    return {name: chosen[name] for name in SWITCHES[slot] if chosen.get(name) is not None}


def checked(snapshot: Snapshot) -> None:
    """Raise VerifyError unless what a pass left is well formed and takes and gives what it did."""
    name, before, after, _ = snapshot
    if after is before:
        return
    try:
        verify(after, trusted=set(everywhere(before)))
        if name != "specialise" and specs(after) != specs(before):
            raise VerifyError("its inputs or results are not what they were")
    except VerifyError as error:
        raise VerifyError(f"after the pass {name}: {error}") from error


def specs(program: Program) -> list:
    return [r.spec for r in [*program.inputs, *program.results]]
