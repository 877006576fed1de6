"""The passes a program goes through before it is compiled: one list, each switched by its name.

    >>> import minipaddle as paddle
    >>> from minipaddle.passes.manager import optimized
    >>> @paddle.jit.to_static
    ... def f(x):
    ...     return (x * 2.0 + x * 2.0) * 1.0
    >>> y = f(paddle.ones([3]))
    >>> done = optimized(f.concrete_program.program)
    >>> [s.name for s in done.snapshots if s.changed]
    ['algebra', 'common']

A pass is a function Program → Program. What it can be told are its keyword parameters: they are
looked up in the strategy, as is its own name (False: leave it out).
"""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import NamedTuple

from ..core.errors import teach
from ..core.slots import find
from ..ir.program import Program, everywhere
from ..ir.verifier import VerifyError, verify
from . import (  # noqa: F401  (each makes its pass a slot)
    add_to,
    algebra,
    batch_norm,
    common,
    dead_code,
    epilogue,
    expand,
    folding,
    fusion,
    layout,
    pieces,
    products,
    recompute,
    schedule,
    sinking,
    specialise,
)
from .memory_of_results import separate

PASSES = [
    "specialise", "dead_code", "batch_norm", "expand", "layout", "products", "pieces", "folding",
    "algebra", "common", "sinking", "folding", "add_to", "algebra", "common", "dead_code",
    "recompute", "fusion", "epilogue", "schedule",
]  # fmt: skip
"""What is done to a program, in this order. Each is the slot `passes.<name>`, and stands in a file
of that name."""

DEFAULTS = {"budget": 0.6, "price": 1.5e-9, "least": 4 << 20}
"""Unless a strategy says otherwise: a program that needs more than a few MiB computes again what
is cheap (at most 1.5 ns for a byte less at the peak), down to 60 % of that memory."""


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


class Optimized(NamedTuple):
    """What came out of the passes, and what each of them did."""

    program: Program
    snapshots: list[Snapshot]

    def after(self, name: str) -> Program:
        """The program as the (last) pass of this name left it."""
        return next(s.after for s in reversed(self.snapshots) if s.name == name)

    def report(self) -> str:
        """A line for each pass: how many records it left, and its time."""
        rows = [f"{'pass':<12} {'records':>8} {'ms':>7}"]
        for name, _, after, seconds in self.snapshots:
            rows.append(f"{name:<12} {len(after.records):>8} {seconds * 1e3:>7.1f}")
        return "\n".join(rows)


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
        function, began = find(f"passes.{name}").get(), perf_counter()
        after = function(now, **told(function, chosen))
        snapshots.append(Snapshot(name, now, after, perf_counter() - began))
        checked(snapshots[-1])
        now = after
    return Optimized(separate(program, now), snapshots)


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


def told(function, chosen: Mapping) -> dict:
    """The keyword arguments of a pass that the strategy has a word on."""
    names = function.__kwdefaults__ or {}
    return {name: chosen[name] for name in names if chosen.get(name) is not None}


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
