"""C text that kernels have in common: loops, the workspace, the epilogue after a kernel."""

from __future__ import annotations

from ..engine.codegen.writer import ALWAYS, for_head, least

PARALLEL = "#pragma omp parallel for if (parallel: threads > 1) num_threads(threads)\n"
UNEVEN = PARALLEL.replace("\n", " schedule(dynamic)\n")
"""Pragmas for iterations of equal and of unequal cost."""

ON_STACK = 1 << 17
"""Most bytes of a strip or a block on the stack of a thread."""

FEW, ROOM = 4, 16 << 20
"""Threads that get a workspace each, whatever it takes; but these bytes at most for all of them."""

BLOCK = 64
"""Rows that are computed before their epilogue."""

SIZES = {"double": 8, "float": 4, "pairs": 4, "bfloat16": 2, "float16": 2}
SIZES |= {"int16_t": 2, "int8_t": 1}
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
    return "".join([" " * by + line + "\n" if line else "\n" for line in text.splitlines()])


def loop(name: str, end, inside: str, *, pragma: str = "", step: int = 1) -> str:
    """The text of a loop from 0 to `end`."""
    return f"{pragma}{for_head(name, 0, end, step)} {{\n{indent(inside, 4)}}}\n"


def share_where(pays: str, pragma: str = PARALLEL) -> str:
    """The pragma with which threads share a loop where that `pays` (see `worth_sharing`)."""
    return pragma.replace(ALWAYS, pays) if pays else ""


def share_loop(name: str, end: int, inside: str, pays: str, step: int = 1) -> str:
    """The same loop, whose iterations threads share if there are several and it `pays`."""
    return loop(name, end, inside, pragma=share_where(pays) if end > step else "", step=step)


def count_parts(items: int, each: int, result: int) -> int:
    """The threads that may share `items` with `each` bytes of workspace for one: all of them take
    no more than the `result` does, or there are few. (The number of threads is not known yet.)
    """
    return min(items, max(min(FEW, ROOM // each), result // each, 1))


def share_parts(items: int, parts: int, inside: str, pays: str) -> str:
    """A loop over i from 0 to `items` that at most `parts` threads share. Thread p has part p of
    the workspace.
    """
    text = f"for (int64_t i = p; i < {items}; i += parts) {{\n{indent(inside, 4)}}}\n"
    most = (
        least("threads", parts)
        if pays in ("", ALWAYS)
        else f"{pays} ? {least('threads', parts)} : 1"
    )
    count = f"const int64_t parts = {most if pays else 1};\n"
    return count + loop("p", "parts", text, pragma=share_where(pays) if parts > 1 else "")


def loop_over_epilogue(rows, out) -> str:
    """The epilogue `rows` of a result in a loop of its own, after the kernel."""
    if rows is None:
        return ""
    count = out.size // out.shape[-1]
    end = f"const int64_t end = {least(f'row + {BLOCK}', count)};\n"
    return indent(loop("row", count, end + rows("row", "end"), step=BLOCK), 4)
