"""The programs of every model and training step of `tests/jit`, run on every execution path.

    python -m tests.executors.zoo [NAME ...]

Each program is made with every strategy, and each of its first calls is compared by itself, from
the states that it found: rounding does not add up over the steps of a training.
"""

from __future__ import annotations

import contextlib
import sys
import time
import warnings
from collections.abc import Callable, Iterator

import pytest

from minipaddle.jit import to_static
from tests.executors.paths import Case, Tally, collect_programs, differences
from tests.jit.models import MODELS, TRAININGS
from tests.jit.test_models import taken, test_outputs_and_gradients, trained

CALLS = 3
"""Of each program: steps after the first ones do the same to other numbers."""
NATIVES = 5
"""Strategies beside the default."""


def programs(name: str, run: Callable) -> list[Case]:
    """The programs that a test runs."""
    cases: list[Case] = []
    with collect_programs(name, cases), contextlib.suppress(pytest.skip.Exception):
        run()
    return [case._replace(calls=case.calls[:CALLS]) for case in cases]


def zoo() -> Iterator[tuple[str, Callable]]:
    """What runs the programs of each model and training, by name."""
    for model in MODELS:
        yield model.name, lambda model=model: test_outputs_and_gradients(model)
        yield f"{model.name}, a step", lambda model=model: trained(model, to_static)
    for training in TRAININGS:
        yield training.name, lambda training=training: taken(training, to_static)


def main(names: list[str]) -> int:
    warnings.simplefilter("ignore")
    tally, wrong, start, cases = Tally(), 0, time.process_time(), 0
    for name, run in zoo():
        if names and not any(part in name for part in names):
            continue
        found = programs(name, run)
        cases += bool(found)
        print(f"{time.process_time() - start:4.0f} s  {name}: {len(found)} programs", flush=True)
        for d in differences(found, passes=0.0, natives=NATIVES, tally=tally):
            wrong += 1
            print(f"{d.case.name}, call {d.call}, {d.path.name}: {d.kind}: {d.message}", flush=True)
    print(f"{cases} cases, {tally.programs} programs, {tally.records:,} records", end=", ")
    print(f"{wrong} differences, {time.process_time() - start:.0f} s")
    print(", ".join(f"{n:,} {path}" for path, n in tally.paths.most_common()))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
