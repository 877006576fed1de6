"""An exercise: the parts of the engine that the reader's functions replace, and their checks.

An exercise `02_autograd/accumulate` is two files under `exercises/`:
`solutions/02_autograd/accumulate.py`, whose docstring is the task, and
`checks/02_autograd/accumulate.py`, which makes one `Exercise`. The reader's
`02_autograd/accumulate.py` is cut from the solution when it is first needed.
"""

import importlib.util
import os
import re
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType

from ..engine.core.slots import plugged
from ..engine.core.slots import yours as slots_of_reader
from .stub import stub_of
from .variations import hold
from .wrong import apply_changes, text_of

BOOKS = Path(__file__).parents[2] / "exercises"


def workspace() -> Path:
    """The folder of the reader's files: MINIPADDLE_EXERCISES, or else the book's."""
    return Path(os.environ.get("MINIPADDLE_EXERCISES") or BOOKS).absolute()


def home() -> Path:
    """The folder of checks and solutions: the book's, unless the workspace has its own."""
    return workspace() if (workspace() / "checks").is_dir() else BOOKS


LEVELS = ("easy", "medium", "hard")


@dataclass
class Test:
    """One check: `run(yours, **inputs)`; a property draws its inputs from `strategies`."""

    run: Callable
    strategies: dict = field(default_factory=dict)
    examples: int = 25

    @property
    def name(self) -> str:
        return self.run.__name__.replace("_", " ").strip()


@dataclass
class Exercise:
    """A task for the reader.

    It is of a `level` of LEVELS and takes some `minutes` once its chapter and what `before` names
    (chapters and exercises) are read. `slots` maps a slot of the engine to the name of the reader's
    function for it; `wrong` maps what a wrong solution looks like ("forgetting to accumulate") to
    what changes in the right one, one text or several (see `wrong.apply_changes`). What takes more
    than a change is a small function of the name of the right one, below the exercise:

        @exercise.mistake("a function that calls itself: no deep tape")
        def history(roots):
            ...

    `unkillable` lists by hand the mutations of the solution that change nothing, with the reason.
    """

    title: str
    level: str
    minutes: int
    slots: dict[str, str]
    hints: tuple[str, str, str]
    wrong: dict[str, str | tuple[str, ...]]
    unkillable: dict[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ()
    name: str = ""
    tests: list[Test] = field(default_factory=list)

    @property
    def effort(self) -> str:
        """How hard it is and how long it takes: `medium, 30 minutes`."""
        return f"{self.level}, {self.minutes} minutes"

    @property
    def reading(self) -> list[str]:
        """The reading before the exercise: its chapter, and whatever else `before` names."""
        return [self.name.split("/")[0], *self.before]

    def example(self, run):
        """Decorator: a check with inputs of its own; its docstring explains."""
        self.tests.append(Test(run))
        return run

    def mistake(self, looks_like: str):
        """Decorator: this function, instead of the right one of its name, is a wrong solution."""

        def register(function):
            self.wrong[looks_like] = text_of(function)
            return function

        return register

    def plugged(self, yours: ModuleType):
        """The engine runs on the reader's functions while the block runs."""
        functions = {slot: getattr(yours, name) for slot, name in self.slots.items()}
        here = functions.items() <= slots_of_reader().items()
        return nullcontext() if here else plugged(functions)

    @property
    def path(self) -> Path:
        """The reader's file."""
        return workspace() / f"{self.name}.py"

    @property
    def place(self) -> str:
        """The reader's file as messages name it, the same on every machine."""
        return f"{workspace().name}/{self.name}.py"

    @property
    def solution(self) -> str:
        """The text of the annotated solution."""
        return (home() / "solutions" / f"{self.name}.py").read_text(encoding="utf-8")

    @property
    def stub(self) -> str:
        """The text the reader begins with."""
        return stub_of(self.solution)

    def wrong_solutions(self) -> dict[str, str]:
        """The text of each known wrong solution, by what it looks like."""
        return {
            looks_like: apply_changes(
                self.solution, *([change] if isinstance(change, str) else change)
            )
            for looks_like, change in self.wrong.items()
        }

    def holds(self, call, oracle, shapes, **options) -> None:
        """Add a check: `call(yours, *inputs)` equals what `oracle` gives, for all kinds of inputs.

        See `variations.hold` for the shapes and the options.
        """

        def whatever_it_is_given(yours):
            """The same result for small and large arrays, other dtypes, strides and magnitudes."""
            hold(lambda *inputs: call(yours, *inputs), oracle, shapes, **options)

        self.tests.append(Test(whatever_it_is_given))

    # last in the class: from here on `property` is this one
    def property(self, *, examples: int = 25, **strategies):
        """Decorator: a check with inputs that hypothesis draws, and shrinks when it fails."""

        def register(run):
            self.tests.append(Test(run, strategies, examples))
            return run

        return register


def load(name: str) -> Exercise:
    """The exercise of this name, as its check file defines it."""
    path = home() / "checks" / f"{name}.py"
    return run_check_file(name, path, path.stat().st_mtime_ns)


@cache
def run_check_file(name: str, path: Path, _mtime: int) -> Exercise:
    """The exercise that a check file defines; the file is run again when it has changed."""
    spec = importlib.util.spec_from_file_location(f"checks.{name.replace('/', '.')}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.exercise.name = name
    return module.exercise


def names() -> list[str]:
    """Every exercise's name, in the book's order: chapter by chapter, as their cells follow."""
    checks = home() / "checks"
    every = [p.relative_to(checks).with_suffix("").as_posix() for p in checks.glob("*/*.py")]
    return sorted(every, key=lambda name: (name.split("/")[0], place_in_chapter(name), name))


def book() -> Path:
    """The folder of the chapters that the exercises belong to."""
    return home().parent / "book"


def place_in_chapter(name: str) -> int:
    """The position of the exercise's cell in its chapter's file; the end if it has none."""
    chapter = book() / f"{name.split('/')[0]}.ipynb"
    cells = cells_of(chapter, chapter.stat().st_mtime_ns) if chapter.is_file() else []
    return cells.index(name) if name in cells else len(cells)


@cache
def cells_of(chapter: Path, _mtime: int) -> list[str]:
    """The exercises a chapter has cells for, in order; a cell that was run has become `%%`."""
    return re.findall(r'"%%?exercise ([\w/]+)', chapter.read_text(encoding="utf-8"))
