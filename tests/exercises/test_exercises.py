"""Every exercise: its stub, solution and wrong solutions are told apart, and nothing else passes.

`./run test tests/exercises -k accumulate` proves one; `python -m tests.exercises` prints figures.
"""

import ast
import copy
import os
import random
import re
from functools import cache
from pathlib import Path

import pytest

from minipaddle.engine.core import slots
from minipaddle.learn.exercise import BOOKS, LEVELS, load, names
from minipaddle.learn.process import judge_file
from minipaddle.learn.stub import FUNCTIONS, private, stub_of, task_of
from tests.book.chapters import BOOK, CHAPTERS, read
from tests.exercises.batch import outcomes
from tests.exercises.kinds import kinds_of
from tests.exercises.mutations import mutants, sample

MUTANTS = 100
"""`python -m tests.exercises` tries as many mutants of each solution, with its name as the seed."""

FEW = int(os.environ.get("MUTANTS", 1))
"""The suite tries as many of all: mutants, kinds of wrong solutions, and unkillable ones."""

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that can fork")
chapter_of = cache(read)
every_exercise = pytest.mark.parametrize("name", names())


@every_exercise
def test_the_stub_is_a_program_with_the_names_of_the_solution(name):
    exercise = load(name)
    compile(exercise.stub, name, "exec")
    stub, solution = map(ast.parse, (exercise.stub, exercise.solution))
    assert ast.get_docstring(stub) == ast.get_docstring(solution)
    assert signatures(stub) == signatures(solution)
    assert exercise.stub.startswith(task_of(exercise.stub))
    assert task_of(exercise.stub)


@pytest.mark.sweep(one_in=4)
@every_exercise
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_only_a_solution_passes(name):
    """Of all these texts, judged in one process: that is what takes the time."""
    exercise = load(name)
    wrong = exercise.wrong_solutions()
    assert len(wrong) >= 5
    wrong |= empties(exercise.stub)
    drawn = [*sample(exercise.solution, MUTANTS, seed=name), *kinds_of(exercise)]
    drawn = {m.change: m.text for m in drawn} | unkillable_mutants(exercise)
    drawn = dict(random.Random(name).sample([*drawn.items()], min(FEW, len(drawn))))
    texts = [exercise.solution, exercise.stub, *wrong.values(), *drawn.values()]
    solution, stub, *others = outcomes(name, texts)
    found = iter(others)
    assert solution.state == "passed", solution.why
    assert stub.state == "not started", stub.why
    for what, outcome in zip(wrong, found):
        assert outcome.state != "passed", f"{what}: this passes"
    states = {change: outcome.state for change, outcome in zip(drawn, found)}
    rejected = [c for c in exercise.unkillable if states.get(c, "passed") != "passed"]
    assert not rejected, f"take these off the list of unkillable ones: {rejected}"
    tried = [c for c, s in states.items() if s != "does not apply" and c not in exercise.unkillable]
    survivors = [change for change in tried if states[change] == "passed"]
    score = 1 - len(survivors) / max(1, len(tried))
    print(f"{name}: {score:.0%} of {len(tried)} mutations rejected")
    assert score >= 0.95, "\n".join([f"{score:.0%} rejected; these pass:", *sorted(survivors)])


def unkillable_mutants(exercise) -> dict[str, str]:
    """The mutations that an exercise says no test can reject."""
    texts = {m.change: m.text for m in mutants(exercise.solution) + kinds_of(exercise)}
    unknown = set(exercise.unkillable) - set(texts)
    assert not unknown, f"no such mutations: {unknown}"
    return {change: texts[change] for change in exercise.unkillable}


@every_exercise
def test_no_file_is_not_started(name, tmp_path, monkeypatch):
    monkeypatch.setenv("MINIPADDLE_EXERCISES", str(tmp_path / "nowhere"))
    assert judge_file(name).state == "not started"
    assert not (tmp_path / "nowhere").exists()


