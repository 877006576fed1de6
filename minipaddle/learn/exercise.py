"""An exercise: what the reader's functions replace in the engine, and how they are judged.

An exercise `02_autograd/accumulate` is three files under `exercises/`: the reader's
`02_autograd/accumulate.py`, cut from `solutions/02_autograd/accumulate.py`, and
`checks/02_autograd/accumulate.py`, which makes one `Exercise`.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np

from ..engine.core.slots import plugged
from ..engine.core.slots import yours as slots_of_reader
from ..engine.eager.tensor import Tensor
from ..testing.gradcheck import mismatch
from .stub import stub_of
from .wrong import changed, text_of

BOOKS = Path(__file__).parents[2] / "exercises"


def workspace() -> Path:
    """The folder of the reader's files; MINIPADDLE_EXERCISES names another than the book's."""
    return Path(os.environ.get("MINIPADDLE_EXERCISES") or BOOKS).absolute()


def home() -> Path:
    """Where checks and solutions are: the book's, unless the workspace has some of its own."""
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
    """What is asked of the reader.

    It is of a `level` of LEVELS and takes some `minutes` once its chapter and what `before` names
    (chapters and exercises) are read. `slots` maps a slot of the engine to the name of the reader's
    function for it; `wrong` maps what a wrong solution looks like ("forgetting to accumulate") to
    what changes in the right one, one text or several (see `wrong.changed`). What takes more than a
    change is a small function of the name of the right one, below the exercise:

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
        """What to read before: the chapter, and what else is named."""
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
        found = {slot: getattr(yours, name) for slot, name in self.slots.items()}
        now = slots_of_reader()
        here = all(now.get(slot) is function for slot, function in found.items())
        return nullcontext() if here else plugged(found)

    @property
    def path(self) -> Path:
        """The reader's file."""
        return workspace() / f"{self.name}.py"

    @property
    def place(self) -> str:
        """The reader's file as it is called in messages: the same on every machine."""
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
        changes = {k: [c] if isinstance(c, str) else c for k, c in self.wrong.items()}
        return {k: changed(self.solution, *found) for k, found in changes.items()}

    def holds(self, call, oracle, shapes, **options) -> None:
        """Add a check: `call(yours, *inputs)` is what `oracle` says, for all kinds of inputs.

        See `variations.hold` for the shapes and the options.
        """

        def whatever_it_is_given(yours):
            """The same answer for small and large arrays, other dtypes, strides and magnitudes."""
            from .variations import hold

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
    """The exercise called `name`, as its check file describes it."""
    path = home() / "checks" / f"{name}.py"
    return loaded(name, path, path.stat().st_mtime_ns)


