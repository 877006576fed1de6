"""`./run learn`, `python -m minipaddle learn`, and in a notebook `%learn`: the practice loop.

examples (NAME may be abbreviated):
  ./run learn                       what there is, and how far you are
  ./run learn show accumulate       the task: how hard, how long, what to read before
  ./run learn check accumulate      judge exercises/02_autograd/accumulate.py
  ./run learn check 02 softmax      judge a chapter's exercises and another
  ./run learn watch                 judge whenever you save
  ./run learn hint accumulate       a hint; asked again, the next
"""

import argparse
import difflib
import sys
from contextlib import suppress
from itertools import groupby

from rich.console import Console
from rich.text import Text

from . import progress, sync
from .chapters import chapters
from .exercise import Exercise, load, names, workspace
from .lookup import UnknownError, find, find_all
from .process import LIMIT, SEED, judge_all, judge_file
from .task import ExerciseTask
from .verdict import MARKS, show, solution_for_rich
from .watch import watch_exercise


def main(arguments=None, console=None) -> int:
    """Run the command. Status 0: all that was checked passed; 1: it did not; 2: a wrong call."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    console = console or terminal()
    try:
        check_command(words)
        options = parser().parse_args(words)
        sync.write_stubs()
        return options.run(console, options)
    except UnknownError as error:
        console.print(f"error: {error}", style="bold", highlight=False, markup=False)
        return 2
    except KeyboardInterrupt:
        console.print("\nstopped")
        return 130


def check_command(words: list[str]) -> None:
    """Raise UnknownError with a suggestion if the first word is no command."""
    if not words or words[0].startswith("-") or words[0] in COMMANDS:
        return
    hint = f"there are {', '.join(COMMANDS)}"
    with suppress(UnknownError):
        find_all(words[:1])
        hint = f"that is an exercise: ./run learn check {words[0]}, or show, hint, watch"
    if near := difflib.get_close_matches(words[0], COMMANDS, 1):
        hint = f"did you mean {near[0]}?"
    raise UnknownError(f"there is no command {words[0]!r}; {hint}")


def terminal():
    """The console to print to: no lines are wrapped where there is no terminal."""
    return Console(highlight=False, soft_wrap=not sys.stdout.isatty())


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="./run learn",
        description="Exercises whose solutions are the engine.",
        epilog=__doc__.partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.set_defaults(run=list_all)
    commands = top.add_subparsers(metavar="COMMAND")
    for name, (run, about, arguments) in COMMANDS.items():
        one = commands.add_parser(name, help=about, description=about)
        one.set_defaults(run=run)
        for flag, options in arguments:
            one.add_argument(flag, **options)
    return top


def choose(name: str | None) -> Exercise:
    """The exercise that the command line names, or else the next one to do."""
    if name:
        return load(find(name))
    name = progress.find_next()
    if not name:
        raise UnknownError(f"everything in {workspace()} is solved; name an exercise")
    return load(name)


# ---- list ----------------------------------------------------------------------------------------


def list_all(console, options) -> int:
    """Every exercise by chapter, with its state."""
    states = {name: progress.state(name) for name in names()}
    titles = {name: load(name).title for name in states}
    known, lines, heads = progress.read(), [], chapters()
    name_width = max((len(name.split("/")[1]) for name in states), default=0)
    title_width = max(map(len, titles.values()), default=0)
    for chapter, members in groupby(states, lambda name: name.split("/")[0]):
        lines.append(Text(chapter, style="bold"))
        if chapter in heads:
            lines[-1].append(f"  {heads[chapter].effort}", style="default")
        for name in members:
            mark, short = MARKS[states[name]], name.split("/")[1]
            row = Text(f"  {mark.sign}", style=mark.colour)
            facts = f"{load(name).level:<6} {load(name).minutes:>3} min  "
            title = f" {short:<{name_width}}  {titles[name]:<{title_width}}  "
            row.append(title + facts, style="default")
            lines.append(row.append(remarks(states[name], known.get(name, progress.NEW))))
    solved = sum(state == "passed" for state in states.values())
    lines.append(Text(f"{bar(solved, len(states))} {solved} of {len(states)} passed"))
    waiting = progress.find_next()
    if waiting:
        lines.append(Text(f"Next: {load(waiting).place}, then ./run learn check {waiting}"))
    console.print(Text("\n").join(lines))  # at once: in a notebook each print is an output
    return 0


def remarks(state: str, entry: dict) -> str:
    """The state, and the help that was used."""
    words = [state] if state != "changed" else ["edited since the last check"]
    if entry["hints"]:
        words.append(f"{entry['hints']} of 3 hints")
    if entry["looked"]:
        words.append("solution seen")
    return ", ".join(words)


def bar(done: int, of: int, width: int = 30) -> str:
    full = round(width * done / of) if of else 0
    return "█" * full + "░" * (width - full)


def show_task(console, options) -> int:
    """Print the task of an exercise, how hard it is, its minutes, and the reading before it."""
    exercise = choose(options.name)
    state = remarks(progress.state(exercise.name), progress.of(exercise.name))
    console.print(Text(f"{exercise.name}: {state}", style="bold"))
    console.print(Text(str(ExerciseTask(exercise))))
    return 0


# ---- check ---------------------------------------------------------------------------------------


def check(console, options) -> int:
    """Judge one exercise, several, or all."""
    several = names() if options.all else find_all(options.names)
    if options.all or len(several) > 1:
        return check_all(console, options, several)
    exercise = choose(several[0] if several else None)
    verdict = judge_file(exercise.name, seconds=options.limit, seed=options.seed)
    progress.remember(verdict)
    show(console, verdict)
    if verdict.passed:
        console.print(solution_for_rich(exercise.name))
    return 0 if verdict.passed else 1


def check_all(console, options, several: list[str]) -> int:
    """Judge several exercises, and print a line for each."""

    def report(verdict) -> None:
        mark = MARKS[verdict.state]
        line = f"{mark.sign} {verdict.name:<32} {verdict.state:<12} {verdict.seconds:5.1f} s"
        console.print(Text(line, style=mark.colour))

    verdicts = judge_all(several, report, seconds=options.limit, seed=options.seed)
    passed = sum(verdict.passed for verdict in verdicts)
    console.print(Text(f"{bar(passed, len(verdicts))} {passed} of {len(verdicts)} passed"))
    return 0 if verdicts and passed == len(verdicts) else 1


# ---- help ----------------------------------------------------------------------------------------


def hint(console, options) -> int:
    """Show the hints so far and one more."""
    return show_hints(console, choose(options.name))


def show_hints(console, exercise: Exercise) -> int:
    shown = min(progress.of(exercise.name)["hints"] + 1, len(exercise.hints))
    progress.note(exercise.name, hints=shown)
    for k, text in enumerate(exercise.hints[:shown], 1):
        console.print(Text(f"Hint {k} of {len(exercise.hints)} for {exercise.name}", style="bold"))
        console.print(Text("\n".join(f"  {line}" for line in text.strip().splitlines())))
    if shown == len(exercise.hints):
        console.print(Text(f"That was the last one. ./run learn solution {exercise.name}"))
    return 0


def solution(console, options) -> int:
    """Show the annotated solution; ask first if the exercise is not passed yet."""
    exercise = choose(options.name)
    seen = progress.of(exercise.name)["looked"] or progress.state(exercise.name) == "passed"
    question = f"{exercise.name} is not passed yet. Show its solution (your progress will say so)?"
    if not (seen or options.yes or confirm(console, question)):
        return 1
    if progress.state(exercise.name) != "passed":
        progress.note(exercise.name, looked=True)
    console.print(solution_for_rich(exercise.name))
    return 0


def reset(console, options) -> int:
    """Put the stub back; a copy of the reader's text is kept."""
    if not options.name:
        raise UnknownError("which exercise should be reset? Please name it")
    exercise = load(find(options.name))
    question = f"Put the empty {exercise.place} back (a copy stays)?"
    if not (options.yes or confirm(console, question)):
        return 1
    kept = sync.reset(exercise)
    console.print(f"{exercise.place} is as it was", markup=False)
    if kept:
        place = f"{workspace().name}/{kept.relative_to(workspace()).as_posix()}"
        console.print(f"A copy of what was there: {place}", markup=False)
    return 0


