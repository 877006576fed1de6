"""In a notebook: `%exercise NAME` shows a task, and the cell becomes the editor of its solution.

The editor is a cell `%%exercise NAME`: it writes its text to the reader's file and shows the
verdict. `%load_ext minipaddle.learn` brings both, and `%learn …`; `%exercise NAME` with --hint,
--solution, --reset or --check does what `./run learn` does.
"""

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class
from IPython.display import display
from rich.console import Console

from ..core.display import Display
from ..viz.markup import write_fact, write_notice, write_words
from . import command, progress, sync
from .exercise import Exercise, load
from .lookup import UnknownError, find
from .process import judge_file
from .stub import task_of
from .task import ExerciseTask
from .verdict import MARKS

OVERWRITE = "--overwrite"


class Notice(Display):
    """A remark about cell and file, beside the verdict."""

    def __init__(self, message: str, code: str = ""):
        self.message, self.code = message, code
        self.text = "\n".join(filter(None, [f"? {message}", code]))

    def html(self) -> str:
        facts = [write_fact("", write_words(self.message)), write_words(self.code, "code")]
        return write_notice(MARKS["changed"].colour, *facts)


@magics_class
class Practice(Magics):
    """The practice loop in a notebook."""

    @cell_magic("exercise")
    def cell(self, line: str, cell: str) -> None:
        """Write the cell to the reader's file, if that loses nothing, and show the verdict; the
        task too, until it is solved.
        """
        words = line.split()
        exercise = find_exercise([word for word in words if word != OVERWRITE])
        cell = cell if task_of(cell) else task_of(exercise.stub) + cell.lstrip("\n")
        if OVERWRITE in words:
            kept = sync.back_up(exercise)
            sync.put(exercise, cell)
            if kept is not None:
                display(Notice(f"A copy of what the file said is in {kept}"))
        else:
            taken = sync.bring(exercise, cell)
            if taken.message:
                display(notice(exercise, cell, taken))
            if taken.action == sync.CONFLICT:
                return
        verdict = judge_file(exercise.name)
        progress.remember(verdict)
        display(verdict)
        if not verdict.passed:
            display(ExerciseTask(exercise))

    @line_magic("exercise")
    def fetch(self, line: str) -> None:
        """Show the task and make the cell its editor, or do the command of an option."""
        flags = [word.removeprefix("--") for word in line.split() if word.startswith("--")]
        exercise = find_exercise([word for word in line.split() if not word.startswith("--")])
        asked = [flag for flag in flags if flag != "yes"]
        if asked:
            yes = ["--yes"] if "yes" in flags else []
            return self.learn(" ".join([asked[0], exercise.name, *yes]))
        sync.write_stubs()
        text = sync.clean(progress.text_of(exercise) or exercise.stub)
        progress.note(exercise.name, synced=progress.digest(text))
        display(ExerciseTask(exercise))
        code = text.removeprefix(task_of(exercise.stub))
        self.shell.set_next_input(f"%%exercise {exercise.name}\n{code}".rstrip(), replace=True)
        return None

    @line_magic("learn")
    def learn(self, line: str) -> None:
        """The command `./run learn` of a terminal."""
        if line.split()[:1] == ["watch"]:
            raise UsageError("a cell cannot watch: run the %%exercise cell, or use a terminal")
        try:
            command.main(line.split(), console=Console(highlight=False))  # it knows notebooks
        except SystemExit:  # argparse has printed the fault
            return


def find_exercise(words: list[str]) -> Exercise:
    """The exercise that a magic names."""
    if len(words) != 1:
        raise UsageError("name one exercise: %%exercise 02_autograd/accumulate")
    try:
        return load(find(words[0]))
    except UnknownError as error:
        raise UsageError(str(error)) from None


def notice(exercise: Exercise, cell: str, taken: sync.Sync) -> Notice:
    """The state of cell and file, and the reader's choices."""
    ways = [
        taken.message,
        f"%exercise {exercise.name}  makes of a new cell an editor of the file;",
        f"%%exercise {exercise.name} {OVERWRITE}  writes this cell over the file (a copy stays).",
    ]
    conflict = taken.action == sync.CONFLICT
    return Notice("\n".join(ways), sync.difference(exercise, cell) if conflict else "")
