"""Does the short suite kill what the whole one kills? Mutants of the package, drawn at random.

    python -m tests.mutants --count 300 --seed 1 [--minutes 60]

Each mutant changes one operator, number, condition or statement of one file; half of the files are
of passes, codegen, jit and sharding. The tests of the file (`--of`) run on it, sampled sweeps first
(`--brief`); of those that survive, all sweeps. The last lines say which share each has killed.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from .exercises.mutations import Mutant, sample
from .selection import ROOT, tests_of

HALF = {"passes", "codegen", "jit", "sharding"}
LIMIT = 600
"""Seconds of tests; a mutant that needs more is killed."""


def draw(rng: random.Random) -> tuple[str, Mutant]:
    """A file of the package, and a mutant of it."""
    inner, others = [], []
    for path in sorted((ROOT / "minipaddle").rglob("*.py")):
        (inner if HALF & {*path.relative_to(ROOT).parts} else others).append(path)
    while True:
        path = rng.choice(inner if rng.random() < 0.5 else others)
        found = sample(path.read_text(encoding="utf-8"), 1, str(rng.random()))
        if found:
            return path.relative_to(ROOT).as_posix(), found[0]


def kills(folder: Path, tests: list[str], *options: str) -> bool:
    """Whether a test fails in the copy of the repository."""
    command = [sys.executable, "-m", "pytest", "-qx", "-n0", "-pno:cacheprovider", *options, *tests]
    environment = os.environ | {"PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}
    try:
        ran = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, timeout=LIMIT
        )
    except subprocess.TimeoutExpired:
        return True
    return ran.returncode != 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    given = parser.parse_args()
    rng, by, end = random.Random(given.seed), Counter(), time.time() + 60 * given.minutes
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "copy"
        add = ["git", "worktree", "add", "--detach", "-q", str(folder)]
        subprocess.run(add, cwd=ROOT, check=True)
        try:
            while by.total() < given.count and time.time() < end:
                path, mutant = draw(rng)
                original, tests = (folder / path).read_text(encoding="utf-8"), tests_of(path)
                (folder / path).write_text(mutant.text, encoding="utf-8")
                ways = {"both": ["--brief"], "sweeps alone": []}
                who = next((w for w, o in ways.items() if kills(folder, tests, *o)), "nobody")
                (folder / path).write_text(original, encoding="utf-8")
                by[who] += 1
                print(f"{by.total():3} killed by {who}: {path}: {mutant.change}", flush=True)
        finally:
            subprocess.run(["git", "worktree", "remove", "-f", str(folder)], cwd=ROOT, check=True)
    total = by.total()
    print(f"the short suite killed {by['both']} of {total}, with all sweeps {total - by['nobody']}")


if __name__ == "__main__":
    main()