def confirm(console, question: str) -> bool:
    """Whether the reader says yes; no if there is no terminal to ask on."""
    try:
        console.print(f"{question} [y/N] ", end="", markup=False)
        return input().strip().lower() in ("y", "yes")
    except (EOFError, RuntimeError, NotImplementedError):  # no terminal, or a kernel without one
        console.print("\nnobody answers: add --yes", markup=False)
        return False


def watch(console, options) -> int:
    """Judge an exercise whenever its file is saved."""
    return watch_exercise(console, choose(options.name).name, options, show_hints)


NEXT = "without it: the next to do"
NAME = ("name", {"nargs": "?", "metavar": "NAME", "help": NEXT})
NAMES = ("names", {"nargs": "*", "metavar": "NAME", "help": f"exercises or chapters; {NEXT}"})
LIMITS = (
    ("--limit", {"type": float, "default": LIMIT, "help": "processor seconds a check may take"}),
    ("--seed", {"type": int, "default": SEED, "help": "of the random inputs"}),
)
ALL = ("--all", {"action": "store_true", "help": "every exercise, and the progress"})
YES = ("--yes", {"action": "store_true", "help": "do not ask"})

COMMANDS = {
    "list": (list_all, "what there is, and how far you are", []),
    "show": (show_task, "an exercise's task, how hard it is, what to read before", [NAME]),
    "check": (check, "judge exercises, or a chapter's", [NAMES, *LIMITS, ALL]),
    "watch": (watch, "judge an exercise whenever its file is saved", [NAME, *LIMITS]),
    "hint": (hint, "a hint; asked again, the next", [NAME]),
    "solution": (solution, "the annotated solution", [NAME, YES]),
    "reset": (reset, "put the empty exercise back, and keep a copy", [NAME, YES]),
}
"""For each command its function, its help and its arguments."""
