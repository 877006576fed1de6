"""The judge: runs an exercise's checks on a text and says how it stands.

`python -m minipaddle.learn.judge NAME [FILE]` judges in this process; `judged` does so in a fresh
one with a time limit.
"""

from __future__ import annotations

import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import hypothesis

from .exercise import Disagreement, Exercise, Test, differs, load
from .stub import unwritten

SEED = 2026


@dataclass
class Verdict:
    """How a solution stands: `state` is "not started", "error", "wrong" or "passed"."""

    name: str
    state: str
    why: str = ""
    check: str = ""
    explains: str = ""
    line: str = ""  # the reader's line, `file:12: text`
    given: object = None
    expected: object = None
    got: object = None
    looks_like: str = ""
    picture: object = None


def judge(exercise: Exercise, source: str, file: str = "<yours>", suspects: bool = True) -> Verdict:
    """Judge a text in this process; with `suspects`, compare a wrong one with known wrong ones."""
    try:
        missing = unwritten(source, exercise.solution)
        if missing:
            return Verdict(exercise.name, "not started", f"yours to write: {', '.join(missing)}")
        yours = module_of(source, file)
    except Exception as error:
        return failed(exercise, error, file)
    for test in exercise.tests:
        inputs: dict = {}
        try:
            run(test, yours, inputs)
        except Exception as error:
            verdict = failed(exercise, error, file)
            verdict.check, verdict.explains = test.name, (test.run.__doc__ or "").strip()
            if verdict.state == "wrong" and suspects:
                verdict.looks_like = suspect(exercise, test, inputs, error)
            return verdict
    return Verdict(exercise.name, "passed")


def module_of(source: str, file: str) -> ModuleType:
    """The text, run as a module."""
    module = ModuleType("yours")
    module.__file__ = file
    exec(compile(source, file, "exec"), module.__dict__)
    return module


def run(test: Test, yours: ModuleType, inputs: dict) -> None:
    """Run one check; `inputs` holds afterwards what it was given last: when it fails, the least."""
    if not test.strategies:
        test.run(yours)
        return

    @hypothesis.seed(SEED)
    @hypothesis.settings(
        max_examples=test.examples,
        database=None,
        deadline=None,
        print_blob=False,
        report_multiple_bugs=False,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(hypothesis.strategies.fixed_dictionaries(test.strategies))
    def drawn(values):
        inputs.clear()
        inputs.update(values)
        test.run(yours, **values)

    drawn()


def failed(exercise: Exercise, error: Exception, file: str) -> Verdict:
    """The verdict on code that raised: a Disagreement is wrong, what it raised itself an error."""
    if isinstance(error, Disagreement):
        parts = {k: getattr(error, k) for k in ("given", "expected", "got", "picture")}
        return Verdict(exercise.name, "wrong", str(error), **parts)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    where = f"{Path(file).name}:{frames[-1].lineno}: {frames[-1].line}" if frames else ""
    if isinstance(error, SyntaxError):
        where = f"{Path(file).name}:{error.lineno}: {(error.text or '').strip()}"
    return Verdict(exercise.name, "error", f"{type(error).__name__}: {error}", line=where)


def suspect(exercise: Exercise, test: Test, inputs: dict, error: Disagreement) -> str:
    """Which known wrong solution says the same for the same inputs; empty if none does."""
    for looks_like, source in exercise.wrong_solutions().items():
        try:
            test.run(module_of(source, "<wrong>"), **inputs)
        except Disagreement as theirs:
            same = not differs(theirs.got, error.got, 1e-6, 1e-9) and str(theirs) == str(error)
            if same:
                return looks_like
        except Exception:
            continue
    return ""


def main(args: list[str]) -> int:
    exercise = load(args[0])
    path = Path(args[1]) if len(args) > 1 else exercise.path
    verdict = judge(exercise, path.read_text(encoding="utf-8"), str(path))
    print("\n".join(f"{k:10} {v}" for k, v in vars(verdict).items() if v not in ("", None)))
    return 0 if verdict.state == "passed" else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
