"""The pages' sources: the chapters, and what is said of them, of operators and of exercises."""

import re
import shutil
from itertools import groupby
from pathlib import Path

import nbformat
from drawing import PAGE as DRAWING
from explorers import link_page
from names import names_page
from operators import write_operators
from terms import PAGE, TEXT
from text import fold, literal

from minipaddle.core.markdown import fence, prose
from minipaddle.jit import saved
from minipaddle.learn.chapters import BOOK, Chapter, chapters
from minipaddle.learn.exercise import load, names
from minipaddle.learn.stub import task_of
from minipaddle.learn.task import ExerciseTask
from minipaddle.viz.markup import tag

ROOT = BOOK.parent
EXERCISE = "%exercise "

INDEX = """# MiniPaddle, the book

A deep-learning framework small enough to read, and the book that builds it. You need Python and a
little calculus. Each chapter makes an idea from nothing in a few short cells, then opens the real
code, which runs ordinary Paddle programs, and lets you put your own in its place.

These pages are for reading. To run the cells, change them and solve the exercises, type in the
folder that holds MiniPaddle:

```sh
./run read       # opens the chapters in JupyterLab; the first time, it sets itself up
./run doctor     # says what your machine lacks, should something not work
```

{explorer}{draw}{parts}

## To look things up

{lookup}

{trees}
"""
SHOWN = "10_training_programs"
"""The chapter whose explorer stands on the first page."""
EXPLORER = """What becomes of a line of Python? Here is the training step of
[](/{chapter}.ipynb), in which a convolution is selected. Click on another expression,
on a line of C, on a place in memory: each marks the others.

{frame}

"""
DRAW = f"""[](/{DRAWING}.md): the network of chapter 5 reads it.

"""
PART = """## Part {part}

| | Chapter | The question | |
|--:|---|---|---|
{rows}
"""
TREE = """```{{toctree}}
:hidden:
:caption: {caption}

{documents}
```
"""


def write_pages(source: Path, explorers: dict[str, str], drawing: str = "") -> None:
    """Fill the folder `source` with everything Sphinx is to read. `explorers`: chapter -> the
    address of its explorer's page; `drawing`: the text of the page to draw a digit on.
    """
    source.mkdir(parents=True)
    shutil.copytree(BOOK / "pictures", source / "pictures")
    heads = chapters()
    notebooks = {name: nbformat.read(BOOK / f"{name}.ipynb", as_version=4) for name in heads}
    for name, notebook in notebooks.items():
        nbformat.write(staged(notebook, explorers.get(name)), source / f"{name}.ipynb")
    write_operators(source / "operators", "Operators")
    (source / "formats.md").write_text(f"# Saved models\n\n{saved.__doc__}", encoding="utf-8")
    (source / f"{PAGE}.md").write_text(TEXT, encoding="utf-8")
    (source / "names.md").write_text(names_page(notebooks), encoding="utf-8")
    (source / "exercises.md").write_text(exercises_page(), encoding="utf-8")
    if drawing:
        (source / f"{DRAWING}.md").write_text(drawing, encoding="utf-8")
    lookup = {
        "exercises": "what to build yourself, with hints",
        PAGE: "each term, with the chapter and the section that explain it",
        "names": "each name of Paddle, with the chapter that builds it",
        "operators/index": "every operator: its formula, its derivative, an example",
        "formats": "the files that jit.save writes",
    }
    parts = {
        part: dict(some) for part, some in groupby(heads.items(), key=lambda item: item[1].part)
    }
    trees = {**{f"Part {part}": some for part, some in parts.items()}, "To look things up": lookup}
    page = INDEX.format(
        explorer=write_frame(explorers[SHOWN]) if SHOWN in explorers else "",
        draw=DRAW if drawing else "",
        parts="\n".join(
            PART.format(part=part, rows="\n".join(row(*item) for item in some.items()))
            for part, some in parts.items()
        ),
        lookup="\n".join(f"- [](/{page}.md): {what}" for page, what in lookup.items()),
        trees="\n".join(
            TREE.format(caption=caption, documents="\n".join(some))
            for caption, some in trees.items()
        ),
    )
    (source / "index.md").write_text(page, encoding="utf-8")


