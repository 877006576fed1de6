"""The README's program does what the README says, and draws the README's picture."""

import re
import runpy
from pathlib import Path

import pytest

from minipaddle.engine.executors.compiler import compiler

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.slow
@pytest.mark.skipif(compiler() is None, reason="no C compiler: install gcc or clang")
def test_the_program_prints_and_draws_what_is_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "book" / "pictures").mkdir(parents=True)
    program = tmp_path / "readme.py"  # in a file, as who tries it will have it
    program.write_text("\n\n".join(PROGRAMS), encoding="utf-8")
    runpy.run_path(str(program))
    printed = capsys.readouterr().out
    promised = re.findall(r"print\(.*\)  # ([\d.]+)$", README, re.MULTILINE)
    assert promised
    assert printed.split("\n")[: len(promised)] == promised
    assert "m.maximum(x, 0)" in printed
    assert "program step(images" in printed
    assert "by the host: nothing" in printed
    assert re.search(r"^static void k\d+_", printed, re.MULTILINE)
    drawn = (tmp_path / "book/pictures/step.svg").read_text(encoding="utf-8")
    shown = (ROOT / "book/pictures/step.svg").read_text(encoding="utf-8")
    assert labels(drawn) == labels(shown), "draw it again: run the README's program in the root"


def labels(svg: str) -> list[str]:
    """What a reader can read in the picture."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


def test_commands_exist():
    for command in re.findall(r"^\./run (\w+)", README, re.MULTILINE):
        text = (ROOT / "run").read_text(encoding="utf-8")
        assert f"def {command}(" in text or f'"{command}"' in text


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)|src=\"([^\"]+)\"", README):
        path = "".join(target)
        assert path.startswith("http") or (ROOT / path).exists(), path
