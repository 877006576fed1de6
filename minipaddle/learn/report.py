"""The engine on the reader's own code, and a picture of the parts that are the reader's."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import groupby

from ..engine.core.errors import teach
from ..viz.collapse import reserve
from ..viz.graph_engine import Graph
from ..viz.parts import Edge, Frame, Legend, Node, draw
from ..viz.style import count
from . import progress
from .exercise import Exercise, load, names
from .judge import module_of
from .process import judge_all

COLUMNS = 3
"""The number of columns."""

ROLES = {"passed": "mine", "wrong": "broken", "error": "broken"}
"""How an exercise of a state is drawn; all others as the reference, which then runs."""

SIGNS = {"mine": "✓", "broken": "✗", "reference": "○"}


@contextmanager
def mine(chapter: str = ""):
    """Run the block on every exercise the reader has solved; the reference does the rest.

    It yields the picture of `engine(chapter)`. Only code that passes its check is plugged in, so
    files that were edited since are judged first. Within the block a tape draws the reader's
    operators green, and those grey that are unsolved exercises of the chapter.

    >>> from minipaddle import learn
    >>> with learn.mine("02_autograd") as report:
    ...     pass  # train a model
    >>> len(report.states) == len(report.yours) + len(report.rest)
    True
    """
    states = judge_edited()
    report = EngineReport(pick_chapter(chapter, states))
    with ExitStack() as plugs:
        for exercise in (load(name) for name, state in states.items() if state == "passed"):
            plugs.enter_context(exercise.plugged(reader_module(exercise)))
        plugs.enter_context(reserve(slot for name in report.rest for slot in load(name).slots))
        yield report


def reader_module(exercise: Exercise):
    """The reader's file as a module."""
    source = exercise.path.read_text(encoding="utf-8")
    return module_of(source, str(exercise.path), f"exercises.{exercise.name.replace('/', '.')}")


def engine(chapter: str = "") -> "EngineReport":
    """The parts of the engine that are exercises, by chapter: green where they are the reader's.

    Grey is not solved yet, red does not pass its check; there the reference runs. With a `chapter`,
    as "02_autograd", only its exercises are shown. Raises LookupError if there is no such chapter.
    """
    return EngineReport(pick_chapter(chapter, judge_edited()))


def pick_chapter(chapter: str, states: dict[str, str]) -> dict[str, str]:
    """The states of one chapter's exercises; without a chapter, of all."""
    chapters = dict.fromkeys(map(chapter_of, states))
    if chapter and chapter not in chapters:
        wanted = f"one of {', '.join(chapters)}"
        raise LookupError(teach(f"no chapter {chapter!r} has exercises", expected=wanted))
    return {name: state for name, state in states.items() if chapter in ("", chapter_of(name))}


def judge_edited() -> dict[str, str]:
    """The state of every exercise; those that were edited are judged now."""
    states = {name: progress.state(name) for name in names()}
    edited = [name for name, state in states.items() if state == "changed"]
    return states | {verdict.name: verdict.state for verdict in judge_all(edited)}


class EngineReport(Graph):
    """A picture of exercises of the engine; `states` holds the state of each."""

    def __init__(self, states: dict[str, str]):
        super().__init__()
        self.states = states
        self.yours = [name for name, state in states.items() if state == "passed"]
        self.rest = [name for name, state in states.items() if state != "passed"]
        page = draw(self.parts(), ranksep="0.12", tooltip="The engine: what is yours")
        self.body, self.graph_attr, self.text = page.body, page.graph_attr, page.text

    def __repr__(self) -> str:
        return self.text

    __str__ = __repr__

    def role(self, name: str) -> str:
        return ROLES.get(self.states[name], "reference")

    def line(self, name: str) -> str:
        who = {"mine": "yours", "broken": self.states[name]}.get(self.role(name), "reference")
        parts = ", ".join(load(name).slots) or "(no part of the engine)"
        return f"{SIGNS[self.role(name)]} {name:<32} {who:<10} {parts}"

    def caption(self) -> str:
        return f"{len(self.yours)} of {count(len(self.states), 'exercise')} run on your code"

    def parts(self) -> Iterator:
        """Chapters as frames, COLUMNS of them side by side, the exercises of each in a column.

        A chapter alone has its exercises in COLUMNS.
        """
        chapters = [[*members] for _, members in groupby(self.states, chapter_of)]
        side_by_side = COLUMNS if len(chapters) == 1 else 1
        for members in chapters:
            chapter = chapter_of(members[0])
            frame = Frame(chapter.replace("_", " "), chapter)
            yield from (self.node(load(name), frame) for name in members)
            yield from map(place_below, members, members[side_by_side:])
        yield from (place_below(a[-1], b[0]) for a, b in zip(chapters, chapters[COLUMNS:]))
        yield Legend(self.caption())

    def node(self, exercise: Exercise, frame: Frame) -> Node:
        name, role = exercise.name, self.role(exercise.name)
        label = "\n".join([f"{SIGNS[role]} {name.split('/')[1]}", *exercise.slots])
        tip = f"{exercise.title}\n{exercise.place}: {self.states[name]}"
        return Node(name, label, role, tip, (frame,), text=self.line(name))


def chapter_of(name: str) -> str:
    return name.split("/")[0]


def place_below(above: str, name: str) -> Edge:
    """Place an exercise below another."""
    return Edge(above, name, attrs={"style": "invis"})
