"""The report of `python -m tests.gpu.report`, on the stand-ins: it runs to its end, and says so."""

import time

import pytest

from tests.benchmarks.workloads import WORKLOADS
from tests.codegen.cuda_on_cpu import needs_gxx
from tests.gpu import report, worker

pytestmark = needs_gxx


def test_a_report_runs_to_its_end(tmp_path):
    path = tmp_path / "report.md"
    began = time.monotonic()
    report.main(["--minutes", "0.1", "-o", str(path)])
    assert time.monotonic() - began < 60
    text = path.read_text()
    for section in report.SECTIONS:
        _, _, rest = text.partition(f"## {section.title}\n")
        body, _, _ = rest.partition("\n## ")
        assert body.rstrip().endswith(" s)")  # of how many seconds it took how many
    assert "not reached" not in text
    assert "FAILED: " not in text


def test_without_a_gpu_the_head_says_so(monkeypatch):
    monkeypatch.setattr(report.gpus, "gpu", lambda: "no CuPy")
    head = report.describe_machine()
    assert "**NO FIGURE IS OF A GPU: no CuPy" in head
    assert f"{time.strftime('%Y-%m-%d')}{report.commit()}, Python" in head


def test_a_section_that_fails_says_so_and_the_next_one_follows(tmp_path, monkeypatch):
    def fails(end):
        yield "half"
        raise ValueError("broken")

    sections = report.Section("One", 1, fails), report.Section("Two", 1, lambda end: iter(["done"]))
    monkeypatch.setattr(report, "SECTIONS", sections)
    path = tmp_path / "report.md"
    report.main(["--minutes", "0.01", "-o", str(path)])
    text = path.read_text()
    assert "## One\n\nhalf\n\nFAILED: ValueError: broken" in text
    assert "## Two\n\ndone" in text


def test_a_process_that_goes_on_is_ended():
    errors, command = [], ["sh", "-c", "echo one; exec sleep 60"]
    assert [*report.run_lines(command, time.monotonic() + 1.5, errors)] == ["one\n"]
    assert errors[0].startswith("out of time")
    errors.clear()
    assert [
        *report.run_lines(["sh", "-c", "echo no >&2; exit 3"], time.monotonic() + 9, errors)
    ] == []
    assert errors == ["exit status 3: no"]


@pytest.fixture(scope="module")
def stand_in():
    with worker.gpu_or_stand_in() as real:
        yield real


def test_steps_are_measured(stand_in):
    end = time.monotonic() + 60
    shared = [[*worker.measure_steps([WORKLOADS["tiny"]], "minipaddle", mode, end=end)]
              for mode in ("eager", "captured")]  # fmt: skip
    for rows in shared:
        assert [row["precision"] for row in rows] == [*worker.PRECISIONS]
        assert all(row["ms"] > 0 for row in rows if "why" not in row)
    table = {
        (a["workload"], a["precision"]): {"ours eager": a, "ours captured": b}
        for a, b in zip(*shared, strict=True)
    }
    text = report.show_steps(table, report.COLUMNS, ["a note"])
    assert text.count("\n| tiny MLP") == 3
    assert " gives " not in text  # the columns agree
    table[next(iter(table))]["ours captured"]["value"] = 0.0
    assert "ours captured gives 0, ours eager 2.28" in report.show_steps(table, report.COLUMNS, [])


def test_programs_are_measured(stand_in):
    """The single programs, which the report measures where there is a GPU, on fewer numbers."""
    end = time.monotonic() + 60
    square = worker.programs(64)
    for framework, mode in (("minipaddle", "eager"), ("minipaddle", "captured")):
        rows = [*worker.measure_steps(square, framework, mode, end=end)]
        assert len(rows) == len(square) * len(worker.PRECISIONS)
        assert [row["why"] for row in rows if "why" in row] == []


def test_kernels_are_measured(stand_in):
    rows = [*worker.profile_kernels([WORKLOADS["tiny"]], end=time.monotonic() + 60)]
    text = report.show_kernels(rows, ["a note"])
    assert "of Launch, 8 of Gemm, 0 of Clear, 0 copies" in text
    assert "outside the graph: 1 of inputs, 0 of results, 0 of small states, 0 in case" in text
    assert "| cuBLAS float32 32x32x32, 1 (" in text
    assert "FAILED" not in text