def write_frame(address: str) -> str:
    """An explorer as part of the first page."""
    words = {"title": "An explorer: a training step, followed down to memory", "loading": "lazy"}
    frame = tag("div", tag("iframe", src=address, **words), class_="explorer")
    return EXPLORER.format(chapter=SHOWN, frame=frame)


# ---- chapters ------------------------------------------------------------------------------------


def row(name: str, chapter: Chapter) -> str:
    """The chapter's line in the table of the first page."""
    link = f"[{chapter.title}](/{name}.ipynb)"
    return f"| {chapter.number} | {link} | {chapter.question} | {chapter.effort} |"


def staged(notebook, explorer: str | None = None):
    """The chapter as a page shows it: with its tasks, with graphs whose tooltips work, and with a
    link to the address of its explorer.
    """
    for k, cell in enumerate(notebook.cells):
        if cell.source.startswith(EXERCISE):
            task = exercise_section(cell.source.removeprefix(EXERCISE))
            notebook.cells[k] = nbformat.v4.new_markdown_cell(task, id=cell.id)
        if cell.cell_type == "markdown":
            # a file of the repository is not part of the site: its name stays, as plain text
            cell.source = re.sub(r"\[([^\]]*)\]\(\.\./[^)]*\)", r"\1", cell.source)
            cell.source = link_page(cell.source, explorer) if explorer else cell.source
        for j, output in enumerate(cell.get("outputs", [])):
            data = output.get("data", {})
            if "<iframe" in data.get("text/html", ""):  # viz.movable: its own page, in a frame
                output.data = {"text/html": data["text/html"]}
            elif svg := data.get("image/svg+xml"):
                output.data = {"text/html": inline(svg, f"c{k}o{j}-")}
    return notebook


def inline(svg: str, prefix: str) -> str:
    """An SVG as part of a page; its ids get a prefix that no other has."""
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}", svg[svg.index("<svg") :])
    return f'<div class="graph" tabindex="0">{svg}</div>'


# ---- exercises -----------------------------------------------------------------------------------

EXERCISES = """# Exercises

Each exercise is a slot of the engine. You write one file under `exercises/`; as soon as it passes
its check, the engine runs on it, and whole models train on what you wrote. `./run learn` lists the
exercises with your progress, `./run learn check NAME` judges yours, `./run learn hint NAME` gives
one hint at a time. Each is in its chapter:
"""


def exercises_page() -> str:
    """Every exercise, with a link to where its chapter asks it."""
    lines = [EXERCISES]
    for chapter, members in groupby(names(), lambda name: name.split("/")[0]):
        number, title, *_ = chapters()[chapter]
        lines.append(f"## {prose(f'{number} · {title}')}\n")
        for name in members:
            exercise = load(name)
            link = f"[{prose(exercise.title)}](#{label_of(name)})"
            lines.append(f"- {link}: `{name}`, {exercise.effort}")
        lines.append("")
    return "\n".join(lines)


def exercise_section(name: str) -> str:
    """The task of an exercise, its stub, and its hints, folded."""
    exercise = load(name)
    stub = literal(exercise.stub.removeprefix(task_of(exercise.stub)), f"exercises/{name}.py")
    hints = [fold(f"Hint {k}", as_hint(hint)) for k, hint in enumerate(exercise.hints, 1)]
    return "\n".join([f"({label_of(name)})=", ExerciseTask(exercise).markdown(), stub, *hints])


def label_of(name: str) -> str:
    return f"exercise-{name.replace('/', '-')}"


def as_hint(hint: str) -> str:
    """A hint that is laid out in lines is pseudo-code."""
    return fence(hint, "text") if "\n" in hint.strip() else prose(hint)
