"""Figures of the exercises: `python -m tests.exercises [WORD]`, those whose name has the word.

For each: the known wrong solutions, and how many of them the judge recognises when it meets them;
the share of small mutations that are rejected; the seconds a check takes in a fresh process.
"""

import sys
import tempfile
from pathlib import Path

from minipaddle.learn.exercise import load, names
from minipaddle.learn.process import judge_file
from tests.exercises.batch import outcomes
from tests.exercises.kinds import kinds_of
from tests.exercises.mutations import mutants, sample
from tests.exercises.test_exercises import MUTANTS

HEAD = f"{'exercise':<32} {'wrong':>5} {'named':>5} {'mutants':>10} {'rejected':>8} {'seconds':>7}"


def main(word: str = "") -> None:
    print(HEAD)
    for name in names():
        if word in name:
            try:
                print(figures(name), flush=True)
            except Exception as error:
                print(f"{name:<32} {error}")


def figures(name: str) -> str:
    """A line of the table, and below it the mutations that pass."""
    exercise = load(name)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "solution.py")
        file.write_text(exercise.solution, encoding="utf-8")
        seconds = judge_file(name, file).seconds
        recognised = 0
        for looks_like, text in exercise.wrong_solutions().items():
            file.write_text(text, encoding="utf-8")
            recognised += judge_file(name, file).looks_like == looks_like
    everything = mutants(exercise.solution)
    drawn = sample(exercise.solution, MUTANTS, name) + kinds_of(exercise)
    drawn = [m for m in drawn if m.change not in exercise.unkillable]
    found = outcomes(name, [exercise.solution, *(m.text for m in drawn)])[1:]
    judged_so = [(m, o) for m, o in zip(drawn, found) if o.state != "does not apply"]
    drawn = [m for m, _ in judged_so]
    alive = [m.change for m, outcome in judged_so if outcome.state == "passed"]
    share = 1 - len(alive) / max(1, len(drawn))
    tried = f"{len(drawn)}/{len(everything)}"
    counts = f"{len(exercise.wrong):>5} {recognised:>5} {tried:>10}"
    line = f"{name:<32} {counts} {share:>8.0%} {seconds:>7.1f}"
    return "\n".join([line, *(f"    passes: {change}" for change in alive)])


if __name__ == "__main__":
    main(*sys.argv[1:])
