"""No folder grows without a word: its lines of code have a cap, and a higher cap has a reason."""

import subprocess

import pytest

from .lines import CAPS, ROOT, count, files_here, read_caps


def test_no_folder_exceeds_its_cap():
    caps = read_caps(CAPS.read_text(encoding="utf-8"))
    over = {
        folder: f"{n:,} lines, {caps[folder][0]:,} allowed" if folder in caps else f"{n:,}, no cap"
        for folder, n in count(files_here()).items()
        if folder not in caps or n > caps[folder][0]
    }
    assert not over, f"{over}: delete something, or: python -m tests.house.lines raise WHY"


def test_a_raised_cap_has_a_new_reason():
    name = f"HEAD~1:{CAPS.relative_to(ROOT).as_posix()}"
    found = subprocess.run(["git", "show", name], cwd=ROOT, capture_output=True, text=True)
    if found.returncode:
        pytest.skip("git knows no caps of the commit before")
    before, now = read_caps(found.stdout), read_caps(CAPS.read_text(encoding="utf-8"))
    silent = [
        folder
        for folder, (lines, reason) in now.items()
        if folder in before and lines > before[folder][0] and reason in ("", before[folder][1])
    ]
    assert not silent, f"{silent}: say in {CAPS.name} why the folder needs more lines"


def test_what_counts():
    notebook = '{"cells": [{"cell_type": "code", "source": ["a\\n", "\\n", "b"]}]}'
    files = [
        ("minipaddle/jit/a.py", '"""Doc."""\nx = 1  # one\n'),
        ("minipaddle/b.py", "y = 2\n\nz = 3\n"),
        ("minipaddle/codegen/templates/c.c", "int a;\n\nint b;\n"),
        ("book/d.ipynb", notebook),
    ]
    assert count(files) == {
        "minipaddle/jit": 1,
        "minipaddle/*.py": 2,
        "the package": 3,
        "C templates": 2,
        "book": 2,
    }
