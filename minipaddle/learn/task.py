"""The task of an exercise: as text for a terminal, as Markdown for a notebook or a page."""

import ast

from ..core.display import Display
from ..core.markdown import docstring, prose
from .exercise import Exercise


class ExerciseTask(Display):
    """The task of an exercise; its words are the docstring of the solution."""

    def __init__(self, exercise: Exercise):
        self.name, self.title = exercise.name, exercise.title
        self.asks = ast.get_docstring(ast.parse(exercise.solution)) or ""
        self.facts = {
            "effort": exercise.effort,
            "read before": ", ".join(exercise.reading),
            "replaces": ", ".join(exercise.slots),
            "your file": exercise.place,
        }

    @property
    def text(self) -> str:
        facts = [f"{label:<12} {fact}" for label, fact in self.facts.items() if fact]
        return "\n".join([self.title, *facts, "", self.asks])

    def rich(self) -> dict:
        return {"text/markdown": self.markdown()}

    def markdown(self) -> str:
        """Title, facts and task; the docstring's first line says the title again."""
        effort, *others = self.facts.items()
        facts = [effort[1], *(f"{label}: `{fact}`" for label, fact in others if fact)]
        asks = docstring(self.asks.partition("\n\n")[2])
        return f"### {prose(self.title)}\n\n{' · '.join(facts)}\n\n{asks}"
