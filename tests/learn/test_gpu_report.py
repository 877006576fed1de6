"""The stored report of a GPU, as chapters show it."""

import pytest

from minipaddle.learn import GpuReport
from tests.gpu import report


def test_the_stored_report_has_the_columns_that_a_new_one_has():
    head = [cell.strip() for cell in report.show_steps({}, report.COLUMNS, []).split("|")[1:9]]
    shown = GpuReport("GPT")
    assert shown.head == head
    assert all(len(row) == len(head) for row in shown.rows)
    assert "commit 8829adc6" in str(shown)
    assert "NVIDIA H200" in str(shown)


def test_words_that_no_step_has_are_an_error():
    with pytest.raises(ValueError, match=r"no step of .* has 'VGG'"):
        GpuReport("VGG")


def test_ratios_follow_from_the_times():
    """Ours over the best peer, in all rows."""
    for row in GpuReport("").rows:
        ours, *peers = (float(cell) for cell in row[3:6] if cell != "-")
        assert float(row[6]) == pytest.approx(ours / min(peers), abs=0.006)
