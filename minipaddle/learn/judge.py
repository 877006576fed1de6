"""The judge: it runs an exercise's checks on a text, in this process, and returns a verdict.

`python -m minipaddle.learn.judge NAME [FILE]` prints the verdict. The verdicts of readers come from
`minipaddle.learn.process`, which judges in a fresh process, with limits.
"""

import linecache
import sys
import time
import traceback
from pathlib import Path
from types import ModuleType

import hypothesis
from hypothesis.errors import Flaky

from ..engine.core.slots import plugged
from ..tensor.generator import seed as seed_engine
from .borrowing import refuse_borrowing
from .comparison import Disagreement, differs
from .exercise import Exercise, Test, load
from .stub import list_unwritten
from .verdict import Verdict, format_value

MEMORY = 4 << 30
"""Bytes that a check may hold."""
SEED = 2026
"""The seed of the random inputs, unless the reader gives another."""
PATIENCE = 4.0
"""Seconds after which no further check is run to find a picture."""


def judge(
    exercise: Exercise,
    source: str,
    file: str = "<yours>",
    *,
    seed: int = SEED,
    thorough: bool = True,
    first=lambda verdict: None,
) -> Verdict:
    """Judge a text in this process.

    A `thorough` judge looks for the smallest failing input, compares a wrong solution with the
    known wrong ones, and looks for a picture; it hands each draft of its verdict to `first`.
    """
    if verdict := verdict_without_running(exercise, source, file):
        return verdict
    try:
        yours = module_of(source, file)
    except BaseException as error:  # sys.exit() is a mistake like any other
        return failure(exercise, error, file)
    for k, test in enumerate(exercise.tests):
        inputs, refused = {}, []
        try:
            with refuse_borrowing(exercise, file) as refused, exercise.plugged(yours):
                run(test, yours, inputs, seed, thorough)
            if refused:  # and caught by the reader's code
                raise refused[0]
        except BaseException as error:
            error = refused[0] if refused else error
            verdict = failure(exercise, error, file)
            add_check(verdict, test, inputs, seed)
            if thorough and verdict.state in ("wrong", "error") and isinstance(error, Exception):
                first(verdict)
                verdict.looks_like = suspect(exercise, test, inputs, error)
                first(verdict)
                illustrate(verdict, exercise, exercise.tests[k + 1 :], yours, seed)
            return verdict
    return Verdict(exercise.name, "passed")


def verdict_without_running(exercise: Exercise, source: str, file: str) -> Verdict | None:
    """The verdict on a text that cannot run, or in which nothing is written yet; else None."""
    try:
        missing = list_unwritten(source, exercise.solution)
    except (SyntaxError, ValueError) as error:  # ValueError: a null character
        return failure(exercise, error, file)
    if not missing:
        return None
    listed = " and ".join(filter(None, [", ".join(missing[:-1]), missing[-1]]))
    return Verdict(exercise.name, "not started", f"{listed} in {exercise.place}")


def module_of(source: str, file: str, name: str = "yours") -> ModuleType:
    """Run the text as a module; tracebacks can show its lines even if no such file exists."""
    module = ModuleType(name)
    module.__file__ = file
    sys.modules[name] = module  # dataclasses look there
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    exec(compile(source, file, "exec"), module.__dict__)
    return module


def run(test: Test, yours: ModuleType, inputs: dict, seed: int = SEED, shrink: bool = True) -> None:
    """Run one check. Afterwards `inputs` holds its last inputs: if it failed, the smallest."""
    if not test.strategies:
        seed_engine(seed)
        test.run(yours)
        return
    phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=test.examples,
        database=None,
        deadline=None,
        print_blob=False,
        report_multiple_bugs=False,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[*phases, hypothesis.Phase.shrink] if shrink else phases,
    )
    @hypothesis.given(hypothesis.strategies.fixed_dictionaries(test.strategies))
    def run_on(values):
        inputs.clear()
        inputs.update(values)
        seed_engine(seed)
        test.run(yours, **values)

    run_on()


# ---- the verdict on a failure --------------------------------------------------------------------


def failure(exercise: Exercise, error: BaseException, file: str) -> Verdict:
    """The verdict on code that raised: wrong for a Disagreement, else an error."""
    if isinstance(error, Disagreement):
        verdict = Verdict(exercise.name, "wrong", str(error), line=getattr(error, "line", ""))
        verdict.given = make_dict(error.given)
        if error.expected is not None:
            verdict.expected = format_value(error.expected)
        if error.got is not None or error.expected is not None:
            verdict.got = format_value(error.got)
        draw(verdict, error)
        return verdict
    line, frames = line_in(error, file), traceback.extract_tb(error.__traceback__)
    if type(error) is NotImplementedError and frames and frames[-1].filename == file:
        return Verdict(exercise.name, "not started", f"the rest of {exercise.place}", line=line)
    if isinstance(error, Flaky):
        return Verdict(exercise.name, "wrong", "the same inputs gave different results")
    if isinstance(error, SystemExit):
        return Verdict(exercise.name, "error", "your code ended the program: sys.exit", line=line)
    if type(error) is AssertionError and not line:
        return Verdict(exercise.name, "wrong", str(error))
    why = format_error(error, line, frames) + likely_cause(error, exercise)
    return Verdict(exercise.name, "error", why, line=line)


