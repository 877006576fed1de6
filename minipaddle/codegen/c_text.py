"""C text that kernels have in common: loops, the workspace, the epilogue after a kernel."""

from __future__ import annotations

from ..engine.codegen.writer import for_head, least

PARALLEL = "#pragma omp parallel for if (parallel: threads > 1) num_threads(threads)\n"
UNEVEN = PARALLEL.replace("\n", " schedule(dynamic)\n")
"""Pragmas for iterations of equal and of unequal cost."""

ON_STACK = 1 << 17
"""Most bytes of a strip or a block on the stack of a thread."""

BLOCK = 64
"""Rows that are computed before their epilogue."""

SIZES = {"float": 4, "double": 8, "bfloat16": 2, "float16": 2, "int16_t": 2, "int8_t": 1}
"""The bytes of an element."""


class Workspace:
    """Allocates arrays in the workspace of a kernel."""

    def __init__(self):
        self.size = 0

    def array(self, T: str, elements: int) -> str:
        """C text of a pointer to `elements` of type T, in memory even if there are none."""
        at = self.size
        self.size += -(-max(elements, 1) * SIZES[T] // 64) * 64
        return f"({T} *)(work + {at})"


def indent(text: str, by: int) -> str:
    """A text with its lines indented."""
    return "".join(" " * by + line + "\n" if line else "\n" for line in text.splitlines())


def loop(name: str, end, inside: str, *, pragma: str = "", step: int = 1) -> str:
    """The text of a loop from 0 to `end`."""
    return f"{pragma}{for_head(name, 0, end, step)} {{\n{indent(inside, 4)}}}\n"


def share_loop(name: str, end: int, inside: str, pays: bool, step: int = 1) -> str:
    """The same loop, whose iterations threads share if there are several and it `pays`."""
    return loop(name, end, inside, pragma=PARALLEL if end > step and pays else "", step=step)


def loop_over_epilogue(rows, out) -> str:
    """The epilogue `rows` of a result in a loop of its own, after the kernel."""
    if rows is None:
        return ""
    count = out.size // out.shape[-1]
    end = f"const int64_t end = {least(f'row + {BLOCK}', count)};\n"
    return indent(loop("row", count, end + rows("row", "end"), step=BLOCK), 4)