@cache
def loaded(name: str, path: Path, _written: int) -> Exercise:
    """The exercise a check file makes; made again when the file has changed."""
    spec = importlib.util.spec_from_file_location(f"checks.{name.replace('/', '.')}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.exercise.name = name
    return module.exercise


def names() -> list[str]:
    """Every exercise's name, in the book's order: chapter by chapter, as their cells follow."""
    checks = home() / "checks"
    found = [p.relative_to(checks).with_suffix("").as_posix() for p in checks.glob("*/*.py")]
    return sorted(found, key=lambda name: (name.split("/")[0], place_in_chapter(name), name))


def book() -> Path:
    """The folder of the chapters that the exercises belong to."""
    return home().parent / "book"


def place_in_chapter(name: str) -> int:
    """Where the exercise's cell is in its chapter's file; at the end if it has none."""
    chapter = book() / f"{name.split('/')[0]}.ipynb"
    if not chapter.is_file():
        return 0
    cells = cells_of(chapter, chapter.stat().st_mtime_ns)
    return cells.index(name) if name in cells else len(cells)


@cache
def cells_of(chapter: Path, _written: int) -> list[str]:
    """The exercises a chapter has cells for, in order."""
    return re.findall(r'"%%exercise ([\w/]+)', chapter.read_text(encoding="utf-8"))


# ---- what a check says ---------------------------------------------------------------------------


class Disagreement(AssertionError):
    """The reader's code gave `got` for the inputs `given`; `expected` is right.

    A `picture` that is a function is drawn later, with what is plugged in now.
    """

    def __init__(self, why: str, given=None, expected=None, got=None, picture=None):
        super().__init__(why)
        self.given, self.expected, self.got = given, expected, got
        self.picture, self.plugs = picture, slots_of_reader()


def expect(got, expected, *, given=None, why="", picture=None, rtol=1e-6, atol=1e-9) -> None:
    """Raise Disagreement unless `got` is `expected`: tensors, arrays, numbers, tuples, dicts, text.

    Shapes must be equal, values within `atol + rtol * |expected|`, dtypes only if both are arrays
    of another kind (an integer is no float). `picture` is a graph, or a function that draws one.

    >>> from minipaddle.learn import expect
    >>> expect([1.0, 2.0], (1.0, 2.0 + 1e-9))
    """
    difference = differs(got, expected, rtol, atol)
    if difference:
        raise Disagreement(why or difference, given, expected, got, picture)


def expect_that(condition, what: str, *, given=None, got=None, picture=None) -> None:
    """Raise Disagreement with the text `what` unless the condition holds."""
    if not condition:
        raise Disagreement(what, given, None, got, picture)


def expect_gradients(program, inputs, *, order: int = 1, given=None, why: str = "") -> None:
    """Raise Disagreement unless backward through `program` gives what central differences give.

    `program` takes a tensor for each of the arrays `inputs`. The Disagreement holds the smallest
    cut of the inputs that shows the fault, and draws its tape with the bad nodes red.
    """
    found = mismatch(program, *inputs, order=order)
    if found is None:
        return
    tensors, wrong = found
    nth = ("", "second ", "third ")[min(wrong.order, 3) - 1]
    where = f" by {label(wrong.place, tensors)}{list(wrong.index) or ''}"
    raise Disagreement(
        why or f"the {nth}derivative{where} is not what central differences give",
        (given or {}) | {label(k, tensors): x.numpy() for k, x in enumerate(tensors)},
        wrong.quotient,
        wrong.derivative,
        lambda: drawn(program, tensors, wrong.order),
    )


def label(k: int, tensors) -> str:
    """What input k of a program is called: x, or x1, x2 and so on."""
    return "x" if len(tensors) == 1 else f"x{k + 1}"


def drawn(program, tensors, order: int):
    """The program's tape with the bad node red."""
    from .blame import blamed

    return blamed(program, tensors, order)


def differs(got, expected, rtol: float, atol: float) -> str:
    """In what the two differ; empty if they do not."""
    if isinstance(expected, dict):
        if not isinstance(got, dict) or set(got) != set(expected):
            return "the keys differ"
        parts = (differs(got[k], expected[k], rtol, atol) for k in expected)
        return next(filter(None, parts), "")
    if isinstance(expected, str | bytes | bool | None):
        return "" if type(got) is type(expected) and got == expected else "it differs"
    if isinstance(expected, list | tuple) and not numeric(expected):
        if not isinstance(got, list | tuple) or len(got) != len(expected):
            return "there are not as many"
        parts = (differs(g, e, rtol, atol) for g, e in zip(got, expected, strict=True))
        return next(filter(None, parts), "")
    return arrays_differ(got, expected, rtol, atol)


def arrays_differ(got, expected, rtol: float, atol: float) -> str:
    a, b = as_numpy(got), as_numpy(expected)
    if a is None or b is None:
        return "" if a is b and got == expected else "it differs"
    if a.shape != b.shape:
        return f"shape {list(a.shape)} instead of {list(b.shape)}"
    if (a.dtype.kind in "biu") != (b.dtype.kind in "biu"):
        return f"dtype {a.dtype} instead of {b.dtype}"
    return "" if np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True) else "the values differ"


def numeric(x) -> bool:
    a = as_numpy(x)
    return a is not None and a.size > 0


def as_numpy(x):
    """`x` as an array of numbers, or None if it is none."""
    if isinstance(x, Tensor):
        x = x.numpy()
    try:
        a = np.asarray(x)
    except (TypeError, ValueError):
        return None
    return a.astype(np.float64) if a.dtype.kind == "V" else a if a.dtype.kind in "biufc" else None
