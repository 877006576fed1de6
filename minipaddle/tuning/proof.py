"""The proof: choices are kept if the whole program is faster, measured in turn without them."""

from statistics import median

from ..engine.core.slots import slot
from ..engine.executors.native import Executable, threads
from ..executors.native.trials import Trial, machine, read_accepted_trials, read_choices
from .target import TuningTarget, kernel_seconds, step_seconds

ROUNDS = 25
"""Runs of the whole program with the new choices, in turn with as many without."""


@slot("tuning.accepted")
def is_faster(default: list[float], other: list[float]) -> bool:
    """Is a kernel faster, beyond noise? Pairs of seconds, measured in turn: the medians are apart
    by more than 2 %, and in two of three pairs it was faster.
    """
    wins = sum(b < a for a, b in zip(default, other, strict=True))
    return median(other) < 0.98 * median(default) and 3 * wins >= 2 * len(default)


def prove(targets: list[TuningTarget], defaults: list[Executable], best: dict[str, dict]) -> tuple:
    """The faster trials by signature, and the seconds of a run of all programs without and with
    them. If all of them together make a program no faster, none of its trials is kept.
    """
    kept, spans = {}, [0.0, 0.0]
    for target, default in zip(targets, defaults, strict=True):
        own = {name: best[name] for name in default.kernels.signatures.values() if name in best}
        trials = faster(target, default, own) if own else {}
        choices = {name: trial.choices for name, trial in trials.items()}
        both = [target.compile({}), *([target.compile(choices)] if trials else [])]
        before, after = map(median, (step_seconds(target, both, ROUNDS) * 2)[:2])
        if after <= before:
            kept |= trials
        spans = [spans[0] + before, spans[1] + min(before, after)]
    return kept, *spans


def faster(target: TuningTarget, default: Executable, best: dict[str, dict]) -> dict[str, Trial]:
    """The kernels that are faster inside the program, with the caches as they are there."""
    without, having = kernel_seconds(target, [default, target.compile(best, timed=True)], ROUNDS)
    accepted_trials, here = {}, machine(threads())
    for name, point in best.items():
        before, after = ([run[name] for run in runs] for runs in (without, having))
        if is_faster(before, after):
            accepted_trials[name] = Trial(name, here, point, median(after), median(before))
    return accepted_trials


def keep(kept: dict[str, Trial], searched: list[str]) -> None:
    """Write the choices to disk; earlier choices that failed the proof become the default again."""
    here, before = machine(threads()), read_choices(threads())
    undone = [name for name in searched if before.get(name) and name not in kept]
    rows = [*kept.values(), *(Trial(name, here, {}, 1.0, 1.0) for name in undone)]
    if rows:
        read_accepted_trials().add(*rows)
