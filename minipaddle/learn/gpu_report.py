"""Steps from the report of a machine with a GPU, which lies beside the chapters."""

import re

from ..core.display import TableDisplay, make_table
from .chapters import BOOK

REPORT = BOOK / "gpu_report.md"


class GpuReport(TableDisplay):
    """The steps of the report whose names have one of the words, times in milliseconds; below them
    the card, the date and the commit. Raises ValueError for words that no step has.

        >>> from minipaddle.learn import GpuReport
        >>> GpuReport("softmax").rows[0][:2]
        ['softmax of rows of 4096×4096', 'float32']
    """

    def __init__(self, *words: str):
        text = REPORT.read_text(encoding="utf-8")
        self.machine = re.search(r"\n\n(.+?)\n\n", text, re.S)[1].replace("\n", " ")
        lines = text.partition("\n## Steps, ms\n\n")[2].strip().partition("\n\n")[0].split("\n")
        self.head, _, *rows = ([c.strip() for c in line.strip("|").split("|")] for line in lines)
        self.rows = [row for row in rows if any(word in row[0] for word in words)]
        if not self.rows:
            raise ValueError(f"no step of {REPORT.name} has {' or '.join(map(repr, words))}")

    def table(self):
        """The columns in which there is something."""
        shown = [k for k in range(len(self.head)) if {row[k] for row in self.rows} != {"-"}]
        head, *rows = ([row[k] for k in shown] for row in (self.head, *self.rows))
        table = make_table("", head, rows, words=("step",))
        table.caption = self.machine
        return table