@every_exercise
def test_hints_slots_and_titles(name):
    exercise = load(name)
    assert exercise.title
    assert exercise.level in LEVELS
    assert 5 <= exercise.minutes <= 60
    everything = names()
    for one in exercise.before:  # what comes earlier, or stands beside it in its chapter
        first = next(k for k, other in enumerate(everything) if f"{other}/".startswith(f"{one}/"))
        chapter = exercise.name.split("/")[0]
        assert one.split("/")[0] < chapter or first != everything.index(name)
    assert len(exercise.hints) == 3
    assert exercise.hints[0].rstrip().endswith("?"), "the first hint is a question"
    assert all(hint.strip() for hint in exercise.hints)
    public = {node.name for node in ast.parse(exercise.stub).body if hasattr(node, "name")}
    for slot, function in exercise.slots.items():
        assert slots.find(slot).get() is not None
        assert function in public
    for test in exercise.tests:
        assert test.run.__doc__, f"{test.name} does not say what it is about"


@every_exercise
def test_what_the_reader_opens_shows_no_solution(name):
    exercise = load(name)
    opened = {f"the stub of {other}": load(other).stub for other in names()}
    for chapter in CHAPTERS:
        for cell in your_turn(chapter_of(chapter)):
            opened[f"{chapter.name}, {cell.id}"] = cell.source
    lines = list(telling(exercise.solution))
    for where, text in opened.items():
        for line in lines:
            assert bare(line) not in bare(text), f"{where} shows: {line}"


@every_exercise
def test_the_chapter_asks_it_once_and_does_not_repeat_the_task(name):
    cells = chapter_of(BOOK / f"{name.split('/')[0]}.ipynb").cells
    (cell,) = [cell for cell in cells if cell.source == f"%exercise {name}"]
    assert cell.outputs == []


def test_every_cell_names_an_exercise_and_has_no_text_of_it():
    cells = [cell.source for chapter in CHAPTERS for cell in chapter_of(chapter).cells]
    asked = [text for text in cells if re.match("%+exercise", text)]
    assert sorted(asked) == sorted(f"%exercise {name}" for name in names())


# ---- what these tests are made of ----------------------------------------------------------------


def empties(stub: str) -> dict[str, str]:
    """Texts that do nothing: no code, and functions that return or raise without thought."""
    filled = {
        "functions that return None": lambda names: "return None",
        "functions that return their first argument": lambda names: (
            f"return {(names or ['None'])[0]}"
        ),
        "functions that raise": lambda names: "raise ValueError('no')",
    }
    return {"an empty file": ""} | {what: with_bodies(stub, body) for what, body in filled.items()}


def signatures(tree) -> dict[str, str]:
    """The public functions of a program and of its classes, with their parameters."""
    public = [node for node in tree.body if hasattr(node, "name") and not private(node)]
    found = {node.name: ast.unparse(node.args) for node in public if isinstance(node, FUNCTIONS)}
    for node in public:
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{name}": its for name, its in signatures(node).items()}
    return found


def with_bodies(stub: str, body) -> str:
    """The stub with other bodies; `body` is given the names of the parameters, self apart."""
    tree = copy.deepcopy(ast.parse(stub))
    for node in ast.walk(tree):
        if isinstance(node, FUNCTIONS):
            arguments = [
                a.arg for a in (*node.args.posonlyargs, *node.args.args) if a.arg != "self"
            ]
            node.body = ast.parse(f"def f():\n    {body(arguments)}").body[0].body
    return ast.unparse(tree)


def your_turn(notebook):
    """The cells below the heading "Your turn"."""
    below = False
    for cell in notebook.cells:
        below = below or cell.source.startswith("## Your turn")
        if below:
            yield cell


def telling(solution: str):
    """The statements of a solution that give something away, as they stand in its bodies."""
    stub = {bare(line) for line in stub_of(solution).splitlines()}
    for node in ast.walk(ast.parse(solution)):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.Return | ast.Expr | ast.For | ast.If):
            line = ast.unparse(node).splitlines()[0]
            if len(bare(line)) >= 20 and not is_text(node) and bare(line) not in stub:
                yield line


def is_text(node) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


@cache
def bare(text: str) -> str:
    """A text without white space, and with one kind of quote."""
    return re.sub(r"\s+", "", text).replace('"', "'")


def test_these_tests_see_a_shown_solution():
    assert list(telling("def f(x):\n    return x.reshape([-1]).sum()\n")) == [
        "return x.reshape([-1]).sum()"
    ]
    assert Path(BOOKS).name == "exercises"