def likely_cause(error: BaseException, exercise: Exercise) -> str:
    """The likely cause of an error whose message does not name it."""
    if isinstance(error, MemoryError):
        return f"\na check may hold {MEMORY >> 30} GB: a list that grows without end?"
    if isinstance(error, RecursionError) and exercise.slots:
        parts = " and ".join(exercise.slots)
        why = f"in a check the engine's own {parts} is yours: does your code call it by any name?"
        return f"\n{why}"
    return ""


def make_dict(given) -> dict[str, str]:
    """Inputs as text, by name; several inputs are a dict, one has no name."""
    named = given if isinstance(given, dict) else {} if given is None else {"": given}
    return {name: format_value(value) for name, value in named.items()}


def format_error(error: BaseException, line: str, frames) -> str:
    """The error's name and message; if no line of the reader's led to it, where it was raised."""
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg}"
    text = "".join(traceback.format_exception_only(error)).strip()
    if line or not frames:
        return text
    at = frames[-1]
    return f"{text}\n(after your code had run, in {Path(at.filename).name}:{at.lineno}: {at.line})"


def line_in(error: BaseException, file: str) -> str:
    """The reader's line that an error came from, `accumulate.py:12: return g`, or nothing."""
    name = Path(file).name
    if isinstance(error, SyntaxError) and error.filename in (file, "<unknown>", None):
        return f"{name}:{error.lineno or 1}: {(error.text or '').strip()}"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    return f"{name}:{frames[-1].lineno}: {frames[-1].line}" if frames else ""


def draw(verdict: Verdict, error: Disagreement) -> None:
    """Draw a Disagreement's picture (a graph, or a function that draws one) as DOT and text."""
    try:
        with plugged(error.plugs):
            graph = error.picture() if callable(error.picture) else error.picture
        if graph is not None:
            verdict.picture, verdict.sketch = graph.source, getattr(graph, "text", "")
    except Exception as broken:  # code that is wrong may break its picture; the verdict stays
        verdict.sketch = f"(no picture: {type(broken).__name__}: {broken})"


def illustrate(
    verdict: Verdict, exercise: Exercise, tests: list[Test], yours: ModuleType, seed: int
) -> None:
    """If the check that failed has no picture, take one of a later check that fails."""
    ends = time.monotonic() + PATIENCE
    for test in tests:
        if verdict.picture or time.monotonic() > ends:
            return
        try:
            with exercise.plugged(yours):
                run(test, yours, {}, seed)
        except Disagreement as error:
            draw(verdict, error)
        except BaseException:
            continue


def add_check(verdict: Verdict, test: Test, inputs: dict, seed: int) -> None:
    """Add to a verdict the check it comes from, and the inputs that were drawn."""
    verdict.check, verdict.explains = test.name, " ".join((test.run.__doc__ or "").split())
    if test.strategies:
        verdict.seed = seed
        verdict.given = verdict.given or make_dict(inputs)


def suspect(exercise: Exercise, test: Test, inputs: dict, error: Exception) -> str:
    """The known wrong solution that fails alike for the same inputs; empty if none does."""
    for looks_like, source in exercise.wrong_solutions().items():
        try:
            seed_engine(SEED)
            theirs = module_of(source, "<wrong>", "wrong")
            with exercise.plugged(theirs):
                test.run(theirs, **inputs)
        except Exception as other:
            if alike(other, error):
                return looks_like
    return ""


def alike(one: Exception, other: Exception) -> bool:
    """Whether two failures say the same, apart from the line of the error in each text."""
    if type(one) is not type(other):
        return False
    if isinstance(one, Disagreement):
        return str(one) == str(other) and not differs(one.got, other.got, 1e-6, 1e-9)
    texts = [[s for s in str(e).splitlines() if not s.startswith("  at: ")] for e in (one, other)]
    return texts[0] == texts[1]


def main(args: list[str]) -> int:
    exercise = load(args[0])
    path = Path(args[1]) if len(args) > 1 else exercise.path
    verdict = judge(exercise, path.read_text(encoding="utf-8"), str(path))
    print(verdict)
    return 0 if verdict.passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
