"""Does a change of the code change programs? Replays a fixed set of programs, here and elsewhere.

    python -m tests.replay FOLDER                 the texts of each program, in a file
    python -m tests.replay --against COMMIT       what differs from a commit
        [--group operators|models|exercises|distributed|int8|onnx]   of some groups only
        [--full]                                  and the lines that differ

A text is what the passes leave of a program, its C and CUDA, its memory plan, its first results.
A table of arenas follows, with each that grew by more than 2 %.
The commit's own replay writes its texts (this one's, if it has none), so that names may change.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[2]
GROUPS = ("operators", "models", "exercises", "distributed", "int8", "onnx")
PROCESSES = 2
FIXED = {
    "CUDA_VISIBLE_DEVICES": "-1",
    "MINIPADDLE_BACKEND": "interpreter",
    "MINIPADDLE_PROCESSOR": "x86-64-v3",
    "MINIPADDLE_TUNED": "0",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
}
"""The environment of a replay."""
MARK = "######## "
"""Begins the line before each text of a file."""
FAILED = "cannot be replayed"
GROWTH = 1.02
"""A program whose arena grows by more than this is named."""


# ---- one tree --------------------------------------------------------------------------------


def replay(tree: Path, folder: Path, groups) -> None:
    """Write the texts of a tree's programs, in several processes."""
    environment = os.environ | FIXED | {"PYTHONPATH": str(tree)}
    command = [sys.executable, "-m", "tests.replay", str(folder), "--group", *groups, "--part"]
    parts = [[*command, str(k)] for k in range(PROCESSES)]
    workers = [subprocess.Popen(part, cwd=tree, env=environment) for part in parts]
    codes = [worker.wait() for worker in workers]
    if any(codes):
        raise SystemExit(f"the programs of {tree} could not be replayed")


def replay_part(folder: Path, groups, part: int) -> None:
    """Write the texts of every other task, from number `part`, one after the other."""
    from rich.console import Console
    from rich.progress import track

    warnings.simplefilter("ignore")
    tasks = [task for group in groups for task in tasks_of(group)][part::PROCESSES]
    console = Console(stderr=True)
    hidden = part > 0 or not console.is_terminal
    for group, name, make in track(tasks, folder.name, console=console, disable=hidden):
        with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
            found = [*texts_of_task(make)]
        for k, texts in enumerate(found):
            number = f", program {k + 1}" if len(found) > 1 else ""
            path = folder / group / f"{re.sub(r'[^ -.0-~]', '_', name)}{number}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            text = "\n".join(f"{MARK}{title}\n{text}" for title, text in texts.items())
            path.write_text(f"{text}\n", encoding="utf-8")


def tasks_of(group: str) -> list[tuple]:
    """(group, name, function) of each task; one that raises, if the tree lacks the group."""
    try:
        from .programs import GROUPS as found

        return [(group, name, make) for name, make in found[group]().items()]
    except Exception as error:
        return [(group, "all", partial(fail, error))]


def fail(error: Exception):
    raise error


def texts_of_task(make: Callable) -> Iterator[dict[str, str]]:
    """The texts of each program of a task; the error, if there is one."""
    try:
        import minipaddle as paddle

        from .texts import texts_of

        paddle.seed(7)
        with paddle.utils.unique_name.guard():
            for case in make():
                yield texts_of(case)
    except Exception as error:
        yield {FAILED: f"{type(error).__name__}: {error}".partition("\n  at: ")[0]}


# ---- two trees -------------------------------------------------------------------------------


@contextmanager
def checkout(commit: str, folder: Path) -> Iterator[Path]:
    """A temporary worktree of a commit, with a replay."""
    git = ["git", "-C", str(ROOT), "worktree"]
    tree = folder / "tree"
    subprocess.run([*git, "add", "--quiet", "--detach", tree, commit], check=True)
    try:
        if not (tree / "tests/replay").exists():
            shutil.copytree(Path(__file__).parent, tree / "tests/replay")
        yield tree
    finally:
        subprocess.run([*git, "remove", "--force", tree], check=True)


def read(folder: Path) -> dict[str, dict[str, str]]:
    """The texts that a replay has written, by program and title."""
    found = {}
    for path in sorted(folder.rglob("*.txt")):
        parts = re.split(rf"^{MARK}(.*)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        name = path.relative_to(folder).with_suffix("").as_posix()
        found[name] = dict(zip(parts[1::2], parts[2::2], strict=True))
    return found


def differences(before: Path, now: Path) -> Iterator[tuple[str, str, str, str]]:
    """(program, title, the text before, the text now) of all that differ."""
    old, new = read(before), read(now)
    for name in sorted(old.keys() | new.keys()):
        a, b = old.get(name), new.get(name)
        if a is None or b is None:
            yield name, "only here" if a is None else "only there", "", ""
        elif FAILED in a or FAILED in b:
            if a != b:
                yield name, FAILED, a.get(FAILED, ""), b.get(FAILED, "")
        else:
            for title in [t for t in {**a, **b} if a.get(t) != b.get(t)]:
                yield name, title, a.get(title, ""), b.get(title, "")


def report(found: list[tuple], full: bool) -> Iterator[str]:
    """The table of what differs, then each difference once."""
    titles: dict[str, list] = {}
    diffs: dict[str, list] = {}
    for name, title, a, b in found:
        titles.setdefault(name, []).append(title)
        lines = [*difflib.unified_diff(a.splitlines(), b.splitlines(), n=2, lineterm="")][2:]
        diffs.setdefault("\n".join(lines), []).append(f"{name}: {title}")
    width = max(map(len, titles), default=0)
    for name, listed in titles.items():
        yield f"{name:{width}}  {', '.join(listed)}"
    for diff, places in diffs.items() if full else ():
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        yield f"\n{places[0]}{more}\n{diff}"
    yield f"{len(titles)} programs differ" if titles else "no difference"


def arenas(before: Path, now: Path) -> Iterator[str]:
    """The bytes of all arenas in both trees, and each that grew."""
    old, new = (
        {name: int(t["arena"].split()[0]) for name, t in read(folder).items() if "arena" in t}
        for folder in (before, now)
    )
    both = old.keys() & new.keys()
    total = sum(old[name] for name in both), sum(new[name] for name in both)
    yield f"arenas of {len(both)} programs: {total[0]:,} bytes before, {total[1]:,} now"
    for name in sorted(both, key=lambda name: old[name] - new[name]):
        if new[name] > GROWTH * old[name]:
            yield f"{name}: its arena grew from {old[name]:,} to {new[name]:,} bytes"


def compare(commit: str, groups, full: bool) -> None:
    """Replay a commit and this tree, and print what differs."""
    with tempfile.TemporaryDirectory(prefix="minipaddle-replay-") as name:
        here, there = Path(name, "here"), Path(name, commit.replace("/", "_"))
        with checkout(commit, Path(name)) as tree:
            replay(tree, there, groups)
        replay(ROOT, here, groups)
        print("\n".join([*report([*differences(there, here)], full), *arenas(there, here)]))


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.replay", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--against", metavar="COMMIT")
    parser.add_argument("--group", nargs="+", choices=GROUPS, default=GROUPS)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--part", type=int, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if (chosen.folder is None) == (chosen.against is None):
        parser.error("either a folder, or --against a commit")
    if chosen.against:
        compare(chosen.against, chosen.group, chosen.full)
    elif chosen.part is None:
        replay(ROOT, chosen.folder.absolute(), chosen.group)
    else:
        replay_part(chosen.folder, chosen.group, chosen.part)


if __name__ == "__main__":
    main(sys.argv[1:])
